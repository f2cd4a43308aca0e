//! The thread execution model of a script.
//!
//! Owns: jobs, their releases and their account; what a thread does act by act. Must not: allocate
//! or print; what waits for others is in [`super::signals`].

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use hourglass_documents::document::Deadlines;
use hourglass_documents::{ExecutionTime, Policy, Sampler};
use hourglass_sys::sched::Attributes;
use hourglass_sys::thread as os;
use hourglass_tasks::JobTrigger;
use hourglass_tasks::Task;
use hourglass_time::Span;

use super::ReplayError;
use super::memory::Ring;
use super::script::{AmountPart, JobSpec, Phases, ReplayPhase, ReplayStep, RingSize, Script};
use super::shared::ReplayShared;
use crate::jobs::JobTerms;
use crate::measuring_counter::MeasuringCounter;
use crate::models::{AnyExecution, Demand, Execution, Model};
use crate::recorder::{NoWork, Recorder, RecordingEnd};

/// What io steps write to.
const DEVICE: &str = "/dev/null";

/// The largest buffer that memory and io steps write, as rt-app's default is.
const MOST_BYTES: u64 = 4 << 20;

/// Nested locks for which there is room without allocating.
const DEEPEST: usize = 64;

#[derive(Debug)]
pub(super) struct ScriptModel {
    name: String,
    task: Option<Numbers>,
    script: Arc<Script>,
    shared: Arc<ReplayShared>,
    /// Opened before the run, if there are io steps.
    device: Option<Arc<File>>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Numbers {
    position: usize,
    period: Span,
    deadline: Span,
    wcet: Span,
}

impl ScriptModel {
    pub(super) fn new(
        name: &str,
        position: Option<usize>,
        task: Option<&Task>,
        script: Script,
        shared: &Arc<ReplayShared>,
    ) -> Result<ScriptModel, ReplayError> {
        let numbers = position.zip(task).map(|(position, task)| Numbers {
            position,
            period: task.period,
            deadline: task.deadline(),
            wcet: task.wcet,
        });
        let (bytes, writes) = buffers(&script);
        let open = || {
            let opened = File::options().write(true).open(DEVICE);
            opened
                .map(Arc::new)
                .map_err(|error| ReplayError::Device { device: DEVICE, reason: error.to_string() })
        };
        Ok(ScriptModel {
            name: name.to_owned(),
            task: numbers,
            script: Arc::new(script),
            shared: Arc::clone(shared),
            device: writes.then(open).transpose()?,
            bytes,
        })
    }

    fn rings(&self) -> impl Iterator<Item = &RingSize> {
        let rings: &[RingSize] = match &*self.script {
            Script::Phases(phases) => &phases.rings,
            Script::Jobs(_) => &[],
        };
        rings.iter()
    }

    /// What a thread needs, allocated and written.
    pub(super) fn running(&self, seed: u64) -> ReplayExecution {
        let (execution, jitter) = match &*self.script {
            Script::Jobs(jobs) => (jobs.execution.clone(), jobs.jitter),
            Script::Phases(_) => (ExecutionTime::Fixed(Span::ZERO), Span::ZERO),
        };
        let jitter = match jitter.is_positive() {
            true => ExecutionTime::Uniform(Span::ZERO, jitter),
            false => ExecutionTime::Fixed(Span::ZERO),
        };
        ReplayExecution {
            script: Arc::clone(&self.script),
            shared: Arc::clone(&self.shared),
            device: self.device.clone(),
            task: self.task.map(|task| task.position),
            deadline_ns: self.task.map(|task| task.deadline.nanos_or_zero()),
            buffer: vec![1; usize::try_from(self.bytes).unwrap_or(0)],
            rings: self.rings().map(|size| Ring::new(*size)).collect(),
            amounts: Sampler::new(&execution, seed),
            // Another sequence than that of the amounts.
            jitters: Sampler::new(&jitter, !seed),
            held: Vec::with_capacity(DEEPEST),
            raised: None,
            me: 0,
            policy: None,
            in_force: None,
            last_arrival: 0,
            origin: None,
            home: None,
            has_worked: false,
            counted: Deadlines::default(),
            work: NoWork,
        }
    }
}

/// Bytes of the buffer that memory and io steps need, and whether any writes to the device.
fn buffers(script: &Script) -> (u64, bool) {
    let Script::Phases(phases) = script else { return (0, false) };
    let acts = || phases.phases.iter().flat_map(|phase| &phase.acts);
    let written = acts().filter_map(|act| match act {
        ReplayStep::Memory(bytes) | ReplayStep::Io(bytes) => Some((*bytes).min(MOST_BYTES)),
        ReplayStep::Read { buffer, .. } | ReplayStep::Write { buffer, .. } => Some(*buffer),
        _ => None,
    });
    let bytes = written.max().unwrap_or(0);
    (bytes, acts().any(|act| matches!(act, ReplayStep::Io(_))))
}

/// `TASK 17ms 33ms`, and `PHASES name` for steps.
impl fmt::Display for ScriptModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.script, &self.task) {
            (Script::Jobs(_), Some(task)) => write!(f, "TASK {} {}", task.wcet, task.period),
            _ => write!(f, "PHASES {}", self.name.escape_debug()),
        }
    }
}

