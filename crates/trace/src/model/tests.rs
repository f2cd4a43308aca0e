//! Threads of known model: what they do is drawn, written down as the kernel would, and inferred again.

use std::convert::Infallible;

use hourglass_dice::{Dice, seed};

use super::*;
use crate::{KernelEvent, KernelEventKind as Kind};

mod activations;
mod places;
mod programs;
mod sources;
mod waits;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const DRAWS: usize = 100;
/// Draws whose class must be found.
const RIGHT: usize = 95;
/// Flags of a waking by an interrupt, and by a thread.
const INTERRUPT: u64 = 0x9;
const THREAD: u64 = 0x1 | 9 << 32;

/// A kernel on which each thread has a CPU of its own, by its number.
struct Writer {
    dice: Dice,
    events: Vec<KernelEvent>,
}

impl Writer {
    fn new(dice: Dice) -> Writer {
        Writer { dice, events: Vec::new() }
    }

    fn add(&mut self, ns: u64, kind: Kind, cpu: u32, (a, b): (u32, u32), value: u64) {
        self.events.push(KernelEvent { ns: ns as i64, ticks: ns, value, cpu, a, b, kind });
    }

    /// Woken at `at`, it runs for `run` after a delay, at times preempted; returns its end.
    fn burst(&mut self, tid: u32, at: u64, run: u64, waker: Option<u32>) -> u64 {
        let (from, flags) =
            waker.map_or((tid, INTERRUPT), |waker| (waker, 1 | u64::from(waker) << 32));
        self.add(at, Kind::Waking, from, (tid, tid), flags);
        let mut start = at + self.dice.between(1, 20) * US;
        self.add(start, Kind::Switch, tid, (0, tid), 0);
        let mut left = run;
        if self.dice.one_in(10) {
            let first = self.dice.between(1, run - 1);
            self.add(start + first, Kind::Switch, tid, (tid, 999), 0);
            let back = start + first + self.dice.between(1, 50) * US;
            self.add(back, Kind::Switch, tid, (999, tid), 1);
            (start, left) = (back, run - first);
        }
        let end = start + left;
        self.add(end, Kind::Switch, tid, (tid, 0), 1);
        end
    }

    fn infer(self, tids: &[u32]) -> Vec<ThreadModel> {
        self.infer_followed(tids.iter().map(|tid| FollowedThread::from(*tid)))
    }

    fn infer_followed(
        mut self,
        threads: impl IntoIterator<Item = FollowedThread>,
    ) -> Vec<ThreadModel> {
        self.events.sort_by_key(|event| event.ns);
        let events = self.events.into_iter().map(Ok::<_, Infallible>);
        let Ok(activities) = of_events(threads, events);
        let facts = |tid: u32| ThreadModel {
            name: tid.to_string(),
            tid: Some(tid),
            ..ThreadModel::default()
        };
        infer(activities.into_iter().map(|(tid, activity)| (facts(tid), activity)).collect())
    }
}

struct Periodic {
    period: u64,
    jitter: u64,
    /// One period in so many has no job.
    skips: u64,
    jobs: u64,
    longest: u64,
}

impl Periodic {
    fn draw(dice: &mut Dice) -> Periodic {
        let period = dice.between(200, 40_000) * US + dice.between(0, 999);
        let jitter = dice.between(0, period / 5).min(2 * MS);
        Periodic {
            period,
            jitter,
            skips: dice.between(3, 50),
            jobs: dice.between(600, 1_500),
            longest: 0,
        }
    }

    fn write(&mut self, writer: &mut Writer, tid: u32) {
        let start = writer.dice.between(1, 9) * MS;
        for number in 0..self.jobs {
            if writer.dice.one_in(self.skips) {
                continue;
            }
            let late = writer.dice.between(0, self.jitter);
            let run = writer.dice.between(self.period / 20, self.period / 4);
            self.longest = self.longest.max(run);
            writer.burst(tid, start + number * self.period + late, run, None);
        }
    }

