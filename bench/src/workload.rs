//! The suite `workload`: what the hourglass itself costs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hourglass_clock::{Calibration, Counter, Pair};
use hourglass_documents::document::RunDocument;
use hourglass_runs::store::RunFolder;
use hourglass_time::Span;
use hourglass_trace::{Interval, IntervalStart};
use hourglass_workload::memory::Memory;
use hourglass_workload::recorder::RecorderSettings;
use hourglass_workload::wake::{WakeUp, WakeUpTime};
use hourglass_workload::{MeasuringCounter, Recorder, Timeline, Work};

use crate::document::Row;
use crate::paired::{Rounds, compare, median};

/// Length of one turn of a loop: shorter than the time between two clock interrupts.
const TURN: Span = Span::from_millis(2);

/// Turns in a round. The fastest counts, since only it was not interrupted.
const TURNS: u32 = 20;

const MANY: u64 = 10_000_000;

pub(crate) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let binary = binary()?;
    let mut rows = Vec::new();
    rows.extend(gap_loop(rounds)?);
    rows.push(startup(&binary, rounds)?);
    rows.extend(starting(&binary, rounds)?);
    rows.extend(received(&binary)?);
    rows.extend(show(&binary)?);
    Ok(rows)
}

/// The command, built beside this program.
pub(crate) fn binary() -> Result<PathBuf> {
    let here = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = here.with_file_name("hourglass");
    if !beside.exists() {
        let status = Command::new("cargo")
            .args(["build", "--quiet", "--release", "--package", "hourglass"])
            .status()
            .context("cannot run cargo to build the command")?;
        ensure!(status.success() && beside.exists(), "build the command first, with --release");
    }
    Ok(beside)
}

/// Counts its steps, which is all that tells the loops apart.
struct StepCounter(u64);

impl Work for StepCounter {
    #[inline(always)]
    fn step(&mut self) {
        self.0 += 1;
    }
}

struct NoWakeUp;

impl WakeUp for NoWakeUp {
    fn wait(&mut self, _alarm: WakeUpTime) {}
}

pub(crate) struct GapLoop<C> {
    counter: C,
    calibration: Calibration,
}

impl<C: MeasuringCounter + Copy> GapLoop<C> {
    /// Calibrates the counter, which takes 50 ms.
    pub(crate) fn new(counter: C) -> Result<GapLoop<C>> {
        let first = Pair::read(&counter);
        std::thread::sleep(Duration::from_millis(50));
        let calibration = Calibration::between(first, Pair::read(&counter))
            .context("the counter stands still")?;
        Ok(GapLoop { counter, calibration })
    }

    /// The fastest of a round's turns, ns an iteration. `senses` are opened anew for each.
    pub(crate) fn round(&self, senses: impl Fn() -> Option<C::EvidenceSource>) -> f64 {
        (0..TURNS).map(|_| self.turn(senses())).fold(f64::INFINITY, f64::min)
    }

    fn turn(&self, senses: Option<C::EvidenceSource>) -> f64 {
        let stop = AtomicBool::new(false);
        let memory = Memory::new(1_000, false, false);
        let now = Pair::read(&self.counter);
        let timeline = Timeline::starting(now, 0, Span::ZERO, self.calibration);
        let settings = RecorderSettings {
            gap: timeline.ticks_at_least(Span::from_nanos(60)),
            timeline,
            start: now.ticks,
            finish: timeline.ticks_at(TURN.nanos_or_zero()),
            stop_gap: u64::MAX,
            stop_late: u64::MAX,
            live: None,
            charge: u64::MAX,
        };
        let mut sleepless = NoWakeUp;
        let recorder = Recorder::new(self.counter, settings, memory, &mut sleepless, &stop);
        let mut recorder = match senses {
            Some(senses) => recorder.asking(senses),
            None => recorder,
        };
        let mut work = StepCounter(0);
        recorder.begin();
        let begun = recorder.now();
        recorder.receive_all(&mut work);
        let recorded = recorder.end();
        let passed = recorded.end.saturating_sub(begun);
        self.calibration.rate.ns_floor(passed) as f64 / work.0.max(1) as f64
    }
}

/// The counter that gaps are found with on this machine, as a rule.
#[cfg(target_arch = "x86_64")]
pub(crate) const COUNTER: (hourglass_clock::Tsc, &str) = (hourglass_clock::Tsc, "rdtscp");

#[cfg(not(target_arch = "x86_64"))]
pub(crate) const COUNTER: (hourglass_clock::OsMonotonic, &str) =
    (hourglass_clock::OsMonotonic, "clock_gettime");

fn gap_loop(rounds: u32) -> Result<Vec<Row>> {
    let (counter, peer) = COUNTER;
    let gap_loop = GapLoop::new(counter)?;
    let turn_ns = TURN.nanos() as f64;
    let turn_ticks = gap_loop.calibration.rate.ticks_ceil(TURN.nanos_or_zero());
    let bare_turn = || {
        let end = counter.read().ticks + turn_ticks;
        let mut iterations = 0u64;
        while counter.read().ticks < end {
            iterations += 1;
        }
        turn_ns / iterations.max(1) as f64
    };
    let ours = || gap_loop.round(|| None);
    let bare = || (0..TURNS).map(|_| bare_turn()).fold(f64::INFINITY, f64::min);
    Ok(compare("loop", "ns", rounds, peer, ours, bare))
}

