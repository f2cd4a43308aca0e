//! What the service does to its process: no allocation when arming, cancelling and firing; nothing
//! left in a forked child that hangs; no thread left behind. The process is forked, and its threads are
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hourglass_sys::allocation::thread_counts;
use hourglass_sys::fork::child_says;
use hourglass_time::Span;
use hourglass_timer::engine::{ClockBase, EngineError};
use hourglass_timer::event::DeviceError;
use hourglass_timer::service::{
    Action, CancelScope, ClassSettings, Device, EngineSettings, Port, ServiceError,
    ServiceSettings, Timer, TimerService, TimerSpec,
};

use crate::in_own_process;
use crate::process::{take_signals_away, threads};

/// A millisecond: long enough that a timer can be cancelled before it expires.
const SOON: Span = Span::MILLISECOND;

fn arming_and_firing_never_allocate() {
    let service = TimerService::start().unwrap();
    let owner = service.owner("quiet");
    let class = service.class("quiet", ClassSettings::default()).unwrap();
    let port = Port::new(64).unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let call = || {
        let calls = Arc::clone(&calls);
        move |_: &_| {
            calls.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut timers: Vec<Timer> = Vec::new();
    for base in ClockBase::ALL {
        for action in [
            Action::nothing(),
            Action::wake(thread::current()),
            Action::send(&port, 1),
            Action::immediate(call()),
            Action::deferred(&class, call()),
        ] {
            timers.push(owner.timer(base, action).unwrap());
        }
    }
    // The engine makes room and watches the wall clock; what a thread needs once it has.
    for timer in &timers {
        timer.sleep_for(SOON).unwrap();
        timer.arm(TimerSpec::after(SOON)).unwrap();
    }
    while timers.iter().map(|timer| timer.status().unwrap()).any(|is| is.armed || is.busy) {
        thread::sleep(Duration::from_millis(1));
    }
    while port.try_receive().is_some() {}
    let pause = owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
    pause.sleep_for(SOON).unwrap();
    let before = thread_counts();
    for round in 0..20 {
        for timer in &timers {
            timer.arm(TimerSpec::after(Span::from_nanos(round * 50_000)).every(SOON)).unwrap();
            timer.cancel(CancelScope::Current).unwrap();
        }
        // The engine wakes this thread when it has fired what was due before.
        pause.sleep_for(Span::from_millis(2)).unwrap();
        while port.try_receive().is_some() {}
        for timer in &timers {
            timer.cancel(CancelScope::All).unwrap();
            timer.status().unwrap();
        }
        timers[0].sleep_for(SOON).unwrap();
    }
    assert_eq!(thread_counts(), before);
    assert!(calls.load(Ordering::Relaxed) > 10, "too few fired to show anything");
}

fn a_timer_costs_what_is_said() {
    let service = TimerService::start().unwrap();
    let owner = service.owner("many");
    let make = || owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
    let timers = 20_000usize;
    let mut all = Vec::with_capacity(timers);
    let before = thread_counts().held;
    all.extend((0..timers).map(|_| make()));
    // The engine takes them up.
    all[timers - 1].sleep_for(SOON).unwrap();
    let each = (thread_counts().held - before) / timers as i64;
    println!("{each} bytes a timer of the service, handle and queue included");
    assert!(each <= 400, "{each} bytes");
    // Memory is used again, whatever comes and goes: an owner remembers as many that went as live.
    for _ in 0..10 {
        all.clear();
        all.extend((0..timers).map(|_| make()));
    }
    let held = (thread_counts().held - before) / timers as i64;
    assert!(held <= 2 * each, "{each} bytes a timer became {held}");
}

/// Issue, "Bad input": "fork while armed". The child has no engine: every call says so at once, and
/// dropping does not hang.
fn a_forked_child_gets_an_error() {
    let service = TimerService::start().unwrap();
    let owner = service.owner("parent");
    let class = service.class("parent", ClassSettings::default()).unwrap();
    let port = Port::new(4).unwrap();
    let timer = owner.timer(ClockBase::Monotonic, Action::send(&port, 5)).unwrap();
    let other = timer.clone();
    timer.arm(TimerSpec::after(Span::from_millis(300))).unwrap();
    let said = child_says(10_000, move || {
        let forked = Err(ServiceError::Forked);
        let arms = timer.arm(TimerSpec::after(SOON)) == forked;
        let cancels = timer.cancel(CancelScope::All) == Err(ServiceError::Forked);
        let sleeps = timer.sleep_for(SOON) == forked && timer.sleep_until(0) == forked;
        let ends = timer.terminate() == forked && owner.terminate() == forked;
        let status = matches!(timer.status(), Err(ServiceError::Forked));
        let made = owner.timer(ClockBase::Tai, Action::nothing());
        let makes = matches!(made, Err(ServiceError::Forked));
        let classes = service.class("child", ClassSettings::default());
        let classes = matches!(classes, Err(ServiceError::Forked));
        drop((timer, class, owner, service));
        arms && cancels && sleeps && ends && status && makes && classes
    });
    assert!(said.unwrap(), "a call in the child did not say `Forked`");
    // The closure's handles went with it here: those of the parent, which tears down for real.
    assert_eq!(other.arm(TimerSpec::after(SOON)), Err(ServiceError::Terminated));
}

/// A child drops the service that it inherited while it has one of its own: threads of the one may
/// have got the places of the other's.
fn a_child_has_a_service_of_its_own() {
    let mut inherited = Some(TimerService::start().unwrap());
    let said = child_says(10_000, || {
        let service = TimerService::start().unwrap();
        drop(inherited.take());
        let owner = service.owner("child");
        let timer = owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
        let sleeps = timer.sleep_for(SOON) == Ok(());
        drop((timer, owner, service));
        sleeps
    });
    assert!(said.unwrap(), "the child's threads were taken for the parent's");
}

fn the_parent_goes_on() {
    let service = TimerService::start().unwrap();
    let owner = service.owner("parent");
    let port = Port::new(4).unwrap();
    let timer = owner.timer(ClockBase::Monotonic, Action::send(&port, 5)).unwrap();
    timer.arm(TimerSpec::after(Span::from_millis(30))).unwrap();
    assert!(
        child_says(10_000, || timer.arm(TimerSpec::after(SOON)) == Err(ServiceError::Forked))
            .unwrap()
    );
    assert_eq!(port.receive(Some(Span::from_secs(20))).unwrap().unwrap().tag, 5);
}

/// Issue, "Bad input": "signals exhausted (RLIMIT_SIGPENDING)": a typed error, and no thread.
fn without_signals_a_posix_timer_is_refused() {
    if !take_signals_away() {
        return;
    }
    let posix = EngineSettings { device: Device::PosixTimer, ..EngineSettings::default() };
    let refused = TimerService::with(&ServiceSettings::engines(1, &posix));
    let exhausted = EngineError::Device(DeviceError::SignalsExhausted);
    assert_eq!(refused.map(|_| ()), Err(ServiceError::Engine(exhausted)));
    // Other devices need none.
    let service = TimerService::start().unwrap();
    let owner = service.owner("other");
    owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap().sleep_for(SOON).unwrap();
}

#[test]
fn what_the_service_does_to_its_process() {
    in_own_process("service_alone::what_the_service_does_to_its_process", || {
        let before = threads();
        arming_and_firing_never_allocate();
        a_timer_costs_what_is_said();
        a_forked_child_gets_an_error();
        a_child_has_a_service_of_its_own();
        the_parent_goes_on();
        without_signals_a_posix_timer_is_refused();
        // The wall clock's watcher ends by itself, a moment later.
        let patience = std::time::Instant::now();
        while threads() > before && patience.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(threads(), before, "a thread is left behind");
    });
}