impl Model for ScriptModel {
    fn demand(&self) -> Demand {
        let rings = self.rings().map(|ring| ring.buffer).fold(0, u64::saturating_add);
        let hogs = matches!(&*self.script, Script::Phases(p) if p.beginning == JobTrigger::Start);
        Demand {
            counts_work: false,
            cpu_bound: hogs,
            period: self.task.map(|task| task.period),
            longest: self.task.map(|task| task.wcet),
            mean_ns: self.task.map(|task| task.wcet.nanos() as f64),
            on_grid: false,
            latency: false,
            jobs: JobTerms { deadline: self.task.map(|task| task.deadline), ..JobTerms::default() },
            bytes: usize::try_from(self.bytes.saturating_add(rings)).unwrap_or(usize::MAX),
        }
    }

    fn amounts(&self) -> &[Span] {
        match &*self.script {
            Script::Jobs(jobs) => jobs.execution.table(),
            Script::Phases(_) => &[],
        }
    }

    fn prepare(&self, seed: u64) -> Box<dyn AnyExecution> {
        Box::new(self.running(seed))
    }
}

pub(super) struct ReplayExecution {
    script: Arc<Script>,
    pub(super) shared: Arc<ReplayShared>,
    device: Option<Arc<File>>,
    task: Option<usize>,
    deadline_ns: Option<u64>,
    pub(super) buffer: Vec<u8>,
    pub(super) rings: Vec<Ring>,
    amounts: Sampler,
    jitters: Sampler,
    /// Locks that are held, in the order in which they were taken.
    pub(super) held: Vec<usize>,
    /// The priority that the job at hand has taken.
    pub(super) raised: Option<u8>,
    pub(super) me: u32,
    /// The policy without what raises it, where that is real-time.
    pub(super) policy: Option<Policy>,
    /// The attributes that the kernel was given last.
    pub(super) in_force: Option<Attributes>,
    /// When the last job arrived that another thread brought about, on the counter.
    pub(super) last_arrival: u64,
    /// When it began, on the counter: a thread that waits for its start begins with that.
    pub(super) origin: Option<u64>,
    /// The CPUs that it began with, while a phase has put it on others.
    pub(super) home: Option<Vec<u32>>,
    /// Whether the job at hand has executed anything.
    pub(super) has_worked: bool,
    counted: Deadlines,
    work: NoWork,
}

impl Execution for ReplayExecution {
    type Work = NoWork;

    fn work(&mut self) -> &mut NoWork {
        &mut self.work
    }

    fn run<C: MeasuringCounter>(&mut self, recorder: &mut Recorder<C>) {
        self.me = os::id();
        self.policy = super::signals::policy_now();
        let script = Arc::clone(&self.script);
        match &*script {
            Script::Jobs(jobs) => {
                let _ = self.run_jobs(jobs, recorder);
                self.close_jobs(jobs, recorder);
            }
            Script::Phases(phases) => {
                let _ = self.run_phases(phases, recorder);
                self.close_phases(recorder);
            }
        }
        self.release_all();
        if self.task.is_some() {
            recorder.tally.deadlines = Some(self.counted);
        }
    }
}

impl ReplayExecution {
    /// Runs until the thread's time is over.
    fn run_jobs<C: MeasuringCounter>(
        &mut self,
        jobs: &JobSpec,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let mut number = 0;
        loop {
            let arrival_ns = jobs.arrivals.at(number);
            let release_ns = arrival_ns.saturating_add(self.jitters.draw().nanos_or_zero());
            let release = recorder.timeline().ticks_at(release_ns);
            if recorder.wait_until(release) == RecordingEnd::TimeOver {
                return RecordingEnd::TimeOver;
            }
            for before in &jobs.after {
                if self.await_job(*before, number, recorder) == RecordingEnd::TimeOver {
                    return RecordingEnd::TimeOver;
                }
            }
            let arrival = recorder.timeline().ticks_at(arrival_ns);
            recorder.begin_job(arrival);
            self.raised = jobs.raised;
            self.apply_priority();
            let amount = self.amounts.draw();
            let free = amount.saturating_sub(jobs.in_sections);
            let free = if free.is_negative() { Span::ZERO } else { free };
            for act in &jobs.acts {
                if self.perform(act, free, recorder) == RecordingEnd::TimeOver {
                    return RecordingEnd::TimeOver;
                }
            }
            self.has_worked = true;
            if self.finish_job(recorder) == RecordingEnd::TimeOver {
                return RecordingEnd::TimeOver;
            }
            self.raised = None;
            self.apply_priority();
            number += 1;
        }
    }

