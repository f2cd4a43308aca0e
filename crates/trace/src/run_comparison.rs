//! Statements about two runs (Hourglass paper, section 4, last two items): this load causes the
//! gaps; this timer is inaccurate.
//!
//! Both are statistical. Runs must be interleaved in one sitting: the noise of a shared machine
//! moves in regimes, and of two runs one after the other the second may be noisier by itself.

use crate::Interval;

use crate::statistics::{Estimate, USUAL, mann_whitney, mann_whitney_of_counts, share};

const SLICES: usize = 40;
/// The minimum number of slices on each side for a sound comparison.
const FEWEST_SLICES: usize = 8;
/// Fewer wake-ups on a side say nothing about rare ones.
const FEWEST_WAKE_UPS: u64 = 100;
/// A load causes gaps, and a timer is inaccurate, if that is so sure.
const SURE: f64 = 0.99;
/// What is left of the confidence that a timer is to blame where the run itself shows gaps as long
/// as its latencies.
const REAL_GAPS: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOutcome {
    Yes,
    No,
    TooLittle,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapRate {
    counts: Vec<u64>,
    slice_ns: u64,
    gaps: u64,
}

impl GapRate {
    /// Counts the gaps longer than `least_ns` of one thread, in order of start, in slices of a
    /// run of `elapsed_ns`.
    pub fn of<'a>(
        intervals: impl IntoIterator<Item = &'a Interval>,
        elapsed_ns: u64,
        least_ns: u64,
    ) -> GapRate {
        let mut counter = GapCounter::new(elapsed_ns, least_ns);
        intervals.into_iter().for_each(|interval| counter.push(interval));
        counter.finish()
    }

    fn push(&mut self, start: i64) {
        let slice = u64::try_from(start).unwrap_or(0) / self.slice_ns.max(1);
        let slice = usize::try_from(slice).unwrap_or(usize::MAX);
        if let Some(count) = self.counts.get_mut(slice) {
            *count = count.saturating_add(1);
            self.gaps = self.gaps.saturating_add(1);
        }
    }

    /// Adds the slices of another run of this kind, one run for each interleaved round.
    pub fn extend(&mut self, other: &GapRate) {
        self.counts.extend(&other.counts);
        self.gaps = self.gaps.saturating_add(other.gaps);
        if self.slice_ns == 0 {
            self.slice_ns = other.slice_ns;
        }
    }

    pub fn per_second(&self) -> f64 {
        let seconds = self.counts.len() as f64 * self.slice_ns as f64 / 1e9;
        if seconds > 0.0 { self.gaps as f64 / seconds } else { 0.0 }
    }
}

#[derive(Clone, Debug)]
pub struct GapCounter {
    rate: GapRate,
    threshold_ns: u64,
    last: Option<i64>,
}

impl GapCounter {
    /// A counter of gaps longer than `least_ns`, in slices of a run of `elapsed_ns`.
    pub fn new(elapsed_ns: u64, least_ns: u64) -> GapCounter {
        let slice_ns = (elapsed_ns / SLICES as u64).max(1);
        let rate = GapRate { counts: vec![0; SLICES], slice_ns, gaps: 0 };
        GapCounter { rate, threshold_ns: least_ns, last: None }
    }

    /// Takes the thread's next interval, in order of start.
    pub fn push(&mut self, interval: &Interval) {
        let before = self.last.replace(interval.end_ns);
        let Some(before) = before.filter(|_| interval.onset.is_gap()) else { return };
        let length = u64::try_from(i128::from(interval.start_ns) - i128::from(before));
        if length.is_ok_and(|length| length > self.threshold_ns) {
            self.rate.push(before);
        }
    }

