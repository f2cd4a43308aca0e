//! The smallest cases of what rt-app and PipeWire did on a recorded machine.

use super::*;

/// rt-app's `resume` under a mutex: who holds it loses the CPU for most of a period, and the woken thread waits for it as
/// long. A waker that begins another job in between had work to do.
#[test]
fn a_waker_without_the_cpu_begins_no_further_job() {
    let mut writer = Writer::new(Dice::new(3));
    for job in 1..200 {
        let (at, away) = (job * 10 * MS, if job % 8 == 0 { 6 * MS } else { 0 });
        writer.add(at, Kind::Waking, 8, (8, 8), INTERRUPT);
        writer.add(at, Kind::Switch, 8, (0, 8), 0);
        if away > 0 {
            writer.add(at + 101 * US, Kind::Switch, 8, (8, 999), 0);
            writer.add(at + 101 * US + away, Kind::Switch, 8, (999, 8), 1);
        }
        let waited = away + 110 * US;
        for (woken, run) in [(at + 100 * US, 5 * US), (at + waited, MS)] {
            writer.add(woken, Kind::Waking, 8, (7, 7), 1 | 8 << 32);
            writer.add(woken + US, Kind::Switch, 7, (0, 7), 0);
            writer.add(woken + US + run, Kind::Switch, 7, (7, 0), 1);
        }
        writer.add(at + waited + 400 * US, Kind::Switch, 8, (8, 0), 1);
    }
    let found = writer.infer(&[7, 8]).into_iter().find(|thread| thread.tid == Some(7)).unwrap();
    assert_eq!((found.after.as_deref(), found.fit.jobs), (Some("8"), 199));
}

/// Two threads of rt-app share a mutex: in some of its jobs one waits for the other. Messages at the same places are no such
/// waits, as their sender comes later than the wait.
#[test]
fn a_lock_that_is_held_at_times_hides_no_period() {
    for is_lock in [true, false] {
        let mut writer = Writer::new(Dice::new(4));
        for job in 1..200 {
            let at = job * 5 * MS;
            writer.add(at, Kind::Waking, 7, (7, 7), INTERRUPT);
            writer.add(at + US, Kind::Switch, 7, (0, 7), 0);
            writer.add(at + 200 * US, Kind::Switch, 7, (7, 0), 1);
            if writer.dice.one_in(4) {
                // The other one began before the wait, or after it; it ends the wait at a place of its own.
                let begin = if is_lock { at } else { at + 250 * US };
                let free = at + 300 * US + writer.dice.between(0, 2_000) * US;
                writer.add(begin, Kind::Waking, 8, (8, 8), INTERRUPT);
                writer.add(begin, Kind::Switch, 8, (0, 8), 0);
                writer.add(free, Kind::Waking, 8, (7, 7), 1 | 8 << 32);
                writer.add(free + US, Kind::Switch, 7, (0, 7), 0);
                writer.add(free + 400 * US, Kind::Switch, 7, (7, 0), 1);
                writer.add(free + 500 * US, Kind::Switch, 8, (8, 0), 1);
            }
        }
        let found = writer.infer(&[7, 8]).into_iter().find(|one| one.tid == Some(7)).unwrap();
        let is_periodic = found.activation.class == ActivationClass::Periodic;
        assert_eq!(is_periodic && found.activation.period_ns == 5 * MS, is_lock, "{found:?}");
        assert_eq!(found.suspension.is_some(), is_lock);
    }
}

