//! Trying devices and sources out before anything precise rests on them.
//!
//! *Hrtimers and Beyond*, section 8: "*hrtimers* validates the usability of the registered clock
//! sources and clock event sources before switching to high resolution mode."

use hourglass_time::Span;

use super::clock_event::{DeviceWaitEnd, Mode};
use super::device::EventDevice;
use super::error::{DeviceError, ModeError, ProgramError};

/// How a device is tried, and what it must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePlan {
    /// Events that are programmed, at least 1.
    pub events: u32,
    /// How far ahead the first one is; the others are up to twice as far.
    pub ahead: Span,
    /// How late an event may be.
    pub late: Span,
    /// How many events may be later than that all the same: a preempted thread is not the device's
    /// fault.
    pub excused: u32,
    /// After how long an event is lost.
    pub lost: Span,
}

impl DevicePlan {
    /// Eight events in 2.4 ms. A millisecond late is what only a tick-bound device is (the kernel's
    /// own are 20 to 60 us late on a virtual machine, timers.md section 2.3), and three may be
    /// preempted.
    pub const DEFAULT: DevicePlan = DevicePlan {
        events: 8,
        ahead: Span::from_micros(200),
        late: Span::from_micros(1_000),
        excused: 3,
        lost: Span::from_millis(500),
    };
}

/// What a device did when it was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationReport {
    /// Events that were received.
    pub events: u32,
    /// Smallest latency, ns.
    pub least_late_ns: u64,
    /// Largest latency, ns.
    pub most_late_ns: u64,
    /// Events later than the plan allows, and excused.
    pub excused: u32,
}

/// Why a device is not fit for high resolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDevice {
    /// It belongs to the system, not to one engine.
    #[error("{0} serves the whole system: high resolution needs a device of the engine's own")]
    Global(&'static str),
    /// It only ticks.
    #[error("{0} only ticks: high resolution needs a one-shot device")]
    NoOneShot(&'static str),
    /// It fired before its time.
    #[error("{device} fired before its time, in event {event}")]
    Early {
        /// Name of the device.
        device: &'static str,
        /// Number of the event, from 0.
        event: u32,
    },
    /// It was late too often.
    #[error("{device} was up to {worst_ns} ns late, in {events} events more than {allowed} late")]
    Late {
        /// Name of the device.
        device: &'static str,
        /// Largest latency, ns.
        worst_ns: u64,
        /// In how many events it was too late.
        events: u32,
        /// How late it might have been.
        allowed: Span,
    },
    /// An event never came.
    #[error("{device} never fired, in event {event}")]
    Lost {
        /// Name of the device.
        device: &'static str,
        /// Number of the event, from 0.
        event: u32,
    },
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl InvalidDevice {
    /// Whether it is broken, and fit for nothing. Otherwise it may tick all the same.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        match self {
            InvalidDevice::Early { .. } | InvalidDevice::Lost { .. } | InvalidDevice::Device(_) => {
                true
            }
            InvalidDevice::Global(_) | InvalidDevice::NoOneShot(_) | InvalidDevice::Late { .. } => {
                false
            }
        }
    }
}

/// Programs the attached device a few times and looks at what comes. Kicks and signals do not end
/// it; a kick in the meantime is kicked again at the end. Leaves the device shut down.
///
/// # Errors
/// [`InvalidDevice`]: why it is not fit.
pub fn validate_device(
    device: &mut EventDevice,
    plan: &DevicePlan,
) -> Result<ValidationReport, InvalidDevice> {
    let facts = *device.facts();
    if !facts.per_cpu {
        return Err(InvalidDevice::Global(facts.name));
    }
    let mut kicked = false;
    let result = run_trial(device, plan, &mut kicked);
    let shut = device.set_mode(Mode::Shutdown);
    if kicked {
        device.kick().kick();
    }
    let validated = result?;
    shut.map_err(|error| from_mode(facts.name, error))?;
    Ok(validated)
}

fn run_trial(
    device: &mut EventDevice,
    plan: &DevicePlan,
    kicked: &mut bool,
) -> Result<ValidationReport, InvalidDevice> {
    let name = device.facts().name;
    device.set_mode(Mode::OneShot).map_err(|error| from_mode(name, error))?;
    let mut seen =
        ValidationReport { events: 0, least_late_ns: u64::MAX, most_late_ns: 0, excused: 0 };
    let count = plan.events.max(1);
    for event in 0..count {
        let late_ns = one_event(device, plan, event, kicked)?;
        seen.events += 1;
        seen.least_late_ns = seen.least_late_ns.min(late_ns);
        seen.most_late_ns = seen.most_late_ns.max(late_ns);
        seen.excused += u32::from(late_ns > plan.late.nanos_or_zero());
    }
    // Some event must have been in time, whatever is excused.
    if seen.excused > plan.excused.min(count - 1) {
        return Err(InvalidDevice::Late {
            device: name,
            worst_ns: seen.most_late_ns,
            events: seen.excused,
            allowed: plan.late,
        });
    }
    Ok(seen)
}

