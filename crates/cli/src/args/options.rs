//! The options of `run`, in the groups of its help (Hourglass paper, Appendix A). The parser, the help, the man page and
//! the completions all read this table.

use std::ops::Range;

use hourglass_documents::{CpuSet, Reservation, ReservationKind};

use super::RunArguments;
use crate::lab::compare::rounds::MOST_ROUNDS;
use crate::lab::{RunOptions, RunSpec, ThreadSpec, models, wake, workload_file};
use crate::options::shared::{self, Measuring};
use crate::options::{Applied, Extent, Language, OptionDef, OptionValues, flag, help, value};
use crate::result_files::ResultFiles;
use crate::settings::Settings;

/// A run whose options are read from left to right.
#[derive(Debug)]
pub(crate) struct RunDraft {
    pub(super) run: RunArguments,
    /// The threads that per-thread options are for.
    pub(super) scope: Range<usize>,
    /// CPUs that can run threads, where the kernel tells.
    pub(super) online: Option<CpuSet>,
}

impl Measuring for RunDraft {
    const LIMIT_UNIT: &str = "";

    fn request(&mut self) -> &mut RunOptions {
        &mut self.run.request
    }

    fn settings(&mut self) -> &mut Settings {
        &mut self.run.settings
    }

    fn files(&mut self) -> &mut ResultFiles {
        &mut self.run.files
    }
}

impl RunDraft {
    fn spec(&mut self) -> &mut RunSpec {
        &mut self.run.request.spec
    }

    fn each(&mut self, change: impl Fn(&mut ThreadSpec)) -> Applied {
        let scope = self.scope.clone();
        self.spec().threads[scope].iter_mut().for_each(change);
        Ok(())
    }

    fn reserve(&mut self, given: &OptionValues<'_>, kind: ReservationKind) -> Applied {
        let above_zero = |at: usize| {
            let values = given.values.get(at).copied().into_iter().collect();
            OptionValues { name: given.name, values }.above_zero("")
        };
        let (budget, period) = (above_zero(0)?, above_zero(1)?);
        let reservation = Reservation::new(budget, period, kind)
            .map_err(|error| given.wrong(format!("{error}: {budget} in every {period}")))?;
        self.each(|thread| thread.reservation = Some(reservation))
    }
}

fn scope(to: &mut RunDraft, given: &OptionValues<'_>) -> Applied {
    let threads = to.spec().threads.len();
    let text = given.text();
    match text.parse::<usize>() {
        Ok(number) if number < threads => {
            to.scope = number..number + 1;
            Ok(())
        }
        Ok(number) => {
            let there = match threads {
                1 => "the only thread is 0".to_owned(),
                n => format!("{n} threads are numbered 0 to {}", n - 1),
            };
            Err(given.wrong(format!("there is no thread {number}; {there}")))
        }
        Err(_) => {
            let last = threads.saturating_sub(1);
            Err(given.wrong(format!("bad thread number '{text}': give one from 0 to {last}")))
        }
    }
}

fn cpus(to: &mut RunDraft, given: &OptionValues<'_>) -> Applied {
    let cpus: CpuSet = given.text().parse().map_err(|error| given.wrong(error))?;
    workload_file::check_cpus(&cpus, to.online.as_ref()).map_err(|error| given.wrong(error))?;
    to.each(|thread| thread.cpus = Some(cpus.clone()))
}

/// Headings that the comparison of two runs asks for.
pub(super) const RUN: &str = "The run";
pub(super) const COMPARING: &str = "Comparing";
pub(super) const OUTPUT: &str = "Output";

pub(super) const LANGUAGE: Language<RunDraft> =
    Language { groups: &GROUPS, combines: false, help: "hourglass run --help" };

pub(crate) static GROUPS: [(&str, &[OptionDef<RunDraft>]); 6] = [
    (RUN, OF_THE_RUN),
    ("Which threads the options that follow are for", SCOPE),
    ("Options per thread", PER_THREAD),
    ("Limits: exit code 1 if one is broken", LIMITS),
    (COMPARING, OF_COMPARISONS),
    (OUTPUT, OF_OUTPUT),
];

