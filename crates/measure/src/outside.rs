//! The manifest of a folder about programs that are not ours: the kernel's clock, no calibration, no threads of the run.

use hourglass_clock::timekeeping::{Native, ReferenceClock, Timebase};
use hourglass_documents::host::Host;
use hourglass_documents::manifest::{CalibrationFacts, ClockFacts, Epoch, Manifest};

/// Ticks of `CLOCK_MONOTONIC` in a second: one a nanosecond.
const HERTZ: f64 = 1e9;

/// What began when `CLOCK_MONOTONIC` said `begin_ns`, and took `elapsed_ns`.
pub(crate) fn manifest(
    command_line: Vec<String>,
    host: Host,
    begin_ns: u64,
    elapsed_ns: u64,
) -> Manifest {
    // Read together now, and set back by what passed since the begin.
    let since_ns = Native.reference_ns(ReferenceClock::Monotonic).saturating_sub(begin_ns);
    let realtime_ns = Native.reference_ns(ReferenceClock::Realtime).saturating_sub(since_ns);
    let calibration = CalibrationFacts { frequency_hz: HERTZ, ..CalibrationFacts::default() };
    Manifest {
        hourglass: env!("CARGO_PKG_VERSION").to_owned(),
        command_line,
        epoch: Epoch { monotonic_ns: begin_ns, realtime_ns, ticks: begin_ns },
        duration_ns: elapsed_ns,
        elapsed_ns,
        clock: ClockFacts {
            source: "monotonic".to_owned(),
            trusted: false,
            reason: "the kernel counts by it".to_owned(),
            frequency_hz: HERTZ,
            calibration_start: calibration,
            calibration_end: calibration,
        },
        host,
        ..Manifest::default()
    }
}