/// Programs one event; how late it came, ns.
fn one_event(
    device: &mut EventDevice,
    plan: &DevicePlan,
    event: u32,
    kicked: &mut bool,
) -> Result<u64, InvalidDevice> {
    let name = device.facts().name;
    let early = device.counts().early;
    // Different distances, so that a device that merely ticks is found out.
    let ahead_ns = plan.ahead.nanos_or_zero().max(device.facts().min_delta_ns);
    let more_ns = ahead_ns / u64::from(plan.events.max(1)) * u64::from(event);
    let at_ns = loop {
        let at_ns = device.now_ns().saturating_add(ahead_ns).saturating_add(more_ns);
        match device.set_next_event(Some(at_ns)) {
            Ok(_) => break at_ns,
            // Preempted between reading the clock and programming.
            Err(ProgramError::Past { .. }) => {}
            Err(ProgramError::NotOneShot(name)) => return Err(InvalidDevice::NoOneShot(name)),
            Err(ProgramError::Device(error)) => return Err(error.into()),
        }
    };
    let limit_ns = at_ns.saturating_add(plan.lost.nanos_or_zero());
    loop {
        match device.wait(Some(limit_ns))? {
            DeviceWaitEnd::Event { .. } => break,
            DeviceWaitEnd::Limit => return Err(InvalidDevice::Lost { device: name, event }),
            DeviceWaitEnd::Kicked => *kicked = true,
            DeviceWaitEnd::Signal => {}
        }
    }
    if device.counts().early > early {
        return Err(InvalidDevice::Early { device: name, event });
    }
    Ok(device.now_ns().saturating_sub(at_ns))
}

pub(super) fn from_mode(name: &'static str, error: ModeError) -> InvalidDevice {
    match error {
        ModeError::Device(error) => InvalidDevice::Device(error),
        _ => InvalidDevice::NoOneShot(name),
    }
}

/// How a clock source is tried, and what it must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePlan {
    /// How often it is read, at least 2.
    pub reads: u32,
    /// The coarsest step that it may have: the smallest difference seen between two reads.
    pub step: Span,
}

impl SourcePlan {
    /// 10,000 reads, 0.3 ms at most with the clocks of today; a step of a microsecond, where a
    /// tick-bound clock has one of milliseconds.
    pub const DEFAULT: SourcePlan = SourcePlan { reads: 10_000, step: Span::from_micros(1) };
}

/// Why a clock source is not fit for high resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSource {
    /// It went back.
    #[error("the clock source went back by {by_ns} ns")]
    Backwards {
        /// Length of the step back, ns.
        by_ns: u64,
    },
    /// It did not advance in all those reads.
    #[error("the clock source did not advance in {reads} reads: it has stopped, or is too coarse")]
    Still {
        /// Number of reads.
        reads: u32,
    },
    /// Its step is too coarse.
    #[error("the clock source advances in steps of {step_ns} ns, {allowed} are allowed")]
    Coarse {
        /// Smallest step of the source, ns.
        step_ns: u64,
        /// Largest step that is allowed.
        allowed: Span,
    },
}

/// Reads a clock source, ns, many times; the smallest step seen, ns.
///
/// # Errors
/// [`InvalidSource`]: why it is not fit.
pub fn validate_source(
    plan: &SourcePlan,
    mut read_ns: impl FnMut() -> u64,
) -> Result<u64, InvalidSource> {
    let mut last_ns = read_ns();
    let mut step_ns = None;
    for _ in 1..plan.reads.max(2) {
        let now_ns = read_ns();
        match now_ns.checked_sub(last_ns) {
            None => return Err(InvalidSource::Backwards { by_ns: last_ns - now_ns }),
            Some(0) => {}
            Some(by_ns) => step_ns = Some(step_ns.map_or(by_ns, |least: u64| least.min(by_ns))),
        }
        last_ns = now_ns;
    }
    match step_ns {
        None => Err(InvalidSource::Still { reads: plan.reads }),
        Some(step_ns) if step_ns > plan.step.nanos_or_zero() => {
            Err(InvalidSource::Coarse { step_ns, allowed: plan.step })
        }
        Some(step_ns) => Ok(step_ns),
    }
}

#[cfg(test)]
#[path = "tests/validation.rs"]
mod tests;
