//! An idle control beside the load, as jHiccup has one: a thread that does nothing of the load and watches
//! its CPU. What it loses, the platform takes; what the load loses beyond that is the load's own.
//!
//! Owns: where the control runs and what it does, and the sentence that follows. Must not: name who took the
//! time.

use std::path::Path;

use hourglass_documents::diff::{ControlReport, DiffDocument, DiffMetric, DiffVerdict};
use hourglass_documents::{CpuSet, Policy};
use hourglass_machine::facts::HostReader;
use hourglass_machine::usual_cpus;
use hourglass_trace::Interval;
use hourglass_trace::compare::{Rules, RunSample, by_rounds};
use hourglass_workload::{RunSpec, ThreadSpec, models};

use crate::experiment::{self, ExperimentObserver, Finished, RunFailure, RunOptions};
use hourglass_runs::compare::{decide_nothing, statements};

pub const NAME: &str = "control";

/// What a control does where its policy could not be borne all the time: it watches four fifths of the time.
const PART_TIME: [&str; 3] = ["PERIODIC", "8ms", "10ms"];

/// Parts in which a run is compared with its control; they stand for rounds.
const PARTS: usize = 10;

#[derive(Clone, Debug)]
pub enum ControlMode {
    /// At the same time, on a CPU that the load leaves alone.
    Beside(ThreadSpec),
    /// In turn with the load, on its CPUs: the load leaves no CPU alone.
    InTurn(RunSpec),
}

/// Plans a control for a run on this machine.
///
/// # Errors
/// As [`plan`].
pub fn plan_here(spec: &RunSpec) -> Result<ControlMode, RunFailure> {
    plan(spec, &usual_cpus(&HostReader::new(Path::new("/")).read()))
}

/// Plans a control for a run on a machine whose CPUs this process may use are `allowed`.
///
/// It watches with the policy of the load's first thread, and if that measures wake-ups, so does the
/// control. A real-time control watches four fifths of
/// the time, which leaves room for others and for the kernel's limit on real-time threads.
///
/// # Errors
/// The watching workload cannot be made; does not happen.
pub fn plan(spec: &RunSpec, allowed: &CpuSet) -> Result<ControlMode, RunFailure> {
    let policy = spec.threads.first().map_or(Policy::Other(0), |thread| thread.policy);
    let policy = match policy {
        // The control has no reservation of its own.
        Policy::Deadline => Policy::Other(0),
        other => other,
    };
    let mut taken = CpuSet::default();
    let mut is_pinned = true;
    for thread in &spec.threads {
        match &thread.cpus {
            Some(cpus) => cpus.iter().for_each(|cpu| taken.insert(cpu)),
            None => is_pinned = false,
        }
    }
    let free = allowed.difference(&taken);
    let watching = |cpu: CpuSet| -> Result<ThreadSpec, RunFailure> {
        let cpus = Some(cpu);
        let latency = spec.threads.first().filter(|thread| thread.model.demand().latency);
        if let Some(ThreadSpec { model, wake, .. }) = latency.cloned() {
            return Ok(ThreadSpec { model, wake, policy, cpus, ..ThreadSpec::default() });
        }
        let is_real_time = matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_));
        let words: &[&str] = if is_real_time { &PART_TIME } else { &["CPU"] };
        let model = models::parse(words).map_err(|error| RunFailure::Other(error.to_string()))?;
        Ok(ThreadSpec { model, policy, cpus, ..ThreadSpec::default() })
    };
    match free.iter().last().filter(|_| is_pinned) {
        Some(cpu) => Ok(ControlMode::Beside(watching([cpu].into_iter().collect())?)),
        None => {
            let cpus = if is_pinned { taken } else { allowed.clone() };
            let first = cpus.iter().next().into_iter().collect();
            let threads = vec![watching(first)?];
            Ok(ControlMode::InTurn(RunSpec { threads, ..spec.clone() }))
        }
    }
}

/// Measures with the control beside the load: one more thread, the last of the run. What it says stands in the
/// document and is kept with it.
pub fn run_beside(
    mut request: RunOptions,
    control: ThreadSpec,
    rules: &Rules,
    watch: &mut dyn ExperimentObserver,
) -> Result<Finished, RunFailure> {
    request.spec.threads.push(control);
    experiment::run_and_add(request, watch, |finished| add(finished, rules))
}