/// Three threads of 10, 15 and 25 ms share a mutex: once in 150 ms it goes from one to the next, and the last waits for one that waited
/// itself; or it gets a message then. Neither is its period.
#[test]
fn a_lock_that_goes_from_one_to_the_next_hides_no_period() {
    for is_lock in [true, false] {
        let mut writer = Writer::new(Dice::new(8));
        for job in 10..400 {
            let at = job * 15 * MS + writer.dice.between(0, 20) * US;
            writer.add(at, Kind::Waking, 7, (7, 7), INTERRUPT);
            writer.add(at + US, Kind::Switch, 7, (0, 7), 0);
            writer.add(at + 100 * US, Kind::Switch, 7, (7, 0), 1);
            if job % 10 > 0 {
                continue;
            }
            let begin = if is_lock { at - 100 * US } else { at + 200 * US };
            writer.add(begin, Kind::Waking, 9, (9, 9), INTERRUPT);
            writer.add(begin, Kind::Switch, 9, (0, 9), 0);
            // Kernels leave out switches from an idle CPU.
            let is_seen = job % 30 > 0;
            writer.add(begin + 20 * US, Kind::Waking, 8, (8, 8), INTERRUPT);
            writer.add(begin + 20 * US, Kind::Switch, 8, (0, 8), 0);
            writer.add(begin + 30 * US, Kind::Switch, 8, (8, 0), 1);
            writer.add(at + 500 * US, Kind::Waking, 9, (8, 8), 1 | 9 << 32);
            if is_seen {
                writer.add(at + 500 * US, Kind::Switch, 8, (0, 8), 0);
            }
            writer.add(at + 510 * US, Kind::Switch, 9, (9, 0), 1);
            writer.add(at + 800 * US, Kind::Waking, 8, (7, 7), 1 | 8 << 32);
            writer.add(at + 800 * US, Kind::Switch, 7, (0, 7), 0);
            writer.add(at + 810 * US, Kind::Switch, 8, (8, 0), 1);
            writer.add(at + 900 * US, Kind::Switch, 7, (7, 0), 1);
        }
        let found = writer.infer(&[7, 8, 9]).into_iter().find(|one| one.tid == Some(7)).unwrap();
        let is_periodic = found.activation.class == ActivationClass::Periodic;
        assert_eq!(is_periodic, is_lock, "{found:?}");
        assert!(!is_lock || found.activation.period_ns == 15 * MS, "{found:?}");
    }
}

/// What a thread that is not followed takes from a job is no part of its response; also where the kernel left out the switch
/// to it, and where the CPU was idle until then: on a guest, a bound was called broken by the record that it was made of.
#[test]
fn the_time_of_others_is_told_from_a_response() {
    for (is_seen, other) in [(true, 999), (false, 999), (true, 0)] {
        let mut writer = Writer::new(Dice::new(5));
        for job in 1..50 {
            let at = job * 10 * MS;
            writer.add(at - MS, Kind::Switch, 7, (0, 0), 0);
            if is_seen {
                writer.add(at - MS / 2, Kind::Switch, 7, (0, other), 0);
            }
            writer.add(at, Kind::Waking, 7, (7, 7), INTERRUPT);
            writer.add(at + 3 * MS, Kind::Switch, 7, (other, 7), 0);
            writer.add(at + 4 * MS, Kind::Switch, 7, (7, 0), 1);
        }
        let response = writer.infer(&[7])[0].response.unwrap();
        assert_eq!((response.max_ns, response.alone_ns), (4 * MS, Some(MS)), "{is_seen} {other}");
        assert_eq!(response.from_nominal_alone_ns, Some(MS));
    }
}

/// On a kernel that leaves out a switch back, a waking by who had the CPU shows until when the thread did not run.
#[test]
fn a_waking_by_another_thread_bounds_a_job_without_its_begin() {
    let mut writer = Writer::new(Dice::new(6));
    for job in 1..50 {
        let at = job * 10 * MS;
        writer.add(at, Kind::Waking, 7, (7, 7), INTERRUPT);
        writer.add(at, Kind::Switch, 7, (0, 7), 0);
        writer.add(at + MS, Kind::Switch, 7, (7, 999), 0);
        writer.add(at + 4 * MS, Kind::Waking, 7, (15, 15), 1 | 999 << 32);
        // Its own waking of another one bounds nothing.
        writer.add(at + 4 * MS + US, Kind::Waking, 7, (16, 16), 1 | 7 << 32);
        writer.add(at + 5 * MS, Kind::Switch, 7, (7, 0), 1);
    }
    let found = writer.infer(&[7]);
    assert_eq!(found[0].execution.max_ns, 2 * MS);
    assert_eq!(found[0].fit.cut_off, 49);
}

/// rt-app's `run`, `sleep`, `run`, `timer` of 10 ms, whose second run begins after 2.5 ms each time: 2.5 ms are no period of it.
#[test]
fn a_pattern_of_empty_periods_is_no_grid() {
    let mut writer = Writer::new(Dice::new(7));
    for job in 1..200 {
        for at in [job * 10 * MS, job * 10 * MS + 2_500 * US] {
            let at = at + writer.dice.between(0, 30) * US;
            writer.add(at, Kind::Waking, 7, (7, 7), INTERRUPT);
            writer.add(at + US, Kind::Switch, 7, (0, 7), 0);
            writer.add(at + 500 * US, Kind::Switch, 7, (7, 0), 1);
        }
    }
    let law = writer.infer(&[7])[0].activation.clone();
    assert_ne!(law.class, ActivationClass::Periodic, "{law:?}");
    assert!(law.period_ns >= 2_470 * US, "{law:?}");
}

