//! Table 2.3 and Figure 2.3: the HPET, and a `clock_gettime` that reads it.

use super::AMD;
use super::reads::{Difference, LocalReads, ReadMethod, ReadSource, ReadTable, Unit};
use super::selection_rule::OS;
use super::sentences::{deviations, hpet, more, sentence, times, what_the_kernel_reads};

pub(super) const TABLE: ReadTable = ReadTable {
    id: "2.3",
    title: "Cost of reading the HPET and of clock_gettime, AMD Athlon",
    machine: AMD,
    unit: Unit::Microseconds,
    subjects: &[
        ReadSource { name: "HPET", read: ReadMethod::Hpet, mean: 1.1125, deviation: 0.3073 },
        ReadSource { name: "OS", read: OS, mean: 1.1294, deviation: 0.3582 },
    ],
    difference: Some(Difference { printed_ns: 16.9241, first: 0, second: 1 }),
    decisions: |_| Vec::new(),
    explain,
    notes: &[
        "Section 2.3.3 says Table 2.2 and Figure 2.2 where it means Table 2.3 and Figure 2.3.",
        "Table 3.2 has other numbers for the same processor: HPET 1.1179 and OS 1.1423 us, 24.4 \
         instead of 16.9 ns apart, with deviations of 0.3764 and 0.5292 instead of 0.3073 and \
         0.3582. The OS row moved by 12.9 ns between the two runs, so 17 ns between two rows say \
         little.",
        "The text calls the deviations very close to each other; by such deviations section 3.1 \
         decides.",
    ],
};

fn explain(here: &LocalReads) -> String {
    let Some(os) = here.costs(OS) else {
        return sentence(&hpet(here));
    };
    let os_there = here.printed_mean_ns(OS).unwrap_or(os.mean_ns);
    let reads = what_the_kernel_reads(here.machine);
    let by_hpet = here.machine.clock_source.as_deref() == Some("hpet");
    let first = match here.costs(ReadMethod::Hpet) {
        Some(found) if by_hpet => format!(
            "clock_gettime costs {} than the HPET that it reads: {reads}, since Linux gave up \
             reading an HPET in user space in 2016; {}",
            more(os.mean_ns - found.mean_ns),
            hpet(here)
        ),
        Some(found) => format!(
            "clock_gettime costs {} than the HPET, because it does not read it as on the Athlon: \
             {reads}; {}",
            more(os.mean_ns - found.mean_ns),
            hpet(here)
        ),
        None => format!(
            "{}, so there is no difference to show; clock_gettime takes {} the Athlon's time, \
             where it read the HPET, while here {reads}",
            hpet(here),
            times(os.median_ns, os_there)
        ),
    };
    format!("{} {}", sentence(&first), deviations(here))
}
