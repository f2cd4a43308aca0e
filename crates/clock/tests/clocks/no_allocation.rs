//! Reading allocates nothing, whatever a reader finds to do: it may run in a signal handler that
//! interrupted the allocator.
#![cfg(target_os = "linux")]

use std::thread::sleep;
use std::time::Duration;

use hourglass_clock::timekeeping::{ClockSettings, SourceId, Start, Status};
use hourglass_clock::{Clock, Instant};
use hourglass_sys::allocation::thread_counts;

/// What this thread asks of the allocator meanwhile.
fn calls(work: impl FnOnce()) -> u64 {
    let before = thread_counts().calls;
    work();
    thread_counts().calls - before
}

/// The reader is the only thread: it makes the first read, the judgement, the adoption and every check of the machine.
#[test]
fn a_reader_alone_keeps_the_clock_without_allocating() {
    for start in [Start::Judged, Start::With(SourceId::TSC), Start::With(SourceId::OS)] {
        let clock =
            Clock::with(ClockSettings { start, look_every_ns: 0, ..ClockSettings::DEFAULT });
        let asked = calls(|| {
            for _ in 0..200 {
                let _ = (clock.now(), clock.now_ordered(), clock.now_bounded(), clock.recent());
                let _ = (clock.ticks(), clock.wall());
                sleep(Duration::from_millis(1));
            }
        });
        assert_eq!(asked, 0, "{start:?}: {:?}", clock.events());
        // It did have something to do, if this machine's counter is fit.
        let status = clock.now_bounded().status;
        assert!(status != Status::FailedOver, "{:?}", clock.events());
    }
}

/// What std's interface promises of ours.
#[test]
fn an_instant_allocates_nothing() {
    let asked = calls(|| {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {
            let _ = Instant::now_unordered();
        }
    });
    assert_eq!(asked, 0);
}

/// The counter of this test counts.
#[test]
fn an_allocation_is_seen() {
    assert_eq!(calls(|| drop(std::hint::black_box(Box::new(1)))), 2);
}
