//! The three policies on the engine.

use hourglass_tasks::Fraction;
use proptest::prelude::*;

use super::super::{Monitoring, ProgressModel, SlackCheck, SmtError, SmtOutcome, SmtPolicy, run};
use crate::slack::ProgressRate;
use crate::{ArrivalPattern, Class, CostModel, Jitter, NullSink, SimSettings, System, Thread};

const MS: u64 = 1_000_000;

fn fraction(part: u64, whole: u64) -> Fraction {
    Fraction::new(part, whole).unwrap()
}

/// Section 5.2: 55 ms reserved of every 70 ms, on a core of two hardware threads beside one
/// best-effort thread, at this rate beside it.
fn paper(rate: Fraction) -> System {
    let mut system = System::new(2);
    system.cores = vec![vec![0, 1]];
    system.threads.push(Thread::periodic(55 * MS, 70 * MS).on(&[0]));
    system.threads.push(Thread::best_effort(0));
    system.interference.set(0, 1, rate);
    system
}

fn simulate(system: &System, policy: SmtPolicy, horizon: u64) -> SmtOutcome {
    run(system, policy, SimSettings::until(horizon), &mut NullSink).unwrap()
}

fn missed(found: &SmtOutcome) -> u64 {
    found.outcome.threads.iter().map(|thread| thread.missed).sum()
}

/// Worked example `slack-ibm-70-55`: 15 looks, neighbours stop at 37.48 ms.
#[test]
fn the_papers_workload() {
    let system = paper(fraction(3, 5));
    let unaware = simulate(&system, SmtPolicy::Ignore, 700 * MS);
    assert!(missed(&unaware) > 0);
    let disabling = simulate(&system, SmtPolicy::Disable, 70 * MS);
    assert_eq!(missed(&disabling), 0);
    assert_eq!(disabling.best_effort, 15 * MS);
    let monitoring = simulate(&system, SmtPolicy::Monitor(Monitoring::default()), 70 * MS);
    assert_eq!(missed(&monitoring), 0);
    assert_eq!(monitoring.watched.wakeups, 15);
    assert_eq!(monitoring.watched.wakeups_per_job_max, 15);
    let response = monitoring.outcome.threads[0].max_response.unwrap();
    assert!((69_980_000..=70 * MS).contains(&response), "{response}");
    // 37.48 ms beside the job, and what is left of the period after it.
    let stopped = monitoring.best_effort - (70 * MS - response);
    assert_eq!((stopped + 5_000) / 10_000, 3_748);
}

/// Section 3.2: with a constant rate s beside others, slack shrinks by s at each look, so that there
/// are ln(slack / margin) / ln(1 / s) of them.
#[test]
fn looks_follow_the_logarithm() {
    for (part, whole) in [(1, 2), (3, 5), (4, 5), (19, 20)] {
        for margin in [1_000, 10_000, 1_000_000] {
            let monitoring = Monitoring { margin, ..Monitoring::default() };
            let system = paper(fraction(part, whole));
            let found = simulate(&system, SmtPolicy::Monitor(monitoring), 70 * MS);
            assert_eq!(missed(&found), 0);
            let (slack, eps) = (15e6, margin as f64);
            let wanted = (slack / eps).ln() / (whole as f64 / part as f64).ln();
            let looks = found.watched.wakeups as f64;
            // A job that ends before its slack does needs fewer.
            let ended = slack / (1.0 - part as f64 / whole as f64) * part as f64 / whole as f64;
            if ended < 55e6 {
                assert!((looks - wanted.ceil()).abs() <= 1.0, "{part}/{whole} {margin}: {looks}");
            } else {
                assert!(looks <= wanted.ceil() + 1.0, "{part}/{whole} {margin}: {looks}");
            }
        }
    }
}

/// Equation 3: where a rate is certain, fewer looks do; with the rate itself, one.
#[test]
fn a_certain_rate_saves_looks() {
    let looks = |part, whole| {
        let alpha = ProgressRate::new(part, whole).unwrap();
        let monitoring = Monitoring { alpha, ..Monitoring::default() };
        let found = simulate(&paper(fraction(3, 5)), SmtPolicy::Monitor(monitoring), 70 * MS);
        assert_eq!(missed(&found), 0);
        found.watched.wakeups
    };
    assert!(looks(1, 2) < looks(1, 4) && looks(1, 4) < looks(0, 1));
    assert_eq!(looks(3, 5), 1);
}

