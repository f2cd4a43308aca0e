//! The table of time sources, for people.

use std::fmt::Write;

use hourglass_documents::clocks::{ClockDeviceFacts, ClocksDocument, SourceFacts};

use super::Style;
use super::table::{NARROW, TextCell, TextStyle, TextTable, paint, wrapped_within};
use crate::clean;

/// What one column means, and where to find more.
const BOUND: &str =
    "bound: of one comparison with CLOCK_MONOTONIC; --watch shows that of the running
clock, --evidence what speaks for and against each source\n\n";

/// The time sources of a machine: a table, why each is trusted or not, and, if `evidence`, item
/// by item what was found; then the offsets between CPUs.
#[must_use]
pub fn clocks(document: &ClocksDocument, evidence: bool, style: Style) -> String {
    let mut out = String::new();
    let chosen =
        clean::for_terminal(&format!("{} by policy {}", document.selected, document.policy));
    out.push_str(&paint(&chosen, TextStyle::Heading, style));
    let reason = format!(": {}", clean::for_terminal(&document.reason));
    out.push_str(&wrapped_within(NARROW, &reason, chosen.chars().count(), 2));
    out.push_str("\n\n");
    let (there, missing): (Vec<_>, Vec<_>) = document.sources.iter().partition(|s| s.available);
    table(&there).write(&mut out, style);
    out.push_str(BOUND);
    not_trusted(&mut out, &there);
    // Writing to a string cannot fail.
    for source in &missing {
        let why = wrapped_within(NARROW, &format!("not available: {}", why_not(source)), 17, 17);
        let _ = writeln!(out, "{:<16} {why}", source.name);
    }
    for source in there.iter().filter(|source| evidence || source.name == document.selected) {
        let reason = format!("{}: {}", source.name, clean::for_terminal(&source.reason));
        let _ = writeln!(out, "\n{}", wrapped_within(NARROW, &reason, 0, 2));
        for item in &source.evidence {
            let found = wrapped_within(NARROW, &clean::for_terminal(&item.found), 36, 36);
            let _ = writeln!(out, "  {:<8} {:<24} {found}", item.verdict, item.id);
        }
    }
    for pair in &document.cross_cpu {
        let (a, b, lo, hi) = (pair.a, pair.b, pair.offset_lo_ns, pair.offset_hi_ns);
        let _ = match lo > hi {
            true => writeln!(out, "\nCPU {b} against CPU {a}: the rounds contradict each other"),
            false => writeln!(out, "\nCPU {b} against CPU {a}: from {lo} to {hi} ns ahead"),
        };
    }
    if let Some(found) = &document.monotonicity {
        let _ = writeln!(
            out,
            "\n{} reads handed between {} CPUs: {} backwards",
            found.reads, found.cpus, found.violations
        );
    }
    out
}

/// What one column of clock devices means.
const OFF: &str = "skew: of the resolution granted from the one asked for; ticks: periods that
passed in 0.1 s or 3 of them, also where several ended in one wait; mean:
distance of ticks; off: of single intervals from the resolution, half of them
and the worst, since the thread that serves a device is woken late\n";

/// The clock devices of a machine, and how they tick.
#[must_use]
pub fn clock_devices(devices: &[ClockDeviceFacts], style: Style) -> String {
    let available: Vec<_> = devices.iter().filter(|device| device.available).collect();
    let table = TextTable::of("Clock devices, us", &available)
        .text("device", |device| device.name.as_str())
        .number("shortest", |device| device.shortest_ns.map(us))
        .number("longest", |device| device.longest_ns.map(us))
        .number("granted", |device| device.granted_ns.map(us))
        .number("skew", |device| device.skew_ns.map(us))
        .number("ticks", |device| device.ticks.to_string())
        .number("mean", |device| device.mean_ns.map(us))
        .number("off p50", |device| device.off_p50_ns.map(|ns| us(ns as f64)))
        .number("off max", |device| device.off_max_ns.map(|ns| us(ns as f64)))
        .table();
    let mut out = String::from("\n");
    table.write(&mut out, style);
    out.push_str(OFF);
    let reasons = devices.iter().map(|device| (device.reason.as_str(), device.name.as_str()));
    for (reason, names) in by_reason(reasons) {
        let said = clean::for_terminal(&format!("{}: {reason}", names.join(", ")));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", wrapped_within(NARROW, &said, 0, 2));
    }
    out
}

