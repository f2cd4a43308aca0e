//! Section 5.1: what arming costs behind timers that are pending: "the cost increases linearly by a
//! factor of 600ns per timer. [...] These numbers could be improved using tree-based or timing wheel
//! algorithms".

use std::io;

use hourglass_model::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit, MeasurementKind,
    PaperFigure, PaperRow, PaperTable,
};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::posix_timer::{PosixTimer, realtime_signals};
use hourglass_sys::thread;
use hourglass_time::{Instant, Sim, Span};
use hourglass_timer::queue::reference::SortedList;
use hourglass_timer::queue::{Handle, Heap, PriorityStructure, Queue, QueueError, RedBlackTree};

use super::super::batches::Batches;
use super::super::bench::MeasurementHost;
use super::super::costs::PinnedThread;
use super::super::printed::MeasuredTable;
use super::super::rows::{beside, found, lacking};
use super::super::sentences::{sentence, time, times};
use super::MACHINE;

pub(super) const ID: &str = "5.1";
pub(super) const TITLE: &str = "Cost of arming behind pending timers";

/// The paper's nanoseconds for each pending timer, and those of arming with none.
pub(super) const EACH_NS: f64 = 600.0;
const ARM_NS: f64 = 33_000.0;

/// The unit of the first.
const EACH: &str = "ns/timer";

/// Timers of one batch, all armed behind those pending.
const BATCH: usize = 16;

/// Batches of each.
const ROUNDS: u64 = 200;

/// What the timers wait in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Structure {
    List,
    /// This kernel's, by POSIX timers.
    Kernel,
    /// The library's queue on its red-black tree.
    RedBlack,
    /// The library's queue on its heap.
    Heap,
}

impl Structure {
    pub(super) const ALL: [Structure; 4] =
        [Structure::List, Structure::Kernel, Structure::RedBlack, Structure::Heap];

    fn name(self) -> &'static str {
        match self {
            Structure::List => "sorted list",
            Structure::Kernel => "POSIX timers",
            Structure::RedBlack => "red-black tree",
            Structure::Heap => "heap",
        }
    }

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

/// Timers that are pending, and a batch that goes behind them.
trait PendingQueue {
    /// Arms the batch behind all that are pending.
    fn arm(&mut self) -> io::Result<()>;

    /// Cancels the batch.
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

/// A signal that is never sent.
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

/// The number of pending timers, and the cost of arming behind them or why it could not be measured.
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

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    measure_rounds(ROUNDS, bench.stopped)
}

pub(super) fn measure_rounds(rounds: u64, stopped: fn() -> bool) -> Option<MeasuredTable> {
    let _pinned = PinnedThread::to_last_cpu();
    let mut all: Vec<(Structure, Vec<PendingCost>)> = Vec::new();
    for structure in Structure::ALL {
        let mut found = Vec::new();
        for &pending in structure.sizes() {
            found.push((pending, behind(structure, pending, rounds, stopped)?));
        }
        all.push((structure, found));
    }
    let table = PaperTable {
        id: ID.into(),
        title: TITLE.into(),
        paper_machine: MACHINE.into(),
        method: format!(
            "{rounds} batches of {BATCH} timers, each armed behind all that are pending, and \
             cancelled again; medians of the batches; under SCHED_OTHER, no load of our own; the \
             cost of each pending timer is that behind the most, less that behind none, divided by \
             their number"
        ),
        rows: all.iter().flat_map(|(structure, found)| rows_of(*structure, found)).collect(),
        decisions: Vec::new(),
        difference: explain(&all),
        notes: vec![
            "The list is the slow twin that the library's queues are tested against: a vector, in \
             order, walked from its head. It ends where filling it takes seconds."
                .into(),
            "The paper's 600 ns are walked on top of the 33 us of Table 1.".into(),
        ],
        figure: None,
    };
    Some(MeasuredTable { table, figure: Some(PaperFigure::Curves(curves(&all))) })
}

