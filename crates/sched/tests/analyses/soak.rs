//! No simulated response exceeds its bound, on as many random sets as are asked for.
//!
//! `cargo xtask soak` runs a million sets; without `HOURGLASS_SOAK_SETS` there are a few hundred. Each
//! set is known by its number, which a failure prints; `HOURGLASS_SOAK_FIRST` begins there.
//! Each is analysed and simulated four ways: fixed priorities with jitter, blocking and any deadlines,
//! the same without preemption, EDF, and EDF without preemption; at the critical instant, and with
//! random phases, gaps and delays.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hourglass_documents::random::Stream;
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::{Analysis, Task, TaskSet, edf};
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, Jitter, Preemption, SimSettings, System, Thread,
};
use hourglass_tasks::generate::{Millionths, Recipe};

/// Sets without a wish: a second of a debug build.
const FEW: u64 = 300;

/// Virtual time of a simulation: some windows of the longest period.
const HORIZON: u64 = 2_000;

/// Looks of an analysis: what is not bounded within is not compared.
const EFFORT: StepLimit = StepLimit::with_steps(125_000);

const SEED: u64 = 2002;

const TIME: TimeModel = TimeModel::Discrete;

#[derive(Default)]
struct Tally {
    bounds: AtomicU64,
    reached: AtomicU64,
}

fn asked(name: &str, otherwise: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}: '{text}' is no number")),
        Err(_) => otherwise,
    }
}

/// Lehoczky 1990, Tindell et al. 1994, Davis et al. 2007, Spuri 1996, George et al. 1996: that all of
/// these bound what can happen is what they prove; that ours are theirs is what is tried here.
#[test]
fn no_simulated_response_exceeds_its_bound() {
    let (first, count) = (asked("HOURGLASS_SOAK_FIRST", 0), asked("HOURGLASS_SOAK_SETS", FEW));
    let (next, tally) = (AtomicU64::new(first), Tally::default());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let set = next.fetch_add(1, Ordering::Relaxed);
                    if set >= first + count {
                        return;
                    }
                    try_set(set, &tally);
                }
            });
        }
    });
    let (bounds, reached) = (tally.bounds.into_inner(), tally.reached.into_inner());
    println!("{count} sets from {first}: {bounds} bounds held, {reached} of them were reached");
    // Without that, nothing would have been tried.
    assert!(bounds > count && reached > bounds / 10, "{bounds} bounds, {reached} reached");
}

fn try_set(number: u64, tally: &Tally) {
    let mut dice = Stream::from_seeds(&[SEED, number]);
    let set = drawn(number, &mut dice);
    let plain: Vec<Task> = set.tasks().iter().map(|task| task.with_blocking(0)).collect();
    let plain = TaskSet::new(plain);
    for sections in [Sections::Preemptive, Sections::NonPreemptive] {
        // Under other sections the analysis finds the blocking itself.
        let set = if sections == Sections::Preemptive { &set } else { &plain };
        let fixed = fixed_priority::analyse_within(set, sections, TIME, EFFORT);
        try_both(number, set, sections, false, &fixed, &mut dice, tally);
        let by_deadline = edf::response_times_within(set, sections, TIME, EFFORT);
        try_both(number, set, sections, true, &by_deadline, &mut dice, tally);
    }
}

