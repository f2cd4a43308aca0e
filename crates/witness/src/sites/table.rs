//! What one thread counted: made once, of a fixed size, written by that thread and read by any.
//!
//! A signal handler that ends a span while its thread counts another one finds the table in use: its span is
//! counted as left out, by an addition that nothing can come between.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering, compiler_fence};

use hourglass_documents::Cause;

use crate::Loss;
use crate::sites::SiteSettings;
use crate::sites::entries::{DisturbedSpan, Entries, code, narrow};
use crate::sites::histogram::{LENGTHS, LOSSES, add, zeros};

/// Causes that a site has.
const CAUSES: usize = Cause::ALL.len();
/// Words of a span that is kept: begin, end, site and thread and CPUs, lost at least and at most, counts and cause.
const KEPT: usize = 6;

/// The sums of a site.
#[derive(Debug, Default)]
pub(crate) struct SiteTotals {
    pub(crate) disturbed: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) longest: AtomicU64,
    pub(crate) causes: [CauseSums; CAUSES],
}

/// The sums of a cause at a site.
#[derive(Debug, Default)]
pub(crate) struct CauseSums {
    pub(crate) count: AtomicU64,
    pub(crate) least_ns: AtomicU64,
    pub(crate) most_ns: AtomicU64,
    pub(crate) greatest_ns: AtomicU64,
    /// Number of the cause's histogram, from 1; 0 without a histogram.
    histogram: AtomicU16,
}

/// A span that is kept one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanRecord {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) site: u16,
    pub(crate) thread: u16,
    pub(crate) cpus: (u16, u16),
    pub(crate) lost: Option<LossRecord>,
}

/// What a kept span lost. Counts of 65,535 stand for more, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossRecord {
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) voluntary: u16,
    pub(crate) involuntary: u16,
    pub(crate) faults: u16,
    pub(crate) cause: Cause,
    pub(crate) unknown: bool,
}

/// A span that has just ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedSpan {
    pub(crate) site: u16,
    pub(crate) start: u64,
    pub(crate) ended: u64,
    pub(crate) cpu: u32,
}

#[derive(Debug)]
pub(crate) struct ThreadTable {
    /// While a span is being counted.
    pub(crate) recording: AtomicBool,
    /// Whether a thread has it.
    pub(crate) taken: AtomicBool,
    /// Which, of all that were here.
    pub(crate) thread: AtomicU16,
    lengths: Box<[AtomicU64]>,
    pub(crate) rows: Box<[SiteTotals]>,
    losses: Box<[AtomicU64]>,
    histograms_taken: AtomicU16,
    pub(crate) greatest: Entries,
    pub(crate) worst: Entries,
    spans: Box<[AtomicU64]>,
    spans_kept: AtomicU64,
    /// Spans that found `spans` full.
    pub(crate) spans_dropped: AtomicU64,
    /// Losses that found no histogram left.
    pub(crate) without_histogram: AtomicU64,
    /// Spans that a signal handler ended while another was being counted.
    pub(crate) left_out: AtomicU64,
}

