//! Table 2.4 and Figure 2.4: the TSC, and a `clock_gettime` that reads it.

use super::INTEL;
use super::reads::{Difference, LocalReads, ReadMethod, ReadSource, ReadTable, Unit};
use super::selection_rule::OS;
use super::sentences::{deviations, more, os_against_tsc, sentence, times};

pub(super) const TABLE: ReadTable = ReadTable {
    id: "2.4",
    title: "Cost of reading the TSC and of clock_gettime, Intel Core i7",
    machine: INTEL,
    unit: Unit::Nanoseconds,
    subjects: &[
        ReadSource { name: "TSC", read: ReadMethod::Rdtscp, mean: 16.9091, deviation: 33.1484 },
        ReadSource { name: "OS", read: OS, mean: 31.2322, deviation: 45.0567 },
    ],
    difference: Some(Difference { printed_ns: 14.323, first: 0, second: 1 }),
    decisions: |_| Vec::new(),
    explain,
    notes: &[
        "Section 2.3.3 says Table 2.3 and Figure 2.3 where it means Table 2.4 and Figure 2.4, and \
         gives the TSC's mean of 16.9091 ns once as 16 and once as 17 ns.",
        "The OS row is that of CLOCK_REALTIME in Table 2.2, although section 2.3.2 has just \
         chosen CLOCK_MONOTONIC; with that clock the difference would be 17.2 ns. Measured here is \
         CLOCK_MONOTONIC.",
        "The TSC's row is RDTSCP of Table 2.1 by its mean, but not by its deviation (21.8443).",
    ],
};

fn explain(here: &LocalReads) -> String {
    let both = here.costs(ReadMethod::Rdtscp).zip(here.costs(OS));
    let printed = here.printed_mean_ns(ReadMethod::Rdtscp).zip(here.printed_mean_ns(OS));
    let (Some((tsc, os)), Some((tsc_there, os_there))) = (both, printed) else {
        return format!("{} {}", sentence(&os_against_tsc(here)), deviations(here));
    };
    format!(
        "{} The call, the conversion to nanoseconds and the check that the kernel changed nothing \
         meanwhile make {} here and {} there; the whole takes {} the thesis' time, the read of \
         the TSC alone {}. {}",
        sentence(&os_against_tsc(here)),
        more(os.median_ns - tsc.median_ns),
        more(os_there - tsc_there),
        times(os.median_ns, os_there),
        times(tsc.median_ns, tsc_there),
        deviations(here)
    )
}
