//! What chronyd says of its tracking and of the source that it follows, by its command protocol, version 6: a datagram to its
//! port and one back for each question.
//!
//! Its tracking alone is no bound, although its manual calls it one: the offset is estimated from many measurements, and root
//! delay and dispersion are of the best of them. Where delays differ by direction, or a server's error changes within what it
//! admits, the estimate is outside, and so is its frequency, by which chronyd carries its measurements on, also while it
//! slews by as much the other way. The latest measurement
//! bounds UTC by itself, and from then on what the clock's oscillator can be off by; both have to hold here.

mod message;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use hourglass_sys::adjtimex;
use hourglass_sys::clock::{ClockId, now_ns};

use message::{
    Command, IPV4, LENGTH, NO_FAMILY, SOURCE, SOURCE_COUNT, TRACKING, address, amount, checked,
    long, positive, request, signed, word,
};

use super::command_socket::{CommandSocket, Unasked};
use super::oscillator::{Moment, Oscillator};
use super::source::{UtcAnswer, UtcDenial, UtcSource, evidence};
use crate::timekeeping::{UtcStatement, growth_ns, is_leap_near, states_bound};

const PORT: u16 = 323;
const PLACE: &str = "/run/chrony/chronyd.sock";
const TIMEOUT: Duration = Duration::from_millis(100);
/// None at all would be for ever.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// How often all is asked again that was of two updates of the clock.
const TRIES: u32 = 4;
/// More than anybody configures.
const MOST_SOURCES: u32 = 256;
/// chronyd's word for a source without a measurement.
const NEVER: u32 = u32::MAX;
/// chronyd's `maxclockerror`, unless it is configured otherwise.
const MAX_CLOCK_ERROR_PPB: u64 = 1_000;
/// Who is off by 30 years knows nothing.
const FARTHEST_NS: u64 = 1_000_000_000_000_000_000;
/// The address that a clock without a source names as its reference (`local`).
const LOCAL: u32 = 0x7f7f_0101;
/// Of its leap status.
const UNSYNCHRONISED: u16 = 3;
/// `NTP_PHASE_LIMIT` of the kernel: its bound after every step, until a synchroniser states another.
const SINCE_STEP_US: u64 = 16_000_000;

/// Of the kernel's clock (`USER_HZ` = 100), in us; a us more is 100 ppm, in 2^-16 ppm.
const TICK_US: i64 = 10_000;
const FREQUENCY_OF_TICK: i64 = 100 << 16;
/// 500 ppm, as of the kernel's own bound.
const FASTEST: u64 = 500 << 16;

const BUSY: &str = "it measures faster than it can be asked";
const FAST: &str = "the clock is slewed by more than 500 ppm, by an estimate that may be wrong";
/// Else a step, a leap second or a slew since its last measurement would go unseen.
pub(super) const SANDBOXED: &str =
    "the kernel does not say how it keeps its clock: allow adjtimex in this sandbox";
const ANOTHERS: &str = "the kernel's maxerror began at 0, which chronyd does not state: another program set it since chronyd last \
     corrected the clock, and with it maybe the clock";
const OFFSET: &str = "another program slews the clock by ADJ_OFFSET";
const STEPPED: &str = "the clock was set, by another program, since chronyd last corrected it, or chronyd does not keep it (-x)";
/// What it states to the kernel leaves out the correction that is still to come, too.
const ANNOUNCED: &str = "a leap second is announced, which its report does not bound";
const UNTOLD: &str = "a leap second comes of which it does not tell the kernel (leapsecmode)";

/// What chronyd states to the kernel is cut off to microseconds.
const ROUNDED_NS: u64 = 2_000;
/// How far ahead of the clock the time of its last update may be beside the correction.
const AHEAD_NS: u64 = 100_000_000;

/// How near midnight a leap second may be: the kernel vouches for less than 16 s, and 23:59:59 may be left out.
const NEAR_NS: u64 = 20_000_000_000;

/// The chronyd that listens on a port of this machine. One that is asked again and again learns how fast the clock's
/// oscillator runs, and has narrower bounds.
#[derive(Debug)]
pub struct Chronyd {
    port: u16,
    place: PathBuf,
    learnt: RefCell<Learnt>,
}

#[derive(Debug, Default)]
struct Learnt {
    oscillator: Oscillator,
    /// When the clock was last updated, and the age of the latest measurement.
    last: (u64, u32),
}

