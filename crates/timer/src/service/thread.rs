//! The thread of an engine.
//!
//! Owns: the loop of looking, expiring and waiting.
//! Must not: know what an expiry comes to (that is the keeper's).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread::set_affinity;

use super::clock::ServiceClock;
use super::dispatcher::Dispatcher;
use super::error::ServiceError;
use super::remote::SleepTransition;
use super::service::Classes;
use super::table::TimerTable;
use crate::engine::{DEFAULT_TICK, Engine, EngineError};
use crate::event::native::{BusyEvent, PosixTimerEvent, RtcEvent, SleepEvent, TimerFdEvent};
use crate::event::{ClockEvent, EventDevice, Period, Resolution};
use crate::start_thread::start_thread;

/// What wakes an engine's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// Sleeping in the kernel: the quickest to wake, and what needs least.
    #[default]
    Sleep,
    /// A timerfd.
    TimerFd,
    /// A POSIX timer with a signal of its own. Where no signals are left (`RLIMIT_SIGPENDING`) the
    /// service does not start: [`crate::event::DeviceError::SignalsExhausted`].
    PosixTimer,
    /// Polling: as exact as can be, with a CPU of its own.
    BusyPoll,
    /// The real-time clock's periodic interrupt, `/dev/rtc`, 2 Hz to 8192 Hz in powers of two: the
    /// engine is bound to its tick. One engine on a machine can have it.
    Rtc,
}

/// Settings of one engine and its thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineSettings {
    /// The CPUs on which it may run; none named: those of the thread that starts it.
    pub cpus: Vec<u32>,
    /// Its policy; `None`: that of the thread that starts it, or `SCHED_OTHER` if that is a
    /// deadline thread, whose reservation is not handed on.
    pub attributes: Option<Attributes>,
    /// Device that wakes the engine.
    pub device: Device,
    /// Binds the engine to a tick of this length, as RT-Mach's clock devices
    /// ([`crate::clock_device`]): timers expire at the first tick that is not before their time,
    /// several at one wake-up, and ticks at which nothing is due are skipped. A device with some
    /// periods only ticks at the longest of them that is not above it. `None`: high resolution
    /// where the device has it, else a tick of [`DEFAULT_TICK`].
    pub tick: Option<Period>,
}

/// Timers that expire before what changed is looked at again.
const BUDGET: usize = 256;

pub(super) fn table(number: u32) -> Arc<TimerTable> {
    Arc::new(TimerTable::new(number, ServiceClock::Os))
}

/// Starts the thread; it is ready when this returns.
pub(super) fn start(
    table: &Arc<TimerTable>,
    classes: &Arc<Classes>,
    settings: &EngineSettings,
) -> Result<JoinHandle<()>, ServiceError> {
    let name = format!("hg-engine-{}", table.engine);
    let dispatcher = Dispatcher::new(table, classes);
    let (table, settings) = (Arc::clone(table), settings.clone());
    let (sender, receiver) = channel();
    let own_name = name.clone();
    let started = start_thread(&name, move || {
        serve(&own_name, &table, dispatcher, &settings, sender);
    });
    let started = started.map_err(|e| ServiceError::start(&name, &e))?;
    match receiver.recv() {
        Ok(Ok(())) => Ok(started),
        Ok(Err(refused)) => Err(refused),
        Err(_) => Err(ServiceError::Engine(EngineError::NoDevice)),
    }
}

fn serve(
    name: &str,
    table: &TimerTable,
    mut dispatcher: Dispatcher,
    settings: &EngineSettings,
    sender: Sender<Result<(), ServiceError>>,
) {
    let mut engine = match prepare(name, settings) {
        Ok(engine) => engine,
        Err(refused) => {
            let _ = sender.send(Err(refused));
            return;
        }
    };
    let _ = table.kick.set(engine.kick());
    table.is_precise.store(engine.resolution() == Resolution::High, Ordering::Relaxed);
    let _ = sender.send(Ok(()));
    drop(sender);
    let _panics = PanicNotifier(table);
    while !table.stop.load(Ordering::Acquire) {
        if let Err(failed) = turn(&mut engine, table, &mut dispatcher) {
            // Without a device nothing can be waited for.
            table.fail(failed.into());
            break;
        }
    }
    engine.detach();
}

