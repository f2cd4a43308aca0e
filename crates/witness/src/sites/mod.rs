//! What the scheduler took from spans, added up by call site, and the worst of them with their evidence.
//!
//! ```
//! # fn handle() {}
//! use hourglass_witness::sites::{SiteSettings, Sites};
//!
//! let sites = Sites::new(SiteSettings::default()); // once a process
//! let request = sites.site("request");         // once for each place in the program
//! let thread = sites.current_thread()?;        // once a thread
//! for _ in 0..100 {
//!     let span = thread.begin(request);
//!     handle();
//!     thread.end(span);
//! }
//! for site in sites.report() {
//!     println!("{}: {} of {} spans disturbed", site.name, site.disturbed, site.spans);
//! }
//! # Ok::<(), hourglass_witness::WitnessError>(())
//! ```
//!
//! Owns: tables of counts, one for each thread, which are added up when they are read. Must not: start a thread,
//! wait, write a file; allocate, lock or enter the kernel when a span ends that nothing disturbed. A disturbed one
//! writes into its thread's table besides.
//!
//! # Memory
//!
//! A table has a fixed size ([`SiteSettings::bytes_per_thread`]): for each site a histogram of lengths (5.3 KB), two of
//! lost time (1.9 KB each) and sums (0.6 KB), and 48 bytes for each span that is stored one by one; some 330 KB with
//! [`SiteSettings::default`]. A thread that ends leaves its table and its counts to the next thread that begins, so
//! that the number of tables is the greatest number of threads at one time. [`DroppedCounts`] counts what found no room.

mod aggregate;
mod entries;
mod histogram;
mod report;
mod table;

use std::cell::RefCell;
use std::io;
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hourglass_sys::{futex, thread};
use hourglass_time::Span;

pub use histogram::Distribution;
pub use report::{
    CauseLost, DroppedCounts, OTHER_SITES, SiteReport, SpanLoss, SpanLost, StoredSpan,
};

use crate::machine::HostFacts;
use crate::sites::aggregate::{report_of, spans_of};
use crate::sites::entries::DisturbedSpan;
use crate::sites::table::{EndedSpan, ThreadTable};
use crate::{DetachedSpan, Loss, OpenSpan, Witness, WitnessError};

/// Sizes of the tables, and what is recorded in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteSettings {
    /// Call sites, at most [`SiteSettings::MOST_SITES`]; spans of further ones are counted together.
    pub sites: u16,
    /// Number of the worst spans that are stored for each thread, with their evidence.
    pub worst_spans: u16,
    /// Number of spans that are stored one by one for each thread, from its first; 0 stores none.
    pub spans: u32,
    /// A span that lost at least this time requests a dump of the worst ([`Sites::take_asked`]).
    pub ask_from: Option<Span>,
    /// Whether the kernel is to record switches with their times, where it does: [`Witness::record_switches`].
    pub switch_times: bool,
}

impl Default for SiteSettings {
    fn default() -> SiteSettings {
        SiteSettings::DEFAULT
    }
}

impl SiteSettings {
    /// 32 sites and 32 worst spans; no span is stored one by one.
    pub const DEFAULT: SiteSettings =
        SiteSettings { sites: 32, worst_spans: 32, spans: 0, ask_from: None, switch_times: false };
    /// Maximum of [`SiteSettings::sites`].
    pub const MOST_SITES: u16 = 4_096;
    /// Histograms of lost time for each site: few sites lose time by more causes.
    const HISTOGRAMS: usize = 2;

    /// Memory of one thread's table, bytes.
    #[must_use]
    pub fn bytes_per_thread(&self) -> usize {
        ThreadTable::bytes(self)
    }

    /// Sites, and one for all others.
    fn rows(&self) -> usize {
        usize::from(self.sites.min(SiteSettings::MOST_SITES)) + 1
    }

    fn histograms(&self) -> usize {
        self.rows() * SiteSettings::HISTOGRAMS
    }
}

/// A call site, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site(u16);

/// Call sites of a program, and what was counted at them. Clones are the same.
#[derive(Clone, Debug)]
pub struct Sites {
    shared: Arc<SitesShared>,
}

#[derive(Debug)]
struct SitesShared {
    settings: SiteSettings,
    number: u64,
    names: Mutex<Names>,
    tables: Mutex<Vec<Arc<ThreadTable>>>,
    /// For ever there: a signal handler sets it.
    asked: &'static AtomicU32,
}

/// Names of sites and of threads.
#[derive(Clone, Debug, Default)]
struct Names {
    /// Name and place.
    sites: Vec<(String, String)>,
    threads: Vec<(u32, String)>,
}