/// ns of one arming, where it was measured.
fn costs(found: &[PendingCost]) -> Vec<(usize, f64)> {
    let cost =
        |(pending, batches): &PendingCost| Some((*pending, batches.as_ref().ok()?.median_ns()?));
    found.iter().filter_map(cost).collect()
}

/// The cost of each pending timer.
pub(super) fn slope(costs: &[(usize, f64)]) -> Option<f64> {
    let (least, most) = (costs.first()?, costs.last()?);
    let each = (most.0 > least.0).then(|| (most.1 - least.1) / (most.0 - least.0) as f64)?;
    // To a picosecond; and nothing is nothing, from whichever side.
    Some((each * 1e3).round() / 1e3 + 0.0)
}

fn rows_of(structure: Structure, all: &[PendingCost]) -> Vec<PaperRow> {
    let mut rows: Vec<PaperRow> = all
        .iter()
        .map(|(pending, batches)| {
            let name = format!("{}: arm behind {pending}", structure.name());
            let measured = batches.as_ref().map(|batches| (batches.median_ns(), batches));
            match measured {
                Ok((Some(ns), of)) => {
                    found(name, ns, "ns", MeasurementKind::Measured, of.operations())
                }
                Ok((None, _)) => {
                    lacking(name, "ns", MeasurementKind::Measured, "there was no batch")
                }
                Err(why) => lacking(name, "ns", MeasurementKind::Measured, why),
            }
        })
        .collect();
    let name = format!("{}: for each pending", structure.name());
    let each = match slope(&costs(all)) {
        Some(ns) => found(name, ns, EACH, MeasurementKind::Measured, 1),
        None => lacking(
            name,
            EACH,
            MeasurementKind::Measured,
            "arming behind timers could not be measured",
        ),
    };
    rows.push(beside(Some(EACH_NS), each));
    rows
}

fn explain(all: &[(Structure, Vec<PendingCost>)]) -> String {
    let of = |wanted: Structure| {
        let (_, found) = all.iter().find(|(structure, _)| *structure == wanted)?;
        let costs = costs(found);
        Some((slope(&costs)?, *costs.last()?))
    };
    let (Some(list), Some(heap)) = (of(Structure::List), of(Structure::Heap)) else {
        return "Nothing could be compared.".into();
    };
    sentence(&format!(
        "the list takes {} for each pending timer, {} the paper's; behind {} timers it takes {}, the \
         heap behind {} {}: the algorithms that the paper says could improve its numbers do",
        time(list.0),
        times(list.0, EACH_NS),
        list.1.0,
        time(list.1.1),
        heap.1.0,
        time(heap.1.1),
    ))
}

fn curves(all: &[(Structure, Vec<PendingCost>)]) -> Curves {
    // Nothing pending has no place on a logarithmic edge.
    let place = |(pending, ns): (usize, f64)| CurvePoint { across: pending as f64, up: ns };
    let mut curves: Vec<Curve> = all
        .iter()
        .enumerate()
        .map(|(at, (structure, found))| Curve {
            name: structure.name().into(),
            origin: CurveOrigin::Here,
            colour: at as u32,
            joined: true,
            points: costs(found).into_iter().filter(|(n, _)| *n > 0).map(place).collect(),
        })
        .collect();
    let there = [10, 100, 1_000, 10_000].map(|n| place((n, ARM_NS + EACH_NS * n as f64)));
    curves.push(Curve {
        name: "33 us and 600 ns each".into(),
        origin: CurveOrigin::Paper,
        colour: 0,
        joined: true,
        points: there.into(),
    });
    let edge = |text: &str, unit| Edge { text: text.into(), unit, scale: AxisScale::Logarithmic };
    Curves {
        id: ID.into(),
        title: TITLE.into(),
        across: edge("timers pending before it", EdgeUnit::Number),
        up: edge("cost of arming a timer", EdgeUnit::Time),
        curves,
        note: "Medians.".into(),
    }
}
