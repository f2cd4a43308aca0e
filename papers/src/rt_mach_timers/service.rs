//! The library's timer service, as Tables 1 and 2 use it.

use std::io;

use hourglass_sys::sched::Attributes;
use hourglass_time::Span;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::service::{
    Action, CancelScope, EngineSettings, Owner, Port, ServiceError, ServiceSettings, Timer,
    TimerService, TimerSpec,
};

use super::super::wakeups::{WaitEnd, Waker};
use super::timer_kinds::TimerOperations;

struct ServiceSubject {
    /// Last, so that the owner and its timers go first.
    owner: Owner,
    _service: TimerService,
}

impl ServiceSubject {
    /// The engine's thread of the policy of the woken thread, if it may have that.
    fn start(real_time: bool) -> Result<ServiceSubject, String> {
        let fifo = EngineSettings {
            attributes: Some(Attributes::Fifo(PRIORITY)),
            ..EngineSettings::default()
        };
        let started = match real_time {
            true => TimerService::with(&ServiceSettings::engines(1, &fifo))
                .or_else(|_| TimerService::start()),
            false => TimerService::start(),
        };
        let service = started.map_err(|error| error.to_string())?;
        Ok(ServiceSubject { owner: service.owner("paper"), _service: service })
    }

    fn timer(&self, action: Action) -> Result<Timer, String> {
        self.owner.timer(ClockBase::Monotonic, action).map_err(|error| error.to_string())
    }
}

const PRIORITY: u8 = 80;

fn to_io_error(error: ServiceError) -> io::Error {
    io::Error::other(error)
}

fn arm(at_ns: u64, interval_ns: u64) -> TimerSpec {
    let once = TimerSpec::at(i64::try_from(at_ns).unwrap_or(i64::MAX));
    match i64::try_from(interval_ns) {
        Ok(0) | Err(_) => once,
        Ok(ns) => once.every(Span::from_nanos(ns)),
    }
}

/// Its timers, armed by another thread than the engine's.
pub(super) struct ServiceTimers {
    timers: Vec<Timer>,
    served: ServiceSubject,
}

impl ServiceTimers {
    pub(super) fn with_room(timers: usize) -> Result<ServiceTimers, String> {
        Ok(ServiceTimers {
            timers: Vec::with_capacity(timers),
            served: ServiceSubject::start(false)?,
        })
    }
}

impl TimerOperations for ServiceTimers {
    fn create(&mut self) -> io::Result<()> {
        self.timers.push(self.served.timer(Action::nothing()).map_err(io::Error::other)?);
        Ok(())
    }

    fn arm(&mut self, timer: usize, at_ns: u64, interval_ns: u64) -> io::Result<()> {
        self.timers[timer].arm(arm(at_ns, interval_ns)).map_err(to_io_error)
    }

    fn cancel(&mut self, timer: usize) -> io::Result<()> {
        self.timers[timer].cancel(CancelScope::All).map(|_| ()).map_err(to_io_error)
    }

    fn terminate(&mut self) -> bool {
        self.timers.pop().is_some_and(|timer| timer.terminate().is_ok())
    }
}

pub(super) struct ServiceSleep {
    timer: Timer,
    _served: ServiceSubject,
}

impl ServiceSleep {
    pub(super) fn new() -> Result<ServiceSleep, String> {
        let served = ServiceSubject::start(true)?;
        Ok(ServiceSleep { timer: served.timer(Action::nothing())?, _served: served })
    }
}

impl Waker for ServiceSleep {
    fn begin(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, at_ns: u64) -> io::Result<WaitEnd> {
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.timer.sleep_until(at_ns).map_err(to_io_error)?;
        Ok(WaitEnd::Woken)
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct ServicePort {
    port: Port,
    overruns: u64,
    timer: Timer,
    _served: ServiceSubject,
}

/// Messages that a port has room for; one at a time is read.
const ROOM: usize = 64;

/// The thread waits at most this long for a message before it checks whether it is to stop.
const LOOK: Span = Span::SECOND;

impl ServicePort {
    pub(super) fn new() -> Result<ServicePort, String> {
        let served = ServiceSubject::start(true)?;
        let port = Port::new(ROOM).map_err(|error| error.to_string())?;
        let timer = served.timer(Action::send(&port, 0))?;
        Ok(ServicePort { port, overruns: 0, timer, _served: served })
    }
}

impl Waker for ServicePort {
    fn begin(&mut self, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        self.timer.arm(arm(first_ns, interval_ns)).map_err(to_io_error)
    }

    fn wait(&mut self, _: u64) -> io::Result<WaitEnd> {
        let Some(message) = self.port.receive(Some(LOOK))? else {
            return Ok(WaitEnd::Interrupted);
        };
        self.overruns = message.expiration.overruns;
        Ok(WaitEnd::Woken)
    }

    /// Timer overruns of the message: expirations after the one that was waited for.
    fn passed(&mut self, _: u64, _: u64, _: u64) -> io::Result<u64> {
        Ok(self.overruns)
    }

    fn end(&mut self) -> io::Result<()> {
        self.timer.cancel(CancelScope::All).map_err(to_io_error)?;
        while self.port.try_receive().is_some() {}
        Ok(())
    }
}
