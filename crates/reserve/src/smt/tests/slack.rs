//! The monitor of slack time on simulated time: the example of the paper's section 3.3, the slack cases
//! of the corpus (slack.json, whose cases name their sources), and random progress.

use std::sync::{Arc, Mutex};

use hourglass_dice::Dice;

use crate::progress::ProgressSource;
use crate::smt::jobs::JobReservation;
use crate::smt::monitor::{
    self, CoRunnerLevel, Monitor, MonitorError, MonitorSettings, SiblingPolicy, SlackCheck,
};
use crate::smt::sim::{FULL, SimEnvironment, SmtSimOutcome, simulate};
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sim::slack::ProgressRate;
use hourglass_time::Span;
use proptest::prelude::*;
use serde_json::Value;

const MS: u64 = 1_000_000;
/// Before everything, so that the first period begins at a look.
const FIRST: u64 = 0;

fn promised(reserved_ns: u64, period_ns: u64, deadline_ns: u64) -> JobReservation {
    let span = |ns: u64| Span::from_nanos(i64::try_from(ns).unwrap());
    let reservation =
        Reservation::new(span(reserved_ns), span(period_ns), ReservationKind::Hard).unwrap();
    JobReservation::new(&reservation.with_deadline(span(deadline_ns)).unwrap(), FIRST)
}

/// Rates from times on; one job after the other of the same work.
struct Script {
    work_ns: u64,
    rates: Vec<(u64, u64)>,
}

impl SimEnvironment for Script {
    fn work_ns(&mut self, _: usize, _: u64) -> u64 {
        self.work_ns
    }

    fn rate(&mut self, _: usize, now: u64) -> (u64, u64) {
        let rate = self.rates.iter().rev().find(|(from, _)| *from <= now).map_or(FULL, |r| r.1);
        let until = self.rates.iter().map(|r| r.0).find(|from| *from > now);
        (rate, until.unwrap_or(u64::MAX))
    }
}

/// Time and slack of the looks up to the one that stopped, ns.
fn trace(outcome: &SmtSimOutcome) -> Vec<(u64, i128)> {
    let mut trace = Vec::new();
    for (at, order) in &outcome.looks {
        trace.extend(order.slack_ns.map(|slack| (*at, slack)));
        if order.level == CoRunnerLevel::Stop {
            break;
        }
    }
    trace
}

/// Figure 4: 6 ms before 10 ms; slack is 4, then 2, then 0, and the work is done at its deadline.
/// Figure 5: with the sibling disabled it is done at 6 ms, and co-runners have the last 4 ms.
#[test]
fn the_example_of_the_paper() {
    let script = || Script { work_ns: 6 * MS, rates: vec![(0, 500), (4 * MS, 0), (6 * MS, FULL)] };
    let promised = [promised(6 * MS, 10 * MS, 10 * MS)];
    let monitored = simulate(MonitorSettings::default(), &promised, script(), 10 * MS).unwrap();
    let wanted = vec![(0, 4 * i128::from(MS)), (4 * MS, 2 * i128::from(MS)), (6 * MS, 0)];
    assert_eq!(trace(&monitored), wanted);
    assert_eq!(monitored.jobs[0].done_ns, Some(10 * MS));
    assert_eq!((monitored.beside_ns, monitored.free_ns), (6 * MS, 0));
    assert_eq!(monitored.missed(), 0);

    let disable = MonitorSettings { policy: SiblingPolicy::Disable, ..MonitorSettings::default() };
    let disabled = simulate(disable, &promised, script(), 10 * MS).unwrap();
    assert_eq!(disabled.jobs[0].done_ns, Some(6 * MS));
    assert_eq!(disabled.beside_ns, 0);
    assert!(disabled.free_ns > 4 * MS - 100_000, "resumed {} ns early", disabled.free_ns);

    let ignore = MonitorSettings { policy: SiblingPolicy::Ignore, ..MonitorSettings::default() };
    let ignored = simulate(ignore, &promised, script(), 10 * MS).unwrap();
    assert_eq!((ignored.jobs[0].done_ns, ignored.statistics.stops), (Some(10 * MS), 0));
    let slow = Script { work_ns: 6 * MS, rates: vec![(0, 500)] };
    let ignored = simulate(ignore, &promised, slow, 10 * MS + 1).unwrap();
    assert_eq!((ignored.missed(), ignored.statistics.missed), (1, 1));
}

/// A number of the corpus: an integer, a decimal or a fraction, in thousandths.
fn thousandths(value: &Value) -> u64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (part, whole) = text.split_once('/').unwrap_or((&text, "1"));
    (part.parse::<f64>().unwrap() / whole.parse::<f64>().unwrap() * 1_000.0).round() as u64
}

