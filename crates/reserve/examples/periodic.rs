//! A periodic job that reports its progress, to be run under `hourglass reserve`:
//!
//! ```text
//! cargo build --release -p hourglass-reserve --example periodic
//! hourglass reserve 25ms/50ms --cpu 0 --smt monitor --stop PID -- target/release/examples/periodic 20
//! ```
//!
//! It uses the given number of milliseconds of processor time in each of 40 periods of 50 ms, and prints at the end how
//! many jobs were late.

use std::time::{Duration, Instant};

use hourglass_reserve::progress::Progress;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::wait::nanosleep_until;

const PERIOD: Duration = Duration::from_millis(50);
const JOBS: u32 = 40;
/// Steps of a job. The program reports each of them.
const STEPS: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let work_ms: u64 = std::env::args().nth(1).as_deref().unwrap_or("20").parse()?;
    let mut progress = Progress::open()?;
    let step_ns = work_ms * 1_000_000 / STEPS;
    let mut late = 0;
    for _ in 0..JOBS {
        // The monitor's periods; without one, as they come.
        if let Some(release) = progress.next_release_ns(now_ns(ClockId::Monotonic)) {
            nanosleep_until(release)?;
        } else {
            std::thread::sleep(PERIOD);
        }
        let begun = Instant::now();
        progress.begin();
        for step in 1..=STEPS {
            let until = now_ns(ClockId::ThreadCpu) + step_ns;
            while now_ns(ClockId::ThreadCpu) < until {}
            progress.report(step, STEPS);
        }
        late += u32::from(begun.elapsed() > PERIOD);
    }
    println!("{late} of {JOBS} jobs late");
    Ok(())
}
