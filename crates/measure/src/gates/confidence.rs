//! What the wake-ups of a run say about later ones, beyond the verdict about the run itself.

use hourglass_documents::warning::{LimitConfidence, Stationarity};
use hourglass_time::Span;
use hourglass_trace::statistics::{TailTest, USUAL, greatest_share, tail_test, trials_without};
use hourglass_workload::run::{RunMeasurement, ThreadOutcome};

/// The share for which the length of a test is given.
const RARE: f64 = 1e-9;

/// A tail by chance is taken for one with a trend, or with clusters, once in 200.
const SIGNIFICANT: f64 = 0.005;

/// Of the threads that measure wake-ups, the one that promises least. Each has its share of the doubt, so that all bounds hold
/// together, whether or not what delays one thread delays another.
pub(super) fn of_latency(measured: &RunMeasurement, limit: Span) -> Option<LimitConfidence> {
    let threads = measured.threads.iter().filter(|thread| thread.recorded.lateness.is_some());
    let count = threads.clone().count();
    let confidence = |thread| of_thread(measured, thread, limit, count);
    threads.filter_map(confidence).reduce(|least, other| {
        let promises_less = match (other.share_beyond, least.share_beyond) {
            (None, Some(_)) => true,
            (Some(other), Some(least)) => other > least,
            (_, None) => false,
        };
        if promises_less { other } else { least }
    })
}

fn of_thread(
    measured: &RunMeasurement,
    thread: &ThreadOutcome,
    limit: Span,
    threads: usize,
) -> Option<LimitConfidence> {
    let recorded = &thread.recorded;
    let lateness = recorded.lateness.as_ref()?;
    let wake_ups = lateness.histogram.len().saturating_add(recorded.tally.lost_wake_ups);
    let beyond = lateness.excess.beyond(limit).unwrap_or(0);
    let threads = threads.max(1) as f64;
    let confidence = 1.0 - (1.0 - USUAL) / threads;
    let samples: Vec<u64> = lateness.samples().collect();
    let test = tail_test(&samples).map(|test| TailTest {
        trend: (test.trend * threads).min(1.0),
        clusters: (test.clusters * threads).min(1.0),
    });
    let stationarity = stationarity(test);
    let holds = matches!(stationarity, Stationarity::NotRefuted | Stationarity::NotTested);
    let wall_ns = measured.timeline.ns_in(recorded.end.saturating_sub(thread.start));
    let needed = trials_without(RARE, confidence).unwrap_or(u64::MAX);
    Some(LimitConfidence {
        thread: thread.id,
        confidence: USUAL,
        wake_ups,
        beyond,
        share_beyond: holds.then(|| greatest_share(beyond, wake_ups, confidence)),
        wake_ups_for_1e9: needed,
        time_for_1e9_ns: time_for(needed, wall_ns, wake_ups),
        stationarity,
        wake_ups_tested: test.map_or(0, |_| samples.len() as u64),
        trend_p: test.map(|test| test.trend),
        clusters_p: test.map(|test| test.clusters),
    })
}

fn stationarity(test: Option<TailTest>) -> Stationarity {
    match test {
        None => Stationarity::NotTested,
        Some(test) if test.trend < SIGNIFICANT => Stationarity::Trend,
        Some(test) if test.clusters < SIGNIFICANT => Stationarity::Clusters,
        Some(_) => Stationarity::NotRefuted,
    }
}

/// How long `needed` wake-ups take at the rate of this run.
fn time_for(needed: u64, wall_ns: u64, wake_ups: u64) -> Option<u64> {
    let ns = u128::from(needed) * u128::from(wall_ns);
    u64::try_from(ns.checked_div(u128::from(wake_ups))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wake-up in a millisecond: 35 days for one in 10^9.
    #[test]
    fn the_time_that_a_test_takes() {
        let needed = trials_without(RARE, USUAL).unwrap();
        let found = time_for(needed, 2_000_000_000, 2_000).unwrap();
        assert_eq!(found / 86_400_000_000_000, 34);
        assert_eq!(time_for(needed, 2_000_000_000, 0), None);
        assert_eq!(time_for(u64::MAX, u64::MAX, 1), None);
    }

    #[test]
    fn a_tail_by_chance_refutes_nothing() {
        let of = |trend, clusters| stationarity(Some(TailTest { trend, clusters }));
        assert_eq!(of(0.3, 0.006), Stationarity::NotRefuted);
        assert_eq!(of(0.004, 0.001), Stationarity::Trend);
        assert_eq!(of(0.3, 0.004), Stationarity::Clusters);
        assert_eq!(stationarity(None), Stationarity::NotTested);
    }
}
