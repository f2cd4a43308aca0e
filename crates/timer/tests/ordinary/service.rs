//! The timer service on threads: each sentence of the item 6 and of RT-Mach (1993), section 3.
//! One-sided in time: never early on every sample.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use hourglass_time::Span;
use hourglass_timer::engine::{ClockBase, ClockSetPolicy, OsTimes, Times};
use hourglass_timer::service::{
    Action, CancelScope, ClassSettings, Expiration, Port, ServiceError, Timer, TimerService,
    TimerSettings, TimerSpec,
};

use crate::common::serving::{LONG, calling, nothing, service, wait_while};

const MS: i64 = 1_000_000;
const PATIENCE: Option<Span> = Some(Span::from_secs(20));

fn clock(base: ClockBase) -> i64 {
    OsTimes::new().now().ns(base)
}

/// "timer_sleep() ... The caller specifies a time to wakeup and indicates whether that time is
/// relative or absolute" (section 3.1): never early on the timer's own clock.
#[test]
fn sleeps_are_never_early_on_their_own_clock() {
    let (_service, owner) = service();
    for base in ClockBase::ALL {
        let timer = owner.timer(base, Action::nothing()).unwrap();
        for round in 0..20 {
            let at = clock(base) + round * 100_000;
            timer.sleep_until(at).unwrap();
            assert!(clock(base) >= at, "{}", base.name());
            let begun = clock(base);
            timer.sleep_for(Span::from_nanos(round * 50_000)).unwrap();
            assert!(clock(base) >= begun + round * 50_000);
        }
        // A time that is past.
        timer.sleep_until(0).unwrap();
        assert_eq!(timer.status().unwrap().fired, 41);
    }
}

fn slept(timer: &Timer) -> thread::JoinHandle<Result<(), ServiceError>> {
    let own = timer.clone();
    let sleeper = thread::spawn(move || own.sleep_for(LONG));
    wait_while(|| !timer.status().unwrap().armed);
    sleeper
}

/// "Timers which are terminated or canceled while sleeping return an error to the user."
#[test]
fn a_sleeper_learns_why_it_woke() {
    let (_service, owner) = service();
    let timer = nothing(&owner);
    let sleeper = slept(&timer);
    assert_eq!(timer.sleep_for(LONG), Err(ServiceError::AnotherSleeps));
    assert_eq!(timer.cancel(CancelScope::All), Ok(true));
    assert_eq!(sleeper.join().unwrap(), Err(ServiceError::Cancelled));
    assert_eq!(timer.cancel(CancelScope::All), Ok(false));

    // Armed anew: that expiry is not the sleeper's any more.
    let sleeper = slept(&timer);
    timer.arm(TimerSpec::after(LONG)).unwrap();
    assert_eq!(sleeper.join().unwrap(), Err(ServiceError::Cancelled));

    timer.cancel(CancelScope::All).unwrap();
    let sleeper = slept(&timer);
    timer.terminate().unwrap();
    assert_eq!(sleeper.join().unwrap(), Err(ServiceError::Terminated));
    assert_eq!(timer.sleep_for(LONG), Err(ServiceError::Terminated));

    let timer = nothing(&owner);
    let sleeper = slept(&timer);
    drop(owner);
    assert_eq!(sleeper.join().unwrap(), Err(ServiceError::Terminated));
}

/// "timer_arm() ... an expiration time, an optional period, and a port which will receive expiration
/// notification messages ... containing the current time"; "re-arm itself with the specified period
/// relative to the last expiration time".
#[test]
fn a_periodic_timer_keeps_its_phase_when_served_late() {
    let (_service, owner) = service();
    let port = Port::new(256).unwrap();
    let timer = owner.timer(ClockBase::Monotonic, Action::send(&port, 7)).unwrap();
    let first = clock(ClockBase::Monotonic) + 3 * MS;
    let period = MS / 2;
    timer.arm(TimerSpec::at(first).every(Span::from_nanos(period))).unwrap();
    let mut expected = first;
    let mut overruns = 0;
    for _ in 0..40 {
        let message = port.receive(PATIENCE).unwrap().unwrap();
        let expiration = message.expiration;
        assert_eq!(message.tag, 7);
        // What was lost is counted, and the phase is kept.
        expected += expiration.overruns as i64 * period;
        overruns += expiration.overruns;
        assert_eq!(expiration.expiry_ns, expected);
        assert!(expiration.now_ns >= expiration.expiry_ns, "early");
        expected += period;
    }
    assert!(timer.cancel(CancelScope::All).unwrap());
    let status = timer.status().unwrap();
    assert!(!status.armed && status.overruns >= overruns && status.fired >= 40);
}