fn why_not(source: &SourceFacts) -> String {
    let remedy = if source.remedy.is_empty() { "" } else { "; " };
    clean::for_terminal(&format!("{}{remedy}{}", source.reason, source.remedy))
}

/// Why sources that can be read are not trusted: each reason once, with all that have it.
fn not_trusted(out: &mut String, sources: &[&SourceFacts]) {
    let untrusted = sources.iter().filter(|source| !source.trusted);
    let reasons = by_reason(untrusted.map(|source| (source.reason.as_str(), source.name.as_str())));
    if reasons.is_empty() {
        return;
    }
    out.push_str("Not trusted:\n");
    for (reason, names) in reasons {
        let said = clean::for_terminal(&format!("{reason} ({})", names.join(", ")));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {}", wrapped_within(NARROW, &said, 2, 4));
    }
    out.push('\n');
}

/// Each reason once, with all that have it; an empty one is no reason.
fn by_reason<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (reason, name) in all.filter(|(reason, _)| !reason.is_empty()) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons
}

/// A number in a column that has to fit 80: no digits behind the point of what is long.
fn fitting(value: f64) -> String {
    let digits = if value < 999.95 { 1 } else { 0 };
    format!("{value:.digits$}")
}

/// Microseconds; of long times whole seconds.
fn us(ns: f64) -> String {
    match ns / 1e3 {
        us if us >= 1e7 => format!("{:.0}s", us / 1e6),
        us => fitting(us),
    }
}

/// Numbers and single words only, so that no cell needs a second line on any machine.
fn table(sources: &[&SourceFacts]) -> TextTable {
    TextTable::of("Sources, ns", sources)
        .text("source", |source| source.name.as_str())
        .text("trusted", |source| match source.trusted {
            true => TextCell::toned("yes", TextStyle::Good),
            false => "no".into(),
        })
        .number("MHz", |source| source.frequency_hz.map(|hz| format!("{:.3}", hz / 1e6)))
        .number("step", |source| source.resolution_ns.map(fitting))
        .number("read", |source| source.read_p50_ns.map(fitting))
        .number("p99", |source| source.read_p99_ns.map(fitting))
        .number("bound", |source| source.error_bound_ns.map(|ns| format!("{ns:.0}")))
        .table()
}

#[cfg(test)]
mod tests {
    use hourglass_documents::clocks::SourceEvidence;

    use super::*;

    fn source(name: &str, reason: &str, ns: [f64; 4]) -> SourceFacts {
        SourceFacts {
            name: name.to_owned(),
            available: true,
            trusted: reason.is_empty(),
            reason: reason.to_owned(),
            remedy: String::new(),
            evidence: Vec::new(),
            rating: None,
            width_bits: None,
            mult: None,
            shift: None,
            frequency_hz: Some(2_445_421_337.0),
            resolution_ns: Some(ns[0]),
            read_p50_ns: Some(ns[1]),
            read_p99_ns: Some(ns[2]),
            error_bound_ns: Some(ns[3]),
        }
    }

    const KVM: &str =
        "kernel_clocksource: the kernel keeps time with kvm-clock and not with this counter";
    const SLOW: &str = "read_cost: a read takes 41250.0 ns, so that it is emulated";
    const SET: &str = "settable: it may be set, and jumps then";

