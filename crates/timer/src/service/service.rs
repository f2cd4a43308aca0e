//! The service: its engines, its classes, and the owners of timers.
//!
//! Owns: threads, from their start to their end.
//! Must not: have one thread wait for another but at the start and the end.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use hourglass_sys::memory::has_room;
use hourglass_sys::no_stop::NoStopGuard;
use hourglass_sys::sched::Attributes;

use super::class::{self, ActionClass, ClassSettings, Worker};
use super::error::ServiceError;
use super::owner::Owner;
use super::statistics::ServiceStatistics;
use super::table::TimerTable;
use super::thread::{self as engine_thread, EngineSettings};
use crate::event::Resolution;
use crate::start_thread::start_thread;

const CLASSES: usize = 64;

/// Engines that a service can have: each is a thread, and as many as Linux numbers CPUs are enough.
pub const MOST_ENGINES: usize = 1024;

/// How a service works: its engines, at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceSettings {
    /// One entry an engine; none is one engine with the default settings.
    pub engines: Vec<EngineSettings>,
}

impl ServiceSettings {
    /// `count` engines with the same settings.
    #[must_use]
    pub fn engines(count: usize, settings: &EngineSettings) -> ServiceSettings {
        ServiceSettings { engines: vec![settings.clone(); count] }
    }
}

/// The classes of a service, which engines reach without a lock.
pub(super) struct Classes {
    classes: [OnceLock<ActionClass>; CLASSES],
    /// One bit a place: whether a class is there, or about to be.
    taken: Mutex<u64>,
}

const _: () = assert!(CLASSES as u32 == u64::BITS, "one bit a class");

/// A place for a class that is about to be. Dropped before that, the place is free again.
pub(super) struct ClassSlot<'a> {
    classes: &'a Classes,
    number: usize,
    is_set: bool,
}

impl ClassSlot<'_> {
    pub(super) fn number(&self) -> u32 {
        self.number as u32
    }

    /// The class is there from now on: its worker runs.
    pub(super) fn set(mut self, class: &ActionClass) {
        self.is_set = self.classes.classes[self.number].set(class.clone()).is_ok();
    }
}

impl Drop for ClassSlot<'_> {
    fn drop(&mut self) {
        if !self.is_set {
            *self.classes.taken() &= !(1 << self.number);
        }
    }
}

impl Classes {
    pub(super) fn new() -> Arc<Classes> {
        let classes = std::array::from_fn(|_| OnceLock::new());
        Arc::new(Classes { classes, taken: Mutex::new(0) })
    }

    /// A place, for the caller alone. Not locked while the worker starts: that takes its time.
    pub(super) fn reserve(&self) -> Result<ClassSlot<'_>, ServiceError> {
        let mut taken = self.taken();
        let number = taken.trailing_ones() as usize;
        if number >= CLASSES {
            return Err(ServiceError::TooManyClasses { classes: CLASSES });
        }
        *taken |= 1 << number;
        Ok(ClassSlot { classes: self, number, is_set: false })
    }

    fn taken(&self) -> NoStopGuard<MutexGuard<'_, u64>> {
        NoStopGuard::new(|| self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn has(&self, class: &ActionClass) -> bool {
        let own = self.classes.get(class.0.number as usize).and_then(OnceLock::get);
        own.is_some_and(|own| Arc::ptr_eq(&own.0, &class.0))
    }

    pub(super) fn push(&self, route: u32, engine: u32, index: u32, priority: u32) -> bool {
        let class = self.classes.get((route as usize).wrapping_sub(1)).and_then(OnceLock::get);
        class.is_some_and(|class| class.0.push(engine, index, priority))
    }

    /// An expiry that waits in the class with this number, counted from 1, has become more urgent.
    pub(super) fn raise(&self, route: u32, priority: u32) {
        if let Some(class) =
            self.classes.get((route as usize).wrapping_sub(1)).and_then(OnceLock::get)
        {
            class.0.raise(priority);
        }
    }

    fn all(&self) -> impl Iterator<Item = &ActionClass> {
        self.classes.iter().filter_map(OnceLock::get)
    }
}