impl ThreadTable {
    /// One for some sites, all of its memory in place.
    pub(crate) fn new(settings: &SiteSettings, thread: u16) -> ThreadTable {
        let sites = settings.rows();
        ThreadTable {
            recording: AtomicBool::new(false),
            taken: AtomicBool::new(true),
            thread: AtomicU16::new(thread),
            lengths: zeros(sites * LENGTHS.steps()),
            rows: (0..sites).map(|_| SiteTotals::default()).collect(),
            losses: zeros(settings.histograms() * LOSSES.steps()),
            histograms_taken: AtomicU16::new(0),
            greatest: Entries::new(sites),
            worst: Entries::new(usize::from(settings.worst_spans)),
            spans: zeros(settings.spans as usize * KEPT),
            spans_kept: AtomicU64::new(0),
            spans_dropped: AtomicU64::new(0),
            without_histogram: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Bytes that one takes.
    pub(crate) fn bytes(settings: &SiteSettings) -> usize {
        let sites = settings.rows();
        let words = sites * LENGTHS.steps()
            + settings.histograms() * LOSSES.steps()
            + settings.spans as usize * KEPT;
        words * size_of::<u64>()
            + sites * size_of::<SiteTotals>()
            + (sites + usize::from(settings.worst_spans)) * Entries::BYTES
            + size_of::<ThreadTable>()
    }

    /// Counts a span. By the thread that has the table, or a signal handler in it.
    #[inline]
    pub(crate) fn record(&self, span: &EndedSpan, loss: Option<&Loss>) {
        if self.recording.load(Ordering::Relaxed) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.recording.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.record_alone(span, loss);
        compiler_fence(Ordering::SeqCst);
        self.recording.store(false, Ordering::Relaxed);
    }

    #[inline]
    fn record_alone(&self, span: &EndedSpan, loss: Option<&Loss>) {
        let ticks = span.ended.saturating_sub(span.start);
        let site = usize::from(span.site);
        let Some(row) = self.rows.get(site) else { return };
        if let Some(count) = self.lengths.get(site * LENGTHS.steps() + LENGTHS.step(ticks)) {
            add(count, 1);
        }
        if ticks > row.longest.load(Ordering::Relaxed) {
            row.longest.store(ticks, Ordering::Relaxed);
        }
        if let Some(loss) = loss {
            self.lose(row, span, loss);
        }
        if !self.spans.is_empty() {
            self.keep(span, loss);
        }
    }

    #[cold]
    fn lose(&self, row: &SiteTotals, span: &EndedSpan, loss: &Loss) {
        if loss.is_unknown() {
            add(&row.unknown, 1);
            return;
        }
        add(&row.disturbed, 1);
        let place = (span.site, self.thread.load(Ordering::Relaxed));
        let entry = DisturbedSpan::of(loss, place, (span.start, span.ended), span.cpu);
        let sums = &row.causes[code(loss.cause)];
        add(&sums.count, 1);
        add(&sums.least_ns, entry.least_ns);
        add(&sums.most_ns, entry.most_ns);
        if entry.lost_ns() > sums.greatest_ns.load(Ordering::Relaxed) {
            sums.greatest_ns.store(entry.lost_ns(), Ordering::Relaxed);
        }
        match self.histogram_for(sums).and_then(|found| found.get(LOSSES.step(entry.lost_ns()))) {
            Some(count) => add(count, 1),
            None => add(&self.without_histogram, 1),
        }
        self.greatest.keep_at(usize::from(span.site), &entry);
        self.worst.keep_worst(&entry);
    }

    /// The histogram of a cause at a site; the first loss takes one as long as some are left.
    fn histogram_for(&self, sums: &CauseSums) -> Option<&[AtomicU64]> {
        if sums.histogram.load(Ordering::Relaxed) == 0 {
            let next = self.histograms_taken.load(Ordering::Relaxed);
            if usize::from(next) * LOSSES.steps() < self.losses.len() {
                self.histograms_taken.store(next + 1, Ordering::Relaxed);
                sums.histogram.store(next + 1, Ordering::Release);
            }
        }
        self.histogram(sums)
    }

    /// The histogram of a cause at a site, where there is one.
    pub(crate) fn histogram(&self, sums: &CauseSums) -> Option<&[AtomicU64]> {
        let at = usize::from(sums.histogram.load(Ordering::Acquire).checked_sub(1)?);
        self.losses.chunks_exact(LOSSES.steps()).nth(at)
    }

    /// The histogram of a site's span lengths, in ticks.
    pub(crate) fn lengths(&self, site: usize) -> Option<&[AtomicU64]> {
        self.lengths.chunks_exact(LENGTHS.steps()).nth(site)
    }

    #[inline]
    fn keep(&self, span: &EndedSpan, loss: Option<&Loss>) {
        let at = self.spans_kept.load(Ordering::Relaxed);
        let from = at as usize * KEPT;
        let Some(words) = self.spans.get(from..from + KEPT) else {
            add(&self.spans_dropped, 1);
            return;
        };
        let migrated = loss.and_then(|loss| loss.migrated);
        let (before, after) = migrated.unwrap_or((span.cpu, span.cpu));
        let thread = u64::from(self.thread.load(Ordering::Relaxed)) << 16;
        let cpus = u64::from(narrow(before)) << 32 | u64::from(narrow(after)) << 48;
        words[0].store(span.start, Ordering::Relaxed);
        words[1].store(span.ended, Ordering::Relaxed);
        words[2].store(u64::from(span.site) | thread | cpus, Ordering::Relaxed);
        if let Some(loss) = loss {
            words[3].store(loss.off_cpu.earliest().nanos_or_zero(), Ordering::Relaxed);
            words[4].store(loss.off_cpu.latest().nanos_or_zero(), Ordering::Relaxed);
            words[5].store(counts(loss), Ordering::Relaxed);
        }
        self.spans_kept.store(at + 1, Ordering::Release);
    }

    /// The spans that are kept, in the order of their ends.
    pub(crate) fn spans(&self) -> impl Iterator<Item = SpanRecord> + '_ {
        let count = self.spans_kept.load(Ordering::Acquire) as usize;
        self.spans.chunks_exact(KEPT).take(count).map(|words| {
            let word = |at: usize| words[at].load(Ordering::Relaxed);
            let part = |at: u32| (word(2) >> (16 * at)) as u16;
            SpanRecord {
                start: word(0),
                end: word(1),
                site: part(0),
                thread: part(1),
                cpus: (part(2), part(3)),
                lost: LossRecord::of((word(3), word(4)), word(5)),
            }
        })
    }
}

/// Behind the counts: the cause, and that there is one.
const CAUSE_AT: u32 = 48;
const IS_LOSS: u64 = 1 << 62;
const IS_UNKNOWN: u64 = 1 << 63;

fn counts(loss: &Loss) -> u64 {
    let narrow = |count: u64| count.min(u64::from(u16::MAX));
    let [voluntary, involuntary] = [loss.switches.voluntary, loss.switches.involuntary].map(narrow);
    let unknown = if loss.is_unknown() { IS_UNKNOWN } else { 0 };
    voluntary
        | involuntary << 16
        | narrow(loss.faults) << 32
        | (code(loss.cause) as u64) << CAUSE_AT
        | IS_LOSS
        | unknown
}

impl LossRecord {
    fn of((least_ns, most_ns): (u64, u64), counts: u64) -> Option<LossRecord> {
        (counts & IS_LOSS != 0).then(|| LossRecord {
            min_ns: least_ns,
            max_ns: most_ns,
            voluntary: counts as u16,
            involuntary: (counts >> 16) as u16,
            faults: (counts >> 32) as u16,
            cause: { Cause::ALL.get((counts >> CAUSE_AT) as usize & 0xff) }
                .copied()
                .unwrap_or(Cause::Unknown),
            unknown: counts & IS_UNKNOWN != 0,
        })
    }
}