impl Learnt {
    fn learn(&mut self, tracking: &Tracking, now: Moment, error_ns: u64) {
        let Some(measured) = tracking.measured else { return };
        let is_new = tracking.updated_ns != self.last.0 || measured.age_s < self.last.1;
        self.last = (tracking.updated_ns, measured.age_s);
        if is_new {
            self.oscillator.learn(now, error_ns);
        }
    }
}

impl Chronyd {
    /// The one that listens where it does by default.
    #[must_use]
    pub fn own() -> Chronyd {
        Chronyd::at(PORT, PLACE)
    }

    /// One that listens on this UDP port of this machine, or else at this socket in the file system.
    #[must_use]
    pub fn at(port: u16, place: impl Into<PathBuf>) -> Chronyd {
        Chronyd { port, place: place.into(), learnt: RefCell::default() }
    }

    /// Of the source.
    pub const NAME: &str = "chronyd";
    /// Asks through the port; where nobody listens there, through the socket in the file system.
    fn through<T>(&self, ask: impl Fn(&CommandSocket) -> Result<T, Unasked>) -> Result<T, Unasked> {
        match ask(&CommandSocket::port(self.port)?) {
            Err(Unasked::Nobody) => ask(&CommandSocket::file(&self.place)?),
            answer => answer,
        }
    }

    /// Whether it tells anything at all.
    pub(super) fn answers(&self) -> bool {
        let now_ns = now_ns(ClockId::Monotonic);
        self.through(|socket| reply(socket, TRACKING, 0, now_ns)).is_ok()
    }

    fn asked(socket: &CommandSocket) -> Result<(Tracking, u64), Unasked> {
        let begin_ns = now_ns(ClockId::Monotonic);
        for _ in 0..TRIES {
            let at_ns = now_ns(ClockId::Monotonic);
            let mut tracking = Tracking::of(&reply(socket, TRACKING, 0, begin_ns)?)?;
            if tracking.leap != UNSYNCHRONISED && !matches!(tracking.reference, 0 | LOCAL) {
                tracking.measured = measured(socket, &tracking, begin_ns)?;
                let after = Tracking::of(&reply(socket, TRACKING, 0, begin_ns)?)?;
                if (after.updated_ns, after.reference) != (tracking.updated_ns, tracking.reference)
                {
                    continue;
                }
            }
            return Ok((tracking, at_ns));
        }
        Err(BUSY.into())
    }

    /// Why it was not asked, and what that speaks against.
    fn refusal(&self, why: Unasked) -> (String, UtcDenial) {
        match why {
            Unasked::Nobody => {
                (format!("no chronyd on UDP port {}", self.port), UtcDenial::Nothing)
            }
            Unasked::Away(reason) => (reason, UtcDenial::Nothing),
            Unasked::Strange(reason) => (reason, UtcDenial::Kernel),
        }
    }

    /// `kernel` asks for the kernel's state of the clock, which may speak against whatever it answers.
    fn answer(&self, kernel: impl FnOnce() -> Option<adjtimex::Discipline>) -> UtcAnswer {
        let (tracking, at_ns) = match self.through(Chronyd::asked) {
            Ok(found) => found,
            Err(why) => {
                let (reason, denies) = self.refusal(why);
                return UtcAnswer { said: Err(reason), denies, evidence: Vec::new() };
            }
        };
        let now = Moment::read();
        let mut learnt = self.learnt.borrow_mut();
        let ns = |id, ns| evidence(id, format!("{ns} ns"), "neutral");
        let evidence = vec![
            evidence("stratum", tracking.stratum.to_string(), "neutral"),
            ns("correction", tracking.correction_ns),
            ns("root_delay", tracking.root_delay_ns),
            ns("root_dispersion", tracking.root_dispersion_ns),
            evidence("skew", format!("{} ppb", tracking.skew_ppb), "neutral"),
        ];
        let last = tracking.measured.map(|last| ns("last_measurement", last.error_ns));
        let evidence = evidence.into_iter().chain(last).collect();
        let said = tracking.statement(at_ns, now.realtime_ns, learnt.oscillator.rate(&now));
        let said = match kernel() {
            Some(kernel) => {
                match tracking
                    .refused(kernel)
                    .or_else(|| untold(&tracking, kernel.leap, now.realtime_ns))
                {
                    Some(why) if said.is_ok() || tracking.is_in_leap() => Err(why.to_owned()),
                    _ => said.and_then(|said| tracking.under(kernel, said, now.realtime_ns)),
                }
            }
            None => Err(SANDBOXED.to_owned()),
        };
        if let Ok(said) = &said {
            let since_ns = now_ns(ClockId::Monotonic).saturating_sub(at_ns);
            learnt.learn(&tracking, now, said.error_ns(since_ns));
        }
        UtcAnswer { said, denies: UtcDenial::Kernel, evidence }
    }
}

