//! Short runs on the real machine. Bounds are one-sided: a busy machine may interrupt more, never
//! less, and may wake threads late, never early.

use std::convert::Infallible;
use std::path::PathBuf;

use hourglass_documents::document::{CauseReport, Warning};
use hourglass_documents::manifest::EvidenceFacts;
use hourglass_documents::{Cause, CpuSet, Policy};
use hourglass_measure::own_loop::MeasuredLoop;
use hourglass_measure::{Finished, Gates, RunFailure, RunOptions};
use hourglass_runs::open_run;
use hourglass_time::Span;
use hourglass_trace::TraceSummary;
use hourglass_trace::cause::{AttributedGap, Indication};
use hourglass_trace::{Interval, JobRecord, KernelEvent};
use hourglass_workload::LoopSpec;
use hourglass_workload::spec::{RunSpec, ThreadSpec};
use hourglass_workload::{models, wake};

fn thread(words: &str) -> ThreadSpec {
    let words: Vec<&str> = words.split(' ').collect();
    ThreadSpec { model: models::parse(&words).unwrap(), ..ThreadSpec::default() }
}

fn spec(ms: i64, threads: Vec<ThreadSpec>) -> RunSpec {
    RunSpec { duration: Span::from_millis(ms), ..RunSpec::new(threads) }
}

fn run_in(spec: RunSpec, folder: Option<PathBuf>) -> Result<Finished, RunFailure> {
    let command_line = vec!["hourglass".to_owned()];
    let gates = Gates::default();
    let request = RunOptions { command_line, folder, gates, ..RunOptions::new(spec) };
    hourglass_measure::run(request, &mut ())
}

fn run(spec: RunSpec) -> Finished {
    run_in(spec, None).unwrap()
}

/// The last CPU that this process may use.
fn a_cpu() -> CpuSet {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let allowed: CpuSet = line.trim().parse().unwrap();
    allowed.iter().last().into_iter().collect()
}

fn of(intervals: &[Interval], thread: u32) -> Vec<Interval> {
    intervals.iter().copied().filter(|interval| interval.thread == thread).collect()
}

/// Section 3.1: records of a thread are disjoint, and on one CPU no two threads overlap.
fn assert_a_sound_timeline(intervals: &[Interval]) {
    let mut free_from: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
    let mut done: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
    for interval in intervals {
        assert!(interval.start_ticks <= interval.end_ticks);
        // One of no length is the edge of a gap, at an end of the run beside what another thread does there.
        if interval.start_ticks < interval.end_ticks {
            let cpu = free_from.insert(interval.cpu, interval.end_ticks).unwrap_or(0);
            assert!(cpu <= interval.start_ticks, "two threads at once on a CPU: {interval:?}");
        }
        let own = done.insert(interval.thread, interval.end_ticks).unwrap_or(0);
        assert!(own <= interval.start_ticks, "a thread twice at once: {interval:?}");
    }
}

#[test]
fn all_models_together_leave_a_sound_timeline() {
    let words = [
        "CPU",
        "CPU_SCAN 32",
        "CPU_YIELD 300us",
        "CPU_SCAN_YIELD 16 300us",
        "PERIODIC 1ms 10ms",
        "CPU_PERIODIC 1ms 20ms",
        "LAT 3ms",
        "GRID 4ms",
        "CPU_MOVE 4",
    ];
    let finished = run(spec(300, words.map(thread).to_vec()));
    let intervals: Vec<Interval> = finished.intervals().collect();
    assert_a_sound_timeline(&intervals);
    assert!(intervals.is_sorted_by_key(|interval| interval.start_ticks));
    let threads = &finished.document.result.threads;
    for (thread, words) in threads.iter().zip(words) {
        assert_eq!(thread.workload, words);
        let latency = words.starts_with("LAT") || words.starts_with("GRID");
        assert_eq!(of(&intervals, thread.id).is_empty(), latency, "{words}");
        assert_eq!(thread.latency.is_some(), latency);
        assert_eq!(thread.work.is_some(), words.contains("SCAN"));
        assert_eq!(thread.deadlines.is_some(), words.contains("PERIODIC"));
        if let Some(periods) = thread.deadlines {
            let contents = if words.starts_with("CPU") { 15 } else { 30 };
            assert_eq!(periods.hit + periods.missed + periods.lost, contents, "{words}");
        }
    }
}

