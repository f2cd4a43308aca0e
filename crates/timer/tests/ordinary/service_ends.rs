//! How timers, owners and actions end: terminating, also from an action, and panics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use hourglass_time::Span;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::service::{
    Action, CancelScope, ClassSettings, Expiration, Expiry, Owner, ServiceError, Timer,
    TimerService, TimerSpec,
};

use crate::common::serving::{LONG, calling, nothing, service, silence_engines, wait_while};
use crate::common::watching::enter_deadline_class;

#[test]
fn terminate_waits_for_a_running_action() {
    let (service, owner) = service();
    let class = service.class("waits", ClassSettings::default()).unwrap();
    for deferred in [false, true] {
        let over = Arc::new(AtomicBool::new(false));
        let (begun, begins) = mpsc::channel();
        let own = Arc::clone(&over);
        let call = move |_: &Expiration| {
            let _ = begun.send(());
            thread::sleep(Duration::from_millis(20));
            own.store(true, Ordering::Release);
        };
        let timer = calling(&owner, deferred.then_some(&class), call);
        timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
        begins.recv().unwrap();
        timer.terminate().unwrap();
        assert!(over.load(Ordering::Acquire), "terminate did not wait");
        assert_eq!(timer.arm(TimerSpec::after(Span::ZERO)), Err(ServiceError::Terminated));
        assert_eq!(timer.cancel(CancelScope::All), Err(ServiceError::Terminated));
        assert!(timer.status().unwrap().terminated);
    }
    assert!(service.statistics(0).unwrap().long_actions >= 1, "20 ms are hidden");
}

#[test]
fn an_owner_is_terminated_twice() {
    let (service, owner) = service();
    let class = service.class("twice", ClassSettings::default()).unwrap();
    let owner = Arc::new(owner);
    let own = Arc::downgrade(&owner);
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let (begun, begins) = mpsc::channel();
    let call = move |_: &Expiration| {
        own.upgrade().unwrap().terminate().unwrap();
        let _ = begun.send(());
        thread::sleep(Duration::from_millis(20));
        ends.store(true, Ordering::Release);
    };
    let timer = calling(&owner, Some(&class), call);
    timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
    begins.recv().unwrap();
    owner.terminate().unwrap();
    assert!(over.load(Ordering::Acquire), "terminate did not wait");
    assert_eq!(owner.timers(), 0);
}

#[test]
fn a_timer_may_terminate_itself() {
    let (service, owner) = service();
    let class = service.class("own", ClassSettings::default()).unwrap();
    for deferred in [false, true] {
        for drops in [false, true] {
            let own: Arc<Mutex<Option<Timer>>> = Arc::default();
            let (sender, receiver) = mpsc::channel();
            let slot = Arc::clone(&own);
            let call = move |_: &Expiration| {
                if let Some(timer) = slot.lock().unwrap().take() {
                    if !drops {
                        timer.terminate().unwrap();
                    }
                    drop(timer);
                }
                let _ = sender.send(());
            };
            let timer = calling(&owner, deferred.then_some(&class), call);
            let period = Span::from_micros(200);
            *own.lock().unwrap() = Some(timer.clone());
            if drops {
                // Armed by the handle that the action will drop.
                drop(timer);
                own.lock()
                    .unwrap()
                    .as_ref()
                    .unwrap()
                    .arm(TimerSpec::after(period).every(period))
                    .unwrap();
            } else {
                timer.arm(TimerSpec::after(period).every(period)).unwrap();
            }
            receiver.recv_timeout(Duration::from_secs(20)).unwrap();
            // The channel closes with the action, which is gone with its timer.
            assert!(receiver.recv_timeout(Duration::from_secs(20)).is_err());
        }
    }
    wait_while(|| service.timers() > 0);
}

#[test]
fn an_action_may_own_its_timer() {
    let (service, owner) = service();
    let class = service.class("owns", ClassSettings::default()).unwrap();
    for deferred in [false, true] {
        let own: Arc<OnceLock<Timer>> = Arc::default();
        let inner = Arc::clone(&own);
        let (sender, receiver) = mpsc::channel();
        let call = move |_: &Expiration| {
            // Waits for the test, which puts it there.
            inner.wait().terminate().unwrap();
            let _ = sender.send(());
        };
        let timer = calling(&owner, deferred.then_some(&class), call);
        timer.arm(TimerSpec::after(Span::MILLISECOND)).unwrap();
        assert!(own.set(timer).is_ok());
        drop(own);
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        // The channel closes with the action.
        let closed = receiver.recv_timeout(Duration::from_secs(20));
        assert_eq!(closed, Err(mpsc::RecvTimeoutError::Disconnected));
    }
    wait_while(|| service.timers() > 0);
}

