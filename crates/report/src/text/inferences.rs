//! What was inferred from a trace, for people.
//!
//! Owns: which numbers the summary shows and how; shares of the CPU stand with the threads already.

use hourglass_documents::Inference;
use hourglass_documents::inference::InferenceBasis;

use super::table::TextTable;
use crate::clean;
use crate::units::rounded;

/// Times with a fastest, a typical and a median one: their names, and what they are for people.
const TIMES: [(&str, &str); 4] = [
    ("switch_cost_voluntary", "voluntary switch"),
    ("switch_cost_involuntary", "preemption"),
    // In which no thread ran: an interrupt, or what is below the kernel.
    ("interrupt_cost", "interruption"),
    ("quantum", "quantum"),
];

/// A table of costs and quanta, one row for each; `None` without a row.
pub(super) fn times(all: &[Inference]) -> Option<TextTable> {
    // Every cost has a fastest path and every quantum a mode; a median only where it means something.
    let first = |name: &str| if name == "quantum" { "mode" } else { "fastest" };
    let of = |(name, text)| {
        let own = all.iter().filter(move |i| i.name == name && i.statistic == first(name));
        own.map(move |i| (i, text))
    };
    let rows: Vec<(&Inference, &str)> = TIMES.into_iter().flat_map(of).collect();
    let find = |row: &Inference, statistic: &str| {
        let same = |i: &&Inference| i.name == row.name && i.thread == row.thread;
        all.iter().filter(same).find(|i| i.statistic == statistic)
    };
    let value = |row: &Inference, statistic| find(row, statistic).map(|found| time(found.value));
    let table = TextTable::of("Inferred from the trace", &rows)
        .elastic("what", |(_, text)| *text)
        .number("thread", |(row, _)| row.thread)
        .number("fastest", |(row, _)| value(row, "fastest"))
        .number("mode", |(row, _)| value(row, "mode"))
        .number("median", |(row, _)| value(row, "median"))
        .number("95 % interval", |(row, _)| find(row, "median").and_then(interval))
        .number("of", |(row, _)| counted(row))
        .narrow();
    (!table.is_empty()).then_some(table)
}

/// Number of the measured values, and of all values if some were set aside.
fn counted(first: &Inference) -> String {
    match first.set_aside {
        0 => first.count.to_string(),
        aside => format!("{} of {}", first.count, first.count.saturating_add(aside)),
    }
}

/// Both ends in one unit, where they have the same: `8.19 to 15.2 us`.
fn interval(median: &Inference) -> Option<String> {
    let (lo, hi) = median.ci_lo.zip(median.ci_hi)?;
    let (lo, hi) = (time(lo), time(hi));
    Some(match (lo.split_once(' '), hi.split_once(' ')) {
        (Some((low, unit)), Some((_, same))) if unit == same => format!("{low} to {hi}"),
        _ => format!("{lo} to {hi}"),
    })
}

/// Which rows of [`times`] follow from what was seen (section 4 keeps these apart); empty if none does.
pub(super) fn certain(all: &[Inference]) -> String {
    let named = |inference: &Inference| {
        let (_, text) = TIMES.iter().find(|(name, _)| *name == inference.name)?;
        let is_certain =
            inference.basis == InferenceBasis::Certain && inference.statistic == "fastest";
        let thread =
            inference.thread.map_or(String::new(), |thread| format!(" of thread {thread}"));
        is_certain.then(|| format!("{text}{thread}"))
    };
    let named: Vec<String> = all.iter().filter_map(named).collect();
    match named.is_empty() {
        true => String::new(),
        false => format!("{}; the other times inferred are statistical", named.join(", ")),
    }
}

fn time(ns: f64) -> String {
    rounded(ns.max(0.0).round() as u64)
}

/// Switches a second, if they were found: `250 a second (95 %: from 249 to 251)`.
pub(super) fn switches(all: &[Inference]) -> Option<String> {
    let rate = all.iter().find(|i| i.name == "switches" && i.statistic == "rate")?;
    let interval = rate.ci_lo.zip(rate.ci_hi);
    let interval = interval.map_or(String::new(), |(lo, hi)| {
        format!(" (95 %: from {} to {})", digits(lo), digits(hi))
    });
    Some(format!("{} a second{interval}", digits(rate.value)))
}

