//! Every order in which threads can meet in the lock-free part of the service (issue: "loom or
//! shuttle on the lock-free paths"). The files of the library are compiled here once more, with the
//! atomics of the model checker, so that this is the code that runs and not a copy of it.
//!
//! What a model shows it shows up to the preemptions that it is bound to, three for each order.

#![allow(dead_code, unused_imports)]

mod atomic {
    // What x86 leaves out is not left out here: the checker knows no such processor.
    pub(crate) use loom::sync::atomic::fence as fence_behind_exchange;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
}

#[path = "../../src/service/remote/mod.rs"]
mod remote;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use remote::{
    ArmRefused, ArmRequest, CancelScope, Context, DirtySet, ExpiryAction, ExpiryEvent, Ring,
    SleepTransition, SleeperState, TimerSlot, Wake,
};

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// What only belongs together: any mixture of two of them is torn.
fn arming(number: u64) -> ArmRequest {
    let past = number % 2 == 1;
    ArmRequest {
        expiry_ns: number as i64,
        period_ns: 0,
        slack_ns: number,
        flags: number as u8,
        past,
    }
}

fn fire(sequence: u64, context: Context) -> ExpiryEvent {
    ExpiryEvent { sequence, context, further: 0, torn: None }
}

fn open() -> TimerSlot {
    let slot = TimerSlot::new();
    slot.open();
    slot
}

/// A timer that is armed like this, and which arming that is.
fn armed(arming: &ArmRequest) -> (Arc<TimerSlot>, u64) {
    let slot = Arc::new(open());
    slot.arm(arming, false).unwrap();
    let (sequence, _) = standing(&slot).unwrap();
    (slot, sequence)
}

fn standing(slot: &TimerSlot) -> Option<(u64, ArmRequest)> {
    slot.standing().expect("it is armed for ever")
}

/// The engine publishes when it wakes while another thread arms: either the engine finds the mark,
/// or the other thread finds that it must kick.
#[test]
fn no_wake_up_is_lost() {
    explore(|| {
        let shared = Arc::new((DirtySet::<2>::new(), Wake::new()));
        let remote = Arc::clone(&shared);
        let other = thread::spawn(move || {
            remote.0.mark(70);
            remote.1.wants(1_000)
        });
        shared.1.sleeps_until(5_000);
        let found = shared.0.has_changes();
        let kicked = other.join().unwrap();
        assert!(found || kicked, "the engine sleeps to 5000, the timer is due at 1000");
    });
}

/// Two threads mark the same timer; the first may be preempted anywhere. A thread that finished is
/// seen, with what it published before, also when it found the bits set already.
#[test]
fn a_marker_relies_on_no_other() {
    explore(|| {
        let shared = Arc::new((DirtySet::<1>::new(), Wake::new(), open()));
        let mark = |number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.2.arm(&arming(number), false).unwrap();
                shared.0.mark(3);
                shared.1.wants(1_000)
            })
        };
        let others = [mark(1), mark(2)];
        // The engine: looks, sleeps, and is woken if a thread wants it.
        let mut seen = None;
        let mut look = || {
            while let Some((_, bits)) = shared.0.take(0) {
                if bits != 0 {
                    seen = standing(&shared.2).map(|(sequence, _)| sequence);
                }
            }
        };
        look();
        shared.1.sleeps_until(5_000);
        if shared.0.has_changes() {
            look();
        }
        let kicked = others.map(|other| other.join().unwrap());
        if kicked.contains(&true) {
            look();
        }
        let last = standing(&shared.2).unwrap().0;
        assert_eq!(seen, Some(last), "the engine sleeps and knows an older arming");
    });
}

/// The same where the first has time, and so wakes no engine: what it marked must not keep the
/// second, which has none, from being seen or waking.
#[test]
fn a_marker_in_a_hurry_relies_on_none_that_is_not() {
    explore(|| {
        let shared = Arc::new((DirtySet::<1>::new(), Wake::new(), open()));
        let mark = |due| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.2.arm(&arming(due), false).unwrap();
                shared.0.mark(3);
                shared.1.wants(due)
            })
        };
        let others = [mark(9_000), mark(1_000)];
        shared.1.sleeps_until(5_000);
        let found = shared.0.has_changes();
        let kicked = others.map(|other| other.join().unwrap());
        let due = standing(&shared.2).unwrap().1.expiry_ns;
        assert!(found || kicked[1] || due > 5_000, "the engine sleeps to 5000");
    });
}

