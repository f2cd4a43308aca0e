//! The thread that receives another's timing faults and carries out the verdicts on them.
//!
//! Owns: [`deadline_handler`], its thread, and what that does to the offender. Must not: touch the
//! offender's memory, or allocate between taking a message and calling the entry.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use hourglass_sys::sched::{self, Attributes as Scheduling};
use hourglass_sys::stop::{
    self, ExpectedDeadline, FaultMessage, FaultResponse, NativePlatform, StopHandle,
};
use hourglass_sys::thread::{set_affinity, set_affinity_of};

use super::error::FaultError;
use super::jobs::Deadline;
use super::region::defer;
use super::verdict::{Fault, FaultVerdict, HandlerCounts};
use super::watch::{WatchedHandle, now};
use crate::start_thread::start_thread;

/// ESRCH on Linux.
const NO_THREAD: i32 = 3;

/// How a handler's thread runs, and what it demotes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its class and priority; what the installing thread has if not given, but for a deadline thread,
    /// which hands nothing on: `SCHED_OTHER` then. Should be above those of the watched thread, which
    /// otherwise runs first, or stands for longer.
    pub scheduling: Option<Scheduling>,
    /// The only CPU that it runs on, if given.
    pub cpu: Option<u32>,
    /// What a thread with [`super::FaultAction::Demote`] is given.
    pub demoted: Scheduling,
}

impl Attributes {
    /// As the installing thread; demotes to `SCHED_IDLE`.
    pub const DEFAULT: Attributes =
        Attributes { scheduling: None, cpu: None, demoted: Scheduling::Idle };
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes::DEFAULT
    }
}

#[derive(Debug, Default)]
struct AtomicHandlerCounts {
    faults: AtomicU64,
    panics: AtomicU64,
    refused: AtomicU64,
}

/// An installed handler, until dropped: then the thread is resumed if it stands, is no more stopped
/// from there on, and the handler's thread is joined (unless it is the one that drops this). A
/// demotion that a verdict kept is left as it is.
#[derive(Debug)]
pub struct DeadlineHandler {
    stops: StopHandle,
    thread: Option<JoinHandle<()>>,
    counts: Arc<AtomicHandlerCounts>,
}

impl DeadlineHandler {
    /// What it has done so far.
    #[must_use]
    pub fn handled(&self) -> HandlerCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let AtomicHandlerCounts { faults, panics, refused } = &*self.counts;
        HandlerCounts { faults: of(faults), panics: of(panics), refused: of(refused) }
    }
}

impl Drop for DeadlineHandler {
    fn drop(&mut self) {
        let Some(handler) = self.thread.take() else { return };
        if self.stops.is_inherited() {
            // That thread was not copied by `fork`.
            std::mem::forget(handler);
            return;
        }
        self.stops.gate().close(&NativePlatform::without_timer());
        if handler.thread().id() != thread::current().id() {
            // Its panics were caught.
            defer(|| drop(handler.join()));
        }
    }
}

/// Installs a handler for a watched thread (RT-Mach's `thread_deadline_handler`): a thread of its own
/// that calls `entry` with each fault and `argument`, and does what it answers. For periodic and for
/// aperiodic deadlines.
///
/// The handler lives as long as what this returns. If the watched thread stands while `entry` runs,
/// `entry` must not wait for anything that thread may hold; see the module. If `entry` panics, the
/// thread is resumed, and later faults are handled.
///
/// # Errors
/// [`FaultError::Gone`], [`FaultError::Handled`], [`FaultError::Forked`]; [`FaultError::Scheduling`] if `attributes` are
/// refused; [`FaultError::CannotRestore`] if the thread's faults are to demote it and it could not be
/// brought back.
pub fn deadline_handler<A: Send + 'static>(
    thread: &WatchedHandle,
    attributes: Attributes,
    entry: impl FnMut(&Fault, &mut A) -> FaultVerdict + Send + 'static,
    argument: A,
) -> Result<DeadlineHandler, FaultError> {
    // It may be the watched thread that calls.
    defer(|| install(thread, attributes, entry, argument))
}