#[test]
fn overruns_are_counted_and_reported() {
    let (_service, owner) = service();
    let port = Port::new(4).unwrap();
    let timer = owner.timer(ClockBase::Monotonic, Action::send(&port, 0)).unwrap();
    let first = clock(ClockBase::Monotonic) - 10_500 * MS;
    timer.arm(TimerSpec::at(first).every(Span::SECOND)).unwrap();
    let expiration = port.receive(PATIENCE).unwrap().unwrap().expiration;
    let periods = (expiration.now_ns - first) / (1_000 * MS);
    assert!(periods >= 10 && expiration.expiry_ns == first + periods * 1_000 * MS);
    assert_eq!(expiration.overruns as i64, periods);
    let next = timer.status().unwrap().next_ns.unwrap();
    assert!(next > expiration.expiry_ns && (next - first) % (1_000 * MS) == 0, "{next}");
}

/// "For periodic timers, the user has the option of canceling only the current expiration, or all
/// forthcoming expiration."
#[test]
fn cancelling_the_current_expiry_keeps_the_next() {
    let (_service, owner) = service();
    let port = Port::new(4).unwrap();
    let timer = owner.timer(ClockBase::Monotonic, Action::send(&port, 0)).unwrap();
    let period = Span::from_millis(20);
    let far = clock(ClockBase::Monotonic) + LONG.nanos();
    timer.arm(TimerSpec::at(far).every(period)).unwrap();
    assert_eq!(timer.cancel(CancelScope::Current), Ok(true));
    assert_eq!(timer.cancel(CancelScope::Current), Ok(false), "it is one expiry");
    assert_eq!(timer.status().unwrap().next_ns, Some(far + 20 * MS));
    // On a busy machine the first may expire before it is cancelled.
    let cancelled = |_| {
        while port.try_receive().is_some() {}
        let first = clock(ClockBase::Monotonic) + 50 * MS;
        timer.arm(TimerSpec::at(first).every(period)).unwrap();
        let cancelled = timer.cancel(CancelScope::Current).unwrap() && port.try_receive().is_none();
        let expiration = port.receive(PATIENCE).unwrap().unwrap().expiration;
        let since = expiration.expiry_ns - first;
        assert!(!cancelled || since >= 20 * MS && since % (20 * MS) == 0, "{since}");
        assert_eq!(timer.cancel(CancelScope::All), Ok(true));
        cancelled
    };
    assert!((0..5).any(cancelled));
    // Of one that is armed once, the current expiry is all.
    timer.arm(TimerSpec::after(LONG)).unwrap();
    assert_eq!(timer.cancel(CancelScope::Current), Ok(true));
    assert!(!timer.status().unwrap().armed);
}

#[test]
fn actions_wake_send_and_call() {
    let (service, owner) = service();
    let class = service.class("test-class", ClassSettings::default()).unwrap();
    let soon = TimerSpec::after(Span::MILLISECOND);

    let waits = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&waits);
    let woken = thread::spawn(move || {
        seen.store(true, Ordering::Release);
        thread::park();
    });
    wait_while(|| !waits.load(Ordering::Acquire));
    let wake = owner.timer(ClockBase::Monotonic, Action::wake(woken.thread().clone())).unwrap();
    wake.arm(soon).unwrap();
    woken.join().unwrap();

    let (sender, receiver) = mpsc::channel();
    let name = |sender: mpsc::Sender<Option<String>>| {
        move |_: &Expiration| {
            let _ = sender.send(thread::current().name().map(str::to_owned));
        }
    };
    let immediate = Action::immediate(name(sender.clone()));
    let immediate = owner.timer(ClockBase::Monotonic, immediate).unwrap();
    immediate.arm(soon).unwrap();
    assert_eq!(receiver.recv().unwrap().as_deref(), Some("hg-engine-0"));
    let deferred =
        owner.timer(ClockBase::Monotonic, Action::deferred(&class, name(sender))).unwrap();
    deferred.arm(soon).unwrap();
    assert_eq!(receiver.recv().unwrap().as_deref(), Some("test-class"));
}

