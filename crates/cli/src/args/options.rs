//! The options of `run`: their names, what follows them, and what help says of them
//! (Hourglass paper, Appendix A). The parser, the help, the man page and the completions all read
//! this table.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionKey {
    Threads,
    Duration,
    Records,
    Ring,
    WarmUp,
    Seed,
    DmaLatency,
    BestEffort,
    Trace,
    Thread,
    AllThreads,
    Priority,
    HardReservation,
    SoftReservation,
    Workload,
    Timer,
    Start,
    Finish,
    Cpus,
    Gap,
    MaxLatency,
    MaxGap,
    MaxMisses,
    Percentile,
    StopOnGap,
    StopOnLatency,
    OnHit,
    Against,
    Rounds,
    FailOn,
    Control,
    Cycles,
    RecordLines,
    Summary,
    Folder,
    Json,
    Colour,
    Quiet,
    Help,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionValues {
    /// One argument for each of these names.
    Words(&'static [&'static str]),
    /// The name of a workload, then as many words as it takes.
    Workload,
    /// One word, whatever it looks like: options within quotes.
    Quoted(&'static [&'static str]),
}

impl OptionValues {
    /// The names of the words, as help shows them.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            OptionValues::Words(names) | OptionValues::Quoted(names) => names,
            OptionValues::Workload => &["WORKLOAD"],
        }
    }
}

/// The groups of options, in the order of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Run,
    Scope,
    PerThread,
    Limits,
    Compare,
    Output,
}

impl Group {
    pub(crate) const ALL: [Group; 6] =
        [Group::Run, Group::Scope, Group::PerThread, Group::Limits, Group::Compare, Group::Output];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Group::Run => "The run",
            Group::Scope => "Which threads the options that follow are for",
            Group::PerThread => "Options per thread",
            Group::Limits => "Limits: exit code 1 if one is broken",
            Group::Compare => "Comparing",
            Group::Output => "Output",
        }
    }

    pub(crate) fn options(self) -> impl Iterator<Item = &'static OptionDef> {
        OPTIONS.iter().filter(move |entry| entry.group == self)
    }
}

#[derive(Debug)]
pub(crate) struct OptionDef {
    pub(crate) key: OptionKey,
    pub(crate) group: Group,
    /// How it may be written; the first is shown in messages.
    pub(crate) names: &'static [&'static str],
    pub(crate) values: OptionValues,
    pub(crate) about: &'static str,
}

impl OptionDef {
    /// `-rh AMOUNT PERIOD`, `-o, --output DIR`.
    pub(crate) fn synopsis(&self) -> String {
        let mut text = self.names.join(", ");
        for value in self.values.names() {
            text.push(' ');
            text.push_str(value);
        }
        text
    }
}

/// The option with this name.
pub(crate) fn find(name: &str) -> Option<&'static OptionDef> {
    OPTIONS.iter().find(|entry| entry.names.contains(&name))
}

const NOTHING: OptionValues = OptionValues::Words(&[]);
const TIME: OptionValues = OptionValues::Words(&["TIME"]);