/// Names the last thread the control, and says what follows.
fn add(finished: &mut Finished, rules: &Rules) {
    let Some(control) = finished.document.result.threads.last() else { return };
    let id = control.id;
    let (cpus, workload) = (control.cpus.clone(), control.workload.clone());
    let policy = control.policy.clone();
    let elapsed_ns = finished.document.manifest.elapsed_ns;
    let gap_ns = finished.document.manifest.threads.iter().map(|thread| thread.gap_ns).max();
    let intervals: Vec<Interval> = finished.intervals().collect();
    let part = |is_control: bool| {
        let own = intervals.iter().filter(|interval| (interval.thread == id) == is_control);
        let mut samples = parts(own, elapsed_ns, gap_ns.unwrap_or(0));
        let threads = finished.document.result.threads.iter().map(|thread| thread.id);
        for thread in threads.filter(|thread| (*thread == id) == is_control) {
            let late: Vec<u64> = finished.latencies_ps(thread).collect();
            for (part, sample) in samples.iter_mut().enumerate() {
                let at = |part: usize| late.len() * part / PARTS;
                sample.push_latencies(&late[at(part)..at(part + 1)]);
            }
        }
        samples
    };
    let pairs: Vec<_> =
        part(true).iter().zip(&part(false)).map(|(a, b)| (a.values(), b.values())).collect();
    let mut metrics = by_rounds(&pairs, rules);
    let holds = finished.document.result.premises.is_empty();
    if !holds {
        decide_nothing(&mut metrics);
    }
    let report = ControlReport {
        thread: Some(id),
        cpus,
        workload,
        policy,
        method: "beside".to_owned(),
        pairs: pairs.len() as u64,
        statements: statements::beside(&finished.document, finished.intervals(), id)
            .into_iter()
            .filter(|_| holds)
            .collect(),
        ..statement(metrics)
    };
    let result = &mut finished.document.result;
    if let Some(control) = result.threads.last_mut() {
        control.name = Some(NAME.to_owned());
    }
    result.control = Some(report);
}

/// What follows from rounds of a control (`spec`) in turn with the load.
pub(super) fn of_rounds(spec: &RunSpec, compared: &DiffDocument) -> ControlReport {
    let thread = spec.threads.first();
    ControlReport {
        cpus: thread.iter().filter_map(|t| t.cpus.as_ref()).flat_map(CpuSet::iter).collect(),
        workload: thread.map(|thread| thread.model.to_string()).unwrap_or_default(),
        policy: thread.map(|thread| thread.policy.to_string()).unwrap_or_default(),
        method: "rounds".to_owned(),
        pairs: compared.rounds,
        statements: compared.statements.clone(),
        ..statement(compared.metrics.clone())
    }
}

/// The intervals of each part of a run. One that reaches into the next part belongs to the part in which
/// it began, with the gap before it.
fn parts<'a>(
    intervals: impl Iterator<Item = &'a Interval>,
    elapsed_ns: u64,
    gap_ns: u64,
) -> Vec<RunSample> {
    let mut samples = vec![RunSample::new(elapsed_ns); PARTS];
    for interval in intervals {
        let at = u128::from(interval.start_ns.max(0).unsigned_abs()) * PARTS as u128;
        let part = at / u128::from(elapsed_ns.max(1));
        let part = usize::try_from(part).unwrap_or(PARTS).min(PARTS - 1);
        samples[part].push(interval);
    }
    samples.iter_mut().for_each(|sample| sample.drop_gaps_to(gap_ns));
    samples
}

struct MetricWording {
    what: &'static str,
    unit: &'static str,
    /// Units of the metric in one of `unit`.
    unit_of: f64,
    difference: &'static str,
}

const LOST: MetricWording = MetricWording {
    what: "time lost in gaps",
    unit: "%",
    unit_of: 1.0,
    difference: "percentage points",
};

const LATE: MetricWording = MetricWording {
    what: "median latency of wake-ups",
    unit: "us",
    unit_of: 1e3,
    difference: "us",
};

