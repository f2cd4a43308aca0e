//! What a read costs: throughput of loops that do nothing else.
//!
//! Every loop is the same but for the read, and whatever it returns is consumed. The loop itself,
//! some 0.3 ns, is not taken away. Two things speak for the peers: minstant and fastant return the
//! bare counter and scale it when two instants are subtracted; and quanta's calibration never
//! changes, so that the compiler loads it before the loop, while ours is loaded in every read.

use std::cell::RefCell;
use std::fs::File;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clock_bound_client::{ClockBoundClient, ClockStatus};
use clock_bound_shm::{ClockErrorBound, ShmWrite, ShmWriter};
use hourglass_clock::Clock;
use hourglass_clock::source::probe;
use hourglass_clock::timekeeping::{
    ClockSettings, ExtendedTimebase, PageReader, SourceId, Start, Utc, UtcStatement,
};
use hourglass_clock::utc::{UtcAnswer, UtcDenial, UtcKeeper, UtcSource};
use hourglass_sys::clock::{ClockId, now_ns};

use super::{counter, settle};
use crate::document::Row;
use crate::paired::Rounds;

/// Reads in a turn: 0.1 to 0.3 ms, shorter than the time between two clock interrupts.
const READS: u32 = 10_000;

/// Turns of each subject in a round. The fastest counts, since only it was not interrupted.
const TURNS: u32 = 20;

/// A subject and a turn of it, ns a read.
type Subject<'a> = (&'static str, Box<dyn Fn() -> f64 + 'a>);

struct Clocks {
    /// Kept by its readers.
    clock: Clock,
    /// On the OS clock, as after a failover.
    os: Clock,
    /// For which a thread asks a source about UTC.
    kept: Arc<Clock>,
    _keeper: UtcKeeper,
    /// The processor's counter as one added at run time.
    with_source: Option<Clock<ExtendedTimebase>>,
    /// The page of `clock`, mapped from its memfd as another process does.
    page: PageReader,
    quanta: quanta::Clock,
    /// Of a page that no daemon keeps, which is read alike.
    clock_bound: RefCell<ClockBoundClient>,
}

pub(super) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let clocks = Clocks::new()?;
    let mut rows = Vec::new();
    for (case, subjects) in [
        ("now", now(&clocks)),
        ("now_ordered", now_ordered(&clocks)),
        ("now_bounded", now_bounded(&clocks)),
        ("utc_bounded", utc_bounded(&clocks)),
    ] {
        rows.extend(turns(case, rounds, &subjects, &clocks));
    }
    // Goals of the design: not much more than the counter, clearly less than the kernel's clock.
    for row in rows.iter_mut().filter(|row| row.subject == "hourglass") {
        match row.case.as_str() {
            "now" => {
                row.set_goal(counter::PLAIN, 1.25);
                row.set_goal("vdso", 0.6);
            }
            "now_bounded" => row.set_goal(counter::PLAIN, 1.5),
            _ => {}
        }
    }
    Ok(rows)
}

/// Says the same on every machine, whoever keeps its clock.
struct FixedSource;

impl UtcSource for FixedSource {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn ask(&self) -> UtcAnswer {
        let at_ns = now_ns(ClockId::Monotonic);
        let said = UtcStatement {
            error_ns: 1_000_000,
            growth_ppb: 1_000,
            at_ns,
            age_ns: 0,
            supersedes_kernel: true,
        };
        UtcAnswer { said: Ok(said), denies: UtcDenial::Own, evidence: Vec::new() }
    }
}

/// ClockBound's client on a page of 1 ms and 50 ppm, valid for as long as a benchmark takes.
fn clock_bound() -> Result<ClockBoundClient> {
    let folder = tempfile::tempdir()?;
    let page = folder.path().join("shm0");
    let now = Duration::from_nanos(now_ns(ClockId::MonotonicCoarse));
    let until = now + Duration::from_secs(900);
    let bound = ClockErrorBound::new(
        now.into(),
        until.into(),
        1_000_000,
        0,
        50_000,
        ClockStatus::Synchronized,
        false,
    );
    ShmWriter::new(&page)?.write(&bound);
    // It maps the page, and needs the file no more.
    let page = page.to_str().context("the folder of temporary files is no text")?;
    let mut client = ClockBoundClient::new_with_path(page)
        .map_err(|error| anyhow!("clock-bound-client: {error:?}"))?;
    client.now().map_err(|error| anyhow!("clock-bound-client: {error:?}"))?;
    Ok(client)
}

impl Clocks {
    fn new() -> Result<Clocks> {
        let clock = Clock::new();
        let os = Clock::new();
        let kept = Arc::new(Clock::new());
        let keeper = UtcKeeper::with(Arc::clone(&kept), vec![Box::new(FixedSource)])
            .context("no thread for a source of UTC")?;
        settle(&clock);
        settle(&kept);
        os.set_source(SourceId::OS)?;
        let descriptor = clock.share().context("the page cannot be shared")?;
        let with_source = probe(counter::NAME).ok().and_then(ExtendedTimebase::new).map(|base| {
            let start = Start::With(base.id());
            Clock::on(base, ClockSettings { start, ..ClockSettings::DEFAULT })
        });
        if let Some(with_source) = &with_source {
            settle(with_source);
        }
        let page = PageReader::open(&File::from(descriptor))?;
        Ok(Clocks {
            clock,
            os,
            kept,
            _keeper: keeper,
            with_source,
            page,
            quanta: quanta::Clock::new(),
            clock_bound: RefCell::new(clock_bound()?),
        })
    }

