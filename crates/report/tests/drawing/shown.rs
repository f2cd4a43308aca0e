//! Runs made up for pages and exports. Everything is drawn from a seed that the caller prints.

use std::collections::BTreeMap;

use hourglass_dice::Dice;
use hourglass_documents::Cause;
use hourglass_documents::document::{
    CauseReport, GateReport, LatencyReport, RUN_SCHEMA, RunDocument, RunResult, ThreadReport,
    Warning,
};
use hourglass_documents::host::Host;
use hourglass_documents::kernel::{KernelCpu, KernelFacts, KernelNames};
use hourglass_documents::manifest::{
    CalibrationFacts, ClockFacts, Epoch, MANIFEST_SCHEMA, Manifest, MemoryFacts,
};
use hourglass_report::{LatencyCounts, RunView};
use hourglass_trace::cause::{
    AttributedGap, CauseBasis, GapBreakdown, GapOccupants, Indication, IndicationSet,
    OccupantShare, Successor,
};
use hourglass_trace::wakeup::{LateWakeUp, TimedWakeUp, WakeUp};
use hourglass_trace::{
    CounterDeltas, Evidence, Interval, IntervalStart, JobRecord, KernelEvent, KernelEventKind,
};

/// What a folder would be searched for if it wanted to harm who opens its report.
pub(crate) const HOSTILE: &str = "</script><script>window.hostile=1</script><img src=x onerror=\"window.hostile=1\">'\"&\u{1b}[2J\u{202e}\u{0}\u{2028}-->";

/// A run and all that it owns.
#[derive(Clone, Debug)]
pub(crate) struct TestRun {
    pub(crate) document: RunDocument,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) causes: Vec<AttributedGap>,
    pub(crate) latencies: Vec<LatencyCounts>,
    pub(crate) wake_ups: BTreeMap<u32, Vec<TimedWakeUp>>,
    pub(crate) latest: Vec<LateWakeUp>,
    pub(crate) events: Vec<KernelEvent>,
    pub(crate) names: KernelNames,
    pub(crate) jobs: Vec<JobRecord>,
}

impl TestRun {
    pub(crate) fn run(&self) -> RunView<'_> {
        RunView {
            document: &self.document,
            intervals: &self.intervals,
            causes: &self.causes,
            latencies: &self.latencies,
            wake_ups: &self.wake_ups,
            latest: &self.latest,
            events: &self.events,
            names: &self.names,
            spans: &[],
            jobs: &self.jobs,
        }
    }
}

pub(crate) fn manifest() -> Manifest {
    let calibration = CalibrationFacts {
        frequency_hz: 2_300_000_000.0,
        window_ns: 5_000_000_000,
        rate_error_ppb: 9,
        bracket_ns: 24,
    };
    Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        pid: None,
        utc: Vec::new(),
        hourglass: "0.1.0".to_owned(),
        command_line: ["hourglass", "-n", "2", "-d", "5s"].map(str::to_owned).to_vec(),
        epoch: Epoch {
            monotonic_ns: 1_000_000_000_000,
            realtime_ns: 1_575_388_617_900_000_000,
            ticks: 77,
        },
        duration_ns: 5_000_000_000,
        elapsed_ns: 5_000_481_512,
        seed: 1,
        records_capacity: 300_000,
        ring: false,
        clock: ClockFacts {
            source: "tsc".to_owned(),
            trusted: true,
            reason: "invariant and in step with the kernel".to_owned(),
            frequency_hz: calibration.frequency_hz,
            calibration_start: calibration,
            calibration_end: calibration,
        },
        threads: Vec::new(),
        memory: MemoryFacts::default(),
        dma_latency_us: None,
        load: None,
        evidence: Vec::new(),
        host: Host { kernel: "6.8.0-rt".to_owned(), ..Host::default() },
        kernel: None,
        simulation: None,
        result: None,
    }
}

pub(crate) fn thread(id: u32, workload: &str) -> ThreadReport {
    ThreadReport {
        id,
        workload: workload.to_owned(),
        wake_up: "HR".to_owned(),
        policy: "FIFO:80".to_owned(),
        cpus: vec![0, 1],
        cpus_seen: vec![id % 2],
        cpu_time_ns: 3_000_000_000,
        wall_ns: 5_000_000_000,
        intervals: 12_345,
        ..ThreadReport::default()
    }
}

