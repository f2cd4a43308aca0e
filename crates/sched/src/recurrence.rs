//! Least fixed points of sums of ceilings: what every response-time equation is solved with.
//!
//! Owns: [`Stream`], [`InterferenceTerms`] and the search, and which releases of a job are to be looked at
//! among tasks of its priority. Must not: know a policy.

use crate::effort::StepLimit;
use crate::exact_fraction::{share_floor, stretched};
use crate::task::Task;
use crate::verdict::Refusal;

/// Jobs of one task as others see them: their work, their distance, and how much earlier than expected they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) cost: u64,
    pub(crate) period: u64,
    pub(crate) jitter: u64,
}

impl Stream {
    pub(crate) fn from_task(task: &Task) -> Stream {
        Stream { cost: task.cost, period: task.period, jitter: task.jitter }
    }

    /// Work of jobs released in a window of length `window`.
    pub(crate) fn work_before(&self, window: u64) -> Option<u64> {
        window.checked_add(self.jitter)?.div_ceil(self.period).checked_mul(self.cost)
    }

    /// Work of jobs released up to and at `instant` of a window.
    pub(crate) fn work_by(&self, instant: u64) -> Option<u64> {
        (instant.checked_add(self.jitter)? / self.period).checked_add(1)?.checked_mul(self.cost)
    }

    /// The share of the processor that it uses, as (part, whole).
    pub(crate) fn share(&self) -> (u64, u64) {
        (self.cost, self.period)
    }
}

/// Offsets of the job with the number `jobs` of a task at which its delay may be longest, ascending: as
/// early as can be, and where others share its priority also at its nominal place and wherever one of
/// them comes before it. Later ones are below `limit` and before the next job's place.
pub(crate) fn offsets_among_equals(
    own: Stream,
    equals: &[Stream],
    jobs: u64,
    limit: u64,
    effort: &mut StepLimit,
) -> Result<Vec<u64>, Refusal> {
    let nominal = (jobs - 1).checked_mul(own.period).ok_or(Refusal::Overflow)?;
    let start = nominal.saturating_sub(own.jitter);
    let mut offsets = vec![start];
    if equals.is_empty() {
        return Ok(offsets);
    }
    let end = nominal.saturating_add(own.period).min(limit);
    offsets.extend((nominal < end).then_some(nominal));
    for equal in equals {
        let shifted = start.checked_add(equal.jitter).ok_or(Refusal::Overflow)?;
        let first = (shifted / equal.period + 1).checked_mul(equal.period);
        let mut release = first.ok_or(Refusal::Overflow)? - equal.jitter;
        while release < end {
            effort.charge(1)?;
            offsets.push(release);
            release = release.checked_add(equal.period).ok_or(Refusal::Overflow)?;
        }
    }
    offsets.sort_unstable();
    offsets.dedup();
    Ok(offsets)
}

/// Streams that delay a job without end, and what the search needs to begin near its end.
#[derive(Clone, Debug)]
pub(crate) struct InterferenceTerms {
    streams: Vec<Stream>,
    /// Share of the processor, rounded down, with 64 binary digits behind the point.
    used: u128,
    /// Work that jitter brings into a window at least.
    early: u64,
}

impl InterferenceTerms {
    pub(crate) fn from_task(streams: Vec<Stream>) -> InterferenceTerms {
        let used =
            streams.iter().map(|s| share_floor(s.cost, s.period)).fold(0, u128::saturating_add);
        let early = |s: &Stream| u128::from(s.jitter) * u128::from(s.cost) / u128::from(s.period);
        let early = streams.iter().map(early).fold(0, u128::saturating_add);
        InterferenceTerms { streams, used, early: u64::try_from(early).unwrap_or(u64::MAX) }
    }

    /// Whether nothing delays the job.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// `base` and the work of all streams in a window of length `window`.
    fn demand(&self, base: u64, window: u64) -> Option<u64> {
        let add = |sum: u64, stream: &Stream| sum.checked_add(stream.work_before(window)?);
        self.streams.iter().try_fold(base, add)
    }

    /// The least `x` above 0 with `x = base + work(x)`, given that it is not below `from`.
    ///
    /// The search begins at what x would be if work came evenly (Sjodin and Hansson, RTSS 1998),
    /// which is never above the least fixed point.
    pub(crate) fn least_fixed_point(
        &self,
        base: u64,
        from: u64,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        let even = base.checked_add(self.early).and_then(|base| stretched(base, self.used));
        let mut x = from.max(even.unwrap_or(0)).max(1);
        loop {
            effort.charge(self.streams.len())?;
            let next = self.demand(base, x).ok_or(Refusal::Overflow)?;
            if next <= x {
                return Ok(next.max(1));
            }
            x = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The set of the Hourglass paper, section 5.5: 17 behind 3 every 8.
    #[test]
    fn the_search_ends_at_the_least_fixed_point_wherever_it_begins() {
        let streams = vec![Stream { cost: 3, period: 8, jitter: 0 }];
        let interference = InterferenceTerms::from_task(streams);
        for from in 0..=29 {
            assert_eq!(interference.least_fixed_point(17, from, &mut StepLimit::default()), Ok(29));
        }
    }

    #[test]
    fn a_window_that_outgrows_64_bits_is_refused() {
        let streams = vec![Stream { cost: 7, period: 8, jitter: u64::MAX - 3 }];
        let found = InterferenceTerms::from_task(streams).least_fixed_point(
            100,
            0,
            &mut StepLimit::default(),
        );
        assert_eq!(found, Err(Refusal::Overflow));
    }

    /// On a processor used almost completely the even start is already close, whatever the size.
    #[test]
    fn nearly_full_processors_do_not_take_long() {
        let streams = vec![Stream { cost: 999_999, period: 1_000_000, jitter: 0 }];
        let mut effort = StepLimit::with_steps(250);
        assert_eq!(
            InterferenceTerms::from_task(streams).least_fixed_point(1_000_000, 0, &mut effort),
            Ok(1_000_000_000_000)
        );
    }
}
