//! Management messages of IEEE 1588 (clause 15) on a socket of linuxptp: a GET goes there, and a RESPONSE comes back.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Error, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{Duration, Instant};

/// Until no time is left.
const TO_THE_END: Duration = Duration::MAX;
/// After which a clock is looked for in other domains.
const FIRST: Duration = Duration::from_millis(20);
/// Of a datagram.
const LONGEST: usize = 1500;
/// A message without the body of its data set.
const HEAD: usize = 54;
const MANAGEMENT: u8 = 0x0d;
const VERSION: u8 = 2;
const GET: u8 = 0;
const RESPONSE: u8 = 2;
const TLV: u16 = 1;
const ERROR_TLV: u16 = 2;
const EVERY_CLOCK: ([u8; 8], u16) = ([0xff; 8], 0xffff);

/// Data sets by their number, name and length.
pub(super) struct DataSet(u16, pub(super) &'static str, usize);

pub(super) const DEFAULT: DataSet = DataSet(0x2000, "DEFAULT_DATA_SET", 20);
pub(super) const CURRENT: DataSet = DataSet(0x2001, "CURRENT_DATA_SET", 18);
pub(super) const PARENT: DataSet = DataSet(0x2002, "PARENT_DATA_SET", 32);
pub(super) const TIME_PROPERTIES: DataSet = DataSet(0x2003, "TIME_PROPERTIES_DATA_SET", 4);
pub(super) const PORT: DataSet = DataSet(0x2004, "PORT_DATA_SET", 26);
pub(super) const TIME_STATUS: DataSet = DataSet(0xc000, "TIME_STATUS_NP", 50);
pub(super) const PORT_PROPERTIES: DataSet = DataSet(0xc004, "PORT_PROPERTIES_NP", 13);
pub(super) const PORT_HWCLOCK: DataSet = DataSet(0xc009, "PORT_HWCLOCK_NP", 15);

/// What carries messages there and back.
pub(super) trait Exchange {
    fn send(&mut self, message: &[u8]) -> Result<(), String>;
    /// The next message; `None` if none came for so long, or no time is left.
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, String>;
}

/// A clock that answers, in its domain.
pub(super) struct ManagedClock<'a> {
    exchange: &'a mut dyn Exchange,
    /// Of the last question. Its answer has it, too.
    sequence: u16,
    /// `transportSpecific`, 1 for IEEE 802.1AS, in the upper half.
    transport: u8,
    pub(super) domain: u8,
    clock: [u8; 8],
}

/// A data set, or the number of the error in its place.
type Answer = Result<Vec<u8>, u16>;

impl<'a> ManagedClock<'a> {
    /// Finds the domain of the clock: it answers no question for another one. Returns how many ports it has, too.
    pub(super) fn find(
        exchange: &'a mut dyn Exchange,
        sequence: u16,
    ) -> Result<(ManagedClock<'a>, u16), String> {
        let ask = |transport, domain| request(transport, domain, sequence, DEFAULT.0, EVERY_CLOCK);
        for transport in [0, 0x10] {
            exchange.send(&ask(transport, 0))?;
        }
        let mut found = matching(exchange, FIRST, sequence, &DEFAULT)?;
        if found.is_none() {
            for domain in 1..=127 {
                exchange.send(&ask(0, domain))?;
            }
            found = matching(exchange, TO_THE_END, sequence, &DEFAULT)?;
        }
        let (head, body) = found.ok_or_else(silence)?;
        let body = body.map_err(|error| refusal(&DEFAULT, error))?;
        let (ports, clock) = (word(&body, 2), chunk(&body, 10));
        let asked =
            ManagedClock { exchange, sequence, transport: head[0] & 0xf0, domain: head[4], clock };
        Ok((asked, ports))
    }

    /// Asks the clock, or one of its ports.
    pub(super) fn get(&mut self, set: &DataSet, port: Option<u16>) -> Result<Answer, String> {
        self.sequence = self.sequence.wrapping_add(1);
        let target = (self.clock, port.unwrap_or(0xffff));
        let message = request(self.transport, self.domain, self.sequence, set.0, target);
        self.exchange.send(&message)?;
        let found = matching(self.exchange, TO_THE_END, self.sequence, set)?;
        found.map(|(_, answer)| answer).ok_or_else(silence)
    }

    /// As [`ManagedClock::get`]; an error in place of the data set is a reason not to vouch.
    pub(super) fn require(&mut self, set: &DataSet, port: Option<u16>) -> Result<Vec<u8>, String> {
        self.get(set, port)?.map_err(|error| refusal(set, error))
    }
}

fn silence() -> String {
    "ptp4l does not answer within 0.1 s: look whether it hangs, or is in another network namespace"
        .to_owned()
}

fn refusal(set: &DataSet, error: u16) -> String {
    let name = match error {
        1 => "response too big",
        2 => "no such ID",
        3 => "wrong length",
        4 => "wrong value",
        6 => "not supported",
        _ => "general error",
    };
    format!("ptp4l does not tell its {}: {name}; update linuxptp", set.1)
}

