//! The page of ClockBound's daemon, versions 1 and 2: a file of shared memory that says how far `CLOCK_REALTIME` may be off.

use std::io::{ErrorKind, Read};
use std::path::Path;

use hourglass_sys::adjtimex::{self, Discipline, Leap};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::strange_file;

use super::chronyd::{self, Chronyd};
use super::source::{UtcAnswer, UtcDenial, UtcSource, evidence};
use crate::timekeeping::{UtcStatement, disruption_marker};

/// Of version 2 and 1.
const PLACES: [&str; 2] = ["var/run/clockbound/shm0", "var/run/clockbound/shm"];
const MAGIC: [u32; 2] = [0x414d_5a4e, 0x4342_0200];
/// Of version 2.
const LONGEST: usize = 80;
const OF_VERSION_1: usize = 72;
/// Reads of a page in the midst of being written.
const TRIES: usize = 16;
/// The daemon looks each second. Of one that has ended nobody knows what chronyd did to the clock since; its own client stops
/// believing in it then, too.
const LONGEST_SILENCE_NS: u64 = 5_000_000_000;
/// No clock drifts that fast.
const ABSURD_PPB: u32 = 1_000_000_000;

/// The daemon of this machine. What it writes is chronyd's estimate, which may be further off than that says where delays differ by
/// direction, a server's error changes or a leap second is slewed: of a chronyd that can be asked, the answer counts instead.
#[derive(Clone, Copy, Debug)]
pub struct ClockBound<'a> {
    /// Of the file system.
    root: &'a str,
    /// Whether the chronyd that it asks can be asked.
    chronyd_answers: fn() -> bool,
}

impl ClockBound<'_> {
    /// The one whose page is where it is by default.
    pub const OWN: ClockBound<'static> =
        ClockBound { root: "/", chronyd_answers: || Chronyd::own().answers() };

    /// Reads the first page that is there.
    fn page(&self) -> Result<BoundPage, String> {
        let places = PLACES.map(|place| Path::new(self.root).join(place));
        let there = places.iter().find(|place| place.exists());
        let place = there.ok_or_else(|| format!("no page {}", places[0].display()))?;
        let failed = |e: std::io::Error| format!("{} cannot be read: {e}", place.display());
        for _ in 0..TRIES {
            let bytes = bytes_of(place).map_err(failed)?;
            // What is read in parts while it is written differs from what is read after that, at least by the number.
            if bytes_of(place).map_err(failed)? == bytes
                && let Some(page) = BoundPage::of(&bytes)?
            {
                return Ok(page);
            }
        }
        Err(format!("{} stays in the midst of being written", place.display()))
    }
}

fn bytes_of(place: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(LONGEST);
    // A link may lead to the page; a FIFO there would be waited for.
    strange_file::open(&place.canonicalize()?, false)?
        .take(LONGEST as u64)
        .read_to_end(&mut bytes)?;
    if bytes.is_empty() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

impl UtcSource for ClockBound<'_> {
    fn name(&self) -> &'static str {
        "clockbound"
    }

    fn ask(&self) -> UtcAnswer {
        let page = match self.page() {
            Ok(page) => page,
            Err(reason) => {
                let (said, denies) = (Err(reason), UtcDenial::Nothing);
                return UtcAnswer { said, denies, evidence: Vec::new() };
            }
        };
        let now_ns = now_ns(ClockId::Monotonic);
        let kernel = adjtimex::discipline().ok();
        let row = |id: &'static str, found: String| evidence(id, found, "neutral");
        let evidence = vec![
            row("version", page.version.to_string()),
            row("status", page.status().to_owned()),
            row("bound", format!("{} ns", page.bound_ns)),
            row("drift", format!("{} ppb", page.drift_ppb)),
        ];
        let said = match (self.chronyd_answers)() {
            true => Err("chronyd answers, of whose estimate alone its page tells".to_owned()),
            false => page.statement(now_ns, kernel, || disruption_marker(Path::new(self.root))),
        };
        UtcAnswer { said, denies: UtcDenial::Own, evidence }
    }
}

/// What is used of a page; times are of `CLOCK_MONOTONIC_COARSE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BoundPage {
    version: u16,
    as_of_ns: u64,
    void_after_ns: u64,
    bound_ns: u64,
    drift_ppb: u32,
    status: i32,
    /// Of the last disruption that the daemon has seen, where it looks for them.
    disruptions: Option<u64>,
}

