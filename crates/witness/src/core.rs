//! A thread's witness: the critical section, the counts since it began, and when they are asked.
//!
//! All witnesses of a thread share one. It lives as long as its thread.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use hourglass_sys::perf::{PerfUnavailable, SwitchTimes};
use hourglass_sys::rseq::{ClearRule, RseqUnusable, Section};
use hourglass_sys::thread::{self, Counters};
use hourglass_trace::cause::Quota;

use crate::last_seen::LastSeen;
use crate::machine::{HostFacts, Ticks};
use crate::marks::Marks;
use crate::sample::{CounterSample, Files, OTHER_QUOTAS_NS, Totals};
use crate::{CounterReadReason, SpanError, WitnessError};

/// A generation counts disturbances in its low bits; the thread's number is above them. A process that makes
/// more threads than fit, 2^24, begins again: then two of them may not tell their spans apart.
const GENERATION_BITS: u32 = 40;
/// No thread comes to it: the end of such a span is always looked at.
const LOOKED_AT: u64 = (1 << GENERATION_BITS) - 1;
/// How often the counters are asked anew because the thread lost its CPU meanwhile.
const TRIES: u32 = 4;

/// What a span remembers of its begin. Code of other languages reads it word by word.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Sums {
    generation: u64,
    totals: Totals,
}

/// How a span begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// 0 of a span that is unknown.
    pub(crate) generation: u64,
    pub(crate) begun: u64,
    pub(crate) marks: Marks,
}

/// What the ends of a span look at.
#[derive(Debug)]
enum Looks {
    /// The section, and the processor's counter: no call.
    Inline(Section),
    /// The section; the operating system is asked for the time.
    Section(Section),
    Nothing,
}

/// What is kept for a thread.
#[derive(Debug)]
pub(crate) struct Core {
    looks: Looks,
    sums: Cell<Sums>,
    last: Cell<CounterSample>,
    /// Set while the counts are brought up to date: a signal handler must not do so in between.
    settling: Cell<bool>,
    files: RefCell<Files>,
    thread: Cell<u32>,
    /// Who was on this CPU before the last sample.
    neighbour: Cell<LastSeen>,
    pub(crate) asks: Option<CounterReadReason>,
    pub(crate) counter: Ticks,
}

thread_local! {
    static OWN: OnceCell<Rc<Core>> = const { OnceCell::new() };
}

/// A number for a thread, above its generations; never 0.
fn fresh_generation() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    let number = THREADS.fetch_add(1, Ordering::Relaxed) << GENERATION_BITS;
    if number == 0 { fresh_generation() } else { number }
}

/// Whether two generations are of one thread.
fn same_thread(one: u64, other: u64) -> bool {
    one >> GENERATION_BITS == other >> GENERATION_BITS
}

impl Core {
    pub(crate) fn current() -> Result<Rc<Core>, WitnessError> {
        let own = OWN.try_with(|own| {
            Rc::clone(own.get_or_init(|| Rc::new(Core::new(Core::open_section(HostFacts::here())))))
        });
        own.map_err(|_| WitnessError::ThreadEnds)
    }

    /// One of its own that has no section.
    pub(crate) fn asking() -> Core {
        Core::new(Err(CounterReadReason::Wanted))
    }

    fn open_section(machine: &HostFacts) -> Result<Section, CounterReadReason> {
        match &machine.tested {
            Ok(ClearRule::EverySwitch) => {
                Section::open_for_spans().map_err(CounterReadReason::NoSection)
            }
            Ok(ClearRule::WhereInterrupted) => {
                Err(CounterReadReason::NoSection(RseqUnusable::KeptInSystemCalls))
            }
            Err(reason) => Err(CounterReadReason::NoSection(reason.clone())),
        }
    }

    fn new(section: Result<Section, CounterReadReason>) -> Core {
        let counter = HostFacts::here().counter;
        let (looks, asks) = match section {
            Ok(section) if counter == Ticks::processor() => (Looks::Inline(section), None),
            Ok(section) => (Looks::Section(section), None),
            Err(asks) => (Looks::Nothing, Some(asks)),
        };
        let core = Core {
            looks,
            sums: Cell::new(Sums { generation: fresh_generation(), totals: Totals::default() }),
            last: Cell::default(),
            settling: Cell::new(false),
            files: RefCell::new(Files::open()),
            thread: Cell::new(thread::id()),
            neighbour: Cell::default(),
            asks,
            counter,
        };
        core.start();
        core
    }