    /// Goes through the phases until they or the thread's time are over.
    fn run_phases<C: MeasuringCounter>(
        &mut self,
        phases: &Phases,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        recorder.begin_job(recorder.start());
        let rounds = phases.loops.unwrap_or(u64::MAX);
        for _ in 0..rounds {
            for phase in &phases.phases {
                if self.run_phase(phase, phases.beginning, recorder) == RecordingEnd::TimeOver {
                    return RecordingEnd::TimeOver;
                }
            }
            // Also phases without steps take time.
            if recorder.touch() == RecordingEnd::TimeOver {
                return RecordingEnd::TimeOver;
            }
        }
        self.finish_job(recorder)
    }

    fn run_phase<C: MeasuringCounter>(
        &mut self,
        phase: &ReplayPhase,
        beginning: JobTrigger,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        self.enter(phase);
        for _ in 0..phase.loops.unwrap_or(u64::MAX) {
            for act in &phase.acts {
                let ended = if begins_job(act, beginning) {
                    self.next_job(act, recorder)
                } else {
                    self.perform(act, Span::ZERO, recorder)
                };
                if ended == RecordingEnd::TimeOver {
                    return RecordingEnd::TimeOver;
                }
            }
            if recorder.touch() == RecordingEnd::TimeOver {
                return RecordingEnd::TimeOver;
            }
        }
        RecordingEnd::Done
    }

    /// Ends the job at hand, waits as the act says, and begins the next.
    fn next_job<C: MeasuringCounter>(
        &mut self,
        act: &ReplayStep,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        if self.finish_job(recorder) == RecordingEnd::TimeOver {
            return RecordingEnd::TimeOver;
        }
        let asleep = recorder.now();
        let arrival = match act {
            ReplayStep::Timer { timer, period_ns, absolute } => {
                self.await_timer(*timer, *period_ns, *absolute, recorder)
            }
            ReplayStep::Sleep(time) => {
                let due = asleep.saturating_add(recorder.timeline().ticks_at_least(*time));
                (recorder.wait_until(due) == RecordingEnd::Done).then_some(due)
            }
            _ => {
                let ended = self.perform(act, Span::ZERO, recorder);
                (ended == RecordingEnd::Done).then(|| self.woken_by(act, recorder.now()))
            }
        };
        match arrival {
            Some(arrival) => {
                self.last_arrival = arrival;
                recorder.begin_job(arrival);
                RecordingEnd::Done
            }
            None => RecordingEnd::TimeOver,
        }
    }

    /// The job at hand is done. One that executed nothing was none: a thread that begins by
    /// waiting.
    fn finish_job<C: MeasuringCounter>(&mut self, recorder: &mut Recorder<C>) -> RecordingEnd {
        if recorder.touch() == RecordingEnd::TimeOver {
            return RecordingEnd::TimeOver;
        }
        if !std::mem::take(&mut self.has_worked) {
            recorder.forget_job();
            return RecordingEnd::Done;
        }
        let Some(response) = recorder.end_job() else { return RecordingEnd::Done };
        let response_ns = recorder.timeline().ns_in(response);
        self.counted.completed += 1;
        if self.deadline_ns.is_none_or(|deadline_ns| response_ns <= deadline_ns) {
            self.counted.hit += 1;
        } else {
            self.counted.missed += 1;
        }
        if let Some(done) = self.task.and_then(|task| self.shared.done.get(task)) {
            done.count();
        }
        RecordingEnd::Done
    }

    /// Jobs that were due by the end and are not done: the one that had begun was missed, those
    /// behind it are lost.
    fn close_jobs<C: MeasuringCounter>(&mut self, jobs: &JobSpec, recorder: &Recorder<C>) {
        let ended_ns = recorder.timeline().ns_at(recorder.now()).max(0).unsigned_abs();
        let deadline_ns = self.deadline_ns.unwrap_or(0);
        let Some(latest) = ended_ns.checked_sub(deadline_ns) else { return };
        let mut undone = jobs.arrivals.until(latest).saturating_sub(self.counted.completed);
        if undone > 0 && recorder.job_arrival().is_some() {
            self.counted.missed += 1;
            undone -= 1;
        }
        self.counted.lost += undone;
    }