/// Call sites in one thread. As cheap to clone as a counted pointer.
#[derive(Clone, Debug)]
pub struct ThreadSites {
    witness: Witness,
    held: Rc<BoundTable>,
}

/// A table while a thread has it.
#[derive(Debug)]
struct BoundTable {
    table: Arc<ThreadTable>,
    number: u64,
    ask_from_ns: u64,
    asked: &'static AtomicU32,
}

/// A span of a call site that goes on, in the thread in which it began.
#[must_use = "a span is ended by `ThreadSites::end`"]
#[derive(Debug)]
pub struct SiteSpan {
    site: Site,
    open: OpenSpan,
}

/// A span of a call site while its task waits: see [`DetachedSpan`].
#[must_use = "a span is ended by `ThreadSites::attach` and `ThreadSites::end`"]
#[derive(Clone, Copy, Debug)]
pub struct DetachedSiteSpan {
    site: Site,
    travelling: DetachedSpan,
}

thread_local! {
    /// The tables that the thread has, and whose they are.
    static OWN: RefCell<Vec<(Weak<SitesShared>, Rc<BoundTable>)>> = const { RefCell::new(Vec::new()) };
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Names {
    fn site(&self, number: u16) -> (String, String) {
        let other = || (OTHER_SITES.to_owned(), String::new());
        self.sites.get(usize::from(number)).cloned().unwrap_or_else(other)
    }

    fn thread(&self, number: u16) -> (u32, String) {
        self.threads.get(usize::from(number)).cloned().unwrap_or_default()
    }

    /// The calling thread, newly written down. Threads beyond the last number are one.
    fn push_thread(&mut self) -> u16 {
        let number = u16::try_from(self.threads.len()).unwrap_or(u16::MAX);
        if self.threads.len() < usize::from(u16::MAX) {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            self.threads.push((thread::id(), name));
        }
        number
    }
}

impl Sites {
    /// None yet. The four bytes of its flag stay for as long as the process.
    #[must_use]
    pub fn new(settings: SiteSettings) -> Sites {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let shared = SitesShared {
            settings,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            names: Mutex::default(),
            tables: Mutex::default(),
            asked: Box::leak(Box::new(AtomicU32::new(0))),
        };
        Sites { shared: Arc::new(shared) }
    }

    /// The call site of this name; a new one is remembered with the place of this call. To be asked for at the start:
    /// it locks and may allocate.
    #[track_caller]
    #[must_use]
    pub fn site(&self, name: &str) -> Site {
        let place = Location::caller();
        self.site_at(name, &format!("{}:{}", place.file(), place.line()))
    }

    /// Like [`Sites::site`], with a place that the caller names, as bindings of other languages do.
    #[must_use]
    pub fn site_at(&self, name: &str, place: &str) -> Site {
        let mut names = locked(&self.shared.names);
        let known = names.sites.iter().position(|(known, _)| known == name);
        let number = known.unwrap_or_else(|| {
            let next = names.sites.len();
            if next + 1 < self.shared.settings.rows() {
                names.sites.push((name.to_owned(), place.to_owned()));
            }
            next
        });
        Site(u16::try_from(number).unwrap_or(u16::MAX))
    }

    /// The sites in the calling thread. The first call of a thread allocates its table, and makes its witness.
    ///
    /// # Errors
    /// [`WitnessError::ThreadEnds`].
    pub fn current_thread(&self) -> Result<ThreadSites, WitnessError> {
        let witness = Witness::new()?;
        let held = OWN.try_with(|own| {
            let mut own = own.borrow_mut();
            let found = own.iter().find(|(_, held)| held.number == self.shared.number);
            if let Some((_, held)) = found {
                return Rc::clone(held);
            }
            // Drops tables whose `Sites` no longer exist.
            own.retain(|(shared, _)| shared.strong_count() > 0);
            if self.shared.settings.switch_times {
                // Where the kernel refuses, bounds are by its counts, and the evidence has no recorded switch.
                let _ = witness.record_switches();
            }
            let held = Rc::new(self.held());
            own.push((Arc::downgrade(&self.shared), Rc::clone(&held)));
            held
        });
        let held = held.map_err(|_| WitnessError::ThreadEnds)?;
        Ok(ThreadSites { witness, held })
    }

    /// A table for the calling thread: one that another left, or a new one.
    fn held(&self) -> BoundTable {
        let thread = locked(&self.shared.names).push_thread();
        let mut tables = locked(&self.shared.tables);
        let left = tables.iter().find(|table| {
            let order = Ordering::AcqRel;
            table.taken.compare_exchange(false, true, order, Ordering::Relaxed).is_ok()
        });
        let table = match left {
            Some(table) => Arc::clone(table),
            None => {
                tables.push(Arc::new(ThreadTable::new(&self.shared.settings, thread)));
                Arc::clone(&tables[tables.len() - 1])
            }
        };
        table.thread.store(thread, Ordering::Relaxed);
        let SitesShared { settings, number, asked, .. } = &*self.shared;
        let ask_from_ns = settings.ask_from.map_or(u64::MAX, Span::nanos_or_zero);
        BoundTable { table, number: *number, ask_from_ns, asked }
    }

    /// Threads that counted so far: the kernel's number, and the name that a thread had at first.
    #[must_use]
    pub fn threads(&self) -> Vec<(u32, String)> {
        locked(&self.shared.names).threads.clone()
    }

    /// What was counted so far at each site, in the order in which they were named; the last is [`OTHER_SITES`] if
    /// some found no room. Spans that end meanwhile may be in some of its numbers and not yet in others.
    #[must_use]
    pub fn report(&self) -> Vec<SiteReport> {
        let names = locked(&self.shared.names).clone();
        let tables = locked(&self.shared.tables).clone();
        let other = self.shared.settings.rows() - 1;
        let known = (0..names.sites.len()).chain((names.sites.len() <= other).then_some(other));
        let reports = known.map(|site| report_of(&names, &tables, site));
        reports.filter(|found| found.spans > 0 || found.name != OTHER_SITES).collect()
    }

    /// The worst disturbed spans of all threads, the one that lost most first.
    #[must_use]
    pub fn worst(&self) -> Vec<SpanLost> {
        let names = locked(&self.shared.names).clone();
        let tables = locked(&self.shared.tables).clone();
        let rate = HostFacts::here().rate();
        let mut all: Vec<DisturbedSpan> =
            tables.iter().flat_map(|table| table.worst.all()).collect();
        all.sort_by_key(|entry| (std::cmp::Reverse(entry.lost_ns()), entry.begun));
        all.truncate(usize::from(self.shared.settings.worst_spans));
        all.iter().map(|entry| entry.report(&names, &rate)).collect()
    }

    /// Writes the worst spans, one a line.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn dump(&self, mut out: impl io::Write) -> io::Result<()> {
        let worst = self.worst();
        let (spans, disturbed) =
            self.report().iter().fold((0_u64, 0_u64), |(spans, lost), site| {
                (spans.saturating_add(site.spans), lost.saturating_add(site.disturbed))
            });
        writeln!(out, "{disturbed} of {spans} spans were disturbed; the {} worst:", worst.len())?;
        worst.iter().try_for_each(|span| writeln!(out, "{span}"))
    }

    /// The spans that were kept one by one, thread by thread in the order of their ends.
    pub fn spans(&self) -> impl Iterator<Item = StoredSpan> + use<> {
        let tables = locked(&self.shared.tables).clone();
        let rate = HostFacts::here().rate();
        let of = move |table: Arc<ThreadTable>| {
            table.spans().map(|kept| kept.report(&rate)).collect::<Vec<_>>()
        };
        tables.into_iter().flat_map(of)
    }

    /// What was counted but not kept in full.
    #[must_use]
    pub fn missed(&self) -> DroppedCounts {
        let tables = locked(&self.shared.tables).clone();
        let other = self.shared.settings.rows() - 1;
        let sum = |of: &dyn Fn(&ThreadTable) -> u64| tables.iter().map(|table| of(table)).sum();
        DroppedCounts {
            left_out: sum(&|table| table.left_out.load(Ordering::Relaxed)),
            other_sites: sum(&|table| spans_of(table, other)),
            without_histogram: sum(&|table| table.without_histogram.load(Ordering::Relaxed)),
            spans_dropped: sum(&|table| table.spans_dropped.load(Ordering::Relaxed)),
        }
    }

    /// Asks for a dump, and wakes the threads that wait on [`Sites::dump_request`]. May be called in a signal handler.
    pub fn request_dump(&self) {
        request_dump(self.shared.asked);
    }

    /// Whether a dump was requested since the last call: by [`Sites::request_dump`], by a span that lost too much time
    /// ([`SiteSettings::ask_from`]), or by a signal. A thread of the program polls this, and calls [`Sites::dump`].
    #[must_use]
    pub fn take_asked(&self) -> bool {
        self.shared.asked.swap(0, Ordering::AcqRel) != 0
    }

    /// The word that is not 0 from when a dump was asked for; a futex, and what `hourglass_sys::signal::latch` takes.
    #[must_use]
    pub fn dump_request(&self) -> &'static AtomicU32 {
        self.shared.asked
    }
}

