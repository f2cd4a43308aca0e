//! The options of `run`: their names, what follows them, and what help says of them
//! (Hourglass paper, Appendix A). The parser, the help, the man page and the completions all read
//! this table.

/// What an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
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

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// So many words, with their names.
    Words(&'static [&'static str]),
    /// The name of a workload, then as many words as it takes.
    Workload,
    /// One word, whatever it looks like: options within quotes.
    Quoted(&'static [&'static str]),
}

impl Values {
    /// The names of the words, as help shows them.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Values::Words(names) | Values::Quoted(names) => names,
            Values::Workload => &["WORKLOAD"],
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

    pub(crate) fn options(self) -> impl Iterator<Item = &'static Entry> {
        OPTIONS.iter().filter(move |entry| entry.group == self)
    }
}

/// An option.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) group: Group,
    /// How it may be written; the first is shown in messages.
    pub(crate) names: &'static [&'static str],
    pub(crate) values: Values,
    pub(crate) about: &'static str,
}

impl Entry {
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
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    OPTIONS.iter().find(|entry| entry.names.contains(&name))
}

const NOTHING: Values = Values::Words(&[]);
const TIME: Values = Values::Words(&["TIME"]);

/// All options of `run`.
pub(crate) const OPTIONS: [Entry; 39] = [
    Entry {
        key: Key::Threads,
        group: Group::Run,
        names: &["-n"],
        values: Values::Words(&["COUNT"]),
        about: "number of threads to create [default: 1; a FILE lists its threads]",
    },
    Entry {
        key: Key::Duration,
        group: Group::Run,
        names: &["-d"],
        values: TIME,
        about: "duration of the experiment [default: 10s]",
    },
    Entry {
        key: Key::Records,
        group: Group::Run,
        names: &["-e"],
        values: Values::Words(&["RECORDS"]),
        about: "size of the execution trace in records, divided among the threads [default: \
                300000]; when it is full, the run goes on counting",
    },
    Entry {
        key: Key::Ring,
        group: Group::Run,
        names: &["--ring"],
        values: NOTHING,
        about: "a full trace keeps the newest records instead of the oldest",
    },
    Entry {
        key: Key::WarmUp,
        group: Group::Run,
        names: &["--warm-up"],
        values: TIME,
        about: "each thread runs its loop for so long before the run begins [default: 0s]",
    },
    Entry {
        key: Key::Seed,
        group: Group::Run,
        names: &["--seed"],
        values: Values::Words(&["NUMBER"]),
        about: "start of the random sequences, decimal or 0x hexadecimal; recorded with the run \
                [default: taken from the clock]",
    },
    Entry {
        key: Key::DmaLatency,
        group: Group::Run,
        names: &["--dma-latency"],
        values: Values::Words(&["US"]),
        about: "holds /dev/cpu_dma_latency at so many microseconds during the run, which keeps \
                idle CPUs out of sleep states that take longer to leave",
    },
    Entry {
        key: Key::BestEffort,
        group: Group::Run,
        names: &["--best-effort"],
        values: NOTHING,
        about: "runs also where the machine refuses a priority, a reservation or a timer, \
                without it, and says so",
    },
    Entry {
        key: Key::Trace,
        group: Group::Run,
        names: &["--trace"],
        values: NOTHING,
        about: "records also what the kernel did on the measured CPUs: switches, interrupts, \
                timers, faults, by a private instance of its trace; needs root",
    },
    Entry {
        key: Key::Thread,
        group: Group::Scope,
        names: &["-t"],
        values: Values::Words(&["THREAD"]),
        about: "per-thread options that follow are for this thread, from 0 to COUNT-1",
    },
    Entry {
        key: Key::AllThreads,
        group: Group::Scope,
        names: &["-a"],
        values: NOTHING,
        about: "per-thread options that follow are for all threads, until the next -t",
    },
    Entry {
        key: Key::Workload,
        group: Group::PerThread,
        names: &["-w"],
        values: Values::Workload,
        about: "what the thread does: one of the workloads below [default: CPU]",
    },
    Entry {
        key: Key::Priority,
        group: Group::PerThread,
        names: &["-p", "--policy"],
        values: Values::Words(&["PRIORITY"]),
        about: "one of the priorities below, or FIFO:1 to FIFO:99, RR:1 to RR:99, OTHER:NICE, \
                BATCH, IDLE, or DEADLINE, which takes its times from the workload [default: \
                NORMAL]",
    },
    Entry {
        key: Key::HardReservation,
        group: Group::PerThread,
        names: &["-rh"],
        values: Values::Words(&["AMOUNT", "PERIOD"]),
        about: "asks for a hard CPU reservation: AMOUNT in every PERIOD, and no more \
                (SCHED_DEADLINE)",
    },
    Entry {
        key: Key::SoftReservation,
        group: Group::PerThread,
        names: &["-rs"],
        values: Values::Words(&["AMOUNT", "PERIOD"]),
        about: "asks for a soft CPU reservation: AMOUNT in every PERIOD, more where nobody else \
                has reserved it (SCHED_DEADLINE with reclaiming)",
    },
    Entry {
        key: Key::Timer,
        group: Group::PerThread,
        names: &["-i"],
        values: Values::Words(&["TIMER"]),
        about: "what wakes the thread: one of the timers below [default: NATIVE]",
    },
    Entry {
        key: Key::Start,
        group: Group::PerThread,
        names: &["-s"],
        values: TIME,
        about: "the thread starts TIME into the run [default: 0s]",
    },
    Entry {
        key: Key::Finish,
        group: Group::PerThread,
        names: &["-f"],
        values: TIME,
        about: "the thread ends TIME into the run [default: with the run]",
    },
    Entry {
        key: Key::Cpus,
        group: Group::PerThread,
        names: &["--cpu"],
        values: Values::Words(&["LIST"]),
        about: "CPUs on which the thread may run, for example 0, 0-3 or 0,2-3 [default: all that \
                hourglass may use]",
    },
    Entry {
        key: Key::Gap,
        group: Group::PerThread,
        names: &["--gap"],
        values: TIME,
        about: "interruptions longer than this are recorded [default: twice the measured time of \
                the workload's loop]",
    },
    Entry {
        key: Key::MaxLatency,
        group: Group::Limits,
        names: &["--max-latency"],
        values: TIME,
        about: "no wake-up of LAT or GRID may be later",
    },
    Entry {
        key: Key::MaxGap,
        group: Group::Limits,
        names: &["--max-gap"],
        values: TIME,
        about: "no gap may be longer",
    },
    Entry {
        key: Key::MaxMisses,
        group: Group::Limits,
        names: &["--max-misses"],
        values: Values::Words(&["COUNT"]),
        about: "no more periods may be missed or lost, of all threads together",
    },
    Entry {
        key: Key::Percentile,
        group: Group::Limits,
        names: &["--percentile"],
        values: Values::Words(&["pX=TIME"]),
        about: "X per cent of each thread's wake-ups, lost ones included, may not be later; where \
                none are measured, of its gaps: p99.9=80us. May be given more than once",
    },
    Entry {
        key: Key::StopOnGap,
        group: Group::Limits,
        names: &["--stop-on-gap"],
        values: TIME,
        about: "the first longer gap ends the run; the newest records are kept, as with --ring",
    },
    Entry {
        key: Key::StopOnLatency,
        group: Group::Limits,
        names: &["--stop-on-latency"],
        values: TIME,
        about: "the first later wake-up of LAT or GRID ends the run, likewise",
    },
    Entry {
        key: Key::OnHit,
        group: Group::Limits,
        names: &["--on-hit"],
        values: Values::Words(&["COMMAND"]),
        about: "sh -c COMMAND when one of these two ended the run and all threads have stopped; \
                HOURGLASS_HIT_KIND, _THREAD, _CPU, _NS, _LIMIT_NS, _AT_NS and _FOLDER tell it what \
                was hit",
    },
    Entry {
        key: Key::Against,
        group: Group::Compare,
        names: &["--against"],
        values: Values::Quoted(&["OPTIONS"]),
        about: "runs this (A) and the same with OPTIONS (B), within quotes, in turn, and compares them: \
                hourglass.diff/1. OPTIONS are read behind those of the run, for all threads; with \
                -n or a FILE among them they describe the threads anew, and need limits of their own. \
                Limits are judged in each round. -o keeps each run: DIR/a-01, DIR/b-01, ...",
    },
    Entry {
        key: Key::Rounds,
        group: Group::Compare,
        names: &["--rounds"],
        values: Values::Words(&["N"]),
        about: "how often each of the two runs; below 6 there is no verdict, and too few are warned of \
                before they are measured [default: 10]",
    },
    Entry {
        key: Key::FailOn,
        group: Group::Compare,
        names: &["--fail-on"],
        values: Values::Words(&["WHEN"]),
        about: "exit code 1 if something got worse (worse); also 4 if there is no verdict (unknown), or if \
                a single metric could not be decided (doubt) [default: unknown]",
    },
    Entry {
        key: Key::Control,
        group: Group::Compare,
        names: &["--control"],
        values: NOTHING,
        about: "one more thread, which does nothing of the load, watches a CPU that --cpu leaves \
                free: what the platform does by itself. If none is free, control (A) and run (B) \
                take turns, as with --against",
    },
    Entry {
        key: Key::Cycles,
        group: Group::Output,
        names: &["-c"],
        values: NOTHING,
        about: "prints each record also in cycles of the raw counter, not based at zero; implies \
                --records",
    },
    Entry {
        key: Key::RecordLines,
        group: Group::Output,
        names: &["--records"],
        values: NOTHING,
        about: "prints the lines for scripts also on a terminal",
    },
    Entry {
        key: Key::Summary,
        group: Group::Output,
        names: &["--summary"],
        values: NOTHING,
        about: "prints the summary also to a pipe or a file",
    },
    Entry {
        key: Key::Folder,
        group: Group::Output,
        names: &["-o", "--output"],
        values: Values::Words(&["DIR"]),
        about: "keeps the run in a new folder, for show and render",
    },
    Entry {
        key: Key::Json,
        group: Group::Output,
        names: &["--json"],
        values: NOTHING,
        about: "prints one JSON document (hourglass.run/1) and nothing else",
    },
    Entry {
        key: Key::Colour,
        group: Group::Output,
        names: &["--color"],
        values: Values::Words(&["WHEN"]),
        about: "auto, always or never [default: auto, which heeds NO_COLOR]",
    },
    Entry {
        key: Key::Quiet,
        group: Group::Output,
        names: &["-q", "--quiet"],
        values: NOTHING,
        about: "nothing but errors on stderr: no progress, no warnings; with -o nothing on stdout, unless \
                --records, --summary or --json asks for it",
    },
    Entry {
        key: Key::Help,
        group: Group::Output,
        names: &["-h", "--help"],
        values: NOTHING,
        about: "this text",
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
