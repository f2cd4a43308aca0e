//! What chronyd says of its tracking, by its command protocol, version 6: a datagram to its port and one back.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use hourglass_sys::adjtimex;
use hourglass_sys::clock::{ClockId, now_ns};

use super::source::{UtcAnswer, UtcSource, UtcStatement, evidence};

const PORT: u16 = 323;
const TIMEOUT: Duration = Duration::from_millis(100);
const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const TRACKING: u16 = 33;
const TRACKING_REPLY: u16 = 5;
/// Of the reply; a request is padded to it.
const LENGTH: usize = 104;
/// chronyd's `maxclockerror`, unless it is configured otherwise.
const MAX_CLOCK_ERROR_PPB: u64 = 1_000;
/// The address that a clock without a source names as its reference (`local`).
const LOCAL: u32 = 0x7f7f_0101;
/// `NTP_PHASE_LIMIT` of the kernel: its bound after every step, until a synchroniser states another.
const SINCE_STEP_US: u64 = 16_000_000;

const STEPPED: &str = "the clock was set, by another program, since chronyd last corrected it, or chronyd does not keep it (-x)";

/// The chronyd that listens on a port of this machine.
pub(super) struct Chronyd(u16);

impl Chronyd {
    pub(super) const OWN: Chronyd = Chronyd(PORT);

    fn asked(&self) -> Result<(Tracking, u64), String> {
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::ConnectionRefused => format!("no chronyd on UDP port {}", self.0),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer within 0.1 s".to_owned(),
            _ => format!("cannot be asked: {error}"),
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        socket.connect((Ipv4Addr::LOCALHOST, self.0)).map_err(failed)?;
        socket.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
        let at_ns = now_ns(ClockId::Monotonic);
        // Its low bits tell a late answer to another question.
        let sequence = at_ns as u32;
        socket.send(&request(sequence)).map_err(failed)?;
        let mut reply = [0; LENGTH + 1];
        let length = socket.recv(&mut reply).map_err(failed)?;
        Ok((Tracking::of(reply.get(..length).unwrap_or_default(), sequence)?, at_ns))
    }

    /// `stepped` says whether the clock was set and chronyd has not stated a bound to the kernel since: it notices such a
    /// step at its next measurement, and until then believes in a correction that is void.
    fn answer(&self, stepped: impl FnOnce() -> bool) -> UtcAnswer {
        let (tracking, at_ns) = match self.asked() {
            Ok(found) => found,
            Err(reason) => return UtcAnswer { said: Err(reason), evidence: Vec::new() },
        };
        let now_ns = now_ns(ClockId::Realtime);
        let ns = |id, ns| evidence(id, format!("{ns} ns"), "neutral");
        let evidence = vec![
            evidence("stratum", tracking.stratum.to_string(), "neutral"),
            ns("correction", tracking.correction_ns),
            ns("root_delay", tracking.root_delay_ns),
            ns("root_dispersion", tracking.root_dispersion_ns),
            evidence("skew", format!("{} ppb", tracking.skew_ppb), "neutral"),
        ];
        let said = tracking.statement(at_ns, now_ns);
        let said = said.and_then(|said| if stepped() { Err(STEPPED.to_owned()) } else { Ok(said) });
        UtcAnswer { said, evidence }
    }
}

impl UtcSource for Chronyd {
    fn name(&self) -> &'static str {
        "chronyd"
    }

    fn ask(&self) -> UtcAnswer {
        self.answer(|| {
            adjtimex::discipline().is_ok_and(|kernel| kernel.max_error_us >= SINCE_STEP_US)
        })
    }
}

fn request(sequence: u32) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..2].copy_from_slice(&[VERSION, REQUEST]);
    bytes[4..6].copy_from_slice(&TRACKING.to_be_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

/// What is used of a report; amounts without sign, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tracking {
    reference: u32,
    stratum: u16,
    leap: u16,
    /// When the clock was last updated, ns since 1970.
    updated_ns: u64,
    correction_ns: u64,
    residual_ppb: u64,
    skew_ppb: u64,
    root_delay_ns: u64,
    root_dispersion_ns: u64,
}