const OF_THE_RUN: &[OptionDef<RunDraft>] = &[
    value("-n COUNT", "Number of threads [default: 1; a FILE lists its threads]", |_, _| {
        // Read before the others.
        Ok(())
    }),
    value("-d TIME", "Duration of the run [default: 10s]", |to, given| {
        given.above_zero("").map(|duration| to.spec().duration = duration)
    }),
    value(
        "-e RECORDS",
        "Size of the execution trace in records, divided among the threads; when it is full, \
         counting goes on [default: 300000]",
        shared::records,
    ),
    flag("--ring", "Keep the newest records when the trace is full, instead of the oldest", |to| {
        to.spec().ring = true
    }),
    value(
        "--warm-up TIME",
        "Run each thread's loop for this time before the run starts [default: 0s]",
        |to, given| given.time("").map(|time| to.spec().warm_up = time),
    ),
    value(
        "--seed NUMBER",
        "Random seed, decimal or 0x hexadecimal; recorded with the run [default: from the clock]",
        |to, given| {
            let seed = workload_file::read_seed(given.text());
            seed.map(|seed| to.spec().seed = seed).map_err(|error| given.wrong(error))
        },
    ),
    value(
        "--dma-latency US",
        "Hold /dev/cpu_dma_latency at this many microseconds during the run: idle CPUs stay out of \
         sleep states with a longer exit latency",
        |to, given| {
            let us = given.number("number of microseconds")?;
            to.run.request.dma_latency_us = Some(us);
            Ok(())
        },
    ),
    flag(
        "--best-effort",
        "If the machine refuses a priority, a reservation or a timer, run without it and say so",
        shared::best_effort,
    ),
    flag(
        "--trace",
        "Also record the kernel's events on the measured CPUs (switches, interrupts, timers, \
         faults) in a private trace instance; needs root",
        shared::trace,
    ),
];

const SCOPE: &[OptionDef<RunDraft>] = &[
    value(
        "-t THREAD",
        "Per-thread options that follow are for this thread, from 0 to COUNT-1",
        scope,
    ),
    flag("-a", "Per-thread options that follow are for all threads, until the next -t", |to| {
        to.scope = 0..to.spec().threads.len()
    }),
];

const PER_THREAD: &[OptionDef<RunDraft>] = &[
    value::<RunDraft>(
        "-w WORKLOAD",
        "What the thread does: one of the workloads below [default: CPU]",
        |to, given| {
            let model = models::parse(&given.values).map_err(|error| given.wrong(error))?;
            to.each(|thread| thread.model = model.clone())
        },
    )
    .reaching(Extent::Workload),
    value(
        "-p, --policy PRIORITY",
        "One of the priorities below, or FIFO:1 to FIFO:99, RR:1 to RR:99, OTHER:NICE, BATCH, \
         IDLE, or DEADLINE, which takes its times from the workload [default: NORMAL]",
        |to, given| {
            let read = workload_file::read_priority(given.text());
            let (policy, is_named) = read.map_err(|error| given.wrong(error))?;
            to.each(|thread| (thread.policy, thread.policy_is_named) = (policy, is_named))
        },
    ),
    value(
        "-rh AMOUNT PERIOD",
        "Hard CPU reservation: AMOUNT in every PERIOD, and no more",
        |to, given| to.reserve(given, ReservationKind::Hard),
    ),
    value(
        "-rs AMOUNT PERIOD",
        "Soft CPU reservation: AMOUNT in every PERIOD, and more where CPU time is not reserved",
        |to, given| to.reserve(given, ReservationKind::Soft),
    ),
    value(
        "-i TIMER",
        "Timer that wakes the thread: one of the timers below [default: NATIVE]",
        |to, given| {
            let method = wake::parse(given.text()).map_err(|error| given.wrong(error))?;
            to.each(|thread| thread.wake = method.clone())
        },
    ),
    value("-s TIME", "Start the thread TIME into the run [default: 0s]", |to, given| {
        let start = given.time("")?;
        to.each(|thread| thread.start = start)
    }),
    value("-f TIME", "End the thread TIME into the run [default: with the run]", |to, given| {
        let finish = given.time("")?;
        to.each(|thread| thread.finish = Some(finish))
    }),
    value(
        "--cpu LIST",
        "CPUs on which the thread may run, for example 0, 0-3 or 0,2-3 [default: all that \
         hourglass may use]",
        cpus,
    ),
    value(
        "--gap TIME",
        "Record interruptions longer than this [default: twice the measured time of the workload's \
         loop]",
        |to, given| {
            let gap = given.above_zero("")?;
            to.each(|thread| thread.gap = Some(gap))
        },
    ),
];