/// All options of `run`.
pub(crate) const OPTIONS: [OptionDef; 39] = [
    OptionDef {
        key: OptionKey::Threads,
        group: Group::Run,
        names: &["-n"],
        values: OptionValues::Words(&["COUNT"]),
        about: "Number of threads [default: 1; a FILE lists its threads]",
    },
    OptionDef {
        key: OptionKey::Duration,
        group: Group::Run,
        names: &["-d"],
        values: TIME,
        about: "Duration of the run [default: 10s]",
    },
    OptionDef {
        key: OptionKey::Records,
        group: Group::Run,
        names: &["-e"],
        values: OptionValues::Words(&["RECORDS"]),
        about: "Size of the execution trace in records, divided among the threads; when it is \
                full, counting goes on [default: 300000]",
    },
    OptionDef {
        key: OptionKey::Ring,
        group: Group::Run,
        names: &["--ring"],
        values: NOTHING,
        about: "Keep the newest records when the trace is full, instead of the oldest",
    },
    OptionDef {
        key: OptionKey::WarmUp,
        group: Group::Run,
        names: &["--warm-up"],
        values: TIME,
        about: "Run each thread's loop for this time before the run begins [default: 0s]",
    },
    OptionDef {
        key: OptionKey::Seed,
        group: Group::Run,
        names: &["--seed"],
        values: OptionValues::Words(&["NUMBER"]),
        about: "Random seed, decimal or 0x hexadecimal; recorded with the run [default: from the \
                clock]",
    },
    OptionDef {
        key: OptionKey::DmaLatency,
        group: Group::Run,
        names: &["--dma-latency"],
        values: OptionValues::Words(&["US"]),
        about: "Hold /dev/cpu_dma_latency at this many microseconds during the run: idle CPUs \
                stay out of sleep states with a longer exit latency",
    },
    OptionDef {
        key: OptionKey::BestEffort,
        group: Group::Run,
        names: &["--best-effort"],
        values: NOTHING,
        about: "If the machine refuses a priority, a reservation or a timer, run without it and \
                say so",
    },
    OptionDef {
        key: OptionKey::Trace,
        group: Group::Run,
        names: &["--trace"],
        values: NOTHING,
        about: "Also record the kernel's events on the measured CPUs (switches, interrupts, \
                timers, faults) in a private trace instance; needs root",
    },
    OptionDef {
        key: OptionKey::Thread,
        group: Group::Scope,
        names: &["-t"],
        values: OptionValues::Words(&["THREAD"]),
        about: "Per-thread options that follow are for this thread, from 0 to COUNT-1",
    },
    OptionDef {
        key: OptionKey::AllThreads,
        group: Group::Scope,
        names: &["-a"],
        values: NOTHING,
        about: "Per-thread options that follow are for all threads, until the next -t",
    },
    OptionDef {
        key: OptionKey::Workload,
        group: Group::PerThread,
        names: &["-w"],
        values: OptionValues::Workload,
        about: "What the thread does: one of the workloads below [default: CPU]",
    },
    OptionDef {
        key: OptionKey::Priority,
        group: Group::PerThread,
        names: &["-p", "--policy"],
        values: OptionValues::Words(&["PRIORITY"]),
        about: "One of the priorities below, or FIFO:1 to FIFO:99, RR:1 to RR:99, OTHER:NICE, \
                BATCH, IDLE, or DEADLINE, which takes its times from the workload [default: \
                NORMAL]",
    },
    OptionDef {
        key: OptionKey::HardReservation,
        group: Group::PerThread,
        names: &["-rh"],
        values: OptionValues::Words(&["AMOUNT", "PERIOD"]),
        about: "Hard CPU reservation: AMOUNT in every PERIOD, and no more",
    },
    OptionDef {
        key: OptionKey::SoftReservation,
        group: Group::PerThread,
        names: &["-rs"],
        values: OptionValues::Words(&["AMOUNT", "PERIOD"]),
        about: "Soft CPU reservation: AMOUNT in every PERIOD, and more where CPU time is not \
                reserved",
    },
    OptionDef {
        key: OptionKey::Timer,
        group: Group::PerThread,
        names: &["-i"],
        values: OptionValues::Words(&["TIMER"]),
        about: "Timer that wakes the thread: one of the timers below [default: NATIVE]",
    },
    OptionDef {
        key: OptionKey::Start,
        group: Group::PerThread,
        names: &["-s"],
        values: TIME,
        about: "Start the thread TIME into the run [default: 0s]",
    },
    OptionDef {
        key: OptionKey::Finish,
        group: Group::PerThread,
        names: &["-f"],
        values: TIME,
        about: "End the thread TIME into the run [default: with the run]",
    },
    OptionDef {
        key: OptionKey::Cpus,
        group: Group::PerThread,
        names: &["--cpu"],
        values: OptionValues::Words(&["LIST"]),
        about: "CPUs on which the thread may run, for example 0, 0-3 or 0,2-3 [default: all that \
                hourglass may use]",
    },
    OptionDef {
        key: OptionKey::Gap,
        group: Group::PerThread,
        names: &["--gap"],
        values: TIME,
        about: "Record interruptions longer than this [default: twice the measured time of the \
                workload's loop]",
    },
    OptionDef {
        key: OptionKey::MaxLatency,
        group: Group::Limits,
        names: &["--max-latency"],
        values: TIME,
        about: "Limit for the lateness of each wake-up of LAT or GRID",
    },
    OptionDef {
        key: OptionKey::MaxGap,
        group: Group::Limits,
        names: &["--max-gap"],
        values: TIME,
        about: "Limit for the longest gap",
    },
    OptionDef {
        key: OptionKey::MaxMisses,
        group: Group::Limits,
        names: &["--max-misses"],
        values: OptionValues::Words(&["COUNT"]),
        about: "Limit for missed and lost periods of all threads together",
    },
    OptionDef {
        key: OptionKey::Percentile,
        group: Group::Limits,
        names: &["--percentile"],
        values: OptionValues::Words(&["pX=TIME"]),
        about: "Limit for X per cent of each thread's wake-ups, lost ones included, or, where \
                none are measured, of its gaps: p99.9=80us. May be repeated",
    },
    OptionDef {
        key: OptionKey::StopOnGap,
        group: Group::Limits,
        names: &["--stop-on-gap"],
        values: TIME,
        about: "End the run at the first longer gap; the newest records are kept, as with --ring",
    },
    OptionDef {
        key: OptionKey::StopOnLatency,
        group: Group::Limits,
        names: &["--stop-on-latency"],
        values: TIME,
        about: "End the run at the first later wake-up of LAT or GRID; the newest records are \
                kept",
    },
    OptionDef {
        key: OptionKey::OnHit,
        group: Group::Limits,
        names: &["--on-hit"],
        values: OptionValues::Words(&["COMMAND"]),
        about: "When one of these two ended the run and all threads have stopped, run COMMAND by \
                sh -c; HOURGLASS_HIT_KIND, _THREAD, _CPU, _NS, _LIMIT_NS, _AT_NS and _FOLDER \
                describe the hit",
    },
    OptionDef {
        key: OptionKey::Against,
        group: Group::Compare,
        names: &["--against"],
        values: OptionValues::Quoted(&["OPTIONS"]),
        about: "Alternate this run (A) with the same run with OPTIONS (B), and compare them: \
                hourglass.diff/1. Quote OPTIONS; they are read after those of the run, for all \
                threads. With -n or a FILE among them they describe the threads anew, and need \
                limits of their own. Limits are judged in each round. -o keeps each run: \
                DIR/a-01, DIR/b-01, ...",
    },
    OptionDef {
        key: OptionKey::Rounds,
        group: Group::Compare,
        names: &["--rounds"],
        values: OptionValues::Words(&["N"]),
        about: "Number of rounds; below 6 there is no verdict, and a warning says beforehand \
                what this number cannot decide [default: 10]",
    },
    OptionDef {
        key: OptionKey::FailOn,
        group: Group::Compare,
        names: &["--fail-on"],
        values: OptionValues::Words(&["WHEN"]),
        about: "Exit code 1 if something got worse (worse); also 4 if there is no verdict \
                (unknown), or if a single metric could not be decided (doubt) [default: unknown]",
    },
    OptionDef {
        key: OptionKey::Control,
        group: Group::Compare,
        names: &["--control"],
        values: NOTHING,
        about: "Add a thread that watches a CPU that --cpu leaves free, without the load: what \
                the platform does by itself. If no CPU is free, control (A) and run (B) \
                alternate, as with --against",
    },
    OptionDef {
        key: OptionKey::Cycles,
        group: Group::Output,
        names: &["-c"],
        values: NOTHING,
        about: "Print each record also in cycles of the raw counter, not based at zero; implies \
                --records",
    },
    OptionDef {
        key: OptionKey::RecordLines,
        group: Group::Output,
        names: &["--records"],
        values: NOTHING,
        about: "Print the record lines also on a terminal",
    },
    OptionDef {
        key: OptionKey::Summary,
        group: Group::Output,
        names: &["--summary"],
        values: NOTHING,
        about: "Print the summary also to a pipe or a file",
    },
    OptionDef {
        key: OptionKey::Folder,
        group: Group::Output,
        names: &["-o", "--output"],
        values: OptionValues::Words(&["DIR"]),
        about: "Keep the run in a new folder, for show, render and report",
    },
    OptionDef {
        key: OptionKey::Json,
        group: Group::Output,
        names: &["--json"],
        values: NOTHING,
        about: "Print one JSON document (hourglass.run/1) and nothing else",
    },
    OptionDef {
        key: OptionKey::Colour,
        group: Group::Output,
        names: &["--color"],
        values: OptionValues::Words(&["WHEN"]),
        about: "auto, always or never [default: auto, which respects NO_COLOR]",
    },
    OptionDef {
        key: OptionKey::Quiet,
        group: Group::Output,
        names: &["-q", "--quiet"],
        values: NOTHING,
        about: "Print only errors on stderr: no progress, no warnings. With -o print nothing on \
                stdout, unless --records, --summary or --json asks for it",
    },
    OptionDef {
        key: OptionKey::Help,
        group: Group::Output,
        names: &["-h", "--help"],
        values: NOTHING,
        about: "Print this help",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<&str> = OPTIONS.iter().flat_map(|entry| entry.names).copied().collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }

    /// Appendix A of the paper, in its order.
    #[test]
    fn every_option_of_the_paper_is_there() {
        for name in ["-n", "-d", "-c", "-t", "-a", "-e", "-p", "-rh", "-rs", "-w", "-i", "-s", "-f"]
        {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
