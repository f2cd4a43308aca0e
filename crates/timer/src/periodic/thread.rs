//! The thread that runs a periodic task on this machine.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_sys::thread as os;

use crate::sleep::{Mechanism, Sleeper};
use crate::start_thread::start_thread;

use super::builder::Builder;
use super::error::{JoinError, SpawnError};
use super::job::{JobControl, RunningJob};
use super::job_watch::JobWatch;
use super::parameters::ValidParameters;
use super::periodic_loop::{LoopEnd, PeriodicLoop, Stop};
use super::scheduling::Scheduling;
use super::statistics::{Recorder, Snapshot, TaskStatistics};

/// A thread whose body is run once a period, released at absolute times.
///
/// Releases lie on a grid, so that neither the length of jobs nor late wake-ups ever shift one
/// (unless [`super::OverrunPolicy::Delay`] is asked for). A job never starts before its release. The
/// thread neither allocates nor locks nor does I/O from its first release on, but for what its body
/// and handlers do; it does not lock memory either, which a program does once (`mlockall`).
///
/// Dropping it stops it and waits for its end. In a child made by `fork` there is no such thread:
/// there [`PeriodicThread::join`] answers [`JoinError::Forked`], and dropping does nothing.
///
/// ```
/// use std::ops::ControlFlow;
/// use hourglass_time::Span;
/// use hourglass_timer::PeriodicThread;
///
/// let mut samples = 0;
/// let sampler = PeriodicThread::builder("sampler")
///     .period(Span::from_millis(1))
///     .deadline(Span::from_micros(500))
///     .spawn(move |_job| {
///         samples += 1;
///         if samples == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
///     })?;
/// let statistics = sampler.statistics();
/// let (_why, done) = sampler.join()?;
/// assert_eq!((done.jobs, statistics.read().jobs), (5, 5));
/// println!("released {} ns late at most", done.latency.max_ns().unwrap_or(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PeriodicThread {
    name: String,
    tid: u32,
    /// The process that has the thread.
    process: u32,
    stop: Stop,
    statistics: TaskStatistics,
    handle: Option<JoinHandle<Result<LoopEnd, Panic>>>,
}

type Panic = Box<dyn Any + Send>;

impl PeriodicThread {
    /// A thread to be, by this name (of which the kernel shows 15 bytes).
    #[must_use]
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name.into())
    }

    /// Name of the thread.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's number of it, as `chrt -p` and `/proc` take it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.tid
    }

    /// What it counts: a handle that any thread may read at any time.
    #[must_use]
    pub fn statistics(&self) -> TaskStatistics {
        self.statistics.clone()
    }

    /// A handle that stops it without waiting for its end.
    #[must_use]
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends its wait at once, lets a job that is running finish, waits for its end. A body that never
    /// returns is waited for for ever ([`super::RunningJob::is_stopping`] tells it).
    ///
    /// # Errors
    /// As [`PeriodicThread::join`].
    pub fn stop(self) -> Result<(LoopEnd, Snapshot), JoinError> {
        if self.is_here() {
            self.stop.stop();
        }
        self.join()
    }

    /// Waits until the thread ends by itself, or is stopped from elsewhere.
    ///
    /// # Errors
    /// [`JoinError::Panicked`] with what it did until then, [`JoinError::Forked`],
    /// [`JoinError::Itself`].
    pub fn join(mut self) -> Result<(LoopEnd, Snapshot), JoinError> {
        let name = std::mem::take(&mut self.name);
        if !self.is_here() {
            return Err(JoinError::Forked { name });
        }
        let Some(outcome) = self.reap() else { return Err(JoinError::Itself { name }) };
        let statistics = self.statistics.read();
        match outcome {
            Ok(ended) => Ok((ended, statistics)),
            Err(panic) => Err(JoinError::Panicked {
                name,
                job: statistics.releases.saturating_sub(1),
                message: message(&*panic),
                statistics: Box::new(statistics),
            }),
        }
    }

    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Waits for its end, once; `None` if that is the calling thread's own.
    fn reap(&mut self) -> Option<Result<LoopEnd, Panic>> {
        let own = |handle: &JoinHandle<_>| handle.thread().id() == thread::current().id();
        if self.handle.as_ref().is_none_or(own) {
            return None;
        }
        // A panic outside of the catch comes out here the same way.
        Some(self.handle.take()?.join().unwrap_or_else(Err))
    }
}

impl Drop for PeriodicThread {
    fn drop(&mut self) {
        if self.handle.is_none() {
            return;
        }
        if !self.is_here() {
            // Detaching would free what the parent's thread is still thought to use.
            std::mem::forget(self.handle.take());
            return;
        }
        self.stop.stop();
        let _ = self.reap();
    }
}

impl fmt::Debug for PeriodicThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeriodicThread")
            .field("name", &self.name)
            .field("tid", &self.tid)
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a text".to_owned())
}

pub(super) struct ThreadPlan {
    builder: Builder,
    parameters: ValidParameters,
}

