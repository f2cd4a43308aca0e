//! Programs whose waits have system calls: which of these begins the jobs is known, and what lies within is no guess.

use super::*;
use crate::WaitCall;

const QUEUE: (WaitCall, u64) = (WaitCall::Futex, 0x1000);
const ANSWER: (WaitCall, u64) = (WaitCall::Futex, 0x2000);
const SLEEP: (WaitCall, u64) = (WaitCall::Sleep, 0);
const TIMER: (WaitCall, u64) = (WaitCall::SleepUntil, 0);
const LOOP: (WaitCall, u64) = (WaitCall::Descriptor, 5);

impl Writer {
    /// As `burst`, with the call in which the thread waits then.
    fn step(
        &mut self,
        tid: u32,
        (at, run): (u64, u64),
        waker: Option<u32>,
        then: (WaitCall, u64),
    ) -> u64 {
        let end = self.burst(tid, at, run, waker);
        self.add(end - 1, Kind::Call, tid, (tid, then.0.code()), then.1);
        end
    }

    /// A thread that another one's message wakes each `period`, from 1 on.
    fn sender(&mut self, tid: u32, at: u64) {
        self.step(tid, (at - 60 * US, 100 * US), None, TIMER);
    }
}

fn of(writer: Writer, tids: &[u32], tid: u32) -> ThreadModel {
    writer.infer(tids).into_iter().find(|one| one.tid == Some(tid)).unwrap()
}

/// A sleep of random length in each job, in few, or one until behind the next message: without the calls no task, or a wrong one.
#[test]
fn sleeps_lie_within_jobs_that_a_timer_or_a_message_begins() {
    for (every, is_sent) in [(1, false), (3, false), (12, true), (40, true)] {
        let mut writer = Writer::new(Dice::new(every));
        let outer = if is_sent { QUEUE } else { TIMER };
        for job in 1..600 {
            let (at, run) = (job * 20 * MS, writer.dice.between(1_000, 4_000) * US);
            if is_sent {
                writer.sender(8, at);
            }
            let waker = is_sent.then_some(8);
            if job % every > 0 {
                writer.step(7, (at, run), waker, outer);
                continue;
            }
            let end = writer.step(7, (at, run), waker, SLEEP);
            let sleep = writer.dice.between(500, 5_000) * US;
            writer.step(7, (end + sleep, 2 * MS), None, outer);
        }
        let found = of(writer, &[7, 8], 7);
        let law = &found.activation;
        assert_eq!(found.unmodelled, None, "{every}: {found:?}");
        assert_eq!(
            (law.class, law.period_ns),
            (ActivationClass::Periodic, 20 * MS),
            "{every}: {found:?}"
        );
        assert!((5 * MS..=6 * MS).contains(&found.execution.max_ns), "{every}: {found:?}");
        assert!(found.suspension.is_some_and(|waits| waits.waits == 1), "{every}");
    }
}

/// A server sleeps before it answers each 4th job of a thread: neither its sleep nor the wait for it begins a job.
#[test]
fn an_answer_begins_no_job_and_a_question_does() {
    let mut writer = Writer::new(Dice::new(3));
    for job in 1..600 {
        let at = job * 10 * MS;
        writer.sender(8, at);
        if job % 4 > 0 {
            writer.step(7, (at, MS), Some(8), QUEUE);
            continue;
        }
        let asked = writer.step(7, (at, MS), Some(8), ANSWER);
        let slept = writer.step(10, (asked - 5 * US, 300 * US), Some(7), SLEEP);
        writer.step(10, (slept + 300 * US, 100 * US), None, (WaitCall::Futex, 0x3000));
        writer.step(7, (slept + 360 * US, MS), Some(10), QUEUE);
    }
    let found = writer.infer(&[7, 8, 10]);
    let of = |tid: u32| found.iter().find(|one| one.tid == Some(tid)).unwrap();
    let (work, server) = (of(7), of(10));
    assert_eq!((work.unmodelled.as_ref(), work.after.as_deref()), (None, Some("8")), "{work:?}");
    assert_eq!(work.execution.max_ns, 2 * MS, "{work:?}");
    assert_eq!(server.unmodelled, None, "{server:?}");
    assert_eq!(server.activation.period_ns.div_ceil(MS), 40, "{server:?}");
    assert_eq!(server.execution.max_ns, 400 * US, "{server:?}");
}