pub(crate) fn made(threads: Vec<ThreadReport>, intervals: Vec<Interval>) -> TestRun {
    let result = RunResult { threads, ..RunResult::default() };
    TestRun {
        document: RunDocument { schema: RUN_SCHEMA.to_owned(), manifest: manifest(), result },
        intervals,
        causes: Vec::new(),
        latencies: Vec::new(),
        wake_ups: BTreeMap::new(),
        latest: Vec::new(),
        events: Vec::new(),
        names: KernelNames::default(),
        jobs: Vec::new(),
    }
}

/// `records` of `threads` threads on as many CPUs, in order of start: quanta, ticks between them,
/// now and then a long gap, a wait or another CPU.
pub(crate) fn trace(records: usize, threads: u32, seed: u64) -> Vec<Interval> {
    let mut dice = Dice::new(seed);
    let mut now = vec![0_i64; threads as usize];
    let mut trace = Vec::with_capacity(records);
    for n in 0..records {
        let thread = (n % threads.max(1) as usize) as u32;
        let at = &mut now[thread as usize];
        let (onset, gap) = match dice.below(100) {
            _ if *at == 0 => (IntervalStart::Start, 0),
            0 => (IntervalStart::Wait, 1_000_000),
            1 => (IntervalStart::Migration, 30_000),
            2 => (IntervalStart::Yield, 6_000),
            3 => (IntervalStart::Gap, 200_000 + dice.below(9_000_000)),
            _ => (IntervalStart::Gap, 1_500 + dice.below(4_000)),
        };
        let start_ns = *at + i64::try_from(gap).unwrap();
        let end_ns = start_ns + 20_000 + i64::try_from(dice.below(900_000)).unwrap();
        *at = end_ns;
        let counted = CounterDeltas { involuntary: 1, voluntary: 0, faults: dice.below(2) as u8 };
        let evidence = match dice.below(3) {
            0 => Evidence::NONE,
            1 => Evidence { cleared: Some(false), counted: None },
            _ => Evidence { cleared: Some(true), counted: Some(counted) },
        };
        let [start_ticks, end_ticks] = [start_ns, end_ns].map(|ns| ns.unsigned_abs() * 2);
        let plain = Interval::new(thread, thread, start_ns, end_ns, onset);
        trace.push(Interval { start_ticks, end_ticks, evidence, ..plain });
    }
    trace.sort_by_key(|record| record.start_ns);
    trace
}

/// A cause for each gap of a trace, in the order that a page wants.
pub(crate) fn causes(trace: &[Interval], seed: u64) -> Vec<AttributedGap> {
    let mut dice = Dice::new(seed);
    let mut seen = BTreeMap::new();
    let mut causes = Vec::new();
    for record in trace {
        let Some(before) = seen.insert(record.thread, record.end_ns) else { continue };
        if !record.onset.is_gap() {
            continue;
        }
        let (cause, sign, to_thread) = match dice.below(5) {
            0 => {
                let to = Some(Successor::Kernel(12));
                (Cause::ContextSwitchInvoluntary, Indication::CountedInvoluntary, to)
            }
            1 => (Cause::BelowKernel, Indication::KernelSilent, None),
            2 => (Cause::Irq, Indication::KernelWork, None),
            _ => (Cause::TimerTick, Indication::OnTickGrid, None),
        };
        let composition = GapBreakdown { irq_ns: 1 + dice.below(4_000), ..GapBreakdown::default() };
        causes.push(AttributedGap {
            thread: record.thread,
            cpu_before: record.cpu,
            cpu_after: record.cpu,
            start_ns: before,
            end_ns: record.start_ns,
            cause,
            basis: CauseBasis::Inferred { confidence: 0.5 + dice.below(500) as f64 / 1000.0 },
            evidence: IndicationSet::NONE.with(sign),
            to_thread,
            occupants: GapOccupants::from_shares(
                to_thread.map(|who| OccupantShare { who, ns: 3_200_000 }),
            ),
            composition: (cause == Cause::Irq).then_some(composition),
        });
    }
    causes.sort_by_key(|why| (why.thread, why.end_ns));
    causes
}

