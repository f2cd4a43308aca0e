//! What the kernel costs, charged to the tasks.
//!
//! Owns: [`charge`], which makes of a set without costs one with costs, so that every analysis of
//! the latter holds for the former on a real kernel (the accounting of Liu, Real-Time Systems, 2000,
//! section 6.8, and Brandenburg, PhD thesis, UNC 2011, section 3.5); [`slowed`]. Must not: measure
//! costs, bound responses.
//!
//! | cost | charged as |
//! |---|---|
//! | context switch | two to every job: to it, and from it back to whom it preempted; two more for each lock that it waits for, whose holder runs first; and one that has just begun, as blocking |
//! | caches | once to every job, for the job that it preempts when it begins; once more for each lock that it waits for: it preempts who held it, or that one had to fill its caches first |
//! | tick | a task above all others; and what is not preempted becomes longer by the ticks in it |
//! | granularity of timers | release jitter |

use crate::sections::Sections;
use crate::task::{Task, TaskError, TaskSet};

/// Execution times of the kernel; 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelOverheads {
    /// One context switch.
    pub switch: u64,
    /// The longest time in which a preempted job fills the caches again.
    pub caches: u64,
    /// The tick, if there is one.
    pub tick: Option<Tick>,
    /// Releases happen at multiples of this only; 0 for any time.
    pub granularity: u64,
}

/// An interrupt that comes again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The time between two ticks.
    pub period: u64,
    /// The execution time of a tick; below the period.
    pub cost: u64,
}

/// Costs that cannot be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverheadError {
    /// The tick takes all time.
    #[error("a tick that takes {cost} every {period} leaves no time; give its cost and its period")]
    Tick {
        /// The execution time of a tick.
        cost: u64,
        /// The time between two.
        period: u64,
    },
    /// How often a job suspends itself is not known, and so not how often it is switched to.
    #[error("task {0} suspends itself, and how many context switches that costs is not known")]
    Suspension(usize),
    /// The effect of costs on bursts, phases, thresholds and critical sections is not known here.
    #[error(
        "task {0} has bursts, a phase, a threshold or critical sections before costs are charged"
    )]
    NotPlain(usize),
    /// A number has more than 64 bits.
    #[error("a time has more than 64 bits")]
    Overflow,
    /// A task with its costs cannot be meant.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// A set with costs: the tasks in the order given, and the tick if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InflatedTaskSet {
    tasks: Vec<Task>,
    tick: Option<Tick>,
}

impl KernelOverheads {
    /// A critical section of this length with the two switches around it; `None` if that has more
    /// than 64 bits.
    #[must_use]
    pub fn with_switches(&self, section: u64) -> Option<u64> {
        section.checked_add(self.switch)?.checked_add(self.switch)
    }

    /// Whether switches and caches cost nothing.
    #[must_use]
    pub fn switches_are_free(&self) -> bool {
        self.switch == 0 && self.caches == 0
    }
}

/// How long `work` takes at most where only `rate.0` of `rate.1` of it is done in any time, as beside
/// another hardware thread of the core. `None` if it is never done, or has more than 64 bits.
#[must_use]
pub fn slowed(work: u64, rate: (u64, u64)) -> Option<u64> {
    let (done, of) = rate;
    let all = u128::from(work).checked_mul(of.into())?;
    u64::try_from(all.checked_add(u128::from(done).checked_sub(1)?)? / u128::from(done)).ok()
}

/// Charges `costs` to the tasks of a set that are preempted according to `sections`. A job of the task
/// at position i waits for `waits[i]` locks at most that others hold; none beyond the end.
///
/// # Errors
/// A tick without time between two; a task that is not plain; suspension where switches or caches cost something; times that
/// have more than 64 bits.
pub fn charge(
    set: &TaskSet,
    sections: Sections,
    costs: &KernelOverheads,
    waits: &[u64],
) -> Result<InflatedTaskSet, OverheadError> {
    let tick = costs.tick.filter(|tick| tick.cost > 0);
    if let Some(Tick { period, cost }) = tick.filter(|tick| tick.cost >= tick.period) {
        return Err(OverheadError::Tick { cost, period });
    }
    if let Some(task) = set.tasks().iter().position(|task| !task.is_plain()) {
        return Err(OverheadError::NotPlain(task));
    }
    let suspends = set.tasks().iter().position(|task| task.suspension > 0);
    if let Some(task) = suspends.filter(|_| !costs.switches_are_free()) {
        return Err(OverheadError::Suspension(task));
    }
    let asks = |position: usize| waits.get(position).copied().unwrap_or(0);
    let charged = set.tasks().iter().enumerate();
    let charged =
        charged.map(|(position, task)| with_costs(task, sections, costs, tick, asks(position)));
    Ok(InflatedTaskSet { tasks: charged.collect::<Result<_, _>>()?, tick })
}

