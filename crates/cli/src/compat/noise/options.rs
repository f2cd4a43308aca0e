//! The letters of oslat(8), the few of sysjitter, and what `noise` has beside them.

use crate::compat::help::HelpTexts;
use crate::compat::{LetterDef, ValueKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoiseOption {
    Buckets,
    Width,
    Cpus,
    MainCpu,
    Duration,
    Priority,
    MoveSize,
    Stop,
    Work,
    ZeroOmit,
    Threshold,
    WarmUp,
    MaxGap,
    Percentile,
    OnHit,
    Trace,
    Top,
    BestEffort,
    Folder,
    Records,
    Json,
    Quiet,
    Colour,
    Help,
}

use ValueKind::{Attached, Nothing, Value};

/// The letters that users of oslat and sysjitter know.
const LETTERS: &[LetterDef<NoiseOption>] = &[
    LetterDef::does(
        NoiseOption::Buckets,
        &["-b", "--bucket-size"],
        Value("N"),
        "number of rows of the table, 4 to 1024 [default: 32]",
    ),
    LetterDef::does(
        NoiseOption::Width,
        &["-W", "--bucket-width"],
        Value("NS"),
        "width of a row in ns [default: 1000]",
    ),
    LetterDef::does(
        NoiseOption::Cpus,
        &["-c", "--cpu-list", "--cores"],
        Value("CPUS"),
        "CPUS to look at: 1,3,5-7; !0 is all but 0 [default: all]",
    ),
    LetterDef::does(
        NoiseOption::MainCpu,
        &["-C", "--cpu-main-thread"],
        Value("CPU"),
        "the main thread runs there; without -c that CPU is not looked at",
    ),
    LetterDef::does(
        NoiseOption::Duration,
        &["-D", "-t", "--duration", "--runtime"],
        Value("TIME"),
        "how long to look: seconds, or with s, m, h, d [default: 10]",
    ),
    LetterDef::does(
        NoiseOption::Priority,
        &["-f", "--rtprio"],
        Value("PRIO"),
        "SCHED_FIFO with PRIO from 1 to 99; one CPU is then left to the others \
         [default: time-sharing]",
    ),
    LetterDef::does(
        NoiseOption::Work,
        &["-w", "--workload"],
        Value("WORKLOAD"),
        "what threads do between two looks at the counter: no or memmove [default: no]",
    ),
    LetterDef::does(
        NoiseOption::MoveSize,
        &["-m", "--workload-mem"],
        Value("SIZE"),
        "how much memmove moves: 4K, 1M [default: 4K]",
    ),
    LetterDef::does(
        NoiseOption::Stop,
        &["-T", "--trace-threshold"],
        Value("USEC"),
        "the first longer gap ends the run; exit code 1",
    ),
    LetterDef::does(
        NoiseOption::ZeroOmit,
        &["-z", "--zero-omit"],
        Nothing,
        "leaves out rows without gaps",
    ),
    LetterDef::does(
        NoiseOption::Quiet,
        &["-q", "--quiet"],
        Nothing,
        "nothing but errors on stderr",
    ),
    LetterDef::does(
        NoiseOption::Threshold,
        &["--gap"],
        Value("TIME"),
        "shorter gaps are not counted, as sysjitter's THRESHOLD_NS, which may stand alone \
         [default: twice the loop's time]",
    ),
];

/// What the peers do not have.
const BESIDE: &[LetterDef<NoiseOption>] = &[
    LetterDef::does(
        NoiseOption::MaxGap,
        &["--max-gap"],
        Value("TIME"),
        "no gap may be longer; times of these options carry their unit, or are in us",
    ),
    LetterDef::does(
        NoiseOption::Percentile,
        &["--percentile"],
        Value("pX=TIME"),
        "X per cent of each thread's gaps may not be longer: p99=30us; may be given more than once",
    ),
    LetterDef::does(
        NoiseOption::OnHit,
        &["--on-hit"],
        Value("COMMAND"),
        "sh -c COMMAND when -T ended the run; HOURGLASS_HIT_NS and others tell what was hit",
    ),
    LetterDef::does(
        NoiseOption::WarmUp,
        &["--warm-up"],
        Value("TIME"),
        "time to run before anything is counted [default: 1s]",
    ),
    LetterDef::does(
        NoiseOption::Trace,
        &["--trace"],
        Nothing,
        "records the kernel's events of the measured CPUs, so that causes are named by them; needs \
         root",
    ),
    LetterDef::does(
        NoiseOption::Top,
        &["--top"],
        Nothing,
        "shows the run on the terminal while it goes on: threads, the worst with its cause, a \
         histogram; drawn from a CPU that is not measured (-c, -C)",
    ),
    LetterDef::does(
        NoiseOption::BestEffort,
        &["--best-effort"],
        Nothing,
        "goes on where the machine refuses a priority, and says so",
    ),
    LetterDef::does(
        NoiseOption::Folder,
        &["-o", "--output"],
        Value("DIR"),
        "keeps the run, each gap with its time, in a new folder",
    ),
    LetterDef::does(
        NoiseOption::Records,
        &["--records"],
        Value("COUNT"),
        "room for records [default: 300000]; beyond it gaps are counted but not kept",
    ),
    LetterDef::does(
        NoiseOption::Json,
        &["--json"],
        Attached("FILE"),
        "prints one JSON document (hourglass.run/1) and nothing else, or writes it to FILE",
    ),
    LetterDef::does(NoiseOption::Colour, &["--color"], Value("WHEN"), "auto, always or never"),
    LetterDef::does(NoiseOption::Help, &["-h", "--help"], Nothing, "this text"),
];

/// What the peers have and this command has not.
const REFUSED: &[LetterDef<NoiseOption>] = &[
    LetterDef::refused(
        &["-B", "--bias"],
        Nothing,
        "nothing to subtract: the loop's own time is not a gap; --gap TIME raises the threshold",
    ),
    LetterDef::refused(
        &["-s", "--single-preheat"],
        Nothing,
        "no preheat measures anything; the counter is calibrated over the whole run",
    ),
    LetterDef::refused(&["-v", "--version"], Nothing, "use: hourglass --version"),
    LetterDef::refused(
        &["--raw"],
        Value("PREFIX"),
        "use -o DIR, which keeps every gap with its time",
    ),
    LetterDef::refused(&["--sort"], Value("CORES"), "columns are in the order of CPUs"),
    LetterDef::refused(&["--verbose"], Nothing, "use --json or -o DIR"),
];

pub(crate) const GROUPS: [(&str, &[LetterDef<NoiseOption>]); 3] = [
    ("The letters of oslat and sysjitter", LETTERS),
    ("Beside them", BESIDE),
    ("Refused, and what to use instead", REFUSED),
];

/// What help says beside the options.
pub(crate) const TEXTS: HelpTexts = HelpTexts {
    about: "What interrupts busy threads, with the options of oslat and sysjitter",
    usage: "hourglass noise [OPTIONS] [THRESHOLD_NS]",
    paragraphs: &[
        "One thread a CPU looks at the counter all the time and notes each gap. Needs no root \
         unless -f is given. Never takes every CPU at a real-time priority.",
        "A row of the table holds gaps from one width less up to its label, as with oslat; but \
         only gaps are counted, not each turn of the loop, so that percentiles mean something.",
    ],
    exit_codes: &[
        ("0", "measured; every limit that was given was kept"),
        ("1", "measured, and a limit was broken or -T was hit"),
        ("2", "wrong usage or bad input; nothing was run"),
        ("3", "this machine cannot: a privilege or a device is missing; nothing was run"),
        ("4", "measured, and no verdict: a thread lost the CPUs that it was given"),
        ("130", "ended by Ctrl-C (128+N for signal N); what was measured is printed and kept"),
    ],
    examples: &[
        ("sudo hourglass noise -c 1-3 -f 80 -D1h -T 50", "as with oslat"),
        ("hourglass noise -D5 300", "as with sysjitter --runtime 5 300"),
        ("hourglass noise -c 1 -D1m --top", "watch it live, drawn from CPU 0"),
        ("hourglass noise -c 1 --max-gap 100us -qz", "a gate for CI, without root"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::short_options::assert_known;

    /// Each name once; every option of oslat(8) of rt-tests 2.4, -W of 2.10, and of sysjitter 1.4.
    #[test]
    fn every_letter_of_the_manual_pages_is_known() {
        let manual = "-b --bucket-size -B --bias -c --cpu-list -C --cpu-main-thread -f --rtprio \
            --json -m --workload-mem -D --duration -t -T --trace-threshold -w --workload -s \
            --single-preheat -h --help -v --version -z --zero-omit -q --quiet -W --bucket-width \
            --runtime --raw --cores --sort --verbose";
        assert_known(&GROUPS, manual);
    }
}
