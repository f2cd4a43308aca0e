//! What a run will have to compare, known before it is measured.

use hourglass_trace::compare::Quantity;
use hourglass_workload::RunSpec;

pub(super) fn quantities(spec: &RunSpec) -> Vec<Quantity> {
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
    use hourglass_runs::compare::ComparisonPower;
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
        let warning = ComparisonPower::of(&quantities(&spec), &quantities(&spec)).warning(rounds);
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
        let names = |a: &[&str], b: &[&str]| {
            ComparisonPower::of(&quantities(&spec(a)), &quantities(&spec(b))).leading()
        };
        assert_eq!(names(&["CPU", "LAT 1ms"], &["LAT 2ms"]), "latency.p50_ns");
        assert_eq!(
            names(&["CPU_SCAN 8", "PERIODIC 1ms 8ms"], &["CPU_SCAN 8", "CPU_PERIODIC 1ms 8ms"]),
            "gaps.p50_ns, gaps.lost_percent, deadlines.failed_percent and work.per_s"
        );
        assert_eq!(names(&["CPU"], &["LAT 1ms"]), "some metrics");
    }
}
