//! Section 5.1: what arming costs behind timers that are pending.

use std::io;

use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, Curves, EdgeUnit, PaperFigure, PaperRow,
};
use hourglass_queue::reference::SortedList;
use hourglass_queue::{Handle, Heap, PriorityStructure, Queue, QueueError, RedBlackTree};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::posix_timer::{PosixTimer, realtime_signals};
use hourglass_sys::thread;
use hourglass_time::{Instant, Sim, Span};

use super::super::batches::Batches;
use super::super::bench::MeasurementHost;
use super::super::costs::PinnedThread;
use super::super::drawing::{curve, curves, edge};
use super::super::printed::{MeasuredTable, Table, Value, Values};
use super::super::rows::measured;

/// Timers of one batch, all armed behind those pending.
const BATCH: usize = 16;

const ROUNDS: u64 = 200;

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Structure {
        List => "sorted list",
        Kernel => "POSIX timers",
        RedBlack => "red-black tree",
        Heap => "heap",
    }
}

impl Structure {
    /// Numbers of pending timers. A list cannot be filled with more in seconds, and a user may not
    /// have many more signals queued.
    fn sizes(self) -> &'static [usize] {
        match self {
            Structure::List => &[0, 10, 100, 1_000, 10_000],
            Structure::Kernel => &[0, 10, 100, 1_000],
            Structure::RedBlack | Structure::Heap => &[0, 10, 1_000, 100_000, 1_000_000],
        }
    }

    fn filled(self, pending: usize) -> Result<Box<dyn PendingQueue>, String> {
        let said = |error: QueueError| error.to_string();
        Ok(match self {
            Structure::List => Box::new(FilledQueue::<SortedList>::with(pending).map_err(said)?),
            Structure::RedBlack => {
                Box::new(FilledQueue::<RedBlackTree>::with(pending).map_err(said)?)
            }
            Structure::Heap => Box::new(FilledQueue::<Heap>::with(pending).map_err(said)?),
            Structure::Kernel => Box::new(FilledKernel::with(pending).map_err(|error| {
                format!("{error}; ulimit -i tells how many signals may be queued")
            })?),
        })
    }
}

trait PendingQueue {
    fn arm(&mut self) -> io::Result<()>;

    fn cancel(&mut self) -> io::Result<()>;
}

struct FilledQueue<B: PriorityStructure> {
    queue: Queue<Sim, (), B>,
    batch: Vec<Handle>,
    last: Instant<Sim>,
}

impl<B: PriorityStructure> FilledQueue<B> {
    fn with(pending: usize) -> Result<FilledQueue<B>, QueueError> {
        let mut queue = Queue::with_capacity(pending + BATCH)?;
        let mut last = Instant::ZERO;
        for _ in 0..pending {
            last = last.saturating_add(Span::from_micros(1));
            let timer = queue.create(())?;
            queue.arm(timer, last, Span::ZERO)?;
        }
        let batch = (0..BATCH).map(|_| queue.create(())).collect::<Result<_, _>>()?;
        Ok(FilledQueue { queue, batch, last })
    }
}

