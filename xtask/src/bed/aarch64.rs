//! The crates that touch the processor, on an ARM one: its counter, its fences, its atomics; and what `hourglass.h`
//! compiles into programs.
//!
//! Emulated by QEMU's user mode under this machine's kernel, so nothing is booted. Its timer is
//! stated at 62.5 MHz and moves once in a microsecond, which no bound may overlook.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hourglass_skip::Requirement;

use super::binary::Builder;
use super::debian::{self, Package};
use super::expectation::Expectation::{ExitCode, Says, Shows};
use super::{Kernel, TestBed, guest, kernels, passes, step};

use crate::failure::StepFailure;
use crate::workspace::{Workspace, has_program, has_standard_library};

pub(crate) const NAME: &str = "aarch64";
pub(super) const PURPOSE: &str =
    "tests of time to timer, and the C header's reads, on an emulated ARM processor";

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";
const ROOT: &str = "/usr/aarch64-linux-gnu";
const PACKAGES: &[&str] = &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user-static"];

const CRATES: &[&str] = &["hourglass-time", "hourglass-sys", "hourglass-queue", "hourglass-clock"];

/// The timer crate's tests but those in loom, which is the same on every processor.
const TIMER_TESTS: &[&str] = &["ordinary", "alone"];

/// Hours of virtual time: integers that are the same on every processor, and minutes of emulation. What suspends
/// threads at every instruction of the emulator.
/// And what the emulator does in another way: it numbers timers itself, so that a child goes on
/// counting where its parent was, and none of its timers gets the number of one of the parent's; and limits of
/// memory (`RLIMIT_AS`, which it does not pass on) and of files are those of the emulator itself; it makes up
/// `/proc/self/smaps`, does not pass on the whole of a signal's value, and says that a program was started which is not
/// there. Nor is anything precise on it.
const SKIPPED: &[&str] = &[
    "properties::",
    "hours_",
    "orders::",
    "wheels::",
    "service_sim::",
    "simulated_faults::",
    "stuck_locks::",
    "sleep::tests::",
    "periodic::tests::",
    "every_read_is_inside_its_bound_whatever_is_done_to_the_rate",
    "without_the_kernels_word_bounds_are_the_kernels_clock",
    "a_childs_own_timer_is_not_taken_for_its_parents",
    "a_kick_in_a_child_leaves_its_timers_alone",
    "a_limit_of_the_process_is_reported",
    "a_record_keeps_to_the_limit_for_files",
    "descriptors_may_run_out_at_any_call",
    "the_best_of_many_is_precise",
    "the_kernel_notes_it",
    "a_number_comes_with_a_signal",
    "a_chronyd_is_read_as_chronyc_reads_it",
];

/// The same processor with a kernel of its own: what depends on a kernel is not the host's.
pub(super) const GUEST: TestBed = TestBed {
    name: "aarch64-guest",
    purpose: "an ARM machine with its own kernel: the command, the C interface, tests of timer and workload",
    emulator: guest::AARCH64,
    kernel: Kernel::Debian(Package {
        name: "linux-image-cloud-arm64:arm64",
        suite: Some("bookworm"),
    }),
    // Two minutes of it are the tests.
    processor_limit: Duration::from_secs(600),
    tests: &["ordinary"],
    unit_tests: &["hourglass_workload"],
    c_programs: true,
    steps: &[
        step("kernel", "uname -m", &[ExitCode(0), Shows("aarch64")]),
        kernels::CLOCKS,
        kernels::LATENCY,
        step(
            "run",
            "hourglass -n 2 -d 1s -w PERIODIC 2ms 20ms -o /tmp/run && hourglass show /tmp/run",
            &[ExitCode(0), Says("thread 1:")],
        ),
        passes("noise", "hourglass noise -D 1s"),
        kernels::RESERVE,
        step(
            "task-file",
            "hourglass example tasks && hourglass check tasks.toml",
            &[ExitCode(1), Says("misses")],
        ),
        step(
            "timer",
            "ordinary --test-threads 1 --quiet --skip properties:: --skip hours_ --skip orders:: --skip wheels:: \
             --skip service_sim:: --skip simulated_faults::",
            &[ExitCode(0), Says("0 failed")],
        ),
        step(
            "workload",
            "hourglass_workload --test-threads 1 --quiet",
            &[ExitCode(0), Says("0 failed")],
        ),
        step(
            "c",
            "for program in /bin/c-*; do echo $program; $program || { echo \"$program: $?\"; failed=1; }; done; \
             exit ${failed:-0}",
            &[ExitCode(0), Says("/bin/c-witness")],
        ),
    ],
    ..TestBed::PLAIN
};

/// All of them each time, or features of dependencies would differ and be built again.
const SELECTED: &[&str] = &[
    "--target",
    TARGET,
    "-p",
    "hourglass-rt",
    "-p",
    "hourglass-timer",
    "-p",
    "hourglass-workload",
    "-p",
    "hourglass-capi",
];

/// What of `crates/capi/tests/programs` needs nothing beside it.
const C_PROGRAMS: &[&str] = &[
    "c-caller",
    "c-clock",
    "c-extremes",
    "c-faults",
    "c-page",
    "c-periodic",
    "c-progress",
    "c-recorder",
    "c-reserve",
    "c-settings",
    "c-sleep",
    "c-timers",
    "c-witness",
    "c-witness_signals",
];

