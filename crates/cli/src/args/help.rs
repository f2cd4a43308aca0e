//! The help of `run`, put together from the options, the models, the timers and the priorities
//! that there are.

use std::fmt::Write;

use hourglass_documents::Policy;
use hourglass_documents::policy::PRIORITY_NAMES;

use super::options::GROUPS;
use crate::lab::{models, wake};
use crate::options::help::{WIDTH, heading, row, rows, stacked, wrapped};

/// One line that says what `run` does.
pub(crate) const ABOUT: &str =
    "Measure: run a workload and record when each of its threads got the CPU";

/// The forms of the command.
pub(crate) const USAGE: [&str; 2] =
    ["hourglass [run] [-n COUNT] [OPTIONS]", "hourglass run FILE.toml [OPTIONS]"];

/// How the options are read.
pub(crate) const ORDER: &str = "Options are read from left to right. Per-thread options are for \
    all threads until the first -t; of an option given twice for a thread, the last one counts. \
    Times carry their unit: 3m, 1.5s, 1020ms, 87.0us, 900ns. Long options also take their value \
    as --name=value. Options given with a FILE override the file.";

/// What AMOUNT of PERIODIC may be.
pub(crate) const AMOUNTS: &str = "AMOUNT of PERIODIC may be drawn for each period: \
    uniform:LOW,HIGH normal:MEAN,SD lognormal:MEAN,SD exponential:MEAN bimodal:A,B,SHARE_OF_B \
    table:FILE.csv (times in the first column).";

/// What priorities and reservations need of the machine.
pub(crate) const PRIVILEGES: &str = "Real-time priorities, reservations and explicit negative \
    NICE values need root or CAP_SYS_NICE; without it the run is refused with the line that \
    grants it, or runs degraded with --best-effort. HIGH and HIGHEST do not: for users who may \
    not raise a priority all named ones are lowered together, which keeps their ratios.";

/// A workload file.
pub(crate) const FILE: &str = "\
duration = \"5s\"          # also: records, ring, warm_up, seed, gap,
                         #       dma_latency_us, best_effort, trace,
                         #       max_latency, max_gap, max_misses, percentile,
                         #       stop_on_gap, stop_on_latency, on_hit
[[thread]]
workload = \"PERIODIC 3ms 8ms\"
priority = \"RTMED\"       # also: start, finish, gap, name
timer = \"HR\"

