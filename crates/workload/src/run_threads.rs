//! The threads of a run, started and not yet joined.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use hourglass_sys::signal;

use crate::refused::{RunError, Shortfall};
use crate::thread::{
    AllocatedThread, RunContext, StartBarrier, StartSignal, ThreadOutcome, ThreadReport,
    ThreadResult,
};

/// Stack of a measured thread; small, since all of it is locked.
const STACK_BYTES: usize = 256 << 10;

/// Time between two checks for a signal while threads warm up.
const WARM_UP_LOOK: Duration = Duration::from_millis(50);

/// How often threads that should have ended are looked at, and kicked out of their waits.
const JOIN_LOOK: Duration = Duration::from_millis(5);

pub(crate) struct RunThreads<'scope> {
    gate: &'scope StartBarrier,
    stop: &'scope AtomicBool,
    members: Vec<Member<'scope>>,
    tids: RefCell<Vec<u32>>,
}

struct Member<'scope> {
    id: u32,
    report: Receiver<ThreadReport>,
    handle: ScopedJoinHandle<'scope, Option<ThreadResult>>,
}

impl<'scope> RunThreads<'scope> {
    /// Starts every thread. If one cannot be started, those that were go home.
    pub(crate) fn spawn<'env>(
        scope: &'scope Scope<'scope, 'env>,
        shared: &'env RunContext<'env>,
        prepared: Vec<AllocatedThread>,
    ) -> Result<RunThreads<'scope>, RunError> {
        let mut members = Vec::with_capacity(prepared.len());
        for thread in prepared {
            let id = thread.id;
            let (sender, receiver) = sync_channel(2);
            let spawned = Builder::new()
                .name(format!("hourglass-{id}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || {
                    thread.live(shared, |step| {
                        // The send fails only if another thread was lost, and all go home then.
                        let _ = sender.send(step);
                    })
                });
            match spawned {
                Ok(handle) => members.push(Member { id, report: receiver, handle }),
                Err(error) => {
                    send_home(shared.gate, shared.stop);
                    return Err(RunError::Spawn(id, error));
                }
            }
        }
        Ok(RunThreads { gate: shared.gate, stop: shared.stop, members, tids: RefCell::default() })
    }

    /// Waits until every thread is set up; sends all home if one cannot go on.
    pub(crate) fn await_set_up(&self) -> Result<Vec<Shortfall>, RunError> {
        let mut all = Vec::new();
        for member in &self.members {
            let Ok(ThreadReport::SetUp { tid, shortfalls }) = member.report.recv() else {
                send_home(self.gate, self.stop);
                return Err(RunError::Lost(member.id));
            };
            self.tids.borrow_mut().push(tid);
            all.extend(shortfalls);
        }
        if all.iter().any(|shortfall| shortfall.fatal) {
            send_home(self.gate, self.stop);
            return Err(RunError::Refused(all));
        }
        Ok(all)
    }

    /// Waits until every thread is warm; a signal cuts that short.
    pub(crate) fn await_warm(&self) -> Result<(), RunError> {
        for member in &self.members {
            loop {
                self.heed_signal();
                match member.report.recv_timeout(WARM_UP_LOOK) {
                    Ok(_) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        send_home(self.gate, self.stop);
                        return Err(RunError::Lost(member.id));
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes all threads end, whose time is over, or of which a signal or one of them asks for it. A wait that
    /// the kernel would not end yet, such as one with hours of timer slack, is cut short: what comes of it after
    /// the thread's time counts nowhere.
    pub(crate) fn join(self) -> Result<Vec<ThreadOutcome>, RunError> {
        let goes_on = |member: &Member<'_>| !member.handle.is_finished();
        if self.members.iter().any(goes_on) && !self.heed_signal() {
            std::thread::sleep(JOIN_LOOK);
        }
        while self.members.iter().any(goes_on) {
            self.heed_signal();
            for tid in self.tids.borrow().iter() {
                // It may have ended meanwhile.
                let _ = signal::kick(*tid);
            }
            std::thread::sleep(JOIN_LOOK);
        }
        // Their memory is freed only when all are through.
        let lives: Vec<ThreadResult> = self
            .members
            .into_iter()
            .map(|member| member.handle.join().ok().flatten().ok_or(RunError::Lost(member.id)))
            .collect::<Result<_, _>>()?;
        Ok(lives.into_iter().map(|life| life.outcome).collect())
    }

    /// Whether a signal or a thread asked for the end; passes it on.
    fn heed_signal(&self) -> bool {
        if signal::stop_asked().is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed)
    }
}

/// Lets all threads end without measuring, also those that warm up.
fn send_home(gate: &StartBarrier, stop: &AtomicBool) {
    stop.store(true, Ordering::Relaxed);
    gate.open(StartSignal::GoHome);
}
