//! A fresh process that takes one first value, of Hourglass or of a peer that does nothing before
//! `main`. Its argument is the subject's name. Run by the suite `clock`.

#![forbid(unsafe_code)]

mod tell;

use std::hint::black_box;
use std::process::ExitCode;

use hourglass_clock::Clock;
use hourglass_sys::clock::{ClockId, now_ns};

fn main() -> ExitCode {
    let subject = std::env::args().nth(1).unwrap_or_default();
    match subject.as_str() {
        "hourglass" => tell::tell(|| black_box(&Clock::new()).now()),
        "hourglass/bounded" => tell::tell(|| black_box(&Clock::new()).now_bounded()),
        #[cfg(target_arch = "x86_64")]
        "hourglass/counter" => tell::tell(|| counter(hourglass_clock::timekeeping::SourceId::TSC)),
        #[cfg(target_arch = "aarch64")]
        "hourglass/counter" => {
            tell::tell(|| counter(hourglass_clock::timekeeping::SourceId::CNTVCT));
        }
        "quanta" => tell::tell(quanta::Instant::now),
        "std" => tell::tell(std::time::Instant::now),
        "vdso" => tell::tell(|| now_ns(ClockId::Monotonic)),
        _ => {
            eprintln!("no subject is called `{subject}`; the suite `clock` runs this program");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// The first value where the caller vouches for the counter, so that it is calibrated at once.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn counter(source: hourglass_clock::timekeeping::SourceId) -> u64 {
    use hourglass_clock::timekeeping::{ClockSettings, Start};
    let settings = ClockSettings { start: Start::With(source), ..ClockSettings::DEFAULT };
    black_box(&Clock::with(settings)).now()
}