/// An engine looks once before it sleeps, however much is marked meanwhile: what it has not seen
/// kicks it. The second arming comes from a thread of its own or after the first.
#[test]
fn one_look_before_sleep_is_enough() {
    for in_turn in [false, true] {
        explore(move || {
            let shared = Arc::new((DirtySet::<1>::new(), Wake::new(), [open(), open()]));
            let mark = |timers: std::ops::Range<usize>| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut kicks = false;
                    for timer in timers {
                        let due = [3_000, 1_000][timer];
                        shared.2[timer].arm(&arming(due), false).unwrap();
                        shared.0.mark(timer);
                        kicks |= shared.1.wants(due);
                    }
                    kicks
                })
            };
            let others = if in_turn { vec![mark(0..2)] } else { vec![mark(0..1), mark(1..2)] };
            let mut first_ns = 5_000;
            let mut retiring = SleepTransition::default();
            let mut looks = 0;
            while !retiring.may_sleep(&shared.1, first_ns, || shared.0.has_changes()) {
                looks += 1;
                assert!(looks <= 1, "nothing it saw puts the wake-up off");
                while let Some((_, bits)) = shared.0.take(0) {
                    for timer in (0..2).filter(|timer| bits & 1 << timer != 0) {
                        let due =
                            standing(&shared.2[timer]).map_or(i64::MAX, |(_, seen)| seen.expiry_ns);
                        let due = due as u64;
                        first_ns = first_ns.min(due);
                    }
                }
                retiring.looked(true);
            }
            let kicked = others.into_iter().any(|other| other.join().unwrap());
            assert!(kicked || first_ns <= 1_000, "it sleeps until {first_ns}");
        });
    }
}

#[test]
fn two_armers_are_never_seen_torn() {
    explore(|| {
        let slot = Arc::new(open());
        let arm = |number| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.arm(&arming(number), false).map(|_| ()))
        };
        let others = [arm(1), arm(2)];
        if let Some(Some((_, seen))) = slot.standing() {
            assert!(seen == arming(1) || seen == arming(2), "{seen:?}");
        }
        for other in others {
            other.join().unwrap().unwrap();
        }
        let (_, last) = standing(&slot).unwrap();
        assert!(last == arming(1) || last == arming(2), "{last:?}");
    });
}

#[test]
fn a_cell_that_is_taken_again_is_noticed() {
    explore(|| {
        let slot = Arc::new(open());
        slot.arm(&arming(1), false).unwrap();
        let remote = Arc::clone(&slot);
        let other = thread::spawn(move || {
            remote.arm(&arming(2), false).unwrap();
            remote.arm(&arming(3), false).unwrap();
        });
        if let Some(Some((_, seen))) = slot.standing() {
            assert!((1..=3).any(|number| seen == arming(number)), "{seen:?}");
        }
        other.join().unwrap();
    });
}

#[test]
fn fire_or_cancel() {
    explore(|| {
        let (slot, sequence) = armed(&arming(1));
        let remote = Arc::clone(&slot);
        let other = thread::spawn(move || remote.cancel(CancelScope::All).unwrap().is_some());
        let fired = slot.fire(fire(sequence, Context::Immediate), |_| ());
        let cancelled = other.join().unwrap();
        assert_eq!(fired == ExpiryAction::Lost, cancelled);
        assert!(!slot.state().armed());
    });
}

/// Cancelling the current expiry of a periodic timer: it is skipped, or it was too late and the
/// next one is; the timer stays armed either way.
#[test]
fn fire_or_cancel_current() {
    explore(|| {
        let (slot, sequence) = armed(&ArmRequest { period_ns: 10, ..arming(1) });
        let remote = Arc::clone(&slot);
        let other = thread::spawn(move || remote.cancel(CancelScope::Current).unwrap().is_some());
        let first = slot.fire(fire(sequence, Context::Immediate), |_| ());
        assert!(other.join().unwrap());
        slot.end();
        let second = slot.fire(fire(sequence + 1, Context::Immediate), |_| ());
        let skips = [first, second].iter().filter(|fired| **fired == ExpiryAction::Skipped).count();
        assert_eq!(skips, 1, "{first:?}, {second:?}");
        assert!(slot.state().armed());
    });
}

/// An arming meets the expiry of the one before: the old one fires or is replaced, the new one
/// stands, and one that was replaced cannot fire.
#[test]
fn arm_or_fire() {
    explore(|| {
        let (slot, sequence) = armed(&arming(1));
        let remote = Arc::clone(&slot);
        let other = thread::spawn(move || remote.arm(&arming(2), false).unwrap().armed());
        let fired = slot.fire(fire(sequence, Context::Immediate), |_| ());
        let replaced = other.join().unwrap();
        assert_eq!(fired == ExpiryAction::Lost, replaced);
        assert_eq!(standing(&slot).unwrap().1, arming(2));
        assert_eq!(slot.fire(fire(sequence, Context::Immediate), |_| ()), ExpiryAction::Lost);
    });
}

