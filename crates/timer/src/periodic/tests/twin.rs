//! Hours of virtual time, checked by a slow twin that walks from release to release.

use hourglass_dice::Dice;

use super::*;
use crate::periodic::{CompletedJob, Distribution, LoopStep, OverrunPolicy, Snapshot};

/// What a task should do, by walking: one addition a period.
#[derive(Debug)]
struct Twin {
    policy: OverrunPolicy,
    period_ns: u64,
    deadline_ns: u64,
    budget_ns: u64,
    next_ns: u64,
    completed_ns: u64,
    expected: ExpectedCounts,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ExpectedCounts {
    jobs: u64,
    misses: u64,
    overruns: u64,
    late: u64,
    lost: u64,
    drift_ns: u64,
    cost_overruns: u64,
}

impl ExpectedCounts {
    fn of(counts: &Snapshot) -> ExpectedCounts {
        assert_eq!(counts.releases, counts.jobs);
        ExpectedCounts {
            jobs: counts.jobs,
            misses: counts.misses,
            overruns: counts.overruns,
            late: counts.late,
            lost: counts.lost,
            drift_ns: counts.drift_ns,
            cost_overruns: counts.cost_overruns,
        }
    }
}

impl Twin {
    fn see(&mut self, job: &CompletedJob, worked_ns: u64) {
        assert_eq!((job.number, job.release_ns), (self.expected.jobs, self.next_ns));
        assert!(job.started_ns >= job.release_ns, "early: {job:?}");
        // The CPU clock, by which it worked, and the monotonic one are not quite equally fast.
        let apart = worked_ns / 1_000 + 1_000;
        assert!(job.completed_ns + apart >= job.started_ns + worked_ns, "{job:?} {worked_ns}");
        // Its work, and reading clocks: not the time that others had the CPU.
        let took = job.cost_ns - worked_ns;
        assert!(took < READING_NS, "{took} ns of CPU time beside the work");
        self.expected.jobs += 1;
        self.expected.late += u64::from(self.next_ns < self.completed_ns);
        let response_ns = job.completed_ns - self.next_ns;
        self.expected.misses += u64::from(response_ns > self.deadline_ns);
        self.expected.cost_overruns += u64::from(worked_ns > self.budget_ns);
        self.completed_ns = job.completed_ns;
        self.walk(job.completed_ns);
    }