fn startup(binary: &Path, rounds: u32) -> Result<Row> {
    let mut values = Vec::new();
    for _ in 0..rounds {
        let before = monotonic_ns();
        let document = run(binary, &["-n", "1", "-d", "20ms", "--json"])?;
        let begun = document.manifest.epoch.monotonic_ns;
        values.push(begun.saturating_sub(before) as f64 / 1e6);
    }
    Ok(Row::alone("startup", "hourglass", median(&mut values), "ms"))
}

/// The command alone, which says its version and ends, beside a program that does nothing.
fn starting(binary: &Path, rounds: u32) -> Result<Vec<Row>> {
    let wall = |command: &mut Command| -> Result<f64> {
        let before = Instant::now();
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "{}: {status}", command.get_program().to_string_lossy());
        Ok(before.elapsed().as_secs_f64() * 1e3)
    };
    let mut found = Rounds::of(vec!["hourglass", "true"]);
    for _ in 0..rounds {
        found.try_round(|subject| match subject {
            0 => wall(Command::new(binary).arg("--version")),
            _ => wall(&mut Command::new("true")),
        })?;
    }
    Ok(found.rows("startup/version", "ms"))
}

fn monotonic_ns() -> u64 {
    hourglass_clock::OsMonotonic.read().ticks
}

fn run(binary: &Path, arguments: &[&str]) -> Result<RunDocument> {
    let output = Command::new(binary).args(arguments).arg("--quiet").output()?;
    ensure!(output.status.success(), "hourglass {}: {}", arguments.join(" "), output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn received(binary: &Path) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run");
    let at = path.to_str().context("the temporary folder has an odd name")?;
    run(binary, &["-n", "1", "-d", "4s", "-w", "PERIODIC", "3ms", "8ms", "--json", "-o", at])?;
    let mut jobs: Vec<f64> = Vec::new();
    for interval in RunFolder::open(&path)?.trace().intervals()? {
        let interval = interval?;
        let length = interval.duration_ns() as f64;
        match (interval.onset, jobs.last_mut()) {
            (IntervalStart::Gap | IntervalStart::Migration, Some(job)) => *job += length,
            _ => jobs.push(length),
        }
    }
    // The end of the run may have cut the last one off.
    jobs.pop();
    let mut over: Vec<f64> = jobs.iter().map(|received| received - 3e6).collect();
    let middle = median(&mut over);
    let first = over.first().copied().context("4 s held no period")?;
    let last = over.last().copied().unwrap_or(first);
    Ok(vec![
        Row::alone("received/over_min", "hourglass", first, "ns"),
        Row::alone("received/over_p50", "hourglass", middle, "ns"),
        Row::alone("received/over_max", "hourglass", last, "ns"),
    ])
}

fn show(binary: &Path) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run");
    let made = folder.path().join("small");
    let small = made.to_str().context("the temporary folder has an odd name")?;
    run(binary, &["-n", "1", "-d", "20ms", "--json", "-o", small])?;
    let manifest = RunFolder::open(&made)?.manifest().clone();
    let mut large = RunFolder::create(&path)?;
    let mut trace = large.trace()?;
    for interval in synthetic() {
        trace.write(&interval)?;
    }
    trace.finish()?;
    large.finish(&manifest)?;
    let mut rows = Vec::new();
    for (case, option) in [("show_10m/records", "--records"), ("show_10m/json", "--json")] {
        let (seconds, peak) = watched(binary, &["show", option], &path)?;
        rows.push(Row::alone(&format!("{case}/time"), "hourglass", seconds, "s"));
        rows.push(Row::alone(&format!("{case}/peak"), "hourglass", peak, "MB"));
    }
    Ok(rows)
}

fn synthetic() -> impl Iterator<Item = Interval> {
    let mut now = 0u64;
    (0..MANY).map(move |i| {
        let start = now + 200 + i % 977;
        let end = start + 3_000 + i % 4_409;
        now = end;
        Interval {
            start_ticks: 77_000_000_000 + start * 23 / 10,
            end_ticks: 77_000_000_000 + end * 23 / 10,
            ..Interval::new(
                (i / 40 % 3) as u32,
                (i / 4_000 % 2) as u32,
                start as i64,
                end as i64,
                IntervalStart::Gap,
            )
        }
    })
}

/// Runs the command with its output thrown away; seconds, and the peak of its resident memory in
/// MB as the kernel last reported it.
fn watched(binary: &Path, arguments: &[&str], path: &Path) -> Result<(f64, f64)> {
    let begun = Instant::now();
    let mut child = Command::new(binary)
        .args(arguments)
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kb = 0u64;
    loop {
        if let Some(kb) = std::fs::read_to_string(&status).ok().as_deref().and_then(high_water) {
            peak_kb = peak_kb.max(kb);
        }
        if let Some(code) = child.try_wait()? {
            ensure!(code.success(), "hourglass {}: {code}", arguments.join(" "));
            return Ok((begun.elapsed().as_secs_f64(), peak_kb as f64 / 1024.0));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}