impl BoundPage {
    /// `None` while it is written.
    fn of(bytes: &[u8]) -> Result<Option<BoundPage>, String> {
        let short = || format!("a page of {} bytes", bytes.len());
        let word = |at| number(bytes, at).map(u32::from_ne_bytes).ok_or_else(short);
        let half = |at| number(bytes, at).map(u16::from_ne_bytes).ok_or_else(short);
        let long = |at| number(bytes, at).map(i64::from_ne_bytes).ok_or_else(short);
        if [word(0)?, word(4)?] != MAGIC {
            return Err("it is no page of ClockBound".to_owned());
        }
        let (size, version, generation) = (word(8)?, half(12)?, half(14)?);
        if generation % 2 == 1 {
            return Ok(None);
        }
        let (length, rest) = match version {
            1 => (OF_VERSION_1, 56),
            2 => (LONGEST, 64),
            _ => return Err(format!("version {version} of the page is not known")),
        };
        if generation == 0 || (size as usize) < length || bytes.len() < length {
            return Err("the page is not filled".to_owned());
        }
        let time =
            |at| Ok::<_, String>(nanos(long(at)?, long(at + 8)?).ok_or("a time out of range")?);
        let (status_at, flag) = if version == 1 { (rest + 8, 0) } else { (rest + 4, bytes[72]) };
        let disruptions = number(bytes, 56).map(u64::from_ne_bytes).filter(|_| flag != 0);
        Ok(Some(BoundPage {
            version,
            as_of_ns: time(16)?,
            void_after_ns: time(32)?,
            bound_ns: u64::try_from(long(48)?).map_err(|_| "a negative bound")?,
            drift_ppb: word(rest)?,
            status: word(status_at)?.cast_signed(),
            disruptions,
        }))
    }

    fn status(&self) -> &'static str {
        match self.status {
            1 => "synchronised",
            2 => "free-running",
            3 => "disrupted",
            _ => "unknown",
        }
    }

    /// The bound that follows at `now_ns`; `disruptions` are those that the machine has counted by now.
    fn statement(
        &self,
        now_ns: u64,
        kernel: Option<Discipline>,
        disruptions: impl FnOnce() -> Option<u64>,
    ) -> Result<UtcStatement, String> {
        let status = self.status();
        if !matches!(self.status, 1 | 2) {
            return Err(format!("its clock is {status}"));
        }
        let kernel = kernel.ok_or(chronyd::SANDBOXED)?;
        if kernel.leap != Leap::None {
            return Err("a leap second is announced, which its page does not bound".to_owned());
        }
        if let Some(why) = chronyd::refused(kernel, self.bound_ns, self.drift_ppb.into()) {
            return Err(why.to_owned());
        }
        if now_ns < self.as_of_ns {
            return Err("its page is of a time that is still to come".to_owned());
        }
        if now_ns >= self.void_after_ns.min(self.as_of_ns.saturating_add(LONGEST_SILENCE_NS)) {
            return Err("its page is too old: the daemon has ended, or hears nothing".to_owned());
        }
        if self.drift_ppb >= ABSURD_PPB {
            return Err(format!("a drift of {} ppb", self.drift_ppb));
        }
        if self.disruptions.is_some() && self.disruptions != disruptions() {
            return Err(String::from(
                "/dev/vmclock0 tells of a disruption that the daemon has not seen, or cannot be read",
            ));
        }
        let (error_ns, growth_ppb) = (self.bound_ns, self.drift_ppb.into());
        let (at_ns, age_ns, supersedes_kernel) = (self.as_of_ns, 0, false);
        Ok(UtcStatement { error_ns, growth_ppb, at_ns, age_ns, supersedes_kernel })
    }
}

/// Takes bytes as a page that is read at `now_ns`; `Ok(None)` while it is written.
pub(super) fn strange(bytes: &[u8], now_ns: u64) -> Result<Option<UtcStatement>, String> {
    let kernel = Some(Discipline {
        synchronised: true,
        max_error_us: 1,
        est_error_us: 0,
        frequency: 0,
        tick_us: 10_000,
        slewing: false,
        leap: Leap::None,
    });
    BoundPage::of(bytes)?.map(|page| page.statement(now_ns, kernel, || Some(0))).transpose()
}

/// The bytes of a number.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn nanos(seconds: i64, ns: i64) -> Option<u64> {
    let whole = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    u64::try_from(whole).ok().filter(|_| (0..1_000_000_000).contains(&ns))
}

#[cfg(test)]
#[path = "tests/clock_bound.rs"]
mod tests;
