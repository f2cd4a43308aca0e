//! Interruptions of busy threads in the form that readers and parsers of oslat know: a column for
//! each CPU.

use std::fmt::Write;

/// Digits of a count in a row.
const LABEL: usize = 12;

/// What was found on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct NoiseCpu<'a> {
    pub cpu: u32,
    /// How many gaps fell into each step, from 0 on.
    pub counts: &'a [u64],
    /// How many were longer than all steps.
    pub beyond: u64,
    pub gaps: u64,
    /// Median, 99 and 99.9 of 100, and the longest, ns.
    pub lengths_ns: [u64; 4],
    /// Sum, ns.
    pub lost_ns: u64,
    /// How long was looked, ns.
    pub wall_ns: u64,
    /// Gaps shorter than this were not counted, ns.
    pub threshold_ns: u64,
}

/// The table of a noise test. Step N of `width_ns` holds gaps from N to N+1 widths, and stands as
/// N+1, as oslat has it; the last row holds all that were longer, too. With `zero_omit`, rows
/// without any gap are left out.
#[must_use]
pub fn noise(cpus: &[NoiseCpu<'_>], width_ns: u64, zero_omit: bool) -> String {
    let mut out = String::new();
    let row = |out: &mut String, label: &str, cells: Vec<String>, unit: &str| {
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        // Text into a string does not fail.
        let _ = writeln!(out, "{label:>LABEL$}:\t {}{unit}", cells.join(" "));
    };
    let each = |of: &dyn Fn(&NoiseCpu<'_>) -> String| cpus.iter().map(of).collect::<Vec<_>>();
    row(&mut out, "Core", each(&|cpu| cpu.cpu.to_string()), "");
    row(&mut out, "Threshold", each(&|cpu| cpu.threshold_ns.to_string()), "ns");
    let rows = cpus.iter().map(|cpu| cpu.counts.len()).max().unwrap_or(0);
    for number in 0..rows {
        let last = number + 1 == rows;
        let count = |cpu: &NoiseCpu<'_>| {
            let own = cpu.counts.get(number).copied().unwrap_or(0);
            own.saturating_add(if last { cpu.beyond } else { 0 })
        };
        if zero_omit && cpus.iter().all(|cpu| count(cpu) == 0) {
            continue;
        }
        let end_ns = width_ns.saturating_mul(number as u64 + 1);
        let label = match width_ns % 1_000 {
            0 => format!("{:03} (us)", end_ns / 1_000),
            _ => format!("{end_ns:06} (ns)"),
        };
        let unit = if last { "including overflows" } else { "" };
        row(&mut out, &label, each(&|cpu| count(cpu).to_string()), unit);
    }
    row(&mut out, "Gaps", each(&|cpu| cpu.gaps.to_string()), "");
    for (place, label) in ["Median", "99%", "99.9%", "Maximum"].into_iter().enumerate() {
        row(&mut out, label, each(&|cpu| micros(cpu.lengths_ns[place])), "us");
    }
    let average = |cpu: &NoiseCpu<'_>| micros(cpu.lost_ns.checked_div(cpu.gaps).unwrap_or(0));
    row(&mut out, "Average", each(&average), "us");
    row(&mut out, "Lost", each(&|cpu| per_cent(cpu.lost_ns, cpu.wall_ns)), "%");
    row(&mut out, "Duration", each(&|cpu| millis(cpu.wall_ns)), "sec");
    out
}

/// Microseconds with three decimals, as oslat has them: gaps shorter than one are no rarity.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// Seconds with three decimals, rounded down.
fn millis(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000_000)
}

/// `part` of `whole` in per cent with three decimals, rounded.
fn per_cent(part: u64, whole: u64) -> String {
    let whole = u128::from(whole.max(1));
    let parts = (u128::from(part) * 100_000 + whole / 2) / whole;
    format!("{}.{:03}", parts / 1_000, parts % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of oslat 2.4, with those it does not have.
    #[test]
    fn a_column_for_each_cpu() {
        let first = NoiseCpu {
            cpu: 1,
            counts: &[5, 0, 2],
            beyond: 3,
            gaps: 10,
            lengths_ns: [700, 50_010, 51_000, 107_990],
            lost_ns: 300_000,
            wall_ns: 1_996_400_000,
            threshold_ns: 60,
        };
        let second = NoiseCpu { cpu: 2, counts: &[1, 0, 0], beyond: 0, ..first };
        let wanted = "        Core:\t 1 2
   Threshold:\t 60 60 (ns)
    001 (us):\t 5 1
    003 (us):\t 5 0 (including overflows)
        Gaps:\t 10 10
      Median:\t 0.700 0.700 (us)
         99%:\t 50.010 50.010 (us)
       99.9%:\t 51.000 51.000 (us)
     Maximum:\t 107.990 107.990 (us)
     Average:\t 30.000 30.000 (us)
        Lost:\t 0.015 0.015 (%)
    Duration:\t 1.996 1.996 (sec)
";
        assert_eq!(noise(&[first, second], 1_000, true), wanted);
        assert!(noise(&[first], 1_000, false).contains("    002 (us):\t 0\n"));
        assert!(noise(&[first], 100, false).contains(" 000200 (ns):\t 0\n"));
    }
}
