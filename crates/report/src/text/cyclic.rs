//! Wake-up latencies in the form that readers and parsers of cyclictest know.
//!
//! The lines are those of cyclictest(8): status lines, the histogram of `-h`, samples of `-v`. What
//! it does not have stands in comment lines (`#`), which its parsers skip.

use std::fmt::Write;

/// A thread that wakes up periodically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CyclicThread {
    /// Its number, from 0.
    pub id: u32,
    /// The kernel's number of it.
    pub tid: u32,
    /// Its real-time priority; 0 without.
    pub priority: u8,
    /// Its period, us.
    pub interval_us: u64,
    /// Wake-ups.
    pub count: u64,
    /// The least late, ns.
    pub min_ns: u64,
    /// The last, ns.
    pub last_ns: u64,
    /// Average, ns.
    pub mean_ns: u64,
    /// The latest, ns.
    pub max_ns: u64,
}

/// A thread's histogram of equal steps.
#[derive(Clone, Copy, Debug)]
pub struct CyclicSteps<'a> {
    /// How many wake-ups fell into each step.
    pub counts: &'a [u64],
    pub beyond: u64,
    /// Which ones those were, as far as they are known.
    pub beyond_at: &'a [u64],
}

/// Whether times are in microseconds or in nanoseconds (`-N`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CyclicUnit {
    /// Microseconds, rounded down.
    #[default]
    Micros,
    Nanos,
}

impl CyclicUnit {
    /// `ns` in this unit.
    #[must_use]
    pub fn of(self, ns: u64) -> u64 {
        match self {
            CyclicUnit::Micros => ns / 1_000,
            CyclicUnit::Nanos => ns,
        }
    }
}

/// The status line of a thread, without its end.
#[must_use]
pub fn cyclic_status(thread: &CyclicThread, unit: CyclicUnit) -> String {
    let CyclicThread { id, tid, priority, interval_us, count, .. } = thread;
    let [min, act, avg, max] =
        [thread.min_ns, thread.last_ns, thread.mean_ns, thread.max_ns].map(|ns| unit.of(ns));
    let wide = if unit == CyclicUnit::Nanos { 8 } else { 5 };
    format!(
        "T:{id:2} ({tid:5}) P:{priority:2} I:{interval_us} C:{count:7} Min:{min:7} \
         Act:{act:wide$} Avg:{avg:wide$} Max:{max:8}"
    )
}

/// A comment line with one number a thread, five digits wide as those of the histogram:
/// `# Max Latencies: 00044 00075`.
#[must_use]
pub fn cyclic_row(label: &str, numbers: impl IntoIterator<Item = u64>) -> String {
    let mut line = format!("# {label}:");
    for number in numbers {
        // Text into a string does not fail; here and below.
        let _ = write!(line, " {number:05}");
    }
    line.push('\n');
    line
}

/// The histogram of `-h`; with `sums`, of `-H`, whose last column is all threads together.
#[must_use]
pub fn cyclic_histogram(
    threads: &[CyclicThread],
    steps: &[CyclicSteps<'_>],
    unit: CyclicUnit,
    sums: bool,
) -> String {
    let sums = sums && threads.len() > 1;
    let mut out = String::from("# Histogram\n");
    let rows = steps.iter().map(|steps| steps.counts.len()).max().unwrap_or(0);
    for row in 0..rows {
        let counts = steps.iter().map(|steps| steps.counts.get(row).copied().unwrap_or(0));
        let _ = write!(out, "{row:06} ");
        columns(&mut out, "\t", 6, counts, sums);
        out.push('\n');
    }
    out.push_str("# Total: ");
    columns(&mut out, " ", 9, steps.iter().map(|s| s.counts.iter().sum()), sums);
    out.push('\n');
    let row = |label: &str, of: &dyn Fn(&CyclicThread) -> u64| {
        cyclic_row(label, threads.iter().map(|thread| unit.of(of(thread))))
    };
    out.push_str(&row("Min Latencies", &|thread| thread.min_ns));
    out.push_str(&row("Avg Latencies", &|thread| thread.mean_ns));
    out.push_str(&row("Max Latencies", &|thread| thread.max_ns));
    out.push_str(&cyclic_row("Histogram Overflows", steps.iter().map(|steps| steps.beyond)));
    out.push_str("# Histogram Overflow at cycle number:\n");
    for (thread, steps) in threads.iter().zip(steps) {
        let _ = write!(out, "# Thread {}:", thread.id);
        steps.beyond_at.iter().for_each(|at| {
            let _ = write!(out, " {at:05}");
        });
        let others = steps.beyond.saturating_sub(steps.beyond_at.len() as u64);
        if others > 0 {
            let _ = write!(out, " # {others:05} others");
        }
        out.push('\n');
    }
    out
}

fn columns(
    out: &mut String,
    between: &str,
    wide: usize,
    numbers: impl Iterator<Item = u64>,
    sums: bool,
) {
    let mut sum = 0u64;
    for (place, number) in numbers.enumerate() {
        let _ = write!(out, "{}{number:0wide$}", if place == 0 { "" } else { between });
        sum = sum.saturating_add(number);
    }
    if sums {
        let _ = write!(out, "{between}{sum:0wide$}");
    }
}

/// A sample of `-v`: number of the thread, number of the sample, latency.
#[must_use]
pub fn cyclic_sample(thread: u32, number: u64, ns: u64, unit: CyclicUnit) -> String {
    format!("{thread:8}:{number:8}:{:8}\n", unit.of(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: CyclicThread = CyclicThread {
        id: 0,
        tid: 17_333,
        priority: 80,
        interval_us: 1_000,
        count: 200,
        min_ns: 14_900,
        last_ns: 18_100,
        mean_ns: 38_000,
        max_ns: 1_355_000,
    };

    /// As cyclictest 2.4 printed it.
    #[test]
    fn status_lines() {
        assert_eq!(
            cyclic_status(&FIRST, CyclicUnit::Micros),
            "T: 0 (17333) P:80 I:1000 C:    200 Min:     14 Act:   18 Avg:   38 Max:    1355"
        );
        assert_eq!(
            cyclic_status(&FIRST, CyclicUnit::Nanos),
            "T: 0 (17333) P:80 I:1000 C:    200 Min:  14900 Act:   18100 Avg:   38000 Max: 1355000"
        );
    }

    /// The layout of cyclictest 2.4 with `-H`: its own columns, numbers and comments.
    #[test]
    fn histograms() {
        let second = CyclicThread { id: 1, tid: 17_334, max_ns: 75_000, ..FIRST };
        let steps = [
            CyclicSteps { counts: &[0, 56], beyond: 3, beyond_at: &[65, 70] },
            CyclicSteps { counts: &[1, 51], beyond: 0, beyond_at: &[] },
        ];
        let text = cyclic_histogram(&[FIRST, second], &steps, CyclicUnit::Micros, true);
        let wanted = "\
# Histogram
000000 000000\t000001\t000001
000001 000056\t000051\t000107
# Total: 000000056 000000052 000000108
# Min Latencies: 00014 00014
# Avg Latencies: 00038 00038
# Max Latencies: 01355 00075
# Histogram Overflows: 00003 00000
# Histogram Overflow at cycle number:
# Thread 0: 00065 00070 # 00001 others
# Thread 1:
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn samples() {
        assert_eq!(cyclic_sample(0, 4, 17_900, CyclicUnit::Micros), "       0:       4:      17\n");
    }
}