fn request_dump(asked: &AtomicU32) {
    if asked.fetch_or(1, Ordering::AcqRel) == 0 {
        futex::wake(asked, u32::MAX);
    }
}

impl Drop for BoundTable {
    fn drop(&mut self) {
        self.table.taken.store(false, Ordering::Release);
    }
}

impl ThreadSites {
    /// The thread's witness.
    #[must_use]
    pub fn witness(&self) -> &Witness {
        &self.witness
    }

    /// Begins a span of a call site. See [`Witness::begin`].
    #[inline]
    pub fn begin(&self, site: Site) -> SiteSpan {
        SiteSpan { site, open: self.witness.begin() }
    }

    /// Begins a span that does not wait. See [`Witness::begin_busy`].
    #[inline]
    pub fn begin_busy(&self, site: Site) -> SiteSpan {
        SiteSpan { site, open: self.witness.begin_busy() }
    }

    /// Ends a span, counts it, and returns its loss. See [`Witness::end`].
    #[inline]
    pub fn end(&self, span: SiteSpan) -> Option<Loss> {
        let SiteSpan { site: Site(site), open } = span;
        let (begun, cpu) = (open.start, open.marks.cpu());
        let (loss, ended) = self.witness.end_at(open);
        self.held.table.record(&EndedSpan { site, start: begun, ended, cpu }, loss.as_ref());
        if let Some(loss) = &loss
            && loss.off_cpu.latest().nanos_or_zero() >= self.held.ask_from_ns
        {
            request_dump(self.held.asked);
        }
        loss
    }