    /// So that calibrations are due between the rounds and not in them.
    fn maintain(&self) {
        self.clock.maintain();
        self.os.maintain();
        self.kept.maintain();
        if let Some(with_source) = &self.with_source {
            with_source.maintain();
        }
    }
}

#[inline(never)]
fn turn<T>(read: impl Fn() -> T) -> f64 {
    let begun = now_ns(ClockId::Monotonic);
    for _ in 0..READS {
        black_box(read());
    }
    now_ns(ClockId::Monotonic).saturating_sub(begun) as f64 / f64::from(READS)
}

fn subject<'a, T>(name: &'static str, read: impl Fn() -> T + Copy + 'a) -> Subject<'a> {
    (name, Box::new(move || turn(read)))
}

fn now(clocks: &Clocks) -> Vec<Subject<'_>> {
    let Clocks { clock, os, with_source, page, quanta, .. } = clocks;
    let first = clock.ticks();
    let mut subjects = vec![
        subject("hourglass", || clock.now()),
        subject("hourglass/page", || page.now()),
        subject("hourglass/os", || os.now()),
        subject("hourglass/ticks", || clock.ticks()),
        subject("hourglass/elapsed", move || clock.elapsed(first, clock.ticks())),
        subject("hourglass/recent", || clock.recent()),
        subject(counter::PLAIN, counter::plain),
        subject("vdso", || now_ns(ClockId::Monotonic)),
        subject("std", Instant::now),
        subject("quanta", || quanta.now()),
        subject("quanta_raw", || quanta.raw()),
        subject("minstant", minstant::Instant::now),
        subject("fastant", fastant::Instant::now),
    ];
    if let Some(with_source) = with_source {
        subjects.push(subject("hourglass/with_source", || with_source.now()));
    }
    subjects
}

fn now_ordered(clocks: &Clocks) -> Vec<Subject<'_>> {
    let Clocks { clock, page, .. } = clocks;
    vec![
        subject("hourglass", || clock.now_ordered()),
        subject("hourglass/page", || page.now_ordered()),
        subject(counter::PLAIN, counter::plain),
        subject(counter::ORDERED, counter::ordered),
        #[cfg(target_arch = "x86_64")]
        subject("lfence;rdtsc", counter::fenced),
        subject("vdso", || now_ns(ClockId::Monotonic)),
        subject("std", Instant::now),
    ]
}

fn now_bounded(clocks: &Clocks) -> Vec<Subject<'_>> {
    let Clocks { clock, os, page, .. } = clocks;
    vec![
        subject("hourglass", || clock.now_bounded()),
        subject("hourglass/page", || page.now_bounded()),
        subject("hourglass/os", || os.now_bounded()),
        // What the kernel itself has for a bounded read: time and `maxerror` in one system call.
        subject("adjtimex", || hourglass_sys::adjtimex::discipline().ok()),
        subject(counter::PLAIN, counter::plain),
        subject("vdso", || now_ns(ClockId::Monotonic)),
        subject("std", Instant::now),
    ]
}

/// What a caller takes from it: both ends.
fn ends(utc: Utc) -> Option<(i64, i64)> {
    utc.interval().map(|found| (found.earliest_ns, found.latest_ns))
}

/// UTC with its bound; beside it the bounded read on the monotonic scale, which it is to cost 1.3 times at most.
fn utc_bounded(clocks: &Clocks) -> Vec<Subject<'_>> {
    let Clocks { clock, os, kept, clock_bound, .. } = clocks;
    vec![
        subject("hourglass", || ends(clock.utc_bounded())),
        subject("hourglass/keeper", || ends(kept.utc_bounded())),
        subject("hourglass/now_bounded", || {
            let now = clock.now_bounded();
            (now.earliest, now.latest)
        }),
        subject("hourglass/wall", || clock.wall()),
        subject("hourglass/os", || ends(os.utc_bounded())),
        subject("adjtimex", || hourglass_sys::adjtimex::discipline().ok()),
        subject("clock-bound", || {
            let now = clock_bound.borrow_mut().now().ok();
            now.map(|now| (now.earliest, now.latest))
        }),
        subject(counter::PLAIN, counter::plain),
        subject("vdso", || now_ns(ClockId::Realtime)),
        subject("std", std::time::SystemTime::now),
        subject("chrono", chrono::Utc::now),
        subject("jiff", jiff::Timestamp::now),
    ]
}

/// Turns of all subjects, one after the other; in a round the fastest of each.
fn turns(case: &str, rounds: u32, subjects: &[Subject<'_>], clocks: &Clocks) -> Vec<Row> {
    let mut found = Rounds::of(subjects.iter().map(|(name, _)| *name).collect());
    for _ in 0..rounds {
        clocks.maintain();
        let mut fastest = vec![f64::INFINITY; subjects.len()];
        for pass in 0..TURNS as usize {
            for place in 0..subjects.len() {
                let subject = (pass + place) % subjects.len();
                fastest[subject] = fastest[subject].min(subjects[subject].1());
            }
        }
        found.round(|subject| fastest[subject]);
    }
    found.rows(case, "ns")
}
