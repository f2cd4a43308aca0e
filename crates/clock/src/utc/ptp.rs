//! What linuxptp's ptp4l says of its clock, by management messages on its socket; and where that clock is one of a network card,
//! how far `CLOCK_REALTIME` is from it.

mod bound;
mod management;

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hourglass_sys::adjtimex::{self, Leap};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::ptp::{Comparison, Device};

use self::bound::{Port, PtpClock, PtpState, state_name};
use self::management::{
    CURRENT, Exchange, ManagedClock, ManagementSocket, PARENT, PORT, PORT_HWCLOCK, PORT_PROPERTIES,
    TIME_PROPERTIES, TIME_STATUS, chunk, word,
};
use super::source::{UtcAnswer, UtcDenial, UtcEvidence, UtcSource, evidence};
use crate::timekeeping::UtcStatement;

/// The first one tells all, to root; the second one, of linuxptp 4, has no time stamping, and answers every user.
const PLACES: [&str; 2] = ["var/run/ptp4l", "var/run/ptp4lro"];
const ROOT_USER: u32 = 0;
const WITHIN: Duration = Duration::from_millis(90);
const MAX_PORTS: u16 = 64;
const NAME_LENGTH: usize = 15;

/// The ptp4l that listens where it does by default.
pub struct Ptp4l<'a> {
    /// Of the file system.
    root: &'a str,
    /// Of the sockets.
    owner: u32,
    /// For all questions together.
    within: Duration,
    compare: &'a (dyn Fn(PtpClock) -> Result<Comparison, String> + Sync),
}

impl Ptp4l<'_> {
    /// The one whose socket is where it is by default.
    pub const OWN: Ptp4l<'static> =
        Ptp4l { root: "/", owner: ROOT_USER, within: WITHIN, compare: &compared };

    fn socket(&self) -> Result<(PathBuf, ManagementSocket), String> {
        let places = PLACES.map(|place| Path::new(self.root).join(place));
        let mut refused = None;
        for place in &places {
            match ManagementSocket::open(place, self.owner, self.within) {
                Ok(socket) => return Ok((place.clone(), socket)),
                Err((ErrorKind::NotFound, _)) => {}
                Err((ErrorKind::ConnectionRefused, _)) => {
                    refused = Some("ptp4l has ended".to_owned())
                }
                Err((ErrorKind::PermissionDenied, reason)) => {
                    refused = Some(format!("{reason}: ask as root"));
                }
                Err((_, reason)) => return Err(reason),
            }
        }
        Err(refused.unwrap_or_else(|| {
            format!("no ptp4l at {}, its default uds_address", places[0].display())
        }))
    }

    fn asked(&self, rows: &mut Vec<UtcEvidence>) -> Result<UtcStatement, String> {
        let (place, mut socket) = self.socket()?;
        rows.push(evidence("socket", place.display().to_string(), "neutral"));
        let first = now_ns(ClockId::Monotonic) as u16;
        let (mut asked, ports) = ManagedClock::find(&mut socket, first)?;
        let state = state(&mut asked, ports)?;
        rows.extend(evidence_of(&state));
        let clock = clock(&stamping(&mut asked, &state)?, Path::new(self.root))?;
        rows.push(evidence("clock", name(clock), "neutral"));
        let at_ns = now_ns(ClockId::Monotonic);
        let compared = (self.compare)(clock)?;
        let leap = adjtimex::discipline().map_or(Leap::None, |found| found.leap);
        if let (PtpClock::Device(_), Some(ns)) = (clock, compared.bracket_ns()) {
            rows.push(evidence("comparison", format!("within {ns} ns"), "neutral"));
        }
        state.statement(clock, compared, leap, at_ns)
    }
}

impl UtcSource for Ptp4l<'_> {
    fn name(&self) -> &'static str {
        "ptp4l"
    }

    fn ask(&self) -> UtcAnswer {
        let mut rows = Vec::new();
        let said = self.asked(&mut rows);
        UtcAnswer { said, denies: UtcDenial::Own, evidence: rows }
    }
}

fn name(clock: PtpClock) -> String {
    match clock {
        PtpClock::System => "CLOCK_REALTIME".to_owned(),
        PtpClock::Device(number) => format!("/dev/ptp{number}"),
    }
}