/// An event loop has one place for a timer and for messages at random times: each waking is a job.
#[test]
fn each_waking_of_one_place_is_a_job() {
    let mut writer = Writer::new(Dice::new(4));
    let mut sent = 3 * MS;
    for job in 1..400 {
        writer.step(7, (job * 10 * MS, MS), None, LOOP);
        while sent < (job + 1) * 10 * MS - 4 * MS {
            let at = sent.max(job * 10 * MS + 2 * MS);
            writer.sender(8, at);
            writer.step(7, (at, 3 * MS), Some(8), LOOP);
            sent = at + writer.dice.between(20, 60) * MS;
        }
    }
    let found = of(writer, &[7, 8], 7);
    assert_eq!((found.unmodelled.as_ref(), found.execution.max_ns), (None, 3 * MS), "{found:?}");
}

/// Of two threads that it waits for one after the other, the longer wait is that for its jobs; where both are about as long,
/// neither is sure.
#[test]
fn the_longest_wait_begins_the_jobs_or_none_does() {
    for (later, is_sure) in [(3 * MS, true), (9 * MS, false)] {
        let mut writer = Writer::new(Dice::new(5));
        for job in 1..500 {
            let at = job * 20 * MS;
            writer.sender(8, at);
            writer.step(7, (at, 200 * US), Some(8), ANSWER);
            writer.sender(9, at + later);
            writer.step(7, (at + later, 2 * MS), Some(9), QUEUE);
        }
        let found = of(writer, &[7, 8, 9], 7);
        match &found.unmodelled {
            None => assert_eq!((is_sure, found.execution.max_ns), (true, 2_200 * US), "{found:?}"),
            Some(why) => assert!(!is_sure && why.starts_with("it waits in several"), "{why}"),
        }
    }
}

/// The futexes of a condition variable are side by side, and that of its lock is another place.
#[test]
fn a_condition_variable_is_one_place() {
    let mut writer = Writer::new(Dice::new(6));
    let mut at = 20 * MS;
    for job in 0..300_u64 {
        writer.sender(8, at);
        let group = (WaitCall::Futex, 0x5028 + 4 * (job % 2));
        if job % 7 == 0 {
            let end = writer.step(7, (at, 5 * US), Some(8), (WaitCall::Futex, 0x6000));
            writer.step(7, (end + 40 * US, MS), Some(8), group);
        } else {
            writer.step(7, (at, MS), Some(8), group);
        }
        at += writer.dice.between(12, 40) * MS;
    }
    let found = of(writer, &[7, 8], 7);
    assert_eq!((found.unmodelled.as_ref(), found.after.as_deref()), (None, Some("8")), "{found:?}");
    assert_eq!((found.fit.jobs, found.execution.max_ns), (300, 1_005 * US), "{found:?}");
}

/// A thread that sleeps until random times: wakings soon after others are jobs, as there is no other place.
#[test]
fn random_times_of_one_timer_are_jobs() {
    let mut writer = Writer::new(Dice::new(7));
    let mut at = 20 * MS;
    for _ in 0..400 {
        let run = writer.dice.between(100, 900) * US;
        writer.step(7, (at, run), None, TIMER);
        at += writer.dice.between(2, 20) * MS;
    }
    let found = of(writer, &[7], 7);
    assert_eq!(found.unmodelled, None, "{found:?}");
    assert_ne!(found.activation.class, ActivationClass::Periodic, "{found:?}");
}

/// Two threads that wake each other once in each job: each was after the other.
#[test]
fn a_circle_is_no_chain() {
    let mut writer = Writer::new(Dice::new(8));
    let mut at = 20 * MS;
    for _ in 0..300 {
        let woken = writer.step(7, (at, 500 * US), Some(8), QUEUE) - 20 * US;
        at = writer.step(8, (woken, 700 * US), Some(7), ANSWER) + 5 * MS;
    }
    for thread in writer.infer(&[7, 8]) {
        let why = thread.unmodelled.clone().unwrap_or_default();
        assert!(thread.after.is_none() && why.contains("in a circle"), "{thread:?}");
    }
}

/// The calls of its first waits began before they were recorded: none of these wakings is known to begin a job. One within a job was
/// a release, late by its distance from the begin, and a job that took no time.
#[test]
fn jobs_begin_where_the_calls_are_known() {
    for first in [0, 1, 2, 3] {
        let mut writer = Writer::new(Dice::new(9));
        for job in 1..300 {
            let at = job * 10 * MS + 50 * US;
            let known = |of: u64| job * 2 + of > first + 2;
            let parts = [(at, 500 * US, SLEEP), (at + 3 * MS, 800 * US, TIMER)];
            for (place, (at, run, then)) in parts.into_iter().enumerate() {
                match known(place as u64) {
                    true => _ = writer.step(7, (at, run), None, then),
                    false => _ = writer.burst(7, at, run, None),
                }
            }
        }
        let found = of(writer, &[7], 7);
        let law = &found.activation;
        assert_eq!(found.unmodelled, None, "{first}: {found:?}");
        assert_eq!((law.period_ns, law.jitter_ns), (10 * MS, 0), "{first}: {found:?}");
        assert_eq!(found.execution.max_ns, 1_300 * US, "{first}: {found:?}");
        assert!(found.execution.at_least_ns >= Some(1_300 * US), "{first}: {found:?}");
    }
}

