//! The letters of cyclictest(8), and what `latency` has beside them.

use hourglass_time::Span;

use super::parse::{Idle, LatencyDraft, class, clock, folder, histogram, threads};
use crate::compat::help::HelpTexts;
use crate::lab::wake;
use crate::options::shared::{self, Measuring};
use crate::options::{Language, OptionDef, flag, help, refused, value};

pub(super) const LANGUAGE: Language<LatencyDraft> =
    Language { groups: &GROUPS, combines: true, help: "hourglass latency --help" };

/// The letters that users of cyclictest know.
const LETTERS: &[OptionDef<LatencyDraft>] = &[
    value(
        "-a, --affinity [CPUS]",
        "pins thread N to the Nth CPU of CPUS, round and round [default: of all]; !2 is all but 2",
        |to, given| {
            to.cpus = Some(match given.value() {
                Some(_) => given.cpus(&to.machine)?,
                None => to.machine.cpus.clone(),
            });
            Ok(())
        },
    ),
    value(
        "-A, --align, --aligned USEC",
        "thread N wakes N times USEC after thread 0 [default: spread over the interval]",
        |to, given| given.time("us").map(|time| to.align = Some(time)),
    ),
    value(
        "-b, --breaktrace USEC",
        "the first wake-up later than USEC ends the run; exit code 1",
        shared::stop_on_latency,
    ),
    value("-c, --clock CLOCK", "0: CLOCK_MONOTONIC, and no other", clock),
    value(
        "-d, --distance USEC",
        "how much longer each further thread's interval is [default: 500; with -S, -h, -H: 0]",
        |to, given| given.time("us").map(|time| to.distance = Some(time)),
    ),
    value(
        "-D, --duration TIME",
        "ends after TIME: seconds, or with s, m, h, d [default: endless]",
        |to, given| given.above_zero("s").map(|time| to.duration = time),
    ),
    value(
        "-h, --histogram USEC",
        "prints a histogram of one row a microsecond; all threads get the same priority",
        histogram,
    ),
    value(
        "-H, --histofall USEC",
        "the same with a column for all threads together",
        |to, given| {
            to.run.view.sums = true;
            histogram(to, given)
        },
    ),
    value("--histfile=FILE", "writes the histogram to FILE instead of stdout", |to, given| {
        to.run.view.histogram_file = Some(given.text().into());
        Ok(())
    }),
    value("-i, --interval USEC", "interval of the first thread [default: 1000]", |to, given| {
        given.above_zero("us").map(|time| to.interval = time)
    }),
    flag("--default-system, --laptop", "does not hold /dev/cpu_dma_latency", |to| {
        to.idle = Idle::Leave
    }),
    value(
        "--latency=USEC",
        "holds /dev/cpu_dma_latency at this value [default: 0, where it may be held]",
        |to, given| given.number("number of us").map(|us| to.idle = Idle::At(us)),
    ),
    value(
        "-l, --loops LOOPS",
        "ends when a thread has woken so often [default: 0, endless]",
        |to, given| {
            let loops: u64 = given.number("number of loops")?;
            to.loops = (loops > 0).then_some(loops);
            Ok(())
        },
    ),
    flag("-m, --mlockall", "locks memory, which Hourglass always does", |_| {}),
    value(
        "--mainaffinity=CPUS",
        "the main thread, with its status lines, runs there, also if those CPUs are measured",
        |to, given| {
            let cpus = given.cpus(&to.machine)?;
            to.request().spec.watch_on = Some(cpus);
            Ok(())
        },
    ),
    flag("-M, --refresh_on_max", "status lines change only when there is a new maximum", |to| {
        to.run.view.on_max = true
    }),
    flag(
        "-n, --nanosleep, --notrace, -u, --unbuffered",
        "of older versions; nothing is different without",
        |_| {},
    ),
    flag("-N, --nsecs", "prints nanoseconds", |to| to.run.view.nanos = true),
    value(
        "-p, --prio, --priority PRIO",
        "real-time priority of the first thread, 0 to 99; each further one has one less, \
         with -S, -h, -H the same [default: 0, time-sharing]",
        |to, given| given.number_in("priority", 0..=99).map(|priority| to.priority = priority),
    ),
    value(
        "-y, --policy NAME",
        "other, normal, batch, idle, fifo or rr [default: fifo with -p, else other]; -p needs fifo or rr",
        class,
    ),
    flag("--priospread", "each further thread has one priority more instead", |to| {
        to.spread = true
    }),
    flag("-q, --quiet", "no status lines, no warnings; with -h the histogram alone", shared::quiet),
    value(
        "--secaligned [USEC]",
        "the first interval starts on a full second; USEC as with -A [default: 0]",
        |to, given| {
            to.request().spec.whole_second = true;
            to.align = Some(given.value().map_or(Ok(Span::ZERO), |_| given.time("us"))?);
            Ok(())
        },
    ),
    flag("-S, --smp", "-t -a, the same priority and the same interval for all threads", |to| {
        to.smp = true
    }),
    value(
        "-t, --threads [NUM]",
        "number of threads [default: 1; without NUM as many as CPUs]",
        threads,
    ),
    flag("-v, --verbose", "prints each sample, as THREAD:NUMBER:LATENCY, after the run", |to| {
        to.run.view.samples = true
    }),
];