/// Section 5.3: a program that reports its progress lets neighbours run longer if its jobs need less
/// than their reserve; a scheduler that counts cannot know.
#[test]
fn reported_progress_tells_of_short_jobs() {
    let mut system = paper(fraction(3, 5));
    system.threads[0].cost = CostModel::Drawn { times: "27ms".parse().unwrap(), at_most: 55 * MS };
    let with = |progress| {
        let monitoring = Monitoring { progress, ..Monitoring::default() };
        let found = simulate(&system, SmtPolicy::Monitor(monitoring), 7_000 * MS);
        assert_eq!(missed(&found), 0);
        found.best_effort
    };
    let (counted, reported) = (with(ProgressModel::Counted), with(ProgressModel::Reported(256)));
    assert!(reported > counted, "{reported} {counted}");
    assert!(with(ProgressModel::Reported(1)) < reported);
}

/// The duration of a stop is subtracted from the slack: co-runners run on for it, and the deadline holds.
#[test]
fn a_stop_that_takes_time() {
    let monitoring = Monitoring { latency: 500_000, ..Monitoring::default() };
    let found = simulate(&paper(fraction(1, 10)), SmtPolicy::Monitor(monitoring), 700 * MS);
    assert_eq!(missed(&found), 0);
    assert_eq!(found.watched.stops, 10);
}

#[test]
fn what_slack_cannot_tell_is_refused() {
    let monitoring = SmtPolicy::Monitor(Monitoring::default());
    let refused = |system: &System, policy| {
        run(system, policy, SimSettings::until(MS), &mut NullSink).unwrap_err()
    };
    let mut alone = paper(fraction(1, 2));
    alone.cores.clear();
    assert_eq!(refused(&alone, SmtPolicy::Disable), SmtError::NoSiblings);
    let mut wide = paper(fraction(1, 2));
    wide.cpus = 3;
    wide.threads[0].cpus.clear();
    assert_eq!(refused(&wide, SmtPolicy::Disable), SmtError::SeveralCores(0));
    let mut rigid = paper(fraction(1, 2));
    rigid.threads[0].preemption = crate::Preemption::None;
    assert!(matches!(refused(&rigid, monitoring), SmtError::Slack { thread: 0, .. }));
    let looks = Monitoring { check: SlackCheck::Fixed(0), ..Monitoring::default() };
    assert_eq!(refused(&paper(fraction(1, 2)), SmtPolicy::Monitor(looks)), SmtError::Interval);
}

/// Real-time threads by period and share of it, on cores of two or three hardware threads.
#[derive(Clone, Debug)]
struct DrawnSystem {
    cores: usize,
    width: u32,
    /// Core, cost and period in tenths, by deadline or not, jitter.
    threads: Vec<(usize, u64, usize, u64)>,
    by_deadline: bool,
    varies: bool,
    /// Of each real-time thread beside each best-effort one, in tenths.
    rates: Vec<u64>,
    neighbours: usize,
}

/// Periods that repeat after 120.
const PERIODS: [u64; 5] = [20, 24, 30, 40, 60];
const REPEAT: u64 = 120;
const UNIT: u64 = 100_000;

fn drawn() -> impl Strategy<Value = DrawnSystem> {
    let threads = proptest::collection::vec((0..2usize, 1..12u64, 0..5usize, 0..6u64), 1..6);
    let rates = proptest::collection::vec(0..=10u64, 20);
    (1..3usize, 2..4u32, threads, any::<(bool, bool)>(), rates, 1..4usize).prop_map(
        |(cores, width, threads, (by_deadline, varies), rates, neighbours)| DrawnSystem {
            cores,
            width,
            threads,
            by_deadline,
            varies,
            rates,
            neighbours,
        },
    )
}