/// What the service and its owners share. Its end is that of the threads.
pub(super) struct Core {
    tables: Arc<[Arc<TimerTable>]>,
    pub(super) classes: Arc<Classes>,
    turn: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Core {
    pub(super) fn new(tables: Vec<Arc<TimerTable>>, classes: Arc<Classes>) -> Core {
        let (turn, threads) = (AtomicUsize::new(0), Mutex::default());
        Core { tables: tables.into(), classes, turn, threads }
    }

    pub(super) fn check_not_forked(&self) -> Result<(), ServiceError> {
        self.tables.iter().try_for_each(|table| table.check_not_forked())
    }

    /// The table of an engine, or of the one whose turn it is.
    pub(super) fn table(&self, engine: Option<usize>) -> Result<&Arc<TimerTable>, ServiceError> {
        let engines = self.tables.len();
        let engine = engine.unwrap_or_else(|| match engines {
            0 => 0,
            engines => self.turn.fetch_add(1, Ordering::Relaxed) % engines,
        });
        self.tables.get(engine).ok_or(ServiceError::NoEngine { engine, engines })
    }

    pub(super) fn tables(&self) -> &Arc<[Arc<TimerTable>]> {
        &self.tables
    }

    fn threads(&self) -> NoStopGuard<MutexGuard<'_, Vec<JoinHandle<()>>>> {
        NoStopGuard::new(|| self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.check_not_forked().is_err() {
            // A forked child: the threads are the parent's. Not even their handles may be dropped:
            // the C library may have given their places to threads of the child, which that would
            // detach.
            let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(threads));
            return;
        }
        for table in self.tables.iter() {
            table.stop.store(true, Ordering::Release);
            table.kick();
        }
        for class in self.classes.all() {
            class.0.stop.store(true, Ordering::Release);
            if let Some(worker) = class.0.thread.get() {
                worker.unpark();
            }
        }
        let threads = std::mem::take(&mut *self.threads());
        let own = thread::current().id();
        if threads.iter().any(|thread| thread.thread().id() == own) {
            // The last owner went in an action: the threads end by themselves.
            return;
        }
        for thread in threads {
            // A panic outside of actions would be a bug that the thread has reported.
            let _ = thread.join();
        }
    }
}

/// Timers of RT-Mach (1993, section 3): owners make them on a clock, any thread arms, cancels,
/// sleeps on and terminates them, and they act when they expire.
///
/// Each engine is a thread with a queue and a clock event device. Its timers are served by it alone,
/// so that more engines, on CPUs of their own, share nothing. Deferred actions run on the thread of
/// their [`ActionClass`].
///
/// Clones are the same service. Its threads end with the last clone and the last [`Owner`]. A child
/// made by `fork` has none of them: every call gives [`ServiceError::Forked`].
///
/// ```
/// use hourglass_time::Span;
/// use hourglass_timer::engine::ClockBase;
/// use hourglass_timer::service::{Action, TimerSpec, Port, TimerService, CancelScope};
///
/// let service = TimerService::start()?;
/// let owner = service.owner("pump");
/// let port = Port::new(8)?;
///
/// // A message with the time every 5 ms, counted from when each is scheduled.
/// let stroke = owner.timer(ClockBase::Monotonic, Action::send(&port, 1))?;
/// stroke.arm(TimerSpec::after(Span::from_millis(5)).every(Span::from_millis(5)))?;
/// let first = port.receive(None)?.expect("there is no limit");
/// assert!(first.expiration.now_ns >= first.expiration.expiry_ns);
/// assert!(stroke.cancel(CancelScope::All)?);
///
/// // A thread sleeps on a timer; cancelling that timer ends the sleep.
/// let nap = owner.timer(ClockBase::Monotonic, Action::nothing())?;
/// nap.sleep_for(Span::MILLISECOND)?;
///
/// // Everything of an owner is torn down with it.
/// drop(owner);
/// assert!(stroke.arm(TimerSpec::after(Span::SECOND)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TimerService(Arc<Core>);

impl TimerService {
    /// With one engine, on any CPU, with the policy of the calling thread.
    ///
    /// # Errors
    /// As [`TimerService::with`].
    pub fn start() -> Result<TimerService, ServiceError> {
        TimerService::with(&ServiceSettings::default())
    }

