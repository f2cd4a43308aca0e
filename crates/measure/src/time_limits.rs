//! Limits on time at which the kernel ends the process (`RLIMIT_RTTIME`, `RLIMIT_CPU`), during a run.
//!
//! Owns: room below a hard limit, so that SIGXCPU comes before SIGKILL and ends the run with what was measured; which
//! limit that was. Must not: raise a limit beyond what it was.

use hourglass_documents::document::{Premise, Warning};
use hourglass_documents::host::{Bound, Host};
use hourglass_documents::host_limits::{WHOLE_CPU_PPM, micros};
use hourglass_documents::premise::PremiseKind;
use hourglass_machine::advice::ThreadDemand;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::signal::SIGXCPU;
use hourglass_sys::time_limit::{LimitBounds, TimeLimit};
use hourglass_time::Span;
use hourglass_workload::RunMeasurement;

const SECOND_NS: u64 = 1_000_000_000;

/// Room below the hard limit of real-time threads, in microseconds: several ticks of any kernel, and the time in which
/// all threads end; where the limit is short, a quarter of it.
const RT_ROOM_US: u64 = 50_000;

/// The kernel counts CPU time in whole seconds here.
const CPU_ROOM_S: u64 = 1;

/// Soft limits, lowered below the hard ones until this is dropped. Not for two runs of a process at the same time.
#[derive(Debug)]
pub(crate) struct TimeLimitGuard(Vec<LoweredLimit>);

#[derive(Debug)]
struct LoweredLimit {
    limit: TimeLimit,
    before: LimitBounds,
    /// The soft limit during the run.
    soft: u64,
}

impl TimeLimitGuard {
    pub(crate) fn new() -> TimeLimitGuard {
        let lowered = |limit: TimeLimit| {
            let before = limit.bounds().ok()?;
            let soft = lowered(limit, before)?;
            limit.set_soft(Some(soft)).ok()?;
            Some(LoweredLimit { limit, before, soft })
        };
        TimeLimitGuard(
            [TimeLimit::RealTime, TimeLimit::Cpu].into_iter().filter_map(lowered).collect(),
        )
    }

    /// The limit that ended the run. The kernel raises it when it sends SIGXCPU.
    pub(crate) fn reached(self, measured: &RunMeasurement) -> Option<Premise> {
        if measured.interrupted != Some(SIGXCPU) {
            return None;
        }
        let is_raised = |lowered: &&LoweredLimit| {
            let now = lowered.limit.bounds().ok().and_then(|bounds| bounds.soft);
            now.is_some_and(|soft| soft > lowered.soft)
        };
        let LoweredLimit { limit, soft, before } = self.0.iter().find(is_raised)?;
        let at_ns = measured.elapsed.nanos_or_zero();
        let at = match at_ns / 1_000_000 {
            0 => "before it began".to_owned(),
            ms => format!("after {}", micros(ms.saturating_mul(1_000))),
        };
        let kills = match before.hard.filter(|hard| Some(*hard) == before.soft) {
            Some(_) => ", shortly before it would have been killed",
            None => "",
        };
        let (kind, reached) = match limit {
            TimeLimit::RealTime => (
                PremiseKind::RtTimeLimit,
                format!(
                    "a real-time thread ran for {} without a wait (RLIMIT_RTTIME)",
                    micros(*soft)
                ),
            ),
            TimeLimit::Cpu => (
                PremiseKind::CpuTimeLimit,
                format!("the process had used {soft} s of CPU time (RLIMIT_CPU)"),
            ),
        };
        let text = format!("the run was ended {at}{kills}: {reached}");
        Some(kind.broken(text, at_ns))
    }
}

impl Drop for TimeLimitGuard {
    fn drop(&mut self) {
        for lowered in &self.0 {
            // Not above the hard limit, so it is not refused.
            let _ = lowered.limit.set_soft(lowered.before.soft);
        }
    }
}

/// The soft limit for a run; `None` if the limit ends nothing.
fn lowered(limit: TimeLimit, LimitBounds { soft, hard }: LimitBounds) -> Option<u64> {
    let below = hard.map(|hard| match limit {
        TimeLimit::RealTime => hard.saturating_sub(RT_ROOM_US.min(hard / 4)),
        // The kernel takes no limit below a second.
        TimeLimit::Cpu => hard.saturating_sub(CPU_ROOM_S).max(1),
    });
    soft.into_iter().chain(below).min()
}

/// Warns of a limit on CPU time that threads of these demands reach within `duration`.
pub(crate) fn cpu_time_warning(
    host: &Host,
    threads: &[ThreadDemand],
    duration: Span,
) -> Option<Warning> {
    let limit = host.process.cpu_time_s?;
    let seconds = |bound: Bound| match bound {
        Bound::At(seconds) => Some(seconds),
        Bound::Unlimited => None,
    };
    let bounds = LimitBounds { soft: seconds(limit.soft), hard: seconds(limit.hard) };
    let end_s = lowered(TimeLimit::Cpu, bounds)?;
    let ppm: u64 = threads.iter().map(ThreadDemand::wanted_ppm).fold(0, u64::saturating_add);
    let wanted = u128::from(duration.nanos_or_zero()) * u128::from(ppm) / u128::from(WHOLE_CPU_PPM);
    let used = u128::from(now_ns(ClockId::ProcessCpu));
    // No room is left below a hard limit of a second.
    let end = if bounds.hard == Some(end_s) { "killed" } else { "ended" };
    (wanted + used >= u128::from(end_s) * u128::from(SECOND_NS)).then(|| {
        PremiseKind::CpuTimeLimit.warning(format!(
            "the run will be {end} when the process has used {end_s} s of CPU time: RLIMIT_CPU is set"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_limit_leaves_room_below_the_hard_one() {
        use TimeLimit::{Cpu, RealTime};
        for (limit, soft, hard, wanted) in [
            (RealTime, None, None, None),
            (RealTime, Some(200_000), Some(200_000), Some(150_000)),
            (RealTime, Some(100_000), Some(100_000), Some(75_000)),
            (RealTime, Some(200_000), Some(1_000_000), Some(200_000)),
            (RealTime, Some(200_000), None, Some(200_000)),
            (RealTime, None, Some(1_000_000), Some(950_000)),
            (Cpu, Some(10), Some(10), Some(9)),
            (Cpu, Some(1), Some(1), Some(1)),
            (Cpu, Some(3), Some(10), Some(3)),
        ] {
            assert_eq!(
                lowered(limit, LimitBounds { soft, hard }),
                wanted,
                "{limit:?} {soft:?} {hard:?}"
            );
        }
    }
}
