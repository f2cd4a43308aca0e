//! Properties that every bound and verdict must have, on random sets.
//!
//! `HOURGLASS_CASES` says how many sets (500 without it; a million takes hours in a debug build),
//! `HOURGLASS_SEED` where the seeds begin. Each set has its own seed; what fails names it, and
//! `HOURGLASS_CASES=1 HOURGLASS_SEED=...` repeats it.

use hourglass_dice::Dice;
use hourglass_sched::bursts;
use hourglass_sched::edf::{self, qpa};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::offsets;
use hourglass_sched::supply::{self, Supply};
use hourglass_sched::task::CriticalSection;
use hourglass_sched::thresholds;
use hourglass_sched::{
    Analysis, Task, TaskSet, Verdict, assign, bounds, checker, fifo, global, spin,
};

/// Some tasks whose utilisation is mostly below one, periods of 2 to 200 units, one in four with
/// jitter.
fn random_tasks(dice: &mut Dice) -> Vec<Task> {
    let count = dice.between(1, 6);
    let tasks = (0..count).map(|_| {
        let period = dice.between(2, if count > 3 { 200 } else { 40 });
        let cost = (period * dice.between(1, 22 / count) / 20).max(1);
        let deadline = if dice.one_in(2) { period } else { dice.between(cost, 2 * period) };
        let jitter = if dice.one_in(4) { dice.between(0, period) } else { 0 };
        let (np, last) = (dice.between(0, cost), dice.between(0, cost));
        let made = Task::new(cost, period, deadline).unwrap().with_jitter(jitter);
        made.with_segments(np, last.min(np)).unwrap()
    });
    tasks.collect()
}

fn number(variable: &str, without: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(without)
}

/// Calls `property` with dice of each seed.
fn for_all(property: impl Fn(&mut Dice)) {
    let (first, cases) = (number("HOURGLASS_SEED", 1), number("HOURGLASS_CASES", 500));
    for seed in first..first.saturating_add(cases) {
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            property(&mut Dice::new(seed));
        }));
        if let Err(why) = tried {
            eprintln!("again with HOURGLASS_CASES=1 HOURGLASS_SEED={seed}");
            std::panic::resume_unwind(why);
        }
    }
}

fn analyse(set: &TaskSet, sections: Sections) -> Analysis {
    fixed_priority::analyse(set, sections, TimeModel::Discrete)
}

/// Every analysis of a set that gives bounds, by name. `extra` decides thresholds, bursts, phases and
/// the supply in the same way for the same set.
fn with_thresholds(set: &TaskSet, above: u32) -> TaskSet {
    let threshold = |t: &Task| t.with_threshold(t.priority().saturating_add(above)).unwrap();
    TaskSet::new(set.tasks().iter().map(threshold).collect())
}

fn with_bursts(set: &TaskSet, later: &[u64]) -> TaskSet {
    TaskSet::new(set.tasks().iter().map(|t| t.with_bursts(later).unwrap()).collect())
}

fn with_phases(set: &TaskSet, phases: &[Option<u64>]) -> TaskSet {
    let tasks = set.tasks().iter().zip(phases);
    TaskSet::new(tasks.map(|(task, phase)| task.with_phase(*phase)).collect())
}

fn all_bounds(set: &TaskSet, extra: u64) -> Vec<(&'static str, Vec<Option<u64>>)> {
    let (discrete, continuous) = (TimeModel::Discrete, TimeModel::Continuous);
    let thresholds = with_thresholds(set, extra as u32 % 3);
    let bursty = with_bursts(set, &[extra % 7, extra % 7 + extra % 5]);
    let supply = Supply::periodic(8, 5 + extra % 4).unwrap();
    let of = |sections| fixed_priority::analyse(set, sections, discrete).from_arrival();
    vec![
        ("preemptive", of(Sections::Preemptive)),
        ("non-preemptive", of(Sections::NonPreemptive)),
        ("limited", of(Sections::Limited)),
        ("floating", of(Sections::Floating)),
        ("thresholds", thresholds::analyse(&thresholds, continuous).analysis.from_arrival()),
        (
            "bursts",
            bursts::fixed_priority(&bursty, Sections::ALL[extra as usize % 4], discrete)
                .from_arrival(),
        ),
        ("supply", supply::fixed_priority(set, &supply).from_arrival()),
    ]
}