fn corpus(kind: &str) -> Vec<Value> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("slack.json")).unwrap();
    let cases: Vec<Value> = cases.into_iter().filter(|case| case["kind"] == kind).collect();
    assert!(!cases.is_empty());
    cases
}

/// The corpus counts in ms.
fn ms(value: &Value) -> u64 {
    thousandths(value) * MS / 1_000
}

fn script_of(case: &Value) -> Script {
    let rates = match case["progress"].as_array() {
        None => vec![(0, thousandths(&case["rate"]))],
        Some(points) => points
            .windows(2)
            .map(|pair| {
                let (from, to) = (ms(&pair[0][0]), ms(&pair[1][0]));
                (from, FULL * (ms(&pair[1][1]) - ms(&pair[0][1])) / (to - from))
            })
            .collect(),
    };
    Script { work_ns: ms(&case["c"]), rates }
}

#[test]
fn the_corpus_of_one_reservation() {
    for case in corpus("slack-monitor") {
        let name = &case["id"];
        let deadline = ms(&case["deadline"]);
        let promised = [promised(ms(&case["c"]), deadline, deadline)];
        let alpha = ProgressRate::new(thousandths(&case["alpha"]), 1_000).unwrap();
        let settings = MonitorSettings { alpha, ..MonitorSettings::default() };
        let outcome = simulate(settings, &promised, script_of(&case), deadline + 1).unwrap();
        let trace = trace(&outcome);
        let (stopped, _) = *trace.last().unwrap();
        let expect = &case["expect"];
        if let Some(wanted) = expect["trace"].as_array() {
            let wanted: Vec<(u64, i128)> =
                wanted.iter().map(|pair| (ms(&pair[0]), i128::from(ms(&pair[1])))).collect();
            assert_eq!(trace, wanted, "{name}");
            assert_eq!(stopped, ms(&expect["preempt_at"]), "{name}");
        } else {
            // The first look is no interrupt.
            assert_eq!(trace.len() as u64 - 1, expect["interrupts"].as_u64().unwrap(), "{name}");
            let near: f64 = expect["preempt_near"].as_str().unwrap().parse().unwrap();
            assert!((stopped as f64 / MS as f64 - near).abs() < 0.01, "{name}: {stopped}");
        }
        assert_eq!(outcome.missed(), 0, "{name}");
    }
}

