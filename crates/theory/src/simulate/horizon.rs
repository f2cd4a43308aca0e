//! How long to simulate.
//!
//! Owns: the hyperperiod of a set, and the horizon where none is asked for. Must not: know the
//! outcome.

use hourglass_documents::Policy;
use hourglass_tasks::{Scheduler, Task, TaskSet};

use super::system::ns;

/// About the number of jobs of a simulation without a requested horizon.
pub const DEFAULT_JOBS: u64 = 1_000_000;

/// Jobs where more is demanded than there is: enough to see responses grow. Those that wait take room.
const OVERLOADED_JOBS: u64 = 100_000;

/// Jobs where threads follow steps, which repeat when they will.
const FOLLOWED_JOBS: u64 = 100_000;

/// The horizon of threads of which none is a task, 10 s.
const WITHOUT_TASKS: u64 = 10_000_000_000;

/// The extent of a simulation, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Horizon {
    pub(super) ns: u64,
    /// The origin of the horizon, as the document states it.
    pub(super) from: &'static str,
    pub(super) hyperperiod: Option<u64>,
}

/// What was asked for; else what the file says; else as long as [`OVERLOADED_JOBS`] take where more is demanded than there is;
/// else until everything has repeated, if that takes no more than
/// [`DEFAULT_JOBS`] and nothing is drawn or taken in turns; else as long as that many jobs take.
/// `throttling` is the period of the kernel's limit on fixed priorities, ns.
pub(super) fn horizon(
    set: &TaskSet,
    asked: Option<u64>,
    is_drawn: bool,
    throttling: Option<u64>,
) -> Horizon {
    let hyperperiod = repeats_after(set, throttling);
    if let Some(ns) = asked {
        return Horizon { ns, from: "asked", hyperperiod };
    }
    if let Some(horizon) = set.horizon {
        return Horizon { ns: ns(horizon), from: "file", hyperperiod };
    }
    if set.tasks.is_empty() {
        return Horizon { ns: WITHOUT_TASKS, from: "default", hyperperiod: None };
    }
    if super::script::any(set) {
        return Horizon { ns: time_of(set, FOLLOWED_JOBS), from: "default", hyperperiod };
    }
    let stays = !is_drawn && !takes_turns(set);
    let repeated = hyperperiod.and_then(|period| until_repeated(set, period, throttling.is_some()));
    match (hyperperiod, repeated) {
        // More work than time: what waits grows, and nothing repeats.
        (Some(period), _) if stays && is_overloaded(set, period) => {
            Horizon { ns: time_of(set, OVERLOADED_JOBS), from: "default", hyperperiod }
        }
        (Some(_), Some(ns)) if stays && jobs_until(set, ns) <= u128::from(DEFAULT_JOBS) => {
            Horizon { ns, from: "hyperperiod", hyperperiod }
        }
        _ => Horizon { ns: time_of(set, DEFAULT_JOBS), from: "default", hyperperiod },
    }
}

/// The time until everything has repeated, or about `jobs` jobs have come, whichever is earlier, ns.
pub(crate) fn horizon_of(set: &TaskSet, jobs: u64) -> u64 {
    let repeated = hyperperiod(set).and_then(|period| until_repeated(set, period, false));
    let repeated = repeated.filter(|_| !super::script::any(set) && !takes_turns(set));
    time_of(set, jobs).min(repeated.unwrap_or(u64::MAX))
}

/// Whether quanta or shares are carried from one job to the next, over any number of hyperperiods.
fn takes_turns(set: &TaskSet) -> bool {
    let by_turns = |scheduler| matches!(scheduler, Scheduler::RoundRobin | Scheduler::Fair);
    by_turns(set.scheduler)
        || set.servers.iter().any(|server| by_turns(server.scheduler))
        || set.tasks.iter().any(|task| matches!(task.policy, Some(Policy::RoundRobin(_))))
}

/// Whether tasks need more in a hyperperiod than all CPUs have.
fn is_overloaded(set: &TaskSet, hyperperiod: u64) -> bool {
    let need = |task: &Task| {
        u128::from(ns(task.wcet)).checked_mul(u128::from(hyperperiod / ns(task.period).max(1)))
    };
    let all = set.tasks.iter().try_fold(0u128, |sum, task| sum.checked_add(need(task)?));
    let cpus = set.cpus().iter().count() as u128;
    all.is_none_or(|all| all > cpus * u128::from(hyperperiod))
}

/// The least common multiple of all periods of a set, ns; `None` if it has more than 64 bits.
#[must_use]
pub fn hyperperiod(set: &TaskSet) -> Option<u64> {
    repeats_after(set, None)
}