/// Nothing else ran for 30 periods: the jobs before and after them are on one grid.
#[test]
fn one_long_pause_is_no_pattern() {
    let mut writer = Writer::new(Dice::new(8));
    for job in (1..40).chain(70..110) {
        writer.burst(7, job * 100 * MS, MS, None);
    }
    let law = writer.infer(&[7])[0].activation.clone();
    assert_eq!((law.class, law.period_ns, law.skipped), (ActivationClass::Periodic, 100 * MS, 30));
}

/// A thread held up at times is woken for its next job while it is still at work: 97 of 100 jobs had a waking of their own, and
/// the chain was told as none. One that leaves out jobs while it waits is in none.
#[test]
fn a_chain_with_merged_wakings_is_one_with_a_share() {
    for is_merged in [true, false] {
        let mut writer = Writer::new(Dice::new(9));
        for job in 1..=300 {
            let at = job * 10 * MS;
            writer.burst(8, at, MS, None);
            let (is_first, is_second) = (job % 33 == 1, job % 33 == 2);
            if is_second {
                continue;
            }
            let run = if is_first && is_merged { 14 * MS } else { 4 * MS };
            writer.add(at + 500 * US, Kind::Waking, 8, (7, 7), 1 | 8 << 32);
            writer.add(at + 501 * US, Kind::Switch, 7, (0, 7), 0);
            writer.add(at + 501 * US + run, Kind::Switch, 7, (7, 0), 1);
        }
        let found = writer.infer(&[7, 8]).into_iter().find(|one| one.tid == Some(7)).unwrap();
        assert_eq!(found.after.as_deref(), is_merged.then_some("8"), "{found:?}");
        let fit = found.after_fit.map(|fit| (fit.jobs, fit.own, fit.merged));
        assert_eq!(fit, is_merged.then_some((300, 290, 10)));
        if is_merged {
            assert_eq!(found.execution.max_ns, 14 * MS);
            assert_eq!(found.execution.at_least_ns, Some(7 * MS));
        }
    }
}

/// rt-app's `run`, `sleep`, `run`, `timer` beside load: now and then it is late, and goes on without the wait for its timer. It
/// was sporadic, with the execution time of a part of its job. With a grid it is periodic; where messages wake it instead, no
/// task. What waits for one of both alone is sporadic.
#[test]
fn sleeps_among_other_waits_are_no_arrivals() {
    right(|mut dice| {
        let (timer, sleeps, is_held) = (dice.one_in(2), !dice.one_in(3), dice.one_in(2));
        let sleep = dice.between(1_000, 3_000) * US;
        let (mut at, mut longest) = (10 * MS, 0);
        let mut writer = Writer::new(Dice::new(dice.below(1 << 40)));
        // Until when it has run since it was woken.
        let mut now = at;
        writer.add(now, Kind::Waking, 7, (7, 7), INTERRUPT);
        writer.add(now, Kind::Switch, 7, (0, 7), 0);
        let wait = |writer: &mut Writer, from: u64, until: u64| {
            writer.add(from, Kind::Switch, 7, (7, 0), 1);
            writer.add(until, Kind::Waking, 7, (7, 7), INTERRUPT);
            writer.add(until + US, Kind::Switch, 7, (0, 7), 0);
            until + US
        };
        for _ in 0..600 {
            let [first, last] = [(); 2].map(|()| dice.between(200, 1_500) * US);
            let long = if dice.one_in(40) { 6 * MS } else { 0 };
            longest = longest.max(first + last + if is_held { 0 } else { long });
            now += first;
            if sleeps {
                // An interrupt comes late at times, as on a guest.
                let late = if dice.one_in(50) { dice.between(200, 1_500) * US } else { 0 };
                now = wait(&mut writer, now, now + sleep + dice.below(40 * US) + late);
            }
            if is_held && long > 0 {
                writer.add(now + 10 * US, Kind::Switch, 7, (7, 999), 0);
                writer.add(now + 10 * US + long, Kind::Switch, 7, (999, 7), 1);
            }
            now += last + long;
            at += if timer { 10 * MS } else { dice.between(8, 30) * MS };
            if now < at {
                now = wait(&mut writer, now, at + dice.below(10 * US));
            }
        }
        let found = one(writer.infer(&[7]));
        let (class, period) = (found.activation.class, found.activation.period_ns);
        let is_periodic = (class, period) == (ActivationClass::Periodic, 10 * MS);
        let is_right = match (timer, sleeps) {
            (true, _) => {
                let least = found.execution.at_least_ns.unwrap_or(0);
                is_periodic && found.execution.max_ns >= longest && least <= longest
            }
            (false, true) => found.unmodelled.is_some(),
            (false, false) => found.unmodelled.is_none(),
        };
        if is_right {
            Ok(())
        } else {
            Err(format!(
                "{timer} {sleeps} {is_held} {longest}: {:?} {:?} {:?} {:?}",
                found.activation, found.unmodelled, found.execution.max_ns, found.suspension
            ))
        }
    });
}

