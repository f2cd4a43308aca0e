//! Trying devices and sources out before anything precise rests on them.
//!
//! *Hrtimers and Beyond*, section 8: "*hrtimers* validates the usability of the registered clock
//! sources and clock event sources before switching to high resolution mode."

use hourglass_time::Span;

use super::clock_event::{DeviceWaitEnd, Mode};
use super::device::EventDevice;
use super::error::{DeviceError, ProgramError};

const EVENTS: u32 = 8;
/// How far ahead the first one is, ns; the others are up to twice as far.
const AHEAD_NS: u64 = 200_000;
/// How late an event may be. A millisecond is what only a tick-bound device is late (the kernel's own
/// are 20 to 60 us late on a virtual machine).
const LATE: Span = Span::from_millis(1);
/// How many events may be later than that all the same: a preempted thread is not the device's fault.
const EXCUSED: u32 = 3;
/// After how long an event is lost, ns.
const LOST_NS: u64 = 500_000_000;

/// What a device did when it was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationReport {
    /// Events that were received.
    pub events: u32,
    /// Smallest latency, ns.
    pub least_late_ns: u64,
    /// Largest latency, ns.
    pub most_late_ns: u64,
    /// Events that were more than a millisecond late, and excused.
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
    #[error("{device} was up to {worst_ns} ns late, in {events} events more than {LATE} late")]
    Late {
        /// Name of the device.
        device: &'static str,
        /// Largest latency, ns.
        worst_ns: u64,
        /// In how many events it was too late.
        events: u32,
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

/// Programs the attached device eight times, in 2.4 ms, and checks what comes: no event early, none
/// lost, and at most three more than a millisecond late. Kicks and signals do not end it; a kick in the
/// meantime is kicked again at the end. Leaves the device shut down.
///
/// # Errors
/// [`InvalidDevice`]: why it is not fit.
pub fn validate_device(device: &mut EventDevice) -> Result<ValidationReport, InvalidDevice> {
    let facts = *device.facts();
    if !facts.per_cpu {
        return Err(InvalidDevice::Global(facts.name));
    }
    if !facts.one_shot {
        return Err(InvalidDevice::NoOneShot(facts.name));
    }
    let mut kicked = false;
    let result = run_trial(device, &mut kicked);
    let shut = device.set_mode(Mode::Shutdown);
    if kicked {
        device.kick().kick();
    }
    let validated = result?;
    shut?;
    Ok(validated)
}

fn run_trial(
    device: &mut EventDevice,
    kicked: &mut bool,
) -> Result<ValidationReport, InvalidDevice> {
    let name = device.facts().name;
    device.set_mode(Mode::OneShot)?;
    let mut seen =
        ValidationReport { events: 0, least_late_ns: u64::MAX, most_late_ns: 0, excused: 0 };
    for event in 0..EVENTS {
        let late_ns = one_event(device, event, kicked)?;
        seen.events += 1;
        seen.least_late_ns = seen.least_late_ns.min(late_ns);
        seen.most_late_ns = seen.most_late_ns.max(late_ns);
        seen.excused += u32::from(late_ns > LATE.nanos_or_zero());
    }
    if seen.excused > EXCUSED {
        return Err(InvalidDevice::Late {
            device: name,
            worst_ns: seen.most_late_ns,
            events: seen.excused,
        });
    }
    Ok(seen)
}

/// Programs one event; how late it came, ns.
fn one_event(
    device: &mut EventDevice,
    event: u32,
    kicked: &mut bool,
) -> Result<u64, InvalidDevice> {
    let name = device.facts().name;
    let early = device.counts().early;
    // Different distances, so that a device that merely ticks is found out.
    let ahead_ns = AHEAD_NS.max(device.facts().min_delta_ns);
    let more_ns = ahead_ns / u64::from(EVENTS) * u64::from(event);
    let at_ns = loop {
        let at_ns = device.now_ns().saturating_add(ahead_ns).saturating_add(more_ns);
        match device.set_next_event(Some(at_ns)) {
            Ok(_) => break at_ns,
            // Preempted between reading the clock and programming.
            Err(ProgramError::Past { .. }) => {}
            Err(ProgramError::Device(error)) => return Err(error.into()),
        }
    };
    let limit_ns = at_ns.saturating_add(LOST_NS);
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

/// How often a source is read: 0.3 ms at most with the clocks of today.
const READS: u32 = 10_000;
/// The coarsest step that it may have, ns, where a tick-bound clock has one of milliseconds.
const STEP_NS: u64 = 1_000;

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
    #[error("the clock source did not advance in {READS} reads: it has stopped, or is too coarse")]
    Still,
    /// Its step is too coarse.
    #[error("the clock source advances in steps of {step_ns} ns, {STEP_NS} ns are allowed")]
    Coarse {
        /// Smallest step of the source, ns.
        step_ns: u64,
    },
}

/// Reads a clock source, ns, ten thousand times; the smallest step seen, ns.
///
/// # Errors
/// [`InvalidSource`]: why it is not fit.
pub fn validate_source(mut read_ns: impl FnMut() -> u64) -> Result<u64, InvalidSource> {
    let mut last_ns = read_ns();
    let mut step_ns = None;
    for _ in 1..READS {
        let now_ns = read_ns();
        match now_ns.checked_sub(last_ns) {
            None => return Err(InvalidSource::Backwards { by_ns: last_ns - now_ns }),
            Some(0) => {}
            Some(by_ns) => step_ns = Some(step_ns.map_or(by_ns, |least: u64| least.min(by_ns))),
        }
        last_ns = now_ns;
    }
    match step_ns {
        None => Err(InvalidSource::Still),
        Some(step_ns) if step_ns > STEP_NS => Err(InvalidSource::Coarse { step_ns }),
        Some(step_ns) => Ok(step_ns),
    }
}

#[cfg(test)]
#[path = "tests/validation.rs"]
mod tests;
