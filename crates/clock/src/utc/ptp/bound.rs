//! The bound that follows from what a clock of PTP says of itself.
//!
//! `offsetFromMaster` is how far the clock was off its master at the last Sync, if that took the mean path delay. The
//! bound holds while
//! - the grandmaster is as accurate as it announces (`clockAccuracy`);
//! - the Sync took no less than nothing and no more than twice the mean path delay, so that an asymmetric path hides no more than
//!   all of that delay; transparent clocks on the way correct for what they hold back;
//! - the clock's own rate is within [`OSCILLATOR_PPB`], as the standard wants of every clock, and ptp4l takes the offset out no
//!   faster than within a Sync interval ([`slew_ppb`]);
//! - ptp4l alone sets the clock that it disciplines, and by the UTC offset that it tells.

use hourglass_sys::adjtimex::Leap;
use hourglass_sys::ptp::Comparison;

use crate::timekeeping::{UtcStatement, growth_ns};
use crate::utc::source::KERNEL_GROWTH_PPB;

/// IEEE 1588: a clock's rate is within 0.01 %.
const OSCILLATOR_PPB: u64 = 100_000;
/// Sync intervals that a port states may be those that were configured, not the master's, which are rarely shorter.
const SYNCS_PER_SECOND: u64 = 16;
/// Of the last Sync; less than TAI is from UTC.
const MAX_AGE_NS: u64 = 30_000_000_000;
/// A clock that may be that fast is still being set.
const MAX_RATE_PPB: u64 = 500_000_000;
const SLAVE: u8 = 9;
pub(super) const MASTER: u8 = 6;
/// `DelayMechanism`: the delay to the master is measured, not that to the neighbour.
const END_TO_END: u8 = 1;
/// By how much TAI is ahead of UTC since 2017, s.
const UTC_OFFSET_S: i16 = 37;
const LEAP_61: u8 = 1;
const LEAP_59: u8 = 1 << 1;
const UTC_OFFSET_VALID: u8 = 1 << 2;
const PTP_TIMESCALE: u8 = 1 << 3;
const TIME_TRACEABLE: u8 = 1 << 4;
const UNCERTAIN: u8 = 1 << 6;

/// The clock that ptp4l disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PtpClock {
    /// `CLOCK_REALTIME`, of UTC.
    System,
    /// `/dev/ptpN`, of TAI.
    Device(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) state: u8,
    pub(super) log_sync_interval: i8,
    pub(super) delay_mechanism: u8,
}

/// What is used of a clock's data sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PtpState {
    pub(super) domain: u8,
    pub(super) ports: Vec<Port>,
    /// Whether its grandmaster is another clock (`gmPresent`).
    pub(super) follows: bool,
    pub(super) grandmaster: [u8; 8],
    pub(super) class: u8,
    pub(super) accuracy: u8,
    pub(super) steps_removed: u16,
    /// 2^-16 ns.
    pub(super) path_delay: i64,
    pub(super) offset_ns: i64,
    /// When the last Sync came, by the clock that ptp4l disciplines; 0 without one.
    pub(super) ingress_ns: i64,
    pub(super) utc_offset_s: i16,
    pub(super) flags: u8,
}

impl PtpState {
    /// The port that follows the master; the ports that are masters, where the clock itself is the grandmaster.
    pub(super) fn ports_of_clock(&self) -> Result<Vec<u16>, String> {
        let wanted = if self.follows { SLAVE } else { MASTER };
        let numbered = (1..).zip(&self.ports);
        let found: Vec<u16> =
            numbered.filter(|(_, port)| port.state == wanted).map(|(number, _)| number).collect();
        let is_one = if self.follows { found.len() == 1 } else { !found.is_empty() };
        if is_one {
            return Ok(found);
        }
        let states = self.ports.iter().map(|port| state_name(port.state));
        Err(format!(
            "no port follows a master (port state {}; free_running leaves it at UNCALIBRATED): look into ptp4l's log",
            states.collect::<Vec<_>>().join(", ")
        ))
    }

    /// The bound, where `compared` was read after `at_ns`; of the system clock all three readings are one.
    pub(super) fn statement(
        &self,
        clock: PtpClock,
        compared: Comparison,
        leap: Leap,
        at_ns: u64,
    ) -> Result<UtcStatement, String> {
        self.check_time_properties(clock, leap)?;
        let accuracy_ns = accuracy_ns(self.accuracy)?;
        let (offset_ns, delay_ns, age_ns) =
            if self.follows { self.since_sync(compared.device_ns)? } else { (0, 0, 0) };
        let distance_ns = self.distance_ns(clock, compared)?;
        let rate_ppb = OSCILLATOR_PPB.saturating_add(self.slew_ppb(offset_ns));
        if rate_ppb > MAX_RATE_PPB {
            return Err(format!(
                "its clock is {offset_ns} ns off the master: wait until it is set"
            ));
        }
        // The clock may have been slow when it counted that: x / (1 - r) <= x (1 + 2 r) for r <= 1/2.
        let true_age_ns = age_ns.saturating_add(growth_ns(age_ns, 2 * rate_ppb));
        // Offsets are cut off to whole nanoseconds.
        let parts =
            [offset_ns, delay_ns, accuracy_ns, distance_ns, growth_ns(true_age_ns, rate_ppb), 2];
        let error_ns = parts.into_iter().fold(0, u64::saturating_add);
        let growth_ppb = match clock {
            PtpClock::System => rate_ppb,
            // After the comparison the system clock goes on by itself.
            PtpClock::Device(_) => KERNEL_GROWTH_PPB,
        };
        let (age_ns, supersedes_kernel) = (true_age_ns, false);
        Ok(UtcStatement { error_ns, growth_ppb, at_ns, age_ns, supersedes_kernel })
    }

