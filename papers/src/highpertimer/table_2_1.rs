//! Table 2.1 and Figure 2.1: the TSC by `rdtsc` and by `rdtscp`.

use super::INTEL;
use super::reads::{Difference, LocalReads, ReadMethod, ReadSource, ReadTable, Unit};
use super::sentences::{deviations, more, times};

pub(super) const TABLE: ReadTable = ReadTable {
    id: "2.1",
    title: "Cost of reading the TSC by RDTSC and by RDTSCP",
    machine: INTEL,
    unit: Unit::Nanoseconds,
    subjects: &[
        ReadSource { name: "RDTSC", read: ReadMethod::Rdtsc, mean: 10.2031, deviation: 20.9812 },
        ReadSource { name: "RDTSCP", read: ReadMethod::Rdtscp, mean: 16.9097, deviation: 21.8443 },
    ],
    difference: Some(Difference { printed_ns: 6.7067, first: 0, second: 1 }),
    decisions: |_| Vec::new(),
    explain,
    notes: &[
        "The thesis lists the processor at 1600 MHz, an idle frequency of one of 3.4 GHz; at which \
         frequency it was measured is not known, so no cost in cycles follows from its numbers.",
        "Table 2.4 has the same mean for the TSC (16.9091) with a standard deviation of 33.1484 \
         instead of 21.8443: that number belongs to a run, not to a source.",
    ],
};

fn explain(here: &LocalReads) -> String {
    let both = here.costs(ReadMethod::Rdtsc).zip(here.costs(ReadMethod::Rdtscp));
    let printed =
        here.printed_mean_ns(ReadMethod::Rdtsc).zip(here.printed_mean_ns(ReadMethod::Rdtscp));
    let (Some((rdtsc, rdtscp)), Some((rdtsc_there, rdtscp_there))) = (both, printed) else {
        return "The TSC could not be read here in both ways, so nothing can be compared.".into();
    };
    format!(
        "RDTSCP waits until earlier instructions have finished: by the medians it costs {} than \
         RDTSC here, and {} by the means there. RDTSC takes {} and RDTSCP {} the thesis' time, \
         each the fixed cost of an instruction, of another processor. {}",
        more(rdtscp.median_ns - rdtsc.median_ns),
        more(rdtscp_there - rdtsc_there),
        times(rdtsc.median_ns, rdtsc_there),
        times(rdtscp.median_ns, rdtscp_there),
        deviations(here)
    )
}