/// A higher-priority thread takes the CPU for known spans: each must lie in a gap of the lower.
#[test]
fn known_interruptions_are_found_with_their_lengths() {
    let cpu = Some(a_cpu());
    let victim = ThreadSpec { cpus: cpu.clone(), ..thread("CPU") };
    let taker = ThreadSpec {
        cpus: cpu,
        policy: Policy::Fifo(80),
        policy_is_named: false,
        wake: wake::parse("HR").unwrap(),
        ..thread("PERIODIC 2ms 20ms")
    };
    let finished = match run_in(spec(300, vec![victim, taker]), None) {
        Ok(finished) => finished,
        Err(RunFailure::Refused(refusals)) => return eprintln!("not allowed here: {refusals:?}"),
        Err(error) => panic!("{error}"),
    };
    let intervals: Vec<Interval> = finished.intervals().collect();
    assert_a_sound_timeline(&intervals);
    let victim = of(&intervals, 0);
    let first = victim.first().unwrap().start_ticks;
    let last = victim.last().unwrap().end_ticks;
    let known: Vec<Interval> = of(&intervals, 1)
        .into_iter()
        .filter(|taken| taken.start_ticks > first && taken.end_ticks < last)
        .collect();
    // Of fifteen; on a busy machine the victim itself comes late and is gone early.
    assert!(known.len() >= 5, "only {} spans taken", known.len());
    for taken in known {
        let in_a_gap = victim
            .windows(2)
            .any(|w| w[0].end_ticks <= taken.start_ticks && taken.end_ticks <= w[1].start_ticks);
        assert!(in_a_gap, "not in a gap: {taken:?}");
    }
}

/// Issue 6, part 1: where another thread of the run ran on the thread's CPU in a gap, the kernel took
/// the CPU away and counted it; what was counted in gaps is not more than the kernel's account.
#[test]
fn gaps_in_which_another_thread_ran_were_switches() {
    let pinned = |words| ThreadSpec { cpus: Some(a_cpu()), ..thread(words) };
    let finished = run(spec(500, vec![pinned("CPU"), pinned("CPU")]));
    let intervals: Vec<Interval> = finished.intervals().collect();
    let (mut switched, mut witnessed) = (0u32, 0u32);
    for thread in &finished.document.result.threads {
        let own = of(&intervals, thread.id);
        let others = of(&intervals, 1 - thread.id);
        for pair in own.windows(2).filter(|pair| pair[1].onset.is_gap()) {
            let (begun, ended) = (pair[0].end_ticks, pair[1].start_ticks);
            let next = others.partition_point(|other| other.start_ticks < begun);
            if others.get(next).is_some_and(|other| other.end_ticks <= ended) {
                let evidence = pair[1].evidence;
                let counted = evidence.counted.map_or(0, |counted| counted.involuntary);
                switched += 1;
                witnessed += u32::from(evidence.cleared != Some(false) && counted > 0);
            }
        }
        let counted = own.iter().filter_map(|interval| interval.evidence.counted);
        let counted: u64 = counted.map(|counted| u64::from(counted.involuntary)).sum();
        let account = thread.kernel.unwrap().involuntary_switches;
        assert!(counted <= account, "thread {}: {counted} of {account}", thread.id);
    }
    assert!(switched >= 5, "{switched}");
    // Two interruptions in a row may be reported as one.
    assert!(witnessed * 10 >= switched * 9, "{witnessed} of {switched}");
    let tids: Vec<u32> = finished.document.result.threads.iter().filter_map(|t| t.tid).collect();
    assert!(matches!(tids[..], [a, b] if a != b));
    let evidence = &finished.document.manifest.evidence;
    assert!(evidence.iter().any(|facts| facts.source == EvidenceFacts::COUNTERS && facts.used));
    assert!(evidence.iter().all(|facts| facts.used || !facts.found.is_empty()));
}