/// A thread that a busy host holds up does several jobs without a wait, and wakes the next one as often: it was no chain then.
#[test]
fn a_late_thread_wakes_the_next_one_several_times_in_a_job() {
    for is_late in [true, false] {
        let mut writer = Writer::new(Dice::new(10));
        for job in 1..400 {
            let at = job * 10 * MS;
            // Of the 100th job on, three are done in one, or one wakes the next thread three times.
            if job == 101 || job == 102 {
                if !is_late {
                    writer.step(8, (at, MS), None, TIMER);
                }
                continue;
            }
            let run = if job == 100 && is_late { 25 * MS } else { 2 * MS };
            writer.step(8, (at, run), None, TIMER);
            let woken = at + run - 10 * US;
            for again in 0..if job == 100 { 3 } else { 1 } {
                writer.step(7, (woken + again * MS, 500 * US), Some(8), QUEUE);
            }
        }
        let found = of(writer, &[7, 8], 7);
        assert_eq!(found.after.as_deref(), is_late.then_some("8"), "{found:?}");
        let fit = found.after_fit.map(|fit| (fit.jobs, fit.own));
        assert_eq!(fit, is_late.then_some((399, 399)), "{found:?}");
    }
}

/// A wait for 7 ms of 10 within each job, by a timeout or a timer of its own: it is longer than that for the job, and what is left
/// of the job behind it was told as the response of all of it.
#[test]
fn a_timeout_begins_no_job_however_long() {
    const OTHER_TIMER: (WaitCall, u64) = (WaitCall::Descriptor, 6);
    const POLL: (WaitCall, u64) = (WaitCall::Several, 0);
    for (outer, inner) in
        [(TIMER, POLL), (TIMER, ANSWER), (TIMER, OTHER_TIMER), (LOOP, POLL), (LOOP, OTHER_TIMER)]
    {
        let mut writer = Writer::new(Dice::new(11));
        for job in 1..500 {
            let late = writer.dice.between(0, 20) * US;
            let run = writer.dice.between(300, 900) * US;
            let end = writer.step(7, (job * 10 * MS + late, run), None, inner);
            let wait = 7 * MS + writer.dice.between(0, 20) * US;
            writer.step(7, (end + wait, 500 * US), None, outer);
        }
        let found = of(writer, &[7], 7);
        assert_eq!(found.unmodelled, None, "{inner:?}: {found:?}");
        let waits = found.suspension.as_ref().map(|waits| waits.max_ns / MS);
        assert_eq!(waits, Some(7), "{outer:?} {inner:?}: {found:?}");
        assert!(found.response.is_some_and(|all| all.max_ns > 7 * MS), "{outer:?} {inner:?}");
    }
}

/// Distances of 2, 2 and 36 ms, of 4, 6 and 11, of 3 and 7: they are on a grid of which most periods, or each 4th, have no job, and it
/// is no law of theirs.
#[test]
fn distances_that_come_again_are_no_period() {
    for distances in [&[2, 2, 36][..], &[4, 6, 11], &[3, 7]] {
        let mut writer = Writer::new(Dice::new(12));
        let mut at = 20 * MS;
        for distance in distances.iter().cycle().take(600) {
            let late = writer.dice.between(0, 20) * US;
            writer.step(7, (at + late, 500 * US), None, TIMER);
            at += distance * MS;
        }
        let found = of(writer, &[7], 7);
        assert_eq!(found.unmodelled, None, "{distances:?}: {found:?}");
        assert_ne!(found.activation.class, ActivationClass::Periodic, "{distances:?}: {found:?}");
    }
}

/// A server that works within each job of the thread that asks it: its time is in the suspension of that one, and it was after its end
/// as well. One that is asked at the end is after it.
#[test]
fn who_is_waited_for_is_not_after_the_job() {
    for is_within in [true, false] {
        let mut writer = Writer::new(Dice::new(13));
        for job in 1..400 {
            let at = job * 10 * MS;
            let asked = writer.step(7, (at, MS), None, if is_within { ANSWER } else { TIMER });
            let done = writer.step(10, (asked - 5 * US, 2 * MS), Some(7), QUEUE);
            if is_within {
                writer.step(7, (done - 5 * US, MS), Some(10), TIMER);
            }
        }
        let server = of(writer, &[7, 10], 10);
        let found = (server.after.as_deref(), server.waited_for);
        assert_eq!(found, (Some("7"), is_within), "{server:?}");
    }
}
