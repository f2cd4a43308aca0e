//! One thread of a run, from its set-up to what it leaves behind.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use hourglass_documents::document::KernelAccount;
use hourglass_documents::{CpuSet, Policy, Reservation};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::rseq::{ClearRule, RseqUnusable};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread as os;
use hourglass_sys::wait::nanosleep_until;
use hourglass_time::Span;

use crate::gap_evidence::ThreadEvidence;
use crate::guard::Guard;
use crate::live::LiveThreads;
use crate::loop_time::LoopTime;
use crate::measuring_counter::{AnyCounter, MeasuringCounter, with_counter};
use crate::memory::Memory;
use crate::models::AnyExecution;
use crate::recorder::{AnyRecorder, Recorder, RecorderSettings, Recording};
use crate::refused::{Shortfall, ThreadRefusal};
use crate::reservation::{ReservationBackend, Reserver};
use crate::spec::ThreadSpec;
use crate::timeline::Timeline;
use crate::wake::{OpenWakeUp, Sleeper};

/// Before its start a thread polls the counter for this long, so that the kernel's wake-up does
/// not delay it.
const POLL_BEFORE_START: Span = Span::from_micros(100);

#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    order: Mutex<Option<StartSignal>>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum StartSignal {
    Go(Timeline, Span),
    GoHome,
}

impl StartBarrier {
    pub(crate) fn open(&self, order: StartSignal) {
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
        self.changed.notify_all();
    }