/// A run with everything that a page can show.
pub(crate) fn full(records: usize, threads: u32, seed: u64) -> TestRun {
    let reports = (0..threads).map(|id| thread(id, "CPU_PERIODIC 3ms 8ms")).collect();
    let intervals = trace(records, threads, seed);
    let mut made = made(reports, intervals);
    made.causes = causes(&made.intervals, seed);
    made.document.manifest.elapsed_ns =
        made.intervals.iter().map(|record| record.end_ns.unsigned_abs()).max().unwrap_or(0);
    made.document.result.causes = [
        ("timer_tick", 45, 160_000, 3_100, 9_000, 0.97),
        ("below_kernel", 7, 52_000_000, 4_000_000, 9_000_000, 0.8),
        ("context_switch_involuntary", 15, 1_200_000, 4_400, 830_000, 1.0),
    ]
    .map(|(cause, count, total_ns, p50_ns, max_ns, confidence)| CauseReport {
        cause: cause.to_owned(),
        count,
        total_ns,
        p50_ns,
        max_ns,
        confidence,
        ran: Vec::new(),
    })
    .to_vec();
    made.document.result.warnings.push(Warning {
        id: "rt-throttling".to_owned(),
        text: "Real-time threads get at most 95 % of a CPU.".to_owned(),
        remedy: "sysctl kernel.sched_rt_runtime_us=-1".to_owned(),
    });
    made.document.result.gates = vec![
        GateReport {
            name: "max-gap".to_owned(),
            limit: 1e6,
            value: 9e6,
            unit: "ns".to_owned(),
            passed: false,
            confidence: None,
        },
        GateReport {
            name: "max-misses".to_owned(),
            limit: 0.0,
            value: 0.0,
            unit: "periods".to_owned(),
            passed: true,
            confidence: None,
        },
    ];
    made.events = events(&made.intervals);
    made.names.threads = BTreeMap::from([(12, "kworker/0:1".to_owned())]);
    made
}

/// The kernel's events in the gaps of the first two threads: an interrupt with a softirq, or a
/// switch.
fn events(trace: &[Interval]) -> Vec<KernelEvent> {
    let mut events = Vec::new();
    let gaps =
        trace.iter().filter(|record| record.thread < 2 && record.onset == IntervalStart::Gap);
    for (n, record) in gaps.enumerate() {
        let mut add = |kind, before: i64, a, b| {
            events.push(KernelEvent {
                ns: record.start_ns - before,
                ticks: 0,
                value: 0,
                cpu: record.cpu,
                a,
                b,
                kind,
            });
        };
        if n % 3 == 0 {
            add(KernelEventKind::Switch, 1_200, 0, 12);
            add(KernelEventKind::Switch, 300, 12, 0);
        } else {
            add(KernelEventKind::VectorEntry, 1_300, 0, 0);
            add(KernelEventKind::SoftirqEntry, 900, 1, 0);
            add(KernelEventKind::SoftirqExit, 500, 1, 0);
            add(KernelEventKind::VectorExit, 200, 0, 0);
        }
    }
    events.sort_by_key(|event| event.ns);
    events
}

/// `threads` that measured latency and left no trace.
pub(crate) fn latency_run(threads: u32, seed: u64) -> TestRun {
    let mut dice = Dice::new(seed);
    let mut reports = Vec::new();
    let mut latencies = Vec::new();
    for id in 0..threads {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut all: Vec<u64> = (0..20_000)
            .map(|_| 4 + dice.below(5) + (dice.below(100_000) / 99_000) * dice.below(40))
            .collect();
        all.push(310 + 25 * u64::from(id));
        all.iter().for_each(|us| *counts.entry(*us).or_default() += 1);
        all.sort_unstable();
        let at = |per_mille: usize| all[(all.len() - 1) * per_mille / 1000] * 1000;
        let mut report = thread(id, "LAT");
        report.latency = Some(LatencyReport {
            count: all.len() as u64,
            min_ns: at(0),
            p50_ns: at(500),
            p99_ns: at(990),
            p999_ns: at(999),
            max_ns: at(1000) + 437,
            mean_ns: 7_129,
            lost: 0,
        });
        reports.push(report);
        latencies.push(LatencyCounts {
            thread: id,
            counts: counts.into_iter().collect(),
            ..LatencyCounts::default()
        });
    }
    let mut made = made(reports, Vec::new());
    made.latencies = latencies;
    made
}