/// A host that has the CPU while clocks are compared makes records fall beside their gaps: the best of so
/// many tries counts.
const TRIES: usize = 5;

/// Issue 6, part 1: records of switches, where any user may have them: a thread that waits leaves the
/// CPU and takes it again, and does neither while it runs.
#[test]
fn recorded_switches_lie_outside_the_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let mut beside = Vec::new();
    for number in 0..TRIES {
        let path = folder.path().join(number.to_string());
        let finished =
            run_in(spec(300, vec![thread("PERIODIC 1ms 10ms")]), Some(path.clone())).unwrap();
        let evidence = &finished.document.manifest.evidence;
        let perf = evidence.iter().find(|facts| facts.source == EvidenceFacts::PERF).unwrap();
        let events: Vec<KernelEvent> = finished.kernel_events().collect();
        if !perf.used {
            assert!(events.is_empty() && !perf.found.is_empty());
            return eprintln!("not allowed here: {}", perf.found);
        }
        let tid = finished.document.result.threads[0].tid.unwrap();
        let of_thread = |event: &&KernelEvent| [event.a, event.b].contains(&tid);
        assert_eq!(events.iter().filter(of_thread).count(), events.len());
        let waits = events.iter().filter(|event| event.a == tid && event.value != 0).count();
        let intervals: Vec<Interval> = finished.intervals().collect();
        let counted = intervals.iter().filter_map(|interval| interval.evidence.counted);
        let counted: usize = counted.map(|counted| usize::from(counted.voluntary)).sum();
        assert!(waits >= counted && counted > 5, "{waits} waits, {counted} counted");
        assert_eq!(open_run(&path).unwrap().contents(|_| true).unwrap().events, events);
        // The two clocks are compared to better than this.
        const ERROR_NS: i64 = 5_000;
        let ran = |event: &KernelEvent| {
            let at = event.ns;
            intervals.iter().any(|i| i.start_ns + ERROR_NS < at && at < i.end_ns - ERROR_NS)
        };
        beside = events.into_iter().filter(ran).collect();
        if beside.is_empty() {
            return;
        }
    }
    panic!("{beside:?}");
}

/// The same for a loop of the user's own, and in both the records speak for the causes: the thread's own wait
/// in the middle of a period is a switch by its own will. It leaves the CPU right behind a mark, sooner than
/// records are exact; of the first wait nothing is known that was before. On a busy machine something else may take
/// more of a gap than the wait: the best of some loops.
#[test]
fn records_of_switches_are_evidence_in_own_loops_too() {
    let few: Vec<_> = (0..TRIES).map_while(|_| too_few_recorded(&loop_that_waits())).collect();
    assert!(few.len() < TRIES, "{few:?}");
}

/// What was found, where that are not the waits.
fn too_few_recorded(finished: &Finished) -> Option<Vec<AttributedGap>> {
    let evidence = &finished.document.manifest.evidence;
    let perf = evidence.iter().find(|facts| facts.source == EvidenceFacts::PERF).unwrap();
    if !perf.used {
        eprintln!("not allowed here: {}", perf.found);
        return None;
    }
    assert_eq!(perf.complete, Some(true), "{perf:?}");
    let tid = finished.document.result.threads[0].tid.unwrap();
    let waits = finished.kernel_events().filter(|event| event.a == tid && event.value != 0);
    // On a busy machine a wait may be over before its thread has left the CPU.
    assert!(waits.count() >= 10);
    let gaps = gaps_of(finished);
    let waited = gaps.iter().filter(|gap| gap.cause == Cause::ContextSwitchVoluntary);
    let recorded = waited.filter(|gap| gap.evidence.contains(Indication::RecordedSwitch));
    if recorded.count() >= 9 { None } else { Some(gaps) }
}

