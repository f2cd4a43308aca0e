//! Hourglass under test: the exact queue with each order, the wheel, the paper's wheel.
//!
//! Owns: driving them as their users would.
//! Must not: reach around their public face.

use std::hint::black_box;

use hourglass_queue::reference::CascadingWheel;
use hourglass_queue::{Handle, Heap, PriorityStructure, Queue, RedBlackTree, TimeoutWheel};
use hourglass_time::{Instant, Monotonic, Span};

use super::workload::TimerBackend;

fn at(ns: u64) -> Instant<Monotonic> {
    Instant::from_nanos(ns as i64)
}

fn ns(time: Instant<Monotonic>) -> u64 {
    time.since_zero().nanos_or_zero()
}

pub(crate) trait OrderName: PriorityStructure {
    const NAME: &'static str;
}

impl OrderName for Heap {
    const NAME: &'static str = "hourglass";
}

impl OrderName for RedBlackTree {
    const NAME: &'static str = "hourglass/red_black";
}

/// The exact queue. Inserting creates a timer and arms it, cancelling removes it, as the peers do;
/// one that has fired lives on and is armed again by the handle that it fired with.
pub(crate) struct ExactQueue<B: PriorityStructure> {
    queue: Queue<Monotonic, u64, B>,
    handles: Vec<Option<Handle>>,
}

impl<B: OrderName> TimerBackend for ExactQueue<B> {
    const NAME: &'static str = <B as OrderName>::NAME;
    type Fired = Handle;

    fn with_room(ids: usize) -> ExactQueue<B> {
        let queue = Queue::with_capacity(ids).expect("there is memory");
        ExactQueue { queue, handles: vec![None; ids] }
    }

    fn insert(&mut self, id: u32, _now: u64, deadline: u64) {
        let handle = self.queue.create(id.into()).expect("there is room");
        self.queue.arm(handle, at(deadline), Span::ZERO).expect("it was just created");
        self.handles[id as usize] = Some(handle);
    }

    fn cancel(&mut self, id: u32) {
        let handle = self.handles[id as usize].take().expect("it was inserted");
        self.queue.remove(handle).expect("it is alive");
    }

    fn rearm(&mut self, handle: Handle, _now: u64, deadline: u64) {
        self.queue.arm(handle, at(deadline), Span::ZERO).expect("it is alive");
    }

    /// A timer that lives on: of a connection, say, armed and cancelled for each request.
    fn arm_and_cancel(&mut self, id: u32, _now: u64, deadline: u64) {
        if self.handles[id as usize].is_none() {
            self.handles[id as usize] = self.queue.create(id.into()).ok();
        }
        let handle = self.handles[id as usize].expect("it was created");
        self.queue.arm(handle, at(deadline), Span::ZERO).expect("it is alive");
        self.queue.cancel(handle).expect("it is alive");
    }

    fn next(&mut self) -> Option<u64> {
        self.queue.next_expiry().map(ns)
    }

    fn poll(&mut self, now: u64, fired: &mut Vec<Handle>) {
        while let Some(expired) = self.queue.pop_expired(at(now)) {
            black_box(self.queue.payload(expired.handle).expect("it lives on"));
            fired.push(expired.handle);
        }
    }
}

pub(crate) struct Timeouts {
    wheel: TimeoutWheel<Monotonic, u64>,
    handles: Vec<Option<Handle>>,
}

impl TimerBackend for Timeouts {
    const NAME: &'static str = "hourglass/timeouts";
    type Fired = Handle;

    fn with_room(ids: usize) -> Timeouts {
        let granularity = Span::from_nanos(1 << 20);
        let mut wheel = TimeoutWheel::new(granularity, Instant::ZERO).expect("coarse enough");
        wheel.reserve(ids).expect("there is memory");
        Timeouts { wheel, handles: vec![None; ids] }
    }

    fn insert(&mut self, id: u32, now: u64, deadline: u64) {
        let handle = self.wheel.create(id.into()).expect("there is room");
        self.wheel.arm_at(handle, at(now), at(deadline)).expect("it was just created");
        self.handles[id as usize] = Some(handle);
    }

    fn cancel(&mut self, id: u32) {
        let handle = self.handles[id as usize].take().expect("it was inserted");
        self.wheel.remove(handle).expect("it is alive");
    }

    fn rearm(&mut self, handle: Handle, now: u64, deadline: u64) {
        self.wheel.arm_at(handle, at(now), at(deadline)).expect("it is alive");
    }

    fn arm_and_cancel(&mut self, id: u32, now: u64, deadline: u64) {
        if self.handles[id as usize].is_none() {
            self.handles[id as usize] = self.wheel.create(id.into()).ok();
        }
        let handle = self.handles[id as usize].expect("it was created");
        self.wheel.arm_at(handle, at(now), at(deadline)).expect("it is alive");
        self.wheel.cancel(handle).expect("it is alive");
    }

    fn next(&mut self) -> Option<u64> {
        self.wheel.next_expiry().map(ns)
    }

    fn poll(&mut self, now: u64, fired: &mut Vec<Handle>) {
        let budget = TimeoutWheel::<Monotonic, u64>::BUDGET;
        self.wheel.expire(at(now), budget, |wheel, expired| {
            black_box(wheel.payload(expired.handle).expect("it lives on"));
            fired.push(expired.handle);
        });
    }
}

/// The paper's wheel, with its tick of 1 ms, kept to show what cascading costs.
pub(crate) struct Cascading {
    wheel: CascadingWheel<Monotonic, u64>,
    handles: Vec<Option<Handle>>,
}

impl TimerBackend for Cascading {
    const NAME: &'static str = "hourglass/cascading";
    type Fired = Handle;

    fn with_room(ids: usize) -> Cascading {
        let wheel = CascadingWheel::new(Span::MILLISECOND, Instant::ZERO).expect("a tick");
        Cascading { wheel, handles: vec![None; ids] }
    }

    fn insert(&mut self, id: u32, _now: u64, deadline: u64) {
        let handle = self.wheel.create(id.into()).expect("there is memory");
        self.wheel.arm(handle, at(deadline)).expect("it was just created");
        self.handles[id as usize] = Some(handle);
    }

    fn cancel(&mut self, id: u32) {
        let handle = self.handles[id as usize].take().expect("it was inserted");
        self.wheel.remove(handle).expect("it is alive");
    }

    fn rearm(&mut self, handle: Handle, _now: u64, deadline: u64) {
        self.wheel.arm(handle, at(deadline)).expect("it is alive");
    }

    /// It does not know, and is polled every tick, as it was.
    fn next(&mut self) -> Option<u64> {
        Some(ns(self.wheel.next_tick()))
    }

    fn poll(&mut self, now: u64, fired: &mut Vec<Handle>) {
        self.wheel.advance(at(now), |wheel, expired| {
            black_box(wheel.payload(expired.handle).expect("it lives on"));
            fired.push(expired.handle);
        });
    }
}