impl DrawnSystem {
    fn system(&self) -> System {
        let mut system = System::new(self.width * self.cores as u32);
        let core = |core: u32| (core * self.width..(core + 1) * self.width).collect();
        system.cores = (0..self.cores as u32).map(core).collect();
        for (core, cost, period, jitter) in &self.threads {
            let (cost, period) = (cost * UNIT, PERIODS[*period] * UNIT);
            let jitter = if self.varies { jitter * UNIT } else { 0 };
            let class = match self.by_deadline {
                true => Class::Edf,
                false => Class::Fifo(200 - (period / UNIT) as u32),
            };
            let times = format!("uniform:1ns,{cost}ns").parse().unwrap();
            let cost = match self.varies {
                true => CostModel::Drawn { times, at_most: cost },
                false => CostModel::Worst(cost),
            };
            let arrivals = ArrivalPattern::Periodic { offset: 0, period };
            let mut thread = Thread::new(class, arrivals, cost, period);
            thread.jitter = Jitter::Random(jitter);
            let home = (*core % self.cores) as u32 * self.width;
            system.threads.push(thread.on(&[home, home + 1]));
        }
        for neighbour in 0..self.neighbours {
            let beside = system.threads.len();
            system.threads.push(Thread::best_effort(0));
            for thread in 0..self.threads.len() {
                let rate = self.rates[(thread * 3 + neighbour) % self.rates.len()];
                system.interference.set(thread, beside, fraction(rate, 10));
            }
        }
        system
    }

    /// The least rate beside neighbours on all siblings, in tenths of tenths.
    fn certain(&self) -> ProgressRate {
        let used = (0..self.threads.len() * 3).map(|at| self.rates[at % self.rates.len()]);
        let least = used.min().unwrap_or(0);
        ProgressRate::new(least.pow(self.width - 1), 10u64.pow(self.width - 1))
            .unwrap_or(ProgressRate::ZERO)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Section 5.2.1: whatever deadlines hold with siblings disabled hold with slack monitored,
    /// however fast neighbours make the job, whichever way slack is watched.
    #[test]
    fn monitoring_keeps_what_disabling_keeps(
        drawn in drawn(), seed in any::<u64>(), margin in 0..30_000u64, certain in any::<bool>(),
        interval in proptest::option::of(1..2_000_000u64), steps in proptest::option::of(1..300u32)
    ) {
        let system = drawn.system();
        let settings = SimSettings::until(3 * REPEAT * UNIT).with_seed(seed);
        let disabling = run(&system, SmtPolicy::Disable, settings, &mut NullSink).unwrap();
        let monitoring = SmtPolicy::Monitor(Monitoring {
            alpha: if certain { drawn.certain() } else { ProgressRate::ZERO },
            margin,
            latency: 0,
            check: interval.map_or(SlackCheck::Variable, SlackCheck::Fixed),
            progress: steps.map_or(ProgressModel::Counted, ProgressModel::Reported),
        });
        let monitored = run(&system, monitoring, settings, &mut NullSink).unwrap();
        if missed(&disabling) == 0 {
            prop_assert_eq!(missed(&monitored), 0);
        }
    }

    /// Section 5.2.2: co-runners achieve no less than with siblings disabled, if they lose nothing
    /// themselves and there is one of them. (More of them may achieve more while no
    /// real-time job is there than one beside it: then co-running can cost more than it brings.)
    #[test]
    fn monitoring_brings_throughput(
        mut drawn in drawn(), interval in proptest::option::of(1..2_000_000u64)
    ) {
        (drawn.cores, drawn.varies, drawn.neighbours) = (1, false, 1);
        let system = drawn.system();
        let settings = SimSettings::until(REPEAT * UNIT);
        let disabling = run(&system, SmtPolicy::Disable, settings, &mut NullSink).unwrap();
        prop_assume!(missed(&disabling) == 0);
        let looks = interval.map_or(SlackCheck::Variable, SlackCheck::Fixed);
        let monitoring = SmtPolicy::Monitor(Monitoring { check: looks, ..Monitoring::default() });
        let monitored = run(&system, monitoring, settings, &mut NullSink).unwrap();
        prop_assert!(
            monitored.best_effort >= disabling.best_effort,
            "{} {}", monitored.best_effort, disabling.best_effort
        );
    }
}
