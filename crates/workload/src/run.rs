//! A run: threads are prepared, set up, let go together, and joined.

use std::sync::atomic::{AtomicBool, Ordering};

use hourglass_clock::{Calibration, Choice, Pair};
use hourglass_documents::CpuSet;
use hourglass_documents::manifest::MemoryFacts;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::rseq::{self, ClearRule, RseqUnusable};
use hourglass_sys::wait::nanosleep_until;
use hourglass_sys::{memory, signal, thread as os};
use hourglass_time::Span;

use crate::guard::LimitHit;
use crate::live::LiveThreads;
use crate::long_gaps::LongGaps;
use crate::loop_time::LoopTime;
use crate::marker::Marker;
use crate::measuring_counter::AnyCounter;
use crate::memory::Memory;
use crate::notifier;
use crate::reservation::Reserver;
use crate::run_threads::RunThreads;
use crate::spec::{RunSpec, ThreadSpec};
use crate::thread::{AllocatedThread, RunContext, StartBarrier, StartSignal};
use crate::timeline::Timeline;

pub use crate::refused::{RunError, Shortfall, ThreadRefusal};
pub use crate::thread::ThreadOutcome;

/// Shortest window of the first calibration: over it, best-of-64 pairs err by less than 0.1 ppm.
const CALIBRATION_WINDOW_NS: u64 = 20_000_000;

/// Time for all threads to pass the gate and reach their start, for a run and for each thread.
const LEAD: Span = Span::from_millis(2);
const LEAD_PER_THREAD: Span = Span::from_micros(50);
const WATCH_PERIOD_NS: u64 = 100_000_000;

/// Hears what happens, on the thread that called [`run`].
pub trait RunObserver {
    /// All threads are set up and the run is about to begin. If `ticking`, [`RunObserver::tick`] will be
    /// called from a CPU that is not measured; else every CPU is, and nothing may wake up until the end.
    fn started(&mut self, duration: Span, ticking: bool);
    fn tick(&mut self, elapsed: Span);
    /// Before the run begins: what the machine refused to threads, which go on without.
    fn refused(&mut self, shortfalls: &[Shortfall]) {
        let _ = shortfalls;
    }
    /// Before the run begins: where it can be seen how the threads are doing.
    fn live_threads(&mut self, live_threads: &LiveThreads) {
        let _ = live_threads;
    }
    /// SIGUSR1 asked for the progress of the run, if the specification allows that.
    fn status_requested(&mut self, elapsed: Span) {
        let _ = elapsed;
    }
    fn ended(&mut self);
}

#[derive(Debug)]
pub struct RunMeasurement {
    /// The counter, and why that one.
    pub choice: Choice,
    pub counter: &'static str,
    /// Zero and final calibration: what converts the trace.
    pub timeline: Timeline,
    pub calibration_start: Calibration,
    pub elapsed: Span,
    /// Each thread's findings, by number.
    pub threads: Vec<ThreadOutcome>,
    pub shortfalls: Vec<Shortfall>,
    /// Whether critical sections reported their state; where not, counters were asked after every
    /// gap.
    pub rseq: Result<ClearRule, RseqUnusable>,
    pub memory: MemoryFacts,
    pub interrupted: Option<i32>,
}

impl RunMeasurement {
    /// What ended the run from within: the thread, and the first hit of any.
    pub fn hit(&self) -> Option<(u32, LimitHit)> {
        let hits = self.threads.iter().filter_map(|thread| Some((thread.id, thread.recorded.hit?)));
        hits.min_by_key(|(_, hit)| hit.end)
    }
}