/// Under EDF, whether a set is feasible by demand, with segments too, and in a reservation.
fn all_demands(set: &TaskSet, extra: u64) -> Vec<(&'static str, bool)> {
    let discrete = TimeModel::Discrete;
    let feasible = |sections| qpa::feasible(set, sections, discrete).verdict == Verdict::Feasible;
    let bursty = with_bursts(set, &[extra % 7, extra % 7 + extra % 5]);
    let supply = Supply::periodic(8, 5 + extra % 4).unwrap();
    let bursts = bursts::edf(&bursty, Sections::Preemptive, discrete).verdict;
    let supplied = supply::edf::feasible(set, &supply).verdict;
    vec![
        ("preemptive", feasible(Sections::Preemptive)),
        ("non-preemptive", feasible(Sections::NonPreemptive)),
        ("floating", feasible(Sections::Floating)),
        ("bursts", bursts == Verdict::Feasible),
        ("supply", supplied == Verdict::Feasible),
    ]
}

/// The order in which tasks are given does not matter, their priorities do.
#[test]
fn permuting_changes_nothing() {
    for_all(|dice| {
        let set = TaskSet::in_order(random_tasks(dice));
        let (turn, extra) = (dice.between(0, 5) as usize % set.len(), dice.roll() % 1_000);
        let mut turned = set.tasks().to_vec();
        turned.rotate_left(turn);
        let turned = TaskSet::new(turned);
        for ((name, mut before), (_, after)) in
            all_bounds(&set, extra).into_iter().zip(all_bounds(&turned, extra))
        {
            before.rotate_left(turn);
            assert_eq!(before, after, "{name}: {set:?}");
        }
        assert_eq!(all_demands(&set, extra), all_demands(&turned, extra), "{set:?}");
    });
}

/// A copy of a task with equal priority has the same bound, and shortens no other bound.
#[test]
fn duplicating_never_helps() {
    for_all(|dice| {
        let set = TaskSet::in_order(random_tasks(dice));
        let (which, extra) = (dice.between(0, 5) as usize % set.len(), dice.roll() % 1_000);
        let mut twins = set.tasks().to_vec();
        twins.push(twins[which].clone());
        let twins = TaskSet::new(twins);
        for ((name, before), (_, after)) in
            all_bounds(&set, extra).into_iter().zip(all_bounds(&twins, extra))
        {
            assert_eq!(after[which], after[set.len()], "{name}: {set:?}");
            for (before, after) in before.iter().zip(&after) {
                assert!(after.is_none_or(|a| before.is_some_and(|b| b <= a)), "{name}: {set:?}");
            }
        }
        for ((name, before), (_, after)) in
            all_demands(&set, extra).into_iter().zip(all_demands(&twins, extra))
        {
            assert!(before || !after, "{name}: {set:?}");
        }
    });
}

/// k times all times make k times all bounds, where no unit of discrete time is counted.
#[test]
fn scaling_scales() {
    for_all(|dice| {
        let set = TaskSet::in_order(random_tasks(dice));
        let k = dice.between(2, 1 << 40);
        let scaled = |t: &Task| {
            let made = Task::new(t.cost() * k, t.period() * k, t.deadline() * k).unwrap();
            made.with_jitter(t.jitter() * k).with_priority(t.priority())
        };
        let scaled = TaskSet::new(set.tasks().iter().map(scaled).collect());
        let same = |name: &str, one: &Analysis, many: &Analysis| {
            let one: Vec<_> = one.from_arrival().iter().map(|r| r.map(|r| r * k)).collect();
            assert_eq!(one, many.from_arrival(), "{name}: {k} times {set:?}");
        };
        let (sections, time) = (Sections::Preemptive, TimeModel::Continuous);
        same("preemptive", &analyse(&set, sections), &analyse(&scaled, sections));
        let times = |set| edf::response_times(set, sections, time);
        same("edf", &times(&set), &times(&scaled));
        let own = |set: &TaskSet| thresholds::analyse(&with_thresholds(set, 1), time).analysis;
        same("thresholds", &own(&set), &own(&scaled));
        let supply = |k| Supply::periodic(8 * k, 6 * k).unwrap();
        let supplied = |set, k| supply::fixed_priority(set, &supply(k));
        same("supply", &supplied(&set, 1), &supplied(&scaled, k));
        let demand = |set| qpa::feasible(set, sections, time).verdict == Verdict::Feasible;
        assert_eq!(demand(&set), demand(&scaled), "{k} times {set:?}");
    });
}

/// More cost, jitter or blocking of one task shortens no bound.
#[test]
fn growing_never_helps() {
    for_all(|dice| {
        let set = TaskSet::in_order(random_tasks(dice));
        let (which, what) = (dice.between(0, 5) as usize % set.len(), dice.between(0, 2));
        let (by, extra) = (dice.between(1, 5), dice.roll() % 1_000);
        let mut grown = set.tasks().to_vec();
        let t = grown[which].clone();
        grown[which] = match what {
            0 => {
                let made = Task::new(t.cost() + by, t.period(), t.deadline()).unwrap();
                let made = made.with_segments(t.longest_segment(), t.last_segment()).unwrap();
                made.with_jitter(t.jitter()).with_priority(t.priority())
            }
            1 => t.with_jitter(t.jitter() + by),
            _ => t.with_blocking(t.blocking() + by),
        };
        let grown = TaskSet::new(grown);
        for ((name, before), (_, after)) in
            all_bounds(&set, extra).into_iter().zip(all_bounds(&grown, extra))
        {
            for (before, after) in before.iter().zip(&after) {
                let holds = after.is_none_or(|a| before.is_some_and(|b| b <= a));
                assert!(holds, "{name}: {set:?}, {which} grown: {grown:?}");
            }
        }
        for ((name, before), (_, after)) in
            all_demands(&set, extra).into_iter().zip(all_demands(&grown, extra))
        {
            assert!(before || !after, "{name}: {set:?}, {which} grown: {grown:?}");
        }
    });
}