impl Tracking {
    /// Reads the reply to the request `sequence`.
    fn of(bytes: &[u8], sequence: u32) -> Result<Tracking, String> {
        let bytes: &[u8; LENGTH] =
            bytes.try_into().map_err(|_| format!("an answer of {} bytes", bytes.len()))?;
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| (u32::from(word(at)) << 16) | u32::from(word(at + 2));
        let head = (bytes[0], bytes[1], word(4), word(6), word(8), long(16));
        if head != (VERSION, REPLY, TRACKING, TRACKING_REPLY, 0, sequence) {
            return Err("an answer to another question, or a refusal".to_owned());
        }
        // Seconds of 32 bits have this in their upper half.
        let high = if long(56) == 0x7fff_ffff { 0 } else { u64::from(long(56)) };
        let (seconds, ns) = ((high << 32) | u64::from(long(60)), u64::from(long(64)));
        let updated_ns = seconds.checked_mul(1_000_000_000).and_then(|all| all.checked_add(ns));
        let updated_ns = updated_ns.filter(|_| ns < 1_000_000_000).ok_or("a time out of range")?;
        let amount = |at, unit| match scaled(long(at), unit) {
            (_, u64::MAX) => Err("an amount out of range"),
            (_, amount) => Ok(amount),
        };
        let positive = |at, unit| match scaled(long(at), unit) {
            (true, 1..) => Err("a negative length"),
            _ => amount(at, unit),
        };
        Ok(Tracking {
            reference: long(28),
            stratum: word(52),
            leap: word(54),
            updated_ns,
            correction_ns: amount(68, 1_000_000_000)?,
            residual_ppb: amount(84, 1_000)?,
            skew_ppb: positive(88, 1_000)?,
            root_delay_ns: positive(92, 1_000_000_000)?,
            root_dispersion_ns: positive(96, 1_000_000_000)?,
        })
    }

    /// The bound that follows, asked for at `at_ns` and answered before `now_ns` of the wall clock.
    fn statement(&self, at_ns: u64, now_ns: u64) -> Result<UtcStatement, String> {
        if self.leap == 1 || self.leap == 2 {
            return Err("a leap second is announced, which its report does not bound".to_owned());
        }
        if self.leap != 0 || self.stratum == 0 || self.stratum > 15 || self.reference == 0 {
            return Err("it is not synchronised".to_owned());
        }
        if self.reference == LOCAL {
            return Err("it follows the local clock alone".to_owned());
        }
        let error_ns = self
            .correction_ns
            .saturating_add(self.root_dispersion_ns)
            .saturating_add(self.root_delay_ns.div_ceil(2));
        let growth_ppb =
            self.skew_ppb.saturating_add(self.residual_ppb).saturating_add(MAX_CLOCK_ERROR_PPB);
        let age_ns = now_ns.saturating_sub(self.updated_ns);
        Ok(UtcStatement { error_ns, growth_ppb, at_ns, age_ns })
    }
}

/// The sign and the amount times `unit`, rounded up, of chronyd's number: an exponent of 7 bits and a coefficient of
/// 25, both signed; the point stands before the coefficient's 25 bits.
fn scaled(bits: u32, unit: u64) -> (bool, u64) {
    let exponent = bits.cast_signed() >> 25;
    let coefficient = (bits << 7).cast_signed() >> 7;
    let product = u128::from(coefficient.unsigned_abs()) * u128::from(unit);
    let shift = exponent - 25;
    let by = shift.unsigned_abs();
    let amount = if shift >= 0 { product << by } else { product.div_ceil(1 << by) };
    (coefficient < 0, u64::try_from(amount).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "tests/chronyd.rs"]
mod tests;