/// The first answer to the question, with its head; answers to earlier questions are skipped.
fn matching(
    exchange: &mut dyn Exchange,
    wait: Duration,
    sequence: u16,
    set: &DataSet,
) -> Result<Option<([u8; HEAD], Answer)>, String> {
    while let Some(bytes) = exchange.receive(wait)? {
        let short = || format!("ptp4l sent a message of {} bytes", bytes.len());
        let head: [u8; HEAD] = *bytes.first_chunk().ok_or_else(short)?;
        if head[0] & 0x0f != MANAGEMENT || head[1] & 0x0f != VERSION {
            return Err("ptp4l sent what is no management message of PTP version 2".to_owned());
        }
        if word(&head, 30) != sequence {
            continue;
        }
        let (kind, length) = (word(&head, 48), usize::from(word(&head, 50)));
        let tlv = bytes.get(52..52 + length).filter(|_| usize::from(word(&head, 2)) == bytes.len());
        let tlv = tlv.filter(|tlv| tlv.len() >= 2).ok_or_else(short)?;
        let id_at = if kind == ERROR_TLV { 2 } else { 0 };
        if head[46] & 0x0f != RESPONSE || tlv.len() < id_at + 2 || word(tlv, id_at) != set.0 {
            return Err(format!("ptp4l sent another thing than its {}", set.1));
        }
        let answer = match kind {
            TLV if tlv.len() - 2 >= set.2 => Ok(tlv[2..].to_vec()),
            TLV => return Err(format!("ptp4l sent {} bytes as its {}", tlv.len() - 2, set.1)),
            ERROR_TLV => Err(word(tlv, 0)),
            _ => return Err(format!("ptp4l sent a TLV of type {kind}")),
        };
        return Ok(Some((head, answer)));
    }
    Ok(None)
}

/// GET, whose body may be left out.
fn request(
    transport: u8,
    domain: u8,
    sequence: u16,
    id: u16,
    (clock, port): ([u8; 8], u16),
) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &[transport | MANAGEMENT, VERSION]);
    put(2, &(HEAD as u16).to_be_bytes());
    put(4, &[domain]);
    put(30, &sequence.to_be_bytes());
    // The control field of management messages, and no interval.
    put(32, &[4, 0x7f]);
    put(34, &clock);
    put(42, &port.to_be_bytes());
    put(46, &[GET]);
    put(48, &TLV.to_be_bytes());
    put(50, &2u16.to_be_bytes());
    put(52, &id.to_be_bytes());
    bytes
}

/// Bytes of a message whose length was checked; zeros beyond it.
pub(super) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(chunk(bytes, at))
}

/// A socket of ptp4l.
pub(super) struct ManagementSocket {
    socket: UnixDatagram,
    until: Instant,
}

impl ManagementSocket {
    /// Opens the socket `place`, which must be one of the user `owner`, for questions and answers `within` a time.
    ///
    /// # Errors
    /// With an empty reason where there is none; with its kind what connect(2) answers.
    pub(super) fn open(
        place: &Path,
        owner: u32,
        within: Duration,
    ) -> Result<ManagementSocket, (ErrorKind, String)> {
        let shown = place.display();
        let failed = |e: Error| (e.kind(), format!("{shown} cannot be asked: {e}"));
        // The link that newer versions make is looked at, too.
        for found in [place.symlink_metadata(), place.metadata()] {
            let found = found.map_err(failed)?;
            if found.uid() != owner {
                let reason = format!(
                    "{shown} belongs to the user {}, who may be anybody: run ptp4l as root",
                    found.uid()
                );
                return Err((ErrorKind::Other, reason));
            }
        }
        if !place.metadata().map_err(failed)?.file_type().is_socket() {
            return Err((ErrorKind::Other, format!("{shown} is no socket")));
        }
        // An abstract name needs no folder that may be written to, and is gone with the socket.
        let name = format!("hourglass-{:016x}", RandomState::new().build_hasher().finish());
        let own = SocketAddr::from_abstract_name(name).map_err(failed)?;
        let socket = UnixDatagram::bind_addr(&own).map_err(failed)?;
        socket.connect(place).map_err(failed)?;
        // From here on ptp4l alone can send to this socket; what others sent before is dropped.
        socket.set_nonblocking(true).map_err(failed)?;
        while socket.recv(&mut [0; 1]).is_ok() {}
        socket.set_nonblocking(false).map_err(failed)?;
        Ok(ManagementSocket { socket, until: Instant::now() + within })
    }
}

impl Exchange for ManagementSocket {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(silence());
        }
        let sent = self.socket.set_write_timeout(Some(left));
        match sent.and_then(|()| self.socket.send(message)) {
            Ok(_) => Ok(()),
            Err(e) if is_late(&e) => Err(silence()),
            Err(e) => Err(format!("ptp4l cannot be asked: {e}")),
        }
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, String> {
        let left = self.until.saturating_duration_since(Instant::now()).min(wait);
        if left.is_zero() {
            return Ok(None);
        }
        let mut bytes = vec![0; LONGEST];
        let received = self.socket.set_read_timeout(Some(left));
        match received.and_then(|()| self.socket.recv(&mut bytes)) {
            Ok(length) => {
                bytes.truncate(length);
                Ok(Some(bytes))
            }
            Err(e) if is_late(&e) => Ok(None),
            Err(e) => Err(format!("ptp4l cannot be heard: {e}")),
        }
    }
}

fn is_late(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