/// Measures. Blocks until all threads have ended.
///
/// Installs handlers for SIGINT, SIGTERM, SIGHUP and SIGXCPU, which end the run early.
///
/// # Errors
/// The specification is wrong, or the machine refuses something: then nothing was measured.
pub fn run(
    spec: &RunSpec,
    choice: Choice,
    reserver: &dyn Reserver,
    watch: &mut dyn RunObserver,
) -> Result<RunMeasurement, RunError> {
    spec.check()?;
    let counter = AnyCounter::from(choice.kind);
    let first = counter.pair();
    // Without handlers an interrupt would end the program at once, which loses the run but
    // leaves nothing behind.
    let _ = signal::catch_stop();
    notifier::heed_stop();
    if spec.snapshots {
        // Without it the signal would end the program, as it does any other.
        let _ = notifier::heed_questions();
    }
    let live_threads = LiveThreads::new(spec.threads.len());
    watch.live_threads(&live_threads);
    let prepared = prepare(spec, counter);
    let memory = lock_memory(&prepared);
    let (gate, stop) = (StartBarrier::default(), AtomicBool::new(false));
    let tested = tested(counter);
    let shared = RunContext {
        counter,
        reserver,
        best_effort: spec.best_effort,
        warm_up: spec.warm_up,
        guard: &spec.guard,
        live_threads: &live_threads,
        gate: &gate,
        stop: &stop,
        rseq: &tested,
    };
    let ran = std::thread::scope(|scope| {
        let run_threads = RunThreads::spawn(scope, &shared, prepared)?;
        let shortfalls = run_threads.await_set_up()?;
        watch.refused(&shortfalls);
        run_threads.await_warm()?;
        // Whatever a watcher prints is printed before anything is measured.
        let elsewhere = match &spec.watch_on {
            Some(cpus) => cpus.clone(),
            None => unmeasured_cpus(&spec.threads),
        };
        let home = os::affinity().unwrap_or_default();
        let ticking = !elsewhere.is_empty() && os::set_affinity(elsewhere.iter()).is_ok();
        watch.started(spec.duration, ticking);
        // Once more, for the stacks of the threads.
        let all_locked = memory.all_locked && memory::lock_all().is_ok();
        let Some((timeline, calibration_start)) = set_off(spec, counter, first) else {
            gate.open(StartSignal::GoHome);
            return Err(RunError::Counter(counter.name()));
        };
        gate.open(StartSignal::Go(timeline, spec.duration));
        supervise(spec, &timeline, &stop, ticking, watch);
        let threads = run_threads.join()?;
        if ticking {
            // Refused only if these CPUs went away meanwhile.
            let _ = os::set_affinity(home);
        }
        watch.ended();
        let memory = MemoryFacts { all_locked, ..memory };
        Ok((timeline, calibration_start, threads, shortfalls, memory))
    });
    memory::unlock_all();
    let (timeline, calibration_start, threads, shortfalls, memory) = ran?;
    let measured =
        conclude(choice, counter, first, timeline, calibration_start, threads, tested, memory);
    Ok(RunMeasurement { shortfalls, ..measured })
}

/// Which switches critical sections tell of in a run with this counter.
fn tested(counter: AnyCounter) -> Result<ClearRule, RseqUnusable> {
    match counter {
        // Where it is not read in user mode, each turn of the loop is a system call.
        AnyCounter::Os(_) => rseq::self_test_of_every_switch(),
        _ => rseq::self_test(),
    }
}

/// Puts together what was found, as if nothing had been refused; the rate over the whole run is better than the first one.
#[allow(clippy::too_many_arguments)] // each is a finding of its own, used once
pub(crate) fn conclude(
    choice: Choice,
    counter: AnyCounter,
    first: Pair,
    timeline: Timeline,
    calibration_start: Calibration,
    mut threads: Vec<ThreadOutcome>,
    rseq: Result<ClearRule, RseqUnusable>,
    memory: MemoryFacts,
) -> RunMeasurement {
    let ended = threads.iter().map(|thread| thread.recorded.end).max().unwrap_or(0);
    let calibration = Calibration::between(first, counter.pair()).unwrap_or(calibration_start);
    let timeline = Timeline { calibration, ..timeline };
    for lateness in threads.iter_mut().filter_map(|thread| thread.recorded.lateness.as_mut()) {
        lateness.settle(&timeline);
    }
    RunMeasurement {
        choice,
        counter: counter.name(),
        timeline,
        calibration_start,
        elapsed: Span::from_nanos(timeline.ns_at(ended).max(0)),
        threads,
        shortfalls: Vec::new(),
        rseq,
        memory,
        interrupted: signal::stop_asked(),
    }
}

/// Allocates, touches and measures loops: everything that must not happen later.
fn prepare(spec: &RunSpec, counter: AnyCounter) -> Vec<AllocatedThread> {
    /// Keeps the random sequences of threads apart (the fractional part of the golden ratio).
    const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let share = spec.records / spec.threads.len().max(1) as u64;
    let share = usize::try_from(share).unwrap_or(usize::MAX);
    let mut known: Vec<(String, LoopTime)> = Vec::new();
    (0u32..)
        .zip(&spec.threads)
        .map(|(id, thread)| {
            let seed = spec.seed.wrapping_add(SEED_STEP.wrapping_mul(u64::from(id)));
            let mut execution = thread.model.prepare(seed);
            let name = thread.model.to_string();
            let loop_time = match known.iter().find(|(model, _)| *model == name) {
                Some((_, measured)) => *measured,
                None => {
                    let measured = execution.loop_time(counter);
                    known.push((name, measured));
                    measured
                }
            };
            let demand = thread.model.demand();
            let period = demand.period.filter(|_| demand.on_grid).map(Span::nanos_or_zero);
            let memory = Memory::new(share, spec.ring, demand.latency)
                .with_jobs(thread.jobs, demand.jobs)
                .with_long_gaps(LongGaps::room_for(spec.duration))
                .with_wake_times(spec.wake_times)
                .marking(spec.marker.clone().map(|file| Marker::new(file, id)))
                .with_steps(thread.steps)
                .counting(&spec.guard.counted, period);
            AllocatedThread { id, spec: thread.clone(), execution, memory, loop_time }
        })
        .collect()
}