    /// Begins to count, from nothing.
    fn start(&self) {
        self.arm();
        let (_, sample) = self.sample(thread::counters());
        // Since boot, so that the host is asked.
        self.last.set(self.with_stolen(sample, &CounterSample::default()));
        self.sums.set(Sums { totals: Totals::default(), ..self.sums.get() });
    }

    /// Whether nothing happened since the counts were brought up to date.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.section().is_some_and(Section::is_kept)
    }

    #[inline(always)]
    fn section(&self) -> Option<&Section> {
        match &self.looks {
            Looks::Inline(section) | Looks::Section(section) => Some(section),
            Looks::Nothing => None,
        }
    }

    /// A span that begins now, its totals, and whether both are right. They are not where something happened, or a call
    /// is needed for them.
    #[inline(always)]
    pub(crate) fn quiet_begin(&self) -> (Start, Totals, bool) {
        let generation = self.generation();
        let before = self.totals();
        let Looks::Inline(section) = &self.looks else {
            return (Start { generation, begun: 0, marks: Marks::on(0) }, before, false);
        };
        // A signal handler may have put the name back; then the generation is another one.
        let right = section.is_kept() && generation == self.generation();
        let marks = Marks::on(section.cpu());
        (Start { generation, begun: Ticks::processor().read(), marks }, before, right)
    }

    /// Whether nothing happened in a span that ends now, and the counter. `None` where a call is needed for it.
    #[inline(always)]
    pub(crate) fn quiet_end(&self, generation: u64) -> Option<(bool, u64)> {
        let Looks::Inline(section) = &self.looks else { return None };
        let ended = Ticks::processor().read();
        Some((section.is_kept() && self.generation() == generation, ended))
    }

    /// Like [`Core::quiet_end`], by a system call where one is needed.
    #[inline(never)]
    pub(crate) fn asked_end(&self, generation: u64) -> (bool, u64) {
        let ended = self.counter.read();
        (self.is_quiet() && self.generation() == generation, ended)
    }

    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.sums.get().generation
    }

    /// Field by field, so that they stay in registers; after what stands before, and before what stands after.
    #[inline(always)]
    pub(crate) fn totals(&self) -> Totals {
        compiler_fence(Ordering::SeqCst);
        let totals = self.sums.get().totals.plus(Totals::default());
        compiler_fence(Ordering::SeqCst);
        totals
    }

    /// The generation of a span of this thread that has already lost something.
    pub(crate) fn looked_at(&self) -> u64 {
        self.generation() | LOOKED_AT
    }

    /// The CPU that the thread is on.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> u32 {
        match self.section() {
            Some(section) => section.cpu(),
            None => hourglass_sys::clock::current_cpu(),
        }
    }

    /// Whether a section was there to be cleared.
    pub(crate) fn has_section(&self) -> bool {
        self.section().is_some()
    }

    /// That a span of this generation began in this thread and process.
    pub(crate) fn check(&self, generation: u64) -> Result<(), SpanError> {
        match same_thread(generation, self.generation()) {
            true => Ok(()),
            false => Err(SpanError::OtherThread),
        }
    }

    /// Brings the counts up to date, and has the sums up to now: those that are kept may include what came while
    /// the kernel was asked. Where the thread turns out to be a forked child's, it begins anew.
    ///
    /// # Errors
    /// [`SpanError::Forked`], once; [`SpanError::Interrupted`] in a signal handler that came upon this.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle(&self) -> Result<Totals, SpanError> {
        if self.settling.replace(true) {
            return Err(SpanError::Interrupted);
        }
        compiler_fence(Ordering::SeqCst);
        let result = self.settle_alone();
        compiler_fence(Ordering::SeqCst);
        self.settling.set(false);
        result
    }

    fn settle_alone(&self) -> Result<Totals, SpanError> {
        self.arm();
        // First of all: what comes later is not the span's.
        let (now, last) = (thread::counters(), self.last.get());
        if self.thread.get() != thread::id() {
            self.begin_anew();
            return Err(SpanError::Forked);
        }
        if now.switches() == last.counters.switches() {
            // A signal, an interrupt, another owner of the section; or there is no section to look at.
            return Ok(self.totals());
        }
        let (first, sample) = self.sample(now);
        let sample = self.with_stolen(sample, &last);
        let below = HostFacts::here().hypervisor;
        let (more, Sums { generation, totals }) = (sample.since(&last, below), self.sums.get());
        let till_now = match first {
            None => more,
            Some(first) => first.with_stolen_of(&sample).since(&last, below),
        };
        self.last.set(sample);
        self.neighbour.set(LastSeen::leave(self.cpu(), self.thread.get(), sample.before_ns));
        self.sums.set(Sums { generation: generation + 1, totals: totals.plus(more) });
        Ok(totals.plus(till_now))
    }

    /// The thread is a forked child's.
    fn begin_anew(&self) {
        self.thread.set(thread::id());
        if let Ok(mut files) = self.files.try_borrow_mut() {
            let times = files.times.take().and_then(|_| SwitchTimes::open().ok());
            *files = Files::open();
            files.times = times;
        }
        self.sums.set(Sums { generation: fresh_generation(), ..self.sums.get() });
        self.start();
    }

    /// The thread's quota, and whether it is of the groups whose counts the sums have; where others are found, theirs
    /// are taken from now on. Enters the kernel for each group.
    pub(crate) fn quota(&self) -> (Option<Quota>, bool) {
        // A signal handler must not bring the counts up to date in between.
        if self.settling.replace(true) {
            return (None, false);
        }
        compiler_fence(Ordering::SeqCst);
        let found = self.follow_quotas();
        compiler_fence(Ordering::SeqCst);
        self.settling.set(false);
        found.unwrap_or((None, false))
    }

    fn follow_quotas(&self) -> Option<(Option<Quota>, bool)> {
        let mut files = self.files.try_borrow_mut().ok()?;
        let others = files.quotas.follow();
        if others {
            let mut last = self.last.get();
            last.throttled_ns = files.quotas.throttled_ns();
            self.last.set(last);
            let Sums { generation, mut totals } = self.sums.get();
            totals.throttled_ns = totals.throttled_ns.wrapping_add(OTHER_QUOTAS_NS);
            self.sums.set(Sums { generation: generation + 1, totals });
        }
        // How often it stops the group is asked of each span.
        let of = |period_ns| Quota { period_ns, throttled: 1, throttled_ns: None };
        Some((files.quotas.period_ns().map(of), !others))
    }

    /// Switches are recorded with their times from now on.
    pub(crate) fn record_switches(&self) -> Result<(), PerfUnavailable> {
        /// In a signal handler that came upon a reading of the files.
        const EAGAIN: i32 = 11;
        let mut files = self.files.try_borrow_mut().map_err(|_| PerfUnavailable::Other(EAGAIN))?;
        if files.times.is_none() {
            files.times = Some(SwitchTimes::open()?);
        }
        Ok(())
    }

    fn arm(&self) {
        if let Some(section) = self.section() {
            section.arm();
        }
    }

    /// Asks the kernel for the rest that belongs to `counters`, and all anew until the thread keeps its CPU meanwhile.
    /// The first answer, if it did not keep it then; and the last.
    fn sample(&self, mut counters: Counters) -> (Option<CounterSample>, CounterSample) {
        let files = self.files.try_borrow();
        let files = files.as_deref().ok();
        let mut torn = None;
        let mut turn = 1;
        loop {
            let sample = CounterSample::take(counters, files);
            if self.is_quiet() || thread::counters().switches() == counters.switches() {
                return (torn, sample);
            }
            let without_waits = sample.torn();
            torn = torn.or(Some(without_waits));
            if turn == TRIES {
                return (torn, without_waits);
            }
            turn += 1;
            self.arm();
            counters = thread::counters();
        }
    }

    fn with_stolen(&self, sample: CounterSample, last: &CounterSample) -> CounterSample {
        let files = self.files.try_borrow();
        sample.with_stolen(last, self.cpu(), files.as_deref().ok())
    }

    /// Converts ticks to ns, rounded up.
    pub(crate) fn length_ns(&self, ticks: u64) -> u64 {
        HostFacts::here().length_ns(ticks)
    }

    /// Another thread of this process that was seen on this CPU within the last `length_ns` before the last sample.
    pub(crate) fn last_thread_on_cpu(&self, length_ns: u64) -> Option<u32> {
        let now_ns = self.last.get().before_ns;
        self.neighbour.get().other(self.thread.get(), now_ns.saturating_sub(length_ns), now_ns)
    }

    /// What code of another language looks at: where the section is named, its name, and the sums. `None` where
    /// it cannot: there is no section, or spans are not timed by the processor's counter.
    pub(crate) fn view(&self) -> Option<(*const u64, u64, *const u64)> {
        let (named, name) = self.section()?.place();
        let sums = self.sums.as_ptr().cast_const().cast();
        (self.counter != Ticks::Os).then_some((named, name, sums))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_of_threads_are_apart() {
        let (one, other) = (fresh_generation(), fresh_generation());
        assert!(!same_thread(one, other) && same_thread(one, one + 1));
        assert!(same_thread(one, one | LOOKED_AT));
        assert!(!same_thread(one, 0) && !same_thread(other, 0));
    }
}