/// The time after which everything repeats, with the period of throttling.
fn repeats_after(set: &TaskSet, throttling: Option<u64>) -> Option<u64> {
    let overheads = &set.machine.overheads;
    let periods = set.tasks.iter().map(|task| ns(task.period));
    let periods = periods.chain(set.servers.iter().map(|server| ns(server.period)));
    let periods = periods.chain(set.tasks.iter().filter_map(Task::tick).map(ns)).chain(throttling);
    let periods = periods
        .chain([overheads.tick_period, overheads.timer_granularity].into_iter().flatten().map(ns));
    periods.filter(|period| *period > 0).try_fold(1u64, |multiple, period| {
        (multiple / greatest_common_divisor(multiple, period)).checked_mul(period)
    })
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// One hyperperiod where all begins at 0 and is done within its period; else the last beginning
/// and two hyperperiods (Leung and Merrill, IPL 1980, for periodic tasks on one CPU).
fn until_repeated(set: &TaskSet, hyperperiod: u64, is_throttled: bool) -> Option<u64> {
    let begin = |task: &Task| {
        let burst = task.arrivals.last().copied().map_or(0, ns);
        task.offset.map_or(0, ns).checked_add(ns(task.jitter))?.checked_add(burst)
    };
    let begins = set.tasks.iter().map(begin).collect::<Option<Vec<u64>>>()?;
    let last = begins.into_iter().max().unwrap_or(0);
    let constrained = set.tasks.iter().all(|task| task.deadline() <= task.period);
    let alone = set.servers.is_empty() && set.background.is_empty() && !is_throttled;
    if last == 0 && constrained && alone {
        return Some(hyperperiod);
    }
    hyperperiod.checked_mul(2)?.checked_add(last)
}

/// About how many jobs arrive until then.
fn jobs_until(set: &TaskSet, time: u64) -> u128 {
    set.tasks.iter().map(|task| u128::from(time / ns(task.period).max(1)) + 1).sum()
}

/// The time in which about `jobs` jobs arrive, ns.
fn time_of(set: &TaskSet, jobs: u64) -> u64 {
    // Jobs in 2^32 ns, with 32 binary digits behind the point.
    let rate: u128 =
        set.tasks.iter().map(|task| (1u128 << 64) / u128::from(ns(task.period).max(1))).sum();
    let time = (u128::from(jobs) << 64) / rate.max(1);
    u64::try_from(time).unwrap_or(u64::MAX).clamp(1, LONGEST)
}

/// The longest default horizon, ns: a day. Periods of weeks would else be simulated for centuries.
const LONGEST: u64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> TaskSet {
        TaskSet::from_toml(text).unwrap()
    }

    const PAPER: &str = "unit = \"1ms\"\n\
        [[task]]\nname = \"a\"\nwcet = 3\nperiod = 8\n\
        [[task]]\nname = \"b\"\nwcet = 17\nperiod = 33\n";

    /// Hourglass paper, section 5.5: 8 and 33 repeat after 264 ms.
    #[test]
    fn a_small_hyperperiod_is_taken() {
        let found = horizon(&set(PAPER), None, false, None);
        assert_eq!(
            found,
            Horizon { ns: 264_000_000, from: "hyperperiod", hyperperiod: Some(264_000_000) }
        );
        let ticked = set(&format!("{PAPER}timer = \"TICK:100\"\n"));
        assert_eq!(horizon(&ticked, None, false, None).ns, 1_320_000_000);
    }

    #[test]
    fn what_is_drawn_does_not_repeat() {
        let found = horizon(&set(PAPER), None, true, None);
        assert_eq!(found.from, "default");
        let jobs = found.ns / 8_000_000 + found.ns / 33_000_000;
        assert!((DEFAULT_JOBS - 10..=DEFAULT_JOBS).contains(&jobs), "{jobs}");
    }

    #[test]
    fn offsets_take_two_hyperperiods() {
        let late = set(&format!("{PAPER}offset = 5\n"));
        assert_eq!(horizon(&late, None, false, None).ns, 5_000_000 + 2 * 264_000_000);
    }

    /// Else a limit of 950 ms a second would never be seen in 264 ms.
    #[test]
    fn throttling_has_its_period() {
        let second = Some(1_000_000_000);
        let found = horizon(&set(PAPER), None, false, second);
        assert_eq!((found.ns, found.hyperperiod), (66_000_000_000, Some(33_000_000_000)));
    }

    /// The rest of a quantum of 100 ms goes over from one job of 17 ms to the next.
    #[test]
    fn turns_do_not_repeat() {
        for scheduler in ["round-robin", "fair"] {
            let turns = set(&format!("scheduler = \"{scheduler}\"\n{PAPER}"));
            let found = horizon(&turns, None, false, None);
            assert_eq!((found.from, found.hyperperiod), ("default", Some(264_000_000)));
            assert!(found.ns > 1_000 * 264_000_000, "{found:?}");
        }
    }

    /// 3/8 and 21/33 are 1.01.
    #[test]
    fn an_overload_does_not_repeat() {
        let over = set(&PAPER.replace("17", "21"));
        let found = horizon(&over, None, false, None);
        assert_eq!(found.from, "default");
        // One hyperperiod said of 1.01 that a response is a hundredth of it late, and no more.
        assert!(found.ns > 1_000 * 264_000_000, "{found:?}");
    }

    /// Primes of seconds in nanoseconds: their product has more than 64 bits.
    #[test]
    fn a_hyperperiod_that_does_not_fit_is_not_wrapped() {
        let primes = "unit = \"1ns\"\n\
            [[task]]\nname = \"a\"\nwcet = 3\nperiod = 10000000019\n\
            [[task]]\nname = \"b\"\nwcet = 3\nperiod = 10000000033\n";
        let found = horizon(&set(primes), None, false, None);
        assert_eq!((found.from, found.hyperperiod), ("default", None));
        assert_eq!(found.ns, LONGEST);
    }
}
