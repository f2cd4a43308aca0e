//! Table 2.2 and Figure 2.2: `clock_gettime` of two clocks.

use hourglass_sys::clock::ClockId;

use super::INTEL;
use super::reads::{Difference, LocalReads, ReadMethod, ReadSource, ReadTable, Unit};
use super::selection_rule::OS;
use super::sentences::{deviations, more, times, what_the_kernel_reads};

const REALTIME: ReadMethod = ReadMethod::Clock(ClockId::Realtime);

pub(super) const TABLE: ReadTable = ReadTable {
    id: "2.2",
    title: "Cost of clock_gettime of CLOCK_REALTIME and CLOCK_MONOTONIC",
    machine: INTEL,
    unit: Unit::Nanoseconds,
    subjects: &[
        ReadSource { name: "CLOCK_REALTIME", read: REALTIME, mean: 31.232, deviation: 45.056 },
        ReadSource { name: "CLOCK_MONOTONIC", read: OS, mean: 34.119, deviation: 53.927 },
    ],
    difference: Some(Difference { printed_ns: 2.887, first: 0, second: 1 }),
    decisions: |_| Vec::new(),
    explain,
    notes: &[
        "The thesis calls CLOCK_REALTIME the more precise of the two. A smaller deviation of what \
         a read costs is no precision of the clock, and this one is unfiltered.",
        "It then takes CLOCK_MONOTONIC for its OS timer; yet the OS row of Table 2.4 (31.2322 and \
         45.0567) is this table's CLOCK_REALTIME.",
    ],
};

fn explain(here: &LocalReads) -> String {
    let both = here.costs(REALTIME).zip(here.costs(OS));
    let printed = here.printed_mean_ns(REALTIME).zip(here.printed_mean_ns(OS));
    let (Some((real, monotonic)), Some((real_there, monotonic_there))) = (both, printed) else {
        return "One of the clocks could not be read here, so nothing can be compared.".into();
    };
    format!(
        "CLOCK_MONOTONIC costs {} than CLOCK_REALTIME here, by the medians {}, and {} there: \
         until 2012 the kernel's code in user space computed the one from the other at every read; \
         since then it keeps a base for each, and what remains is disturbance. By its median \
         CLOCK_REALTIME takes {} the thesis' time; {}. {}",
        more(monotonic.mean_ns - real.mean_ns),
        more(monotonic.median_ns - real.median_ns),
        more(monotonic_there - real_there),
        times(real.median_ns, real_there),
        what_the_kernel_reads(here.machine),
        deviations(here)
    )
}