/// Exact tests accept whatever sufficient ones do: Liu and Layland, hyperbolic, response times, EDF.
#[test]
fn exact_tests_accept_what_sufficient_ones_do() {
    for_all(|dice| {
        let tasks = random_tasks(dice);
        let implicit = tasks.iter().map(|t| Task::new(t.cost(), t.period(), t.period()).unwrap());
        let set = assign::rate_monotonic(&implicit.collect::<Vec<_>>());
        let accepted = [
            bounds::liu_layland(&set),
            bounds::hyperbolic(&set),
            analyse(&set, Sections::Preemptive).verdict(),
            qpa::feasible(&set, Sections::Preemptive, TimeModel::Discrete).verdict,
        ];
        assert!(accepted.map(|v| v == Verdict::Feasible).is_sorted(), "{accepted:?}: {set:?}");

        let set = assign::deadline_monotonic(&tasks);
        for sections in Sections::ALL {
            let fixed = analyse(&set, sections).verdict() == Verdict::Feasible;
            let best = assign::audsley(&tasks, sections, TimeModel::Discrete);
            assert!(!fixed || best.is_some(), "{sections:?}: {set:?}");
        }
        let fixed = analyse(&set, Sections::Preemptive).verdict() == Verdict::Feasible;
        let demand = qpa::feasible(&set, Sections::Preemptive, TimeModel::Discrete).verdict;
        let times = edf::response_times(&set, Sections::Preemptive, TimeModel::Discrete).verdict();
        assert!(!fixed || demand == Verdict::Feasible, "{set:?}");
        if !matches!(times, Verdict::Unknown(_)) {
            assert_eq!(times == Verdict::Feasible, demand == Verdict::Feasible, "{set:?}");
        }
    });
}

/// An analysis for the verdict alone finds the same verdict, earlier.
#[test]
fn a_verdict_without_bounds_is_the_same() {
    for_all(|dice| {
        let set = TaskSet::in_order(random_tasks(dice));
        for sections in Sections::ALL {
            let all = analyse(&set, sections).verdict();
            let quick = fixed_priority::verdict_within(
                &set,
                sections,
                TimeModel::Discrete,
                StepLimit::default(),
            );
            let kind = std::mem::discriminant;
            assert_eq!(kind(&all), kind(&quick), "{sections:?}: {all:?}, {quick:?}: {set:?}");
        }
    });
}

/// Knowing more never makes a bound longer: phases, and a whole processor in the place of a part.
#[test]
fn knowing_more_never_hurts() {
    for_all(|dice| {
        let set = TaskSet::in_order(random_tasks(dice));
        let phases: Vec<Option<u64>> =
            (0..set.len()).map(|_| Some(dice.between(0, 40)).filter(|at| at % 5 > 0)).collect();
        let any = analyse(&set, Sections::Preemptive).from_arrival();
        if set.tasks().iter().all(|t| t.period() <= 40) {
            let known = offsets::fixed_priority(&with_phases(&set, &phases)).analysis;
            for (known, any) in known.from_arrival().iter().zip(&any) {
                assert!(any.is_none_or(|a| known.is_some_and(|k| k <= a)), "{phases:?} {set:?}");
            }
        }
        let whole = supply::fixed_priority(&set, &Supply::periodic(7, 7).unwrap());
        let part = supply::fixed_priority(&set, &Supply::periodic(7, 6).unwrap());
        for (whole, part) in whole.from_arrival().iter().zip(part.from_arrival()) {
            assert!(part.is_none_or(|p| whole.is_some_and(|w| w <= p)), "{set:?}");
        }
    });
}

/// Every answer passes its substitution check, in release builds too.
#[test]
fn answers_are_proven() {
    for_all(|dice| {
        let set = TaskSet::in_order(random_tasks(dice));
        for (sections, time) in Sections::ALL
            .iter()
            .flat_map(|s| [TimeModel::Discrete, TimeModel::Continuous].map(|time| (*s, time)))
        {
            let found = fixed_priority::analyse(&set, sections, time);
            assert_eq!(checker::fixed_priority(&set, sections, time, &found), Ok(()), "{set:?}");
            let found = edf::response_times(&set, sections, time);
            assert_eq!(checker::edf(&set, sections, time, &found), Ok(()), "{set:?}");
            let found = qpa::feasible(&set, sections, time);
            assert_eq!(checker::demand(&set, sections, time, &found), Ok(()), "{set:?}");
        }
    });
}

