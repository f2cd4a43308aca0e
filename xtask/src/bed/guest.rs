//! Booting a guest and getting back what it said.

use std::env::consts::ARCH;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bed, debian};
use crate::failure::Failure;
use crate::workspace::has_program;

const QEMU: &str = "qemu-system-x86_64";

/// What brings QEMU and its firmware.
const PACKAGES: &[&str] = &["qemu-system-x86", "seabios"];

/// What all guests share. Emulated, because machines that test are often guests themselves; one
/// thread, because several crashed now and then; an Intel, because an emulated AMD's kernel
/// distrusts its own counter.
#[rustfmt::skip]
const ARGUMENTS: &[&str] = &[
    "-accel", "tcg,thread=single", "-M", "q35", "-cpu", "max,vendor=GenuineIntel", "-m", "512",
    "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
];

/// A guest takes some ten seconds; one that takes this long hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// How often the guest is asked whether it has ended.
const POLL: Duration = Duration::from_millis(50);

/// Makes sure that a guest can be booted here, installing QEMU if this process may.
///
/// # Errors
/// Why not.
pub(super) fn possible() -> Result<(), Failure> {
    if ARCH != "x86_64" {
        let why = format!("beds run an x86-64 hourglass, and this machine is {ARCH}");
        return Err(Failure::Unable(why));
    }
    if !has_program(QEMU) {
        debian::install(PACKAGES)?;
    }
    Ok(())
}

/// Runs the guest to its end; its console goes to `log` and is returned.
///
/// # Errors
/// QEMU does not start or fails, or the guest hangs and is killed.
pub(super) fn run(
    bed: &Bed,
    kernel: &Path,
    initramfs: &Path,
    log: &Path,
) -> Result<String, Failure> {
    let to_log = || -> Result<File, Failure> {
        let opened = File::options().create(true).append(true).open(log);
        opened.map_err(|e| Failure::file(log, &e))
    };
    File::create(log).map_err(|e| Failure::file(log, &e))?; // empties an earlier one
    let arguments = format!("console=ttyS0 quiet panic=-1 {}", bed.kernel_arguments);
    let child = Command::new(QEMU)
        .args(ARGUMENTS)
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
        .map_err(|e| Failure::Unable(format!("{QEMU}: {e}")))?;
    let ended = wait(child);
    let console = fs::read(log).map_err(|e| Failure::file(log, &e))?;
    let console = String::from_utf8_lossy(&console).into_owned();
    match ended {
        Ok(()) => Ok(console),
        Err(why) => {
            let last: Vec<&str> = console.lines().rev().take(10).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            let why = format!("bed {}: {why}; its console ended with:", bed.name);
            Err(Failure::Broken(format!("{why}\n{}", last.join("\n"))))
        }
    }
}

/// Waits for the end of QEMU, and kills it when that takes too long.
fn wait(mut child: Child) -> Result<(), String> {
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{QEMU} failed ({status})")),
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                let limit = TIME_LIMIT.as_secs();
                return Err(format!("the guest hung and was killed after {limit} s"));
            }
            Err(e) => return Err(format!("{QEMU}: {e}")),
        }
    }
}