/// A task with its share of the costs.
fn with_costs(
    task: &Task,
    sections: Sections,
    costs: &KernelOverheads,
    tick: Option<Tick>,
    waits: u64,
) -> Result<Task, OverheadError> {
    let sum = |parts: &[u64]| {
        let sum = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(*part));
        sum.ok_or(OverheadError::Overflow)
    };
    let times = waits.checked_add(1).ok_or(OverheadError::Overflow)?;
    let once = sum(&[costs.switch, costs.switch, costs.caches])?;
    let job = once.checked_mul(times).ok_or(OverheadError::Overflow)?;
    let cost = sum(&[task.cost, job])?;
    // A job that is never preempted still is not; of others, what is added may be preempted, so that
    // the last segment stays what it was.
    let whole = task.np == task.cost && task.last == task.cost;
    let segment = if task.np > 0 { sum(&[task.np, job])? } else { 0 };
    let last = if whole { cost } else { task.last };
    let stretched = |time: u64| match tick {
        Some(tick) => tick.stretch(time).ok_or(OverheadError::Overflow),
        None => Ok(time),
    };
    let (cost, segment, last) = match sections {
        Sections::Preemptive => (cost, segment, last),
        Sections::NonPreemptive => (stretched(cost)?, segment, last),
        Sections::Floating => (cost, stretched(segment)?, last),
        Sections::Limited if whole => (stretched(cost)?, stretched(cost)?, stretched(cost)?),
        Sections::Limited => (sum(&[cost, stretched(last)? - last])?, stretched(segment)?, last),
    };
    let made = Task::new(cost.max(segment), task.period, task.deadline)?;
    let made = made.with_segments(segment, last)?.with_suspension(task.suspension);
    let blocking = sum(&[task.blocking, costs.switch])?;
    let jitter = sum(&[task.jitter, costs.granularity])?;
    Ok(made.with_blocking(blocking).with_jitter(jitter).with_priority(task.priority))
}

impl Tick {
    /// How long something of this length takes at most if nothing but ticks interrupts it; `None` if
    /// that has more than 64 bits.
    fn stretch(&self, time: u64) -> Option<u64> {
        if time == 0 {
            return Some(0);
        }
        let free = self.period.checked_sub(self.cost).filter(|free| *free > 0)?;
        // In every period of wall time, `free` of it is left; then n ticks are enough.
        let ticks = time.div_ceil(free);
        time.checked_add(ticks.checked_mul(self.cost)?)
    }
}

impl InflatedTaskSet {
    /// The tasks with their costs, without the tick.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Adds tasks that cost nothing more, as servers, behind those that there are.
    #[must_use]
    pub fn with_tasks(mut self, others: &[Task]) -> InflatedTaskSet {
        self.tasks.extend_from_slice(others);
        self
    }

    /// Adds to each task how long others block it, as by locks. Zero beyond the end.
    ///
    /// # Errors
    /// Times that have more than 64 bits.
    pub fn blocked(mut self, blocking: &[u64]) -> Result<InflatedTaskSet, OverheadError> {
        for (task, more) in self.tasks.iter_mut().zip(blocking) {
            task.blocking = task.blocking.checked_add(*more).ok_or(OverheadError::Overflow)?;
        }
        Ok(self)
    }

    /// For fixed priorities: the tasks, and behind them the tick above them all.
    #[must_use]
    pub fn by_priority(self) -> Vec<Task> {
        let mut tasks = self.tasks;
        let Some(tick) = self.tick else { return tasks };
        if tasks.iter().any(|task| task.priority == u32::MAX) {
            tasks = ranked(&tasks);
        }
        // The bounds of ticks themselves are not needed.
        tasks
            .extend(Task::new(tick.cost, tick.period, u64::MAX).map(|t| t.with_priority(u32::MAX)));
        tasks
    }