    /// Takes a span off this thread. See [`Witness::detach`].
    pub fn detach(&self, span: SiteSpan) -> DetachedSiteSpan {
        DetachedSiteSpan { site: span.site, travelling: self.witness.detach(span.open) }
    }

    /// A span goes on in this thread, whose it is at its end. See [`Witness::attach`].
    pub fn attach(&self, span: DetachedSiteSpan) -> SiteSpan {
        SiteSpan { site: span.site, open: self.witness.attach(span.travelling) }
    }

    /// Runs `work` as a span, which ends also where that panics.
    pub fn run<T>(&self, site: Site, work: impl FnOnce() -> T) -> T {
        let _ending = SpanGuard { here: self, span: Some(self.begin(site)) };
        work()
    }
}

/// Ends a span when it goes out of scope.
struct SpanGuard<'a> {
    here: &'a ThreadSites,
    span: Option<SiteSpan>,
}

impl Drop for SpanGuard<'_> {
    fn drop(&mut self) {
        if let Some(span) = self.span.take() {
            self.here.end(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a span of another thread is, or one from before a fork: no loss is made up of it.
    #[test]
    fn an_unknown_span_is_counted_as_such() {
        let sites = Sites::new(SiteSettings { spans: 2, ..SiteSettings::default() });
        let site = sites.site("strange");
        let here = sites.current_thread().unwrap();
        let loss = here.end(SiteSpan { site, open: Witness::asking().begin() }).unwrap();
        assert!(loss.is_unknown());
        let report = &sites.report()[0];
        assert_eq!((report.spans, report.disturbed, report.unknown), (1, 0, 1));
        assert_eq!((report.causes.len(), &report.greatest, sites.worst().len()), (0, &None, 0));
        assert!(sites.spans().next().and_then(|kept| kept.lost).unwrap().unknown);
    }

    /// As a signal handler finds the table that interrupted the end of another span.
    #[test]
    fn what_a_handler_ends_meanwhile_is_counted_as_left_out() {
        let sites = Sites::new(SiteSettings::default());
        let site = sites.site("handler");
        let here = sites.current_thread().unwrap();
        here.held.table.recording.store(true, Ordering::Relaxed);
        here.run(site, || ());
        here.held.table.recording.store(false, Ordering::Relaxed);
        here.run(site, || ());
        assert_eq!((sites.report()[0].spans, sites.missed().left_out), (1, 1));
    }

    #[test]
    fn a_table_takes_as_much_memory_as_the_header_says() {
        let bytes = |settings: SiteSettings| settings.bytes_per_thread();
        let settings = SiteSettings::default();
        assert!((320_000..340_000).contains(&bytes(settings)), "{}", bytes(settings));
        assert_eq!(bytes(SiteSettings { spans: 10, ..settings }) - bytes(settings), 480);
    }
}
