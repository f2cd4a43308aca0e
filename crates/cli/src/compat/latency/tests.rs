//! Lines that users of cyclictest type, and its defects that are not repeated.

use hourglass_documents::Policy;
use hourglass_time::Span;

use super::parse::{self, Latency};
use crate::compat::{HostCpus, ParsedCommand};

fn machine() -> HostCpus {
    HostCpus { cpus: (0..4).collect(), permitted: (0..4).collect(), holds_latency: true }
}

fn parse(line: &str) -> Result<Latency, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse::parse(&words, &machine()) {
        Ok(ParsedCommand::Run(run)) => Ok(*run),
        Ok(ParsedCommand::Help) => Err("help".to_owned()),
        Err(stop) => Err(stop.to_string()),
    }
}

fn run(line: &str) -> Latency {
    parse(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Each thread: workload, policy, CPUs.
fn threads(run: &Latency) -> Vec<String> {
    let cpus = |thread: &crate::lab::ThreadSpec| thread.cpus.as_ref().map(ToString::to_string);
    let shown = |thread: &crate::lab::ThreadSpec| {
        let cpus = cpus(thread).unwrap_or_else(|| "any".to_owned());
        format!("{} {} {cpus}", thread.model, thread.policy)
    };
    run.request.spec.threads.iter().map(shown).collect()
}

/// `-mSqp80` of a thousand forum posts.
#[test]
fn smp_is_a_thread_a_cpu_with_one_priority() {
    let run = run("-mSqp80 -i200 -h400 -D1h");
    let each = |cpu| format!("GRID 200us FIFO:80 {cpu}");
    assert_eq!(threads(&run), [each(0), each(1), each(2), each(3)]);
    assert_eq!(run.request.spec.duration, Span::from_secs(3_600));
    assert!(run.settings.quiet && run.view.histogram);
    assert_eq!(
        run.request.spec.threads[0].steps.map(|steps| (steps.width_ns, steps.count)),
        Some((1_000, 400))
    );
    assert_eq!(run.request.dma_latency_us, Some(0));
}

/// cyclictest 2.4: without -h, -S adds 500 us to each further thread's interval.
#[test]
fn smp_keeps_the_interval_for_all_threads() {
    assert!(threads(&run("-S -p80 -i200")).iter().all(|thread| thread.starts_with("GRID 200us ")));
    let with_distance = run("-S -p80 -i200 -d100");
    assert_eq!(threads(&with_distance)[3], "GRID 500us FIFO:80 3");
}

/// cyclictest(8): -d, -p and -t.
#[test]
fn further_threads_are_slower_and_less_urgent() {
    let run = run("-t3 -p80 -a 1,3");
    let wanted = ["GRID 1ms FIFO:80 1", "GRID 1.5ms FIFO:79 3", "GRID 2ms FIFO:78 1"];
    assert_eq!(threads(&run), wanted);
    assert_eq!(run.view.threads, [(80, 1_000), (79, 1_500), (78, 2_000)]);
}

#[test]
fn spread_policies_and_priorities() {
    let policies = |line: &str| -> Vec<Policy> {
        run(line).request.spec.threads.iter().map(|thread| thread.policy).collect()
    };
    assert_eq!(policies("-t2 -p98 --priospread"), [Policy::Fifo(98), Policy::Fifo(99)]);
    assert_eq!(policies("-t2 -p1"), [Policy::Fifo(1), Policy::Fifo(1)]);
    assert_eq!(policies("-p5 --policy rr"), [Policy::RoundRobin(5)]);
    assert_eq!(policies("-p0 --policy=normal"), [Policy::Other(0)]);
    assert_eq!(policies("--policy fifo"), [Policy::Fifo(1)]);
    assert_eq!(policies("-y batch"), [Policy::Batch]);
    assert_eq!(policies(""), [Policy::Other(0)]);
}

#[test]
fn threads_are_spread_over_the_interval_or_aligned() {
    let starts = |line: &str| -> Vec<i64> {
        run(line).request.spec.threads.iter().map(|thread| thread.start.nanos() / 1_000).collect()
    };
    assert_eq!(starts("-S -i1000"), [0, 250, 500, 750]);
    assert_eq!(starts("-S -A 10"), [0, 10, 20, 30]);
    assert_eq!(starts("-S --secaligned"), [0, 0, 0, 0]);
    assert!(run("--secaligned=5").request.spec.whole_second);
}

#[test]
fn what_holds_the_cpus_awake() {
    assert_eq!(run("--latency=20").request.dma_latency_us, Some(20));
    assert_eq!(run("--laptop").request.dma_latency_us, None);
    let refusing = HostCpus { holds_latency: false, ..machine() };
    let Ok(ParsedCommand::Run(run)) = parse::parse(&[], &refusing) else { panic!("refused") };
    assert_eq!((run.request.dma_latency_us, run.idle_refused), (None, true));
}

#[test]
fn limits_and_output() {
    let run = run("-b 100 --max-latency 50 --percentile p99=1ms -N -M -v --json=a.json -o kept");
    assert_eq!(run.request.spec.guard.stop_on_latency, Some(Span::from_micros(100)));
    assert_eq!(run.request.gates.limits.len(), 2);
    assert!(run.view.nanos && run.view.on_max && run.view.samples && !run.settings.json);
    assert_eq!(run.view.json_file.as_deref(), Some("a.json".as_ref()));
    assert_eq!(run.request.folder.as_deref(), Some("kept".as_ref()));
    let run = self::run("--json --rephase");
    assert!(run.settings.json);
    assert_eq!(run.request.spec.threads[0].model.to_string(), "LAT 1ms");
}

/// Drawn from a CPU that no thread uses, or from where the user puts the main thread.
#[test]
fn a_picture_is_drawn_from_a_cpu_that_is_not_measured() {
    assert!(run("-a 1,2 -t2 --top").top && run("-S --mainaffinity 3 --top").top);
    assert!(!run("-a 1").top);
}

#[test]
fn mistakes_are_named() {
    for (line, wanted) in [
        ("-h", "-h: USEC is missing; help is --help"),
        ("-h 0", "-h: bad number of rows '0': give one from 1 to 1000000"),
        ("-p 100", "-p: bad priority '100': give one from 0 to 99"),
        ("-i 0", "-i: bad time '0': it must be above zero"),
        ("-c 1", "-c: clock 1 is not there; 0, CLOCK_MONOTONIC, is"),
        ("-o 4", "-o: no oscilloscope mode; -v prints every sample"),
        ("-r", "-r: no relative timers; use --rephase"),
        ("-mx", "-x: no POSIX timers"),
        ("--spike=100", "--spike: use -v or -o DIR"),
        ("--spike 100", "--spike: use -v or -o DIR"),
        ("-a 7", "-a: CPU 7 is not online, or not in the cpuset of this process; use some of 0-3"),
        ("-t 0", "-t: bad number of threads '0': give one from 1 to 4096"),
        ("--json a.json", "'a.json' belongs to no option; did you mean --json=FILE?"),
        ("--histfile a", "--histfile: no histogram is collected"),
        ("--rephase -l 5", "--rephase: -l counts wake-ups on a grid"),
        ("--rephase --max-misses 0", "--max-misses: no thread of this run has periods"),
        ("--policy deadline", "--policy: unknown policy 'deadline'"),
        (
            "-p 80 --policy other",
            "-p 80: --policy other has no real-time priorities; give --policy fifo",
        ),
        ("-y normal -Sp80", "-p 80: --policy other has"),
        ("-p 1 --policy batch", "-p 1: --policy batch has"),
        ("-p 1 --policy idle", "-p 1: --policy idle has"),
        (
            "--top",
            "--top: every CPU is measured, and a picture drawn from one would be in the numbers; pin",
        ),
        ("-S --top", "--top: every CPU is measured"),
        ("-a 1 --top -q", "--top: with -q nothing is shown"),
        ("--treads", "--treads: unknown option; did you mean --threads?"),
        ("--help -x", "help"),
    ] {
        let found = parse(line).unwrap_err();
        assert!(found.starts_with(wanted), "{line}: {found}");
    }
}
