//! Every known defect of other tools is a case here, with the right answer and how it comes about.
//! The tools were run on these very sets; what they answered stands with each case.
//!
//! A peer's looser bound for global scheduling (Bertogna's analysis without the clamp to R - C + 1)
//! is a case of the global tests.

use hourglass_sched::bursts;
use hourglass_sched::edf::{self, qpa};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::jobset::{self, Ties, UncertainJob};
use hourglass_sched::offsets;
use hourglass_sched::supply::{self, Supply};
use hourglass_sched::thresholds;
use hourglass_sched::{Analysis, Refusal, Task, TaskSet, Verdict, Witness, fifo};

fn task(cost: u64, period: u64, deadline: u64) -> Task {
    Task::new(cost, period, deadline).unwrap()
}

fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
    TaskSet::in_order(tasks.iter().map(|(c, t, d)| task(*c, *t, *d)).collect())
}

fn preemptive(set: &TaskSet) -> Analysis {
    fixed_priority::analyse(set, Sections::Preemptive, TimeModel::Discrete)
}

fn dynamic(set: &TaskSet) -> Analysis {
    edf::response_times(set, Sections::Preemptive, TimeModel::Discrete)
}

/// SchedCAT's `fp/rta.py` calls the set of the Hourglass paper schedulable with a jitter of 8, and
/// says in the same breath that the response is 39, of 33: it compares the window, 31, with the
/// deadline.
#[test]
fn own_jitter_counts_in_the_verdict() {
    let jitters = vec![task(3, 8, 8), task(19, 33, 33).with_jitter(8)];
    let found = preemptive(&TaskSet::in_order(jitters));
    assert_eq!(found.from_arrival(), [Some(3), Some(39)]);
    let missed = Witness::Response { task: 1, job: 1, response: 39, deadline: 33 };
    assert_eq!(found.verdict(), Verdict::Infeasible(missed));
}

/// The same set is 39 to some tools (from the nominal arrival: SchedCAT, Tindell) and 37 to others
/// (from the actual release: the `response-time-analysis` crate, pyRTA, pyCPA). Both are given, by
/// name.
#[test]
fn there_are_two_response_times() {
    let jitters = vec![task(3, 8, 8), task(19, 33, 33).with_jitter(8)];
    let found = preemptive(&TaskSet::in_order(jitters));
    let response = found.tasks[1].outcome.response().unwrap();
    assert_eq!((response.from_arrival, response.from_release), (39, 37));
    let jobs: Vec<u64> = found.points(1).iter().map(|p| p.finish + 8 - (p.jobs - 1) * 33).collect();
    // The window ends with the fourth, which is done when the fifth may come.
    assert_eq!(jobs, [39, 37, 35, 33]);
}

/// SchedCAT and EVA look at the first job of a busy window only: 114 to them, but the fifth takes 118
/// (Lehoczky, RTSS 1990, example 3).
#[test]
fn the_whole_busy_window_is_looked_at() {
    let found = preemptive(&set(&[(26, 70, 70), (62, 100, 118)]));
    assert_eq!(found.from_arrival(), [Some(26), Some(118)]);
    assert_eq!(found.points(1)[0].finish, 114);
    let late = preemptive(&set(&[(26, 70, 70), (62, 100, 117)]));
    assert!(matches!(late.verdict(), Verdict::Infeasible(Witness::Response { job: 5, .. })));
}