fn loop_that_waits() -> Finished {
    let spec = LoopSpec::every("control", Span::from_millis(5));
    let mut own = MeasuredLoop::start(spec, None).unwrap();
    for _ in 0..10 {
        own.begin_period();
        std::thread::sleep(std::time::Duration::from_millis(2));
        own.check();
        own.end_period();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    own.finish()
}

fn gaps_of(finished: &Finished) -> Vec<AttributedGap> {
    let intervals = finished.intervals().map(Ok::<_, Infallible>);
    let gaps = finished.explanation().gaps(intervals, finished.kernel_events().map(Ok));
    gaps.map(|Ok(gap)| gap).collect()
}

/// Issue 6, bad input: a folder whose counter drifted is read, and says what is not sound; one that did not
/// drift says nothing.
#[test]
fn a_folder_whose_clock_drifted_says_so() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    let finished = run_in(spec(200, vec![thread("CPU")]), Some(folder.clone())).unwrap();
    let is_drift = |warning: &&Warning| warning.id == "clock-drift";
    let warnings = &finished.document.result.warnings;
    assert_eq!(warnings.iter().find(is_drift), None);
    let path = folder.join("manifest.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let end = &mut manifest["clock"]["calibration_end"]["frequency_hz"];
    *end = (end.as_f64().unwrap() * 1.01).into();
    // As an older version would have written it, whose causes are found anew.
    manifest["result"]["causes"] = serde_json::json!([]);
    manifest.as_object_mut().unwrap().remove("crc32").unwrap();
    std::fs::write(&path, manifest.to_string()).unwrap();
    let mut recalled = open_run(&folder).unwrap();
    let warnings = recalled.document.result.warnings.iter().filter(is_drift).count();
    assert_eq!(warnings, 1);
    recalled.find_causes();
    let contents = recalled.contents(|_| true).unwrap();
    assert_eq!(contents.intervals, finished.intervals().collect::<Vec<_>>());
    let counted = |causes: &[CauseReport]| causes.iter().map(|cause| cause.count).sum::<u64>();
    assert_eq!(counted(&recalled.document.result.causes), contents.causes.len() as u64);
    let by_records = |gap: &AttributedGap| {
        gap.evidence.contains(Indication::RecordedSwitch)
            || gap.evidence.contains(Indication::NoRecordedSwitch)
    };
    assert!(
        !contents.causes.iter().any(by_records),
        "their clock cannot be put beside the trace's"
    );
}

/// Never below: every job receives at least what it asked for, in ns as they are stored.
#[test]
fn periodic_threads_receive_what_they_ask_for_and_are_never_released_early() {
    let finished = run(spec(300, vec![thread("PERIODIC 2ms 10ms")]));
    let intervals: Vec<Interval> = finished.intervals().collect();
    let mut jobs: Vec<(i64, i64)> = Vec::new();
    for interval in &intervals {
        match (interval.onset, jobs.last_mut()) {
            (
                hourglass_trace::IntervalStart::Gap | hourglass_trace::IntervalStart::Migration,
                Some(job),
            ) => {
                job.1 += interval.duration_ns();
            }
            _ => jobs.push((interval.start_ns, interval.duration_ns())),
        }
    }
    // The end of the run may cut the last one off.
    jobs.pop();
    assert!(jobs.len() > 1);
    assert!(jobs.iter().all(|(_, received)| *received >= 2_000_000), "{jobs:?}");
    // Starts are at or after a boundary; 1 ns for the rounding of both.
    let early = jobs.iter().filter(|(start, _)| (start + 1) % 10_000_000 > 9_999_000).count();
    assert_eq!(early, 0, "{jobs:?}");
}

#[test]
fn latency_tests_are_never_early() {
    for method in ["NATIVE", "HR", "TIMERFD", "FUTEX", "EPOLL", "SPIN", "TICK:1000"] {
        let wake = wake::parse(method).unwrap();
        let finished = run(spec(100, vec![ThreadSpec { wake, ..thread("LAT 2ms") }]));
        let latency = finished.document.result.threads[0].latency.unwrap();
        let ended = i64::try_from(finished.document.result.threads[0].wall_ns).unwrap();
        // Each wake-up comes a period after the last or later, so there cannot be more.
        assert!((1..=ended / 2_000_000).contains(&(latency.count as i64)), "{method}: {latency:?}");
        assert_eq!(finished.latencies_ps(0).count() as u64, latency.count);
    }
}

/// Each wake-up of LAT was asked for a period after the one before: so the kept times say how late it was.
#[test]
fn wake_ups_keep_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let finished = run_in(spec(200, vec![thread("LAT 2ms")]), Some(path.clone())).unwrap();
    let latency = finished.document.result.threads[0].latency.unwrap();
    let contents = open_run(&path).unwrap().contents(|_| true).unwrap();
    let wake_ups = &contents.wake_ups[&0];
    assert_eq!(wake_ups.len() as u64, latency.count);
    for two in wake_ups.windows(2) {
        let slept = two[1].woke_ns - two[0].woke_ns;
        let late = slept.abs_diff(2_000_000);
        // While it is measured, the counter's rate is not known as well as afterwards.
        assert!(
            slept > 1_999_000 && late.abs_diff(two[1].latency_ns) < 1_000 + late / 1_000,
            "{two:?}"
        );
    }
    let latest = contents.latest[0].latency_ns;
    assert!(latest.abs_diff(latency.max_ns) <= 1 + latest / 1_000, "{latest}: {latency:?}");
    assert!(contents.latest.iter().all(|one| one.stages.is_none()), "nothing was traced");
    let of_histogram: u64 = contents.latencies_ns[&0].iter().map(|(_, count)| count).sum();
    assert_eq!(of_histogram, latency.count);
}

