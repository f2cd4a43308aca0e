//! Test beds: guests with the hardware that the machine at hand lacks.
//!
//! A bed is data: a machine, and commands with what is expected of them. To add one, write a file
//! like [`rtc`] and a line in [`BEDS`].
//!
//! A guest is emulated, not accelerated, so its latencies mean nothing; beds check behaviour.
//! One bed is no guest: [`aarch64`] runs tests on another processor.

mod aarch64;
mod archive;
pub(crate) mod binary;
mod cgroup1;
mod cgroup2;
mod clock;
mod container;
pub(crate) mod debian;
mod expectation;
mod guest;
mod hotplug;
mod hpet;
mod isolated;
mod kernels;
mod linux7;
mod no_rseq;
mod rtc;
mod slice;
mod smt;
mod suspend;
mod utc;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hourglass_skip::Requirement;

use crate::failure::{StepFailure, succeed};
use crate::package;
use crate::workspace::Workspace;
use debian::Package;
use expectation::Expectation;
use guest::Emulator;

pub(crate) const BEDS: &[&TestBed] = &[
    &rtc::BED,
    &clock::BED,
    &hpet::BED,
    &hpet::REFUSED,
    &hpet::OFF,
    &smt::BED,
    &isolated::BED,
    &hotplug::BED,
    &no_rseq::BED,
    &container::BED,
    &cgroup1::BED,
    &cgroup2::BED,
    &suspend::BED,
    &utc::ntp::BED,
    &utc::relay::BED,
    &utc::ptp::BED,
    &utc::phc::BED,
    &linux7::BED,
    &linux7::STATIC,
    &slice::BED,
    &kernels::PREEMPT_RT,
    &kernels::LINUX_5_10,
    &kernels::DEBIAN_13,
    &kernels::UBUNTU,
    &kernels::MANY_CPUS,
    &aarch64::GUEST,
];

/// Beds of a minute and more, with a longer download, or of devices whose code changes once a year, which
/// `cargo xtask slow` runs.
pub(crate) const SLOW: &[&str] = &[
    rtc::BED.name,
    hpet::BED.name,
    hpet::REFUSED.name,
    hpet::OFF.name,
    smt::BED.name,
    aarch64::NAME,
    container::BED.name,
    cgroup1::BED.name,
    cgroup2::BED.name,
    utc::ntp::BED.name,
    utc::relay::BED.name,
    utc::ptp::BED.name,
    utc::phc::BED.name,
    linux7::STATIC.name,
    kernels::PREEMPT_RT.name,
    kernels::LINUX_5_10.name,
    kernels::DEBIAN_13.name,
    kernels::UBUNTU.name,
    kernels::MANY_CPUS.name,
    aarch64::GUEST.name,
];

/// Beds whose kernel is not packaged: they run only when they are requested by name.
pub(crate) const ON_DEMAND: &[&str] = &[slice::BED.name];

#[derive(Debug)]
enum Kernel {
    /// The Debian package of it, or one that depends on that.
    Debian(Package),
    /// The file that this variable of the environment names, and where the text says how to build it.
    Given { variable: &'static str, remedy: &'static str },
}

impl Kernel {
    fn file(&self, cache: &Path) -> Result<PathBuf, StepFailure> {
        match self {
            Kernel::Debian(package) => debian::kernel(*package, cache),
            Kernel::Given { variable, remedy } => {
                let given = std::env::var_os(variable).map(PathBuf::from);
                given.filter(|path| path.is_file()).ok_or_else(|| {
                    let what = format!("{variable} names no file with a kernel; {remedy}");
                    StepFailure::Unable(
                        Requirement::runs(variable, format!("test -f \"${variable}\"")),
                        what,
                    )
                })
            }
        }
    }
}