    fn is_found(&self, found: &ThreadModel) -> bool {
        let law = &found.activation;
        // Least execution time: never below the truth.
        assert!(found.execution.max_ns >= self.longest, "{found:?}");
        law.class == ActivationClass::Periodic
            && law.period_ns.abs_diff(self.period) * 1_000 <= self.period
            && law.jitter_ns.abs_diff(self.jitter) <= 20 * US
    }
}

/// How many of the draws are right, of which the wrong ones are printed.
fn right(each: impl Fn(Dice) -> Result<(), String>) {
    let seed = seed();
    let wrong: Vec<String> = (0..DRAWS as u64)
        .filter_map(|draw| {
            each(Dice::new(seed.wrapping_add(draw))).err().map(|why| format!("draw {draw}: {why}"))
        })
        .collect();
    assert!(
        DRAWS - wrong.len() >= RIGHT,
        "seed {seed}: {} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn one(found: Vec<ThreadModel>) -> ThreadModel {
    found.into_iter().next().unwrap()
}

#[test]
fn a_pipeline_is_a_chain_by_its_wakings() {
    right(|mut dice| {
        let truth = Periodic { skips: u64::MAX, ..Periodic::draw(&mut dice) };
        let mut writer = Writer::new(dice);
        let (mut earliest, mut longest) = (u64::MAX, 0);
        for number in 1..truth.jobs {
            let late = writer.dice.between(0, truth.jitter);
            let mut at = number * truth.period + late;
            earliest = earliest.min(late);
            for (tid, waker) in [(7, None), (8, Some(7)), (9, Some(8))] {
                let run = writer.dice.between(truth.period / 50, truth.period / 10);
                // A thread wakes the next one while it still runs.
                at = writer.burst(tid, at, run, waker) - 1;
            }
            longest = longest.max(at + 1 - number * truth.period);
        }
        let found = writer.infer(&[7, 8, 9]);
        let after: Vec<Option<&str>> = found.iter().map(|one| one.after.as_deref()).collect();
        let classes = found.iter().all(|one| one.activation.class == ActivationClass::Periodic);
        // From the arrival of the first, which is the earliest release in any period.
        let response = found.get(2).and_then(|last| last.response?.from_nominal_ns);
        let is_measured =
            response.is_some_and(|found| found.abs_diff(longest - earliest) <= 20 * US);
        if classes && after == [None, Some("7"), Some("8")] && is_measured {
            Ok(())
        } else {
            Err(format!("{} {}: {found:?}", truth.period, truth.jitter))
        }
    });
}

#[test]
fn what_cannot_be_modelled_says_why() {
    let mut writer = Writer::new(Dice::new(1));
    (1..10).for_each(|number| {
        writer.burst(7, number * MS, 100 * US, None);
    });
    // It never waits.
    writer.add(1, Kind::Switch, 8, (0, 8), 0);
    writer.add(5 * MS, Kind::Switch, 8, (8, 999), 0);
    writer.add(6 * MS, Kind::Switch, 8, (999, 8), 0);
    // It ends behind its only job (`EXIT_DEAD`).
    writer.add(200 * MS, Kind::Waking, 9, (9, 9), INTERRUPT);
    writer.add(201 * MS, Kind::Switch, 9, (0, 9), 0);
    writer.add(202 * MS, Kind::Switch, 9, (9, 0), 16);
    let found = writer.infer(&[7, 8, 9]);
    let why = |thread: &ThreadModel| thread.unmodelled.clone().unwrap();
    assert!(why(&found[0]).starts_with("9 jobs are too few"), "{}", why(&found[0]));
    assert_eq!(why(&found[2]), "1 job is too few to state a law, which takes 20, and it ended");
    assert!(why(&found[1]).contains("not seen to begin a job"), "{}", why(&found[1]));
    assert_eq!(found[0].activation.class, ActivationClass::Unknown);
    assert!(found[1].execution.max_ns >= 5 * MS - 1);
}

/// Nothing is measured across lost events: a job with a hole is no whole one, a distance across it does not count.
#[test]
fn lost_events_cut_jobs_off() {
    let mut writer = Writer::new(Dice::new(1));
    for number in 1..100 {
        writer.burst(7, number * 10 * MS, MS, None);
    }
    writer.add(500 * MS + 500 * US, Kind::Lost, 7, (0, 0), 3);
    let found = one(writer.infer(&[7]));
    assert_eq!((found.fit.holes, found.fit.cut_off, found.fit.jobs), (1, 1, 99));
    assert_eq!(
        (found.activation.period_ns, found.activation.class),
        (10 * MS, ActivationClass::Periodic)
    );
    assert_eq!((found.execution.max_ns, found.execution.min_ns), (MS, MS));
}

/// The switch by which a job ends is missing: another thread leaves the CPU later. What the job ran is not known, and does
/// not become the longest.
#[test]
fn a_missing_end_makes_no_long_job() {
    let mut writer = Writer::new(Dice::new(1));
    for number in 1..50_u64 {
        let at = number * MS;
        writer.add(at, Kind::Waking, 3, (7, 7), INTERRUPT);
        writer.add(at + 3_000, Kind::Switch, 7, (0, 7), 0);
        if number != 20 {
            writer.add(at + 103_000, Kind::Switch, 7, (7, 0), 1);
        }
        writer.add(at + 900_000, Kind::Switch, 7, (0, 5), 0);
        writer.add(at + 910_000, Kind::Switch, 7, (5, 0), 1);
    }
    let found = one(writer.infer(&[7]));
    assert_eq!((found.fit.jobs, found.fit.holes, found.fit.cut_off), (49, 0, 1));
    assert_eq!((found.execution.min_ns, found.execution.max_ns), (100 * US, 100 * US));
}

/// A job of which the switch to the thread is missing has run no longer than from its waking.
#[test]
fn a_missing_switch_makes_a_job_longer_and_no_hole() {
    let mut writer = Writer::new(Dice::new(1));
    for number in 1..50_u64 {
        let at = number * MS;
        writer.add(at, Kind::Waking, 3, (7, 7), INTERRUPT);
        if number % 2 == 0 {
            writer.add(at + 3_000, Kind::Switch, 7, (0, 7), 0);
        }
        writer.add(at + 103_000, Kind::Switch, 7, (7, 0), 1);
    }
    let found = one(writer.infer(&[7]));
    assert_eq!((found.fit.jobs, found.fit.holes, found.fit.cut_off), (49, 0, 25));
    assert_eq!((found.execution.min_ns, found.execution.max_ns), (100 * US, 103 * US));
}

/// The record of one CPU may have a waking before the switch of another one that it ends.
#[test]
fn a_waking_before_the_end_of_the_job_belongs_to_the_next() {
    let mut writer = Writer::new(Dice::new(1));
    for number in 1..50_u64 {
        let at = number * MS;
        writer.add(at, Kind::Waking, 3, (7, 7), THREAD);
        writer.add(at + 2_000, Kind::Switch, 7, (7, 0), 1);
        writer.add(at + 3_000, Kind::Switch, 7, (0, 7), 0);
    }
    let found = one(writer.infer(&[7]));
    assert_eq!((found.fit.jobs, found.execution.max_ns), (49, 999 * US));
    assert_eq!(found.activation.period_ns, MS);
}

/// Of a job without the switch to it, nothing is certain.
#[test]
fn a_missing_switch_leaves_no_certain_time() {
    let mut writer = Writer::new(Dice::new(1));
    for number in 0..40_u64 {
        let (at, late) = (10 * MS * (number + 1), 8 * MS * u64::from(number == 20));
        writer.add(at, Kind::Waking, 1, (1, 1), INTERRUPT);
        if late == 0 {
            writer.add(at, Kind::Switch, 1, (0, 1), 0);
        }
        writer.add(at + late + MS, Kind::Switch, 1, (1, 0), 1);
    }
    let found = of_events([1], writer.events.into_iter().map(Ok::<_, Infallible>)).unwrap();
    let model = &infer(vec![(ThreadModel::default(), found[&1].clone())])[0];
    assert_eq!((model.execution.max_ns, model.execution.at_least_ns), (9 * MS, Some(MS)));
}
