//! Classes of deferred actions: each has a thread and a queue of its own.
//!
//! Owns: which action of a class is next, and the priority of its thread.
//! Must not: let the engine wait for a worker, or one class for another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use hourglass_sys::sched::{self, Attributes};

use super::action::Expiration;
use super::remote::Ring;
use super::run::{finish, run};
use super::statistics::ClassCounters;
use super::table::{TimerTable, of_kind};
use crate::engine::Cause;

/// Settings of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSettings {
    /// The policy of its thread while nothing more urgent is queued. `None`: as the thread that
    /// makes the class; but the reservation of a deadline thread is not handed on, it makes
    /// `SCHED_OTHER`.
    pub attributes: Option<Attributes>,
    /// Expiries that may wait; rounded up to a power of two, [`super::MOST_ROOM`] at most. A timer takes one place at most, so that
    /// as many as there are timers is always enough.
    pub capacity: usize,
    /// Whether the thread is raised to the priority of the thread that armed, while such an action
    /// waits or runs.
    pub raise: bool,
}

impl Default for ClassSettings {
    fn default() -> ClassSettings {
        ClassSettings { attributes: None, capacity: 1024, raise: true }
    }
}

/// What a class did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStatistics {
    /// Actions that ran.
    pub ran: u64,
    /// The longest action, ns: it held up the others of this class, and no other class.
    pub longest_ns: u64,
    /// Expiries that found no room: their action did not run. Also in the
    /// [`Statistics`](super::ServiceStatistics) of the engine.
    pub without_room: u64,
    /// Times that the thread was raised, by an expiry or for the next action.
    pub raised: u64,
    /// Times that it should have been and the operating system refused: the actions ran with the
    /// priority that the thread has. Raise the limit (`ulimit -r 99`) or grant `CAP_SYS_NICE`.
    pub raise_refused: u64,
}

/// A class of deferred actions, made by [`TimerService::class`](super::TimerService::class). A long
/// action delays the others of its class only.
///
/// Order: the highest priority first, which is that of the thread that armed the timer (or what
/// [`TimerSpec::priority`](super::TimerSpec::priority) says); first in, first out among equals.
#[derive(Clone)]
pub struct ActionClass(pub(super) Arc<ClassShared>);

pub(super) struct ClassShared {
    pub(super) name: String,
    pub(super) settings: ClassSettings,
    pub(super) number: u32,
    /// Timer and engine, and priority.
    ring: Ring<2>,
    /// The real-time priority that the worker has, or that was asked for it.
    level: AtomicU32,
    /// The priority was changed from outside: what the worker believes of it may be wrong.
    touched: AtomicBool,
    /// What waits has become more urgent than it was when it was queued.
    reorder: AtomicBool,
    pub(super) tid: AtomicU32,
    pub(super) thread: OnceLock<Thread>,
    pub(super) stop: AtomicBool,
    refuses: AtomicBool,
    counters: ClassCounters,
}

fn level_of(attributes: Option<Attributes>) -> u32 {
    match attributes {
        Some(Attributes::Fifo(priority) | Attributes::RoundRobin(priority)) => priority.into(),
        // No priority raises a deadline thread.
        Some(Attributes::Deadline { .. }) => u32::MAX,
        _ => 0,
    }
}

impl ActionClass {
    pub(super) fn new(name: &str, settings: ClassSettings, number: u32) -> ActionClass {
        ActionClass(Arc::new(ClassShared {
            name: name.to_owned(),
            settings,
            number,
            ring: Ring::new(settings.capacity),
            level: AtomicU32::new(level_of(settings.attributes)),
            touched: AtomicBool::new(false),
            reorder: AtomicBool::new(false),
            tid: AtomicU32::new(0),
            thread: OnceLock::new(),
            stop: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            counters: ClassCounters::default(),
        }))
    }

    /// What the queue of a class with that room takes, bytes.
    pub(super) fn bytes(room: usize) -> u128 {
        Ring::<2>::bytes(room)
    }

    /// Name of the class and of its thread.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Counts since the class was made.
    #[must_use]
    pub fn statistics(&self) -> ClassStatistics {
        self.0.counters.read()
    }
}

impl fmt::Debug for ActionClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Class").field(&self.0.name).finish()
    }
}

