//! Whether the scheduler took a thread away within a span of a program, for how long, and why.
//!
//! ```
//! # fn handle() {}
//! use hourglass_witness::Witness;
//!
//! let witness = Witness::new()?; // once a thread
//! let span = witness.begin();
//! handle();
//! if let Some(loss) = witness.end(span) {
//!     println!("{} off the CPU, {:?}: {}", loss.off_cpu, loss.switches, loss.cause);
//! }
//! # Ok::<(), hourglass_witness::WitnessError>(())
//! ```
//!
//! Owns: spans, what they lost, when the kernel is asked. Must not: wait, start a thread, keep a name or a list
//! of spans; allocate, lock or print after the start; enter the kernel while nothing happened.
//!
//! # How a span is witnessed
//!
//! A critical section of the thread is named to the kernel (`sys::rseq`), which no code is ever inside. When the
//! kernel takes the CPU from the thread it clears the name. As long as the name is there the counters of the
//! thread are what they were when they were asked last, so neither the begin nor the end of a span asks them: a
//! span remembers those sums (`core.rs`). An end that finds the name gone asks once (`sample.rs`): context
//! switches, the time received and waited for, quotas. The differences are the span's, and those of all spans
//! around it. Where no switch was counted it was a signal or an interrupt, and the span lost nothing. A forced loss of
//! 100 us or more asks which quotas are the thread's now, too (`quotas.rs`): of a span in which these were others than
//! before, a part of the stops may be counted nowhere, and neither the quota nor another thread is a certain cause.
//!
//! Time off the CPU is an interval. At most: what the thread did not receive since it was last asked, for then
//! it had its CPU up to the span's begin. At least: what it waited for a CPU, by the kernel's count; of its own
//! waits, what it did not receive, less what kernels may leave out of a thread's time. Each switch widens it by 50 us
//! on either side; in a virtual machine by 300 us, and by another millisecond upwards where the thread itself waited,
//! for there it is the host that brings interrupts and takes time. The cause comes from the judge of run folders
//! (`trace::cause::judge_span`), with what a single span can show.
//!
//! From Linux 6.19 on a switch inside a system call keeps the name (`sys::rseq::Clearing`), and a span may make
//! some. There, and where no section can be had, each begin and end reads the counters: slower, not less right
//! ([`Witness::counter_read_reason`]). Another user of the section in the thread (tcmalloc, a measured loop) puts its
//! own name there. An end that finds a foreign name reads the counters too.
//!
//! [`sites`] adds spans up by call site, and keeps the worst.
//!
//! # What goes wrong, and what is said then
//!
//! A [`OpenSpan`] cannot be ended twice, nor in another thread: it is not `Send`. A task that moves takes its
//! span along with [`Witness::detach`] and [`Witness::attach`]; [`follow`] does so for a future. In a child made
//! by `fork` the thread's witness begins anew, and spans from before it are unknown: [`Witness::try_end`] says
//! so with a [`SpanError`], and [`Witness::end`] with a loss whose confidence is 0 ([`Loss::is_unknown`]).

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]
#![cfg(target_os = "linux")]

mod attributes;
mod benchmark;
mod core;
mod follow;
mod last_seen;
mod loss;
mod machine;
mod marks;
mod quotas;
mod raw;
mod sample;
pub mod sites;
mod stolen;

use std::marker::PhantomData;
use std::rc::Rc;

pub use hourglass_sys::perf::PerfUnavailable;
use hourglass_sys::rseq::RseqUnusable;
use thiserror::Error;

pub use attributes::AttributeValue;
pub use benchmark::{BenchmarkSample, Figures, Samples, Summary};
pub use follow::follow;
pub use hourglass_documents::Cause;
pub use hourglass_time::{Bounded, Span};
pub use hourglass_trace::cause::{Indication, IndicationSet};
pub use loss::{Loss, Switches};
#[doc(hidden)]
pub use marks::UndisturbedSpan;
#[doc(hidden)]
pub use raw::RawSpan;

use crate::core::{Core, Start};
use crate::loss::SpanEnd;
use crate::marks::Marks;
use crate::sample::Totals;