/// An analysis: its name, its verdict, and which of the changes below it knows.
type NamedAnalysis = (&'static str, fn(&TaskSet, Supply) -> Verdict, Option<usize>);
const ONE_CPU: [NamedAnalysis; 17] = [
    ("fp", |s, _| analyse(s, Sections::Preemptive).verdict(), None),
    (
        "fp verdict",
        |s, _| {
            let (sections, time) = (Sections::Preemptive, TimeModel::Discrete);
            fixed_priority::verdict_within(s, sections, time, StepLimit::default())
        },
        None,
    ),
    (
        "fp of one",
        |s, _| fixed_priority::verdict_of(s, 1, Sections::Preemptive, TimeModel::Discrete),
        None,
    ),
    ("fifo", |s, _| fifo::analyse(s).verdict(), None),
    (
        "bursts",
        |s, _| bursts::fixed_priority(s, Sections::Preemptive, TimeModel::Discrete).verdict(),
        Some(0),
    ),
    (
        "bursts edf",
        |s, _| bursts::edf(s, Sections::Preemptive, TimeModel::Discrete).verdict,
        Some(0),
    ),
    ("phases", |s, _| offsets::fixed_priority(s).analysis.verdict(), Some(1)),
    ("thresholds", |s, _| thresholds::analyse(s, TimeModel::Discrete).analysis.verdict(), Some(2)),
    (
        "spin",
        |s, _| spin::analyse(s.tasks(), spin::SpinBound::Inflation).unwrap().verdict(),
        Some(3),
    ),
    (
        "edf",
        |s, _| edf::response_times(s, Sections::Preemptive, TimeModel::Discrete).verdict(),
        None,
    ),
    ("edf suspension", |s, _| edf::suspension::response_times(s).verdict(), None),
    ("qpa", |s, _| qpa::feasible(s, Sections::Preemptive, TimeModel::Discrete).verdict, None),
    (
        "demand",
        |s, _| edf::demand::processor_demand(s, Sections::Preemptive, TimeModel::Discrete),
        None,
    ),
    ("supply", |s, supply| supply::fixed_priority(s, &supply).verdict(), None),
    ("supply edf", |s, supply| supply::edf::feasible(s, &supply).verdict, None),
    ("liu-layland", |s, _| bounds::liu_layland(s), None),
    ("hyperbolic", |s, _| bounds::hyperbolic(s), None),
];
const SEVERAL: [NamedAnalysis; 3] = [
    ("global edf", |s, _| global::edf::analyse(s, 2).verdict, None),
    ("global edf rta", |s, _| global::edf_response::analyse(s, 2).verdict(), None),
    (
        "global fp",
        |s, _| {
            let bound = global::fixed_priority::Bound::LimitedCarryIn;
            global::fixed_priority::analyse(s, 2, bound).verdict()
        },
        None,
    ),
];

/// Each analysis either knows bursts, phases, thresholds and critical sections, or says that it does not:
/// none passes over them. Whatever is promised otherwise would be wrong.
#[test]
fn nothing_is_passed_over() {
    let plain = TaskSet::in_order(vec![
        Task::new(1, 10, 10).unwrap(),
        Task::new(1, 12, 12).unwrap(),
        Task::new(1, 15, 15).unwrap(),
    ]);
    let section = CriticalSection { resource: 0, count: 1, length: 1 };
    let changes: [&dyn Fn(&Task) -> Task; 4] = [
        &|task| task.with_bursts(&[0]).unwrap(),
        &|task| task.with_phase(Some(3)),
        &|task| task.with_threshold(u32::MAX).unwrap(),
        &|task| task.with_critical_sections(&[section]),
    ];
    let (time, supply) = (TimeModel::Discrete, Supply::periodic(4, 3).unwrap());
    for (name, analysis, known) in ONE_CPU.iter().chain(&SEVERAL) {
        assert_eq!(analysis(&plain, supply), Verdict::Feasible, "{name}");
        for (at, change) in changes.iter().enumerate() {
            let mut tasks = plain.tasks().to_vec();
            tasks[2] = change(&tasks[2]);
            let found = analysis(&TaskSet::new(tasks), supply);
            let refused = !matches!(found, Verdict::Feasible | Verdict::Infeasible(_));
            assert_eq!(refused, *known != Some(at), "{name} of what {at} has: {found:?}");
        }
    }
    assert_eq!(assign::audsley(&[changes[0](&plain.tasks()[0])], Sections::Preemptive, time), None);
}