/// Equation 9. What switching from one reservation's work to the next costs is kept back.
#[test]
fn the_corpus_of_several_reservations() {
    for case in corpus("slack-multi") {
        let period = 10_000 * MS;
        let reserved: Vec<JobReservation> = case["procs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| promised(ms(&pair[1]), period, ms(&pair[0])))
            .collect();
        let nature = Script { work_ns: MS, rates: Vec::new() };
        let outcome = simulate(MonitorSettings::default(), &reserved, nature, MS).unwrap();
        let (at, order) = outcome.looks[0];
        let wanted = i128::from(ms(&case["expect"]["system"]));
        let kept = i128::from(period / 1_000) * reserved.len() as i128;
        let slack = order.slack_ns.unwrap();
        assert!(at == 0 && order.runs == Some(0), "{order:?}");
        assert!((wanted - kept..=wanted).contains(&slack), "{}: {slack}", case["id"]);
    }
}

/// As often as not the worst.
fn badly(dice: &mut Dice, best: u64, worst: u64) -> u64 {
    if dice.one_in(2) { worst } else { dice.between(best.min(worst), best.max(worst)) }
}

/// Rates between alpha and one, of any length; timers late and stops slow within their bounds.
struct Chance {
    dice: Dice,
    least: u64,
    works: Vec<(u64, u64)>,
    late_ns: u64,
    stop_ns: u64,
}

impl SimEnvironment for Chance {
    fn work_ns(&mut self, reservation: usize, _: u64) -> u64 {
        let (from, to) = self.works[reservation];
        badly(&mut self.dice, from, to)
    }

    fn rate(&mut self, _: usize, now: u64) -> (u64, u64) {
        let rate = badly(&mut self.dice, FULL, self.least);
        (rate, now + self.dice.between(1, 20 * MS))
    }

    fn late_ns(&mut self) -> u64 {
        badly(&mut self.dice, 0, self.late_ns)
    }

    fn stop_ns(&mut self) -> u64 {
        badly(&mut self.dice, 0, self.stop_ns)
    }
}

/// Reservations that leave each other and the margin room: reserved, period, deadline, in 0.1 ms.
fn reservations() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let periods = prop::sample::select(vec![50u64, 80, 100, 200, 400]);
    let one = periods.prop_flat_map(|period| {
        (1..=period * 9 / 10, Just(period))
            .prop_flat_map(|(reserved, period)| (Just(reserved), Just(period), reserved..=period))
    });
    prop::collection::vec(one, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 1_000,
        max_global_rejects: 1_000_000,
        ..ProptestConfig::default()
    })]

    /// Whatever the progress, at least alpha: no job is missed, whatever the reservations are, as long as each leaves
    /// the margin. The monitor says so itself.
    #[test]
    fn no_deadline_is_missed(
        numbers in reservations(), part in 0..10u64, seed in any::<u64>(),
        late in 0..100_000u64, stop in 0..100_000u64, policy in 0..4u32, interval in 1..50u64,
    ) {
        let policies = [SiblingPolicy::Monitor, SiblingPolicy::Monitor, SiblingPolicy::Monitor, SiblingPolicy::Disable];
        let checks = match policy {
            0 => SlackCheck::Fixed(interval * 100_000),
            _ => SlackCheck::Variable,
        };
        let alpha = ProgressRate::new(part, 10).unwrap();
        let policy = policies[policy as usize];
        let slow_ns = (seed % 2 == 0).then_some(MS);
        let margin_ns = late + stop;
        let settings = MonitorSettings { policy, checks, alpha, margin_ns, slow_ns, ..MonitorSettings::default() };
        let unit = MS / 10;
        let promised: Vec<JobReservation> =
            numbers.iter().map(|(c, t, d)| promised(c * unit, t * unit, d * unit)).collect();
        let works = numbers.iter().map(|(c, ..)| ((seed % (c * unit)).max(1), c * unit)).collect();
        let nature = Chance {
            dice: Dice::new(seed), least: part * 100, works, late_ns: late, stop_ns: stop,
        };
        let covered = monitor_of(settings, &promised);
        prop_assume!(covered == Some(true));
        let outcome = simulate(settings, &promised, nature, 200 * MS).unwrap();
        let missed: Vec<_> = outcome.jobs.iter().filter(|job| job.is_missed(200 * MS)).collect();
        prop_assert!(missed.is_empty(), "{:?} of {} jobs", missed, outcome.jobs.len());
        prop_assert_eq!(outcome.statistics.missed, 0);
    }
}

/// Whether the monitor says that its promises hold; `None` if it does not take the reservations.
fn monitor_of(settings: MonitorSettings, promised: &[JobReservation]) -> Option<bool> {
    use crate::progress::{ProgressPage, WordProgress};
    let word = || WordProgress::new(ProgressPage::create().unwrap());
    let watched = promised.iter().map(|promised| (*promised, Box::new(word()) as _)).collect();
    Some(Monitor::new(settings, watched).ok()?.is_covered())
}

/// Without proof that it holds, an alpha loses deadlines: the test above could fail.
#[test]
fn an_alpha_that_does_not_hold_misses() {
    let promised = [promised(6 * MS, 10 * MS, 10 * MS)];
    let settings =
        MonitorSettings { alpha: ProgressRate::new(1, 2).unwrap(), ..MonitorSettings::default() };
    let standing = Script { work_ns: 6 * MS, rates: vec![(0, 0)] };
    let outcome = simulate(settings, &promised, standing, 10 * MS + 1).unwrap();
    assert_eq!((outcome.missed(), outcome.statistics.missed), (1, 1));
}

/// Two reservations on one core: slack that equation 9 leaves to co-runners, though later jobs of the
/// first need it, is not given away.
#[test]
fn jobs_to_come_have_their_slack() {
    let promised = [promised(5 * MS, 10 * MS, 10 * MS), promised(8 * MS, 20 * MS, 20 * MS)];
    struct Standing;
    impl SimEnvironment for Standing {
        fn work_ns(&mut self, reservation: usize, _: u64) -> u64 {
            [5 * MS, 8 * MS][reservation]
        }
        fn rate(&mut self, _: usize, _: u64) -> (u64, u64) {
            (0, u64::MAX)
        }
    }
    let outcome = simulate(MonitorSettings::default(), &promised, Standing, 200 * MS).unwrap();
    assert_eq!(outcome.missed(), 0);
    let slack = outcome.looks[0].1.slack_ns.unwrap();
    assert!(
        (i128::from(MS)..=2 * i128::from(MS)).contains(&slack),
        "not the 5 ms of equation 9: {slack}"
    );
    // Their work never runs at the same time, so that the core has done one after the other.
    assert!(outcome.beside_ns >= 10 * MS, "co-runners had {} ns of slack", outcome.beside_ns);
}