/// What the recorder counted while running is what the stored trace says.
#[test]
fn the_trace_tells_what_the_recorder_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let threads = vec![thread("CPU"), thread("PERIODIC 1ms 10ms"), thread("LAT 5ms")];
    let finished = run_in(spec(200, threads), Some(path.clone())).unwrap();
    assert!(matches!(finished.folder, Some(Ok(_))));
    let recalled = open_run(&path).unwrap();
    assert_eq!(recalled.document.result, finished.document.result);
    let mut summary = TraceSummary::default();
    let stored: Vec<Interval> = recalled.intervals().unwrap().map(Result::unwrap).collect();
    assert_eq!(stored, finished.intervals().collect::<Vec<_>>());
    summary.extend(stored);
    assert_eq!(summary.switches(), finished.document.result.switches);
    for found in summary.threads() {
        let counted = &finished.document.result.threads[found.thread as usize];
        assert_eq!(counted.records_dropped, 0);
        assert_eq!(found.intervals, counted.intervals);
        assert_eq!(found.migrations, counted.migrations);
        assert_eq!(found.cpus_seen, counted.cpus_seen);
        // Sums of rounded lengths against the rounded sum: less than 1 ns for each.
        assert!(found.received_ns.abs_diff(counted.cpu_time_ns) <= found.intervals);
        // A gap that lasts to the end has no interval behind it by which the trace could tell.
        assert!(counted.gaps.count - found.gaps.count <= 1);
        if found.gaps.count == counted.gaps.count {
            assert!(found.gaps.total_ns.abs_diff(counted.gaps.total_ns) <= found.gaps.count);
            assert!(found.gaps.max_ns.abs_diff(counted.gaps.max_ns) <= 1);
        }
    }
}

/// The jobs of a periodic thread are kept with its run, and are those that it counted.
#[test]
fn jobs_are_kept_with_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let periodic = spec(60, vec![thread("CPU"), thread("PERIODIC 100us 2ms")]);
    let finished = run_in(periodic, Some(path.clone())).unwrap();
    let counted = finished.document.result.threads[1].deadlines.unwrap();
    let kept = hourglass_runs::open_run(&path).unwrap();
    let jobs: Vec<_> = kept.jobs().unwrap().map(Result::unwrap).collect();
    let done = jobs.iter().filter(|job| job.finished_ns.is_some()).count() as u64;
    assert_eq!(done, counted.completed, "{jobs:?}");
    assert!(done > 0 && jobs.iter().all(|job| job.thread == 1));
    assert!(jobs.iter().all(|job| job.deadline_ns - job.release_ns == 2_000_000));
    let end_ns = finished.document.manifest.elapsed_ns as i64;
    let count = |of: &dyn Fn(&JobRecord) -> bool| jobs.iter().filter(|job| of(job)).count() as u64;
    let found = (count(&|job| job.is_missed(end_ns)), count(&|job| job.lost));
    assert_eq!(found, (counted.missed, counted.lost), "{jobs:?}");
    // Without deadlines there are no jobs.
    let other = folder.path().join("other");
    run_in(spec(20, vec![thread("CPU")]), Some(other.clone())).unwrap();
    assert!(!other.join("jobs.parquet").exists());
}