/// What cyclictest does not have.
const BESIDE: &[OptionDef<LatencyDraft>] = &[
    value(
        "--max-latency=TIME",
        "no wake-up may be later; times of these options carry their unit, or are in us",
        shared::max_latency,
    ),
    value(
        "--percentile=pX=TIME",
        "X per cent of each thread's wake-ups, lost ones included, may not be later: p99.9=80us; \
         may be given more than once",
        shared::percentile,
    ),
    value(
        "--max-misses=COUNT",
        "no more intervals may be lost, of all threads together",
        shared::max_misses,
    ),
    value(
        "--max-gap=TIME",
        "while awake, no thread may be interrupted for longer",
        shared::max_gap,
    ),
    value(
        "--on-hit=COMMAND",
        "sh -c COMMAND when -b ended the run; HOURGLASS_HIT_NS and others describe the hit",
        shared::on_hit,
    ),
    flag(
        "--rephase",
        "counts each interval from the waking before, as LAT of the Hourglass paper does; none can \
         be lost then",
        |to| to.rephase = true,
    ),
    value(
        "--timer=TIMER",
        "what wakes the threads, as run -i: HR, TIMERFD, SLEEPER:precise, SPIN and others [default: \
         NATIVE]",
        |to, given| {
            let method = wake::parse(given.text()).map_err(|error| given.wrong(error))?;
            to.timer = Some(method);
            Ok(())
        },
    ),
    shared::load(),
    shared::load_cpus(),
    shared::peer_trace(),
    flag(
        "--top",
        "shows the run on the terminal meanwhile: threads, the worst wake-up with its cause, a \
         histogram; drawn by a CPU that is not measured (-a, --mainaffinity)",
        |to| to.run.top = true,
    ),
    shared::peer_best_effort(),
    value(
        "-o, --output DIR",
        "stores the run in a new folder (cyclictest's -o RED is refused)",
        folder,
    ),
    value(
        "--records=COUNT",
        "room for single samples, in records of three [default: 300000]",
        shared::records,
    ),
    shared::json_or_file(),
    shared::openmetrics(),
    shared::junit(),
    value("--color=WHEN", "auto, always or never", shared::color),
    help("--help", "this text"),
];

/// What cyclictest has or had and this command has not.
const REFUSED: &[OptionDef<LatencyDraft>] = &[
    refused("-F, --fifo PATH", "no status pipe; kill -USR1 prints the state to stderr"),
    refused("-r, --relative", "no relative timers; use --rephase, which counts from each waking"),
    refused("-R, --resolution", "use: hourglass clocks"),
    refused("-X", "use: hourglass clocks --json"),
    refused(
        "-s, --system",
        "no interval timers; wake-ups come from clock_nanosleep, or from --timer",
    ),
    refused(
        "-x, --posix_timers",
        "no POSIX timers; wake-ups come from clock_nanosleep, or from --timer",
    ),
    refused("--spike=USEC", "use -v or -o DIR, which store every sample"),
    refused("--spike-nodes=NUM", "use --records COUNT with -v or -o DIR"),
    refused("--smi", "use: hourglass noise, which shows what is lost below the kernel"),
    refused(
        "--tracemark",
        "no marker is written; use --trace, which stores the kernel's events around the hit of -b",
    ),
    refused(
        "-B, -C, -E, -f, -I, -O, -P, -T, -w, -W",
        "tracing options of old versions; use --trace with -b",
    ),
    refused("-U, --numa", "use -S or -a"),
    refused("-e USEC", "use --latency=USEC"),
    refused("--deepest-idle-state=N", "use --latency=USEC"),
    refused("--dbg_cyclictest", "use --json"),
];

pub(crate) static GROUPS: [(&str, &[OptionDef<LatencyDraft>]); 3] = [
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
         thread is late is lost: it is counted, and percentiles include it with the latency at \
         which it could have been served. Needs no root without real-time priorities.",
        "Prints cyclictest's lines, and in comment lines (#) what cyclictest does not have. On a \
         terminal status lines show how it goes if there is a CPU that no thread uses (-a), or \
         with --mainaffinity. SIGUSR1 prints the state to stderr at any time.",
    ],
    exit_codes: &[
        ("0", "measured; every limit that was given was kept"),
        ("1", "measured, and a limit was broken or -b was hit"),
        ("2", "wrong usage or bad input; nothing was run"),
        ("3", "the machine lacks a privilege or a device; nothing was run"),
        (
            "4",
            "measured, and no verdict: a premise broke (a thread lost its CPUs, a limit on time, a load that ended)",
        ),
        ("130", "ended by Ctrl-C (128+N for signal N); what was measured is printed and stored"),
    ],
    examples: &[
        ("sudo hourglass latency -mSqp80 -i200 -h400 -D1h", "as with cyclictest"),
        ("hourglass latency --policy other -D10 -a 1", "without root"),
        ("sudo hourglass latency -p80 -a 1 -D60 --top", "watch it live, drawn by CPU 0"),
        ("sudo hourglass latency -Sp80 -D60 --max-latency 100us", "a gate for CI"),
        ("sudo hourglass latency -Sp80 -D60 --load all", "on a loaded machine"),
        ("sudo hourglass latency -Sp80 -b 100 --on-hit 'dmesg | tail'", "what was that?"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::assert_known;

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