/// Two threads with timers of their own each write to a queue, and a third one reads it: it was called periodic, its readings
/// of the second thread's writings to be waits in a job. A server that is asked and answers ends such waits.
#[test]
fn a_second_source_is_no_wait_within_a_job() {
    for is_server in [true, false] {
        let mut writer = Writer::new(Dice::new(10));
        for job in 1..400 {
            let at = job * 10 * MS;
            let asked = writer.burst(7, at, 300 * US, Some(9));
            // Between the wait and the next job of the first source.
            let own = at + MS + writer.dice.between(0, 3_000) * US;
            let (begin, flags) = match is_server {
                true => (asked - 5 * US, 1 | 7 << 32),
                false => (own, INTERRUPT),
            };
            writer.add(begin, Kind::Waking, 8, (8, 8), flags);
            writer.add(begin + US, Kind::Switch, 8, (0, 8), 0);
            writer.burst(7, own + 500 * US, 400 * US, Some(8));
            writer.add(own + 600 * US, Kind::Switch, 8, (8, 0), 1);
        }
        let found = writer.infer(&[7, 8]).into_iter().find(|one| one.tid == Some(7)).unwrap();
        let law = &found.activation;
        let is_one = (law.class, law.period_ns) == (ActivationClass::Periodic, 10 * MS);
        assert_eq!((is_one, found.suspension.is_some()), (is_server, is_server), "{found:?}");
    }
}

/// A thread that waits for a client of which one answer came more than a period late, and one with a job of five waits more, on
/// page faults: each became a burst, its execution time that of a part of the job.
#[test]
fn one_job_that_was_held_up_hides_no_waits() {
    for (held, faults) in [(11 * MS, 0), (0, 5)] {
        let mut writer = Writer::new(Dice::new(11));
        // The job after the late one has no waking of its own.
        for job in (1..300).filter(|job| *job != 151 || held == 0) {
            let (at, is_odd) = (job * 10 * MS, job == 150);
            writer.burst(7, at, 300 * US, None);
            let mut answer = at + MS + writer.dice.between(0, 900) * US;
            for _ in 0..if is_odd { faults } else { 0 } {
                writer.burst(7, answer, 20 * US, Some(9));
                answer += 100 * US;
            }
            answer += if is_odd { held } else { 0 };
            writer.burst(7, answer, 400 * US, Some(9));
        }
        let found = one(writer.infer(&[7]));
        let law = &found.activation;
        assert_eq!((law.class, law.period_ns), (ActivationClass::Periodic, 10 * MS), "{found:?}");
        assert!(found.suspension.is_some() && found.execution.max_ns >= 700 * US, "{found:?}");
    }
}

/// A timer of 10 ms, and within each job a sleep of random length: it was a burst of two, half a job each.
#[test]
fn a_random_wait_between_timers_is_within_the_job() {
    right(|mut dice| {
        let period = dice.between(5_000, 40_000) * US;
        let [first, last] = [(); 2].map(|()| dice.between(period / 100, period / 8));
        let (shortest, spread) = (period / 50, dice.between(period / 50, period / 4));
        let mut writer = Writer::new(Dice::new(dice.below(1 << 40)));
        for number in 1..700 {
            let at = number * period + writer.dice.between(0, period / 1000);
            let end = writer.burst(7, at, first, None);
            let wait = shortest + writer.dice.between(0, spread);
            writer.burst(7, end + wait, last, None);
        }
        let found = one(writer.infer(&[7]));
        let law = &found.activation;
        let is_right = (law.class, law.period_ns) == (ActivationClass::Periodic, period);
        match is_right && found.suspension.is_some_and(|waits| waits.waits == 1) {
            true => Ok(()),
            false => Err(format!("{period} {first} {last} {spread}: {law:?}")),
        }
    });
}

