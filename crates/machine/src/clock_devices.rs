//! What can tick on this machine: clock devices, the resolutions that they grant, and how their ticks come.
//!
//! *Real-Time Mach Timers*, section 2.2: a resolution is asked for with the skew that is allowed, "since the
//! hardware may not be able to provide" it exactly.
//!
//! Owns: opening each device and waiting for its ticks. Must not: leave one open.

use hourglass_documents::clocks::ClockDeviceFacts;
use hourglass_time::Span;
use hourglass_timer::clock_device::{ClockDevice, ClockDevices, OpenError};
use hourglass_timer::event::{DeviceError, DeviceWaitEnd, Period, ResolutionError};

/// The resolution to ask each device for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDeviceRequest {
    /// The distance of ticks.
    pub resolution: Span,
    /// How far off it may be, either way; `None`: whatever is nearest.
    pub skew: Option<Span>,
}

/// For how long the ticks of one device are watched, ns, and how many ticks at most and at least.
const WATCHED_NS: u64 = 100_000_000;
const MOST_TICKS: u64 = 1_000;
const LEAST_TICKS: u64 = 3;

/// Opens each clock device in turn, asks it for `wanted`, and waits for ticks: about 0.1 s a device, longer for
/// resolutions above 30 ms.
#[must_use]
pub fn clock_devices(wanted: ClockDeviceRequest) -> Vec<ClockDeviceFacts> {
    let devices = ClockDevices::native();
    let facts = devices.list().map(|description| {
        let mut facts = ClockDeviceFacts {
            name: description.name.to_owned(),
            text: description.text.to_owned(),
            asked_ns: wanted.resolution.nanos_or_zero(),
            allowed_skew_ns: wanted.skew.map(Span::nanos_or_zero),
            ..ClockDeviceFacts::default()
        };
        match devices.open::<()>(description.name) {
            Ok(mut device) => {
                facts.available = true;
                if let Err(reason) = validate(&mut device, wanted, &mut facts) {
                    facts.reason = reason;
                }
            }
            // The name stands beside it.
            Err(OpenError::Device { error, .. }) => facts.reason = error.to_string(),
            Err(error) => facts.reason = error.to_string(),
        }
        facts
    });
    facts.collect()
}

fn validate(
    device: &mut ClockDevice,
    wanted: ClockDeviceRequest,
    facts: &mut ClockDeviceFacts,
) -> Result<(), String> {
    facts.shortest_ns = device.resolutions().shortest().map(exact_ns);
    facts.longest_ns = device.resolutions().longest().map(exact_ns);
    let granted = set(device, wanted).map_err(|error| error.to_string())?;
    facts.granted_ns = Some(exact_ns(granted));
    facts.skew_ns = facts.granted_ns.map(|ns| (ns - facts.asked_ns as f64).abs());
    let times = ticks(device, granted).map_err(|error| error.to_string())?;
    tell(&times, granted, facts);
    Ok(())
}

/// The resolution asked for, or the nearest if any skew is allowed.
fn set(device: &mut ClockDevice, wanted: ClockDeviceRequest) -> Result<Period, ResolutionError> {
    let skew = wanted.skew.unwrap_or(Span::ZERO);
    match device.set_resolution(wanted.resolution, skew) {
        Err(ResolutionError::TooFar { desired, nearest, .. }) if wanted.skew.is_none() => {
            device.set_resolution(desired, nearest.skew_from(desired))
        }
        answer => answer,
    }
}

/// When ticks were served, ns, and how many periods had passed by then.
fn ticks(device: &mut ClockDevice, granted: Period) -> Result<Vec<(u64, u64)>, DeviceError> {
    let count = granted.passed(WATCHED_NS).clamp(LEAST_TICKS, MOST_TICKS);
    let mut times = Vec::new();
    let mut passed = 0;
    while (times.len() as u64) <= count {
        match device.wait(None)? {
            DeviceWaitEnd::Event { periods } => {
                passed += periods;
                times.push((device.now_ns(), passed));
            }
            DeviceWaitEnd::Signal => break,
            DeviceWaitEnd::Kicked | DeviceWaitEnd::Limit => {}
        }
    }
    Ok(times)
}

fn tell(times: &[(u64, u64)], granted: Period, facts: &mut ClockDeviceFacts) {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
    facts.ticks = last.1 - first.1;
    if facts.ticks == 0 {
        return;
    }
    facts.mean_ns = Some((last.0 - first.0) as f64 / facts.ticks as f64);
    let intervals = times.windows(2).filter_map(|pair| pair.first().zip(pair.last()));
    let off = |(from, to): (&(u64, u64), &(u64, u64))| {
        (to.0 - from.0).abs_diff(granted.nth_ns(to.1 - from.1))
    };
    let mut off: Vec<u64> = intervals.map(off).collect();
    off.sort_unstable();
    facts.off_p50_ns = off.get(off.len() / 2).copied();
    facts.off_max_ns = off.last().copied();
}

fn exact_ns(period: Period) -> f64 {
    // A power of two as the number of periods: the division loses nothing that a period has.
    const MANY: u64 = 1 << 20;
    period.nth_ns(MANY) as f64 / MANY as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_held_against_the_resolution() {
        let mut facts = ClockDeviceFacts::default();
        let granted = Period::new(1_000, 1).unwrap();
        // 1,000 and 1,400 ns, and two periods in one wake-up that took 2,100 ns.
        tell(&[(5_000, 1), (6_000, 2), (7_400, 3), (9_500, 5)], granted, &mut facts);
        assert_eq!((facts.ticks, facts.mean_ns), (4, Some(1_125.0)));
        assert_eq!((facts.off_p50_ns, facts.off_max_ns), (Some(100), Some(400)));
        assert!((exact_ns(Period::from_hertz(1_024).unwrap()) - 976_562.5).abs() < 1e-3);
    }

    /// The device that every machine has ticks, and refuses what it cannot do with the skew that it takes.
    #[test]
    fn the_baseline_is_there() {
        let wanted = |ns, skew| ClockDeviceRequest { resolution: Span::from_nanos(ns), skew };
        let found = clock_devices(wanted(1_000_000, None));
        let baseline = found.iter().find(|facts| facts.name == ClockDevices::BASELINE).unwrap();
        assert!(baseline.available && baseline.reason.is_empty(), "{baseline:?}");
        assert_eq!((baseline.granted_ns, baseline.skew_ns), (Some(1_000_000.0), Some(0.0)));
        assert!(baseline.ticks >= 100 && baseline.mean_ns.is_some(), "{baseline:?}");
        let found = clock_devices(wanted(1_000, Some(Span::from_nanos(10))));
        let baseline = found.iter().find(|facts| facts.name == ClockDevices::BASELINE).unwrap();
        assert!(
            baseline.granted_ns.is_none() && baseline.reason.contains("50000 ns"),
            "{baseline:?}"
        );
    }
}
