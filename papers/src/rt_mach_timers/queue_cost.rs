//! Section 5.4: what the queue costs at an interrupt.

use std::hint::black_box;

use hourglass_documents::paper::MeasurementKind;
use hourglass_queue::reference::SortedList;
use hourglass_queue::{Heap, PriorityStructure, Queue, QueueError, RedBlackTree};
use hourglass_time::{Instant, Sim, Span};

use super::super::batches::Batches;
use super::super::bench::MeasurementHost;
use super::super::costs::PinnedThread;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::row;

const BATCH: i64 = 256;

const QUICK: u64 = 300;
const FULL: u64 = 3_000;

const FEW: i64 = 10;
const QUICK_MANY: i64 = 10_000;
const FULL_MANY: i64 = 1_000_000;

struct Periodic<B: PriorityStructure> {
    queue: Queue<Sim, (), B>,
    now: Instant<Sim>,
    period: Span,
}

const APART: Span = Span::from_micros(10);

const TICK: Span = Span::from_nanos(1);

impl<B: PriorityStructure> Periodic<B> {
    fn with(timers: i64) -> Result<Periodic<B>, QueueError> {
        let mut queue = Queue::with_capacity(usize::try_from(timers).unwrap_or(usize::MAX))?;
        let mut at = Instant::ZERO;
        for _ in 0..timers {
            at = at.saturating_add(APART);
            let timer = queue.create(())?;
            queue.arm(timer, at, Span::ZERO)?;
        }
        Ok(Periodic { queue, now: Instant::ZERO, period: at.saturating_since(Instant::ZERO) })
    }
}

trait Interrupts {
    /// A batch of interrupts at which nothing is due.
    fn idle(&mut self);

    /// A batch of interrupts at which one timer is due, and is armed again from its expiry.
    fn due(&mut self);
}

impl<B: PriorityStructure> Interrupts for Periodic<B> {
    fn idle(&mut self) {
        for _ in 0..BATCH {
            self.now = self.now.saturating_add(TICK);
            black_box(self.queue.pop_expired(self.now));
        }
        // The next batch begins where this one did: it takes less than to the next expiry.
        self.now = self.now.saturating_sub(Span::from_nanos(BATCH));
    }

    fn due(&mut self) {
        let period = self.period;
        for _ in 0..BATCH {
            self.now = self.now.saturating_add(APART);
            self.queue.expire(self.now, 1, |queue, expired| {
                let next = expired.expiry.saturating_add(period);
                // It lives, and has no slack.
                let _ = queue.arm(expired.handle, next, Span::ZERO);
            });
        }
    }
}

struct Subject {
    name: String,
    queue: Result<Box<dyn Interrupts>, QueueError>,
    idle: Batches,
    due: Batches,
}

fn subject<B: PriorityStructure + 'static>(name: &str, timers: i64) -> Subject {
    Subject {
        name: format!("{name} of {timers}"),
        queue: Periodic::<B>::with(timers).map(|queue| Box::new(queue) as Box<dyn Interrupts>),
        idle: Batches::of(BATCH.unsigned_abs()),
        due: Batches::of(BATCH.unsigned_abs()),
    }
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let (rounds, many) = bench.at_most((FULL, FULL_MANY), (QUICK, QUICK_MANY));
    measure_rounds(table, rounds, many, bench.stopped)
}

pub(super) fn measure_rounds(
    table: &Table,
    rounds: u64,
    many: i64,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let _pinned = PinnedThread::to_last_cpu();
    let mut subjects = vec![
        subject::<SortedList>("sorted list", FEW),
        subject::<RedBlackTree>("red-black tree", FEW),
        subject::<Heap>("heap", FEW),
        subject::<RedBlackTree>("red-black tree", many),
        subject::<Heap>("heap", many),
    ];
    for _ in 0..rounds {
        if stopped() {
            return None;
        }
        for Subject { queue, idle, due, .. } in &mut subjects {
            if let Ok(queue) = queue {
                idle.time(|| queue.idle());
                due.time(|| queue.due());
            }
        }
    }
    let paper = table.printed("each", 0);
    let mut rows = Vec::new();
    for subject in &subjects {
        for (what, batches) in [("nothing due", &subject.idle), ("one due", &subject.due)] {
            let (how, found) = match &subject.queue {
                Ok(_) => (MeasurementKind::Measured, batches.found()),
                Err(why) => (MeasurementKind::Simulated, Err(why.to_string())),
            };
            rows.push(row(format!("{}: {what}", subject.name), "us", paper, how, found));
        }
    }
    let heap_ns = subjects.get(2).and_then(|heap| heap.due.median_ns());
    let share = |tick_ns: f64| heap_ns.map(|ns| format!("{:.5}", ns / tick_ns * 100.0));
    // The paper's resolutions: the scheduling clock's, and the 1 ms that it names in section 2.2.
    let values = Values::default()
        .with("rounds", rounds)
        .with("batch", BATCH.unsigned_abs())
        .with_some("share of 10 ms", share(1e7))
        .with_some("share of 1 ms", share(1e6));
    Some(table.with_rows(rows, values))
}