[[thread]]
count = 2                # two threads alike
workload = \"PERIODIC 17ms 33ms\"
reserve = { amount = \"17.1ms\", period = \"33ms\", soft = true }
cpu = \"0-1\"
";

/// Examples with what they show; all but the last six are from the paper.
pub(crate) const EXAMPLES: [(&str, &str); 11] = [
    (
        "hourglass -n 3 -d 5s -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH",
        "which thread gets the CPU? (section 3.1)",
    ),
    ("hourglass -d 60s -n 10 -a -p NORMAL -w CPU_YIELD 0.9ms", "cost of a context switch (5.1)"),
    ("hourglass -d 6m -n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i RTC", "dispatch latency (5.3)"),
    (
        "hourglass -n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms \
         33ms -i NATIVE",
        "will both meet their deadlines? (5.5)",
    ),
    (
        "hourglass -n 2 -t 0 -w PERIODIC 3ms 8ms -rh 3.1ms 8ms -t 1 -w PERIODIC 17ms 33ms -rh \
         17.1ms 33ms",
        "the same with reservations (5.6)",
    ),
    ("hourglass -n 1 -d 2s --cpu 1 -o quiet-run", "what disturbs CPU 1? Keep the run"),
    (
        "hourglass -n 1 -d 2s -w LAT 1ms -p RTHIGH --against '-i TICK:100' --rounds 10",
        "what does another timer change? Exit code 1 if it is worse",
    ),
    ("hourglass -n 1 -d 5s --cpu 0 --control", "which gaps are the platform's?"),
    (
        "hourglass example audio && hourglass run audio.toml -d 1m --json",
        "a first workload file, and its run as JSON",
    ),
    (
        "hourglass -n 1 -w GRID 1ms --max-latency 2ms --percentile p99=500us -q",
        "is this machine good enough? The exit code says it",
    ),
    ("hourglass -n 2 -d 1s | sort -g -k 5 | tail -1", "the record behind the longest gap"),
];

/// What is printed where.
pub(crate) const PRINTED: &str =
    "On a terminal, or with --summary, a summary; to a pipe, or with --records, these lines:";

/// The lines for scripts, and what they mean.
pub(crate) const LINES: [(&str, &str); 6] = [
    (
        "ID START FINISH DURATION GAP",
        "a record: thread ID ran from START to FINISH without a gap; GAP is the time since the \
         record before it, of any thread, on the same CPU. In ms with six decimals from the run's \
         start, sorted by START",
    ),
    (
        "cycles: ID START END DURATION GAP",
        "with -c: the same record in ticks of the raw counter, not based at zero",
    ),
    ("latlate: US", "LAT: how late a thread was woken, in microseconds"),
    (
        "thread ID: missed M deadlines, hit H",
        "PERIODIC, CPU_PERIODIC: periods finished late and in time; `, lost L` follows if L \
         periods never began because an earlier one was still running",
    ),
    ("thread ID: completed K times", "CPU_PERIODIC: how often it got its AMOUNT"),
    ("thread ID: work K passes", "CPU_SCAN, CPU_SCAN_YIELD: passes over the array"),
];

/// What the exit code says.
pub(crate) const EXIT_CODES: [(&str, &str); 6] = [
    (
        "0",
        "measured, whatever was missed; every limit that was given was kept; with --against: \
         nothing got worse",
    ),
    (
        "1",
        "measured, and a limit was broken; with --against: B is worse than A in something, or a limit \
         was broken in a round",
    ),
    ("2", "wrong usage or bad input; nothing was run"),
    ("3", "the machine lacks a privilege or a device; nothing was run"),
    (
        "4",
        "measured, and no verdict: --against (see --fail-on) or --control could not decide, or a \
         premise broke: a thread lost its CPUs, a CPU went offline, a limit on time ended the run",
    ),
    (
        "130",
        "ended by Ctrl-C (128+N for signal N); what was measured is printed and stored, marked as interrupted",
    ),
];

/// The help of `run`, with its headings coloured; print it through `anstream`.
pub(crate) fn text() -> String {
    let mut out = format!("{ABOUT}\n");
    heading(&mut out, "Usage");
    for form in USAGE {
        let _ = writeln!(out, "  {form}");
    }
    out.push('\n');
    wrapped(&mut out, ORDER, 0);
    rows(&mut out, &GROUPS);
    heading(&mut out, "Workloads (-w)");
    for model in models::ALL {
        row(&mut out, model.synopsis, model.about);
    }
    wrapped(&mut out, AMOUNTS, 2);
    heading(&mut out, "Timers (-i)");
    for method in wake::ALL {
        row(&mut out, &names_of(method), method.about);
    }
    heading(&mut out, "Priorities (-p)");
    for (name, policy) in PRIORITY_NAMES {
        row(&mut out, name, &meaning(policy));
    }
    wrapped(&mut out, PRIVILEGES, 2);
    heading(&mut out, "Workload file");
    for line in FILE.lines() {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
    heading(&mut out, "What is printed");
    wrapped(&mut out, PRINTED, 2);
    for (line, meaning) in LINES {
        stacked(&mut out, line, meaning);
    }
    heading(&mut out, "Exit codes");
    for (code, meaning) in EXIT_CODES {
        row(&mut out, code, meaning);
    }
    heading(&mut out, "Examples");
    for (command, meaning) in EXAMPLES {
        stacked(&mut out, &shell_lines(command), meaning);
    }
    out
}

/// `NATIVE[:SLACK], NANOSLEEP`.
pub(crate) fn names_of(method: &wake::MethodEntry) -> String {
    [&[method.synopsis], method.aliases].concat().join(", ")
}

/// What a priority is on Linux.
pub(crate) fn meaning(policy: Policy) -> String {
    match policy {
        Policy::Other(nice) => format!("time-sharing with nice {nice} (OTHER:{nice})"),
        Policy::Fifo(level) => format!("real-time with priority {level} of 99 (FIFO:{level})"),
        Policy::Idle => "only when no other thread is ready (SCHED_IDLE)".to_owned(),
        other => other.to_string(),
    }
}

/// A command broken as a shell takes it, before an option, where it is too wide.
fn shell_lines(command: &str) -> String {
    const INDENT: usize = 6;
    const BREAK: &str = " \\\n      ";
    let mut lines = String::new();
    let mut used = 0;
    for option in command.split(" -") {
        let dash = if lines.is_empty() { "" } else { " -" };
        if used > 0 && used + dash.len() + option.len() + INDENT > WIDTH {
            let _ = write!(lines, "{BREAK}-{option}");
            used = option.len() + 1;
        } else {
            let _ = write!(lines, "{dash}{option}");
            used += dash.len() + option.len();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::workload_file;

    #[test]
    fn the_workload_file_is_one() {
        let file = workload_file::parse("example", FILE, None).unwrap();
        assert_eq!(file.threads.len(), 3);
    }

    #[test]
    fn long_commands_break_before_an_option() {
        let command = format!("hourglass -n 1 -w {} -p LOW", "x".repeat(60));
        let wanted = format!("hourglass -n 1 \\\n      -w {} -p LOW", "x".repeat(60));
        assert_eq!(shell_lines(&command), wanted);
    }
}
