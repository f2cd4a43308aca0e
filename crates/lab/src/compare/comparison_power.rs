//! How many rounds can decide what, said before they are measured and with the result.
//!
//! Owns: what a run will have to compare, and the warning where rounds are too few for it. Must not: hold the
//! statistics (`hourglass_infer::compare` does).

use hourglass_infer::compare::{DetectableRounds, Quantity};
use hourglass_model::diff::DiffMetric;
use hourglass_model::document::Warning;
use hourglass_workload::RunSpec;

/// What a comparison can decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ComparisonPower {
    /// With how many rounds.
    pub(super) reach: DetectableRounds,
    /// Names of the metrics that are looked at first.
    leading: Vec<String>,
}

impl ComparisonPower {
    /// By what two runs measure on both sides.
    pub(super) fn of(a: &RunSpec, b: &RunSpec) -> ComparisonPower {
        let of_b = quantities(b);
        let both = quantities(a).into_iter().filter(|one| of_b.contains(one));
        let both: Vec<Quantity> = both.collect();
        let leading = both.iter().filter(|one| one.leads()).map(ToString::to_string).collect();
        ComparisonPower { reach: DetectableRounds::of_all(&both), leading }
    }

    /// By what was measured; `None` where there is nothing to compare.
    pub(super) fn of_metrics(metrics: &[DiffMetric]) -> Option<ComparisonPower> {
        let plain = || metrics.iter().filter(|metric| !metric.name.starts_with("causes."));
        let all = plain().map(|metric| metric.rounds_needed).max()?;
        let leading = plain().filter(|metric| metric.leads);
        let least = leading.clone().map(|metric| metric.rounds_needed).max().unwrap_or(all);
        let leading = leading.map(|metric| metric.name.clone()).collect();
        Some(ComparisonPower { reach: DetectableRounds { leading: least, all }, leading })
    }

    /// What `rounds` rounds can decide, in a few words.
    pub(super) fn words(&self, rounds: u64) -> String {
        let DetectableRounds { leading, all } = self.reach;
        match rounds {
            rounds if rounds >= all => "can decide every metric".to_owned(),
            rounds if rounds >= leading => format!("can decide {}", self.leading()),
            _ => "cannot decide anything".to_owned(),
        }
    }

    /// The warning where `rounds` rounds cannot decide everything.
    pub(super) fn warning(&self, rounds: u64) -> Option<Warning> {
        let DetectableRounds { leading, all } = self.reach;
        if rounds >= all {
            return None;
        }
        let counted = if rounds == 1 { "1 round" } else { &format!("{rounds} rounds") };
        let enough = format!(
            "{all} or more can decide every metric, and the more there are, the fewer have to agree"
        );
        let (text, remedy) = if rounds >= leading {
            let agree = if rounds == leading { " only if all of them agree," } else { "," };
            let text = format!("{counted} can decide {}{agree}", self.leading());
            (format!("{text} but no percentile in the tail and no maximum"), enough)
        } else {
            let text = format!(
                "{counted} cannot decide anything: even if all of them agreed, that could be chance"
            );
            let first =
                format!("{leading} rounds can decide {}, if all of them agree; ", self.leading());
            (text, if leading == all { enough } else { first + &enough })
        };
        Some(Warning { id: "few-rounds".to_owned(), text, remedy })
    }

    fn leading(&self) -> String {
        match &self.leading[..] {
            [] => "some metrics".to_owned(),
            [one] => one.clone(),
            [all @ .., last] => format!("{} and {last}", all.join(", ")),
        }
    }
}

/// The quantities of a run that its threads will measure.
fn quantities(spec: &RunSpec) -> Vec<Quantity> {
    let has = |is_so: &dyn Fn(&hourglass_workload::models::Demand) -> bool| {
        spec.threads.iter().any(|thread| is_so(&thread.model.demand()))
    };
    let mut all = Vec::new();
    // Threads that measure wake-ups write no trace, and have no gaps.
    if has(&|demand| !demand.latency) {
        all.extend([Quantity::GapP50, Quantity::GapP99, Quantity::GapP999]);
        all.extend([Quantity::GapMax, Quantity::GapRate, Quantity::GapLost]);
    }
    if has(&|demand| demand.latency) {
        all.extend([Quantity::LatencyP50, Quantity::LatencyP99]);
        all.extend([Quantity::LatencyP999, Quantity::LatencyMax]);
    }
    if has(&|demand| demand.period.is_some() && !demand.latency) {
        all.push(Quantity::DeadlinesFailed);
    }
    if has(&|demand| demand.counts_work) {
        all.push(Quantity::Work);
    }
    all
}

#[cfg(test)]
mod tests {
    use hourglass_workload::{ThreadSpec, models};

    use super::*;

    fn spec(workloads: &[&str]) -> RunSpec {
        let thread = |words: &&str| {
            let words: Vec<&str> = words.split(' ').collect();
            ThreadSpec { model: models::parse(&words).unwrap(), ..ThreadSpec::default() }
        };
        RunSpec::new(workloads.iter().map(thread).collect())
    }

    fn describe_power(workload: &str, rounds: u64) -> String {
        let spec = spec(&[workload]);
        let warning = ComparisonPower::of(&spec, &spec).warning(rounds);
        warning.map_or_else(String::new, |warning| format!("{}; {}", warning.text, warning.remedy))
    }

    /// Six rounds could not find a change of a fifth, and nothing said so before or after.
    #[test]
    fn rounds_that_cannot_decide_are_warned_of_before() {
        assert_eq!(
            describe_power("LAT 1ms", 5),
            "5 rounds cannot decide anything: even if all of them agreed, that could be chance; 6 rounds can \
             decide latency.p50_ns, if all of them agree; 8 or more can decide every metric, and the more \
             there are, the fewer have to agree"
        );
        assert_eq!(
            describe_power("LAT 1ms", 6),
            "6 rounds can decide latency.p50_ns only if all of them agree, but no percentile in the tail and no \
             maximum; 8 or more can decide every metric, and the more there are, the fewer have to agree"
        );
        assert_eq!(
            describe_power("CPU", 8),
            "8 rounds can decide gaps.p50_ns and gaps.lost_percent, but no percentile in the tail and no \
             maximum; 9 or more can decide every metric, and the more there are, the fewer have to agree"
        );
        for workload in ["LAT 1ms", "CPU", "PERIODIC 1ms 8ms", "CPU_SCAN 8"] {
            assert_eq!(
                describe_power(workload, 10),
                "",
                "{workload}: the default number of rounds"
            );
        }
    }

    #[test]
    fn what_both_sides_measure_is_what_counts() {
        let names = |a: &[&str], b: &[&str]| ComparisonPower::of(&spec(a), &spec(b)).leading();
        assert_eq!(names(&["CPU", "LAT 1ms"], &["LAT 2ms"]), "latency.p50_ns");
        assert_eq!(
            names(&["CPU_SCAN 8", "PERIODIC 1ms 8ms"], &["CPU_SCAN 8", "CPU_PERIODIC 1ms 8ms"]),
            "gaps.p50_ns, gaps.lost_percent, deadlines.failed_percent and work.per_s"
        );
        assert_eq!(names(&["CPU"], &["LAT 1ms"]), "some metrics");
    }
}