impl ThreadPlan {
    pub(super) fn check(builder: Builder) -> Result<ThreadPlan, SpawnError> {
        let name = || builder.name.clone();
        if builder.name.contains('\0') {
            return Err(SpawnError::Name(name()));
        }
        let parameters = builder.parameters.check();
        let parameters =
            parameters.map_err(|error| SpawnError::Parameters { name: name(), error })?;
        let checked = builder.scheduling.check(&parameters);
        checked.map_err(|error| SpawnError::Scheduling { name: name(), error })?;
        Ok(ThreadPlan { builder, parameters })
    }

    pub(super) fn start<B, C, M, F, R>(
        self,
        sleeper: Sleeper<C, M>,
        body: F,
    ) -> Result<PeriodicThread, SpawnError>
    where
        B: Timebase,
        C: Deref<Target = Clock<B>> + Send + 'static,
        M: Mechanism + Send + 'static,
        F: FnMut(&mut RunningJob<'_, C, M>) -> R + Send + 'static,
        R: JobControl,
    {
        let name = self.builder.name.clone();
        let sleeper = match self.builder.stop_on {
            Some(interrupt) => sleeper.interrupted_by(interrupt),
            None => sleeper,
        };
        let stop = Stop::new(sleeper.interrupter());
        let recorder = Arc::new(Recorder::default());
        let statistics = TaskStatistics::of(Arc::clone(&recorder));
        let (sender, receiver) = sync_channel(1);
        let own = stop.clone();
        let started = start_thread(&name, move || self.live(sleeper, own, recorder, body, &sender));
        let handle = started.map_err(|error| SpawnError::NoThread { name: name.clone(), error })?;
        match receiver.recv() {
            Ok(Ok(tid)) => Ok(PeriodicThread {
                name,
                tid,
                process: std::process::id(),
                stop,
                statistics,
                handle: Some(handle),
            }),
            Ok(Err(error)) => {
                let _ = handle.join();
                Err(error)
            }
            Err(_) => {
                let _ = handle.join();
                Err(SpawnError::Gone(name))
            }
        }
    }

    fn live<B, C, M, F, R>(
        mut self,
        mut sleeper: Sleeper<C, M>,
        stop: Stop,
        recorder: Arc<Recorder>,
        body: F,
        sender: &SyncSender<Result<u32, SpawnError>>,
    ) -> Result<LoopEnd, Panic>
    where
        B: Timebase,
        C: Deref<Target = Clock<B>>,
        M: Mechanism,
        F: FnMut(&mut RunningJob<'_, C, M>) -> R,
        R: JobControl,
    {
        sleeper.take_slack();
        let held = self.builder.idle_latency_us.map(|us| sleeper.hold_idle_latency(us));
        if let Some(Err(error)) = held {
            let name = self.builder.name.clone();
            let _ = sender.send(Err(SpawnError::IdleLatency { name, error }));
            return Ok(LoopEnd::Stopped);
        }
        // The starter always receives this: it waits for it.
        let watch = match self.set_up() {
            Ok(watch) => watch,
            Err(error) => {
                let _ = sender.send(Err(error));
                return Ok(LoopEnd::Stopped);
            }
        };
        let _ = sender.send(Ok(os::id()));
        let mut task = PeriodicLoop::with(sleeper, &self.parameters, stop, recorder);
        task.set_handlers(self.builder.on_miss, self.builder.on_cost_overrun);
        task.set_watch(watch);
        // What the body has left half done is its own, and dropped with it.
        catch_unwind(AssertUnwindSafe(|| task.run(body)))
    }

    fn set_up(&mut self) -> Result<Option<Box<dyn JobWatch>>, SpawnError> {
        if let Some(cpus) = &self.builder.cpus {
            os::set_affinity(cpus.iter().copied()).map_err(|error| SpawnError::Affinity {
                name: self.builder.name.clone(),
                cpus: cpus.clone(),
                error,
            })?;
        }
        // A thread of the deadline class starts no others, which its watch may have to.
        let is_first = matches!(self.builder.scheduling, Scheduling::Deadline { .. });
        let early = if is_first { self.make_watch()? } else { None };
        let policy = self.builder.scheduling.take(&self.parameters);
        policy
            .map_err(|refusal| SpawnError::Refused { name: self.builder.name.clone(), refusal })?;
        let watch = if is_first { early } else { self.make_watch()? };
        let hook = self.builder.on_start.take();
        let done = hook.map_or(Ok(()), |hook| hook());
        let name = || self.builder.name.clone();
        done.map_err(|error| SpawnError::OnStart { name: name(), error })?;
        Ok(watch)
    }

    fn make_watch(&mut self) -> Result<Option<Box<dyn JobWatch>>, SpawnError> {
        let make = self.builder.watch.take();
        let watch = make.map(|make| make()).transpose();
        watch.map_err(|error| SpawnError::Watch { name: self.builder.name.clone(), error })
    }
}

#[cfg(test)]
#[path = "tests/thread.rs"]
mod tests;
