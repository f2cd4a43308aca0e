//! Spans whose interruptions the test makes itself.

use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use hourglass_sys::clock::current_cpu;
use hourglass_sys::thread::{counters, set_affinity};
use hourglass_sys::{fork, rseq};
use hourglass_witness::{
    Cause, DetachedSpan, Indication, Loss, OpenSpan, Span, SpanError, Witness, follow,
};

/// On a thread of its own: witnesses belong to threads, and affinities stay with them.
fn alone<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(work).join().unwrap()
}

fn spin(length: Duration) {
    let until = Instant::now() + length;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Longer than a host takes from a thread, twice.
const PAUSE: Duration = Duration::from_millis(12);

/// The kernel's own counts are the truth, and both are read in one thread.
#[test]
fn a_span_lost_something_if_the_kernel_counted_a_switch() {
    alone(|| agrees_with_the_counters(&Witness::new().unwrap()));
    // As from Linux 6.19 on, where a switch inside a system call is not to be seen otherwise.
    alone(|| agrees_with_the_counters(&Witness::asking()));
}

fn agrees_with_the_counters(witness: &Witness) {
    let (mut slept, mut lost, mut kept) = (0, 0, 0);
    // Until enough sleeps have lost the CPU by the kernel's word: on a slow machine some are over before that.
    for turn in 0..40_000 {
        if slept >= 90 && kept >= 50 {
            break;
        }
        let before = counters();
        let span = witness.begin();
        match turn % 4 {
            0 => thread::sleep(Duration::from_micros(100)),
            1 => thread::yield_now(),
            _ => spin(Duration::from_micros(20)),
        }
        let loss = witness.end(span);
        let after = counters();
        let counted = after.voluntary - before.voluntary + after.involuntary - before.involuntary;
        let named = loss.map_or(0, |loss| loss.switches.voluntary + loss.switches.involuntary);
        // The span lies within what was counted.
        assert!(named <= counted, "{loss:?}");
        if counted == 0 {
            kept += 1;
        } else if turn % 4 == 0 {
            slept += 1;
            lost += usize::from(named > 0 && named + 1 >= counted);
        }
    }
    // A switch between the kernel's counts and the span's begin or end is not the span's.
    assert!(slept >= 90 && kept >= 50, "{slept} {kept}");
    assert!(lost * 100 >= slept * 95, "{lost} of {slept}");
}

/// A sleep of a known length: the thread was off the CPU for at most the span, and the sleep is the cause.
#[test]
fn a_sleep_is_within_its_bounds() {
    alone(|| sleeps(&Witness::new().unwrap()));
    alone(|| sleeps(&Witness::asking()));
    alone(|| {
        let (witness, other) = (Witness::asking(), Witness::new().unwrap());
        assert_eq!(other.try_end(witness.begin()), Err(SpanError::OtherThread));
        assert!(witness.end(other.begin()).unwrap().is_unknown());
    });
}

/// Of this number of spans, one has a useful lower bound: where the host takes the guest's processor, the guest's
/// accounts are off by milliseconds, and the interval leaves room for that.
const TRIES: usize = 8;

fn sleeps(witness: &Witness) {
    let losses = (0..TRIES).map(|_| one_sleep(witness)).collect::<Vec<_>>();
    // Its way into the sleep and out is all that the thread ran.
    let least = losses.iter().map(|loss| loss.off_cpu.earliest()).max();
    assert!(least >= Some(Span::from_millis(6)), "{losses:?}");
    // Its timer runs from before it leaves the CPU.
    let most = losses.iter().map(|loss| loss.off_cpu.latest()).max();
    assert!(most >= Some(Span::from_millis(12)), "{losses:?}");
    // On a busy machine it may wait for the CPU for longer than it slept.
    let is_wait = |loss: &Loss| {
        loss.cause == Cause::ContextSwitchVoluntary
            && loss.confidence > 0.5
            && loss.evidence.contains(Indication::CountedVoluntary)
    };
    assert!(losses.iter().any(is_wait), "{losses:?}");
}

/// Where the kernel records the switches, both ends are microseconds apart, in a virtual machine too; and by the clock
/// the thread was away for no longer than between its last line before a sleep and its first behind it.
#[test]
fn recorded_switches_make_bounds_narrow() {
    for asking in [false, true] {
        alone(move || {
            let witness = if asking { Witness::asking() } else { Witness::new().unwrap() };
            if let Err(reason) = witness.record_switches() {
                return eprintln!("switches are not recorded here: {reason}");
            }
            // The first look finds no earlier one.
            let _ = one_sleep(&witness);
            let mut timed = 0;
            for _ in 0..TRIES {
                let loss = one_sleep(&witness);
                let switches = loss.switches.voluntary + loss.switches.involuntary;
                if loss.evidence.contains(Indication::RecordedSwitch) {
                    let [least, most] = [loss.off_cpu.earliest(), loss.off_cpu.latest()];
                    let width = most.nanos() - least.nanos();
                    assert!(width <= 60_000 * switches as i64, "{loss:?}");
                    timed += 1;
                }
            }
            assert!(timed >= TRIES / 2, "{timed}");
        });
    }
}

/// More switches than the records have room for, and another thread's: by counts, which are wider.
#[test]
fn bounds_are_by_counts_where_a_switch_was_not_recorded() {
    alone(|| {
        let witness = Witness::new().unwrap();
        if witness.record_switches().is_err() {
            return;
        }
        let _ = one_sleep(&witness);
        let span = witness.begin();
        let first = counters().switches();
        while counters().switches() - first < 2_000 {
            thread::sleep(Duration::from_micros(1));
        }
        let loss = witness.end(span).unwrap();
        assert!(!loss.evidence.contains(Indication::RecordedSwitch), "{loss:?}");
        let _ = one_sleep(&witness);
        let again = (0..TRIES).map(|_| one_sleep(&witness));
        assert!(again.into_iter().any(|loss| loss.evidence.contains(Indication::RecordedSwitch)));
        // A part of it in a thread that records nothing.
        let span = witness.begin();
        thread::sleep(Duration::from_millis(1));
        let travelling = witness.detach(span);
        let other = alone(move || {
            let witness = Witness::new().unwrap();
            let span = witness.attach(travelling);
            // A machine that stands still as long as that sleeps without a switch.
            let first = counters().switches();
            while counters().switches() == first {
                thread::sleep(Duration::from_millis(1));
            }
            witness.detach(span)
        });
        let loss = witness.end(witness.attach(other)).unwrap();
        assert!(!loss.evidence.contains(Indication::RecordedSwitch), "{loss:?}");
    });
}

fn one_sleep(witness: &Witness) -> Loss {
    let begun = Instant::now();
    let span = witness.begin();
    thread::sleep(PAUSE);
    let loss = witness.end(span).unwrap();
    let most = Span::from_nanos(begun.elapsed().as_nanos() as i64 + 2_000);
    assert!(loss.off_cpu.latest() <= most && loss.length <= most, "{loss:?}");
    assert!(loss.switches.voluntary >= 1 && !loss.is_unknown());
    loss
}

/// Nested and overlapping: each has what lies in it, and the outer one all.
#[test]
fn spans_may_nest_and_overlap() {
    alone(|| {
        let witness = Witness::new().unwrap();
        let other = Witness::new().unwrap();
        let nested = |_| {
            let outer = witness.begin();
            let first = other.begin();
            thread::sleep(PAUSE);
            let second = witness.begin();
            let first = witness.end(first).unwrap();
            thread::sleep(PAUSE);
            let second = other.end(second).unwrap();
            let outer = witness.end(outer).unwrap();
            assert!(first.off_cpu.latest() < outer.off_cpu.latest());
            assert!(second.off_cpu.latest() < outer.off_cpu.latest());
            let all = first.switches.voluntary + second.switches.voluntary;
            assert_eq!(all, outer.switches.voluntary);
            outer.off_cpu.earliest()
        };
        let least = (0..TRIES).map(nested).collect::<Vec<_>>();
        assert!(least.iter().any(|least| *least >= Span::from_millis(12)), "{least:?}");
    });
}

/// Another thread of the same CPU, which works as long as this one: forced switches, and their time.
#[test]
fn a_competitor_is_an_involuntary_switch() {
    alone(|| {
        let cpu = current_cpu();
        set_affinity([cpu]).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let competitor = thread::spawn(move || {
            set_affinity([cpu]).unwrap();
            let witness = Witness::new().unwrap();
            while !seen.load(Ordering::Relaxed) {
                let span = witness.begin();
                spin(Duration::from_micros(100));
                let _ = witness.end(span);
            }
        });
        let witness = Witness::new().unwrap();
        let losses: Vec<_> = (0..TRIES)
            .map(|_| {
                let span = witness.begin_busy();
                let first = counters().involuntary;
                spin(Duration::from_millis(60));
                // On a busy machine the competitor takes longer to begin, or to get its turn.
                while counters().involuntary == first {
                    spin(Duration::from_millis(1));
                }
                witness.end(span).unwrap()
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        competitor.join().unwrap();
        for loss in &losses {
            // The competitor, or a thread of another test.
            assert_ne!(loss.who, Some(hourglass_sys::thread::id()));
            assert!(loss.switches.involuntary > 0, "{loss:?}");
            assert_eq!(loss.cause, Cause::ContextSwitchInvoluntary, "{loss:?}");
            assert!(loss.off_cpu.latest() <= loss.length);
            assert_eq!(loss.migrated, None);
        }
        assert!(losses.iter().any(|loss| loss.off_cpu.earliest() > Span::ZERO), "{losses:?}");
    });
}

/// SIGSTOP for 30 ms and more: a busy span names it, since it does not wait by itself. The first gap of that length
/// ends the test, since a slow machine takes its time to start the shell.
#[test]
fn a_stop_of_a_busy_span_is_named() {
    alone(|| {
        let witness = Witness::new().unwrap();
        let line =
            format!("sleep 0.05; kill -STOP {0}; sleep 0.03; kill -CONT {0}", std::process::id());
        let mut stopper = Command::new("sh").args(["-c", &line]).spawn().unwrap();
        let span = witness.begin_busy();
        // SIGCONT has come when the shell has ended.
        while stopper.try_wait().unwrap().is_none() {
            spin(Duration::from_micros(200));
        }
        let loss = witness.end(span).unwrap();
        assert!(stopper.wait().unwrap().success());
        assert!(loss.off_cpu.latest() >= Span::from_millis(25), "{loss:?}");
        if loss.off_cpu.latest() < Span::from_millis(60) {
            assert_eq!(loss.cause, Cause::Stopped, "{loss:?}");
        }
    });
}

/// A measured loop of the same thread has a section of its own: neither hides the other's switches.
#[test]
fn another_owner_of_the_section_does_not_hide_a_switch() {
    alone(|| {
        let witness = Witness::new().unwrap();
        let Ok(other) = rseq::Section::open() else { return };
        for before in [false, true] {
            let span = witness.begin();
            if before {
                other.arm();
            }
            let counted = counters().voluntary;
            while counters().voluntary == counted {
                thread::sleep(Duration::from_micros(100));
            }
            other.arm();
            assert!(witness.end(span).unwrap().switches.voluntary > 0);
            // Named by the other one although nothing happened since: the counters know.
            let span = witness.begin();
            other.arm();
            let counted = counters();
            let loss = witness.end(span);
            assert!(loss.is_none() || counters() != counted, "{loss:?}");
        }
    });
}

/// In a forked child the spans of the parent are unknown, and its own are witnessed.
#[test]
fn a_forked_child_begins_anew() {
    alone(|| forks(false));
    // The child has no mapping of the records.
    alone(|| forks(true));
}

fn forks(recorded: bool) {
    let witness = Witness::new().unwrap();
    if recorded {
        let _ = witness.record_switches();
    }
    let (early, late) = (witness.begin(), witness.begin());
    let reported = fork::child_says(10_000, || {
        let first = witness.try_end(early) == Err(SpanError::Forked);
        let span = witness.begin();
        thread::sleep(PAUSE);
        let own = witness.end(span).is_some_and(|loss| loss.switches.voluntary > 0);
        let second = witness.end(late).is_some_and(|loss: Loss| loss.is_unknown());
        let span = witness.begin();
        first && own && second && witness.try_end(span).is_ok()
    });
    assert!(reported.unwrap());
    let span = witness.begin();
    thread::sleep(PAUSE);
    assert!(witness.end(span).unwrap().switches.voluntary > 0);
}

/// A task's span: what it lost in a thread that is no more goes along, the way between the threads does not.
#[test]
fn a_span_travels_from_thread_to_thread() {
    let least = (0..TRIES).map(|_| travelled().off_cpu.earliest()).max();
    assert!(least >= Some(Span::from_millis(6)), "{least:?}");
}

/// With how long `work` took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed())
}

/// No longer than that, but for the two clocks.
fn is_within(length: Span, most: Duration) -> bool {
    length <= Span::from_nanos((most + most / 1_000).as_nanos() as i64 + 2_000)
}

fn travelled() -> Loss {
    let (travelling, first) = alone(|| {
        let witness = Witness::new().unwrap();
        timed(|| {
            let span = witness.begin();
            thread::sleep(PAUSE);
            witness.detach(span)
        })
    });
    assert_eq!(travelling.unknown(), None);
    thread::sleep(PAUSE);
    let (loss, second) = alone(move || {
        let witness = Witness::new().unwrap();
        timed(|| {
            let span = witness.attach(travelling);
            spin(Duration::from_micros(10));
            let travelling = witness.detach(span);
            let span = witness.attach(travelling);
            witness.try_end(span).unwrap().unwrap()
        })
    });
    assert!(loss.switches.voluntary >= 1);
    assert!(is_within(loss.length, first + second), "{loss:?}");
    loss
}

#[test]
fn a_span_that_has_not_begun_has_lost_nothing() {
    alone(|| {
        let witness = Witness::new().unwrap();
        let reported = (0..100).any(|_| witness.end(witness.attach(DetachedSpan::new())).is_none());
        assert!(reported);
    });
}

/// Polls take turns on two threads; the first sleeps in its poll.
#[test]
fn a_future_is_followed() {
    async fn task() -> u32 {
        thread::sleep(PAUSE);
        let mut again = true;
        std::future::poll_fn(move |_| match std::mem::replace(&mut again, false) {
            true => Poll::Pending,
            false => Poll::Ready(42),
        })
        .await
    }
    fn movable<F: Send>(future: F) -> F {
        future
    }
    let mut followed = Box::pin(movable(follow(task())));
    let (mut followed, first) = alone(move || {
        let poll = || followed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let (polled, first) = timed(poll);
        assert!(polled.is_pending());
        (followed, first)
    });
    thread::sleep(PAUSE);
    alone(move || {
        let poll = || followed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let (polled, second) = timed(poll);
        let Poll::Ready((answer, Some(loss))) = polled else { panic!("{polled:?}") };
        assert_eq!(answer, 42);
        assert!(loss.switches.voluntary >= 1, "{loss:?}");
        assert!(is_within(loss.length, first + second), "{loss:?}");
    });
    let mut quick = pin!(follow(async { 1 }));
    let polled = quick.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready((1, _))));
}

/// A span that is dropped, and one that is begun often: nothing is kept of either.
#[test]
fn spans_leave_nothing_behind() {
    alone(|| {
        let witness = Witness::new().unwrap();
        let spans: Vec<OpenSpan> = (0..1_000).map(|_| witness.begin()).collect();
        drop(spans);
        match witness.counter_read_reason() {
            None => assert!((0..100).any(|_| witness.end(witness.begin()).is_none())),
            Some(_) => assert!(Witness::without_asking().is_err()),
        }
    });
}
