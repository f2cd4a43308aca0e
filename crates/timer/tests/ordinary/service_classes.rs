//! Deferred actions on their classes' threads: issue, item 4.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use hourglass_skip::{Requirement, skip};
use hourglass_time::Span;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::service::{
    Action, ActionClass, CancelScope, ClassSettings, Expiration, ServiceError, Timer, TimerSpec,
};

use crate::common::serving::{Gate, LONG, calling, nothing, now, service, wait_while};

const MS: i64 = 1_000_000;

/// Issue, item 4: "own worker threads per class, so that a long action delays no other class".
#[test]
fn a_long_action_delays_no_other_class_and_no_timer() {
    let (service, owner) = service();
    let long = service.class("long", ClassSettings::default()).unwrap();
    let short = service.class("short", ClassSettings::default()).unwrap();
    let hog = Gate::armed(&owner, &long, None);
    hog.wait();
    let (sender, receiver) = mpsc::channel();
    let quick = Action::deferred(&short, move |_| {
        let _ = sender.send(());
    });
    let quick = owner.timer(ClockBase::Monotonic, quick).unwrap();
    for _ in 0..5 {
        quick.arm(TimerSpec::after(Span::MILLISECOND)).unwrap();
        receiver.recv().unwrap();
    }
    nothing(&owner).sleep_for(Span::MILLISECOND).unwrap();
    hog.release();
    hog.timer.terminate().unwrap();
    let longest = long.statistics().longest_ns;
    assert!(longest >= 1_000_000, "it held on for milliseconds, {longest} ns are told");
    assert_eq!(short.statistics().ran, 5);
}

#[test]
fn queued_actions_run_by_priority_then_by_age() {
    let (service, owner) = service();
    let class = service.class("order", ClassSettings::default()).unwrap();
    let gate = Gate::armed(&owner, &class, None);
    gate.wait();
    let (sender, receiver) = mpsc::channel();
    let start = now() + 2 * MS;
    let priorities = [1, 5, 1, 9, 5];
    let mut timers = Vec::new();
    for (number, priority) in priorities.into_iter().enumerate() {
        let sender = sender.clone();
        let timer = calling(&owner, Some(&class), move |_| sender.send(number).unwrap());
        timer.arm(TimerSpec::at(start + number as i64).priority(priority)).unwrap();
        timers.push(timer);
    }
    nothing(&owner).sleep_until(start + MS).unwrap();
    gate.release();
    let order: Vec<usize> = (0..5).map(|_| receiver.recv().unwrap()).collect();
    assert_eq!(order, [3, 1, 4, 0, 2]);
}

/// An expiry that joins one that waits makes that as urgent as itself: its timer was armed anew by a
/// thread with a higher priority (issue, item 4: "an expiry raises the worker to the highest expired
/// one").
#[test]
fn an_expiry_that_joins_another_makes_it_more_urgent() {
    let (service, owner) = service();
    let class = service.class("joins", ClassSettings::default()).unwrap();
    let gate = Gate::armed(&owner, &class, Some(1));
    gate.wait();
    let (sender, receiver) = mpsc::channel();
    let timers = [1, 20, 10].map(|priority| {
        let sender = sender.clone();
        let timer = calling(&owner, Some(&class), move |_| sender.send(priority).unwrap());
        timer.arm(TimerSpec::after(Span::ZERO).priority(priority)).unwrap();
        timer
    });
    let raised = || class.statistics().raised + class.statistics().raise_refused;
    let queued = |count: u64| timers[0].status().unwrap().overruns == count;
    wait_while(|| !timers.iter().all(|timer| timer.status().unwrap().busy));
    nothing(&owner).sleep_for(Span::MILLISECOND).unwrap();
    let before = raised();
    timers[0].arm(TimerSpec::after(Span::ZERO).priority(30)).unwrap();
    wait_while(|| !queued(1));
    nothing(&owner).sleep_for(Span::MILLISECOND).unwrap();
    let raises = raised() - before;
    gate.release();
    assert_eq!(raises, 1, "the worker holds the gate at a lower priority");
    let order: Vec<u8> = (0..3).map(|_| receiver.recv().unwrap()).collect();
    assert_eq!(order, [1, 20, 10]);
}