/// Up to six tasks with periods of 10 to 200, of any utilisation, deadline and jitter.
fn drawn(number: u64, dice: &mut Stream) -> TaskSet {
    let tasks = dice.between(1, 6) as usize;
    let jitter = if dice.below(2) == 0 { 0 } else { dice.between(1, 1_500_000) };
    let recipe = Recipe {
        seed: SEED,
        tasks,
        periods: "log-uniform:10ns,200ns".parse().expect("periods"),
        granularity: "1ns".parse().expect("a time"),
        cost_granularity: "1ns".parse().expect("a time"),
        deadlines: "share:0.3,3".parse().expect("a range of shares"),
        jitter: (Millionths::ZERO, Millionths::new(jitter)),
        ..Recipe::default()
    };
    // A unit each of the shortest period fits into this.
    let least = tasks as u64 * 100_000;
    let utilisation = Millionths::new(dice.between(least.max(300_000), 1_000_000));
    let source = recipe.at(utilisation).expect("a utilisation that can be drawn");
    let blocking = if dice.below(2) == 0 { 0 } else { dice.between(1, 60) };
    let drawn = source.draw(number).expect("without discarding, every draw is a set");
    let tasks = drawn.iter().map(|task| {
        let made = Task::new(task.cost, task.period, task.deadline).expect("a drawn task");
        // Some equals.
        let priority = dice.below(tasks as u64) as u32 + 2;
        made.with_jitter(task.jitter).with_blocking(blocking).with_priority(priority)
    });
    TaskSet::new(tasks.collect())
}

fn try_both(
    number: u64,
    set: &TaskSet,
    sections: Sections,
    by_deadline: bool,
    analysis: &Analysis,
    dice: &mut Stream,
    tally: &Tally,
) {
    let critical = system(set, sections, by_deadline, None);
    let random = system(set, sections, by_deadline, Some(dice));
    for system in [critical, random] {
        let settings = SimSettings::until(HORIZON).with_seed(number);
        let outcome = sim::run(&system, settings).expect("a system that makes sense");
        for (at, task) in analysis.tasks.iter().enumerate() {
            let Some(bound) = task.outcome.response() else { continue };
            let thread = &outcome.threads[at];
            let arrival = thread.max_response.unwrap_or(0);
            let release = thread.max_response_from_release.unwrap_or(0);
            assert!(
                arrival <= bound.from_arrival && release <= bound.from_release,
                "set {number}, task {at}, {sections:?}, EDF {by_deadline}: {arrival} from arrival, \
                 {release} from release, bound {bound:?}: {set:?}"
            );
            tally.bounds.fetch_add(1, Ordering::Relaxed);
            tally.reached.fetch_add(u64::from(arrival == bound.from_arrival), Ordering::Relaxed);
        }
    }
}

/// The set on a CPU, and behind it the blocking thread, of a lower class and never preempted. `random`
/// draws phases, gaps and delays; without it all are released at once after their worst delay, a
/// unit after the blocking has begun.
fn system(
    set: &TaskSet,
    sections: Sections,
    by_deadline: bool,
    mut random: Option<&mut Stream>,
) -> System {
    let blocking = set.tasks().iter().map(Task::blocking).max().unwrap_or(0);
    let latest = set.tasks().iter().map(Task::jitter).max().unwrap_or(0);
    let mut system = System::new(1);
    for task in set.tasks() {
        let mut thread =
            Thread::periodic(task.cost(), task.period()).with_deadline(task.deadline());
        thread = match by_deadline {
            true => thread.with_class(Class::Edf),
            false => thread.with_priority(task.priority()),
        };
        if sections == Sections::NonPreemptive {
            thread.preemption = Preemption::None;
        }
        let period = task.period();
        if let Some(dice) = &mut random {
            let (offset, extra) = (dice.below(2 * period), dice.below(period));
            thread.arrivals = match dice.below(3) {
                0 => ArrivalPattern::Sporadic { offset, period, extra },
                _ => ArrivalPattern::Periodic { offset, period },
            };
            thread.jitter = Jitter::Random(task.jitter());
        } else {
            let offset = latest - task.jitter() + 1;
            thread.arrivals = ArrivalPattern::Periodic { offset, period };
            thread.jitter = Jitter::Worst(task.jitter());
        }
        system.threads.push(thread);
    }
    if blocking > 0 {
        // Of which a unit has passed when the others come.
        let mut blocker = Thread::periodic(blocking + 1, HORIZON).with_priority(1);
        blocker.preemption = Preemption::None;
        let offset = match random {
            None => latest,
            Some(dice) => dice.below(HORIZON / 2),
        };
        blocker.arrivals = ArrivalPattern::Periodic { offset, period: HORIZON };
        system.threads.push(blocker);
    }
    system
}
