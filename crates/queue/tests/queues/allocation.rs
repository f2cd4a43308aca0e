//! Arming, moving, cancelling and firing never allocate, and a timer takes 64 bytes at most.

use hourglass_dice::Dice;
use hourglass_queue::{Handle, Heap, PriorityStructure, Queue, RedBlackTree, TimeoutWheel};
use hourglass_sys::allocation::{CountingAllocator, thread_counts};
use hourglass_time::{Instant, Sim, Span};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const TIMERS: usize = 10_000;

fn at(ns: u64) -> Instant<Sim> {
    Instant::from_nanos(ns as i64)
}

fn work<B: PriorityStructure>() {
    let mut dice = Dice::new(1);
    let mut queue: Queue<Sim, u64, B> = Queue::with_capacity(TIMERS).unwrap();
    let mut handles: Vec<Handle> = Vec::with_capacity(TIMERS);
    let before = thread_counts();
    for i in 0..TIMERS as u64 {
        handles.push(queue.create(i).unwrap());
    }
    for step in 0..200_000 {
        let i = dice.below(TIMERS as u64) as usize;
        match dice.below(10) {
            0..=6 => queue.arm(handles[i], at(step + dice.below(1_000)), Span::ZERO).unwrap(),
            7 => assert!(queue.cancel(handles[i]).is_ok()),
            8 => {
                assert!(queue.remove(handles[i]).is_ok());
                handles[i] = queue.create(step).unwrap();
            }
            _ => {
                queue.expire(at(step), 100, |_, _| ());
            }
        }
    }
    assert_eq!(thread_counts(), before);
    assert!(queue.armed() > 10);
}

#[test]
fn timers_never_allocate() {
    work::<Heap>();
    work::<RedBlackTree>();
}

#[test]
fn timeouts_never_allocate() {
    let mut dice = Dice::new(2);
    let mut wheel: TimeoutWheel<Sim, u64> = TimeoutWheel::new(Span::from_nanos(64), at(0)).unwrap();
    wheel.reserve(TIMERS).unwrap();
    let mut handles: Vec<Handle> = Vec::with_capacity(TIMERS);
    let before = thread_counts();
    for i in 0..TIMERS as u64 {
        handles.push(wheel.create(i).unwrap());
    }
    for step in 0..200_000 {
        let i = dice.below(TIMERS as u64) as usize;
        let delay = Span::from_nanos(dice.magnitude(40));
        match dice.below(10) {
            0..=6 => wheel.arm_after(handles[i], at(step), delay).unwrap(),
            7 => assert!(wheel.cancel(handles[i]).is_ok()),
            8 => {
                assert!(wheel.remove(handles[i]).is_ok());
                handles[i] = wheel.create(step).unwrap();
            }
            _ => {
                wheel.expire(at(step), 100, |_, _| ());
            }
        }
    }
    assert_eq!(thread_counts(), before);
    assert!(wheel.armed() > 10);
}

/// The project's bound, with an eight-byte payload; all arrays included, at the room reserved.
#[test]
fn a_timer_takes_64_bytes_at_most() {
    let timers = 100_000;
    let before = thread_counts().held;
    let queue: Queue<Sim, u64> = Queue::with_capacity(timers).unwrap();
    let timer = (thread_counts().held - before) as f64 / timers as f64;
    assert!(timer <= 64.0, "{timer} bytes a timer");

    let before = thread_counts().held;
    let mut wheel: TimeoutWheel<Sim, u64> = TimeoutWheel::new(Span::MILLISECOND, at(0)).unwrap();
    wheel.reserve(timers).unwrap();
    let timeout = (thread_counts().held - before) as f64 / timers as f64;
    assert!(timeout <= 64.0, "{timeout} bytes a timeout");
    println!("{timer} bytes a timer, {timeout} bytes a timeout");
    assert_eq!((queue.capacity(), wheel.capacity()), (timers, timers));
}