/// Interrupts a second and what they took, one line for each thread.
pub(super) fn interrupts(all: &[Inference]) -> Vec<String> {
    let of = |statistic: &'static str, thread| {
        let wanted = move |i: &&Inference| i.statistic == statistic && i.thread == thread;
        all.iter().filter(|i| i.name == "interrupts").find(wanted)
    };
    let rates = all.iter().filter(|i| i.name == "interrupts" && i.statistic == "rate");
    let line = |rate: &Inference| {
        let share = of("share", rate.thread)?.value * 100.0;
        let thread = rate.thread?;
        let (rate, share) = (digits(rate.value), digits(share));
        Some(format!("thread {thread}: {rate} a second, which take {share} % of its time"))
    };
    rates.filter_map(line).collect()
}

/// Wake-ups later than the limits of the paper's Table 1, one line for each thread that has such.
pub(super) fn late(all: &[Inference]) -> Vec<String> {
    let mut lines: Vec<(u32, Vec<String>)> = Vec::new();
    let found = all.iter().filter(|i| i.name == "dispatch_latency" && i.value > 0.0);
    for inference in found {
        let Some(limit) = inference.statistic.strip_prefix("later_than_") else { continue };
        let Some(thread) = inference.thread else { continue };
        let samples = (inference.value * inference.count as f64).round();
        let text = format!("{samples} later than {}", clean::for_terminal(limit));
        match lines.iter_mut().find(|(other, _)| *other == thread) {
            Some((_, texts)) => texts.push(text),
            None => lines.push((thread, vec![text])),
        }
    }
    lines.iter().map(|(thread, texts)| format!("thread {thread}: {}", texts.join(", "))).collect()
}

/// Three digits, or as many as there are before the point.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;

    fn inference(name: &str, thread: Option<u32>, statistic: &str, value: f64) -> Inference {
        Inference {
            name: name.to_owned(),
            thread,
            statistic: statistic.to_owned(),
            value,
            ci_lo: Some(value * 0.99),
            ci_hi: None,
            unit: "ns".to_owned(),
            count: 1_000,
            set_aside: 7,
            basis: InferenceBasis::Statistical,
        }
    }

    #[test]
    fn a_row_for_each_cost() {
        let all = [
            inference("switch_cost_involuntary", None, "fastest", 4_100.0),
            inference("switch_cost_involuntary", None, "mode", 5_210.0),
            inference("switch_cost_involuntary", None, "median", 5_500.0),
            inference("interrupt_cost", Some(3), "fastest", 2_000.0),
            inference("cpu_share", Some(3), "share", 0.5),
        ];
        let mut text = String::new();
        times(&all).unwrap().write(&mut text, Style::Plain);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2].join(" "), "preemption - 4.10 us 5.21 us 5.50 us - 1000 of 1007");
        assert_eq!(rows[3].join(" "), "interruption 3 2.00 us - - - 1000 of 1007");
        assert!(times(&all[4..]).is_none());
    }

    #[test]
    fn lines() {
        let mut rate = inference("switches", None, "rate", 250.0);
        assert_eq!(switches(&[rate.clone()]).unwrap(), "250 a second");
        rate.ci_hi = Some(252.5);
        assert_eq!(switches(&[rate]).unwrap(), "250 a second (95 %: from 248 to 252)");
        let late_ones = [
            inference("dispatch_latency", Some(0), "later_than_1ms", 0.012),
            inference("dispatch_latency", Some(0), "later_than_5ms", 0.001),
            inference("dispatch_latency", Some(0), "later_than_10ms", 0.0),
            inference("dispatch_latency", Some(0), "median", 9.0),
        ];
        assert_eq!(late(&late_ones), ["thread 0: 12 later than 1ms, 1 later than 5ms"]);
        let taken = [
            inference("interrupts", Some(2), "rate", 99.99),
            inference("interrupts", Some(2), "share", 0.005),
        ];
        assert_eq!(interrupts(&taken), ["thread 2: 100 a second, which take 0.50 % of its time"]);
    }
}