/// A thread of the run (70 to the kernel) on CPU 0 for a second, of which `spinner` takes 2 ms in every 10, and each
/// millisecond begins with an interrupt of 20 us. The kernel's trace has all of it.
pub(crate) fn competed() -> TestRun {
    const MS: i64 = 1_000_000;
    let mut events = Vec::new();
    let mut intervals = Vec::new();
    for ms in 0..1_000 {
        let mut add = |ns, kind, a, b| {
            events.push(KernelEvent { ns, ticks: 0, value: 0, cpu: 0, a, b, kind });
        };
        match ms % 10 {
            4 => add(ms * MS, KernelEventKind::Switch, 70, 812),
            6 => add(ms * MS, KernelEventKind::Switch, 812, 70),
            _ => {}
        }
        add(ms * MS, KernelEventKind::VectorEntry, 0, 236);
        add(ms * MS + 20_000, KernelEventKind::VectorExit, 0, 236);
        if ms % 10 == 4 || ms % 10 == 5 {
            continue;
        }
        let onset = if ms == 0 { IntervalStart::Start } else { IntervalStart::Gap };
        let (start_ns, end_ns) = (ms * MS + 21_000, (ms + 1) * MS - 1_000);
        let [start_ticks, end_ticks] = [start_ns, end_ns].map(i64::unsigned_abs);
        let plain = Interval::new(0, 0, start_ns, end_ns, onset);
        intervals.push(Interval { start_ticks, end_ticks, ..plain });
    }
    let mut report = thread(0, "CPU");
    report.tid = Some(70);
    let mut made = made(vec![report], intervals);
    made.document.manifest.elapsed_ns = 1_000_000_000;
    made.events = events;
    made.names.threads =
        BTreeMap::from([(70, "hourglass".to_owned()), (812, "spinner".to_owned())]);
    made.document.manifest.kernel = Some(KernelFacts {
        cpus: vec![KernelCpu { cpu: 0, ..KernelCpu::default() }],
        names: made.names.clone(),
        ..KernelFacts::default()
    });
    made
}

/// A latency test of a second with wake-ups each millisecond; that at 0.5 s was 2 ms late, and `spinner` had the
/// CPU for most of it.
pub(crate) fn timed_latency_run() -> TestRun {
    let mut made = latency_run(1, 7);
    let all = (1..1_000_i64).map(|n| TimedWakeUp {
        woke_ns: n * 1_000_000 + if n == 500 { 2_000_000 } else { 6_000 },
        latency_ns: if n == 500 { 2_000_000 } else { 4_000 + n.unsigned_abs() % 9 * 1_000 },
    });
    let mut all: Vec<TimedWakeUp> = all.collect();
    // Those that were slept over.
    all.retain(|one| !(500_006_001..502_000_000).contains(&one.woke_ns));
    made.wake_ups = BTreeMap::from([(0, all)]);
    let stages = WakeUp {
        tid: 70,
        expiry_ns: 500_000_000,
        interrupt_ns: 500_300_000,
        handler_ns: 500_302_000,
        waking_ns: 500_303_000,
        switch_ns: 501_990_000,
        cpu: 0,
        user_ns: 502_000_000,
    };
    let ran =
        GapOccupants::from_shares([OccupantShare { who: Successor::Kernel(812), ns: 1_600_000 }]);
    let late = |woke_ns, late_ns, stages, ran| LateWakeUp {
        thread: 0,
        woke_ns,
        latency_ns: late_ns,
        stages,
        occupants: ran,
    };
    made.latest = vec![
        late(502_000_000, 2_000_000, Some(stages), ran),
        late(8_006_000, 12_000, None, GapOccupants::default()),
    ];
    made.names.threads.insert(812, "spinner".to_owned());
    made
}

const MS: i64 = 1_000_000;

/// A thread with jobs of 4 ms in each 10 ms, of which the third took 15 ms, so that the fourth was lost.
pub(crate) fn missed() -> TestRun {
    let job = |release_ms: i64, ran_ms: i64, lost: bool| JobRecord {
        thread: 0,
        release_ns: release_ms * MS,
        deadline_ns: (release_ms + 10) * MS,
        started_ns: (!lost).then_some(release_ms * MS),
        finished_ns: (!lost).then_some((release_ms + ran_ms) * MS),
        lost,
    };
    let jobs = vec![job(0, 4, false), job(10, 4, false), job(20, 15, false), job(30, 0, true)];
    let ran = jobs.iter().filter_map(|job| Some((job.started_ns?, job.finished_ns?)));
    let intervals =
        ran.map(|(from, to)| Interval::new(0, 0, from, to, IntervalStart::Wait)).collect();
    let mut made = made(vec![thread(0, "PERIODIC 4ms 10ms")], intervals);
    made.document.manifest.elapsed_ns = 40_000_000;
    TestRun { jobs, ..made }
}