/// Where programs look for the C library, and the file of that.
pub(super) fn c_library(
    workspace: &Workspace,
    builder: &Builder,
) -> Result<(PathBuf, PathBuf), StepFailure> {
    let mut cargo = workspace.cargo(&["build", "--quiet", "--lib"]);
    cargo.args(builder.selected).envs(builder.environment.iter().copied());
    let built = cargo.status().map_err(|e| StepFailure::start("cargo", &e))?;
    if !built.success() {
        return Err(StepFailure::Broken(format!("the C library does not build for {TARGET}")));
    }
    let name = "libhourglass.so";
    let library = workspace.target.join("beds").join(builder.folder).join(name);
    builder.strip(&workspace.target.join(TARGET).join("debug").join(name), &library)?;
    Ok((Path::new("/lib").join(name).with_extension("so.1"), library))
}

/// The C interface's programs, which look for its library.
pub(super) fn c_programs(
    workspace: &Workspace,
    builder: &Builder,
    library: &Path,
) -> Result<Vec<(&'static str, PathBuf)>, StepFailure> {
    let folder = workspace.target.join("beds").join(builder.folder);
    let compiled = C_PROGRAMS.iter().map(|name| {
        let program = folder.join(name);
        compile(workspace, name.trim_start_matches("c-"), &[], &program, Some(library))?;
        Ok((*name, program))
    });
    compiled.collect()
}

/// One of the C interface's programs; without the library, what its header has alone.
fn compile(
    workspace: &Workspace,
    source: &str,
    flags: &[&str],
    program: &Path,
    library: Option<&Path>,
) -> Result<(), StepFailure> {
    let capi = workspace.root.join("crates/capi");
    let mut compiler = Command::new(LINKER);
    compiler.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c11", "-O2", "-pthread"]);
    compiler.args(flags).arg("-I").arg(capi.join("include"));
    compiler.arg(capi.join("tests/programs").join(source).with_extension("c"));
    compiler.args(library).args(["-lm", "-ldl"]).arg("-o").arg(program);
    let made = compiler.status().map_err(|e| StepFailure::start(LINKER, &e))?;
    match made.success() {
        true => Ok(()),
        false => Err(StepFailure::Broken(format!("{source}.c does not compile for {TARGET}"))),
    }
}

pub(super) fn builder() -> Result<Builder, StepFailure> {
    if !has_program(LINKER) {
        debian::install(PACKAGES)?;
    }
    add_target()?;
    Ok(Builder {
        selected: SELECTED,
        environment: &[("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)],
        strip: "aarch64-linux-gnu-strip",
        folder: "bin-aarch64",
    })
}

/// Where programs of that processor look for them, and where the cross compiler has them.
pub(super) fn libraries() -> BTreeMap<PathBuf, PathBuf> {
    let names = ["ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libgcc_s.so.1"];
    names.map(|name| (Path::new("/lib").join(name), Path::new(ROOT).join("lib").join(name))).into()
}

pub(super) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    let begin = Instant::now();
    if !has_program(LINKER) || !has_program(EMULATOR) {
        debian::install(PACKAGES)?;
    }
    add_target()?;
    let header = header(workspace)?;
    let crates: Vec<&str> = CRATES.iter().flat_map(|name| ["-p", name]).collect();
    let mut timer = vec!["-p", "hourglass-timer", "--lib"];
    timer.extend(TIMER_TESTS.iter().flat_map(|name| ["--test", name]));
    let tests = [tests(workspace, &crates)?, tests(workspace, &timer)?];
    let took = begin.elapsed().as_secs_f64();
    println!("bed {NAME}: built and run, {took:.1} s");
    if header && tests == [true; 2] {
        Ok(())
    } else {
        Err(StepFailure::Broken(format!("bed {NAME}: tests failed on {TARGET}")))
    }
}

fn header(workspace: &Workspace) -> Result<bool, StepFailure> {
    let folder = workspace.target.join("beds").join(NAME);
    fs::create_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    let program = folder.join("page");
    compile(workspace, "page", &["-DALONE"], &program, None)?;
    let mut emulator = Command::new(EMULATOR);
    emulator.args(["-L", ROOT]).arg(&program);
    let good = emulator.status().map_err(|e| StepFailure::start(EMULATOR, &e))?.success();
    println!("bed {NAME}: hourglass.h, {}", if good { "ok" } else { "BROKEN" });
    Ok(good)
}

fn tests(workspace: &Workspace, packages: &[&str]) -> Result<bool, StepFailure> {
    let mut cargo = workspace.cargo(&["test", "--target", TARGET, "--no-fail-fast"]);
    cargo.args(packages);
    cargo.args(["--", "--quiet"]).args(SKIPPED.iter().flat_map(|name| ["--skip", name]));
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    let runner = format!("{EMULATOR} -L {ROOT}");
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &runner);
    // A process that forks beside other threads inherits whatever lock of the emulator they hold, and waits for it for
    // ever (seen in QEMU 7.2's user mode).
    cargo.env("RUST_TEST_THREADS", "1");
    // For tests that start themselves once more.
    cargo.env("HOURGLASS_TEST_RUNNER", &runner);
    Ok(cargo.status().map_err(|e| StepFailure::start("cargo", &e))?.success())
}

fn add_target() -> Result<(), StepFailure> {
    if has_standard_library(TARGET) {
        return Ok(());
    }
    let remedy = || {
        let add = format!("rustup target add {TARGET}");
        StepFailure::Unable(Requirement::runs(TARGET, &*add), format!("install the target: {add}"))
    };
    println!("installing {TARGET}");
    let status = Command::new("rustup").args(["target", "add", TARGET]).status();
    if status.is_ok_and(|status| status.success()) { Ok(()) } else { Err(remedy()) }
}
