//! The text of an entry of the registry: written, and believed or not.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hourglass_sys::guardian::TaskIdentity;
use hourglass_sys::lock::{self, Holder as LockHolder};
use hourglass_sys::strange_file;

use super::claims::{ReservationClaim, priority_for};
use super::registry::{Holder, RegisteredReservation};
use crate::backend::members;
use crate::ownership;

const VERSION: &str = "hourglass-claim/1";
const COURSE: &str = "course";
/// Most bytes of an entry: a list of 1,024 single CPUs takes 5,000.
const LONGEST: u64 = 8_192;

pub(super) fn text(share: &ReservationClaim, pid: u32) -> io::Result<String> {
    let started = TaskIdentity::of_task(pid)?.started;
    let ReservationClaim { cpus, budget_ns, deadline_ns, period_ns, .. } = share;
    Ok(format!(
        "{VERSION}\nstarted {started}\ncpus {cpus}\nbudget_ns {budget_ns}\ndeadline_ns {deadline_ns}\nperiod_ns \
         {period_ns}\n"
    ))
}

/// A line that follows the text while the reservation lasts: of one length always, so that it is written over.
pub(super) fn course(periods: u64, missed: u64) -> String {
    format!("{COURSE} {periods:020} {missed:020}\n")
}

/// Reads the course of a text: periods and how many were missed. It may be just being written.
fn course_of(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix(COURSE))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse);
    let (periods, missed) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let whole = text.len() == text.find(COURSE)? + course(periods, missed).len();
    (whole && missed <= periods).then_some((periods, missed))
}

/// Reads a text: when the process began, and what is reserved. `None` for anything else.
pub(super) fn parse(text: &str) -> Option<(u64, ReservationClaim)> {
    let mut lines = text.lines();
    if lines.next()? != VERSION {
        return None;
    }
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let started = field("started")?.parse().ok()?;
    let cpus = field("cpus")?.parse().ok()?;
    let mut time = |name: &str| field(name)?.parse::<u64>().ok().filter(|ns| *ns > 0);
    let (budget_ns, deadline_ns, period_ns) =
        (time("budget_ns")?, time("deadline_ns")?, time("period_ns")?);
    let priority = u32::from(priority_for(deadline_ns));
    Some((started, ReservationClaim { cpus, budget_ns, deadline_ns, period_ns, priority }))
}

/// The reservation of another process that an entry describes. One without a holder is removed if permitted.
pub(super) fn held(path: &Path) -> Option<RegisteredReservation> {
    let file = strange_file::open(path, false).ok()?;
    let metadata = file.metadata().ok()?;
    let pid = match lock::process_that_holds(&file).ok()? {
        LockHolder::None => {
            // One that stays does not count.
            let _ = sweep(path);
            return None;
        }
        LockHolder::Process(pid) => Some(pid),
        LockHolder::Unseen => None,
    };
    let mut text = String::new();
    (&file).take(LONGEST).read_to_string(&mut text).ok()?;
    // A second name would be in another folder, to which the file belongs.
    let (started, share) = parse(&text).filter(|_| metadata.nlink() == 1)?;
    let uid = metadata.uid();
    if pid.is_some_and(|pid| !is_its_maker(pid, started, uid)) {
        return None;
    }
    let command = pid.map(command_of).unwrap_or_default();
    let course = course_of(&text);
    Some(RegisteredReservation { share, holder: Holder::Process { pid, command, uid }, course })
}

/// Whether the process that holds an entry, by the kernel's word, can be the one that made it: it began when the entry
/// says, and has the entry's owner among its user IDs, or that is root, who may have made it before it became
/// another user. One that is not shown (`hidepid`) is believed for its lock.
fn is_its_maker(pid: u32, started: u64, uid: u32) -> bool {
    let Ok(life) = TaskIdentity::of_task(pid) else { return true };
    let status = members::text(&format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let mut uids = line.unwrap_or_default().split_ascii_whitespace();
    life.started == started && (uid == 0 || uids.any(|own| own.parse() == Ok(uid)))
}

/// An entry whose process is gone, and whether it could be removed.
#[derive(Debug)]
pub(crate) struct StaleClaim {
    pub(crate) path: PathBuf,
    pub(crate) uid: u32,
    pub(crate) removed: io::Result<()>,
}

/// Removes an entry without a holder; `None` if it has one, or is gone.
pub(super) fn stale(path: &Path) -> Option<StaleClaim> {
    let file = strange_file::open(path, false).ok()?;
    let uid = file.metadata().ok()?.uid();
    let is_held = lock::process_that_holds(&file).ok()? != LockHolder::None;
    let removed = if is_held { Ok(false) } else { sweep(path) };
    let path = path.to_owned();
    (!matches!(removed, Ok(false))).then(|| StaleClaim { path, uid, removed: removed.map(drop) })
}

/// Removes an entry without a holder. It is locked while it is removed, so that no other process takes it meanwhile.
/// Whether it was there, and without one.
fn sweep(path: &Path) -> io::Result<bool> {
    let file = strange_file::open(path, true)?;
    if !lock::try_for_process(&file)? || file.metadata()?.nlink() == 0 {
        return Ok(false);
    }
    fs::remove_file(path).map(|()| true)
}

pub(super) fn command_of(pid: u32) -> String {
    const MOST: usize = 60;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
    let name = || members::text(&format!("/proc/{pid}/comm")).unwrap_or_default();
    let whole = if line.is_empty() { name().trim().to_owned() } else { line };
    let short: String = whole.chars().take(MOST).collect();
    let more = if short.len() < whole.len() { "..." } else { "" };
    format!("{}{more}", ownership::for_people(&short))
}