/// Issue, "Bad input": typed errors, and nothing changes.
#[test]
fn bad_input_is_refused() {
    let (service, owner) = service();
    let timer = nothing(&owner);
    for period in [Span::ZERO, Span::from_nanos(-1)] {
        let refused = timer.arm(TimerSpec::after(LONG).every(period));
        assert_eq!(refused, Err(ServiceError::PeriodNotPositive { period }));
    }
    let delay = Span::from_nanos(-1);
    let refused = Err(ServiceError::NegativeDelay { delay });
    assert_eq!(timer.arm(TimerSpec::after(delay)), refused);
    assert_eq!(timer.sleep_for(delay), refused);
    let slack = Span::from_nanos(-1);
    assert_eq!(
        timer.arm(TimerSpec::after(LONG).slack(slack)),
        Err(ServiceError::NegativeSlack { slack })
    );
    let base = ClockBase::Monotonic;
    let refused = ServiceError::ExpiryOutOfRange { base, expiry_ns: -1 };
    assert_eq!(timer.arm(TimerSpec::at(-1)), Err(refused));
    assert!(matches!(
        timer.arm(TimerSpec::after(Span::MAX)),
        Err(ServiceError::ExpiryOutOfRange { base: ClockBase::Monotonic, .. })
    ));
    assert!(matches!(timer.sleep_for(Span::MIN), Err(ServiceError::NegativeDelay { .. })));
    assert!(!timer.status().unwrap().armed);
    // The far end of the range is in it.
    timer.arm(TimerSpec::at(i64::MAX).every(Span::MAX).slack(Span::MAX)).unwrap();

    let other = TimerService::start().unwrap();
    let class = other.class("theirs", ClassSettings::default()).unwrap();
    let refused = owner.timer(base, Action::deferred(&class, |_| ()));
    assert!(matches!(refused, Err(ServiceError::ForeignClass { class }) if class == "theirs"));
    let settings = TimerSettings {
        base,
        on_set: ClockSetPolicy::Follow,
        action: Action::nothing(),
        engine: Some(3),
    };
    let refused = owner.timer_with(settings);
    assert!(matches!(refused, Err(ServiceError::NoEngine { engine: 3, engines: 1 })));
    owner.terminate().unwrap();
    assert!(matches!(owner.timer(base, Action::nothing()), Err(ServiceError::Terminated)));
    assert_eq!(timer.arm(TimerSpec::after(LONG)), Err(ServiceError::Terminated));
    drop(service);
}

#[test]
fn a_full_port_counts() {
    let (_service, owner) = service();
    let port = Port::new(2).unwrap();
    let timer = owner.timer(ClockBase::Monotonic, Action::send(&port, 0)).unwrap();
    timer.arm(TimerSpec::after(Span::ZERO).every(Span::from_micros(100))).unwrap();
    wait_while(|| port.lost() < 3);
    assert!(timer.status().unwrap().armed);
}

#[test]
fn hammered_from_all_sides() {
    let (service, owner) = service();
    let class = service.class("hammer", ClassSettings::default()).unwrap();
    for round in 0..60 {
        let running = Arc::new(AtomicUsize::new(0));
        let inside = Arc::clone(&running);
        let call = move |_: &Expiration| {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "twice at the same time");
            std::hint::spin_loop();
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        let timer = calling(&owner, (round % 2 == 1).then_some(&class), call);
        thread::scope(|scope| {
            for thread in 0..3 {
                let timer = timer.clone();
                scope.spawn(move || {
                    for step in 0..400u64 {
                        let after = Span::from_nanos((step as i64 * 37 + thread * 11) % 3_000);
                        let done = match step % 4 {
                            0 | 1 => timer.arm(TimerSpec::after(after)),
                            2 => timer.arm(TimerSpec::after(after).every(Span::from_nanos(700))),
                            _ => timer.cancel(CancelScope::All).map(|_| ()),
                        };
                        match done {
                            Ok(()) | Err(ServiceError::Terminated | ServiceError::Contended) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                });
            }
            let (timer, running) = (timer.clone(), Arc::clone(&running));
            scope.spawn(move || {
                thread::sleep(Duration::from_micros(200));
                timer.terminate().unwrap();
                let fired = timer.status().unwrap().fired;
                assert_eq!(running.load(Ordering::SeqCst), 0, "an action after terminate");
                thread::yield_now();
                assert_eq!(timer.status().unwrap().fired, fired);
            });
        });
    }
    assert_eq!(service.statistics(0).unwrap().panics, 0);
}

#[test]
fn every_arming_fires_or_is_cancelled() {
    let (_service, owner) = service();
    let fired = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&fired);
    let timer = calling(&owner, None, move |_| {
        own.fetch_add(1, Ordering::SeqCst);
    });
    let mut cancelled = 0;
    const ARMINGS: u64 = 2_000;
    for arming in 0..ARMINGS {
        timer.arm(TimerSpec::after(Span::from_nanos(arming as i64 % 50 * 1_000))).unwrap();
        for _ in 0..arming % 40 * 20 {
            std::hint::spin_loop();
        }
        if timer.cancel(CancelScope::All).unwrap() {
            cancelled += 1;
        } else {
            while timer.status().unwrap().busy {}
        }
    }
    timer.terminate().unwrap();
    assert_eq!(fired.load(Ordering::SeqCst) + cancelled, ARMINGS);
    assert!(cancelled > 0, "nothing was cancelled: the test shows nothing");
}
