//! When jobs arrive: a burst, then one a period.
//!
//! Owns: the times, each counted from the run's start without rounding. Must not: wait.

use hourglass_tasks::Task;

/// Nominal arrivals, ns from the run's start, saturating at the end of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobArrivals {
    first_ns: u64,
    /// From the first arrival to the 2nd, 3rd, ...
    burst_ns: Vec<u64>,
    period_ns: u64,
}

impl JobArrivals {
    /// Those of a task, as dense as it allows.
    pub(super) fn of(task: &Task) -> JobArrivals {
        JobArrivals {
            first_ns: task.offset.map_or(0, |offset| offset.nanos_or_zero()),
            burst_ns: task.arrivals.iter().map(|time| time.nanos_or_zero()).collect(),
            period_ns: task.period.nanos_or_zero().max(1),
        }
    }

    /// The arrival of a job; the first is number 0.
    pub(super) fn at(&self, job: u64) -> u64 {
        let burst = self.burst_ns.len() as u64;
        let since_first = match usize::try_from(job).unwrap_or(usize::MAX) {
            0 => 0,
            n if n <= self.burst_ns.len() => self.burst_ns.get(n - 1).copied().unwrap_or(0),
            _ => {
                let last = self.burst_ns.last().copied().unwrap_or(0);
                last.saturating_add((job - burst).saturating_mul(self.period_ns))
            }
        };
        self.first_ns.saturating_add(since_first)
    }

    /// How many jobs arrive by `ns`, that moment included.
    pub(super) fn until(&self, ns: u64) -> u64 {
        let Some(since) = ns.checked_sub(self.first_ns) else { return 0 };
        let in_burst = self.burst_ns.iter().take_while(|time| **time <= since).count();
        if in_burst < self.burst_ns.len() {
            return 1 + in_burst as u64;
        }
        let last = self.burst_ns.last().copied().unwrap_or(0);
        1 + in_burst as u64 + since.saturating_sub(last) / self.period_ns
    }
}

#[cfg(test)]
mod tests {
    use hourglass_time::Span;

    use super::*;

    fn arrivals(offset: i64, burst: &[i64], period: i64) -> JobArrivals {
        let task = Task {
            offset: Some(Span::from_nanos(offset)),
            arrivals: burst.iter().map(|ns| Span::from_nanos(*ns)).collect(),
            ..Task::new("t", Span::from_nanos(1), Span::from_nanos(period))
        };
        JobArrivals::of(&task)
    }

    #[test]
    fn a_burst_and_then_a_period_apart() {
        let burst = arrivals(5, &[0, 3], 10);
        assert_eq!([0, 1, 2, 3, 4].map(|job| burst.at(job)), [5, 5, 8, 18, 28]);
        let plain = arrivals(5, &[], 10);
        assert_eq!([0, 1, 2].map(|job| plain.at(job)), [5, 15, 25]);
    }

    /// The count is the inverse of the times.
    #[test]
    fn as_many_as_have_arrived() {
        for all in [arrivals(5, &[0, 3], 10), arrivals(0, &[], 7), arrivals(4, &[2, 9], 3)] {
            for ns in 0..60 {
                let count = (0..).take_while(|job| all.at(*job) <= ns).count() as u64;
                assert_eq!(all.until(ns), count, "{all:?} {ns}");
            }
        }
    }
}