    fn walk(&mut self, completed_ns: u64) {
        self.next_ns += self.period_ns;
        if completed_ns <= self.next_ns {
            return;
        }
        self.expected.overruns += 1;
        match self.policy {
            OverrunPolicy::CatchUp => {}
            OverrunPolicy::Skip => {
                while self.next_ns < completed_ns {
                    self.expected.lost += 1;
                    self.next_ns += self.period_ns;
                }
            }
            OverrunPolicy::Delay => {
                let mut late = self.next_ns + self.period_ns;
                while late <= completed_ns {
                    self.expected.lost += 1;
                    late += self.period_ns;
                }
                self.expected.drift_ns += completed_ns - self.next_ns;
                self.next_ns = completed_ns;
            }
        }
    }
}

/// What reading clocks may cost in a job, ns: some tens, but now and then the clock checks itself.
const READING_NS: u64 = 100_000;

/// Works for this much CPU time, however often the CPU is taken away.
fn work(machine: &mut SimMachine, length_ns: u64) {
    let end_ns = machine.cpu_time_ns() + length_ns;
    loop {
        match end_ns.saturating_sub(machine.cpu_time_ns()) {
            0 => return,
            left_ns => machine.work(left_ns),
        }
    }
}

/// Jobs of any length: most well within the period, one in twenty up to four periods; none so
/// near to the budget that it would hang on what reading the clock costs.
fn length(dice: &mut Dice, period_ns: u64, budget_ns: u64) -> u64 {
    let length = match dice.below(20) {
        0 => dice.below(4 * period_ns),
        _ => dice.below(period_ns * 6 / 10),
    };
    let hangs = length <= budget_ns && length + READING_NS > budget_ns;
    if hangs { budget_ns - READING_NS } else { length }
}

fn sorted_agrees(counts: &Distribution, mut times: Vec<u64>) {
    times.sort_unstable();
    let last = times.len() - 1;
    assert_eq!((counts.min_ns(), counts.max_ns()), (Some(times[0]), Some(times[last])));
    assert_eq!(counts.mean_ns(), Some(times.iter().sum::<u64>() / times.len() as u64));
    for ppm in [500_000, 990_000, 999_900] {
        let exact = times[(times.len() * ppm).div_ceil(1_000_000) - 1];
        let quantile = counts.quantile_ns(ppm as u32).unwrap();
        assert!(quantile >= exact && quantile - exact <= exact / 32, "{ppm}: {exact} {quantile}");
    }
}

fn half_an_hour(policy: OverrunPolicy, load: Load, seed: u64) {
    let mut dice = Dice::new(seed);
    let period_ns = (5 + dice.below(10)) * MS + dice.below(MS);
    let (budget_ns, deadline_ns) = (period_ns / 2, period_ns * (3 + dice.below(10)) / 5);
    let span = |ns: u64| Span::from_nanos(ns as i64);
    let parameters = Parameters::every(span(period_ns))
        .with_budget(span(budget_ns))
        .with_deadline(span(deadline_ns))
        .with_phase(span(dice.below(period_ns)))
        .with_overrun_policy(policy);
    let mut task = task(seed, load, &parameters.check().unwrap());
    let first_ns = task.next_release_ns();
    let mut twin = Twin {
        policy,
        period_ns,
        deadline_ns,
        budget_ns,
        next_ns: first_ns,
        completed_ns: 0,
        expected: ExpectedCounts::default(),
    };
    let (mut latencies, mut responses) = (Vec::new(), Vec::new());
    while twin.next_ns < first_ns + 1_800_000 * MS {
        let worked_ns = length(&mut dice, period_ns, budget_ns);
        let mut body = |job: &mut SimJob<'_>| work(job.sleeper().mechanism(), worked_ns);
        let LoopStep::Ran { job, ended } = task.step(&mut body) else {
            panic!("the loop was stopped")
        };
        assert_eq!(ended, None);
        twin.see(&job, worked_ns);
        latencies.push(job.latency_ns());
        responses.push(job.response_ns());
    }
    let counts = task.statistics().read();
    assert_eq!(ExpectedCounts::of(&counts), twin.expected, "{policy:?}");
    sorted_agrees(&counts.latency, latencies);
    sorted_agrees(&counts.response, responses);
    let ExpectedCounts { jobs, lost, drift_ns, overruns, misses, cost_overruns, .. } =
        twin.expected;
    // It went wrong often enough for the comparison to mean something.
    assert!(overruns > 1_000 && misses > 1_000 && cost_overruns > 1_000, "{:?}", twin.expected);
    // Every period has a job or was lost, and no nanosecond is unaccounted for.
    let passed = task.next_release_ns() - first_ns;
    match policy {
        OverrunPolicy::Skip => assert_eq!(passed, (jobs + lost) * period_ns),
        OverrunPolicy::CatchUp => assert_eq!((passed, lost), (jobs * period_ns, 0)),
        OverrunPolicy::Delay => assert_eq!(passed, jobs * period_ns + drift_ns),
    }
    assert!(lost > 1_000 || policy == OverrunPolicy::CatchUp);
}

/// Issue 4, item 8: "overrun policy (skip, catch up, delay) with every lost period counted".
#[test]
fn every_period_is_accounted_for() {
    let seed = seed();
    for policy in [OverrunPolicy::Skip, OverrunPolicy::CatchUp, OverrunPolicy::Delay] {
        half_an_hour(policy, Load::idle(), seed);
        half_an_hour(policy, Load::busy(), seed.wrapping_add(1));
    }
}

/// Six hours at 60 Hz, whose period is no whole number of nanoseconds: the grid is where it was, to the
/// nanosecond, although each wake-up is late.
#[test]
fn hours_do_not_drift() {
    let parameters = Parameters::hertz(60).check().unwrap();
    let mut task = task(seed(), Load::idle(), &parameters);
    let first_ns = task.next_release_ns();
    for _ in 0..6 * 3_600 * 60 {
        let LoopStep::Ran { job, .. } = task.step(&mut |_: &mut SimJob<'_>| ()) else { panic!() };
        // Late by the wake-up, but for the first, less what the clock may be off.
        assert!((job.latency_ns() > 19_000 || job.number == 0) && !job.overrun, "{job:?}");
    }
    assert_eq!(task.next_release_ns() - first_ns, 6 * 3_600_000 * MS);
    assert_eq!(task.statistics().read().lost, 0);
}

#[test]
fn an_epoch_is_shared() {
    let seed = seed();
    let epoch = hourglass_time::Instant::from_nanos(123_456_789);
    let begins = [0, 7, 5 * MS, 123_456_789, 999_999_999_999].map(|late_ns| {
        let phase = Span::from_nanos((late_ns % 1_000) as i64);
        let parameters = every_ms(10).with_epoch(epoch).with_phase(phase);
        let mut sleeper = sleeper(seed, Load::idle(), SleeperSettings::DEFAULT);
        sleeper.mechanism().work(late_ns);
        let task = SimLoop::new(sleeper, &parameters.check().unwrap());
        (task.next_release_ns() - 123_456_789) % (10 * MS)
    });
    assert_eq!(begins, [0, 7, 0, 789, 999]);
}

#[test]
fn waiting_costs_no_job_anything() {
    const WORK_NS: u64 = 100_000;
    let parameters = every_ms(10).check().unwrap();
    for policy in [SleepPolicy::KernelOnly, SleepPolicy::Learned, SleepPolicy::SpinOnly] {
        for load in [Load::idle(), Load::busy()] {
            let settings = SleeperSettings::with_policy(policy);
            let mut task = SimLoop::new(sleeper(seed(), load, settings), &parameters);
            for _ in 0..5_000 {
                let mut body = |job: &mut SimJob<'_>| work(job.sleeper().mechanism(), WORK_NS);
                let LoopStep::Ran { job, .. } = task.step(&mut body) else { panic!() };
                // The CPU clock may be read 5 us before the release.
                assert!(job.cost_ns + 5_100 >= WORK_NS, "{policy}: {job:?}");
                assert!(job.cost_ns < WORK_NS + READING_NS, "{policy}: {job:?}");
                assert!(job.started_ns >= job.release_ns);
            }
        }
    }
}

/// With the learnt margin releases are met to some tens of nanoseconds, on a machine whose kernel
/// wakes 20 us late.
#[test]
fn how_it_waits_can_be_chosen() {
    let parameters = every_ms(1).check().unwrap();
    let run = |settings| {
        let mut task = SimLoop::new(sleeper(seed(), Load::idle(), settings), &parameters);
        for _ in 0..10_000 {
            let _ = task.step(&mut |_: &mut SimJob<'_>| ());
        }
        task.statistics().read().latency.quantile_ns(500_000).unwrap()
    };
    assert!(run(SleeperSettings::with_policy(SleepPolicy::KernelOnly)) >= 19_000);
    assert!(run(SleeperSettings::DEFAULT) < 100);
}