    /// For EDF: the tasks, and behind them the tick, due when the next one comes. One more tick is
    /// blocking, which together is no less than the ticks of any interval up to a deadline; beyond
    /// the deadline a bound of a response does not hold.
    ///
    /// # Errors
    /// Times that have more than 64 bits.
    pub fn by_deadline(self) -> Result<Vec<Task>, OverheadError> {
        let Some(tick) = self.tick else { return Ok(self.tasks) };
        let every = vec![tick.cost; self.tasks.len()];
        let mut tasks = self.blocked(&every)?.tasks;
        tasks.push(Task::new(tick.cost, tick.period, tick.period)?);
        Ok(tasks)
    }
}

/// The order of priorities of `tasks` in small numbers, so that there is room above.
fn ranked(tasks: &[Task]) -> Vec<Task> {
    let mut priorities: Vec<u32> = tasks.iter().map(Task::priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let rank = |task: &Task| {
        let below = priorities.partition_point(|priority| *priority < task.priority);
        task.with_priority(u32::try_from(below).unwrap_or(u32::MAX - 1))
    };
    tasks.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edf::{self, qpa};
    use crate::fixed_priority::{self, TimeModel};
    use crate::verdict::Verdict;

    const DISCRETE: TimeModel = TimeModel::Discrete;

    fn set_of(numbers: &[(u64, u64, u64, u64)]) -> TaskSet {
        let task = |(period, tenths, jitter, np): &(u64, u64, u64, u64)| {
            let cost = (period * tenths / 20).max(1);
            let made = Task::new(cost, *period, *period).unwrap().with_jitter(jitter / 4);
            made.with_segments(*np.min(&cost), 1).unwrap()
        };
        TaskSet::in_order(numbers.iter().map(task).collect())
    }

    fn set(charged: InflatedTaskSet) -> TaskSet {
        TaskSet::new(charged.by_priority())
    }

    fn demand(charged: InflatedTaskSet, sections: Sections) -> Verdict {
        let set = TaskSet::new(charged.by_deadline().unwrap());
        qpa::feasible(&set, sections, DISCRETE).verdict
    }

    fn numbers() -> impl Strategy<Value = Vec<(u64, u64, u64, u64)>> {
        proptest::collection::vec((10..60u64, 1..7u64, 0..9u64, 1..6u64), 1..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Overheads of 0 change nothing.
        #[test]
        fn no_costs_no_change(numbers in numbers(), kind in 0..4usize) {
            let set = set_of(&numbers);
            let charged = charge(&set, Sections::ALL[kind], &KernelOverheads::default(), &[]).unwrap();
            prop_assert_eq!(charged.tasks(), set.tasks());
            prop_assert_eq!(charged.clone().by_priority(), set.tasks());
            prop_assert_eq!(charged.by_deadline().unwrap(), set.tasks());
        }

        /// More costs never shorten a bound, under EDF never make a set feasible.
        #[test]
        fn costs_grow_bounds(
            numbers in numbers(), kind in 0..4usize, a in (0..3u64, 0..3u64, 0..3u64, 0..3u64),
            b in (0..3u64, 0..3u64, 0..3u64, 0..3u64)
        ) {
            let set = set_of(&numbers);
            let of = |(switch, caches, cost, granularity)| {
                let tick = Some(Tick { period: 10, cost });
                charge(&set, Sections::ALL[kind], &KernelOverheads { switch, caches, tick, granularity }, &[1]).unwrap()
            };
            let less = of(a);
            let more = of((a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3 + b.3));
            let times = |of: &InflatedTaskSet| {
                let set = super::tests::set(of.clone());
                fixed_priority::analyse(&set, Sections::ALL[kind], DISCRETE).from_arrival()
            };
            for (less, more) in times(&less).iter().zip(times(&more)).take(set.len()) {
                prop_assert!(more.is_none_or(|more| less.is_some_and(|less| less <= more)));
            }
            if demand(more.clone(), Sections::ALL[kind]) == Verdict::Feasible {
                prop_assert_eq!(demand(less, Sections::ALL[kind]), Verdict::Feasible);
                let with_tick = TaskSet::new(more.by_deadline().unwrap());
                let times = edf::response_times(&with_tick, Sections::ALL[kind], DISCRETE);
                let of_tasks = times.tasks.iter().take(set.len());
                prop_assert!(of_tasks.into_iter().all(|task| task.verdict == Verdict::Feasible));
            }
        }

        /// Ticks from any phase, one unit after the other: nothing takes longer than is charged.
        #[test]
        fn ticks_stretch_no_further(time in 1..60u64, period in 2..12u64, a in 1..12u64, phase in 0..12u64) {
            let tick = Tick { period, cost: 1 + a % (period - 1).max(1) };
            prop_assume!(tick.cost < period);
            let (mut left, mut now) = (time, 0);
            while left > 0 {
                // A tick that has begun before counts from its beginning.
                let busy = now >= phase && (now - phase) % period < tick.cost;
                left -= u64::from(!busy);
                now += 1;
            }
            prop_assert!(now <= tick.stretch(time).unwrap());
        }

        /// Two preemptive tasks and ticks in a simulation of units, each job with its switches before
        /// and after it, stay within the bounds.
        #[test]
        fn simulated_costs_stay_within(
            c in (1..5u64, 1..8u64), t in (12..30u64, 20..60u64), switch in 0..3u64, phase in 0..9u64,
        ) {
            let tick = Tick { period: 9, cost: 1 };
            let tasks = [Task::new(c.0, t.0, t.0).unwrap(), Task::new(c.1, t.1, t.1).unwrap()];
            let costs = KernelOverheads { switch, tick: Some(tick), ..KernelOverheads::default() };
            let tasks = TaskSet::in_order(tasks.to_vec());
            let charged = charge(&tasks, Sections::Preemptive, &costs, &[]).unwrap();
            let found = fixed_priority::analyse(&set(charged), Sections::Preemptive, DISCRETE);
            let bounds = found.from_arrival();
            let Some(bound) = bounds[1] else { return Ok(()) };
            // Work of the first task and its switches goes first; that of ticks before both.
            let (mut first, mut second, mut now) = (0, c.1 + 2 * switch, 0);
            while second > 0 && now <= bound {
                first += if now % t.0 == 0 { c.0 + 2 * switch } else { 0 };
                if now >= phase && (now - phase) % tick.period == 0 {
                    // The tick.
                } else if first > 0 {
                    first -= 1;
                } else {
                    second -= 1;
                }
                now += 1;
            }
            prop_assert!(second == 0 && now <= bound);
        }
    }

    /// A job of a set in units: who it is of, when it came, what of it is left, and whether it holds the
    /// processor.
    struct Job {
        task: usize,
        arrival: u64,
        remaining: u64,
        held: bool,
    }

    /// The longest response of each task in a simulation of units. All tasks come together; a tick
    /// interrupts whatever runs, also what is not preempted.
    fn simulated(set: &TaskSet, sections: Sections, edf: bool, tick: Tick, phase: u64) -> Vec<u64> {
        let (mut worst, mut jobs) = (vec![0; set.len()], Vec::<Job>::new());
        for now in 0..600 {
            for (task, of) in set.tasks().iter().enumerate() {
                if now % of.period == 0 {
                    jobs.push(Job { task, arrival: now, remaining: of.cost, held: false });
                }
            }
            if now >= phase && (now - phase) % tick.period < tick.cost {
                continue;
            }
            let urgency = |job: &Job| {
                let of = &set.tasks()[job.task];
                let due =
                    if edf { job.arrival + of.deadline } else { u64::from(u32::MAX - of.priority) };
                (!job.held, due, job.arrival, job.task)
            };
            let Some(at) = (0..jobs.len()).min_by_key(|at| urgency(&jobs[*at])) else { continue };
            let job = &mut jobs[at];
            let of = &set.tasks()[job.task];
            job.remaining -= 1;
            // The longest segment at the beginning, the last at the end, single units between.
            let done = of.cost - job.remaining;
            job.held = match sections {
                Sections::Preemptive => false,
                Sections::NonPreemptive => true,
                Sections::Limited => done < of.np || job.remaining < of.last,
                Sections::Floating => done < of.np,
            };
            if job.remaining == 0 {
                worst[job.task] = worst[job.task].max(now + 1 - job.arrival);
                jobs.remove(at);
            }
        }
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// What `check` refused, and what is charged here: ticks in sections that are not preempted.
        #[test]
        fn ticks_in_sections_stay_within(
            numbers in numbers(), kind in 0..4usize, cost in 1..4u64, phase in 0..12u64,
        ) {
            let tasks = set_of(&numbers).tasks().iter().map(|task| task.with_jitter(0)).collect();
            let (set, tick) = (TaskSet::new(tasks), Tick { period: 12, cost });
            let costs = KernelOverheads { tick: Some(tick), ..KernelOverheads::default() };
            let charged = charge(&set, Sections::ALL[kind], &costs, &[]).unwrap();
            let with_tick = super::tests::set(charged.clone());
            let bounds = fixed_priority::analyse(&with_tick, Sections::ALL[kind], DISCRETE).from_arrival();
            let worst = simulated(&set, Sections::ALL[kind], false, tick, phase);
            for (worst, bound) in worst.iter().zip(&bounds) {
                prop_assert!(bound.is_none_or(|bound| *worst <= bound), "{:?} {:?}", worst, bounds);
            }
            let with_tick = TaskSet::new(charged.by_deadline().unwrap());
            let bounds = edf::response_times(&with_tick, Sections::ALL[kind], DISCRETE).from_arrival();
            let worst = simulated(&set, Sections::ALL[kind], true, tick, phase);
            for ((worst, bound), task) in worst.iter().zip(&bounds).zip(set.tasks()) {
                let holds = bound.is_none_or(|bound| bound > task.deadline || *worst <= bound);
                prop_assert!(holds, "{:?} {:?}", worst, bounds);
            }
            if qpa::feasible(&with_tick, Sections::ALL[kind], DISCRETE).verdict == Verdict::Feasible {
                prop_assert!(worst.iter().zip(set.tasks()).all(|(w, task)| *w <= task.deadline));
            }
        }
    }

    /// Hourglass paper, section 5.5: a tick timer is 8 ms of jitter to a thread that waits for it.
    #[test]
    fn granularity_is_jitter() {
        let tasks = [Task::new(3, 8, 16).unwrap(), Task::new(19, 33, 40).unwrap()];
        let late = TaskSet::in_order(tasks.each_ref().map(|task| task.with_jitter(8)).to_vec());
        let costs = KernelOverheads { granularity: 8, ..KernelOverheads::default() };
        let tasks = TaskSet::in_order(tasks.to_vec());
        let charged = charge(&tasks, Sections::Preemptive, &costs, &[]).unwrap();
        assert_eq!(charged.by_priority(), late.tasks());
    }

    /// Two switches a job and two a request, and one that has begun.
    #[test]
    fn each_request_costs_two_switches() {
        let set = TaskSet::in_order(vec![Task::new(5, 20, 20).unwrap()]);
        let costs = KernelOverheads { switch: 1, ..KernelOverheads::default() };
        let charged = charge(&set, Sections::Preemptive, &costs, &[2]).unwrap();
        let found =
            fixed_priority::analyse(&super::tests::set(charged), Sections::ALL[0], DISCRETE);
        assert_eq!(found.from_arrival(), [Some(5 + 6 + 1)]);
        assert_eq!(costs.with_switches(4), Some(6));
    }

    /// Two thirds of the speed: 10 take 15, 11 take 17.
    #[test]
    fn slow_work_is_rounded_up() {
        assert_eq!(
            (slowed(10, (2, 3)), slowed(11, (2, 3)), slowed(0, (2, 3))),
            (Some(15), Some(17), Some(0))
        );
        assert_eq!((slowed(1, (0, 1)), slowed(u64::MAX, (1, 2))), (None, None));
    }

    #[test]
    fn what_cannot_be_charged_is_refused() {
        let set = TaskSet::in_order(vec![Task::new(5, 10, 6).unwrap().with_suspension(1)]);
        let costs = KernelOverheads { switch: 1, ..KernelOverheads::default() };
        let found = charge(&set, Sections::Preemptive, &costs, &[]);
        assert_eq!(found, Err(OverheadError::Suspension(0)));
        let tick = Some(Tick { period: 3, cost: 3 });
        let costs = KernelOverheads { tick, ..KernelOverheads::default() };
        let found = charge(&set, Sections::Preemptive, &costs, &[]);
        assert_eq!(found, Err(OverheadError::Tick { cost: 3, period: 3 }));
    }
}