/// Locks everything, or else as many buffers as the limit allows.
fn lock_memory(prepared: &[AllocatedThread]) -> MemoryFacts {
    let mut facts = MemoryFacts { all_locked: memory::lock_all().is_ok(), ..Default::default() };
    if !facts.all_locked {
        for thread in prepared {
            let (bytes, locked) = thread.memory.lock();
            match locked {
                Ok(()) => facts.buffers_locked_bytes += bytes as u64,
                Err(_) => facts.buffers_unlocked_bytes += bytes as u64,
            }
        }
    }
    facts
}

/// Calibrates over a long enough window that began at `first`; `None` if the counter stood still.
pub(crate) fn calibrate(counter: AnyCounter, first: Pair) -> Option<Calibration> {
    // A signal may shorten the window, which widens the bound and does no other harm.
    let _ = nanosleep_until(first.monotonic_ns.saturating_add(CALIBRATION_WINDOW_NS));
    Calibration::between(first, counter.pair())
}

/// Calibrates and fixes the run's zero.
fn set_off(spec: &RunSpec, counter: AnyCounter, first: Pair) -> Option<(Timeline, Calibration)> {
    let calibration = calibrate(counter, first)?;
    let threads = i64::try_from(spec.threads.len()).unwrap_or(i64::MAX);
    let lead = LEAD_PER_THREAD.checked_mul(threads).unwrap_or(Span::MAX).saturating_add(LEAD);
    let now = counter.pair();
    let realtime_ns = now_ns(ClockId::Realtime);
    let lead = if spec.whole_second { to_whole_second(realtime_ns, lead) } else { lead };
    Some((Timeline::starting(now, realtime_ns, lead, calibration), calibration))
}

/// `lead`, made longer until it ends on a whole second.
fn to_whole_second(realtime_ns: u64, lead: Span) -> Span {
    const SECOND_NS: u64 = 1_000_000_000;
    let over = realtime_ns.saturating_add(lead.nanos_or_zero()) % SECOND_NS;
    let missing = if over == 0 { 0 } else { SECOND_NS - over };
    lead.saturating_add(Span::from_nanos(missing as i64))
}

/// Waits for the end of the run, for a signal, or for a thread that ends it, telling the watcher
/// meanwhile if there is a CPU to do it on.
fn supervise(
    spec: &RunSpec,
    timeline: &Timeline,
    stop: &AtomicBool,
    ticking: bool,
    watch: &mut dyn RunObserver,
) {
    let start = timeline.epoch.monotonic_ns;
    let end = start.saturating_add(spec.duration.nanos_or_zero());
    let elapsed =
        |now: u64| Span::from_nanos(now.saturating_sub(start).min(i64::MAX as u64) as i64);
    let mut now = now_ns(ClockId::Monotonic);
    loop {
        let heard = notifier::seen();
        if now >= end || signal::stop_asked().is_some() || stop.load(Ordering::Relaxed) {
            return;
        }
        if spec.snapshots && notifier::take_question() {
            watch.status_requested(elapsed(now));
            continue;
        }
        notifier::wait(
            heard,
            if ticking { end.min(now.saturating_add(WATCH_PERIOD_NS)) } else { end },
        );
        now = now_ns(ClockId::Monotonic);
        if ticking {
            watch.tick(elapsed(now));
        }
    }
}

/// CPUs that the process may use and no thread of the run does.
fn unmeasured_cpus(threads: &[ThreadSpec]) -> CpuSet {
    let mut measured = CpuSet::default();
    for thread in threads {
        let Some(cpus) = &thread.cpus else { return CpuSet::default() };
        cpus.iter().for_each(|cpu| measured.insert(cpu));
    }
    let allowed: CpuSet = os::affinity().unwrap_or_default().into_iter().collect();
    allowed.difference(&measured)
}
