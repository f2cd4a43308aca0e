//! Booting a guest and getting back what it said.

use std::env::consts::ARCH;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::TestBed;
use super::debian::{self, Package};
use hourglass_skip::Requirement;

use crate::failure::StepFailure;
use crate::workspace::has_program;

/// The emulator of a processor, and what is particular to its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Emulator {
    program: &'static str,
    packages: &'static [&'static str],
    machine: &'static [&'static str],
    console: &'static str,
    kernel_arguments: &'static str,
    pub(super) busybox: Package,
    /// A device that older versions lack, and the package of one that has it.
    device: Option<(&'static str, Package)>,
}

/// An Intel, because an emulated AMD's kernel distrusts its own counter.
pub(super) const X86_64: Emulator = Emulator {
    program: "qemu-system-x86_64",
    packages: &["qemu-system-x86", "seabios"],
    machine: &["-M", "q35", "-cpu", "max,vendor=GenuineIntel"],
    console: "ttyS0",
    // Where the host is busy, the kernel's test of its first timer fails, and it panics.
    kernel_arguments: "no_timer_check",
    busybox: debian::BUSYBOX,
    device: None,
};

/// With a network card that stamps packets by a clock of its own: QEMU 8.1, of which Debian 12 has an older one.
pub(super) const X86_64_WITH_PTP_CLOCK: Emulator = Emulator {
    device: Some(("igb", Package { name: "qemu-system-x86", suite: Some("bookworm-backports") })),
    ..X86_64
};

pub(super) const AARCH64: Emulator = Emulator {
    program: "qemu-system-aarch64",
    packages: &["qemu-system-arm"],
    machine: &["-M", "virt,gic-version=3", "-cpu", "cortex-a57"],
    console: "ttyAMA0",
    kernel_arguments: "",
    busybox: Package { name: "busybox-static:arm64", suite: Some("bookworm") },
    device: None,
};

/// What all guests share. Emulated, because machines that test are often guests themselves; one
/// thread, because several crashed now and then.
#[rustfmt::skip]
const ARGUMENTS: &[&str] = &[
    "-accel", "tcg,thread=single", "-m", "512",
    "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
];

/// A guest takes some ten seconds of a processor, some a minute; one that takes this long runs in circles.
pub(super) const PROCESSOR_LIMIT: Duration = Duration::from_secs(180);

/// A guest that gets less of a processor than [`ASLEEP`] in this time waits for what never comes. On a busy machine it gets
/// its share.
const SILENCE: Duration = Duration::from_secs(120);

/// See [`SILENCE`]. An emulated machine that idles takes some hundredths of a processor.
const ASLEEP: Duration = Duration::from_secs(4);

const POLL: Duration = Duration::from_millis(50);

/// The emulator's program.
pub(super) fn program(emulator: &Emulator, cache: &Path) -> Result<PathBuf, StepFailure> {
    if ARCH != "x86_64" {
        let why = format!("beds run an x86-64 hourglass, and this machine is {ARCH}");
        return Err(StepFailure::Unable(
            Requirement::runs("x86-64", "test $(uname -m) = x86_64"),
            why,
        ));
    }
    if !has_program(emulator.program) {
        debian::install(emulator.packages)?;
    }
    let own = PathBuf::from(emulator.program);
    let Some((device, package)) = emulator.device else { return Ok(own) };
    // It succeeds for what is not there, too.
    let has_device = |program: &Path| {
        let help = Command::new(program).args(["-device", &format!("{device},help")]).output();
        help.is_ok_and(|output| output.stdout.starts_with(device.as_bytes()))
    };
    if has_device(&own) {
        return Ok(own);
    }
    let newer = debian::unpacked(package, cache)?.join("usr/bin").join(emulator.program);
    if has_device(&newer) {
        return Ok(newer);
    }
    let check = format!("{} -device {device},help | grep -q {device}", emulator.program);
    let what = format!("QEMU has no {device} here, nor has that of {}", newer.display());
    Err(StepFailure::Unable(Requirement::runs("QEMU 8.1", check), what))
}

pub(super) fn run(
    bed: &TestBed,
    program: &Path,
    kernel: &Path,
    initramfs: &Path,
    log: &Path,
) -> Result<String, StepFailure> {
    let to_log = || -> Result<File, StepFailure> {
        let opened = File::options().create(true).append(true).open(log);
        opened.map_err(|e| StepFailure::file(log, &e))
    };
    File::create(log).map_err(|e| StepFailure::file(log, &e))?; // empties an earlier one
    let Emulator { machine, console, kernel_arguments, .. } = bed.emulator;
    let arguments =
        format!("console={console} quiet panic=-1 {kernel_arguments} {}", bed.kernel_arguments);
    let child = starter(bed, program)
        .args(ARGUMENTS)
        .args(machine)
        .args(bed.machine)
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", &arguments])
        .stdin(Stdio::null())
        .stdout(to_log()?)
        .stderr(to_log()?)
        .spawn()
        .map_err(|e| StepFailure::start(bed.emulator.program, &e))?;
    let ended = wait(child, bed.processor_limit);
    let console = fs::read(log).map_err(|e| StepFailure::file(log, &e))?;
    let console = String::from_utf8_lossy(&console).into_owned();
    match ended {
        Ok(()) => Ok(console),
        Err(why) => {
            let last: Vec<&str> = console.lines().rev().take(10).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            let why = format!("bed {}: {why}; its console ended with:", bed.name);
            Err(StepFailure::Broken(format!("{why}\n{}", last.join("\n"))))
        }
    }
}

/// Real-time only as long as this thread is there to end it.
fn starter(bed: &TestBed, program: &Path) -> Command {
    const PROMPT: [&str; 5] = ["--pdeathsig", "KILL", "chrt", "--rr", "1"];
    let is_permitted = || {
        let tried = Command::new("setpriv").args(PROMPT).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    };
    if !bed.is_prompt {
        return Command::new(program);
    }
    if !is_permitted() {
        println!("bed {}: real-time priorities are refused; its guest waits for CPUs", bed.name);
        return Command::new(program);
    }
    let mut starter = Command::new("setpriv");
    starter.args(PROMPT).arg(program);
    starter
}

/// Waits for the end of QEMU, and kills it when the guest hangs. What counts is the time that it had a processor, since
/// a machine with much else to do is no fault of the guest.
fn wait(mut child: Child, limit: Duration) -> Result<(), String> {
    let mut seen = (Instant::now(), Duration::ZERO);
    loop {
        let used = processor_time(child.id());
        if used >= seen.1 + ASLEEP {
            seen = (Instant::now(), used);
        }
        let hangs = used > limit || seen.0.elapsed() > SILENCE;
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("QEMU failed ({status})")),
            Ok(None) if !hangs => thread::sleep(POLL),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                let used = used.as_secs();
                return Err(format!("the guest hung and was killed after {used} s of a processor"));
            }
            Err(e) => return Err(format!("QEMU: {e}")),
        }
    }
}

/// What the kernel has counted for a process, to a hundredth of a second; none for one that has ended.
fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Its name may hold anything but is in parentheses.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
    Duration::from_millis(ticks * 10)
}