/// A thread of the deadline class that yields at the end of each job, as its documentation has it: no job was seen to begin,
/// since neither the yield is a wait nor the next budget a waking. Every 20th job needs a budget and a half, and others of the
/// class preempt at times. Some kernels leave out switches from an idle CPU, and a thread may be moved when it gets its budget.
#[test]
fn a_yield_in_the_deadline_class_ends_a_job() {
    right(|mut dice| {
        let period = dice.between(2_000, 50_000) * US;
        let budget = period / 4;
        let mut writer = Writer::new(Dice::new(dice.below(1 << 40)));
        let (mut longest, mut at) = (0, period);
        for job in 0..300_u64 {
            let own = writer.dice.between(budget / 4, budget * 9 / 10);
            let (mut left, is_long) = (own + if job % 20 == 7 { budget } else { 0 }, job % 20 == 7);
            longest = longest.max(left);
            loop {
                let mut begin = at + writer.dice.between(1, 30) * US;
                if writer.dice.one_in(5) {
                    writer.add(at, Kind::Migrate, 7, (7, 1), 0);
                }
                if is_long || !writer.dice.one_in(10) {
                    writer.add(begin, Kind::Switch, 7, (0, 7), 0);
                }
                let now = left.min(budget);
                if writer.dice.one_in(10) {
                    writer.add(begin + now / 2, Kind::Switch, 7, (7, 999), 0);
                    writer.add(begin + now / 2 + period / 8, Kind::Switch, 7, (999, 7), 0);
                    begin += period / 8;
                }
                writer.add(begin + now, Kind::Switch, 7, (7, 999), 0);
                // Until the next job of this CPU.
                writer.add(at + period - 10 * US, Kind::Switch, 7, (999, 0), 1);
                (left, at) = (left - now, at + period);
                if left == 0 {
                    break;
                }
            }
        }
        let budget = Some(Budget { budget_ns: budget, period_ns: period });
        let found =
            one(writer.infer_followed([FollowedThread { budget, ..FollowedThread::from(7) }]));
        let (law, ran) = (&found.activation, &found.execution);
        let is_law = law.class == ActivationClass::Periodic
            && law.period_ns.abs_diff(period) <= period / 1_000
            && law.jitter_ns <= period / 8;
        let is_cost = ran.max_ns.abs_diff(longest) <= 50 * US;
        match is_law && is_cost && found.suspension.is_none() {
            true => Ok(()),
            false => Err(format!("{period} {longest}: {found:?}")),
        }
    });
}

/// Time that others of the class take is no part of a response, and time without a budget is: a job of 3 ms of which 2 are given
/// in each 10 ms, and one of 1 ms that another thread holds up for 2.
#[test]
fn a_throttled_thread_is_not_ready() {
    for (pieces, max_ns, alone_ns) in
        [([(0, 2), (10, 1)], 11 * MS, 11 * MS), ([(0, 1), (3, 0)], 3 * MS, MS)]
    {
        let mut writer = Writer::new(Dice::new(12));
        for job in 1..60 {
            let at = job * 20 * MS;
            for (begin, run) in if job == 30 { pieces } else { [(0, 1), (10, 1)] } {
                writer.add(at + begin * MS, Kind::Switch, 7, (999, 7), 0);
                writer.add(at + (begin + run) * MS, Kind::Switch, 7, (7, 999), 0);
            }
        }
        let budget = Some(Budget { budget_ns: 2 * MS, period_ns: 10 * MS });
        let found =
            one(writer.infer_followed([FollowedThread { budget, ..FollowedThread::from(7) }]));
        let response = found.response.unwrap();
        assert_eq!((response.max_ns, response.alone_ns), (max_ns, Some(alone_ns)), "{found:?}");
    }
}