impl<B: PriorityStructure> PendingQueue for FilledQueue<B> {
    fn arm(&mut self) -> io::Result<()> {
        for (after, timer) in (1..).zip(&self.batch) {
            let at = self.last.saturating_add(Span::from_micros(after));
            self.queue.arm(*timer, at, Span::ZERO).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn cancel(&mut self) -> io::Result<()> {
        let mut all = self.batch.iter();
        all.try_for_each(|timer| self.queue.cancel(*timer).map(|_| ())).map_err(io::Error::other)
    }
}

struct FilledKernel {
    _pending: Vec<PosixTimer>,
    batch: Vec<PosixTimer>,
    last_ns: u64,
}

/// An hour: none expires.
const AHEAD_NS: u64 = 3_600_000_000_000;

const SIGNAL: i32 = 4;

impl FilledKernel {
    fn with(pending: usize) -> io::Result<FilledKernel> {
        let timer = || PosixTimer::new(thread::id(), realtime_signals().0 + SIGNAL);
        let mut last_ns = now_ns(ClockId::Monotonic) + AHEAD_NS;
        let mut armed = Vec::with_capacity(pending);
        for _ in 0..pending {
            let timer = timer()?;
            last_ns += 1_000;
            timer.set_absolute(last_ns, 0)?;
            armed.push(timer);
        }
        let batch = (0..BATCH).map(|_| timer()).collect::<io::Result<_>>()?;
        Ok(FilledKernel { _pending: armed, batch, last_ns })
    }
}

impl PendingQueue for FilledKernel {
    fn arm(&mut self) -> io::Result<()> {
        let mut all = (1..).zip(&self.batch);
        all.try_for_each(|(after, timer)| timer.set_absolute(self.last_ns + after * 1_000, 0))
    }

    fn cancel(&mut self) -> io::Result<()> {
        self.batch.iter().try_for_each(PosixTimer::disarm)
    }
}

type PendingCost = (usize, Result<Batches, String>);

fn behind(
    structure: Structure,
    pending: usize,
    rounds: u64,
    stopped: fn() -> bool,
) -> Option<Result<Batches, String>> {
    let mut filled = match structure.filled(pending) {
        Ok(filled) => filled,
        Err(why) => return Some(Err(why)),
    };
    let mut batches = Batches::of(BATCH as u64);
    for _ in 0..rounds {
        if stopped() {
            return None;
        }
        let done = batches.time(|| filled.arm()).and_then(|()| filled.cancel());
        if let Err(error) = done {
            return Some(Err(error.to_string()));
        }
    }
    Some(Ok(batches))
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    measure_rounds(table, ROUNDS, bench.stopped)
}

pub(super) fn measure_rounds(
    table: &Table,
    rounds: u64,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let _pinned = PinnedThread::to_last_cpu();
    let mut all: Vec<(Structure, Vec<PendingCost>)> = Vec::new();
    for structure in Structure::ALL {
        let mut found = Vec::new();
        for &pending in structure.sizes() {
            found.push((pending, behind(structure, pending, rounds, stopped)?));
        }
        all.push((structure, found));
    }
    let paper = |column| table.lines.first().and_then(|line| line.printed(column));
    let (each_ns, arm_ns) = (paper(0), paper(1).unwrap_or_default());
    let rows = all.iter().flat_map(|(structure, found)| rows_of(*structure, found, each_ns));
    let mut values = Values::default()
        .with("rounds", rounds)
        .with("batch", BATCH)
        .with_some("paper each", each_ns.map(Value::Time));
    for (structure, name) in [(Structure::List, "list"), (Structure::Heap, "heap")] {
        let (_, found) = all.iter().find(|(of, _)| *of == structure)?;
        let costs = costs(found);
        let last = costs.last().copied();
        values = values
            .with_some(&format!("{name} each"), slope(&costs).map(Value::Time))
            .with_some(&format!("{name} pending"), last.map(|(pending, _)| pending))
            .with_some(&format!("{name} cost"), last.map(|(_, ns)| Value::Time(ns)));
    }
    let figure = PaperFigure::Curves(figure(table, &all, arm_ns, each_ns.unwrap_or_default()));
    Some(table.with_rows(rows.collect(), values).with_figure(figure))
}

/// ns of one arming, where it was measured.
fn costs(found: &[PendingCost]) -> Vec<(usize, f64)> {
    let cost =
        |(pending, batches): &PendingCost| Some((*pending, batches.as_ref().ok()?.median_ns()?));
    found.iter().filter_map(cost).collect()
}

pub(super) fn slope(costs: &[(usize, f64)]) -> Option<f64> {
    let (least, most) = (costs.first()?, costs.last()?);
    let each = (most.0 > least.0).then(|| (most.1 - least.1) / (most.0 - least.0) as f64)?;
    // To a picosecond; and nothing is nothing, from whichever side.
    Some((each * 1e3).round() / 1e3 + 0.0)
}

fn rows_of(structure: Structure, all: &[PendingCost], each_ns: Option<f64>) -> Vec<PaperRow> {
    let name = structure.name();
    let behind = all.iter().map(|(pending, batches)| {
        let found = batches.as_ref().map_err(Clone::clone).and_then(Batches::found);
        measured(format!("{name}: arm behind {pending}"), "ns", None, found)
    });
    let why = "arming behind timers could not be measured";
    let found = slope(&costs(all)).map(|ns| (ns, 1)).ok_or_else(|| why.to_owned());
    let each = measured(format!("{name}: for each pending"), "ns/timer", each_ns, found);
    behind.chain([each]).collect()
}

fn figure(
    table: &Table,
    all: &[(Structure, Vec<PendingCost>)],
    arm_ns: f64,
    each_ns: f64,
) -> Curves {
    let mut drawn: Vec<Curve> = Vec::new();
    for (colour, (structure, found)) in (0..).zip(all) {
        // Nothing pending has no place on a logarithmic edge.
        let points = costs(found).into_iter().filter(|(pending, _)| *pending > 0);
        let points = points.map(|(pending, ns)| (pending as f64, ns));
        drawn.push(curve(structure.name(), CurveOrigin::Here, colour, points));
    }
    let there = [10.0, 100.0, 1_000.0, 10_000.0].map(|n| (n, arm_ns + each_ns * n));
    drawn.push(curve("33 us and 600 ns each", CurveOrigin::Paper, 0, there));
    let edges = [
        ("timers pending before it", EdgeUnit::Number),
        ("cost of arming a timer", EdgeUnit::Time),
    ]
    .map(|(text, unit)| edge(text, unit, AxisScale::Logarithmic));
    curves((&table.id, &table.title), edges, drawn, "Medians.")
}
