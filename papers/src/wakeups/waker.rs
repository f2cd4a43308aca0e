//! Ways of being woken at the times of a grid: the kernel's, and the library's own engine.

use std::io;
use std::os::fd::AsFd;

use hourglass_sys::eventfd::{EventFd, Timer as TimerFd, either_readable};
use hourglass_sys::posix_timer::{self, PosixTimer, block, realtime_signals, take, unblock};
use hourglass_sys::thread;
use hourglass_sys::wait::nanosleep_until;
use hourglass_time::Span;
use hourglass_timer::engine::{ClockBase, Engine, OsTimes, TimerId, Times};
use hourglass_timer::event::native::{PosixTimerEvent, SleepEvent};
use hourglass_timer::event::{
    DeviceWaitEnd, EventDevice, InvalidDevice, Period, Resolution, validate_source,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    Woken,
    /// A signal came first: wait again, or give up.
    Interrupted,
}

pub(crate) trait Waker {
    fn begin(&mut self, first_ns: u64, interval_ns: u64) -> io::Result<()>;

    fn wait(&mut self, at_ns: u64) -> io::Result<WaitEnd>;

    /// How many times after `at_ns` will not be waited for, now that it is `now_ns`: those that are
    /// past.
    fn passed(&mut self, now_ns: u64, at_ns: u64, interval_ns: u64) -> io::Result<u64> {
        Ok(now_ns.saturating_sub(at_ns) / interval_ns.max(1))
    }

    fn end(&mut self) -> io::Result<()>;
}

#[derive(Debug)]
pub(crate) struct Sleep;

impl Waker for Sleep {
    fn begin(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, at_ns: u64) -> io::Result<WaitEnd> {
        or_interrupted(nanosleep_until(at_ns))
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn or_interrupted(slept: io::Result<()>) -> io::Result<WaitEnd> {
    match slept {
        Ok(()) => Ok(WaitEnd::Woken),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(WaitEnd::Interrupted),
        Err(error) => Err(error),
    }
}

/// The signal of [`PosixSignal`], counted from the first real-time signal that programs may use; the
/// one of our own device of that kind is another.
const SIGNAL: i32 = 4;

/// The thread waits at most this long for a signal before it checks whether it is to stop.
const LOOK_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct PosixSignal {
    timer: PosixTimer,
    signal: i32,
    was_blocked: bool,
}

impl PosixSignal {
    pub(crate) fn new() -> io::Result<PosixSignal> {
        let signal = realtime_signals().0 + SIGNAL;
        let timer = PosixTimer::new(thread::id(), signal)?;
        Ok(PosixSignal { timer, signal, was_blocked: block(signal)? })
    }
}

impl Waker for PosixSignal {
    fn begin(&mut self, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        self.timer.set_absolute(first_ns, interval_ns)
    }

    fn wait(&mut self, _: u64) -> io::Result<WaitEnd> {
        match take(self.signal, Some(LOOK_NS)) {
            Ok(Some(posix_timer::SignalOrigin::Timer)) => Ok(WaitEnd::Woken),
            Ok(_) => Ok(WaitEnd::Interrupted),
            Err(error) => or_interrupted(Err(error)),
        }
    }

    /// What the timer itself counts: it signals every time but these.
    fn passed(&mut self, _: u64, _: u64, _: u64) -> io::Result<u64> {
        self.timer.overrun()
    }

    fn end(&mut self) -> io::Result<()> {
        self.timer.disarm()?;
        while take(self.signal, Some(0))?.is_some() {}
        Ok(())
    }
}

impl Drop for PosixSignal {
    fn drop(&mut self) {
        // Ends what an error left; a destructor cannot report another one.
        let _ = self.end();
        if !self.was_blocked {
            let _ = unblock(self.signal);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Sleep,
    PosixTimer,
}

/// The library's own engine, in the thread that is woken.
pub(crate) struct EngineWaker {
    engine: Engine<()>,
    timer: TimerId,
}

impl EngineWaker {
    /// An engine of the calling thread; bound to ticks of this length, or precise.
    pub(crate) fn new(
        device: Device,
        resolution: Resolution,
        tick: Span,
    ) -> Result<EngineWaker, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let device = match device {
            Device::Sleep => EventDevice::new(SleepEvent::new()),
            Device::PosixTimer => EventDevice::new(PosixTimerEvent::new().map_err(|e| said(&e))?),
        };
        let device = device.map_err(|e| said(&e))?;
        let tick = Period::from_span(tick).map_err(|e| said(&e))?;
        let times = OsTimes::new();
        let fit = validate_source(|| times.now().device_ns());
        let mut engine = Engine::new(tick, device, times).map_err(|e| said(&e))?;
        // Without a source that is announced it stays bound to its tick.
        if resolution == Resolution::High {
            fit.map_err(|e| said(&e))?;
            validate_device(&mut engine).map_err(|e| said(&e))?;
            engine.source_valid();
        }
        let timer = engine.timers().create(ClockBase::Monotonic, ()).map_err(|e| said(&e))?;
        Ok(EngineWaker { engine, timer })
    }
}

/// Tries the device out until it was in time once: a busy host makes every device late at times, and a
/// whole table would go without its row.
fn validate_device(engine: &mut Engine<()>) -> Result<(), InvalidDevice> {
    const TRIALS: u32 = 10;
    let mut tried = engine.validate();
    for _ in 1..TRIALS {
        if !matches!(tried, Err(InvalidDevice::Late { .. })) {
            break;
        }
        tried = engine.validate();
    }
    tried.map(|_| ())
}

impl Waker for EngineWaker {
    fn begin(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, at_ns: u64) -> io::Result<WaitEnd> {
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.engine.timers().arm(self.timer, at_ns, 0).map_err(io::Error::other)?;
        loop {
            let woken = self.engine.wait(None).map_err(io::Error::other)?;
            if self.engine.expire(1, |_, _| ()) > 0 {
                return Ok(WaitEnd::Woken);
            }
            if woken == DeviceWaitEnd::Signal {
                return Ok(WaitEnd::Interrupted);
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.engine.timers().cancel(self.timer).map(|_| ()).map_err(io::Error::other)
    }
}

#[derive(Debug)]
pub(crate) struct FileTimer {
    timer: TimerFd,
    event: EventFd,
    expiries: u64,
}

impl FileTimer {
    pub(crate) fn new() -> io::Result<FileTimer> {
        Ok(FileTimer { timer: TimerFd::new()?, event: EventFd::new()?, expiries: 0 })
    }
}

impl Waker for FileTimer {
    fn begin(&mut self, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        self.timer.set_absolute(first_ns, interval_ns)
    }

    fn wait(&mut self, _: u64) -> io::Result<WaitEnd> {
        let polled = either_readable(self.timer.as_fd(), self.event.as_fd(), Some(LOOK_NS));
        match polled {
            Ok((true, _)) => {
                self.expiries = self.timer.expiries();
                Ok(if self.expiries > 0 { WaitEnd::Woken } else { WaitEnd::Interrupted })
            }
            Ok((false, _)) => Ok(WaitEnd::Interrupted),
            Err(error) => or_interrupted(Err(error)),
        }
    }

    fn passed(&mut self, _: u64, _: u64, _: u64) -> io::Result<u64> {
        Ok(self.expiries.saturating_sub(1))
    }

    fn end(&mut self) -> io::Result<()> {
        self.timer.disarm()
    }
}
