//! What one finds on crates.io.
//!
//! Owns: driving each as its documentation says.
//! Must not: reach around their public faces.
//!
//! All three work in milliseconds: they have less to order than the others, and fire late.

use std::future::poll_fn;
use std::time::{Duration, Instant};

use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use tokio::runtime::Runtime;
use tokio_util::time::delay_queue::{self, Key};

use super::dice::Dice;
use super::workload::{PollTimer, TimerBackend};

const MILLISECOND: u64 = 1_000_000;

/// `tokio_util::time::DelayQueue` on a runtime whose clock is paused and goes from expiry to
/// expiry by itself.
pub(crate) struct DelayQueue {
    runtime: Runtime,
    queue: delay_queue::DelayQueue<u32>,
    keys: Vec<Option<Key>>,
    zero: tokio::time::Instant,
}

impl TimerBackend for DelayQueue {
    const NAME: &'static str = "tokio-util DelayQueue";
    type Fired = u32;

    fn with_room(ids: usize) -> DelayQueue {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        let (queue, zero) = runtime.block_on(async {
            (delay_queue::DelayQueue::with_capacity(ids), tokio::time::Instant::now())
        });
        DelayQueue { runtime, queue, keys: (0..ids).map(|_| None).collect(), zero }
    }

    fn insert(&mut self, id: u32, _now: u64, deadline: u64) {
        let _entered = self.runtime.enter();
        let key = self.queue.insert_at(id, self.zero + Duration::from_nanos(deadline));
        self.keys[id as usize] = Some(key);
    }

    fn cancel(&mut self, id: u32) {
        let _entered = self.runtime.enter();
        let key = self.keys[id as usize].take().expect("it was inserted");
        self.queue.remove(&key);
    }

    fn rearm(&mut self, id: u32, now: u64, deadline: u64) {
        self.insert(id, now, deadline);
    }

    fn next(&mut self) -> Option<u64> {
        None
    }

    fn poll(&mut self, _now: u64, _fired: &mut Vec<u32>) {}

    /// In one future, since entering the runtime for each poll would be charged to the queue.
    fn hold(&mut self, now: &mut u64, fires: usize, dice: &mut Dice, watch: &mut PollTimer) {
        let (queue, keys, zero) = (&mut self.queue, &mut self.keys, self.zero);
        self.runtime.block_on(async {
            for _ in 0..fires {
                let expired = poll_fn(|context| {
                    watch.begin();
                    let expired = queue.poll_expired(context);
                    watch.end();
                    expired
                });
                let id = expired.await.expect("timers are outstanding").into_inner();
                let key = queue.insert(id, Duration::from_nanos(dice.delay()));
                keys[id as usize] = Some(key);
            }
            *now = (tokio::time::Instant::now() - zero).as_nanos() as u64;
        });
    }
}

pub(crate) struct NexusWheel {
    wheel: nexus_timer::Wheel<u32>,
    handles: Vec<Option<nexus_timer::TimerHandle<u32>>>,
    zero: Instant,
    now: u64,
}

const NEXUS_SLAB: usize = 4_096;

impl NexusWheel {
    fn at(&self, ns: u64) -> Instant {
        self.zero + Duration::from_nanos(ns)
    }

    /// A handle has to be given back, also of a timer that has fired.
    fn give_back(&mut self, id: u32) {
        if let Some(handle) = self.handles[id as usize].take() {
            self.wheel.free(handle);
        }
    }
}

impl TimerBackend for NexusWheel {
    const NAME: &'static str = "nexus-timer";
    type Fired = u32;

    fn with_room(ids: usize) -> NexusWheel {
        let zero = Instant::now();
        let wheel = nexus_timer::Wheel::unbounded(NEXUS_SLAB, zero);
        NexusWheel { wheel, handles: (0..ids).map(|_| None).collect(), zero, now: 0 }
    }

    fn insert(&mut self, id: u32, _now: u64, deadline: u64) {
        self.give_back(id);
        self.handles[id as usize] = Some(self.wheel.schedule(self.at(deadline), id));
    }

    fn cancel(&mut self, id: u32) {
        let handle = self.handles[id as usize].take().expect("it was inserted");
        self.wheel.cancel(handle).expect("it has not fired");
    }

    /// Its next deadline may lie in the past; then the next tick is as good.
    fn rearm(&mut self, id: u32, now: u64, deadline: u64) {
        self.insert(id, now, deadline);
    }

    fn next(&mut self) -> Option<u64> {
        let next = self.wheel.next_deadline()?;
        let next = next.saturating_duration_since(self.zero).as_nanos() as u64;
        Some(if next > self.now { next } else { self.now + MILLISECOND })
    }

    fn poll(&mut self, now: u64, fired: &mut Vec<u32>) {
        self.now = now;
        self.wheel.poll_and_rebalance(self.at(now), fired);
    }
}

impl Drop for NexusWheel {
    fn drop(&mut self) {
        for id in 0..self.handles.len() as u32 {
            self.give_back(id);
        }
    }
}

pub(crate) struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u32>>,
    /// In ms.
    now: u64,
}

impl TimerBackend for HashWheel {
    const NAME: &'static str = "hierarchical_hash_wheel_timer";
    type Fired = u32;

    fn with_room(_ids: usize) -> HashWheel {
        HashWheel { wheel: QuadWheelWithOverflow::new(), now: 0 }
    }

    fn insert(&mut self, id: u32, _now: u64, deadline: u64) {
        let delay = deadline.div_ceil(MILLISECOND).saturating_sub(self.now).max(1);
        let entry = IdOnlyTimerEntry { id, delay: Duration::from_millis(delay) };
        self.wheel.insert(entry).expect("a delay of a tick or more");
    }

    fn cancel(&mut self, id: u32) {
        self.wheel.cancel(&id).expect("it was inserted");
    }

    fn rearm(&mut self, id: u32, now: u64, deadline: u64) {
        self.insert(id, now, deadline);
    }

    fn next(&mut self) -> Option<u64> {
        match self.wheel.can_skip() {
            Skip::Empty => None,
            Skip::None => Some((self.now + 1) * MILLISECOND),
            Skip::Millis(ms) => Some((self.now + u64::from(ms) + 1) * MILLISECOND),
        }
    }

    fn poll(&mut self, now: u64, fired: &mut Vec<u32>) {
        let until = now / MILLISECOND;
        while self.now < until {
            let left = until - self.now;
            let skipped = match self.wheel.can_skip() {
                Skip::Empty => left,
                Skip::None => 0,
                Skip::Millis(ms) => u64::from(ms).min(left),
            };
            if skipped > 0 {
                self.wheel.skip(skipped as u32);
                self.now += skipped;
            }
            if self.now < until {
                fired.extend(self.wheel.tick().iter().map(|entry| entry.id));
                self.now += 1;
            }
        }
    }
}