    /// Guests whose numbers and reasons are longer than those of a quiet PC.
    fn guest(reason: &str) -> ClocksDocument {
        let named = |id: &str, found: &str| SourceEvidence {
            id: id.to_owned(),
            found: found.to_owned(),
            verdict: "neutral".to_owned(),
        };
        let mut monotonic = source("monotonic", "", [1.0, 1_250.4, 141_250.0, 1.0]);
        monotonic.evidence = vec![
            named(
                "available_clocksources",
                "hyperv_clocksource_tsc_page hyperv_clocksource_msr acpi_pm tsc-early",
            ),
            named("kernel_flags", "constant_tsc nonstop_tsc tsc_reliable tsc_known_freq art"),
        ];
        ClocksDocument {
            schema: "hourglass.clocks/1".to_owned(),
            selected: "monotonic".to_owned(),
            policy: "strict".to_owned(),
            reason:
                "no counter can be trusted, because the kernel itself does not use one as its clock"
                    .to_owned(),
            sources: vec![
                source("tsc", reason, [0.4, 41_250.0, 152_000.0, 2_250_000.0]),
                monotonic,
                source("realtime", SET, [1.0, 1_250.4, 1_312.0, 1.0]),
                source("realtime_coarse", SET, [10_000_000.0, 7.0, 99.96, 10_000_000.0]),
                source("monotonic_coarse", "", [10_000_000.0, 7.0, 8.0, 10_000_000.0]),
            ],
            cross_cpu: Vec::new(),
            monotonicity: None,
            watch: None,
            utc: None,
            utc_watch: Vec::new(),
            devices: None,
        }
    }

    /// Numbers that need every digit there may be, and each reason once.
    #[test]
    fn a_clock_device_is_one_row() {
        let refused = |name: &str| ClockDeviceFacts {
            name: name.to_owned(),
            available: true,
            reason: "no period within 1us of 10us".to_owned(),
            ..ClockDeviceFacts::default()
        };
        let slow = ClockDeviceFacts {
            name: "baseline".to_owned(),
            available: true,
            shortest_ns: Some(122_070.3),
            longest_ns: Some(1.759_2e13),
            granted_ns: Some(500_000_000.0),
            skew_ns: Some(499_000_000.0),
            ticks: 1_000,
            mean_ns: Some(500_000_100.0),
            off_p50_ns: Some(12_345_678),
            off_max_ns: Some(912_345_678),
            ..ClockDeviceFacts::default()
        };
        let text = clock_devices(&[slow, refused("timerfd"), refused("posix")], Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
        assert!(text.contains("\nbaseline     122.1   17592s   500000"), "{text}");
        assert!(text.ends_with("timerfd, posix: no period within 1us of 10us\n"), "{text}");
    }

    /// The bug: the last column had what the others left, so that with kvm-clock, and where reads are
    /// slow, `kernel_clocksource` was broken into three lines.
    #[test]
    fn a_source_is_one_row_on_any_machine() {
        for reason in [KVM, SLOW, "the thesis does not consider it"] {
            let text = clocks(&guest(reason), true, Style::Plain);
            let rows = text.lines().skip_while(|line| !line.starts_with("source "));
            let rows: Vec<&str> = rows.skip(1).take_while(|line| !line.is_empty()).collect();
            let names: Vec<&str> =
                rows.iter().filter_map(|row| row.split_whitespace().next()).collect();
            let sources = ["tsc", "monotonic", "realtime", "realtime_coarse", "monotonic_coarse"];
            assert_eq!(names, sources, "{text}");
            assert!(rows.iter().all(|row| row.split_whitespace().count() == 7), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
        }
    }

    #[test]
    fn reasons_are_whole_and_stand_once() {
        let text = clocks(&guest(KVM), false, Style::Plain);
        let words: Vec<&str> = text.split_whitespace().collect();
        let joined = words.join(" ");
        assert!(joined.contains(&format!("{KVM} (tsc)")), "{text}");
        assert!(joined.contains(&format!("{SET} (realtime, realtime_coarse)")), "{text}");
        let trusted = clocks(&guest(""), false, Style::Plain);
        assert!(!trusted.contains("(tsc)"), "{trusted}");
    }
}