#[test]
fn expiries_wait_together() {
    let (service, owner) = service();
    let class = service.class("together", ClassSettings::default()).unwrap();
    let gate = Gate::armed(&owner, &class, None);
    gate.wait();
    let (sender, receiver) = mpsc::channel();
    let timer = calling(&owner, Some(&class), move |expiration| {
        let _ = sender.send((expiration.expiry_ns, expiration.overruns));
    });
    let first = now() + 2 * MS;
    timer.arm(TimerSpec::at(first).every(Span::MILLISECOND)).unwrap();
    nothing(&owner).sleep_until(first + 5 * MS).unwrap();
    wait_while(|| timer.status().unwrap().overruns < 3);
    gate.release();
    let (_, overruns) = receiver.recv().unwrap();
    assert!(overruns >= 3, "{overruns}");
    // Every period is reported: with a call, or in a count.
    let mut periods = overruns + 1;
    for _ in 0..20 {
        periods += receiver.recv().unwrap().1 + 1;
    }
    timer.cancel(CancelScope::All).unwrap();
    wait_while(|| timer.status().unwrap().busy);
    periods += receiver.try_iter().map(|(_, overruns)| overruns + 1).sum::<u64>();
    let status = timer.status().unwrap();
    let counted = status.fired + status.overruns;
    // What is counted at the very moment at which a call begins is reported with the next.
    assert!((24..=counted).contains(&periods), "{periods} told, {counted} counted");
    assert_eq!(gate.timer.status().unwrap().fired, 1);
}

#[test]
fn a_worker_is_raised_and_falls_back() {
    use hourglass_sys::sched::{Attributes, read};
    let (service, owner) = service();
    let class = service.class("raised", ClassSettings::default()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let timer = calling(&owner, Some(&class), move |_| sender.send(read(0).unwrap()).unwrap());
    timer.arm(TimerSpec::after(Span::MILLISECOND).priority(3)).unwrap();
    let high = receiver.recv().unwrap();
    timer.arm(TimerSpec::after(Span::MILLISECOND).priority(0)).unwrap();
    let low = receiver.recv().unwrap();
    let statistics = class.statistics();
    match high {
        Some(Attributes::Fifo(priority)) => assert_eq!(priority, 3),
        _ => assert!(statistics.raise_refused > 0, "not raised, and not counted: {statistics:?}"),
    }
    assert!(matches!(low, Some(Attributes::Other(_))), "{low:?}");
}

#[test]
fn the_arming_threads_priority_is_stored() {
    use hourglass_sys::sched::{Attributes, set};
    let (service, owner) = service();
    let class = service.class("stored", ClassSettings::default()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let timer = calling(&owner, Some(&class), move |_| {
        sender.send(hourglass_sys::sched::read(0).unwrap()).unwrap();
    });
    let armed = thread::spawn(move || {
        if set(Attributes::Fifo(2)).is_err() {
            return false;
        }
        hourglass_timer::service::refresh_priority();
        timer.arm(TimerSpec::after(Span::MILLISECOND)).unwrap();
        receiver.recv().unwrap() == Some(Attributes::Fifo(2))
    });
    if !armed.join().unwrap() {
        skip(Requirement::REAL_TIME, "no real-time policy is permitted here");
        assert_eq!(class.statistics().ran, 0, "it ran without the priority");
    }
}

#[test]
fn a_class_without_room_counts() {
    let (service, owner) = service();
    let settings = ClassSettings { capacity: 2, ..ClassSettings::default() };
    let class: ActionClass = service.class("narrow", settings).unwrap();
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let timers: Vec<Timer> = (0..12)
        .map(|_| {
            let held = Arc::clone(&held);
            let action = Action::deferred(&class, move |_| {
                let _ = held.lock().unwrap().recv();
            });
            owner.timer(ClockBase::Monotonic, action).unwrap()
        })
        .collect();
    for timer in &timers {
        timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
    }
    wait_while(|| class.statistics().without_room == 0);
    drop(release);
    for timer in &timers {
        wait_while(|| timer.status().unwrap().busy);
        timer.arm(TimerSpec::after(LONG)).unwrap();
    }
    assert_eq!(class.statistics().without_room, service.statistics(0).unwrap().without_room);
}

/// A class whose policy the operating system refuses takes no place: sched(7) asks for runtime <=
/// deadline <= period. The full number is still there afterwards, and no more.
#[test]
fn a_refused_class_takes_no_place() {
    use hourglass_sys::sched::Attributes;
    const CLASSES: usize = 64;
    let (service, owner) = service();
    let never = Attributes::Deadline {
        runtime_ns: 5,
        deadline_ns: 2,
        period_ns: 1,
        reclaim: false,
        overrun_signal: false,
    };
    let refused = ClassSettings { attributes: Some(never), ..ClassSettings::default() };
    for _ in 0..=CLASSES {
        let class = service.class("refused", refused);
        let Err(error @ ServiceError::Thread { .. }) = &class else { panic!("{class:?}") };
        // By its name, with what mends it.
        assert!(error.to_string().contains("refused: the kernel refused DEADLINE"), "{error}");
    }
    let classes: Vec<_> =
        (0..CLASSES).map(|_| service.class("good", ClassSettings::default()).unwrap()).collect();
    let more = service.class("more", ClassSettings::default()).map(|_| ());
    assert_eq!(more, Err(ServiceError::TooManyClasses { classes: CLASSES }));
    for class in &classes {
        let (sender, receiver) = mpsc::channel();
        let call = move |_: &Expiration| {
            let _ = sender.send(());
        };
        let timer = calling(&owner, Some(class), call);
        timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