fn evidence_of(state: &PtpState) -> Vec<UtcEvidence> {
    let states: Vec<&str> = state.ports.iter().map(|port| state_name(port.state)).collect();
    let identity = state.grandmaster.map(|byte| format!("{byte:02x}")).concat();
    let quality = format!("class {}, accuracy {:#x}", state.class, state.accuracy);
    let row = |id: &'static str, found| evidence(id, found, "neutral");
    vec![
        row("domain", state.domain.to_string()),
        row("port_state", states.join(", ")),
        row("grandmaster", if state.follows { identity } else { "itself".to_owned() }),
        row("grandmaster_quality", quality),
        row("offset", format!("{} ns", state.offset_ns)),
        row("path_delay", format!("{} ns", state.path_delay / (1 << 16))),
        row("steps_removed", state.steps_removed.to_string()),
        row("utc_offset", format!("{} s, flags {:#04x}", state.utc_offset_s, state.flags)),
    ]
}

/// How a port stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamping {
    /// 0 by software, 1, 3 and 4 by hardware.
    kind: u8,
    interface: Vec<u8>,
    /// N of `/dev/ptpN`, and whether that is a virtual clock; as linuxptp 4 tells.
    device: Option<(i32, bool)>,
}

/// Asks for all data sets of a clock with `count` ports.
fn state(asked: &mut ManagedClock, count: u16) -> Result<PtpState, String> {
    if !(1..=MAX_PORTS).contains(&count) {
        return Err(format!("ptp4l has {count} ports; ask one that has 1 to {MAX_PORTS}"));
    }
    let mut ports = Vec::new();
    for number in 1..=count {
        let set = asked.require(&PORT, Some(number))?;
        let [state, log_sync_interval, delay_mechanism] = [10, 22, 23].map(|at| set[at]);
        let log_sync_interval = log_sync_interval.cast_signed();
        ports.push(Port { state, log_sync_interval, delay_mechanism });
    }
    let current = asked.require(&CURRENT, None)?;
    let parent = asked.require(&PARENT, None)?;
    let time = asked.require(&TIME_PROPERTIES, None)?;
    // Offset and time of a Sync come together, and last.
    let status = asked.require(&TIME_STATUS, None)?;
    let grandmaster = chunk(&parent, 24);
    if grandmaster != chunk::<8>(&status, 42) {
        return Err("the grandmaster changes at this moment: ask again".to_owned());
    }
    Ok(PtpState {
        domain: asked.domain,
        ports,
        follows: chunk(&status, 38) != [0; 4],
        grandmaster,
        class: parent[19],
        accuracy: parent[20],
        steps_removed: word(&current, 0),
        path_delay: i64::from_be_bytes(chunk(&current, 10)),
        offset_ns: i64::from_be_bytes(chunk(&status, 0)),
        ingress_ns: i64::from_be_bytes(chunk(&status, 8)),
        utc_offset_s: word(&time, 0).cast_signed(),
        flags: time[2],
    })
}

/// How each port of the clock stamps; `None` where it may not be known.
fn stamping(asked: &mut ManagedClock, state: &PtpState) -> Result<Vec<Option<Stamping>>, String> {
    state.ports_of_clock()?.into_iter().map(|number| stamping_of(asked, number)).collect()
}

fn stamping_of(asked: &mut ManagedClock, number: u16) -> Result<Option<Stamping>, String> {
    let Ok(set) = asked.get(&PORT_PROPERTIES, Some(number))? else { return Ok(None) };
    let interface = set.get(13..13 + usize::from(set[12])).unwrap_or_default().to_vec();
    let device = asked.get(&PORT_HWCLOCK, Some(number))?.ok();
    let device = device.map(|set| (i32::from_be_bytes(chunk(&set, 10)), set[14] & 1 != 0));
    Ok(Some(Stamping { kind: set[11], interface, device }))
}

