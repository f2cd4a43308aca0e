//! The suite `witness`: what a span costs, undisturbed and disturbed, beside what programs ask otherwise; and
//! whether what is said of spans is true.

mod ground_truth;
#[cfg(feature = "server")]
mod server;

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread::{counters, set_affinity};
use hourglass_witness::Witness;

use crate::document::Row;
use crate::paired::{Rounds, median};

/// What an undisturbed span may cost beyond two readings of the clock, ns.
const GOAL_NS: f64 = 2.0;
const SPANS: u32 = 20_000;
const DISTURBED: u32 = 200;

pub(crate) fn measure(rounds: u32, only: &[String]) -> Result<Vec<Row>> {
    let wanted = |part: &str| only.is_empty() || only.iter().any(|one| one == part);
    let mut rows = Vec::new();
    if wanted("cost") {
        let costs = std::thread::spawn(move || costs(rounds));
        rows.extend(costs.join().map_err(|_| anyhow::anyhow!("the measuring thread panicked"))??);
    }
    if wanted("server") {
        #[cfg(feature = "server")]
        rows.extend(server::measure(rounds)?);
        #[cfg(not(feature = "server"))]
        eprintln!("witness: no server is measured without `--features server`");
    }
    if wanted("truth") {
        rows.extend(ground_truth::measure()?);
    }
    Ok(rows)
}

#[inline(always)]
fn clock() -> u64 {
    #[cfg(target_arch = "x86_64")]
    return hourglass_sys::counter::tsc();
    #[cfg(target_arch = "aarch64")]
    return hourglass_sys::counter::cntvct();
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    now_ns(ClockId::Monotonic)
}

/// What is done at both ends of a span; ns of one span.
fn each(mut span: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..SPANS).for_each(|_| span());
    begun.elapsed().as_nanos() as f64 / f64::from(SPANS)
}

fn costs(rounds: u32) -> Result<Vec<Row>> {
    let cpu = *hourglass_sys::thread::affinity()?.last().context("no CPU")?;
    set_affinity([cpu])?;
    let witness = Witness::new()?;
    if let Some(asks) = witness.counter_read_reason() {
        eprintln!("witness: each span asks the kernel: {asks}");
    }
    let schedstat = File::open("/proc/thread-self/schedstat")?;
    let quanta = quanta::Clock::new();
    let twice = |read: &dyn Fn()| {
        each(|| {
            read();
            read()
        })
    };
    let subjects =
        vec!["hourglass", "two_clock_reads", "getrusage", "schedstat", "thread_cputime", "quanta"];
    let mut found = Rounds::of(subjects);
    let (mut added, mut begins) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut pair = [0.0; 2];
        found.round(|subject| {
            let ns = match subject {
                // As programs do: what is not there is not moved.
                0 => each(|| {
                    if let Some(loss) = witness.end(black_box(witness.begin())) {
                        black_box(loss);
                    }
                }),
                1 => each(|| {
                    black_box(clock());
                    black_box(clock());
                }),
                2 => twice(&|| {
                    black_box(counters());
                }),
                3 => twice(&|| {
                    let _ = black_box(schedstat.read_at(&mut [0; 64], 0));
                }),
                4 => twice(&|| {
                    black_box(now_ns(ClockId::ThreadCpu));
                }),
                _ => twice(&|| {
                    black_box(quanta.raw());
                }),
            };
            if let Some(place) = pair.get_mut(subject) {
                *place = ns;
            }
            ns
        });
        added.push(pair[0] - pair[1]);
        begins.push(each(|| drop(black_box(witness.begin()))));
    }
    let mut rows = found.rows("undisturbed", "ns");
    let row = Row::alone("undisturbed_added", "hourglass", median(&mut added), "ns");
    rows.push(row.at_most(GOAL_NS));
    rows.push(Row::alone("begin", "hourglass", median(&mut begins), "ns"));
    rows.extend(disturbed(rounds, &witness, &schedstat));
    Ok(rows)
}

fn disturbed(rounds: u32, witness: &Witness, schedstat: &File) -> Vec<Row> {
    let mut found = Rounds::of(vec!["hourglass", "getrusage", "schedstat", "thread_cputime"]);
    let timed = |ask: &mut dyn FnMut()| {
        let begun = Instant::now();
        ask();
        begun.elapsed().as_nanos() as f64
    };
    for _ in 0..rounds {
        found.round(|subject| {
            let one = |_| {
                let mut span = Some(witness.begin());
                std::thread::sleep(Duration::from_micros(10));
                timed(&mut || match subject {
                    0 => drop(black_box(span.take().map(|span| witness.end(span)))),
                    1 => drop(black_box(counters())),
                    2 => drop(black_box(schedstat.read_at(&mut [0; 64], 0))),
                    _ => {
                        black_box(now_ns(ClockId::ThreadCpu));
                    }
                })
            };
            median(&mut (0..DISTURBED).map(one).collect::<Vec<_>>())
        });
    }
    found.rows("disturbed_end", "ns")
}
