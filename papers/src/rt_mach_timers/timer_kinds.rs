//! Who offers timers: this kernel in two ways, the library's service, and its queue.

use std::io;

use hourglass_queue::{Handle, Queue};
use hourglass_sys::eventfd::Timer as TimerFd;
use hourglass_sys::posix_timer::{PosixTimer, realtime_signals};
use hourglass_sys::thread;
use hourglass_time::{Instant, Monotonic, Span};

use super::service::ServiceTimers;

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum TimerKind {
        Posix => "POSIX timer",
        TimerFd => "timerfd",
        /// The library's timer service, whose engine is another thread.
        Service => "service",
        Queue => "queue",
    }
}

impl TimerKind {
    pub(super) fn open(self, timers: usize) -> Result<Box<dyn TimerOperations>, String> {
        Ok(match self {
            TimerKind::Posix => Box::new(PosixTimers(Vec::with_capacity(timers))),
            TimerKind::TimerFd => Box::new(TimerFds(Vec::with_capacity(timers))),
            TimerKind::Service => Box::new(ServiceTimers::with_room(timers)?),
            TimerKind::Queue => Box::new(QueueTimers {
                queue: Queue::with_capacity(timers).map_err(|error| error.to_string())?,
                timers: Vec::with_capacity(timers),
            }),
        })
    }

    pub(super) fn is_periodic(self) -> bool {
        self != TimerKind::Queue
    }
}

/// The operations of the paper's Table 1 on timers, which are numbered from 0.
pub(super) trait TimerOperations {
    fn create(&mut self) -> io::Result<()>;

    /// Arms one for a time, and then every `interval_ns`; 0 for once.
    fn arm(&mut self, timer: usize, at_ns: u64, interval_ns: u64) -> io::Result<()>;

    fn cancel(&mut self, timer: usize) -> io::Result<()>;

    /// The timer of the highest number goes; whether there was one.
    fn terminate(&mut self) -> bool;
}

const SIGNAL: i32 = 4;

struct PosixTimers(Vec<PosixTimer>);

impl TimerOperations for PosixTimers {
    fn create(&mut self) -> io::Result<()> {
        self.0.push(PosixTimer::new(thread::id(), realtime_signals().0 + SIGNAL)?);
        Ok(())
    }

    fn arm(&mut self, timer: usize, at_ns: u64, interval_ns: u64) -> io::Result<()> {
        self.0[timer].set_absolute(at_ns, interval_ns)
    }

    fn cancel(&mut self, timer: usize) -> io::Result<()> {
        self.0[timer].disarm()
    }

    fn terminate(&mut self) -> bool {
        self.0.pop().is_some()
    }
}

struct TimerFds(Vec<TimerFd>);

impl TimerOperations for TimerFds {
    fn create(&mut self) -> io::Result<()> {
        self.0.push(TimerFd::new()?);
        Ok(())
    }

    fn arm(&mut self, timer: usize, at_ns: u64, interval_ns: u64) -> io::Result<()> {
        self.0[timer].set_absolute(at_ns, interval_ns)
    }

    fn cancel(&mut self, timer: usize) -> io::Result<()> {
        self.0[timer].disarm()
    }

    fn terminate(&mut self) -> bool {
        self.0.pop().is_some()
    }
}

struct QueueTimers {
    queue: Queue<Monotonic, u64>,
    timers: Vec<Handle>,
}

impl TimerOperations for QueueTimers {
    fn create(&mut self) -> io::Result<()> {
        self.timers.push(self.queue.create(0).map_err(io::Error::other)?);
        Ok(())
    }

    fn arm(&mut self, timer: usize, at_ns: u64, _: u64) -> io::Result<()> {
        let at = Instant::from_nanos(i64::try_from(at_ns).unwrap_or(i64::MAX));
        self.queue.arm(self.timers[timer], at, Span::ZERO).map_err(io::Error::other)
    }

    fn cancel(&mut self, timer: usize) -> io::Result<()> {
        self.queue.cancel(self.timers[timer]).map(|_| ()).map_err(io::Error::other)
    }

    fn terminate(&mut self) -> bool {
        self.timers.pop().is_some_and(|timer| self.queue.remove(timer).is_ok())
    }
}
