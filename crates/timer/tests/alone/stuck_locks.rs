//! What suspending a thread can break, and that regions prevent it (300 suspensions; another thread that does the
//! same kind of work is stuck meanwhile).
//!
//! One-sided: with regions never, without them at least once for a user's mutex. Rates are printed,
//! not asserted. The allocator has one arena in this process. Every suspension ends: by its handler's
//! answer, and by the longest stop if that failed.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hourglass_time::Span;
use hourglass_timer::fault::{
    Attributes, Deadline, DeadlineWatch, FaultAction, FaultVerdict, WatchSettings,
    deadline_handler, defer,
};

use crate::in_own_process_with;

const TRIALS: u64 = 40;
/// After which another thread that has done nothing is looked at more closely.
const LOOK: Duration = Duration::from_millis(4);
/// After which it counts as stuck where that is what is expected.
const STUCK: Duration = Duration::from_millis(16);
/// After which it does where nothing of the kind may be: it may have had no CPU.
const SURELY_STUCK: Duration = Duration::from_secs(2);

trait Work: Sync {
    fn once(&self, turn: u64);
}

struct UserMutex(Mutex<u64>);

impl Work for UserMutex {
    fn once(&self, turn: u64) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..200 {
            *held = black_box(held.wrapping_add(turn));
        }
    }
}

/// The standard error's lock, as every program shares it; nothing is written.
struct Stream;

impl Work for Stream {
    fn once(&self, turn: u64) {
        let mut stream = std::io::stderr().lock();
        for _ in 0..50 {
            black_box(&mut stream);
            black_box(turn);
        }
    }
}

struct Compute;

impl Work for Compute {
    fn once(&self, turn: u64) {
        for step in 0..200u64 {
            black_box(step.wrapping_mul(turn));
        }
    }
}

struct Deferred<W>(W);

impl<W: Work> Work for Deferred<W> {
    fn once(&self, turn: u64) {
        defer(|| self.0.once(turn));
    }
}

/// The allocator, of which there is one for all threads with `MALLOC_ARENA_MAX=1`. Blocks of the size
/// that the C library keeps no store of for each thread.
struct Allocate;

impl Work for Allocate {
    fn once(&self, turn: u64) {
        drop(black_box(Vec::<u8>::with_capacity(2_000 + (turn as usize * 7_919) % 20_000)));
    }
}

/// Suspends a thread at that work; how often another one at the same work was stuck.
fn stuck(work: &impl Work, patience: Duration) -> u64 {
    let progress = Arc::<AtomicU64>::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                work.once(progress.fetch_add(1, Ordering::Relaxed));
                thread::sleep(Duration::from_micros(20));
            }
        });
        let offender = scope.spawn(|| offend(work, Arc::clone(&progress), patience));
        let stuck = offender.join();
        stop.store(true, Ordering::Relaxed);
        stuck.unwrap()
    })
}

fn offend(work: &impl Work, progress: Arc<AtomicU64>, patience: Duration) -> u64 {
    let settings = WatchSettings {
        longest_stop: Some(Span::from_secs(5)),
        ..WatchSettings::with_strength(FaultAction::Suspend)
    };
    let mut watch = DeadlineWatch::new(settings).unwrap();
    let count = Arc::<AtomicU64>::default();
    // The entry only counts and sleeps: it needs nothing that the suspended thread may hold.
    let entry = move |_: &_, count: &mut Arc<AtomicU64>| {
        let before = progress.load(Ordering::Relaxed);
        // One turn may have been between its count and its lock.
        let is_stuck = || progress.load(Ordering::Relaxed) <= before + 1;
        thread::sleep(LOOK);
        let mut waited = Duration::ZERO;
        while is_stuck() && waited < patience {
            thread::sleep(LOOK);
            waited += LOOK;
        }
        count.fetch_add(u64::from(is_stuck()), Ordering::Relaxed);
        FaultVerdict::Resume
    };
    let handler = deadline_handler(&watch.thread(), Attributes::DEFAULT, entry, Arc::clone(&count));
    let handler = handler.unwrap();
    for trial in 0..TRIALS {
        let lead = Span::from_micros(200 + (trial as i64 * 37) % 700);
        watch.arm(Deadline::In(lead)).unwrap();
        let mut turn = trial;
        while watch.faults() == trial {
            work.once(turn);
            turn += 1;
        }
    }
    assert_eq!((watch.faults(), watch.overstayed()), (TRIALS, 0));
    drop(handler);
    count.load(Ordering::Relaxed)
}

fn tell(what: &str, stuck: u64) -> u64 {
    println!("{what}: another thread was stuck in {stuck} of {TRIALS} suspensions");
    stuck
}

#[test]
fn a_suspended_thread_holds_what_it_holds_but_for_regions() {
    let name = "stuck_locks::a_suspended_thread_holds_what_it_holds_but_for_regions";
    in_own_process_with(name, &[("MALLOC_ARENA_MAX", "1")], || {
        assert!(tell("a mutex", stuck(&UserMutex(Mutex::new(0)), STUCK)) > 0);
        tell("the standard error's lock", stuck(&Stream, STUCK));
        tell("the allocator with one arena", stuck(&Allocate, STUCK));
        assert_eq!(tell("computing", stuck(&Compute, SURELY_STUCK)), 0);
        let deferred = stuck(&Deferred(UserMutex(Mutex::new(0))), SURELY_STUCK);
        assert_eq!(tell("a mutex, in regions", deferred), 0);
        assert_eq!(tell("the allocator, in regions", stuck(&Deferred(Allocate), SURELY_STUCK)), 0);
    });
}