/// The reply to a command about the source `index`, if it is one to that; all of a conversation that began at `begin_ns` come
/// within 0.1 s.
fn reply(
    socket: &CommandSocket,
    command: Command,
    index: u32,
    begin_ns: u64,
) -> Result<Vec<u8>, Unasked> {
    let now_ns = now_ns(ClockId::Monotonic);
    let left = TIMEOUT.saturating_sub(Duration::from_nanos(now_ns.saturating_sub(begin_ns)));
    // Its low bits tell a late answer to another question.
    let sequence = now_ns as u32;
    let mut reply = [0; LENGTH + 1];
    let question = request(command, index, sequence);
    let length = socket.exchange(&question, &mut reply, left.max(LEAST_WAIT))?;
    let reply = reply.get(..length).unwrap_or_default();
    checked(reply, command, sequence)?;
    Ok(reply.to_vec())
}

/// The latest measurement of the source that it follows.
fn measured(
    socket: &CommandSocket,
    tracking: &Tracking,
    begin_ns: u64,
) -> Result<Option<Measurement>, Unasked> {
    let count = long(&reply(socket, SOURCE_COUNT, 0, begin_ns)?, 28);
    for index in 0..count.min(MOST_SOURCES) {
        let reply = reply(socket, SOURCE, index, begin_ns)?;
        if tracking.is_of(&reply) {
            return Ok(Measurement::of(&reply)?);
        }
    }
    Ok(None)
}

/// Why chronyd's answer does not hold under the kernel's state of the clock. It notices that another program set the clock at its next
/// measurement, and until then believes in a correction that is void: the kernel has no bound by it. And a clock whose
/// rate it changes by so much follows an estimate of the frequency that it cannot judge: of delays that vary by direction.
///
/// `estimate_ns` is chronyd's, which grows by `growth_ppb`.
pub(super) fn refused(
    kernel: adjtimex::Discipline,
    estimate_ns: u64,
    growth_ppb: u64,
) -> Option<&'static str> {
    if kernel.max_error_us >= SINCE_STEP_US {
        return Some(STEPPED);
    }
    // chronyd states its estimate whenever it corrects the clock. A bound that began at 0 after that, and grew by 500 us a second, is
    // another program's, but where the estimate then was less than a microsecond.
    let since_ns = kernel.max_error_us.saturating_mul(2_000_000);
    let least_ns = estimate_ns.saturating_sub(growth_ns(since_ns, growth_ppb));
    if !states_bound(kernel.max_error_us.saturating_mul(1_000)) && least_ns > ROUNDED_NS {
        return Some(ANOTHERS);
    }
    if kernel.slewing {
        return Some(OFFSET);
    }
    (rate(kernel).unsigned_abs() > FASTEST).then_some(FAST)
}

/// By how much the kernel's clock runs faster, 2^-16 ppm.
fn rate(kernel: adjtimex::Discipline) -> i64 {
    let by_tick = kernel.tick_us.saturating_sub(TICK_US).saturating_mul(FREQUENCY_OF_TICK);
    kernel.frequency.saturating_add(by_tick)
}

/// Why neither its answer nor the kernel's holds where it slews a leap second, or steps over it: from midnight until it does, and
/// tells, the clock is off by a second more than the kernel knows.
fn untold(tracking: &Tracking, kernel: adjtimex::Leap, now_ns: u64) -> Option<&'static str> {
    const DAY_NS: u64 = 86_400_000_000_000;
    let of_day = now_ns % DAY_NS;
    let is_near = of_day.min(DAY_NS - of_day) <= NEAR_NS;
    (tracking.is_in_leap() && kernel == adjtimex::Leap::None && is_near).then_some(UNTOLD)
}

impl UtcSource for Chronyd {
    fn name(&self) -> &'static str {
        Chronyd::NAME
    }

    fn ask(&self) -> UtcAnswer {
        self.answer(|| adjtimex::discipline().ok())
    }
}