/// EVA's `rta86` refuses a utilisation of exactly one; this set is feasible.
#[test]
fn a_full_processor_may_be_feasible() {
    let full = set(&[(5, 20, 20), (10, 40, 40), (40, 80, 80)]);
    assert_eq!(preemptive(&full).from_arrival(), [Some(5), Some(15), Some(80)]);
    assert_eq!(preemptive(&full).verdict(), Verdict::Feasible);
    assert_eq!(dynamic(&full).verdict(), Verdict::Feasible);
    let demand = qpa::feasible(&full, Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(demand.verdict, Verdict::Feasible);
    // A hair over one is no longer.
    let over = set(&[(5, 20, 20), (10, 40, 40), (40, 80, 80), (1, 1 << 60, 1 << 60)]);
    assert_eq!(preemptive(&over).tasks[3].verdict, Verdict::NoBound);
}

/// pyRTA compares tasks by value and drops a twin: 3 for two tasks of (3, 10), under fixed priorities
/// that are equal and under EDF. Both need 6.
#[test]
fn identical_tasks_are_two() {
    let twins = vec![task(3, 10, 10).with_priority(5); 2];
    let equal = TaskSet::new(twins.clone());
    assert_eq!(preemptive(&equal).from_arrival(), [Some(6), Some(6)]);
    assert_eq!(dynamic(&equal).from_arrival(), [Some(6), Some(6)]);
    assert_eq!(fifo::analyse(&equal).from_arrival(), [Some(6), Some(6)]);
    let each =
        |change: &dyn Fn(&Task) -> Task| TaskSet::new(equal.tasks().iter().map(change).collect());
    let bursty = each(&|task| task.with_bursts(&[10]).unwrap());
    let found = bursts::fixed_priority(&bursty, Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(found.from_arrival(), [Some(6), Some(6)]);
    let thresholds = each(&|task| task.with_threshold(5).unwrap());
    let found = thresholds::analyse(&thresholds, TimeModel::Discrete).analysis;
    assert_eq!(found.from_arrival(), [Some(6), Some(6)]);
    let phased = each(&|task| task.with_phase(Some(0)));
    assert_eq!(offsets::fixed_priority(&phased).analysis.from_arrival(), [Some(6), Some(6)]);
    let found = supply::fixed_priority(&equal, &Supply::periodic(4, 4).unwrap());
    assert_eq!(found.from_arrival(), [Some(6), Some(6)]);
}

/// pyRTA's arrival curves divide in floating point: beyond 2^53 a ceiling is one too small. EVA's
/// time is a 64-bit float altogether. Every analysis here is asked just where the ceiling jumps.
#[test]
fn times_beyond_floats_are_exact() {
    let edge = (1u64 << 53) + 1;
    let long = set(&[(1, edge, edge), (edge, 1 << 55, 1 << 55)]);
    let right = [Some(1), Some(edge + 2)];
    assert_eq!(preemptive(&long).from_arrival(), right);
    let first = long.tasks()[0].with_bursts(&[edge]).unwrap();
    let later = TaskSet::new(vec![first, long.tasks()[1].clone()]);
    let found = bursts::fixed_priority(&later, Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(found.from_arrival(), right);
    let own = long.tasks().iter().map(|task| task.with_threshold(task.priority()).unwrap());
    let thresholds = TaskSet::new(own.collect());
    let found = thresholds::analyse(&thresholds, TimeModel::Discrete).analysis;
    assert_eq!(found.from_arrival(), right);
    let found = supply::fixed_priority(&long, &Supply::periodic(1 << 40, 1 << 40).unwrap());
    assert_eq!(found.from_arrival(), right);
    // Under EDF the job of the second is due later than two of the first.
    assert_eq!(dynamic(&long).from_arrival()[1], Some(edge + 2));
    let demand = edf::demand::demand_bound(&long, 2 * edge);
    assert_eq!((demand, edf::demand::demand_bound(&long, 2 * edge - 1)), (2, 1));
}

/// Several published EDF sets have deadlines beyond periods, which demand tests that begin at
/// constrained deadlines get wrong. Three ways agree, and deadlines are as sharp as the responses.
#[test]
fn deadlines_beyond_periods_are_exact() {
    let times = dynamic(&set(&[(2, 5, 9), (5, 9, 14)])).from_arrival();
    let sharp = set(&[(2, 5, 9), (5, 9, times[1].unwrap())]);
    assert_eq!(dynamic(&sharp).verdict(), Verdict::Feasible);
    for (deadlines, feasible) in
        [((9, 14), true), ((9, 9), true), ((5, 6), false), ((1, 14), false)]
    {
        let set = set(&[(2, 5, deadlines.0), (5, 9, deadlines.1)]);
        let (sections, time) = (Sections::Preemptive, TimeModel::Discrete);
        let quick = qpa::feasible(&set, sections, time).verdict == Verdict::Feasible;
        let full = edf::demand::processor_demand(&set, sections, time) == Verdict::Feasible;
        let response = dynamic(&set).verdict() == Verdict::Feasible;
        assert_eq!((quick, full, response), (feasible, feasible, feasible), "{deadlines:?}");
    }
}

/// The crate's non-preemptive bounds are in discrete time, where who blocks began a unit before; the
/// continuous ones are one unit more. Which is meant is said.
#[test]
fn discrete_and_continuous_time_differ_by_a_unit() {
    let tasks = set(&[(2, 10, 10), (5, 20, 20)]);
    let bound =
        |time| fixed_priority::analyse(&tasks, Sections::NonPreemptive, time).from_arrival()[0];
    assert_eq!((bound(TimeModel::Discrete), bound(TimeModel::Continuous)), (Some(6), Some(7)));
}

/// A test of seL4 expects 60, 80 and 260 of three tasks under FIFO; the last task waits for all of
/// them, whichever it is.
#[test]
fn first_come_first_served_is_the_same_for_all() {
    let found = fifo::analyse(&set(&[(20, 100, 100), (20, 150, 150), (20, 350, 350)]));
    assert_eq!(found.from_arrival(), [Some(60); 3]);
}

/// Published figures were wrong because a set of tasks was given to a tool for sets of jobs: one
/// job of each makes its deadline, but the second job of the first does not.
#[test]
fn a_set_of_jobs_is_no_set_of_tasks() {
    let job = |id, cost, deadline| UncertainJob {
        id,
        release: (0, 0),
        cost: (cost, cost),
        deadline,
        priority: id,
    };
    let jobs = [job(0, 2, 5), job(1, 4, 11)];
    let explored = jobset::explore(&jobs, Ties::ById, StepLimit::default()).unwrap();
    assert_eq!(explored.verdict, Verdict::Feasible);
    let tasks = set(&[(2, 5, 5), (4, 11, 11)]);
    let found = fixed_priority::analyse(&tasks, Sections::NonPreemptive, TimeModel::Discrete);
    assert_eq!(found.from_arrival(), [Some(5), Some(6)]);
    let tasks = set(&[(2, 5, 4), (4, 11, 11)]);
    let found = fixed_priority::analyse(&tasks, Sections::NonPreemptive, TimeModel::Discrete);
    assert!(matches!(found.verdict(), Verdict::Infeasible(_)));
}

/// Tools run without end on windows that never end; here the effort is stated, and an answer comes.
#[test]
fn windows_that_never_end_are_given_up() {
    let jitters = vec![task(1, 3, 3).with_jitter(1), task((1 << 61) + 1, 3 << 60, u64::MAX)];
    let found = preemptive(&TaskSet::in_order(jitters));
    assert!(!matches!(found.verdict(), Verdict::Feasible | Verdict::Infeasible(_)));
    let late = vec![task(1, 2, 2).with_jitter(1), task(1 << 40, (1 << 41) + 1, u64::MAX)];
    let late = TaskSet::in_order(late);
    let (sections, time) = (Sections::Preemptive, TimeModel::Discrete);
    let few = fixed_priority::analyse_within(&late, sections, time, StepLimit::with_steps(0));
    assert_eq!(few.tasks[1].verdict, Verdict::Unknown(Refusal::TooLong));
}
