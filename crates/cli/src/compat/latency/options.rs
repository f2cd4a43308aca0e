//! The letters of cyclictest(8), and what `latency` has beside them.

use crate::compat::help::HelpTexts;
use crate::compat::{LetterDef, ValueKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatencyOption {
    Affinity,
    Align,
    Break,
    Clock,
    Distance,
    Duration,
    Histogram,
    HistogramOfAll,
    HistogramFile,
    Interval,
    KeepPower,
    IdleLatency,
    Loops,
    MainAffinity,
    OnMax,
    Nanos,
    Priority,
    Policy,
    Spread,
    WholeSecond,
    Smp,
    Threads,
    Samples,
    Always,
    Rephase,
    Timer,
    MaxLatency,
    MaxGap,
    MaxMisses,
    Percentile,
    OnHit,
    Trace,
    Top,
    Folder,
    Records,
    BestEffort,
    Json,
    Quiet,
    Colour,
    Help,
}

use ValueKind::{Attached, Nothing, Perhaps, Value};

/// The letters that users of cyclictest know.
const LETTERS: &[LetterDef<LatencyOption>] = &[
    LetterDef::does(
        LatencyOption::Affinity,
        &["-a", "--affinity"],
        Perhaps("CPUS"),
        "pins thread N to the Nth CPU of CPUS, round and round [default: of all]; !2 is all but 2",
    ),
    LetterDef::does(
        LatencyOption::Align,
        &["-A", "--align", "--aligned"],
        Value("USEC"),
        "thread N wakes N times USEC after thread 0 [default: spread over the interval]",
    ),
    LetterDef::does(
        LatencyOption::Break,
        &["-b", "--breaktrace"],
        Value("USEC"),
        "the first wake-up later than USEC ends the run; exit code 1",
    ),
    LetterDef::does(
        LatencyOption::Clock,
        &["-c", "--clock"],
        Value("CLOCK"),
        "0: CLOCK_MONOTONIC, and no other",
    ),
    LetterDef::does(
        LatencyOption::Distance,
        &["-d", "--distance"],
        Value("USEC"),
        "how much longer each further thread's interval is [default: 500; with -S, -h, -H: 0]",
    ),
    LetterDef::does(
        LatencyOption::Duration,
        &["-D", "--duration"],
        Value("TIME"),
        "ends after TIME: seconds, or with s, m, h, d [default: endless]",
    ),
    LetterDef::does(
        LatencyOption::Histogram,
        &["-h", "--histogram"],
        Value("USEC"),
        "prints a histogram of one row a microsecond; all threads get the same priority",
    ),
    LetterDef::does(
        LatencyOption::HistogramOfAll,
        &["-H", "--histofall"],
        Value("USEC"),
        "the same with a column for all threads together",
    ),
    LetterDef::does(
        LatencyOption::HistogramFile,
        &["--histfile"],
        Value("FILE"),
        "writes the histogram to FILE instead of stdout",
    ),
    LetterDef::does(
        LatencyOption::Interval,
        &["-i", "--interval"],
        Value("USEC"),
        "interval of the first thread [default: 1000]",
    ),
    LetterDef::does(
        LatencyOption::KeepPower,
        &["--default-system", "--laptop"],
        Nothing,
        "does not hold /dev/cpu_dma_latency",
    ),
    LetterDef::does(
        LatencyOption::IdleLatency,
        &["--latency"],
        Value("USEC"),
        "holds /dev/cpu_dma_latency at this value [default: 0, where it may be held]",
    ),
    LetterDef::does(
        LatencyOption::Loops,
        &["-l", "--loops"],
        Value("LOOPS"),
        "ends when a thread has woken so often [default: 0, endless]",
    ),
    LetterDef::does(
        LatencyOption::Always,
        &["-m", "--mlockall"],
        Nothing,
        "locks memory, which Hourglass does without being asked",
    ),
    LetterDef::does(
        LatencyOption::MainAffinity,
        &["--mainaffinity"],
        Value("CPUS"),
        "the main thread, with its status lines, runs there, also if those CPUs are measured",
    ),
    LetterDef::does(
        LatencyOption::OnMax,
        &["-M", "--refresh_on_max"],
        Nothing,
        "status lines change only when there is a new maximum",
    ),
    LetterDef::does(
        LatencyOption::Always,
        &["-n", "--nanosleep", "--notrace", "-u", "--unbuffered"],
        Nothing,
        "of older versions; nothing is different without",
    ),
    LetterDef::does(LatencyOption::Nanos, &["-N", "--nsecs"], Nothing, "prints nanoseconds"),
    LetterDef::does(
        LatencyOption::Priority,
        &["-p", "--prio", "--priority"],
        Value("PRIO"),
        "real-time priority of the first thread, 0 to 99; each further one has one less, \
         with -S, -h, -H the same [default: 0, time-sharing]",
    ),
    LetterDef::does(
        LatencyOption::Policy,
        &["-y", "--policy"],
        Value("NAME"),
        "other, normal, batch, idle, fifo or rr [default: fifo with -p, else other]",
    ),
    LetterDef::does(
        LatencyOption::Spread,
        &["--priospread"],
        Nothing,
        "each further thread has one priority more instead",
    ),
    LetterDef::does(
        LatencyOption::Quiet,
        &["-q", "--quiet"],
        Nothing,
        "no status lines, no warnings; with -h the histogram alone",
    ),
    LetterDef::does(
        LatencyOption::WholeSecond,
        &["--secaligned"],
        Perhaps("USEC"),
        "the first interval begins on a full second; USEC as with -A [default: 0]",
    ),
    LetterDef::does(
        LatencyOption::Smp,
        &["-S", "--smp"],
        Nothing,
        "-t -a, the same priority and the same interval for all threads",
    ),
    LetterDef::does(
        LatencyOption::Threads,
        &["-t", "--threads"],
        Perhaps("NUM"),
        "number of threads [default: 1; without NUM as many as CPUs]",
    ),
    LetterDef::does(
        LatencyOption::Samples,
        &["-v", "--verbose"],
        Nothing,
        "prints each sample, as THREAD:NUMBER:LATENCY, after the run",
    ),
];

/// What cyclictest does not have.
const BESIDE: &[LetterDef<LatencyOption>] = &[
    LetterDef::does(
        LatencyOption::MaxLatency,
        &["--max-latency"],
        Value("TIME"),
        "no wake-up may be later; times of these options carry their unit, or are in us",
    ),
    LetterDef::does(
        LatencyOption::Percentile,
        &["--percentile"],
        Value("pX=TIME"),
        "X per cent of each thread's wake-ups, lost ones included, may not be later: p99.9=80us; \
         may be given more than once",
    ),
    LetterDef::does(
        LatencyOption::MaxMisses,
        &["--max-misses"],
        Value("COUNT"),
        "no more intervals may be lost, of all threads together",
    ),
    LetterDef::does(
        LatencyOption::MaxGap,
        &["--max-gap"],
        Value("TIME"),
        "while awake, no thread may be interrupted for longer",
    ),
    LetterDef::does(
        LatencyOption::OnHit,
        &["--on-hit"],
        Value("COMMAND"),
        "sh -c COMMAND when -b ended the run; HOURGLASS_HIT_NS and others tell what was hit",
    ),
    LetterDef::does(
        LatencyOption::Rephase,
        &["--rephase"],
        Nothing,
        "counts each interval from the waking before, as LAT of the Hourglass paper does; none can \
         be lost then",
    ),
    LetterDef::does(
        LatencyOption::Timer,
        &["--timer"],
        Value("TIMER"),
        "what wakes the threads, as run -i: HR, TIMERFD, SLEEPER:precise, SPIN and others [default: \
         NATIVE]",
    ),
    LetterDef::does(
        LatencyOption::Trace,
        &["--trace"],
        Nothing,
        "records the kernel's events of the measured CPUs, so that causes are named by them; needs \
         root",
    ),
    LetterDef::does(
        LatencyOption::Top,
        &["--top"],
        Nothing,
        "shows the run on the terminal while it goes on: threads, the worst with its cause, a \
         histogram; drawn from a CPU that is not measured (-a, --mainaffinity)",
    ),
    LetterDef::does(
        LatencyOption::BestEffort,
        &["--best-effort"],
        Nothing,
        "goes on where the machine refuses a priority, and says so",
    ),
    LetterDef::does(
        LatencyOption::Folder,
        &["-o", "--output"],
        Value("DIR"),
        "keeps the run in a new folder (cyclictest's -o RED is refused)",
    ),
    LetterDef::does(
        LatencyOption::Records,
        &["--records"],
        Value("COUNT"),
        "room for single samples, in records of three [default: 300000]",
    ),
    LetterDef::does(
        LatencyOption::Json,
        &["--json"],
        Attached("FILE"),
        "prints one JSON document (hourglass.run/1) and nothing else, or writes it to FILE",
    ),
    LetterDef::does(LatencyOption::Colour, &["--color"], Value("WHEN"), "auto, always or never"),
    LetterDef::does(LatencyOption::Help, &["--help"], Nothing, "this text"),
];

/// What cyclictest has or had and this command has not.
const REFUSED: &[LetterDef<LatencyOption>] = &[
    LetterDef::refused(
        &["-F", "--fifo"],
        Value("PATH"),
        "no status pipe; kill -USR1 prints the state to stderr",
    ),
    LetterDef::refused(
        &["-r", "--relative"],
        Nothing,
        "no relative timers; use --rephase, which counts from each waking",
    ),
    LetterDef::refused(&["-R", "--resolution"], Nothing, "use: hourglass clocks"),
    LetterDef::refused(&["-X"], Nothing, "use: hourglass clocks --json"),
    LetterDef::refused(
        &["-s", "--system"],
        Nothing,
        "no interval timers; wake-ups come from clock_nanosleep, or from --timer",
    ),
    LetterDef::refused(
        &["-x", "--posix_timers"],
        Nothing,
        "no POSIX timers; wake-ups come from clock_nanosleep, or from --timer",
    ),
    LetterDef::refused(&["--spike"], Value("USEC"), "use -v or -o DIR, which keep every sample"),
    LetterDef::refused(&["--spike-nodes"], Value("NUM"), "use --records COUNT with -v or -o DIR"),
    LetterDef::refused(
        &["--smi"],
        Nothing,
        "use: hourglass noise, which shows what is lost below the kernel",
    ),
    LetterDef::refused(
        &["--tracemark"],
        Nothing,
        "no marker is written; use --trace, which keeps the kernel's events around the hit of -b",
    ),
    LetterDef::refused(
        &["-B", "-C", "-E", "-f", "-I", "-O", "-P", "-T", "-w", "-W"],
        Nothing,
        "tracing options of old versions; use --trace with -b",
    ),
    LetterDef::refused(&["-U", "--numa"], Nothing, "use -S or -a"),
    LetterDef::refused(&["-e"], Value("USEC"), "use --latency=USEC"),
    LetterDef::refused(&["--deepest-idle-state"], Value("N"), "use --latency=USEC"),
    LetterDef::refused(&["--dbg_cyclictest"], Nothing, "use --json"),
];

pub(crate) const GROUPS: [(&str, &[LetterDef<LatencyOption>]); 3] = [
    ("The letters of cyclictest", LETTERS),
    ("Beside them", BESIDE),
    ("Refused, and what to use instead", REFUSED),
];

/// What help says beside the options.
pub(crate) const TEXTS: HelpTexts = HelpTexts {
    about: "How late threads are woken, with the options of cyclictest",
    usage: "hourglass latency [OPTIONS]",
    paragraphs: &[
        "Threads wake up on an absolute grid and note how late. An interval that passes while a \
         thread is late is lost: it is counted, and in percentiles it stands with the lateness at \
         which it could have been served. Needs no root unless real-time priorities are asked for.",
        "Prints cyclictest's lines, and in comment lines (#) what cyclictest does not have. On a \
         terminal status lines show how it goes if there is a CPU that no thread uses (-a), or \
         with --mainaffinity. SIGUSR1 prints the state to stderr at any time.",
    ],
    exit_codes: &[
        ("0", "measured; every limit that was given was kept"),
        ("1", "measured, and a limit was broken or -b was hit"),
        ("2", "wrong usage or bad input; nothing was run"),
        ("3", "this machine cannot: a privilege or a device is missing; nothing was run"),
        ("4", "measured, and no verdict: a thread lost the CPUs that it was given"),
        ("130", "ended by Ctrl-C (128+N for signal N); what was measured is printed and kept"),
    ],
    examples: &[
        ("sudo hourglass latency -mSqp80 -i200 -h400 -D1h", "as with cyclictest"),
        ("hourglass latency --policy other -D10 -a 1", "without root"),
        ("sudo hourglass latency -p80 -a 1 -D60 --top", "watch it live, drawn from CPU 0"),
        ("sudo hourglass latency -Sp80 -D60 --max-latency 100us", "a gate for CI"),
        ("sudo hourglass latency -Sp80 -b 100 --on-hit 'dmesg | tail'", "what was that?"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::short_options::assert_known;

    /// Each name once; every option of cyclictest(8) of rt-tests 2.4 and each letter of its older
    /// versions is there.
    #[test]
    fn every_letter_of_the_manual_page_is_known() {
        let manual = "-a --affinity -A --align --aligned -b --breaktrace -c --clock \
            --default-system -d --distance -D --duration -F --fifo -h --histogram -H --histofall \
            --histfile -i --interval --json --laptop --latency -l --loops --mainaffinity -m \
            --mlockall -M --refresh_on_max -N --nsecs -o -p --prio --priority --policy \
            --priospread -q --quiet -r --relative -R --resolution --secaligned -s --system -S \
            --smp --spike --spike-nodes --smi -t --threads --tracemark -u --unbuffered -v \
            --verbose --dbg_cyclictest -x --posix_timers -n -y -U -X";
        assert_known(&GROUPS, manual);
    }
}