#[test]
fn what_contradicts_itself_is_not_run_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let cpus = Some("8000".parse().unwrap());
    let nowhere = spec(50, vec![ThreadSpec { cpus, ..thread("CPU") }]);
    assert!(matches!(
        run_in(nowhere, Some(path.clone())),
        Err(RunFailure::NoSuchCpu { cpu: 8000, .. })
    ));
    assert!(!path.exists());
    let greedy = RunSpec { records: u64::MAX, ..spec(50, vec![thread("CPU")]) };
    assert!(matches!(run_in(greedy, Some(path.clone())), Err(RunFailure::Memory { .. })));
    assert!(!path.exists());
    std::fs::create_dir(&path).unwrap();
    let taken = run_in(spec(50, vec![thread("CPU")]), Some(path.clone()));
    assert!(matches!(taken, Err(RunFailure::Folder(_))));
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
}

/// Section 3.3: without the device the RTC is refused with its remedy, or emulated and marked.
#[test]
fn a_missing_rtc_is_refused_or_emulated_and_marked() {
    if std::path::Path::new("/dev/rtc").exists() || std::path::Path::new("/dev/rtc0").exists() {
        return eprintln!("this machine has an RTC");
    }
    let lat = ThreadSpec { wake: wake::parse("RTC").unwrap(), ..thread("LAT 5ms") };
    let Err(RunFailure::Refused(refusals)) = run_in(spec(50, vec![lat.clone()]), None) else {
        panic!("ran without an RTC")
    };
    assert!(refusals[0].remedy.contains("--best-effort"), "{refusals:?}");
    let emulating = RunSpec { best_effort: true, ..spec(50, vec![lat]) };
    let emulated = run(emulating).document.result.threads[0].emulated.clone();
    assert!(emulated.is_some_and(|how| how.contains("1024 Hz")));
}

/// Issue 6, part 2: every gap above a microsecond has a cause; two threads that never yield on one
/// CPU preempt each other (section 4, second rule), and the folder says the same as the run.
#[test]
fn every_gap_has_a_cause() {
    let pinned = |words| ThreadSpec { cpus: Some(a_cpu()), ..thread(words) };
    let finished = run(spec(500, vec![pinned("CPU"), pinned("CPU")]));
    let intervals: Vec<Interval> = finished.intervals().collect();
    let read = || intervals.iter().copied().map(Ok::<_, Infallible>);
    let gaps: Vec<_> = finished
        .explanation()
        .gaps(read(), std::iter::empty())
        .map(|gap| {
            let Ok(gap) = gap;
            gap
        })
        .collect();
    let long = [0, 1].map(|thread| {
        let own = of(&intervals, thread);
        let long = |pair: &&[Interval]| {
            pair[1].onset.is_gap() && pair[1].start_ns - pair[0].end_ns > 1_000
        };
        own.windows(2).filter(long).count()
    });
    assert_eq!(gaps.len(), long[0] + long[1]);
    let reports = &finished.document.result.causes;
    assert_eq!(reports.iter().map(|cause| cause.count).sum::<u64>(), gaps.len() as u64);
    assert!(reports.is_sorted_by(|a, b| a.total_ns >= b.total_ns));
    let preempted = |gap: &&AttributedGap| gap.cause == Cause::ContextSwitchInvoluntary;
    assert!(gaps.iter().filter(preempted).count() >= 5, "{reports:?}");
    // Where the other thread is seen to have run, the cause is certain.
    let other = gaps.iter().filter(|gap| gap.evidence.contains(Indication::OtherThreadSeen));
    assert!(other.clone().count() >= 5);
    assert!(other.clone().all(|gap| gap.was_switched() && gap.to_thread.is_some()));
}