/// The latest of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measurement {
    /// The offset that was measured, less what the clock was corrected by since, and by how much it may be wrong.
    error_ns: u64,
    age_s: u32,
}

impl Measurement {
    /// Of a reply of the right length; `None` if there was none yet.
    fn of(bytes: &[u8]) -> Result<Option<Measurement>, String> {
        let age_s = long(bytes, 60);
        if age_s == NEVER {
            return Ok(None);
        }
        let offset_ns = amount(bytes, 68, 1_000_000_000)?;
        let error_ns = offset_ns.saturating_add(positive(bytes, 72, 1_000_000_000)?);
        Ok(Some(Measurement { error_ns, age_s }))
    }
}

/// What is used of a report; amounts without sign, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tracking {
    reference: u32,
    /// Of the source, and its family; none of a clock of this machine.
    address: ([u8; 16], u16),
    stratum: u16,
    leap: u16,
    /// When the clock was last updated, ns since 1970.
    updated_ns: u64,
    correction_ns: u64,
    /// How fast the clock would run if it was not corrected.
    frequency_ppb: i64,
    residual_ppb: u64,
    skew_ppb: u64,
    root_delay_ns: u64,
    root_dispersion_ns: u64,
    /// Of the source that it follows; another question.
    measured: Option<Measurement>,
}

impl Tracking {
    /// Reads a reply of the right length.
    fn of(bytes: &[u8]) -> Result<Tracking, String> {
        // Seconds of 32 bits have this in their upper half.
        let high = if long(bytes, 56) == 0x7fff_ffff { 0 } else { u64::from(long(bytes, 56)) };
        let (seconds, ns) = ((high << 32) | u64::from(long(bytes, 60)), u64::from(long(bytes, 64)));
        let updated_ns = seconds.checked_mul(1_000_000_000).and_then(|all| all.checked_add(ns));
        let updated_ns = updated_ns.filter(|_| ns < 1_000_000_000).ok_or("a time out of range")?;
        Ok(Tracking {
            reference: long(bytes, 28),
            address: address(bytes, 32),
            stratum: word(bytes, 52),
            leap: word(bytes, 54),
            updated_ns,
            correction_ns: amount(bytes, 68, 1_000_000_000)?,
            frequency_ppb: signed(bytes, 80, 1_000)?,
            residual_ppb: amount(bytes, 84, 1_000)?,
            skew_ppb: positive(bytes, 88, 1_000)?,
            root_delay_ns: positive(bytes, 92, 1_000_000_000)?,
            root_dispersion_ns: positive(bytes, 96, 1_000_000_000)?,
            measured: None,
        })
    }

    /// Whether a source is the one that it follows; a clock of this machine has its reference for an address there.
    fn is_of(&self, source: &[u8]) -> bool {
        let (found, family) = address(source, 28);
        match self.address.1 {
            NO_FAMILY => family == IPV4 && found[..4] == self.reference.to_be_bytes(),
            _ => (found, family) == self.address,
        }
    }

    fn announces_leap(&self) -> bool {
        matches!(self.leap, 1 | 2)
    }

    /// For 2 s from its moment on it has another word for it, and keeps its reference.
    fn is_in_leap(&self) -> bool {
        self.announces_leap() || (self.leap == UNSYNCHRONISED && self.reference != 0)
    }

    /// The bound that follows, asked for at `at_ns` and answered before `now_ns` of the wall clock, of an oscillator that runs
    /// this much too fast, ppb.
    fn statement(&self, at_ns: u64, now_ns: u64, rate: [i64; 2]) -> Result<UtcStatement, String> {
        if self.announces_leap() {
            return Err(ANNOUNCED.to_owned());
        }
        if self.leap != 0 || self.stratum == 0 || self.stratum > 15 || self.reference == 0 {
            return Err("it is not synchronised".to_owned());
        }
        if self.reference == LOCAL {
            return Err("it follows the local clock alone".to_owned());
        }
        // Its times are of the clock with what it has still to correct.
        let latest_ns = now_ns.saturating_add(self.correction_ns).saturating_add(AHEAD_NS);
        if self.updated_ns > latest_ns {
            return Err(STEPPED.to_owned());
        }
        let last =
            self.measured.ok_or("the source that it followed is gone, or was not measured")?;
        let rate = if Oscillator::covers(last.age_s) { rate } else { Oscillator::ASSUMED };
        let growth_ppb = self.growth_ppb(rate);
        let estimate_ns = self.estimate_ns();
        // Parts in 10^9 are ns a second; of its age it leaves a part of a second out.
        let since_ns = growth_ppb.saturating_mul(u64::from(last.age_s) + 1);
        let measured_ns = last.error_ns.saturating_add(since_ns);
        let error_ns = self.correction_ns.saturating_add(estimate_ns.max(measured_ns));
        let age_ns = now_ns.saturating_sub(self.updated_ns);
        // What it states to the kernel is of its estimate alone.
        Ok(UtcStatement { error_ns, growth_ppb, at_ns, age_ns, supersedes_kernel: true })
    }