    /// With engines as `settings` say. Each has tried its device when this returns.
    ///
    /// # Errors
    /// [`ServiceError::Thread`] if a thread, its CPUs or its policy are refused,
    /// [`ServiceError::Engine`] if an engine finds no device, [`ServiceError::TooManyEngines`]. Then
    /// nothing of the service is left.
    pub fn with(settings: &ServiceSettings) -> Result<TimerService, ServiceError> {
        if settings.engines.len() > MOST_ENGINES {
            return Err(ServiceError::TooManyEngines { engines: settings.engines.len() });
        }
        let classes = Classes::new();
        let default = [EngineSettings::default()];
        let engines = if settings.engines.is_empty() { &default } else { &settings.engines[..] };
        let tables = (0..engines.len() as u32).map(engine_thread::table).collect();
        let core = Core::new(tables, Arc::clone(&classes));
        for (table, settings) in core.tables.iter().zip(engines) {
            let started = engine_thread::start(table, &classes, settings)?;
            core.threads().push(started);
        }
        Ok(TimerService(Arc::new(core)))
    }

    /// A new owner of timers. Names need not differ.
    #[must_use]
    pub fn owner(&self, name: &str) -> Owner {
        Owner::new(name, &self.0)
    }

    /// A new class of deferred actions, with a thread of that name.
    ///
    /// # Errors
    /// [`ServiceError::Thread`] if the thread or its policy is refused,
    /// [`ServiceError::TooManyClasses`], [`ServiceError::NoRoom`], [`ServiceError::Forked`]. Nothing of
    /// the class is left then.
    pub fn class(&self, name: &str, settings: ClassSettings) -> Result<ActionClass, ServiceError> {
        self.0.check_not_forked()?;
        if !has_room(ActionClass::bytes(settings.capacity)) {
            return Err(ServiceError::NoRoom { room: settings.capacity });
        }
        let policy = settings.attributes.or_else(own_policy);
        let settings = ClassSettings { attributes: policy, ..settings };
        let place = self.0.classes.reserve()?;
        let class = ActionClass::new(name, settings, place.number());
        let worker = Worker::new(&class, &self.0.tables);
        let started = start_worker(Arc::clone(&class.0), worker)?;
        place.set(&class);
        self.0.threads().push(started);
        Ok(class)
    }

    /// What engine number `engine`, from 0, did so far.
    ///
    /// # Errors
    /// [`ServiceError::NoEngine`].
    pub fn statistics(&self, engine: usize) -> Result<ServiceStatistics, ServiceError> {
        Ok(self.0.table(Some(engine))?.counters.read())
    }

    /// Whether engine number `engine` is precise, or bound to its tick since its device, tried out at
    /// the start, was late: then timers are late by up to a tick
    /// ([`DEFAULT_TICK`](crate::engine::DEFAULT_TICK)).
    ///
    /// # Errors
    /// [`ServiceError::NoEngine`].
    pub fn resolution(&self, engine: usize) -> Result<Resolution, ServiceError> {
        match self.0.table(Some(engine))?.is_precise.load(Ordering::Relaxed) {
            true => Ok(Resolution::High),
            false => Ok(Resolution::TickBound),
        }
    }

    /// Number of its engines.
    #[must_use]
    pub fn engines(&self) -> usize {
        self.0.tables.len()
    }

    /// Timers that live: made, and not terminated.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.0.tables.iter().map(|table| table.timers()).sum()
    }
}

impl fmt::Debug for TimerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerService").field("engines", &self.engines()).finish_non_exhaustive()
    }
}

/// What the calling thread hands on: a reservation is its own.
fn own_policy() -> Option<Attributes> {
    let own = hourglass_sys::sched::read(0).ok().flatten();
    own.filter(|attributes| !matches!(attributes, Attributes::Deadline { .. }))
}

fn start_worker(
    class: Arc<class::ClassShared>,
    mut worker: Worker,
) -> Result<JoinHandle<()>, ServiceError> {
    let name = class.name.clone();
    let (sender, receiver) = std::sync::mpsc::channel::<Result<(), ServiceError>>();
    let started = start_thread(&name, move || {
        let policy = class.settings.attributes.map_or(Ok(()), |attributes| {
            let set = hourglass_sys::sched::set(attributes);
            set.map_err(|e| ServiceError::policy(&class.name, attributes, &e))
        });
        let refused = policy.is_err();
        class.tid.store(hourglass_sys::thread::id(), Ordering::Release);
        let _ = class.thread.set(thread::current());
        drop(class);
        let _ = sender.send(policy);
        drop(sender);
        if !refused {
            worker.work();
        }
    });
    let started = started.map_err(|e| ServiceError::start(&name, &e))?;
    match receiver.recv() {
        Ok(policy) => policy.map(|()| started),
        Err(_) => Err(ServiceError::start(&name, &io::Error::from_raw_os_error(0))),
    }
}