fn install<A: Send + 'static>(
    watched: &WatchedHandle,
    attributes: Attributes,
    entry: impl FnMut(&Fault, &mut A) -> FaultVerdict + Send + 'static,
    argument: A,
) -> Result<DeadlineHandler, FaultError> {
    if watched.stops.is_inherited() {
        return Err(FaultError::Forked);
    }
    if watched.is_gone() {
        return Err(FaultError::Gone);
    }
    let stops = watched.stops.clone();
    if !stops.gate().open() {
        return Err(FaultError::Handled);
    }
    let counts = Arc::<AtomicHandlerCounts>::default();
    let mut service = Service {
        stops: stops.clone(),
        kernel: NativePlatform::without_timer(),
        demoted: attributes.demoted,
        counts: Arc::clone(&counts),
        entry,
        argument,
    };
    let (sender, started) = mpsc::sync_channel(1);
    let kernel = NativePlatform::without_timer();
    let spawned = start_thread("deadline", move || {
        let prepared = prepare(&service.stops, attributes);
        if prepared.is_err() {
            service.leave();
        }
        let goes_on = prepared.is_ok();
        // The send fails if the installing thread has panicked.
        let _ = sender.send(prepared);
        if goes_on {
            service.run();
            service.leave();
        }
    });
    let handler = spawned.map_err(|error| {
        stops.gate().close(&kernel);
        stops.gate().vacate(&kernel);
        FaultError::os(&error)
    })?;
    // The thread always reports how its set-up went.
    started.recv().unwrap_or(Err(FaultError::Gone))?;
    Ok(DeadlineHandler { stops, thread: Some(handler), counts })
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// The handler's own scheduling, after trying on itself that it can bring the thread back.
fn prepare(stops: &StopHandle, attributes: Attributes) -> Result<(), FaultError> {
    if stops.gate().strength() == stop::StopAction::Hold {
        let before = stops.with_tid(sched::read).ok_or(FaultError::Gone)?;
        let own = sched::read(0).map_err(|error| FaultError::os(&error))?;
        match before.map_err(|error| FaultError::os(&error))? {
            // A second one of these may not fit, which says nothing.
            None | Some(Scheduling::Deadline { .. }) => {}
            Some(before) => {
                let tried = sched::set(attributes.demoted).and_then(|()| sched::set(before));
                tried.map_err(|error| FaultError::CannotRestore { errno: errno(&error) })?;
            }
        }
        if let Some(own) = own {
            sched::set(own).map_err(|error| FaultError::CannotRestore { errno: errno(&error) })?;
        }
    }
    let scheduling = attributes.scheduling.map_or(Ok(()), sched::set);
    let cpu = attributes.cpu.map_or(Ok(()), |cpu| set_affinity([cpu]));
    scheduling.and(cpu).map_err(|error| FaultError::Scheduling { errno: errno(&error) })
}

struct Service<F, A> {
    stops: StopHandle,
    kernel: NativePlatform,
    demoted: Scheduling,
    counts: Arc<AtomicHandlerCounts>,
    entry: F,
    argument: A,
}

impl<A, F: FnMut(&Fault, &mut A) -> FaultVerdict> Service<F, A> {
    fn run(&mut self) {
        let mut expected = ExpectedDeadline::NOTHING;
        loop {
            // Read before the loop, so that faults that came until then are handled.
            let is_last = !self.stops.gate().is_open() || self.stops.gate().is_gone();
            while let Some(mail) = self.next() {
                self.handle(&mail);
                self.stops.gate().finish();
            }
            if is_last {
                return;
            }
            self.stops.gate().wait_for_mail(&mut expected, &self.kernel);
        }
    }

    fn next(&self) -> Option<FaultMessage> {
        let gate = self.stops.gate();
        gate.take(&self.kernel)
            .or_else(|| gate.take_overdue(|| self.stops.is_within(), &self.kernel))
    }

    /// Another handler may be installed from here on.
    fn leave(&self) {
        self.stops.gate().close(&self.kernel);
        self.stops.gate().vacate(&self.kernel);
    }

    fn handle(&mut self, mail: &FaultMessage) {
        let handled_ns = now();
        if mail.strength == stop::StopAction::Hold {
            self.demote();
            self.stops.gate().release(mail.number, &self.kernel);
        }
        let gate = self.stops.gate();
        let fault = Fault::new(mail, self.stops.tid(), gate.undelivered(), handled_ns);
        self.counts.faults.fetch_add(1, Ordering::Relaxed);
        let entry = AssertUnwindSafe(|| (self.entry)(&fault, &mut self.argument));
        let answered = catch_unwind(entry);
        if answered.is_err() {
            self.counts.panics.fetch_add(1, Ordering::Relaxed);
        }
        self.carry_out(mail, *answered.as_ref().unwrap_or(&FaultVerdict::Resume));
        if let Err(panic) = answered {
            // Freed only now: it may be the allocator that the thread stood in. And that may panic.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(panic))).map_err(std::mem::forget);
        }
    }

    fn demote(&self) {
        if let Some(Err(error)) = self.stops.demote(self.demoted) {
            self.refused(&error);
        }
    }

    fn carry_out(&self, mail: &FaultMessage, verdict: FaultVerdict) {
        let change = verdict.change();
        if verdict != FaultVerdict::KeepDemoted
            && let Some(Err(error)) = self.stops.restore(change.scheduling)
        {
            self.refused(&error);
        }
        if let Some(cpu) = change.cpu
            && let Some(Err(error)) = self.stops.with_tid(|tid| set_affinity_of(tid, [cpu]))
        {
            self.refused(&error);
        }
        let end = verdict == FaultVerdict::End;
        let answer = FaultResponse { deadline_ns: self.deadline_ns(change.deadline), end };
        if self.stops.gate().answer(mail, answer, &self.kernel) {
            self.stops.nudge();
        }
    }

    fn deadline_ns(&self, deadline: Option<Deadline>) -> Option<u64> {
        let at_ns = deadline?.at_ns(now());
        if at_ns.is_err() {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
        at_ns.ok()
    }

    fn refused(&self, error: &io::Error) {
        if errno(error) != NO_THREAD {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}