    /// As [`Self::close_jobs`] for phases, whose later jobs are unknown.
    fn close_phases<C: MeasuringCounter>(&mut self, recorder: &Recorder<C>) {
        let Some(arrival) = recorder.job_arrival().filter(|_| self.has_worked) else { return };
        let passed = recorder.timeline().ns_in(recorder.now().saturating_sub(arrival));
        if self.deadline_ns.is_some_and(|deadline_ns| passed > deadline_ns) {
            self.counted.missed += 1;
        }
    }

    /// Does one thing that begins no job. `free` is the job's execution time without its critical
    /// sections.
    fn perform<C: MeasuringCounter>(
        &mut self,
        act: &ReplayStep,
        free: Span,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        match act {
            ReplayStep::Run(time) => self.receive(*time, recorder),
            ReplayStep::Rest(part) => self.receive(AmountPart::of(*part, free), recorder),
            ReplayStep::RunFor(time) => {
                self.has_worked = true;
                recorder.pass(*time, &mut self.work)
            }
            ReplayStep::Sleep(time) => {
                let due = recorder.timeline().ticks_at_least(*time);
                recorder.wait_until(recorder.now().saturating_add(due))
            }
            ReplayStep::Timer { timer, period_ns, absolute } => {
                match self.await_timer(*timer, *period_ns, *absolute, recorder) {
                    Some(_) => RecordingEnd::Done,
                    None => RecordingEnd::TimeOver,
                }
            }
            ReplayStep::Lock(lock) => self.take(*lock, recorder),
            ReplayStep::Unlock(lock) => {
                self.release(*lock);
                recorder.touch()
            }
            ReplayStep::Section { lock, length, count } => {
                self.sections(*lock, *length, *count, recorder)
            }
            ReplayStep::Wait { event, lock } => self.await_condition(*event, *lock, recorder),
            ReplayStep::Signal(event) => self.signal(*event, 1, recorder),
            ReplayStep::Broadcast(event) => self.signal(*event, u32::MAX, recorder),
            ReplayStep::Barrier(barrier) => self.await_barrier(*barrier, recorder),
            ReplayStep::Suspend(event) => self.await_event(*event, recorder),
            ReplayStep::Yield => recorder.yield_now(),
            ReplayStep::Take(semaphore) => self.take_from(*semaphore, recorder),
            ReplayStep::Post(semaphore) => self.post(*semaphore, recorder),
            ReplayStep::Memory(bytes) => self.write_memory(*bytes, MOST_BYTES, recorder),
            ReplayStep::Read { bytes, buffer } => self.read_memory(*bytes, *buffer, recorder),
            ReplayStep::Write { bytes, buffer } => self.write_memory(*bytes, *buffer, recorder),
            ReplayStep::Chase { hops, ring } => self.chase(*ring, *hops, recorder),
            ReplayStep::Io(bytes) => self.write_device(*bytes, recorder),
            ReplayStep::Fork(start) => self.fork(*start, recorder),
            ReplayStep::Forked { start, number } => self.await_fork(*start, *number, recorder),
            ReplayStep::StartAfter(time) => self.start_after(*time, recorder),
        }
    }

    fn receive<C: MeasuringCounter>(
        &mut self,
        time: Span,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        self.has_worked = true;
        if time.is_positive() { recorder.receive(time, &mut self.work) } else { RecordingEnd::Done }
    }

    fn sections<C: MeasuringCounter>(
        &mut self,
        lock: usize,
        length: Span,
        count: u32,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        for _ in 0..count {
            if self.take(lock, recorder) == RecordingEnd::TimeOver
                || self.receive(length, recorder) == RecordingEnd::TimeOver
            {
                return RecordingEnd::TimeOver;
            }
            self.release(lock);
        }
        recorder.touch()
    }

    fn write_device<C: MeasuringCounter>(
        &mut self,
        bytes: u64,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        self.has_worked = true;
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut ended = recorder.touch();
        let Some(mut device) = self.device.as_deref() else { return ended };
        while left > 0 && ended == RecordingEnd::Done {
            let length = self.buffer.len().min(left).max(1);
            // A device that refuses is not asked again.
            let written = device.write(self.buffer.get(..length).unwrap_or_default()).unwrap_or(0);
            left = if written == 0 { 0 } else { left.saturating_sub(written) };
            ended = recorder.touch();
        }
        ended
    }
}

/// Whether a job ends before this act and the next begins after it.
fn begins_job(act: &ReplayStep, beginning: JobTrigger) -> bool {
    match (beginning, act) {
        (JobTrigger::Timer, ReplayStep::Timer { period_ns, .. }) => *period_ns > 0,
        (JobTrigger::Event, ReplayStep::Wait { .. } | ReplayStep::Suspend(_)) => true,
        (JobTrigger::Event, ReplayStep::Barrier(_) | ReplayStep::Take(_)) => true,
        (JobTrigger::Sleep, ReplayStep::Sleep(time)) => time.is_positive(),
        _ => false,
    }
}
