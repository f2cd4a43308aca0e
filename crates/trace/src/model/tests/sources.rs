//! Threads that several wake, and what one of a hundred programs of known truth was told wrongly as.

use super::*;

fn of(found: Vec<ThreadModel>, tid: u32) -> ThreadModel {
    found.into_iter().find(|one| one.tid == Some(tid)).unwrap()
}

/// Each 12th job sleeps until behind the next message, which does not wake the thread then: it was a release that came early, and
/// a jitter of a fraction of the wait.
#[test]
fn a_wait_past_the_next_release_is_no_release() {
    let mut writer = Writer::new(Dice::new(1));
    for job in 1..600 {
        let at = job * 10 * MS;
        writer.burst(8, at - 60 * US, 100 * US, None);
        match job % 12 {
            0 => {
                let end = writer.burst(7, at, 500 * US, Some(8));
                writer.burst(7, end + 9 * MS, 1_500 * US, None);
            }
            1 => {}
            _ => drop(writer.burst(7, at, 500 * US, Some(8))),
        }
    }
    let found = of(writer.infer(&[7, 8]), 7);
    assert!(found.unmodelled.is_some(), "{found:?}");
}

/// A second half of each job at a fixed time after the message: it was a period of half the length, or the halves of two jobs were
/// one.
#[test]
fn halves_of_a_job_are_no_jobs() {
    for (period, later) in [(10 * MS, 4 * MS), (10 * MS, 5 * MS), (20 * MS, 12 * MS)] {
        let mut writer = Writer::new(Dice::new(2));
        for job in 1..500 {
            let (at, is_heavy) = (job * period, job % 10 == 3);
            writer.burst(8, at - 60 * US, 100 * US, None);
            writer.burst(7, at, if is_heavy { 3 * MS } else { 800 * US }, Some(8));
            writer.burst(7, at + later, if is_heavy { 3 * MS } else { 1_500 * US }, None);
        }
        let found = of(writer.infer(&[7, 8]), 7);
        let is_whole = found.execution.max_ns >= 6 * MS;
        assert!(found.unmodelled.is_some() || is_whole, "{period} {later}: {found:?}");
    }
}

/// Each 4th job asks a server that sleeps before it answers: the answers began jobs of 40 ms, and both threads were said to miss
/// their deadlines.
#[test]
fn rare_answers_begin_no_jobs() {
    let mut writer = Writer::new(Dice::new(3));
    for job in 1..600 {
        let at = job * 10 * MS;
        writer.burst(8, at - 60 * US, 100 * US, None);
        let asked = writer.burst(7, at, MS, Some(8));
        if job % 4 > 0 {
            continue;
        }
        let slept = writer.burst(10, asked - 5 * US, 300 * US, Some(7));
        writer.burst(10, slept + 300 * US, 100 * US, None);
        writer.burst(7, slept + 360 * US, MS, Some(10));
    }
    let found = writer.infer(&[7, 8, 10]);
    let (work, server) = (of(found.clone(), 7), of(found, 10));
    assert_eq!(work.after.as_deref(), Some("8"), "{work:?}");
    assert!(work.execution.max_ns >= 2 * MS, "{work:?}");
    let waits = server.suspension.map_or(0, |waits| waits.max_ns);
    assert!(server.unmodelled.is_some() || waits <= MS, "{waits}");
}

/// A second thread sends each half second: its job is none within one of the first, which would take so long for sure.
#[test]
fn a_rare_second_source_makes_no_longer_job() {
    for is_thread in [true, false] {
        let mut writer = Writer::new(Dice::new(4));
        for job in 1..700 {
            let at = job * 10 * MS;
            let by = is_thread.then_some(8);
            writer.burst(8, at - 60 * US, 100 * US, None);
            writer.burst(7, at, MS, by);
            if job % 50 == 7 {
                writer.burst(11, at + 3 * MS - 60 * US, 100 * US, None);
                writer.burst(7, at + 3 * MS, 5 * MS, is_thread.then_some(11));
            }
        }
        let found = of(writer.infer(&[7, 8, 11]), 7);
        assert!(found.execution.at_least_ns.is_some_and(|least| least <= 5 * MS), "{found:?}");
    }
}

/// One to five steps with equal sleeps between them in each 50 ms: a period of 50 ms over 16, of which most had no job, or one source
/// at irregular times.
#[test]
fn equal_sleeps_within_a_job_are_no_arrivals() {
    right(|mut dice| {
        let (period, sleep) = (dice.between(40, 60) * MS, dice.between(3_000, 4_000) * US);
        let mut writer = Writer::new(Dice::new(dice.below(1 << 40)));
        for job in 1..250 {
            let mut at = job * period;
            for _ in 0..dice.between(1, 5) {
                at = writer.burst(7, at, 100 * US, None) + sleep;
            }
        }
        let found = one(writer.infer(&[7]));
        let is_whole = found.activation.period_ns.abs_diff(period) * 100 < period;
        match found.unmodelled.is_some() || is_whole {
            true => Ok(()),
            false => Err(format!("{period} {sleep}: {found:?}")),
        }
    });
}

/// A thread that waits for two others, one after the other, in each job: two jobs of a sporadic task were found. With messages of a
/// period of their own each it would be that.
#[test]
fn who_is_woken_in_turn_may_have_one_job_for_all() {
    for later in [3 * MS, 5 * MS] {
        let mut writer = Writer::new(Dice::new(5));
        for job in 1..500 {
            let at = job * 10 * MS;
            for (by, at, run) in [(8, at, 200 * US), (9, at + later, 2 * MS)] {
                writer.burst(by, at - 60 * US, 100 * US, None);
                writer.burst(7, at, run, Some(by));
            }
        }
        let found = of(writer.infer(&[7, 8, 9]), 7);
        let why = found.unmodelled.unwrap_or_default();
        assert!(why.starts_with("its wakers take turns"), "{later}: {why}");
    }
}

/// An event loop with timers of 10 and 20 ms: equal lengths of the waits between them were sleeps, and their work one job.
#[test]
fn two_timers_of_one_loop_are_not_one_job() {
    right(|mut dice| {
        let (second, work) = [(4, 3), (5, 3), (4, 2)][dice.below(3) as usize];
        let mut writer = Writer::new(Dice::new(dice.below(1 << 40)));
        for round in 1..400 {
            let at = round * 20 * MS;
            let timers = [(0, MS), (second * MS, work * MS), (10 * MS, MS)];
            for (timer, run) in timers {
                let late = writer.dice.below(8 * US);
                let held_up = if writer.dice.one_in(50) { 20 * US } else { 0 };
                let run = run + writer.dice.below(20 * US) + held_up;
                writer.burst(7, at + timer + late, run, None);
            }
        }
        let found = one(writer.infer(&[7]));
        let longest = work * MS + 100 * US;
        match found.unmodelled.is_some() || found.execution.max_ns <= longest {
            true => Ok(()),
            false => Err(format!("{second} {work}: {found:?}")),
        }
    });
}
