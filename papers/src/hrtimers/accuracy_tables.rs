//! The numbers of section 8.1, microseconds, as the paper prints them.

use super::accuracy::{AccuracyTable, AccuracyTest, Kernels, PaperLatency};

const fn all(min: u32, max: u32, avg: u32) -> PaperLatency {
    PaperLatency { min: Some(min), max: Some(max), avg: Some(avg) }
}

/// "2.6.16-rt12" of the second table: only the minimum can be read.
const HALF_ILLEGIBLE: PaperLatency = PaperLatency { min: Some(16), max: None, avg: None };

/// The tables, in the paper's order.
pub(super) const TABLES: [AccuracyTable; 8] = [
    AccuracyTable {
        id: "8.1.1",
        title: "clock_nanosleep, interval 10 ms, no load",
        method: AccuracyTest::Sleep,
        interval_us: 10_000,
        loops: 10_000,
        loaded: false,
        printed: Kernels {
            vanilla: Some(all(24, 4_043, 1_989)),
            hrt5: all(12, 94, 20),
            rt12: all(6, 40, 10),
        },
    },
    AccuracyTable {
        id: "8.1.2",
        title: "clock_nanosleep, interval 10 ms, 100 % load",
        method: AccuracyTest::Sleep,
        interval_us: 10_000,
        loops: 10_000,
        loaded: true,
        printed: Kernels {
            vanilla: Some(all(55, 4_280, 2_198)),
            hrt5: all(11, 458, 55),
            rt12: HALF_ILLEGIBLE,
        },
    },
    AccuracyTable {
        id: "8.1.3",
        title: "POSIX interval timer, interval 10 ms, no load",
        method: AccuracyTest::PosixTimer,
        interval_us: 10_000,
        loops: 10_000,
        loaded: false,
        printed: Kernels {
            vanilla: Some(all(21, 4_073, 2_098)),
            hrt5: all(22, 120, 35),
            rt12: all(20, 60, 31),
        },
    },
    AccuracyTable {
        id: "8.1.4",
        title: "POSIX interval timer, interval 10 ms, 100 % load",
        method: AccuracyTest::PosixTimer,
        interval_us: 10_000,
        loops: 10_000,
        loaded: true,
        printed: Kernels {
            vanilla: Some(all(82, 4_271, 2_089)),
            hrt5: all(31, 458, 53),
            rt12: all(21, 70, 35),
        },
    },
    AccuracyTable {
        id: "8.1.5",
        title: "clock_nanosleep, interval 500 us, no load",
        method: AccuracyTest::Sleep,
        interval_us: 500,
        loops: 100_000,
        loaded: false,
        printed: Kernels { vanilla: None, hrt5: all(5, 108, 24), rt12: all(5, 48, 7) },
    },
    AccuracyTable {
        id: "8.1.6",
        title: "clock_nanosleep, interval 500 us, 100 % load",
        method: AccuracyTest::Sleep,
        interval_us: 500,
        loops: 100_000,
        loaded: true,
        printed: Kernels { vanilla: None, hrt5: all(9, 684, 56), rt12: all(10, 60, 22) },
    },
    AccuracyTable {
        id: "8.1.7",
        title: "POSIX interval timer, interval 500 us, no load",
        method: AccuracyTest::PosixTimer,
        interval_us: 500,
        loops: 100_000,
        loaded: false,
        printed: Kernels { vanilla: None, hrt5: all(8, 119, 22), rt12: all(12, 78, 16) },
    },
    AccuracyTable {
        id: "8.1.8",
        title: "POSIX interval timer, interval 500 us, 100 % load",
        method: AccuracyTest::PosixTimer,
        interval_us: 500,
        loops: 100_000,
        loaded: true,
        printed: Kernels { vanilla: None, hrt5: all(16, 489, 58), rt12: all(12, 95, 29) },
    },
];