    fn pass(&self) -> StartSignal {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(order) = *order {
                return order;
            }
            order = self.changed.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

pub(crate) struct RunContext<'a> {
    pub(crate) counter: AnyCounter,
    pub(crate) reserver: &'a dyn Reserver,
    pub(crate) best_effort: bool,
    pub(crate) warm_up: Span,
    pub(crate) guard: &'a Guard,
    pub(crate) live_threads: &'a LiveThreads,
    pub(crate) gate: &'a StartBarrier,
    pub(crate) stop: &'a AtomicBool,
    /// Whether critical sections tell on this machine what they should.
    pub(crate) rseq: &'a Result<ClearRule, RseqUnusable>,
}

pub(crate) struct AllocatedThread {
    pub(crate) id: u32,
    pub(crate) spec: ThreadSpec,
    pub(crate) execution: Box<dyn AnyExecution>,
    pub(crate) memory: Memory,
    pub(crate) loop_time: LoopTime,
}

#[derive(Clone, Debug)]
pub(crate) enum ThreadReport {
    SetUp { tid: u32, shortfalls: Vec<Shortfall> },
    Warm,
}

#[derive(Debug)]
pub struct ThreadOutcome {
    pub id: u32,
    pub tid: u32,
    pub policy: String,
    pub cpus: Vec<u32>,
    /// CPUs on which it was allowed to run at its end; empty where that was not read.
    pub cpus_at_end: Vec<u32>,
    pub emulated: Option<String>,
    /// In ticks.
    pub gap: u64,
    /// Time of a typical iteration of its loop, in ticks.
    pub typical_iteration: u64,
    /// The start of its measuring, on the counter.
    pub start: u64,
    /// The time at which it was to finish, on the counter.
    pub finish: u64,
    pub recorded: Recording,
    pub kernel: Option<KernelAccount>,
}

impl AllocatedThread {
    /// The life of the thread. `tell` hears of each step on the way to the gate. The execution
    /// comes back too, so that its memory is not freed while others are measured.
    pub(crate) fn live(
        self,
        shared: &RunContext,
        tell: impl Fn(ThreadReport),
    ) -> Option<ThreadResult> {
        let AllocatedThread { id, spec, mut execution, memory, loop_time } = self;
        let mut shortfalls = Vec::new();
        let (policy, means) = enter(id, &spec, shared, &mut shortfalls);
        let sleeper = Sleeper { policy: in_force(&policy), best_effort: shared.best_effort };
        let opened = spec.wake.open(&sleeper).map_err(|missing| {
            shortfalls.push(Shortfall {
                thread: id,
                refused: ThreadRefusal::Timer(missing),
                fatal: true,
            });
        });
        let cpus = os::affinity().unwrap_or_default();
        let source = ThreadEvidence::open(shared.rseq);
        let (tid, live) = (os::id(), shared.live_threads.slot(id));
        if let Some(live) = &live {
            live.set_tid(tid);
        }
        tell(ThreadReport::SetUp { tid, shortfalls });
        if shared.warm_up > Span::ZERO {
            execution.warm_up(shared.counter, shared.warm_up, shared.stop);
        }
        tell(ThreadReport::Warm);
        let StartSignal::Go(timeline, duration) = shared.gate.pass() else { return None };
        let OpenWakeUp { mut wake_up, emulated } = opened.ok()?;

        let mut settings = settings(&spec, loop_time, timeline, duration, shared.guard);
        settings.live = live;
        settings.start = with_reserve(&settings, &spec, means);
        if means != Some(ReservationBackend::DeadlineClass) {
            settings.charge = u64::MAX;
        }
        let (start, finish, gap) = (settings.start, settings.finish, settings.gap);
        let before = account();
        // The method's slack is for the waits that are measured.
        let slack = os::timer_slack().filter(|slack| *slack > 0);
        set_slack(slack.map(|_| FINEST_SLACK_NS));
        let started = sleep_until(start, &timeline, slack, shared);
        let mut recorder = with_counter!(shared.counter, counter => {
            let recorder = Recorder::new(counter, settings, memory, &mut *wake_up, shared.stop);
            wrap(recorder.asking(source).within(&cpus))
        });
        if started {
            begin(&mut recorder);
            execution.run(&mut recorder);
        }
        let recorded = end(recorder);
        set_slack(slack.map(|_| FINEST_SLACK_NS));
        // Others may still be measured: until they are done this thread does nothing at all.
        sleep_out(timeline.epoch.monotonic_ns, duration, shared.stop);
        let kernel = before.zip(account()).map(|(before, after)| difference(before, after));
        let outcome = ThreadOutcome {
            id,
            tid,
            policy,
            cpus,
            cpus_at_end: os::affinity().unwrap_or_default(),
            emulated,
            gap,
            typical_iteration: loop_time.typical,
            start,
            finish,
            recorded,
            kernel,
        };
        Some(ThreadResult { outcome, _execution: execution })
    }
}

/// What comes back from a thread: its findings, and its memory, which the caller frees.
pub(crate) struct ThreadResult {
    pub(crate) outcome: ThreadOutcome,
    _execution: Box<dyn AnyExecution>,
}

/// The start, moved to the beginning of a period of the thread's reserve if there is time for that.
fn with_reserve(
    settings: &RecorderSettings,
    spec: &ThreadSpec,
    means: Option<ReservationBackend>,
) -> u64 {
    let RecorderSettings { start, finish, timeline, .. } = settings;
    let Some((means, reservation)) = means.zip(spec.deadline_reservation()) else { return *start };
    let asked_ns = timeline.monotonic_at(*start);
    let later_ns = means.start_ns(&reservation, asked_ns).saturating_sub(asked_ns);
    let later = start.saturating_add(timeline.calibration.rate.ticks_ceil(later_ns));
    if later < *finish { later } else { *start }
}

fn sleep_out(epoch_ns: u64, duration: Span, stop: &AtomicBool) {
    let end = epoch_ns.saturating_add(duration.nanos_or_zero());
    while now_ns(ClockId::Monotonic) < end && !stop.load(Ordering::Relaxed) {
        // Ends early when a signal comes.
        let _ = nanosleep_until(end);
    }
}

fn settings(
    spec: &ThreadSpec,
    loop_time: LoopTime,
    timeline: Timeline,
    duration: Span,
    guard: &Guard,
) -> RecorderSettings {
    // Beyond in ticks is beyond in ns, whatever the error of calibration.
    let beyond =
        |limit: Option<Span>| limit.map_or(u64::MAX, |limit| timeline.ticks_at_least(limit));
    RecorderSettings {
        gap: spec.gap.map_or(loop_time.gap(), |gap| timeline.ticks_at_least(gap)),
        timeline,
        start: timeline.ticks_at(spec.start.nanos_or_zero()),
        finish: timeline.ticks_at(spec.finish_in(duration).nanos_or_zero()),
        stop_gap: beyond(guard.stop_on_gap),
        stop_late: beyond(guard.stop_on_latency),
        live: None,
        charge: spec.deadline_reservation().map_or(u64::MAX, |_| timeline.ticks_at_least(CHARGE)),
    }
}

/// How often a thread in the deadline class has the kernel charge what it has run: so exactly budgets end.
/// It takes less than a hundredth of its time.
const CHARGE: Span = Span::from_micros(50);

/// Takes the CPUs, then the reservation or the policy. Returns the policy in force as text, and what keeps the
/// reservation.
fn enter(
    id: u32,
    spec: &ThreadSpec,
    shared: &RunContext,
    refused: &mut Vec<Shortfall>,
) -> (String, Option<ReservationBackend>) {
    let fatal = !shared.best_effort;
    if let Some(cpus) = &spec.cpus
        && let Err((cpus, errno)) = take_cpus(cpus)
    {
        let refusal = ThreadRefusal::Affinity(cpus, errno);
        refused.push(Shortfall { thread: id, refused: refusal, fatal });
    }
    if let Some(reservation) = spec.deadline_reservation() {
        return enter_reservation(id, &reservation, shared, refused);
    }
    let policy = match sched::set(attributes(spec.policy)) {
        Ok(()) => spec.policy.to_string(),
        Err(error) => {
            let refusal = ThreadRefusal::Policy(spec.policy, errno(&error));
            refused.push(Shortfall { thread: id, refused: refusal, fatal });
            Policy::Other(nice_now()).to_string()
        }
    };
    (policy, None)
}

/// Takes all of these CPUs; else which were not given, and the errno. Of several CPUs the kernel leaves those
/// out without a word that the cpuset does not have.
fn take_cpus(cpus: &CpuSet) -> Result<(), (CpuSet, i32)> {
    os::set_affinity(cpus.iter()).map_err(|error| (cpus.clone(), errno(&error)))?;
    let given: CpuSet =
        os::affinity().map_err(|e| (cpus.clone(), errno(&e)))?.into_iter().collect();
    let missing = cpus.difference(&given);
    if missing.is_empty() { Ok(()) } else { Err((missing, EINVAL)) }
}

/// The kernel's answer to a CPU that may not be used.
const EINVAL: i32 = 22;

fn enter_reservation(
    id: u32,
    reservation: &Reservation,
    shared: &RunContext,
    refused: &mut Vec<Shortfall>,
) -> (String, Option<ReservationBackend>) {
    match shared.reserver.reserve(reservation) {
        Ok(means) => (means.policy(reservation), Some(means)),
        Err(denied) => {
            let refusal = ThreadRefusal::Reservation(*reservation, denied);
            let fatal = !shared.best_effort;
            refused.push(Shortfall { thread: id, refused: refusal, fatal });
            (Policy::Other(nice_now()).to_string(), None)
        }
    }
}

/// The nice value that the thread came with.
fn nice_now() -> i8 {
    i8::try_from(sched::nice()).unwrap_or(0)
}

/// Deadline threads count as what they are to the tick emulation: not FIFO, not RR.
fn in_force(policy: &str) -> Policy {
    policy.parse().unwrap_or(Policy::Deadline)
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// What the kernel is asked for.
pub(crate) fn attributes(policy: Policy) -> Attributes {
    match policy {
        Policy::Other(nice) => Attributes::Other(nice),
        Policy::Batch => Attributes::Batch(nice_now()),
        Policy::Idle => Attributes::Idle,
        Policy::Fifo(priority) => Attributes::Fifo(priority),
        Policy::RoundRobin(priority) => Attributes::RoundRobin(priority),
        // Reached only where a reservation was refused in spirit: it cannot be made without times.
        Policy::Deadline => Attributes::Other(0),
    }
}

/// The least timer slack that can be set.
const FINEST_SLACK_NS: u64 = 1;

/// Gives the calling thread another timer slack. A real-time thread has none, and needs none.
fn set_slack(slack_ns: Option<u64>) {
    if let Some(slack_ns) = slack_ns {
        // Refused by no kernel; and if it were, the thread would be later.
        let _ = os::set_timer_slack(slack_ns);
    }
}

/// Sleeps until shortly before `start`, takes the timer slack of its waits, and polls. Whether the start came,
/// or the run was stopped before.
fn sleep_until(
    start: u64,
    timeline: &Timeline,
    slack_ns: Option<u64>,
    shared: &RunContext,
) -> bool {
    let early = timeline.monotonic_at(start).saturating_sub(POLL_BEFORE_START.nanos_or_zero());
    while now_ns(ClockId::Monotonic) < early {
        if shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        // Ends early when a signal comes.
        let _ = nanosleep_until(early);
    }
    set_slack(slack_ns);
    while shared.counter.read().ticks < start {
        std::hint::spin_loop();
    }
    true
}

pub(crate) fn account() -> Option<KernelAccount> {
    let stat = os::schedstat()?;
    let counters = os::counters();
    Some(KernelAccount {
        run_ns: stat.run_ns,
        wait_ns: stat.wait_ns,
        voluntary_switches: counters.voluntary,
        involuntary_switches: counters.involuntary,
    })
}

pub(crate) fn difference(before: KernelAccount, after: KernelAccount) -> KernelAccount {
    KernelAccount {
        run_ns: after.run_ns.saturating_sub(before.run_ns),
        wait_ns: after.wait_ns.saturating_sub(before.wait_ns),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after
            .involuntary_switches
            .saturating_sub(before.involuntary_switches),
    }
}

/// Puts a recorder of a concrete counter behind the enum of all of them.
pub(crate) trait IntoAnyRecorder<'a>: MeasuringCounter + Sized {
    fn wrap(recorder: Recorder<'a, Self>) -> AnyRecorder<'a>;
}

#[cfg(target_arch = "x86_64")]
impl<'a> IntoAnyRecorder<'a> for hourglass_clock::Tsc {
    fn wrap(recorder: Recorder<'a, Self>) -> AnyRecorder<'a> {
        AnyRecorder::Tsc(recorder)
    }
}

#[cfg(target_arch = "aarch64")]
impl<'a> IntoAnyRecorder<'a> for hourglass_clock::Cntvct {
    fn wrap(recorder: Recorder<'a, Self>) -> AnyRecorder<'a> {
        AnyRecorder::Cntvct(recorder)
    }
}

impl<'a> IntoAnyRecorder<'a> for hourglass_clock::OsMonotonic {
    fn wrap(recorder: Recorder<'a, Self>) -> AnyRecorder<'a> {
        AnyRecorder::Os(recorder)
    }
}

pub(crate) fn wrap<'a, C: IntoAnyRecorder<'a>>(recorder: Recorder<'a, C>) -> AnyRecorder<'a> {
    C::wrap(recorder)
}

fn begin(recorder: &mut AnyRecorder) {
    crate::measuring_counter::with_recorder!(recorder, r => r.begin());
}

fn end(recorder: AnyRecorder) -> Recording {
    crate::measuring_counter::with_recorder!(recorder, r => r.end())
}