/// Work that reports nothing; a test sets its progress and whether it sleeps.
#[derive(Clone, Default)]
struct SetProgress(Arc<Mutex<(u64, bool, bool)>>);

impl SetProgress {
    fn set(&self, done: u64, rests: bool) {
        (self.0.lock().unwrap().0, self.0.lock().unwrap().1) = (done, rests);
    }

    fn ends(&self) {
        self.0.lock().unwrap().2 = true;
    }
}

impl ProgressSource for SetProgress {
    fn name(&self) -> &'static str {
        "none"
    }

    fn begin(&mut self, _: u64) {
        self.0.lock().unwrap().0 = 0;
    }

    fn done_ns(&mut self) -> u64 {
        self.0.lock().unwrap().0
    }

    fn is_idle(&mut self) -> bool {
        self.0.lock().unwrap().1
    }

    fn has_ended(&mut self) -> bool {
        self.0.lock().unwrap().2
    }
}

fn watch(
    reserved: [JobReservation; 2],
    progress: [&SetProgress; 2],
) -> Vec<(JobReservation, Box<dyn ProgressSource>)> {
    let boxed = progress.map(|progress| Box::new(progress.clone()) as Box<dyn ProgressSource>);
    reserved.into_iter().zip(boxed).collect()
}

/// The bug: of several reservations, one whose work slept and reported nothing kept the processor from the others until
/// its deadline, with all co-runners stopped for it.
#[test]
fn who_sleeps_is_not_waited_for() {
    let reserved = [promised(3 * MS, 10 * MS, 10 * MS), promised(4 * MS, 20 * MS, 20 * MS)];
    let (first, second) = (SetProgress::default(), SetProgress::default());
    let watched = watch(reserved, [&first, &second]);
    let mut monitor = Monitor::new(MonitorSettings::default(), watched).unwrap();
    let order = monitor.check_slack(0);
    assert_eq!((order.runs, order.idle.has(0)), (Some(0), false));
    first.set(0, true);
    let order = monitor.check_slack(MS);
    assert!(order.runs == Some(1) && order.idle.has(0) && !order.idle.has(1), "{order:?}");
    // It is looked at again soon, and its work is not what slack is short of.
    assert!(order.next_ns <= MS + 10 * MS / 100 && order.level == CoRunnerLevel::Run, "{order:?}");
    assert!(order.slack_ns.unwrap() > 8 * i128::from(MS), "{order:?}");
    // The one whose turn it is not is held: whether it sleeps cannot be seen.
    first.set(0, false);
    second.set(0, true);
    let order = monitor.check_slack(2 * MS);
    assert!(order.runs == Some(0) && !order.idle.has(1), "the first one woke: {order:?}");
    let order = monitor.check_slack(2 * MS + MS / 2);
    assert!(order.runs == Some(0) && !order.idle.has(1), "{order:?}");
    // The first one sleeps, then the second one too, which runs by now: all may run.
    first.set(0, true);
    assert_eq!(monitor.check_slack(3 * MS).runs, Some(1));
    let order = monitor.check_slack(4 * MS);
    assert_eq!((order.runs, order.level), (None, CoRunnerLevel::Run), "{order:?}");
    // A sleeper is idle at its deadline, and not missed.
    monitor.check_slack(10 * MS);
    monitor.check_slack(20 * MS);
    let each: Vec<(u64, u64, u64)> =
        monitor.job_counts().map(|c| (c.jobs, c.missed, c.idle)).collect();
    assert_eq!(each, [(2, 0, 2), (1, 0, 1)]);
}

/// A reservation whose process ended takes nothing from the others any more, and misses nothing.
#[test]
fn who_has_ended_is_not_watched() {
    let reserved = [promised(6 * MS, 10 * MS, 10 * MS), promised(6 * MS, 20 * MS, 20 * MS)];
    let (first, second) = (SetProgress::default(), SetProgress::default());
    let watched = watch(reserved, [&first, &second]);
    let mut monitor = Monitor::new(MonitorSettings::default(), watched).unwrap();
    assert_eq!(monitor.check_slack(0).runs, Some(0));
    first.ends();
    let order = monitor.check_slack(MS);
    assert_eq!(order.runs, Some(1));
    // 19 ms are left for 6: the jobs of the other one, 6 ms of each 10, are no more.
    assert!(order.slack_ns.unwrap() > 12 * i128::from(MS), "{order:?}");
    second.set(6 * MS, false);
    let order = monitor.check_slack(7 * MS);
    assert_eq!((order.runs, order.next_ns), (None, 20 * MS));
    let each: Vec<(u64, u64)> =
        monitor.job_counts().map(|counts| (counts.jobs, counts.missed)).collect();
    assert_eq!(each, [(0, 0), (0, 0)]);
}