/// What follows from the metrics of control (`a`) and load (`b`): from what gaps took, or, for a load that
/// only waits, from how late it was woken.
pub fn statement(metrics: Vec<DiffMetric>) -> ControlReport {
    let compared = |name: &str| {
        metrics.iter().find(|metric| metric.name == name && metric.a.zip(metric.b).is_some())
    };
    let (metric, words) = match (compared("gaps.lost_percent"), compared("latency.p50_ns")) {
        (Some(lost), _) => (lost, &LOST),
        (None, Some(late)) => (late, &LATE),
        (None, None) => {
            let text = "control and load have nothing in common to compare".to_owned();
            return ControlReport { metrics, statement: text, ..ControlReport::default() };
        }
    };
    let MetricWording { what, unit, unit_of, difference } = words;
    let number = |value: Option<f64>| value.unwrap_or(0.0) / unit_of;
    let (platform, load) = (number(metric.a), number(metric.b));
    let change = number(metric.change);
    let between = match (metric.ci_lo, metric.ci_hi) {
        (Some(lo), Some(hi)) => {
            let (lo, hi) = (lo / unit_of, hi / unit_of);
            format!(", between {lo:+.3} and {hi:+.3} with 95 % confidence")
        }
        _ => String::new(),
    };
    let meaning = match metric.verdict {
        DiffVerdict::Worse => "the difference is the load's own, or that of what it runs among",
        DiffVerdict::Better => "the platform takes more where the load is not",
        DiffVerdict::Same => "it is the platform that takes it, not the load",
        DiffVerdict::Unknown => {
            "whether the load adds to the platform is not decided; measure for longer"
        }
    };
    let text = format!(
        "{what}: {load:.3} {unit} in the load, {platform:.3} {unit} in the idle control \
         ({change:+.3} {difference}{between}): {meaning}"
    );
    let is_decided = metric.verdict != DiffVerdict::Unknown;
    let confidence = if is_decided { hourglass_trace::statistics::USUAL } else { 0.0 };
    let verdict = metric.verdict;
    ControlReport { statement: text, verdict, confidence, metrics, ..ControlReport::default() }
}

#[cfg(test)]
mod tests {
    use hourglass_time::Span;

    use super::*;

    fn cpus(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn load(words: &str, policy: Policy, on: Option<&str>) -> RunSpec {
        let words: Vec<&str> = words.split(' ').collect();
        let model = models::parse(&words).unwrap();
        let cpus = on.map(cpus);
        let thread = ThreadSpec { model, policy, cpus, ..ThreadSpec::default() };
        RunSpec { duration: Span::SECOND, ..RunSpec::new(vec![thread]) }
    }

    fn beside(spec: &RunSpec, allowed: &str) -> ThreadSpec {
        match plan(spec, &cpus(allowed)).unwrap() {
            ControlMode::Beside(thread) => thread,
            ControlMode::InTurn(spec) => panic!("{spec:?}"),
        }
    }

    /// jHiccup's control is a second process on the same machine that does nothing of the load.
    #[test]
    fn a_free_cpu_gets_the_control() {
        let control = beside(&load("CPU_YIELD 1ms", Policy::Other(0), Some("0-1")), "0-3");
        assert_eq!((control.model.to_string().as_str(), control.cpus), ("CPU", Some(cpus("3"))));
        let control = beside(&load("CPU", Policy::Fifo(80), Some("0")), "0-1");
        assert_eq!(control.model.to_string(), "PERIODIC 8ms 10ms", "leaves room for others");
        assert_eq!(control.policy, Policy::Fifo(80));
        let control = beside(&load("LAT 2ms", Policy::Other(0), Some("0")), "0-1");
        assert_eq!(control.model.to_string(), "LAT 2ms");
    }

    #[test]
    fn without_a_free_cpu_the_control_takes_turns() {
        for (on, allowed, wanted) in
            [(Some("0-1"), "0-1", "0"), (None, "0-3", "0"), (Some("2"), "2", "2")]
        {
            match plan(&load("CPU", Policy::Other(0), on), &cpus(allowed)).unwrap() {
                ControlMode::InTurn(spec) => {
                    assert_eq!(spec.threads.len(), 1);
                    assert_eq!(spec.threads[0].cpus, Some(cpus(wanted)));
                    assert_eq!(spec.duration, Span::SECOND);
                }
                ControlMode::Beside(thread) => panic!("{thread:?}"),
            }
        }
    }

    #[test]
    fn the_statement_says_who_takes_the_time() {
        let metric = |name: &str, verdict| DiffMetric {
            name: name.to_owned(),
            a: Some(2_000.0),
            b: Some(3_000.0),
            change: Some(1_000.0),
            ci_lo: Some(500.0),
            ci_hi: Some(1_500.0),
            verdict,
            ..DiffMetric::default()
        };
        let report = statement(vec![metric("latency.p50_ns", DiffVerdict::Worse)]);
        assert_eq!(
            report.statement,
            "median latency of wake-ups: 3.000 us in the load, 2.000 us in the idle control \
             (+1.000 us, between +0.500 and +1.500 with 95 % confidence): the difference is the \
             load's own, or that of what it runs among"
        );
        assert_eq!((report.confidence, report.verdict), (0.95, DiffVerdict::Worse));
        let unsure = statement(vec![metric("gaps.lost_percent", DiffVerdict::Unknown)]);
        assert_eq!((unsure.confidence, unsure.verdict), (0.0, DiffVerdict::Unknown));
        assert!(statement(Vec::new()).statement.contains("nothing in common"));
    }
}