const LIMITS: &[OptionDef<RunDraft>] = &[
    value(
        "--max-latency TIME",
        "Limit for the latency of each wake-up of LAT or GRID",
        shared::max_latency,
    ),
    value("--max-gap TIME", "Limit for the longest gap", shared::max_gap),
    value(
        "--max-misses COUNT",
        "Limit for missed and lost periods of all threads together",
        shared::max_misses,
    ),
    value(
        "--percentile pX=TIME",
        "Limit for X per cent of each thread's wake-ups, lost ones included, or, where none are \
         measured, of its gaps: p99.9=80us. May be repeated",
        shared::percentile,
    ),
    value(
        "--stop-on-gap TIME",
        "End the run at the first longer gap; the newest records are stored, as with --ring",
        shared::stop_on_gap,
    ),
    value(
        "--stop-on-latency TIME",
        "End the run at the first later wake-up of LAT or GRID; the newest records are stored",
        shared::stop_on_latency,
    ),
    value(
        "--on-hit COMMAND",
        "When one of these two ended the run and all threads have stopped, run COMMAND by sh -c; \
         HOURGLASS_HIT_KIND, _THREAD, _CPU, _NS, _LIMIT_NS, _AT_NS and _FOLDER describe the hit",
        shared::on_hit,
    ),
];

const OF_COMPARISONS: &[OptionDef<RunDraft>] = &[
    value::<RunDraft>(
        "--against OPTIONS",
        "Alternate this run (A) with the same run with OPTIONS (B), and compare them: \
         hourglass.diff/1. Quote OPTIONS; they are read after those of the run, for all threads. \
         With -n or a FILE among them they describe the threads anew, and need limits of their \
         own. Limits are judged in each round. -o stores each run: DIR/a-01, DIR/b-01, ...",
        |_, _| {
            // Read after the others.
            Ok(())
        },
    )
    .reaching(Extent::Quoted),
    value(
        "--rounds N",
        "Number of rounds; below 6 there is no verdict, and a warning says beforehand what this \
         number cannot decide [default: 10]",
        |to, given| {
            let rounds = given.number_in("number of rounds", 1..=MOST_ROUNDS)?;
            to.run.rounds = Some(rounds);
            Ok(())
        },
    ),
    value(
        "--fail-on WHEN",
        "Exit code 1 if something got worse (worse); also 4 if there is no verdict (unknown), or \
         if a single metric could not be decided (doubt) [default: unknown]",
        |to, given| given.word().map(|when| to.run.fail_on = Some(when)),
    ),
    flag(
        "--control",
        "Add a thread that watches a CPU that --cpu leaves free, without the load: what the \
         platform does by itself. If no CPU is free, control (A) and run (B) alternate, as with \
         --against",
        |to| to.run.control = true,
    ),
];

const OF_OUTPUT: &[OptionDef<RunDraft>] = &[
    flag(
        "-c",
        "Print each record also in cycles of the raw counter, not based at zero; implies --records",
        |to| (to.run.cycles, to.run.records) = (true, true),
    ),
    flag("--records", "Print the record lines also on a terminal", |to| to.run.records = true),
    flag("--summary", "Print the summary also to a pipe or a file", |to| to.run.summary = true),
    value(
        "-o, --output DIR",
        "Keep the run in a new folder, for show, render and report",
        shared::folder,
    ),
    flag("--json", "Print one JSON document (hourglass.run/1) and nothing else", shared::json),
    shared::openmetrics(),
    shared::junit(),
    value(
        "--color WHEN",
        "auto, always or never [default: auto, which respects NO_COLOR]",
        shared::color,
    ),
    flag(
        "-q, --quiet",
        "Print only errors on stderr: no progress, no warnings. With -o print nothing on stdout, \
         unless --records, --summary or --json asks for it",
        shared::quiet,
    ),
    help("-h, --help", "Print this help"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::assert_known;

    /// Each name once; Appendix A of the paper, in its order.
    #[test]
    fn every_option_of_the_paper_is_there() {
        assert_known(&GROUPS, "-n -d -c -t -a -e -p -rh -rs -w -i -s -f");
    }
}
