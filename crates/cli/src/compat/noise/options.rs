//! The letters of oslat(8), the few of sysjitter, and what `noise` has beside them.

use super::parse::{LEAST_ROWS, MOST_ROWS, NoiseDraft, size, work};
use crate::compat::help::HelpTexts;
use crate::options::shared::{self, Measuring};
use crate::options::{Language, OptionDef, flag, help, refused, value};

pub(super) const LANGUAGE: Language<NoiseDraft> =
    Language { groups: &GROUPS, combines: true, help: "hourglass noise --help" };

/// The letters that users of oslat and sysjitter know.
const LETTERS: &[OptionDef<NoiseDraft>] = &[
    value(
        "-b, --bucket-size N",
        "number of rows of the table, 4 to 1024 [default: 32]",
        |to, given| {
            let rows = given.number_in("number of rows", LEAST_ROWS..=MOST_ROWS)?;
            to.rows = rows;
            Ok(())
        },
    ),
    value("-W, --bucket-width NS", "width of a row in ns [default: 1000]", |to, given| {
        let width = given.above_zero("ns")?;
        to.run.view.width_ns = width.nanos_or_zero();
        Ok(())
    }),
    value(
        "-c, --cpu-list, --cores CPUS",
        "CPUs to measure: 1,3,5-7; !0 is all but 0 [default: all]",
        |to, given| {
            to.cpus = Some(given.cpus(&to.machine)?);
            Ok(())
        },
    ),
    value(
        "-C, --cpu-main-thread CPU",
        "CPU of the main thread; without -c that CPU is not measured",
        |to, given| {
            let cpus = given.cpus(&to.machine)?;
            to.main = cpus.iter().next();
            to.request().spec.watch_on = Some(cpus);
            Ok(())
        },
    ),
    value(
        "-D, -t, --duration, --runtime TIME",
        "duration: seconds, or with s, m, h, d [default: 10]",
        |to, given| given.above_zero("s").map(|time| to.request().spec.duration = time),
    ),
    value(
        "-f, --rtprio PRIO",
        "SCHED_FIFO with PRIO from 1 to 99; one CPU then stays free for other work \
         [default: time-sharing]",
        |to, given| {
            let priority = given.number_in("priority", 1..=99)?;
            to.priority = Some(priority);
            Ok(())
        },
    ),
    value(
        "-w, --workload WORKLOAD",
        "what threads do between two reads of the counter: no or memmove [default: no]",
        work,
    ),
    value(
        "-m, --workload-mem SIZE",
        "how much memmove moves: 4K, 1M [default: 4K]",
        |to, given| size(given).map(|size| to.move_size = size),
    ),
    value(
        "-T, --trace-threshold USEC",
        "the first longer gap ends the run; exit code 1",
        shared::stop_on_gap,
    ),
    flag("-z, --zero-omit", "leaves out rows without gaps", |to| to.run.view.zero_omit = true),
    flag("-q, --quiet", "nothing but errors on stderr", shared::quiet),
    value(
        "--gap=TIME",
        "shorter gaps are not counted, as sysjitter's THRESHOLD_NS, which may stand alone \
         [default: twice the loop's time]",
        |to, given| given.above_zero("ns").map(|time| to.threshold = Some(time)),
    ),
];

/// What the peers do not have.
const BESIDE: &[OptionDef<NoiseDraft>] = &[
    value(
        "--max-gap=TIME",
        "no gap may be longer; times of these options carry their unit, or are in us",
        shared::max_gap,
    ),
    value(
        "--percentile=pX=TIME",
        "X per cent of each thread's gaps may not be longer: p99=30us; may be given more than once",
        shared::percentile,
    ),
    value(
        "--on-hit=COMMAND",
        "sh -c COMMAND when -T ended the run; HOURGLASS_HIT_NS and others describe the hit",
        shared::on_hit,
    ),
    value("--warm-up=TIME", "time to run before anything is counted [default: 1s]", |to, given| {
        given.time("s").map(|time| to.request().spec.warm_up = time)
    }),
    shared::load(),
    shared::load_cpus(),
    shared::peer_trace(),
    flag(
        "--top",
        "shows the run on the terminal meanwhile: threads, the worst gap with its cause, a \
         histogram; drawn by a CPU that is not measured (-c, -C)",
        |to| to.run.top = true,
    ),
    shared::peer_best_effort(),
    value(
        "-o, --output DIR",
        "stores the run, each gap with its time, in a new folder",
        shared::folder,
    ),
    value(
        "--records=COUNT",
        "room for records [default: 300000]; beyond it gaps are counted but not stored",
        shared::records,
    ),
    shared::json_or_file(),
    shared::openmetrics(),
    shared::junit(),
    value("--color=WHEN", "auto, always or never", shared::color),
    help("-h, --help", "this text"),
];

/// What the peers have and this command has not.
const REFUSED: &[OptionDef<NoiseDraft>] = &[
    refused(
        "-B, --bias",
        "nothing to subtract: the loop's own time is not a gap; --gap TIME raises the threshold",
    ),
    refused(
        "-s, --single-preheat",
        "no preheat measures anything; the counter is calibrated over the whole run",
    ),
    refused("-v, --version", "use: hourglass --version"),
    refused("--raw=PREFIX", "use -o DIR, which stores every gap with its time"),
    refused("--sort=CORES", "columns are in the order of CPUs"),
    refused("--verbose", "use --json or -o DIR"),
];

pub(crate) static GROUPS: [(&str, &[OptionDef<NoiseDraft>]); 3] = [
    ("The letters of oslat and sysjitter", LETTERS),
    ("Options that oslat and sysjitter lack", BESIDE),
    ("Refused, and what to use instead", REFUSED),
];

/// What help says beside the options.
pub(crate) const TEXTS: HelpTexts = HelpTexts {
    about: "What interrupts busy threads, with the options of oslat and sysjitter",
    usage: "hourglass noise [OPTIONS] [THRESHOLD_NS]",
    paragraphs: &[
        "One thread on each CPU reads the counter all the time and records each gap. Needs no root \
         unless -f is given. Never takes every CPU at a real-time priority.",
        "A row of the table holds gaps from one width less up to its label, as with oslat; but \
         only gaps are counted, not each iteration of the loop, so that percentiles are meaningful.",
    ],
    exit_codes: &[
        ("0", "measured; every limit that was given was kept"),
        ("1", "measured, and a limit was broken or -T was hit"),
        ("2", "wrong usage or bad input; nothing was run"),
        ("3", "the machine lacks a privilege or a device; nothing was run"),
        (
            "4",
            "measured, and no verdict: a premise broke (a thread lost its CPUs, a limit on time, a load that ended)",
        ),
        ("130", "ended by Ctrl-C (128+N for signal N); what was measured is printed and stored"),
    ],
    examples: &[
        ("sudo hourglass noise -c 1-3 -f 80 -D1h -T 50", "as with oslat"),
        ("hourglass noise -D5 300", "as with sysjitter --runtime 5 300"),
        ("hourglass noise -c 1 -D1m --top", "watch it live, drawn by CPU 0"),
        ("hourglass noise -c 1 --max-gap 100us -qz", "a gate for CI, without root"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::assert_known;

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
