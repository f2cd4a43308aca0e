//! Clauses about what differs between the thesis' machine and this one.

use super::reads::{LocalReads, ReadMethod};
use super::selection_rule::OS;
use hourglass_documents::paper::MachineFacts;

pub(super) use super::super::sentences::{more, sentence, time, times};

/// Clock sources of the kernel that the C library reads without entering the kernel.
const READ_IN_USER_SPACE: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// What `clock_gettime` reads here, and from where.
pub(super) fn what_the_kernel_reads(machine: &MachineFacts) -> String {
    match machine.clock_source.as_deref() {
        Some(name) if READ_IN_USER_SPACE.contains(&name) => {
            format!("the kernel keeps time with {name}, which is read in user space")
        }
        Some(name) => format!("the kernel keeps time with {name}, which takes a system call"),
        None => "the kernel does not say what it keeps time with".into(),
    }
}

/// What the unfiltered deviations, and with them the means, consist of.
pub(super) fn deviations(here: &LocalReads) -> String {
    let subjects = here.table.subjects.iter().zip(here.found);
    let measured = subjects.filter_map(|(subject, found)| Some((subject.name, found.costs()?)));
    let widest = measured.max_by(|a, b| a.1.deviation_ns.total_cmp(&b.1.deviation_ns));
    let Some((name, costs)) = widest else { return String::new() };
    if costs.deviation_ns <= 2.0 * costs.calm_deviation_ns {
        return "The standard deviations are of all reads, as in the thesis.".into();
    }
    let mean = match costs.mean_ns - costs.median_ns {
        above if above > MUCH * costs.median_ns => {
            format!(", and its mean lies {} above its median for them", time(above))
        }
        _ => String::new(),
    };
    format!(
        "The standard deviations are of all reads, as in the thesis, and count interruptions: \
         {name} deviates by {}, but up to its 99th percentile by {}{mean}; its dearest read took \
         {}.",
        time(costs.deviation_ns),
        time(costs.calm_deviation_ns),
        time(costs.greatest_ns)
    )
}

/// By this part of the median a mean may lie above it before that is worth a word.
const MUCH: f64 = 0.1;

/// The costs of the OS clock against those of the TSC, here and in the thesis.
pub(super) fn os_against_tsc(here: &LocalReads) -> String {
    let printed = here.printed_mean_ns(OS).zip(here.printed_mean_ns(ReadMethod::Rdtscp));
    let there = printed.map_or(String::new(), |(os, tsc)| times(os, tsc));
    let reads = what_the_kernel_reads(here.machine);
    match here.costs(OS).zip(here.costs(ReadMethod::Rdtscp)) {
        Some((os, tsc)) => format!(
            "by the medians the OS clock costs {} the TSC here, and {there} by the means there: \
             {reads}",
            times(os.median_ns, tsc.median_ns)
        ),
        None => format!(
            "one of TSC and OS clock could not be read here; there the OS clock costs {there} the \
             TSC; {reads}"
        ),
    }
}

/// The HPET against the thesis' one, or that the machine has no HPET.
pub(super) fn hpet(here: &LocalReads) -> String {
    match here.costs(ReadMethod::Hpet).zip(here.printed_mean_ns(ReadMethod::Hpet)) {
        Some((hpet, printed)) => format!(
            "the HPET takes {} the thesis' time, a load from a device on either machine",
            times(hpet.mean_ns, printed)
        ),
        None => "the HPET could not be read here".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_sources_by_where_they_are_read() {
        let reads = |name: &str| {
            let clock_source = Some(name.to_owned());
            what_the_kernel_reads(&MachineFacts { clock_source, ..MachineFacts::default() })
        };
        assert!(reads("tsc").ends_with("in user space"));
        assert!(reads("hpet").ends_with("takes a system call"));
        assert!(what_the_kernel_reads(&MachineFacts::default()).contains("does not say"));
    }
}