    pub fn finish(self) -> GapRate {
        self.rate
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadStatement {
    pub answer: ComparisonOutcome,
    /// The confidence that the runs differ as the answer says, from 0 to 1.
    pub confidence: f64,
    pub with_per_second: f64,
    pub without_per_second: f64,
    /// Of the gaps with the load, the share that is there because of it, from 0 to 1.
    pub caused: f64,
}

/// Compares gaps of the same threads with a load and without: slice by slice, by ranks, so that
/// gaps that come in bursts do not count as independent ones.
pub fn load_causes_gaps(with: &GapRate, without: &GapRate) -> LoadStatement {
    let (more, less) = (with.per_second(), without.per_second());
    let caused = if more > less { 1.0 - less / more } else { 0.0 };
    let statement = |answer, confidence| LoadStatement {
        answer,
        confidence,
        with_per_second: more,
        without_per_second: less,
        caused,
    };
    // Runs of different length have slices of different length: counts become rates.
    let slices = [without, with].map(|rate| rate.counts.len());
    let longest = with.slice_ns.max(without.slice_ns);
    let rates = [without, with].map(|rate| -> Vec<u64> {
        let scale = |count: &u64| {
            let scaled = u128::from(*count) * u128::from(longest) * 1_000;
            u64::try_from(scaled / u128::from(rate.slice_ns.max(1))).unwrap_or(u64::MAX)
        };
        rate.counts.iter().map(scale).collect()
    });
    let test = mann_whitney(&rates[0], &rates[1]);
    match test.filter(|_| slices.iter().all(|slices| *slices >= FEWEST_SLICES)) {
        None => statement(ComparisonOutcome::TooLittle, 0.0),
        Some(test) => {
            let confidence = one_sided(test.p, test.larger > 0.5);
            let yes = confidence >= SURE && more > less;
            let answer = if yes { ComparisonOutcome::Yes } else { ComparisonOutcome::No };
            statement(answer, if yes { confidence } else { 1.0 - confidence })
        }
    }
}

/// The confidence that the second is larger, from a two-sided probability.
fn one_sided(p: f64, larger: bool) -> f64 {
    if larger { 1.0 - p / 2.0 } else { p / 2.0 }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimerStatement {
    pub answer: ComparisonOutcome,
    /// The confidence that the answer is right, from 0 to 1.
    pub confidence: f64,
    pub late: Option<Estimate>,
    pub late_other: Option<Estimate>,
}

/// Whether `suspect` is inaccurate, by the share of wake-ups later than `limit_ns` beside those of
/// another timer on the same machine. `longest_gap_ns` is the longest gap that a thread which
/// never waits had meanwhile: where real gaps are that long, they may be to blame instead.
pub fn timer_is_inaccurate(
    suspect: impl IntoIterator<Item = u64>,
    other: impl IntoIterator<Item = u64>,
    limit_ns: u64,
    longest_gap_ns: Option<u64>,
) -> TimerStatement {
    let blamed = longest_gap_ns.is_some_and(|longest| longest >= limit_ns);
    timer_by_counts(late_of(suspect, limit_ns), late_of(other, limit_ns), blamed)
}

/// The same where wake-ups were counted: how many were late, and how many there were. `has_long_gaps` says
/// whether real gaps meanwhile were as long as what counts as late.
pub fn timer_by_counts(
    (late, all): (u64, u64),
    (late_other, all_other): (u64, u64),
    has_long_gaps: bool,
) -> TimerStatement {
    let (first, second) = (share(late, all, USUAL), share(late_other, all_other, USUAL));
    let statement =
        |answer, confidence| TimerStatement { answer, confidence, late: first, late_other: second };
    if all < FEWEST_WAKE_UPS || all_other < FEWEST_WAKE_UPS {
        return statement(ComparisonOutcome::TooLittle, 0.0);
    }
    // Late or not is a measurement with two values; ties are what the rank test corrects for.
    let test = mann_whitney_of_counts((late_other, all_other), (late, all));
    let confidence = test.map_or(0.5, |test| one_sided(test.p, test.larger > 0.5));
    if confidence < SURE {
        return statement(ComparisonOutcome::No, 1.0 - confidence);
    }
    statement(
        ComparisonOutcome::Yes,
        if has_long_gaps { confidence * REAL_GAPS } else { confidence },
    )
}

fn late_of(latencies_ns: impl IntoIterator<Item = u64>, limit_ns: u64) -> (u64, u64) {
    latencies_ns
        .into_iter()
        .fold((0, 0), |(late, all), ns| (late + u64::from(ns > limit_ns), all + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntervalStart;

    const MS: i64 = 1_000_000;

    /// A thread with a gap of 20 us every `every` ns, for 4 s.
    fn run(every: i64) -> GapRate {
        let interval =
            |start_ns: i64, end_ns: i64| Interval::new(0, 0, start_ns, end_ns, IntervalStart::Gap);
        let count = 4_000 * MS / every;
        // Gaps are not quite regular, so that slices differ.
        let at = |k: i64| k * every + (k * k * 7_919) % (every / 2);
        let intervals: Vec<Interval> =
            (0..count).map(|k| interval(at(k) + 20_000, at(k + 1).max(at(k) + 30_000))).collect();
        GapRate::of(&intervals, 4_000_000_000, 1_000)
    }

    /// Section 4: few gaps on an idle machine, many under a particular workload.
    #[test]
    fn a_load_that_doubles_the_gaps_causes_them() {
        let (idle, loaded) = (run(4 * MS), run(2 * MS));
        let found = load_causes_gaps(&loaded, &idle);
        assert_eq!(found.answer, ComparisonOutcome::Yes);
        assert!(found.confidence > 0.999 && (found.caused - 0.5).abs() < 0.05, "{found:?}");
        assert!((found.without_per_second - 250.0).abs() < 10.0, "{found:?}");
        let back = load_causes_gaps(&idle, &loaded);
        assert_eq!((back.answer, back.caused), (ComparisonOutcome::No, 0.0));
        assert!(back.confidence > 0.99);
        assert_eq!(load_causes_gaps(&idle, &idle.clone()).answer, ComparisonOutcome::No);
    }

    #[test]
    fn nothing_measured_says_nothing() {
        let found = load_causes_gaps(&GapRate::default(), &run(4 * MS));
        assert_eq!((found.answer, found.confidence), (ComparisonOutcome::TooLittle, 0.0));
        let found = timer_is_inaccurate([1; 99], [1; 500], 0, None);
        assert_eq!(found.answer, ComparisonOutcome::TooLittle);
    }

    /// Rounds of a day have billions of wake-ups, which were written out one by one.
    #[test]
    fn wake_ups_are_counted_however_many_they_are() {
        let found = timer_by_counts((1 << 20, 1 << 50), (1 << 10, 1 << 50), false);
        assert_eq!((found.answer, found.confidence), (ComparisonOutcome::Yes, 1.0));
        let found = timer_by_counts((1 << 20, 1 << 50), (1 << 20, 1 << 50), false);
        assert_eq!(found.answer, ComparisonOutcome::No);
    }

    /// Section 4: high latencies with one kind of timer but not another.
    #[test]
    fn a_timer_that_is_late_is_inaccurate() {
        // The paper's Table 1 counts samples later than 1, 5, 10 and 50 ms.
        let coarse = (0..2_000).map(|k| if k % 50 == 0 { 9_000_000 } else { 60_000 });
        let fine = (0..2_000).map(|k| if k == 7 { 9_000_000 } else { 60_000 });
        let found = timer_is_inaccurate(coarse.clone(), fine.clone(), 1_000_000, None);
        assert_eq!(found.answer, ComparisonOutcome::Yes);
        assert!(found.confidence > 0.99 && found.late.unwrap().holds(0.02));
        let blamed = timer_is_inaccurate(coarse.clone(), fine.clone(), 1_000_000, Some(20_000_000));
        assert!(blamed.confidence < found.confidence, "long real gaps may be to blame");
        assert_eq!(
            timer_is_inaccurate(fine, coarse, 1_000_000, None).answer,
            ComparisonOutcome::No
        );
    }
}
