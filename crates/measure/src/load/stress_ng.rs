//! A load that stress-ng makes.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use hourglass_documents::CpuSet;
use hourglass_documents::load::LoadKind;
use hourglass_reserve::command::{Child, Launch};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::{signal, thread};

use super::Maker;

pub(super) const NAME: &str = "stress-ng";

/// Longer than any run. Without it stress-ng ends after a day, and with 0 its `--timer` of version 0.15 after 5 s.
const TIMEOUT: &str = "999d";

/// How long it may take to end its processes and to remove its files, in looks.
const END_LOOKS: u32 = 300;
/// Between two of them.
const END_PAUSE: Duration = Duration::from_millis(10);
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// What its version is, where it is installed: `stress-ng, version 0.15.06 (gcc ...)`.
pub(super) fn version() -> Option<String> {
    let told = Command::new(NAME).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let mut words = text.split_whitespace();
    let version = words.find(|word| *word == "version").and_then(|_| words.next())?;
    told.status.success().then(|| version.to_owned())
}

fn words(kind: LoadKind, number: u32) -> Vec<String> {
    let number = number.to_string();
    let temporary = std::env::temp_dir().display().to_string();
    let of_kind: &[&str] = match kind {
        LoadKind::Cpu => &["--cpu", &number],
        LoadKind::Cache => &["--cache", &number],
        LoadKind::Memory => &["--vm", &number, "--vm-bytes", "64M"],
        LoadKind::Io => &["--hdd", &number, "--hdd-bytes", "64M", "--temp-path", &temporary],
        LoadKind::Timer => &["--timer", &number],
        LoadKind::Switch => &["--switch", &number],
    };
    let all = [NAME, "--quiet", "--timeout", TIMEOUT].into_iter().chain(of_kind.iter().copied());
    all.map(str::to_owned).collect()
}

/// Starts it; returns what it was told.
pub(super) fn start(kind: LoadKind, number: u32, cpus: &CpuSet) -> io::Result<(Maker, String)> {
    let words = words(kind, number);
    let line: Vec<OsString> = words.iter().map(OsString::from).collect();
    let launch = Launch::find(&line, &[]).map_err(io::Error::other)?.printing_aside().helping();
    let gated = launch.start().map_err(io::Error::other)?;
    // Whatever policy this process has.
    sched::set_of(gated.pid(), Attributes::Other(0))?;
    thread::set_affinity_of(gated.pid(), cpus.iter())?;
    let child = launch.open(gated).map_err(io::Error::other)?;
    Ok((Maker::StressNg(child), words.join(" ")))
}

/// Ends it with all its processes.
pub(super) fn end(child: &Child) {
    let ends = || child.file().has_ended().unwrap_or(true);
    let _ = child.file().signal(SIGTERM);
    for _ in 0..END_LOOKS {
        if ends() {
            break;
        }
        std::thread::sleep(END_PAUSE);
    }
    // It was not waited for, so that no other group has its number. Those that it left behind, or itself.
    if let Ok(group) = i32::try_from(child.pid()) {
        let _ = signal::send_to(group.saturating_neg(), SIGKILL);
    }
    let _ = child.wait();
}