/// A thread that runs, sleeps for a constant time, and runs again in each period, nearly equally long each time: two wakings
/// at constant distances, as by two timers. Where it ran longer, the sleep began later, and a timer did not.
#[test]
fn a_sleep_behind_constant_work_is_told_from_a_second_timer() {
    // The second sleep is near the middle of the period. Work varies by a little, or once in a while by more.
    for (period, sleep) in [(10 * MS, MS), (20 * MS, 8 * MS)] {
        for (is_sleep, is_rare) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut writer = Writer::new(Dice::new(9));
            // The record begins with the rest of a job.
            for job in 0..400 {
                let at = job * period;
                let longer = if is_rare && job % 20 == 7 { 300 * US } else { 0 };
                let run = 500 * US + longer + writer.dice.between(0, 12) * US;
                let from = if is_sleep { at + run } else { at + 500 * US };
                let again = from + sleep + writer.dice.between(0, 5) * US;
                for (begin, run) in [(at, run), (again, 250 * US)] {
                    if begin > 0 {
                        writer.add(begin, Kind::Waking, 7, (7, 7), INTERRUPT);
                        writer.add(begin, Kind::Switch, 7, (0, 7), 0);
                        writer.add(begin + run, Kind::Switch, 7, (7, 0), 1);
                    }
                }
            }
            let found = one(writer.infer(&[7]));
            let waits = found.suspension.as_ref().map(|found| found.waits);
            let what = format!("{is_sleep} {is_rare} {found:?}");
            assert_eq!(waits, is_sleep.then_some(1), "{what}");
            if is_sleep {
                let law = found.activation;
                assert_eq!(
                    (law.class, law.period_ns),
                    (ActivationClass::Periodic, period),
                    "{what}"
                );
                assert!(law.jitter_ns <= 20 * US && found.execution.max_ns >= 750 * US, "{what}");
            }
        }
    }
}

/// A process is stopped by a signal, and goes on by another one: in its wait, or at work. The bug: both wakings were jobs, and
/// what came late behind the stop was said to be the fault of what ran beside it.
#[test]
fn a_stop_is_no_job_and_is_named_where_it_hides_the_law() {
    let (period, run) = (10 * MS, 2 * MS);
    // A thread that is continued goes back to its wait, or has the releases of a long stop before it.
    for (at_work, held) in [(false, 3 * MS), (true, 3 * MS), (false, 700 * MS), (true, 700 * MS)] {
        let mut writer = Writer::new(Dice::new(6));
        // Late jobs hide no period, but they hide the least distance of others.
        let growth = if held < period { 0 } else { 50 * US };
        let release = |job: u64| job * period + job * job * growth;
        for job in 1..100 {
            writer.burst(7, release(job), run, None);
        }
        let job_at = release(100);
        let mut at = job_at + 5 * MS;
        let left = if at_work { MS } else { 0 };
        if at_work {
            at = job_at + MS;
            writer.add(job_at, Kind::Waking, 7, (7, 7), INTERRUPT);
            writer.add(job_at, Kind::Switch, 7, (0, 7), 0);
        } else {
            writer.burst(7, job_at, run, None);
            writer.add(at, Kind::Waking, 9, (7, 7), THREAD);
            writer.add(at + US, Kind::Switch, 7, (0, 7), 0);
            at += 4 * US;
        }
        writer.add(at, Kind::Switch, 7, (7, 0), 4);
        let mut now = at + held;
        writer.add(now, Kind::Waking, 9, (7, 7), THREAD);
        writer.add(now + US, Kind::Switch, 7, (0, 7), 0);
        now += left + 4 * US;
        let mut job = 101;
        // The timer of a release that has passed ends the wait before it begins.
        while release(job) < now {
            writer.add(now, Kind::Waking, 7, (7, 7), INTERRUPT);
            (now, job) = (now + run, job + 1);
        }
        writer.add(now, Kind::Switch, 7, (7, 0), 1);
        for job in job..200 {
            writer.burst(7, release(job), run, None);
        }
        let found = one(writer.infer(&[7]));
        let (law, why) = (found.activation.class, found.unmodelled.as_deref());
        assert!(found.woken_by.iter().all(|waker| waker.tid.is_none()), "{:?}", found.woken_by);
        assert_eq!(found.fit.jobs, 199, "{at_work} {held}");
        assert!(found.execution.min_ns >= run, "{:?}", found.execution);
        match held < period {
            true => assert_eq!(
                (law, found.activation.period_ns, why),
                (ActivationClass::Periodic, period, None)
            ),
            false => assert!(
                why.is_some_and(|why| why.contains("stopped it for 700 ms in all")),
                "{why:?}"
            ),
        }
    }
}