/// Why a thread has no witness.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WitnessError {
    /// The thread is about to end: what belongs to it has been dropped.
    #[error("this thread is about to end: make its witness before")]
    ThreadEnds,
    /// [`Witness::without_asking`]: undisturbed spans would ask the kernel.
    #[error("spans cannot be witnessed without asking the kernel each time: {0}")]
    MustAsk(CounterReadReason),
}

/// Why each begin and end asks the kernel for counters, which takes some hundred nanoseconds.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CounterReadReason {
    /// No critical section of the thread tells of every switch.
    #[error("{0}")]
    NoSection(RseqUnusable),
    /// [`Witness::asking`].
    #[error("it was requested")]
    Wanted,
}

/// Why a span is unknown.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SpanError {
    /// It began in another thread, and was neither detached nor attached; or it is no span.
    #[error("the span began in another thread: detach it there and attach it here")]
    OtherThread,
    /// The process was forked within it, and this is the child.
    #[error("the process was forked within the span, and this is the child")]
    Forked,
    /// It was ended by a signal handler that interrupted the end of another one, or begun by such a one.
    #[error(
        "the span was begun or ended by a signal handler within the begin or end of another one"
    )]
    Interrupted,
}

/// A thread's witness. All witnesses of a thread are one; they are as cheap as a counted pointer.
#[derive(Clone, Debug)]
pub struct Witness {
    core: Rc<Core>,
}

/// A span that goes on, in the thread in which it began.
#[must_use = "a span is ended by `Witness::end`"]
#[derive(Debug)]
pub struct OpenSpan {
    /// 0 for a span that is unknown.
    generation: u64,
    before: Totals,
    start: u64,
    marks: Marks,
    _of_this_thread: PhantomData<*const ()>,
}

/// A span between two threads, or while its task waits. That time is not the span's.
#[must_use = "a span is ended by `Witness::attach` and `Witness::end`"]
#[derive(Clone, Copy, Debug, Default)]
pub struct DetachedSpan {
    lost: Totals,
    ticks: u64,
    marks: Marks,
}

impl Witness {
    /// The witness of the calling thread. The first of a process tests the kernel for some milliseconds; the first of a
    /// thread allocates and opens a file or two, which stay open until the thread ends.
    ///
    /// # Errors
    /// [`WitnessError::ThreadEnds`]. Without restartable sequences the witness reads counters, which is no error: see
    /// [`Witness::counter_read_reason`].
    pub fn new() -> Result<Witness, WitnessError> {
        Ok(Witness { core: Core::current()? })
    }

    /// Like [`Witness::new`], but fails where an undisturbed span would cost a system call.
    ///
    /// # Errors
    /// [`WitnessError::MustAsk`] with the reason; as [`Witness::new`].
    pub fn without_asking() -> Result<Witness, WitnessError> {
        let witness = Witness::new()?;
        match witness.counter_read_reason() {
            None => Ok(witness),
            Some(asks) => Err(WitnessError::MustAsk(asks.clone())),
        }
    }

    /// A witness without a critical section: each begin and end reads the kernel's counters. It belongs to the calling
    /// thread, but cannot end spans that another witness of the thread began. For a program that replaces the critical
    /// section by its own and restores it. Opens files at each call.
    #[must_use]
    pub fn asking() -> Witness {
        Witness { core: Rc::new(Core::asking()) }
    }

    /// Why each begin and end reads the kernel's counters; `None` where only disturbed spans do.
    #[must_use]
    pub fn counter_read_reason(&self) -> Option<&CounterReadReason> {
        self.core.asks.as_ref()
    }

    /// Makes the kernel record the switches of the calling thread with their times, for all of its witnesses, until the
    /// thread ends. Bounds of losses are then 60 us apart for each switch, where each switch was recorded (512 fit
    /// between two samples). Takes 20 KB of locked memory, and about a microsecond for a switch. Needs no root.
    ///
    /// # Errors
    /// Why the kernel refuses; bounds are by its counts then.
    pub fn record_switches(&self) -> Result<(), PerfUnavailable> {
        self.core.record_switches()
    }

