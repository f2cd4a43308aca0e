//! Futures, on an executor of a few lines.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use hourglass_clock::process;
use hourglass_time::{Instant, Span};
use hourglass_timer::sleep::{Driver, MissedTicks, PeriodError, SleeperSettings};

struct Unpark {
    thread: Thread,
    times: AtomicU64,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.times.fetch_add(1, Ordering::AcqRel);
        self.thread.unpark();
    }
}

fn unpark() -> Arc<Unpark> {
    Arc::new(Unpark { thread: std::thread::current(), times: AtomicU64::new(0) })
}

fn block_on<F: Future>(future: F) -> (F::Output, u64) {
    let unpark = unpark();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return (output, unpark.times.load(Ordering::Acquire)),
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(20)),
        }
    }
}

fn now() -> u64 {
    process::clock().now_ordered()
}

#[test]
fn never_early_and_woken_once() {
    for settings in [None, Some(SleeperSettings::DEFAULT)] {
        let driver = match settings {
            None => Driver::start().unwrap(),
            Some(settings) => Driver::with(process::clock(), settings).unwrap(),
        };
        for length in [0, 1, 50_000, 400_000, 3_000_000] {
            let deadline = now() + length;
            let at = Instant::from_nanos(i64::try_from(deadline).unwrap());
            let (late, woken) = block_on(driver.sleep_until(at));
            assert!(now() >= deadline + late && woken <= 1, "{length}: {woken} times");
        }
    }
}

#[test]
fn the_earliest_comes_first() {
    let driver = Driver::start().unwrap();
    let late = driver.sleep_for(Span::HOUR);
    let late_too = late.deadline_ns();
    let unpark = unpark();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut late = pin!(late);
    assert!(late.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    std::thread::sleep(Duration::from_millis(5));
    block_on(driver.sleep_for(Span::from_millis(2)));
    assert!(now() < late_too, "an hour has passed");
    assert_eq!(unpark.times.load(Ordering::Acquire), 0);
}

/// On a busy machine a deadline may pass while something is done before it: one of this many tries is in time.
const TRIES: usize = 10;

#[test]
fn a_dropped_future_wakes_no_task() {
    let driver = Driver::start().unwrap();
    let in_time = |_| {
        let unpark = unpark();
        let waker = Waker::from(Arc::clone(&unpark));
        let mut dropped = Box::pin(driver.sleep_for(Span::from_millis(5)));
        let deadline = dropped.deadline_ns();
        let polled = dropped.as_mut().poll(&mut Context::from_waker(&waker));
        drop(dropped);
        let in_time = now() < deadline;
        assert!(!in_time || polled.is_pending(), "early");
        block_on(driver.sleep_for(Span::from_millis(15)));
        assert!(!in_time || unpark.times.load(Ordering::Acquire) == 0);
        // The entry is gone: with it the last reference but ours.
        drop(waker);
        assert_eq!(Arc::strong_count(&unpark), 1);
        in_time
    };
    assert!((0..TRIES).any(in_time));
}

#[test]
fn the_last_to_poll_is_woken() {
    let driver = Driver::start().unwrap();
    let in_time = |_| {
        let (first, second) = (unpark(), unpark());
        let mut future = pin!(driver.sleep_for(Span::from_millis(20)));
        let deadline = future.deadline_ns();
        for task in [&first, &second] {
            let waker = Waker::from(Arc::clone(task));
            let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
        }
        let in_time = now() < deadline;
        block_on(driver.sleep_for(Span::from_millis(30)));
        let times = |task: &Arc<Unpark>| task.times.load(Ordering::Acquire);
        assert!(!in_time || (times(&first), times(&second)) == (0, 1));
        in_time
    };
    assert!((0..TRIES).any(in_time));
}

#[test]
fn many_at_once() {
    let driver = Driver::start().unwrap();
    std::thread::scope(|scope| {
        for number in 0..50 {
            let driver = driver.clone();
            scope.spawn(move || {
                for turn in 0..20 {
                    let length = Span::from_micros(1 + number * 37 % 500 + turn);
                    let future = driver.sleep_for(length);
                    let deadline = future.deadline_ns();
                    block_on(future);
                    assert!(now() >= deadline);
                }
            });
        }
    });
}

#[test]
fn an_interval_keeps_its_grid_and_counts_what_it_leaves_out() {
    let driver = Driver::start().unwrap();
    let period = Span::from_millis(2);
    let mut interval = driver.interval(period, MissedTicks::Skip).unwrap();
    let (first, _) = block_on(interval.tick());
    assert_eq!((first.number, interval.lost()), (0, first.lost));
    std::thread::sleep(Duration::from_millis(11));
    let (late, _) = block_on(interval.tick());
    // Five periods at least: one is this tick, the others are gone.
    assert!(late.lost >= 4, "{late:?}");
    let (next, _) = block_on(interval.tick());
    let apart = next.scheduled_ns - first.scheduled_ns;
    assert_eq!(apart % period.nanos_or_zero(), 0);
    assert!(next.scheduled_ns > late.scheduled_ns && now() >= next.scheduled_ns);
    let refused = driver.interval(Span::ZERO, MissedTicks::Skip).unwrap_err();
    assert_eq!(refused, PeriodError::NotPositive(Span::ZERO));
}

#[test]
fn a_panicking_waker_is_alone() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("in a waker, on purpose");
        }
    }
    let driver = Driver::start().unwrap();
    let waker = Waker::from(Arc::new(Panics));
    let is_pending = |_| {
        let mut future = pin!(driver.sleep_for(Span::from_millis(1)));
        let is_pending = future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        block_on(driver.sleep_for(Span::from_millis(5)));
        assert!(!is_pending || future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        is_pending
    };
    assert!((0..TRIES).any(is_pending));
}

#[test]
fn the_thread_ends_with_its_last_user() {
    let clock = Arc::new(hourglass_clock::Clock::new());
    let driver = Driver::with(Arc::clone(&clock), SleeperSettings::DEFAULT).unwrap();
    let future = driver.sleep_for(Span::from_millis(3));
    drop(driver);
    block_on(future);
    // The thread held a clone of the clock.
    let begun = now();
    while Arc::strong_count(&clock) > 1 {
        assert!(now() - begun < 20_000_000_000, "the thread is still there");
        std::thread::sleep(Duration::from_millis(1));
    }
}
