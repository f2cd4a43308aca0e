//! What a run says about wake-ups to come, in sentences.

use hourglass_documents::document::{LimitConfidence, Stationarity};

use crate::units::rounded;

/// A share that is written as 100.0 %.
const NO_BOUND: f64 = 0.999;

const NS_PER_DAY: u64 = 86_400_000_000_000;

/// The bound on later wake-ups, or why there is none; what was tested; how long a test takes.
#[must_use]
pub fn confidence(found: &LimitConfidence) -> Vec<String> {
    let LimitConfidence { thread, wake_ups, beyond, .. } = found;
    let per_cent = found.confidence * 100.0;
    let counted = format!("{beyond} of {wake_ups} were (thread {thread})");
    let bound = match (found.share_beyond, found.stationarity) {
        // Of all wake-ups nothing can be promised.
        (Some(share), _) if share >= NO_BOUND => {
            return vec![format!(
                "nothing follows for later wake-ups: {beyond} of {wake_ups} were later than that (thread {thread})"
            )];
        }
        (Some(share), _) => {
            format!(
                "at {per_cent} %, fewer than {} wake-ups are later than that: {counted}",
                one_in(share)
            )
        }
        (None, Stationarity::Trend) => format!(
            "nothing follows for later wake-ups: the latest ones have a trend ({}): {counted}",
            probability(found.trend_p)
        ),
        (None, _) => format!(
            "nothing follows for later wake-ups: the latest ones come in clusters ({}): {counted}",
            probability(found.clusters_p)
        ),
    };
    let tested = match (found.share_beyond, found.stationarity) {
        (None, _) => None,
        (_, Stationarity::NotTested) => Some(
            "if they are independent, which was not tested: too few were stored one by one, or too many are alike"
                .to_owned(),
        ),
        _ => Some(format!(
            "if they are independent; tests found no trend ({}) and no clusters ({}) in {} of them",
            probability(found.trend_p),
            probability(found.clusters_p),
            found.wake_ups_tested
        )),
    };
    let needed = found.share_beyond.and(found.time_for_1e9_ns).map(|ns| {
        let time = match ns / NS_PER_DAY {
            0 => rounded(ns),
            days => format!("{days} days"),
        };
        format!(
            "for fewer than 1 in 10^9 it takes {} wake-ups without a later one, {time} at this rate",
            found.wake_ups_for_1e9
        )
    });
    [Some(bound), tested, needed].into_iter().flatten().collect()
}

/// `1 in 667`: rounded down, so that no less is promised than was found.
fn one_in(share: f64) -> String {
    let whole = (1.0 / share.max(f64::MIN_POSITIVE)).floor();
    if whole < 10.0 {
        format!("{:.1} % of", (share * 1_000.0).ceil() / 10.0)
    } else {
        format!("1 in {whole}")
    }
}

fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => "p < 0.001".to_owned(),
        Some(p) => format!("p = {p:.3}"),
        None => "p unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(share: Option<f64>, stationarity: Stationarity) -> LimitConfidence {
        LimitConfidence {
            thread: 1,
            confidence: 0.95,
            wake_ups: 2_000,
            beyond: 0,
            share_beyond: share,
            wake_ups_for_1e9: 2_995_732_273,
            time_for_1e9_ns: Some(2_995_732_273_000_000),
            stationarity,
            wake_ups_tested: 2_000,
            trend_p: Some(0.431_2),
            clusters_p: Some(0.000_2),
        }
    }

    #[test]
    fn sentences() {
        let kept = confidence(&found(Some(0.001_496_7), Stationarity::NotRefuted));
        assert_eq!(
            kept,
            [
                "at 95 %, fewer than 1 in 668 wake-ups are later than that: 0 of 2000 were (thread 1)",
                "if they are independent; tests found no trend (p = 0.431) and no clusters (p < 0.001) in 2000 of them",
                "for fewer than 1 in 10^9 it takes 2995732273 wake-ups without a later one, 34 days at this rate",
            ]
        );
        let clusters = confidence(&found(None, Stationarity::Clusters));
        assert_eq!(clusters.len(), 1);
        assert!(clusters[0].starts_with("nothing follows") && clusters[0].contains("p < 0.001"));
        // "Fewer than 100.0 % of wake-ups are later: 999 of 999 were".
        let all =
            LimitConfidence { beyond: 2_000, ..found(Some(0.999_9), Stationarity::NotRefuted) };
        let said =
            "nothing follows for later wake-ups: 2000 of 2000 were later than that (thread 1)";
        assert_eq!(confidence(&all), [said]);
        let untested = confidence(&found(Some(0.26), Stationarity::NotTested));
        assert!(
            untested[0].contains("fewer than 26.0 % of wake-ups")
                && untested[1].contains("not tested")
        );
    }
}