/// The engine gives up an arming that it cannot keep (at the end of the clock's range, or for want of
/// memory) while another thread arms the timer anew: that stands.
#[test]
fn giving_up_an_arming_leaves_another() {
    explore(|| {
        let (slot, sequence) = armed(&ArmRequest { period_ns: 10, ..arming(1) });
        let remote = Arc::clone(&slot);
        let other = thread::spawn(move || remote.arm(&arming(2), false).map(|_| ()));
        if slot.fire(fire(sequence, Context::Immediate), |_| ()) != ExpiryAction::Lost {
            slot.end();
            slot.disarm(sequence + 1);
        }
        other.join().unwrap().unwrap();
        assert_eq!(standing(&slot).map(|(_, stands)| stands), Some(arming(2)));
    });
}

/// After `terminate` returned (and the end of a running action was waited for) no action runs.
#[test]
fn terminate_or_fire() {
    explore(|| {
        let (slot, sequence) = armed(&arming(1));
        let runs = Arc::new(AtomicUsize::new(0));
        let (remote, counted) = (Arc::clone(&slot), Arc::clone(&runs));
        let engine = thread::spawn(move || {
            if let ExpiryAction::Run { .. } =
                remote.fire(fire(sequence, Context::Immediate), |_| ())
            {
                counted.store(1, Ordering::Relaxed);
                counted.store(2, Ordering::Relaxed);
                remote.end();
            }
        });
        slot.terminate();
        if !slot.await_end() {
            // Either it is over or it never begins.
            let seen = runs.load(Ordering::Relaxed);
            assert_ne!(seen, 1);
            engine.join().unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), seen, "an action after terminate");
        } else {
            engine.join().unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 2);
        }
        assert_eq!(slot.arm(&arming(2), false), Err(ArmRefused::Terminated));
    });
}

/// The same for an action that waits for a worker; and the slot is given back exactly once.
#[test]
fn terminate_or_begin() {
    explore(|| {
        let (slot, sequence) = armed(&arming(1));
        let queued = slot.fire(fire(sequence, Context::Deferred), |_| ());
        assert_eq!(queued, ExpiryAction::Queue { skipped: false });
        let remote = Arc::clone(&slot);
        let worker = thread::spawn(move || match remote.begin() {
            Ok(()) => remote.end().orphan,
            Err(ended) => ended.orphan,
        });
        slot.terminate();
        let given_back = slot.abandon();
        let by_worker = worker.join().unwrap();
        assert!(given_back != by_worker, "given back {given_back} and {by_worker}");
    });
}

#[test]
fn an_expiry_while_it_runs() {
    explore(|| {
        let (slot, sequence) = armed(&ArmRequest { period_ns: 1, ..arming(1) });
        assert_eq!(
            slot.fire(fire(sequence, Context::Deferred), |_| ()),
            ExpiryAction::Queue { skipped: false }
        );
        let remote = Arc::clone(&slot);
        let worker = thread::spawn(move || {
            remote.begin().unwrap();
            remote.end().requeue
        });
        let fired = slot.fire(fire(sequence + 1, Context::Deferred), |_| ());
        let again = worker.join().unwrap();
        match fired {
            ExpiryAction::AfterRun { .. } => assert!(again, "it is not queued again"),
            ExpiryAction::Queue { .. } => assert!(!again, "it is queued twice"),
            ExpiryAction::Behind => assert!(!again),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_sleep_ends_once() {
    explore(|| {
        let slot = Arc::new(open());
        slot.arm(&arming(1), true).unwrap();
        assert_eq!(slot.arm(&arming(2), true), Err(ArmRefused::Slept));
        let (sequence, _) = standing(&slot).unwrap();
        let remote = Arc::clone(&slot);
        let other = thread::spawn(move || remote.cancel(CancelScope::All).unwrap().is_some());
        let fired = slot.fire(fire(sequence, Context::Immediate), |_| ());
        let cancelled = other.join().unwrap();
        assert_eq!(fired == ExpiryAction::Woke, !cancelled);
        let end = if cancelled { SleeperState::Cancelled } else { SleeperState::Woken };
        assert_eq!(slot.slept(), (end, false));
        assert_eq!(slot.slept(), (SleeperState::Absent, false));
    });
}

#[test]
fn a_queue_of_two_writers() {
    explore(|| {
        let ring = Arc::new(Ring::<2>::new(2));
        let push = |numbers: &'static [u64]| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let pushed = numbers.iter().filter(|number| ring.push([**number, !**number]));
                pushed.count()
            })
        };
        let writers = [push(&[1, 2]), push(&[9])];
        let mut seen = Vec::new();
        let mut look = || {
            while let Some([number, inverse]) = ring.pop() {
                assert_eq!(inverse, !number, "torn");
                seen.push(number);
            }
        };
        look();
        let pushed: usize = writers.map(|writer| writer.join().unwrap()).iter().sum();
        look();
        assert_eq!(seen.len(), pushed);
        seen.retain(|number| *number != 9);
        assert!(seen.is_sorted() && seen.len() <= 2, "{seen:?}");
    });
}
