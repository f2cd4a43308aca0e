//! Draws made-up traces in the manner of the paper's Figures 3 and 6, to look at the drawing.
//!
//! `cargo run -p hourglass-report --example figures -- FOLDER`

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use hourglass_report::svg::{Rows, TraceOptions, render};
use hourglass_time::Span;
use hourglass_trace::{Interval, IntervalStart};

const MS: i64 = 1_000_000;

/// Numbers that look random and are the same every time.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % limit.max(1)
    }
}

fn interval(thread: u32, cpu: u32, start_ns: i64, end_ns: i64, onset: IntervalStart) -> Interval {
    Interval {
        thread,
        cpu,
        start_ns,
        end_ns,
        start_ticks: start_ns.unsigned_abs(),
        end_ticks: end_ns.unsigned_abs(),
        onset,
        evidence: Default::default(),
    }
}

/// Figure 3 (a): three priorities take turns, the higher for longer, on one CPU whose clock
/// interrupts every 10 ms.
fn three_threads(until_ns: i64, quanta: [i64; 3]) -> Vec<Interval> {
    let mut random = Sequence(3);
    let mut trace = Vec::new();
    let mut now = 0;
    let mut turn = 0;
    while now < until_ns {
        let thread = turn % 3;
        let end = now + quanta[thread];
        while now < end {
            let tick = (now / (10 * MS) + 1) * 10 * MS;
            let stop = tick.min(end);
            trace.push(interval(thread as u32, 0, now, stop, IntervalStart::Gap));
            now = stop + 2_000 + random.below(6_000);
        }
        turn += 1;
    }
    trace
}

/// Figure 6: 4 ms of every 5 ms, interrupted by a network card at random moments.
fn periodic(until_ns: i64, rate_ns: i64, cost_ns: i64) -> Vec<Interval> {
    let mut random = Sequence(6);
    let mut trace = Vec::new();
    let mut release = 0;
    let mut now = 0;
    while release < until_ns {
        now = release.max(now) + 40_000;
        let mut left = 4 * MS;
        let mut onset = IntervalStart::Wait;
        while left > 0 {
            let run = (rate_ns / 4 + random.below(rate_ns)).min(left);
            trace.push(interval(0, 0, now, now + run, onset));
            left -= run;
            now += run + cost_ns / 4 + random.below(cost_ns);
            onset = IntervalStart::Gap;
        }
        release += 5 * MS;
    }
    trace
}

/// Many threads on four CPUs.
fn crowd(threads: u32, until_ns: i64) -> Vec<Interval> {
    let mut random = Sequence(64);
    let mut trace = Vec::new();
    for cpu in 0..4 {
        let mut now = 0;
        let mut thread = cpu;
        while now < until_ns {
            let end = now + MS / 2 + random.below(12 * MS);
            trace.push(interval(thread, cpu, now, end, IntervalStart::Gap));
            now = end + 3_000 + random.below(4_000);
            thread = (thread + 4) % threads;
        }
    }
    trace.sort_by_key(|interval| interval.start_ns);
    trace
}

fn draw(path: &Path, trace: Vec<Interval>, options: &TraceOptions) -> Result<(), Box<dyn Error>> {
    render(File::create(path)?, trace, options)?;
    println!("{}", path.display());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let names = |names: &[&str]| {
        let numbered = names.iter().enumerate();
        numbered.map(|(n, name)| (n as u32, (*name).to_owned())).collect::<Vec<_>>()
    };

    let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(500));
    options.title = "Three threads at different priorities (as in Figure 3)".to_owned();
    options.threads = names(&["CPU, LOW", "CPU, NORMAL", "CPU, HIGH"]);
    let three = three_threads(5_000 * MS, [20 * MS, 60 * MS, 110 * MS]);
    draw(&folder.join("figure-3.svg"), three.clone(), &options)?;

    options.rows = Rows::Cpus;
    draw(&folder.join("figure-3-cpus.svg"), three.clone(), &options)?;

    options.rows = Rows::Threads;
    options.to = Span::from_secs(5);
    options.title = "The same, all five seconds".to_owned();
    draw(&folder.join("figure-3-all.svg"), three, &options)?;

    let mut options = TraceOptions::new(Span::from_micros(1_002_500), Span::from_micros(1_027_500));
    options.title = "A periodic thread and a network card (as in Figure 6)".to_owned();
    options.threads = names(&["PERIODIC 4ms 5ms"]);
    let six = periodic(2_000 * MS, 400_000, 60_000);
    draw(&folder.join("figure-6.svg"), six, &options)?;
    options.title = "The same on a quiet machine".to_owned();
    let quiet = periodic(2_000 * MS, 3 * MS, 4_000);
    draw(&folder.join("figure-6-quiet.svg"), quiet, &options)?;

    let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(400));
    options.title = "64 threads on four CPUs".to_owned();
    options.threads = (0..64).map(|n| (n, "PERIODIC 17ms 33ms".to_owned())).collect();
    draw(&folder.join("crowd-threads.svg"), crowd(64, 400 * MS), &options)?;
    options.rows = Rows::Cpus;
    options.title = "Ten threads on four CPUs".to_owned();
    options.threads.truncate(10);
    draw(&folder.join("crowd-cpus.svg"), crowd(10, 400 * MS), &options)?;
    Ok(())
}