/// The clock by which all these ports stamp.
fn clock(stamping: &[Option<Stamping>], root: &Path) -> Result<PtpClock, String> {
    let mut clocks = stamping.iter().map(|port| match port {
        Some(port) => clock_of(port, root),
        // Where there is no other clock, stamps are those of the system.
        None if has_no_device(&root.join("sys/class")) => Ok(PtpClock::System),
        None => Err("ptp4l tells root alone which clock it disciplines: ask as root".to_owned()),
    });
    let first = clocks.next().ok_or("no port of ptp4l has a clock")??;
    for clock in clocks {
        if clock? != first {
            return Err(
                "the ports of ptp4l have several clocks: name one with its phc_index".to_owned()
            );
        }
    }
    Ok(first)
}

fn clock_of(port: &Stamping, root: &Path) -> Result<PtpClock, String> {
    match port.kind {
        0 => return Ok(PtpClock::System),
        1 | 3 | 4 => {}
        kind => {
            return Err(format!("ptp4l stamps in a way that is not known ({kind}): use hardware"));
        }
    }
    match port.device {
        Some((_, true)) => {
            return Err(
                "ptp4l disciplines a virtual clock: have it discipline a real one".to_owned()
            );
        }
        Some((number, false)) => {
            let number = u32::try_from(number).map_err(|_| "ptp4l names no PTP clock")?;
            return Ok(PtpClock::Device(number));
        }
        None => {}
    }
    // Before linuxptp 4 the interface alone is told.
    let unknown = || {
        String::from(
            "the PTP clock of ptp4l's interface is not found here: use linuxptp 4, which names it",
        )
    };
    let name = str::from_utf8(&port.interface).map_err(|_| unknown())?;
    if name.is_empty()
        || name.len() > NAME_LENGTH
        || name.contains(['/', '\0'])
        || name.starts_with('.')
    {
        return Err(unknown());
    }
    let folder = root.join("sys/class/net").join(name).join("device/ptp");
    let entries = folder.read_dir().map_err(|_| unknown())?.flatten();
    let number = |entry: std::fs::DirEntry| {
        entry.file_name().to_str()?.strip_prefix("ptp")?.parse::<u32>().ok()
    };
    let numbers: Vec<u32> = entries.filter_map(number).collect();
    let [number] = numbers[..] else { return Err(unknown()) };
    Ok(PtpClock::Device(number))
}

fn has_no_device(classes: &Path) -> bool {
    match classes.join("ptp").read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound && classes.is_dir(),
    }
}

/// Reads the clock and `CLOCK_REALTIME` together.
fn compared(clock: PtpClock) -> Result<Comparison, String> {
    let PtpClock::Device(number) = clock else {
        let ns = now_ns(ClockId::Realtime);
        return Ok(Comparison { before_ns: ns, device_ns: ns, after_ns: ns });
    };
    let path = PathBuf::from(format!("/dev/ptp{number}"));
    let device = Device::open(&path).and_then(|device| device.compare());
    device
        .map_err(|error| format!("{} cannot be read: {error}: {}", path.display(), remedy(&error)))
}

fn remedy(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "ask as root",
        ErrorKind::NotFound => "ask where ptp4l runs, or give this container the device",
        ErrorKind::WouldBlock => "ask again, the clock was set meanwhile",
        _ => "look whether the card is still there, and start ptp4l anew",
    }
}

/// Messages out of bytes: a length each, and what it says; then the moment of the comparison.
struct Strange<'a>(&'a [u8]);

impl Exchange for Strange<'_> {
    fn send(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> Result<Option<Vec<u8>>, String> {
        let Some((length, rest)) = self.0.split_first() else { return Ok(None) };
        let (message, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        self.0 = rest;
        Ok(Some(message.to_vec()))
    }
}

/// Takes bytes as the answers of a ptp4l to questions numbered from 0.
pub(super) fn strange(bytes: &[u8]) -> Result<UtcStatement, String> {
    let mut messages = Strange(bytes);
    let (mut asked, ports) = ManagedClock::find(&mut messages, 0)?;
    let state = state(&mut asked, ports)?;
    let clock = clock(&stamping(&mut asked, &state)?, Path::new("/nonexistent"))?;
    let [before_ns, device_ns, after_ns] =
        [0, 8, 16].map(|at| u64::from_be_bytes(chunk(messages.0, at)));
    state.statement(clock, Comparison { before_ns, device_ns, after_ns }, Leap::None, 0)
}

#[cfg(test)]
#[path = "tests/ptp.rs"]
mod tests;