/// Dropped by a panic of the engine's thread, it fails the arming and sleeping threads, which would
/// otherwise wait.
struct PanicNotifier<'a>(&'a TimerTable);

impl Drop for PanicNotifier<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(ServiceError::Panicked { engine: self.0.engine });
        }
    }
}

fn turn(
    engine: &mut Engine<u32>,
    table: &TimerTable,
    dispatcher: &mut Dispatcher,
) -> Result<(), EngineError> {
    dispatcher.take_changes(engine.timers());
    if engine.expire(BUDGET, |timers, fired| dispatcher.expired(timers, &fired)) >= BUDGET {
        return Ok(());
    }
    table.is_precise.store(engine.resolution() == Resolution::High, Ordering::Relaxed);
    let mut retiring = SleepTransition::default();
    engine.wait_with(None, |timers, _, wake_ns| {
        if retiring.may_sleep(&table.wake, wake_ns, || table.any_changed()) {
            return false;
        }
        // What was published stands: threads that arm meanwhile decide by it.
        retiring.looked(dispatcher.take_changes(timers));
        true
    })?;
    table.wake.awake();
    let skipped = engine.statistics().ticks_skipped;
    table.counters.ticks_skipped.store(skipped, Ordering::Relaxed);
    Ok(())
}

fn prepare(name: &str, settings: &EngineSettings) -> Result<Engine<u32>, ServiceError> {
    if !settings.cpus.is_empty() {
        set_affinity(settings.cpus.iter().copied())
            .map_err(|e| ServiceError::cpus(name, &settings.cpus, &e))?;
    }
    if let Some(attributes) = settings.attributes {
        sched::set(attributes).map_err(|e| ServiceError::policy(name, attributes, &e))?;
    }
    Ok(open(settings)?)
}

/// The engine on the device of the settings, tried out: the service tells its resolution from the start.
fn open(settings: &EngineSettings) -> Result<Engine<u32>, EngineError> {
    let device: Box<dyn ClockEvent> = match settings.device {
        Device::Sleep => Box::new(SleepEvent::new()),
        Device::TimerFd => Box::new(TimerFdEvent::new()?),
        Device::PosixTimer => Box::new(PosixTimerEvent::new()?),
        Device::BusyPoll => Box::new(BusyEvent::new()),
        Device::Rtc => Box::new(RtcEvent::find()?),
    };
    let device = EventDevice::from_box(device)?;
    let mut engine = Engine::native(settings.tick.unwrap_or(DEFAULT_TICK), device)?;
    if settings.tick.is_some() {
        engine.source_lost();
    }
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use hourglass_time::Span;

    use super::*;
    use crate::engine::{ClockBase, ClockSetPolicy};
    use crate::service::timer::open;
    use crate::service::{Action, TimerSpec};

    /// A sleeper is woken by the panic with the error, and later arming gets it too.
    #[test]
    fn a_panic_of_the_engine_is_reported() {
        let table = table(3);
        let timer = open(&table, (ClockBase::Monotonic, ClockSetPolicy::Follow), Action::nothing())
            .unwrap();
        let own = timer.clone();
        let (sender, receiver) = channel();
        let sleeps = thread::spawn(move || sender.send(own.sleep_for(Span::from_secs(3_600))));
        while !timer.status().unwrap().armed {
            thread::yield_now();
        }
        let engine = Arc::clone(&table);
        let panics = thread::spawn(move || {
            let _panics = PanicNotifier(&engine);
            // No hook is called, so that nothing is printed.
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(panics.join().is_err());
        let failed = Err(ServiceError::Panicked { engine: 3 });
        assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap(), failed);
        assert_eq!(timer.arm(TimerSpec::after(Span::SECOND)), failed);
        sleeps.join().unwrap().unwrap();
    }

    #[test]
    fn an_end_without_a_panic_is_none() {
        let table = table(0);
        drop(PanicNotifier(&table));
        assert_eq!(table.serves(), Ok(()));
    }
}