    fn check_time_properties(&self, clock: PtpClock, leap: Leap) -> Result<(), String> {
        let has = |flag| self.flags & flag != 0;
        let refused = |reason: &str| Err(reason.to_owned());
        if has(LEAP_59 | LEAP_61) || leap != Leap::None {
            return refused("a leap second is announced, which PTP's offset does not bound");
        }
        if has(UNCERTAIN) {
            return refused("the master says that its synchronisation is uncertain");
        }
        if !has(TIME_TRACEABLE) {
            return refused(
                "the grandmaster's time is not traceable to UTC (timeTraceable 0): give it a reference",
            );
        }
        if !self.follows && clock == PtpClock::System {
            // It serves CLOCK_REALTIME, whose time scale is UTC, as one of its own.
            return if has(PTP_TIMESCALE) {
                refused(
                    "it is the grandmaster, and gives CLOCK_REALTIME out as TAI: set ptpTimescale 0",
                )
            } else {
                Ok(())
            };
        }
        if !has(PTP_TIMESCALE) {
            return refused(
                "the grandmaster's time scale is arbitrary (ptpTimescale 0): let it serve TAI",
            );
        }
        if !has(UTC_OFFSET_VALID) {
            return refused(
                "the grandmaster does not know UTC (currentUtcOffsetValid 0): let it announce the offset",
            );
        }
        // linuxptp 3.1 tells the new offset, and goes on by the one that it had when it chose its master.
        if clock == PtpClock::System && self.utc_offset_s != UTC_OFFSET_S {
            return Err(format!(
                "TAI is said to be {} s ahead of UTC, {UTC_OFFSET_S} s since 2017: a ptp4l that ran through a leap second may \
                 be off by it, and does not tell",
                self.utc_offset_s
            ));
        }
        Ok(())
    }

    /// Offset and mean path delay at the last Sync, without sign, and how long ago that was by the clock.
    fn since_sync(&self, device_ns: u64) -> Result<(u64, u64, u64), String> {
        if self.steps_removed != 1 {
            return Err(format!(
                "{} boundary clocks are between it and the grandmaster, whose errors no data set states: follow that itself",
                self.steps_removed.saturating_sub(1)
            ));
        }
        if self.ports.iter().any(|port| port.state == SLAVE && port.delay_mechanism != END_TO_END) {
            return Err(String::from(
                "peer delays do not bound the whole path to the master: set delay_mechanism E2E",
            ));
        }
        let delay = u64::try_from(self.path_delay).map_err(
            |_| "the mean path delay is negative: correct ptp4l's ingressLatency and egressLatency",
        )?;
        let offset_ns = self.offset_ns.unsigned_abs();
        if self.ingress_ns == 0 {
            return Err("no Sync came since the master was chosen or the clock was set".to_owned());
        }
        let ingress_ns = u64::try_from(self.ingress_ns).ok();
        let age_ns = ingress_ns.and_then(|ingress| device_ns.checked_sub(ingress)).ok_or(
            "its last Sync is of a time still to come: the clock was set, or is another one",
        )?;
        if age_ns > MAX_AGE_NS {
            return Err(format!(
                "its last Sync came {} s ago, or the clock was set meanwhile",
                age_ns / 1_000_000_000
            ));
        }
        Ok((offset_ns, delay.div_ceil(1 << 16), age_ns))
    }

    /// How far `CLOCK_REALTIME` was from UTC by the device, at most.
    fn distance_ns(&self, clock: PtpClock, compared: Comparison) -> Result<u64, String> {
        if clock == PtpClock::System {
            return Ok(0);
        }
        let shift_ns = i64::from(self.utc_offset_s) * 1_000_000_000;
        let utc_ns = compared.device_ns.checked_add_signed(-shift_ns);
        let utc_ns = utc_ns.ok_or("the time of the PTP clock is out of range")?;
        Ok(utc_ns.abs_diff(compared.before_ns).max(utc_ns.abs_diff(compared.after_ns)))
    }

    /// How fast ptp4l takes the offset out: ns in a second are parts per billion.
    fn slew_ppb(&self, offset_ns: u64) -> u64 {
        let followers = self.ports.iter().filter(|port| port.state == SLAVE);
        let logs = followers.map(|port| port.log_sync_interval.min(0).unsigned_abs().min(30));
        let rate = logs.map(|log| 1 << log).max().unwrap_or(1);
        offset_ns.saturating_mul(rate.max(SYNCS_PER_SECOND))
    }
}

/// `clockAccuracy`, ns rounded up.
pub(super) fn accuracy_ns(accuracy: u8) -> Result<u64, String> {
    // 1 ps to 2.5 ps, 10, 25, 100, 250 and so on by thousands, in tenths of a picosecond.
    const STEPS: [u64; 6] = [10, 25, 100, 250, 1_000, 2_500];
    match accuracy {
        0x17..=0x2f => {
            let step = usize::from(accuracy - 0x17);
            let tenths = STEPS[step % 6] * 1_000u64.pow((step / 6) as u32);
            Ok(tenths.div_ceil(10_000))
        }
        0x30 => Ok(10_000_000_000),
        _ => Err(format!(
            "the grandmaster does not say how accurate it is (clockAccuracy {accuracy:#x}): have its operator set that"
        )),
    }
}

pub(super) fn state_name(state: u8) -> &'static str {
    const NAMES: [&str; 10] = [
        "unknown",
        "INITIALIZING",
        "FAULTY",
        "DISABLED",
        "LISTENING",
        "PRE_MASTER",
        "MASTER",
        "PASSIVE",
        "UNCALIBRATED",
        "SLAVE",
    ];
    NAMES.get(usize::from(state)).copied().unwrap_or(NAMES[0])
}