#[test]
fn a_panic_may_carry_a_panic() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb);
        }
    }
    silence_engines();
    let (_service, owner) = service();
    let call = |_: &Expiration| std::panic::panic_any(Bomb);
    let timer = calling(&owner, None, call);
    timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
    wait_while(|| timer.status().unwrap().panics == 0 || timer.status().unwrap().busy);
    nothing(&owner).sleep_for(Span::MILLISECOND).unwrap();
}

/// A thread that armed a timer, or slept on it, while its action ran, has armed it for a time that
/// comes: a panic of that action takes away what it was armed for before, and nothing else.
#[test]
fn a_panic_leaves_a_fresh_arming_alone() {
    silence_engines();
    let (service, owner) = service();
    let class = service.class("panics", ClassSettings::default()).unwrap();
    let (begun, begins) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let call = move |_: &Expiration| {
        let _ = begun.send(());
        let _ = goes_on.recv();
        panic!("on purpose");
    };
    let timer = calling(&owner, Some(&class), call);
    timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
    begins.recv().unwrap();
    let (sender, receiver) = mpsc::channel();
    let sleeper = timer.clone();
    let sleeps = thread::spawn(move || sender.send(sleeper.sleep_for(Span::from_millis(100))));
    wait_while(|| !timer.status().unwrap().armed);
    go_on.send(()).unwrap();
    let slept = receiver.recv_timeout(Duration::from_secs(20));
    assert_eq!(slept, Ok(Ok(())));
    sleeps.join().unwrap().unwrap();
    timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
    begins.recv().unwrap();
    timer.arm(TimerSpec::after(LONG)).unwrap();
    go_on.send(()).unwrap();
    wait_while(|| timer.status().unwrap().busy);
    let status = timer.status().unwrap();
    assert_eq!((status.armed, status.panics), (true, 2));
}

#[test]
fn terminated_timers_are_not_counted() {
    let (service, owner) = service();
    let timers = [nothing(&owner), nothing(&owner), nothing(&owner)];
    assert_eq!((service.timers(), owner.timers()), (3, 3));
    timers[1].terminate().unwrap();
    timers[1].terminate().unwrap();
    assert_eq!((service.timers(), owner.timers()), (2, 2));
    drop(timers);
    assert_eq!((service.timers(), owner.timers()), (0, 0));
    let again = nothing(&owner);
    assert_eq!((service.timers(), owner.timers()), (1, 1));
    owner.terminate().unwrap();
    assert_eq!((service.timers(), owner.timers()), (0, 0));
    drop(again);
}

/// Issue: "a handler that panics": counted, disarmed, and everybody else goes on.
#[test]
fn a_panic_is_counted_and_disarms() {
    silence_engines();
    let (service, owner) = service();
    let class = service.class("panics", ClassSettings::default()).unwrap();
    for deferred in [false, true] {
        let call = |_: &Expiration| panic!("on purpose");
        let timer = calling(&owner, deferred.then_some(&class), call);
        for times in 1..=2 {
            timer.arm(TimerSpec::after(Span::MILLISECOND).every(Span::SECOND)).unwrap();
            wait_while(|| timer.status().unwrap().panics < times || timer.status().unwrap().busy);
            assert!(!timer.status().unwrap().armed);
        }
    }
    nothing(&owner).sleep_for(Span::MILLISECOND).unwrap();
    assert_eq!(service.statistics(0).unwrap().panics, 4);
}

#[test]
fn the_last_owner_may_go_in_an_action() {
    let (service, owner) = service();
    let owned: Arc<Mutex<Option<(TimerService, Owner)>>> = Arc::default();
    let (sender, receiver) = mpsc::channel();
    let own = Arc::clone(&owned);
    let timer = calling(&owner, None, move |_| {
        drop(own.lock().unwrap().take());
        let _ = sender.send(());
    });
    *owned.lock().unwrap() = Some((service, owner));
    timer.arm(TimerSpec::after(Span::MILLISECOND)).unwrap();
    receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(timer.arm(TimerSpec::once(Expiry::At(0))), Err(ServiceError::Terminated));
}

