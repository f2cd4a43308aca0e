//! A C library that registers no restartable sequences (`glibc.pthread.rseq=0`), as older ones and musl's do not:
//! Hourglass registers an area of its own, and reports gaps as fully as with the library's.

use super::expectation::Expectation::{ExitCode, Says, Values};
use super::{TestBed, passes, step};

macro_rules! without {
    ($command:literal) => {
        concat!("GLIBC_TUNABLES=glibc.pthread.rseq=0 ", $command)
    };
}

pub(super) const BED: TestBed = TestBed {
    name: "no-rseq",
    purpose: "a C library without restartable sequences: runs, latency, a reservation",
    steps: &[
        step(
            "run",
            without!("hourglass -n 2 -d 1s --json"),
            &[
                ExitCode(0),
                Says("whether the kernel took the CPU from the thread, read after each gap"),
            ],
        ),
        step(
            "latency",
            without!("hourglass -d 1s -n 1 -t 0 -p RTHIGH -w LAT 5ms -i SLEEPER"),
            &[ExitCode(0), Values { tag: "latlate:", at_least: 50, none_below: 0.0 }],
        ),
        passes("reserve", without!("hourglass reserve 5ms/50ms --backend user -- true")),
    ],
    ..TestBed::PLAIN
};