impl Kernel {
    fn module(&self, name: &str, cache: &Path) -> Result<PathBuf, StepFailure> {
        match self {
            Kernel::Debian(package) => debian::module(*package, name, cache),
            Kernel::Given { .. } => {
                Err(StepFailure::Broken(format!("a kernel of one's own has no module {name}")))
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct TestBed {
    pub(crate) name: &'static str,
    purpose: &'static str,
    emulator: Emulator,
    kernel: Kernel,
    /// The C library of a second root below `/libc`, for which the guest's first step mounts the rest.
    libc: Option<Package>,
    machine: &'static [&'static str],
    kernel_arguments: &'static str,
    /// Of the kernel's package, for `insmod` from `/lib/modules`.
    modules: &'static [&'static str],
    packaged: &'static [Packaged],
    published: &'static [Published],
    /// After this much of a processor QEMU is killed.
    processor_limit: Duration,
    /// Whether the guest runs before what else runs here, one of its CPUs at most, where this user may have that.
    is_prompt: bool,
    /// Test programs that the guest has beside hourglass.
    tests: &'static [binary::Test],
    /// Libraries whose unit tests it has, by their names.
    unit_tests: &'static [binary::Test],
    /// Whether it has the C interface's programs, as `c-NAME`.
    c_programs: bool,
    /// In this order; a later one finds what an earlier one left.
    steps: &'static [Step],
}

/// A program of a Debian package, with what it needs of this machine's libraries.
#[derive(Debug)]
struct Packaged {
    package: Package,
    /// Its place in the package.
    program: &'static str,
}

/// A program of a package of crates.io, which this machine builds.
#[derive(Debug)]
struct Published {
    name: &'static str,
    version: &'static str,
    program: &'static str,
}

impl Published {
    fn built(&self, cache: &Path) -> Result<PathBuf, StepFailure> {
        let root = cache.join(format!("{}-{}", self.name, self.version));
        let program = root.join("bin").join(self.program);
        if !program.exists() {
            let install = ["install", "--locked", "--quiet", self.name, "--version", self.version];
            let mut cargo = Command::new("cargo");
            succeed(
                cargo.args(install).arg("--root").arg(&root),
                &format!("cargo {}", install.join(" ")),
            )?;
        }
        Ok(program)
    }
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    /// For the guest's shell, which is busybox.
    command: &'static str,
    expect: &'static [Expectation],
}

impl TestBed {
    /// Two CPUs, the small kernel, and hourglass.
    const PLAIN: TestBed = TestBed {
        name: "",
        purpose: "",
        emulator: guest::X86_64,
        kernel: Kernel::Debian(debian::CLOUD_KERNEL),
        libc: None,
        machine: &["-smp", "2"],
        kernel_arguments: "",
        modules: &[],
        packaged: &[],
        published: &[],
        processor_limit: guest::PROCESSOR_LIMIT,
        is_prompt: false,
        tests: &[],
        unit_tests: &[],
        c_programs: false,
        steps: &[],
    };
}

const fn step(name: &'static str, command: &'static str, expect: &'static [Expectation]) -> Step {
    Step { name, command, expect }
}

const fn passes(name: &'static str, command: &'static str) -> Step {
    step(name, command, &[Expectation::ExitCode(0)])
}

pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    BEDS.iter().map(|bed| (bed.name, bed.purpose)).chain([(aarch64::NAME, aarch64::PURPOSE)])
}

pub(crate) fn list() {
    for (name, purpose) in all() {
        println!("{name:13} {purpose}");
    }
}

pub(crate) fn run(
    workspace: &Workspace,
    name: &str,
    binary: Option<PathBuf>,
) -> Result<(), StepFailure> {
    match BEDS.iter().find(|bed| bed.name == name) {
        Some(bed) if binary.is_none() && bed.name == linux7::STATIC.name => {
            boot(workspace, bed, Some(package::static_program(workspace)?))
        }
        Some(bed) if is_utc(bed.name) => run_utc(workspace, name, binary, UTC_MINUTES, None),
        Some(bed) => boot(workspace, bed, binary),
        None if name == aarch64::NAME && binary.is_none() => aarch64::run(workspace),
        None => {
            let names: Vec<&str> = all().map(|(name, _)| name).collect();
            let names = names.join(", ");
            Err(StepFailure::Usage(format!("no bed `{name}` that this is for; there is: {names}")))
        }
    }
}

/// Of the beds of UTC: a round of all that they do, and more.
pub(crate) const UTC_MINUTES: f64 = utc::MINUTES;

/// Whether a bed counts wrong bounds on UTC for as long as one likes.
pub(crate) fn is_utc(name: &str) -> bool {
    UTC_BEDS.iter().any(|utc_bed| utc_bed.bed.name == name)
}

const UTC_BEDS: [&utc::UtcBed; 4] =
    [&utc::ntp::UTC, &utc::relay::UTC, &utc::ptp::UTC, &utc::phc::UTC];

/// A bed of UTC, for some minutes; its result is printed, and kept in `record`.
pub(crate) fn run_utc(
    workspace: &Workspace,
    name: &str,
    binary: Option<PathBuf>,
    minutes: f64,
    record: Option<&Path>,
) -> Result<(), StepFailure> {
    let found = UTC_BEDS.into_iter().find(|utc_bed| utc_bed.bed.name == name);
    let unknown = || StepFailure::Usage(format!("no bed `{name}` of UTC"));
    utc::run(found.ok_or_else(unknown)?, workspace, binary, minutes, record)
}

fn boot(workspace: &Workspace, bed: &TestBed, binary: Option<PathBuf>) -> Result<(), StepFailure> {
    let cache = workspace.target.join("beds");
    let program = guest::program(&bed.emulator, &cache)?;
    let folder = cache.join(bed.name);
    fs::create_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;

    let mut watch = Stopwatch::start(bed.name);
    let kernel = bed.kernel.file(&cache)?;
    let busybox = debian::busybox(bed.emulator.busybox, &cache)?;
    let libc = bed.libc.map(|package| debian::unpacked(package, &cache)).transpose()?;
    watch.lap("kernel and busybox are here");
    let is_arm = bed.emulator == guest::AARCH64;
    let builder = if is_arm { aarch64::builder()? } else { binary::Builder::NATIVE };
    let binary = match binary {
        Some(path) => binary::given(path, is_arm)?,
        None => builder.build(workspace)?,
    };
    let mut programs = vec![("busybox", busybox), ("hourglass", binary)];
    for test in bed.tests {
        programs.push((test, builder.build_test(workspace, test)?));
    }
    for library in bed.unit_tests {
        programs.push((library, builder.build_unit_tests(workspace, library)?));
    }
    let mut libraries = if is_arm { aarch64::libraries() } else { BTreeMap::new() };
    if bed.c_programs {
        let (place, library) = aarch64::c_library(workspace, &builder)?;
        programs.extend(aarch64::c_programs(workspace, &builder, &library)?);
        libraries.insert(place, library);
    }
    for Packaged { package, program } in bed.packaged {
        let name = program.rsplit('/').next().unwrap_or(program);
        programs.push((name, debian::unpacked(*package, &cache)?.join(program)));
    }
    for published in bed.published {
        programs.push((published.program, published.built(&cache)?));
    }
    for (_, program) in programs.iter().filter(|_| !is_arm) {
        for library in binary::libraries(program)? {
            if let Some(libc) = &libc {
                libraries.extend([binary::in_second_root(&library, libc)]);
            }
            libraries.insert(library.clone(), library);
        }
    }
    for name in bed.modules {
        let place = Path::new("/lib/modules").join(format!("{name}.ko"));
        libraries.insert(place, bed.kernel.module(name, &cache)?);
    }
    let programs: Vec<(&str, &Path)> = programs.iter().map(|(n, p)| (*n, p.as_path())).collect();
    watch.lap("hourglass is here");
    let initramfs = folder.join("initramfs.cpio");
    archive::write(&initramfs, &programs, &libraries, bed.steps)?;
    let log = folder.join("console.log");
    let console = guest::run(bed, &program, &kernel, &initramfs, &log)?;
    watch.lap("guest has run");

    let mut broken = 0;
    for step in bed.steps {
        broken += usize::from(!report_step(bed, step, &console));
    }
    if broken == 0 {
        Ok(())
    } else {
        Err(StepFailure::Broken(format!(
            "bed {}: {broken} of {} steps broken; the guest's console is in {}",
            bed.name,
            bed.steps.len(),
            log.display()
        )))
    }
}

fn report_step(bed: &TestBed, step: &Step, console: &str) -> bool {
    let prefix = format!("bed {}: {}", bed.name, step.name);
    let Some(record) = expectation::record(console, step.name) else {
        println!("{prefix}: BROKEN, it did not come to its end; the console's is:");
        let last: Vec<&str> = console.lines().rev().take(10).collect();
        last.iter().rev().for_each(|line| println!("  | {line}"));
        return false;
    };
    let verdicts: Vec<Result<String, String>> =
        step.expect.iter().map(|expect| expect.verify(&record)).collect();
    for verdict in &verdicts {
        match verdict {
            Ok(found) => println!("{prefix}: ok, {found}"),
            Err(wrong) => println!("{prefix}: BROKEN, {wrong}"),
        }
    }
    let good = verdicts.iter().all(Result::is_ok);
    if !good {
        println!("  $ {}", step.command);
        for line in record.last_lines() {
            println!("  | {line}");
        }
    }
    good
}

struct Stopwatch {
    bed: &'static str,
    begin: Instant,
}

impl Stopwatch {
    fn start(bed: &'static str) -> Stopwatch {
        let begin = Instant::now();
        Stopwatch { bed, begin }
    }

    fn lap(&mut self, what: &str) {
        let took = self.begin.elapsed().as_secs_f64();
        println!("bed {}: {what}, {took:.1} s", self.bed);
        self.begin = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_names_of_their_own() {
        for bed in BEDS {
            let mut names: Vec<&str> = bed.steps.iter().map(|step| step.name).collect();
            assert!(names.iter().all(|name| !name.contains(char::is_whitespace)));
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), bed.steps.len(), "{}", bed.name);
        }
    }

    #[test]
    fn beds_are_found_by_name() {
        let mut names: Vec<&str> = all().map(|(name, _)| name).collect();
        assert!(names.contains(&"rtc") && names.contains(&"aarch64"), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
        let workspace = Workspace { root: PathBuf::new(), target: PathBuf::new() };
        let none = run(&workspace, "no-such-bed", None);
        assert!(matches!(none, Err(StepFailure::Usage(text)) if text.contains("hpet-refused")));
        // No guest, so there is nothing to give it.
        let given = run(&workspace, "aarch64", Some(PathBuf::from("hourglass")));
        assert!(matches!(given, Err(StepFailure::Usage(_))));
    }
}