/// An owner waits for a running action of a timer that it cannot terminate any more, since the last
/// handle went in that action or is just being dropped: `Owner::terminate`, as `Timer::terminate`,
/// leaves none running.
#[test]
fn an_owner_waits_for_timers_without_handles() {
    let (service, owner) = service();
    let class = service.class("orphans", ClassSettings::default()).unwrap();
    for (deferred, in_action) in [(false, false), (false, true), (true, false), (true, true)] {
        let owner = service.owner("orphans");
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let handle: Arc<Mutex<Option<Timer>>> = Arc::default();
        let own = Arc::clone(&handle);
        let (begun, begins) = mpsc::channel();
        let call = move |_: &Expiration| {
            if in_action {
                drop(own.lock().unwrap().take());
            }
            let _ = begun.send(());
            thread::sleep(Duration::from_millis(100));
            ends.store(true, Ordering::Release);
        };
        let timer = calling(&owner, deferred.then_some(&class), call);
        {
            let mut handle = handle.lock().unwrap();
            timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
            *handle = Some(timer);
        }
        begins.recv().unwrap();
        let last = handle.lock().unwrap().take();
        assert_eq!(last.is_none(), in_action);
        let dropping = thread::spawn(move || drop(last));
        wait_while(|| owner.timers() > 0);
        // Makes room in the list, where a timer that still acts has to stay.
        let others: Vec<_> = (0..9).map(|_| nothing(&owner)).collect();
        owner.terminate().unwrap();
        assert!(over.load(Ordering::Acquire), "deferred {deferred}, in its action {in_action}");
        dropping.join().unwrap();
        drop(others);
    }
    // From the very action in which the handle went it returns at once.
    let owner = Arc::new(owner);
    let own = Arc::clone(&owner);
    let handle: Arc<Mutex<Option<Timer>>> = Arc::default();
    let last = Arc::clone(&handle);
    let (sender, receiver) = mpsc::channel();
    let action = Action::deferred(&class, move |_| {
        drop(last.lock().unwrap().take());
        let _ = sender.send(own.terminate());
    });
    *handle.lock().unwrap() = Some(owner.timer(ClockBase::Monotonic, action).unwrap());
    handle.lock().unwrap().as_ref().unwrap().arm(TimerSpec::after(Span::MILLISECOND)).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(Ok(())));
}

/// The moment between the last handle's end and its timer's: threads that drop it and threads that
/// terminate the owner meet there in any order, and no action runs once both returned.
#[test]
fn owners_and_last_handles_go_at_the_same_moment() {
    let (service, _owner) = service();
    let class = service.class("moment", ClassSettings::default()).unwrap();
    for round in 0..500 {
        let owner = service.owner("moment");
        let running = Arc::new(AtomicBool::new(false));
        let inside = Arc::clone(&running);
        let call = move |_: &Expiration| {
            inside.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_micros(20));
            inside.store(false, Ordering::SeqCst);
        };
        let timer = calling(&owner, (round % 2 == 1).then_some(&class), call);
        timer.arm(TimerSpec::after(Span::ZERO).every(Span::from_micros(30))).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || drop(timer));
            for _ in 0..round % 50 * 20 {
                std::hint::spin_loop();
            }
            owner.terminate().unwrap();
            for _ in 0..100 {
                assert!(!running.load(Ordering::SeqCst), "an action after terminate");
            }
        });
    }
}

/// The kernel lets a thread of `SCHED_DEADLINE` make no threads (sched(7)): the engine and the worker of
/// a class are some.
#[test]
fn a_deadline_thread_starts_services() {
    use hourglass_sys::sched::{self, Attributes};
    let started = || {
        let Some(own) = enter_deadline_class() else { return };
        let service = TimerService::start().unwrap();
        let settings = ClassSettings { raise: false, ..ClassSettings::default() };
        let class = service.class("worker", settings).unwrap();
        let owner = service.owner("test");
        let (sender, receiver) = mpsc::channel();
        let call = move |_: &Expiration| {
            let _ = sender.send(sched::read(0).unwrap());
        };
        let timer = calling(&owner, Some(&class), call);
        timer.arm(TimerSpec::after(Span::ZERO)).unwrap();
        let workers = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(workers, Some(Attributes::Other(0)));
        // It is what it was, and hands nothing on to others.
        assert_eq!(sched::read(0).unwrap(), Some(own));
        assert!(thread::Builder::new().spawn(|| ()).is_err());
    };
    thread::spawn(started).join().unwrap();
}