/// Issue 6: a trace of a few records is full at once, in a ring only the last are there. Long gaps have
/// causes to the end nevertheless, each once.
#[test]
fn long_gaps_have_causes_beyond_a_full_trace() {
    for ring in [false, true] {
        let pinned = |words| ThreadSpec { cpus: Some(a_cpu()), ..thread(words) };
        let two = vec![pinned("CPU"), pinned("CPU")];
        let finished = run(RunSpec { records: 8, ring, ..spec(500, two) });
        let known: Vec<Interval> = finished.intervals_and_long_gaps().collect();
        assert!(known.is_sorted_by_key(|interval| interval.start_ticks));
        assert_a_sound_timeline(&known);
        let stored = finished.intervals().count();
        assert!(stored <= 8 && known.len() > 2 * stored, "{stored} of {}", known.len());
        let (result, manifest) = (&finished.document.result, &finished.document.manifest);
        let long: u64 = manifest
            .threads
            .iter()
            .map(|thread| {
                let own = of(&known, thread.id);
                own.windows(2)
                    .filter(|pair| pair[1].onset.is_gap())
                    .filter(|pair| pair[1].start_ns - pair[0].end_ns > 1_000)
                    .count() as u64
            })
            .sum();
        assert_eq!(result.causes.iter().map(|cause| cause.count).sum::<u64>(), long);
        let preempted = Cause::ContextSwitchInvoluntary.name();
        let switches = result.causes.iter().find(|cause| cause.cause == preempted);
        // Turns of some milliseconds; the trace has the first or last eight records.
        assert!(switches.is_some_and(|cause| cause.count >= 10), "{:?}", result.causes);
        let warning = result.warnings.iter().find(|warning| warning.id == "records-dropped");
        assert!(warning.is_some_and(|warning| warning.text.contains("causes cover all gaps of")));
    }
}

/// Section 4 on a real trace: two threads that never block take turns on one CPU. What the document infers
/// is what the trace says, and comes back from the folder.
#[test]
fn inferences_of_two_threads_on_a_cpu() {
    use hourglass_trace::inferences::{SwitchKind, switches};
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("turns");
    let pinned = || ThreadSpec { cpus: Some(a_cpu()), ..thread("CPU") };
    let finished = run_in(spec(400, vec![pinned(), pinned()]), Some(folder.clone())).unwrap();
    let inferences = &finished.document.result.inferences;
    let find = |name: &str, statistic: &str| {
        inferences.iter().find(|i| i.name == name && i.statistic == statistic)
    };
    let shares = inferences.iter().filter(|i| i.name == "cpu_share");
    let all: f64 = shares.map(|share| share.value).sum();
    assert!(all > 0.0 && all <= 1.001, "one CPU has no more to give: {all}");
    let found = switches(finished.intervals());
    assert!(found.iter().all(|switch| switch.kind == SwitchKind::Involuntary));
    let fastest = found.iter().map(|switch| switch.gap_ns).min();
    let reported = find("switch_cost_involuntary", "fastest").map(|cost| cost.value as u64);
    assert_eq!(reported, fastest);
    let rate = find("switches", "rate").map_or(0.0, |rate| rate.value);
    assert!((rate * 0.4 - found.len() as f64).abs() < 1.5, "{rate} a second, {}", found.len());
    assert!(find("switch_cost_voluntary", "fastest").is_none());
    assert_eq!(open_run(&folder).unwrap().document.result.inferences, *inferences);
    // A folder that was written before there were inferences has them from its trace.
    let path = folder.join("manifest.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest["result"].as_object_mut().unwrap().remove("inferences").unwrap();
    manifest.as_object_mut().unwrap().remove("crc32").unwrap();
    std::fs::write(&path, manifest.to_string()).unwrap();
    let mut recalled = open_run(&folder).unwrap();
    assert!(recalled.document.result.inferences.is_empty());
    recalled.infer();
    assert_eq!(recalled.document.result.inferences, *inferences);
}