    /// Without the correction.
    fn estimate_ns(&self) -> u64 {
        self.root_dispersion_ns.saturating_add(self.root_delay_ns.div_ceil(2))
    }

    fn refused(&self, kernel: adjtimex::Discipline) -> Option<&'static str> {
        refused(kernel, self.estimate_ns(), self.its_growth_ppb())
    }

    fn its_growth_ppb(&self) -> u64 {
        self.skew_ppb.saturating_add(self.residual_ppb).saturating_add(MAX_CLOCK_ERROR_PPB)
    }

    /// What chronyd's frequency may be off by. Its skew says how well a line fits its measurements: those whose delays change
    /// evenly, more and more on one side, have a line that fits and is wrong.
    fn growth_ppb(&self, rate: [i64; 2]) -> u64 {
        let its_own = self.its_growth_ppb();
        let [by_least, by_most] = rate.map(|rate| rate.abs_diff(self.frequency_ppb));
        its_own.max(by_least).max(by_most)
    }

    /// What is left of it under the kernel's state of the clock at `now_ns` of that.
    fn under(
        &self,
        kernel: adjtimex::Discipline,
        said: UtcStatement,
        now_ns: u64,
    ) -> Result<UtcStatement, String> {
        const SECOND_NS: u64 = 1_000_000_000;
        let said = self.slewed_by(kernel, said);
        let near = is_leap_near(kernel.leap.into(), said.error_ns, now_ns);
        let error_ns = said.error_ns.saturating_add(if near { SECOND_NS } else { 0 });
        if error_ns > FARTHEST_NS {
            return Err("a bound out of range".to_owned());
        }
        Ok(UtcStatement { error_ns, ..said })
    }

    /// Its correction is in the bound, and taken out at this rate. It goes on so beyond the end where chronyd ends before.
    fn slewed_by(&self, kernel: adjtimex::Discipline, said: UtcStatement) -> UtcStatement {
        // Both are rounded.
        const ROUNDED_PPB: u64 = 2;
        let rate_ppb = i128::from(rate(kernel)) * 1_000 / (1 << 16);
        let slew_ppb = (rate_ppb + i128::from(self.frequency_ppb)).unsigned_abs();
        let slew_ppb = u64::try_from(slew_ppb).unwrap_or(u64::MAX);
        let growth_ppb = said.growth_ppb.saturating_add(slew_ppb).saturating_add(ROUNDED_PPB);
        UtcStatement { growth_ppb, ..said }
    }
}

/// Takes bytes as a report, that on a source, the moment, the kernel's frequency and what is known of the oscillator.
pub(super) fn strange(bytes: &[u8]) -> Result<UtcStatement, String> {
    let (report, rest) = bytes.split_at(bytes.len().min(LENGTH));
    let (source, numbers) = rest.split_at(rest.len().min(SOURCE.2));
    checked(report, TRACKING, long(report, 16))?;
    checked(source, SOURCE, long(source, 16))?;
    let tracking = Tracking { measured: Measurement::of(source)?, ..Tracking::of(report)? };
    if !tracking.is_of(source) {
        return Err("of another source".to_owned());
    }
    let mut numbers = numbers.chunks_exact(8).filter_map(<[u8]>::first_chunk);
    let mut number = || numbers.next().copied().map_or(0, i64::from_be_bytes);
    let (now_ns, frequency) = (number().unsigned_abs(), number());
    let said = tracking.statement(0, now_ns, [number(), number()])?;
    let kernel = adjtimex::Discipline {
        synchronised: true,
        max_error_us: 0,
        est_error_us: 0,
        frequency,
        tick_us: TICK_US,
        slewing: false,
        leap: adjtimex::Leap::None,
    };
    tracking.under(kernel, said, now_ns)
}

#[cfg(test)]
#[path = "tests/chronyd.rs"]
mod tests;