    /// A span begins. It may make system calls and wait: a wait of its own is a loss like any other, of the
    /// cause [`Cause::ContextSwitchVoluntary`]. A stop by a signal looks the same.
    #[inline]
    pub fn begin(&self) -> OpenSpan {
        let (mut start, mut before, mut right) = self.core.quiet_begin();
        while !right {
            start = self.asked_begin();
            before = self.core.totals();
            // A signal handler may have come in between.
            right = start.marks.is_unknown() || start.generation == self.core.generation();
        }
        let Start { generation, begun, marks } = start;
        OpenSpan { generation, before, start: begun, marks, _of_this_thread: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn asked_begin(&self) -> Start {
        let unknown = if self.core.is_quiet() { None } else { self.settle() };
        let generation = if unknown.is_none() { self.core.generation() } else { 0 };
        let marks = Marks::on(self.core.cpu()).with_unknown(unknown);
        Start { generation, begun: self.core.counter.read(), marks }
    }

    /// A span begins that does not wait: it only computes. A counted wait is then a stop, or a page
    /// that had to be read ([`Cause::Stopped`], [`Cause::PageFault`]).
    #[inline]
    pub fn begin_busy(&self) -> OpenSpan {
        let mut span = self.begin();
        span.marks = span.marks.with_busy(true);
        span
    }

    /// Ends a span. `None`: the thread kept its CPU. The loss of an unknown span ([`Witness::try_end`]) has no cause
    /// and no confidence, and is bounded only by the span's length ([`Loss::is_unknown`]).
    #[inline]
    pub fn end(&self, span: OpenSpan) -> Option<Loss> {
        let (quiet, ended) = self.quiet_end(&span);
        if quiet { None } else { self.loss(&span, ended) }
    }

    /// Like [`Witness::end`], with the counter at the end.
    #[inline]
    pub(crate) fn end_at(&self, span: OpenSpan) -> (Option<Loss>, u64) {
        let (quiet, ended) = self.quiet_end(&span);
        (if quiet { None } else { self.loss(&span, ended) }, ended)
    }

    /// Like [`Witness::end`], but an unknown span is an error.
    ///
    /// # Errors
    /// See [`SpanError`].
    #[inline]
    pub fn try_end(&self, span: OpenSpan) -> Result<Option<Loss>, SpanError> {
        let (quiet, ended) = self.quiet_end(&span);
        if quiet { Ok(None) } else { self.lost(&span, ended) }
    }

    /// Whether nothing happened since the span began, and the counter.
    #[inline(always)]
    fn quiet_end(&self, span: &OpenSpan) -> (bool, u64) {
        let found = self.core.quiet_end(span.generation);
        found.unwrap_or_else(|| self.core.asked_end(span.generation))
    }

    /// Takes a span off this thread: its task waits, or goes on in another one. What it lost so far goes along.
    #[inline]
    pub fn detach(&self, span: OpenSpan) -> DetachedSpan {
        let (quiet, undisturbed) = self.detach_quiet(&span);
        let mut travelling = DetachedSpan::from(undisturbed);
        if !quiet {
            self.detach_lost(&span, &mut travelling);
        }
        travelling
    }

    /// Like [`Witness::detach`], but an undisturbed span takes two words.
    ///
    /// # Errors
    /// The detached span, if it was disturbed.
    #[doc(hidden)]
    #[inline]
    pub fn detach_undisturbed(&self, span: &OpenSpan) -> Result<UndisturbedSpan, DetachedSpan> {
        let (quiet, undisturbed) = self.detach_quiet(span);
        if quiet {
            return Ok(undisturbed);
        }
        let mut travelling = DetachedSpan::from(undisturbed);
        self.detach_lost(span, &mut travelling);
        Err(travelling)
    }

    #[inline(always)]
    fn detach_quiet(&self, span: &OpenSpan) -> (bool, UndisturbedSpan) {
        let (quiet, ended) = self.quiet_end(span);
        let ticks = ended.saturating_sub(span.start);
        (quiet, UndisturbedSpan { ticks, marks: span.marks })
    }

    #[cold]
    #[inline(never)]
    fn detach_lost(&self, span: &OpenSpan, travelling: &mut DetachedSpan) {
        match self.lost_since(span) {
            Ok(lost) => travelling.lost = lost,
            Err(error) => travelling.marks = travelling.marks.with_unknown(Some(error)),
        }
    }

    /// A span goes on in this thread.
    #[inline]
    pub fn attach(&self, travelling: DetachedSpan) -> OpenSpan {
        let DetachedSpan { lost, ticks, marks } = travelling;
        let mut span = self.attach_undisturbed(UndisturbedSpan { ticks, marks });
        if lost != Totals::default() {
            span.before = span.before.minus(lost);
            if !span.marks.is_unknown() {
                span.generation = self.core.looked_at();
            }
        }
        span
    }

    /// One that lost nothing so far.
    #[inline(always)]
    pub(crate) fn attach_undisturbed(&self, travelling: UndisturbedSpan) -> OpenSpan {
        let mut span = self.begin();
        span.start = span.start.saturating_sub(travelling.ticks);
        span.marks = travelling.marks.and(span.marks);
        if span.marks.is_unknown() {
            span.generation = 0;
        }
        span
    }

    /// For code of another language that looks at the section itself: where its name stands, what it is
    /// while nothing happened, and a span's generation and sums, in the order of [`RawSpan`]. All hold until the
    /// thread ends. `None` where such code cannot begin or end a span by itself.
    #[doc(hidden)]
    #[must_use]
    pub fn view(&self) -> Option<(*const u64, u64, *const u64)> {
        self.core.view()
    }

    /// The span that such code kept; the end of one of another thread says so.
    #[doc(hidden)]
    pub fn of_raw(&self, raw: RawSpan) -> OpenSpan {
        raw.open()
    }

    /// Brings the counts up to date; why a span that begins now is unknown.
    fn settle(&self) -> Option<SpanError> {
        /// What comes in between again and again is left to the span.
        const TRIES: u32 = 4;
        for _ in 0..TRIES {
            match self.core.settle() {
                // A forked child has just begun anew.
                Ok(_) | Err(SpanError::Forked) => {}
                Err(error) => return Some(error),
            }
            if self.core.is_quiet() || !self.core.has_section() {
                break;
            }
        }
        None
    }

    /// What a span lost that ended then; an unknown span has an unknown loss.
    #[cold]
    #[inline(never)]
    fn loss(&self, span: &OpenSpan, ended: u64) -> Option<Loss> {
        self.lost(span, ended).unwrap_or_else(|_| {
            Some(Loss::unknown(self.core.length_ns(ended.saturating_sub(span.start))))
        })
    }

    #[cold]
    #[inline(never)]
    fn lost(&self, span: &OpenSpan, ended: u64) -> Result<Option<Loss>, SpanError> {
        let lost = self.lost_since(span)?;
        let ticks = ended.saturating_sub(span.start);
        let (cpus, busy) = ((span.marks.cpu(), self.core.cpu()), span.marks.is_busy());
        Ok(Loss::from_span(&self.core, &SpanEnd { lost, ticks, cpus, busy }))
    }

    #[cold]
    #[inline(never)]
    fn lost_since(&self, span: &OpenSpan) -> Result<Totals, SpanError> {
        if let Some(error) = span.marks.unknown() {
            return Err(error);
        }
        let totals = if self.core.is_quiet() { self.core.totals() } else { self.core.settle()? };
        self.core.check(span.generation)?;
        Ok(totals.minus(span.before))
    }
}

impl DetachedSpan {
    /// A span that has not begun: it does so where it is attached first.
    pub fn new() -> DetachedSpan {
        DetachedSpan::default()
    }

    /// A span that has not begun and does not wait: see [`Witness::begin_busy`].
    pub fn busy() -> DetachedSpan {
        DetachedSpan { marks: Marks::default().with_busy(true), ..DetachedSpan::default() }
    }

    /// Both together, where a task ran in two threads, or in pieces that were detached each by itself: lengths
    /// and losses are added.
    pub fn and(self, other: DetachedSpan) -> DetachedSpan {
        DetachedSpan {
            lost: self.lost.plus(other.lost),
            ticks: self.ticks.saturating_add(other.ticks),
            marks: self.marks.and(other.marks),
        }
    }

    /// Why what it lost is unknown; `None` where it is known.
    #[must_use]
    pub fn unknown(&self) -> Option<SpanError> {
        self.marks.unknown()
    }
}

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
