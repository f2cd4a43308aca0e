//! The operations of Table 1, timed in batches, everybody in turns.

use std::hint::black_box;
use std::io;
use std::os::unix::process::parent_id;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread;

use super::super::batches::Batches;
use super::super::costs::PinnedThread;
use super::timer_kinds::{TimerKind, TimerOperations};

/// Timers of one batch: none but them are pending, and each is armed earlier than those before.
const BATCH: usize = 64;

/// No timer expires while it is measured: they are armed an hour ahead.
const AHEAD_NS: u64 = 3_600_000_000_000;

const PERIOD_NS: u64 = 1_000_000_000;

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Operation {
        ArmOnce,
        ArmPeriodic,
        Cancel,
        Create,
        Terminate,
    }
}

/// By [`Operation`].
pub(super) type OperationTimes = Result<[Batches; Operation::ALL.len()], String>;

pub(super) struct OperationTable {
    pub(super) subjects: Vec<(TimerKind, OperationTimes)>,
    pub(super) thread_self: Batches,
    pub(super) null_trap: Batches,
}

/// Times `rounds` batches of everything on one CPU. `None` if `stopped` said so before.
pub(super) fn time_all(rounds: u64, stopped: fn() -> bool) -> Option<OperationTable> {
    let size = BATCH as u64;
    let none = || Operation::ALL.map(|_| Batches::of(size));
    // Before this thread has one CPU alone, which their threads would share.
    let mut open: Vec<_> = TimerKind::ALL.map(|subject| (subject, subject.open(BATCH))).into();
    let _pinned = PinnedThread::to_last_cpu();
    let mut subjects: Vec<(TimerKind, OperationTimes)> =
        TimerKind::ALL.map(|of| (of, Ok(none()))).into();
    let (mut thread_self, mut null_trap) = (Batches::of(size), Batches::of(size));
    for _ in 0..rounds {
        if stopped() {
            return None;
        }
        for ((subject, timers), (_, found)) in open.iter_mut().zip(&mut subjects) {
            let done = match (timers, &mut *found) {
                (Ok(timers), Ok(batches)) => round(*subject, timers.as_mut(), batches),
                (Err(why), Ok(_)) => Err(io::Error::other(why.clone())),
                (_, Err(_)) => Ok(()),
            };
            if let Err(error) = done {
                *found = Err(refused(*subject, &error));
            }
        }
        thread_self.time(|| (0..BATCH).for_each(|_| _ = black_box(thread::id())));
        null_trap.time(|| (0..BATCH).for_each(|_| _ = black_box(parent_id())));
    }
    Some(OperationTable { subjects, thread_self, null_trap })
}

fn refused(subject: TimerKind, error: &io::Error) -> String {
    let limit = match subject {
        TimerKind::Posix => "; ulimit -i tells how many signals may be queued",
        TimerKind::TimerFd => "; ulimit -n tells how many files may be open",
        TimerKind::Service | TimerKind::Queue => "",
    };
    format!("{error}{limit}")
}

fn round(
    subject: TimerKind,
    timers: &mut dyn TimerOperations,
    batches: &mut [Batches],
) -> io::Result<()> {
    let latest_ns = now_ns(ClockId::Monotonic) + AHEAD_NS;
    let mut time =
        |of: Operation, run: &mut dyn FnMut() -> io::Result<()>| batches[of as usize].time(run);
    time(Operation::Create, &mut || (0..BATCH).try_for_each(|_| timers.create()))?;
    let arm = |timers: &mut dyn TimerOperations, interval_ns: u64| {
        (0..BATCH).try_for_each(|at| timers.arm(at, latest_ns - at as u64, interval_ns))
    };
    if subject.is_periodic() {
        time(Operation::ArmPeriodic, &mut || arm(timers, PERIOD_NS))?;
        (0..BATCH).try_for_each(|at| timers.cancel(at))?;
    }
    time(Operation::ArmOnce, &mut || arm(timers, 0))?;
    time(Operation::Cancel, &mut || (0..BATCH).try_for_each(|at| timers.cancel(at)))?;
    time(Operation::Terminate, &mut || {
        while timers.terminate() {}
        Ok(())
    })
}