/// Each look costs: at a constant rate s the number of looks is ln(slack / smallest) / ln(1 / s), and
/// with the rate proven it is one.
#[test]
fn looks_are_as_rare_as_the_equations_say() {
    let promised = [promised(55 * MS, 70 * MS, 70 * MS)];
    let looks = |alpha: u64, rate: u64| {
        let settings = MonitorSettings {
            alpha: ProgressRate::new(alpha, 1_000).unwrap(),
            ..MonitorSettings::default()
        };
        let script = Script { work_ns: 55 * MS, rates: vec![(0, rate)] };
        let outcome = simulate(settings, &promised, script, 70 * MS).unwrap();
        assert_eq!(outcome.missed(), 0);
        trace(&outcome).len()
    };
    assert_eq!((looks(0, 500), looks(0, 600), looks(0, 750)), (12, 16, 27));
    assert_eq!((looks(500, 500), looks(600, 600)), (2, 2));
}

/// A graded stopper slows co-runners a millisecond of slack before it stops them.
#[test]
fn co_runners_are_slowed_before_they_are_stopped() {
    let promised = [promised(55 * MS, 70 * MS, 70 * MS)];
    let settings = MonitorSettings { slow_ns: Some(MS), ..MonitorSettings::default() };
    let script = Script { work_ns: 55 * MS, rates: vec![(0, 500)] };
    let outcome = simulate(settings, &promised, script, 70 * MS).unwrap();
    let levels: Vec<CoRunnerLevel> = outcome.looks.iter().map(|(_, order)| order.level).collect();
    let slowed = levels.iter().position(|level| *level == CoRunnerLevel::Slow).unwrap();
    let stopped = levels.iter().position(|level| *level == CoRunnerLevel::Stop).unwrap();
    assert!(slowed < stopped && levels[..slowed].iter().all(|level| *level == CoRunnerLevel::Run));
    let slack = |look: usize| outcome.looks[look].1.slack_ns.unwrap();
    assert!(slack(slowed) <= i128::from(MS + MonitorSettings::SMALLEST_NS), "{}", slack(slowed));
    assert!(slack(slowed - 1) > i128::from(MS), "{}", slack(slowed - 1));
    let seen = outcome.statistics;
    assert_eq!((seen.slows, seen.stops, outcome.missed()), (1, 1, 0));
}

/// An hour of a video encoder: 33.3 ms, 25 ms reserved.
#[test]
fn an_hour_without_a_miss() {
    let promised = [promised(25 * MS, 33_333_333, 33_333_333)];
    let nature = Chance {
        dice: Dice::new(7),
        least: 300,
        works: vec![(10 * MS, 25 * MS)],
        late_ns: 60_000,
        stop_ns: 60_000,
    };
    let settings = MonitorSettings { margin_ns: 120_000, ..MonitorSettings::default() };
    let hour = 3_600_000 * MS;
    let outcome = simulate(settings, &promised, nature, hour).unwrap();
    assert_eq!((outcome.missed(), outcome.statistics.missed), (0, 0));
    assert!(outcome.jobs.len() > 108_000, "{}", outcome.jobs.len());
    assert!(outcome.statistics.checks < 40 * outcome.jobs.len() as u64);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let script = || Script { work_ns: MS, rates: Vec::new() };
    let refused = |settings, promised: &[JobReservation]| {
        simulate(settings, promised, script(), MS).map(|_| ()).unwrap_err()
    };
    let half = promised(6 * MS, 10 * MS, 10 * MS);
    assert_eq!(refused(MonitorSettings::default(), &[]), MonitorError::Nothing);
    assert_eq!(refused(MonitorSettings::default(), &[half, half]), MonitorError::Overbooked);
    let never = MonitorSettings { checks: SlackCheck::Fixed(0), ..MonitorSettings::default() };
    assert_eq!(refused(never, &[half]), MonitorError::Interval);
    // The check of a command line before it starts anything gives equal answers.
    assert_eq!(
        monitor::check(MonitorSettings::default(), &[half, half]),
        Err(MonitorError::Overbooked)
    );
    assert_eq!(monitor::check(MonitorSettings::default(), &[half]), Ok(true));
    let tight = MonitorSettings { margin_ns: 5 * MS, ..MonitorSettings::default() };
    assert_eq!(monitor_of(tight, &[half]), Some(false), "no room for the margin");
    assert_eq!(monitor_of(MonitorSettings::default(), &[half]), Some(true));
}