impl ClassShared {
    /// An expiry for the worker; false if there is no room. Raises the worker at once if it is more
    /// urgent than what that has: an action that runs now is done the sooner.
    pub(super) fn push(&self, engine: u32, index: u32, priority: u32) -> bool {
        let job = u64::from(engine) << 32 | u64::from(index);
        if !self.ring.push([job, priority.into()]) {
            self.counters.without_room.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.raise_worker(priority);
        if let Some(worker) = self.thread.get() {
            worker.unpark();
        }
        true
    }

    /// An expiry that waits has got this priority, which is more than it had; its timer knows. It needs
    /// no place, and the worker, which has it, no waking.
    pub(super) fn raise(&self, priority: u32) {
        self.reorder.store(true, Ordering::Release);
        self.raise_worker(priority);
    }

    fn raise_worker(&self, priority: u32) {
        if self.settings.raise && self.level.fetch_max(priority, Ordering::AcqRel) < priority {
            self.set_priority(priority);
            // After it as well as before: the worker may have lowered itself in between.
            self.touched.store(true, Ordering::Release);
        }
    }

    fn set_priority(&self, level: u32) {
        let Some(tid) = Some(self.tid.load(Ordering::Acquire)).filter(|tid| *tid != 0) else {
            return;
        };
        let base = level_of(self.settings.attributes);
        let wanted = match u8::try_from(level.min(99)) {
            Ok(priority) if level > base => Attributes::Fifo(priority),
            _ => self.settings.attributes.unwrap_or(Attributes::Other(0)),
        };
        let counter = match level > base {
            true if self.refuses.load(Ordering::Relaxed) => &self.counters.raise_refused,
            _ => match sched::set_of(tid, wanted) {
                Ok(()) if level > base => &self.counters.raised,
                Ok(()) => return,
                Err(_) => {
                    self.refuses.store(true, Ordering::Relaxed);
                    &self.counters.raise_refused
                }
            },
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// An expiry that waits: most urgent first, then first come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedExpiry {
    priority: u32,
    number: Reverse<u64>,
    job: u64,
}

pub(super) struct Worker {
    class: Arc<ClassShared>,
    tables: Arc<[Arc<TimerTable>]>,
    jobs: BinaryHeap<QueuedExpiry>,
    numbers: u64,
    /// The priority that it gave itself last.
    level: u32,
}

impl Worker {
    pub(super) fn new(class: &ActionClass, tables: &Arc<[Arc<TimerTable>]>) -> Worker {
        Worker {
            class: Arc::clone(&class.0),
            tables: Arc::clone(tables),
            // What is queued again while the ring is full takes one place more.
            jobs: BinaryHeap::with_capacity(class.0.ring.room() + 1),
            numbers: 0,
            level: level_of(class.0.settings.attributes),
        }
    }

    pub(super) fn work(&mut self) {
        while !self.class.stop.load(Ordering::Acquire) {
            if !self.step() {
                std::thread::park();
            }
        }
        // Nothing of it runs any more, but places are given back.
        while self.step() {}
    }

    /// Runs the most urgent action; false if none waits.
    pub(super) fn step(&mut self) -> bool {
        let base = level_of(self.class.settings.attributes);
        loop {
            self.collect();
            let next = self.jobs.peek();
            if self.take_level(next.map_or(base, |next| next.priority.max(base))) {
                break;
            }
            // Raised for what came since it looked: that is next, and not to wait at a lower level.
        }
        let Some(next) = self.jobs.pop() else {
            return !self.class.ring.is_empty();
        };
        if self.run(next.job) {
            // It expired again meanwhile: behind those that waited.
            let priority = self.entry_priority(next.job).unwrap_or(next.priority);
            self.add(next.job, priority);
        }
        true
    }

    /// Takes what was queued, and has it in order.
    fn collect(&mut self) {
        // Before it looks at any priority: a thread that raises one after that reports it again.
        let reorder = self.class.reorder.swap(false, Ordering::AcqRel);
        while self.jobs.len() < self.class.ring.room()
            && let Some([job, priority]) = self.class.ring.pop()
        {
            let own = self.entry_priority(job).unwrap_or(0);
            self.add(job, own.max(priority as u32));
        }
        if reorder {
            // In its own memory.
            let mut jobs = std::mem::take(&mut self.jobs).into_vec();
            for job in &mut jobs {
                job.priority = self.entry_priority(job.job).unwrap_or(0).max(job.priority);
            }
            self.jobs = jobs.into();
        }
    }

    fn add(&mut self, job: u64, priority: u32) {
        self.numbers += 1;
        self.jobs.push(QueuedExpiry { priority, number: Reverse(self.numbers), job });
    }

    /// Takes the priority of the next action from now on; false if the priority was raised further
    /// since it looked, which is known once for each time.
    fn take_level(&mut self, level: u32) -> bool {
        if !self.class.settings.raise {
            return true;
        }
        let touched = self.class.touched.swap(false, Ordering::AcqRel);
        let was = self.class.level.swap(level, Ordering::AcqRel);
        let is_raised = was > level && was != self.level;
        if touched || level != self.level || was != self.level {
            self.level = level;
            self.class.set_priority(level);
        }
        !is_raised
    }

    fn entry_priority(&self, job: u64) -> Option<u32> {
        let entry = self.tables.get((job >> 32) as usize)?.entry(job as u32)?;
        Some(entry.published.kind.load(Ordering::Relaxed) >> 1)
    }

    /// Runs an action; whether it is to be queued again.
    fn run(&self, job: u64) -> bool {
        let index = job as u32;
        let Some(table) = self.tables.get((job >> 32) as usize) else { return false };
        let Some(entry) = table.entry(index) else { return false };
        let published = &entry.published;
        // Before it begins, while the engine leaves them alone.
        let kind = published.kind.load(Ordering::Relaxed);
        let expiration = Expiration {
            base: of_kind(entry.kind.load(Ordering::Relaxed) as usize).0,
            expiry_ns: published.expiry_ns.load(Ordering::Relaxed),
            now_ns: published.now_ns.load(Ordering::Relaxed),
            overruns: published.overruns.swap(0, Ordering::Relaxed),
            cause: if kind & 1 == 1 { Cause::ClockSet } else { Cause::Expiry },
        };
        match entry.slot.begin() {
            Err(ended) => finish(table, index, entry, ended),
            Ok(()) => run(table, index, entry, &expiration, |took_ns| {
                self.class.counters.ran.fetch_add(1, Ordering::Relaxed);
                self.class.counters.longest_ns.fetch_max(took_ns, Ordering::Relaxed);
            }),
        }
    }
}
