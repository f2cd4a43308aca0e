//! Sleeping, for Python: the interpreter is let go, and signals end a sleep by their handlers' exceptions.
//!
//! A signal's handler runs in Python's main thread, and only when that asks for it. So a long sleep of
//! the main thread is slept in slices ([`SLICE_NS`]), by the kernel's wait; its last part, like any sleep
//! of another thread, is the sleeper's own and as precise as ever.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, TryLockError};

use hourglass_clock::process::clock;
use hourglass_clock::timekeeping::Ticks;
use hourglass_timer::sleep::{
    Budget, Delay, Interrupt, Interrupter, SleepEnd, SleepOutcome, SleepPolicy, Sleeper,
    SleeperSettings,
};
use pyo3::prelude::*;

use crate::errors::{ErrorKind, PyFailure};
use crate::spans::{DurationArg, TimeArg};
use crate::values::repr;

/// Time between two checks for signals, ns. The last part of a sleep takes up to two of these, so that Ctrl-C
/// works within 30 ms, where 50 are promised; these wake-ups cost some 0.05 % of a CPU.
pub(crate) const SLICE_NS: u64 = 15_000_000;

/// Result of a sleep.
#[pyclass(frozen, get_all, eq, hash, name = "Slept", module = "hourglass.sleep")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PySlept {
    deadline_ns: u64,
    woke_ns: u64,
    kernel_ns: u64,
    spin_ns: u64,
    margin_ns: u64,
    longest_step_ns: u64,
    interrupted: bool,
    delay: &'static str,
}

impl From<SleepOutcome> for PySlept {
    fn from(slept: SleepOutcome) -> PySlept {
        PySlept {
            deadline_ns: slept.deadline_ns,
            woke_ns: slept.woke_ns,
            kernel_ns: slept.kernel_ns,
            spin_ns: slept.spin_ns,
            margin_ns: slept.margin_ns,
            longest_step_ns: slept.longest_step_ns,
            interrupted: slept.interrupted,
            delay: match slept.delay {
                Delay::None => "none",
                Delay::AlreadyPast => "already_past",
                Delay::WokenLate => "woken_late",
                Delay::Preempted => "preempted",
                Delay::Stalled => "stalled",
            },
        }
    }
}

#[pymethods]
impl PySlept {
    /// Latency of the sleep's end after its deadline, ns; 0 if an interrupt ended it before.
    #[getter]
    fn miss_ns(&self) -> u64 {
        self.woke_ns.saturating_sub(self.deadline_ns)
    }

    /// Whether the deadline was reached.
    #[getter]
    fn reached(&self) -> bool {
        self.woke_ns >= self.deadline_ns
    }

    fn __repr__(slf: &Bound<'_, PySlept>) -> PyResult<String> {
        repr(slf, &["deadline_ns", "woke_ns", "miss_ns", "spin_ns", "interrupted", "delay"])
    }
}

/// Ends sleeps from anywhere: from another thread, from a signal's handler.
///
/// From `set()` until `clear()` every sleep on it ends at once, the one in progress and those that begin
/// later, so that an interrupt that comes too early is not lost.
#[pyclass(frozen, name = "Interrupt", module = "hourglass.sleep")]
pub(crate) struct PyInterrupt(pub(crate) Interrupter);

#[pymethods]
impl PyInterrupt {
    #[new]
    fn new() -> PyInterrupt {
        PyInterrupt(Interrupter::new())
    }

    /// Ends the sleeps in progress and every later one until `clear()`.
    fn set(&self) {
        self.0.interrupt();
    }

    /// Clears the interrupt. Returns whether it was set.
    fn clear(&self) -> bool {
        self.0.clear()
    }

    /// Whether it is set.
    fn is_set(&self) -> bool {
        self.0.is_set()
    }
}

/// Settings of a sleeper, from its keyword arguments.
pub(crate) fn settings_of(policy: &str, hz: Option<u32>) -> Result<SleeperSettings, PyFailure> {
    match (policy, hz) {
        ("learned", None) => Ok(SleeperSettings::DEFAULT),
        ("frugal", None) => Ok(SleeperSettings::FRUGAL),
        ("precise", None) => Ok(SleeperSettings::PRECISE),
        ("kernel", None) => Ok(SleeperSettings::with_policy(SleepPolicy::KernelOnly)),
        ("spin", None) => Ok(SleeperSettings::with_policy(SleepPolicy::SpinOnly)),
        ("thesis", Some(hz @ 1..)) => Ok(SleeperSettings::with_policy(SleepPolicy::Thesis { hz })),
        ("thesis", _) => Err(PyFailure::argument("hz", "the thesis' sleep needs the tick's rate")),
        ("learned" | "frugal" | "precise" | "kernel" | "spin", Some(_)) => {
            Err(PyFailure::argument("hz", format_args!("'{policy}' knows no tick: leave it out")))
        }
        (other, _) => Err(PyFailure::argument(
            "policy",
            format_args!(
                "unknown '{other}'; expected one of learned, frugal, precise, kernel, spin, thesis"
            ),
        )),
    }
}

/// A sleeper that is kept, and learns.
///
/// It belongs to one thread at a time: another that sleeps by it meanwhile gets `BusyError`.
#[pyclass(frozen, name = "Sleeper", module = "hourglass.sleep")]
struct PySleeper {
    sleeper: Mutex<Sleeper>,
    interrupter: Interrupter,
}

impl PySleeper {
    fn sleeper(&self) -> Result<MutexGuard<'_, Sleeper>, PyFailure> {
        match self.sleeper.try_lock() {
            Ok(sleeper) => Ok(sleeper),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyFailure::new(
                ErrorKind::Busy,
                "another sleep by this sleeper is not over: make one for each thread",
            )),
        }
    }
}

#[pymethods]
impl PySleeper {
    #[new]
    #[pyo3(signature = (policy = "learned", *, interrupt = None, hz = None, per_sleep = None, share_ppm = None, quantile_ppm = None, surely = false))]
    fn new(
        policy: &str,
        interrupt: Option<&Bound<'_, PyInterrupt>>,
        hz: Option<u32>,
        per_sleep: Option<DurationArg>,
        share_ppm: Option<u32>,
        quantile_ppm: Option<u32>,
        surely: bool,
    ) -> PyResult<PySleeper> {
        let default = settings_of(policy, hz)?;
        let per_sleep = per_sleep.map(|span| span.not_negative("per_sleep")).transpose()?;
        let parts = |name, given: Option<u32>, otherwise: u32| match given {
            Some(ppm) if ppm > 1_000_000 => {
                Err(PyFailure::argument(name, format_args!("{ppm} ppm are more than all of it")))
            }
            given => Ok(given.unwrap_or(otherwise)),
        };
        let settings = SleeperSettings {
            budget: Budget {
                per_sleep_ns: per_sleep.unwrap_or(default.budget.per_sleep_ns),
                share_ppm: parts("share_ppm", share_ppm, default.budget.share_ppm)?,
                ..default.budget
            },
            quantile_ppm: parts("quantile_ppm", quantile_ppm, default.quantile_ppm)?,
            ends_when: if surely { SleepEnd::SurelyReached } else { SleepEnd::Reached },
            ..default
        };
        let mut sleeper = Sleeper::with(settings);
        if let Some(interrupt) = interrupt {
            sleeper = sleeper.interrupted_through(interrupt.get().0.clone());
        }
        let interrupter = sleeper.interrupter();
        Ok(PySleeper { sleeper: Mutex::new(sleeper), interrupter })
    }

    /// Sleeps until a time of `clock.now_ns()`'s scale; not at all if that is past.
    fn sleep_until(&self, py: Python<'_>, deadline_ns: TimeArg) -> PyResult<PySlept> {
        let mut sleeper = self.sleeper()?;
        sleep_until(py, &mut sleeper, deadline_ns.0).map(PySlept::from)
    }

    /// Sleeps for `length` from now.
    fn sleep_for(&self, py: Python<'_>, length: DurationArg) -> PyResult<PySlept> {
        let length_ns = length.not_negative("length")?;
        let mut sleeper = self.sleeper()?;
        sleep_for(py, &mut sleeper, length_ns).map(PySlept::from)
    }

    /// Sleeps until the clock's counter has counted `count` ticks from now.
    fn sleep_ticks(&self, py: Python<'_>, count: u64) -> PyResult<PySlept> {
        let mut sleeper = self.sleeper()?;
        let sleeper = &mut *sleeper;
        let begun_ns = sleeper.now_ns();
        let mut slept = match come_near_ticks(py, sleeper, count)? {
            RemainingSleep::Ticks(left) => py.detach(|| sleeper.sleep_ticks(left)),
            RemainingSleep::Until(deadline_ns) => {
                return sleep_until(py, sleeper, deadline_ns).map(PySlept::from);
            }
        };
        py.check_signals()?;
        let all_ns = sleeper.now_ns().saturating_sub(begun_ns);
        slept.kernel_ns = all_ns.saturating_sub(slept.spin_ns).max(slept.kernel_ns);
        Ok(slept.into())
    }

    /// The margin that a sleep of this length would have here and now, ns; None if nothing was learnt.
    fn margin_ns(&self, length: DurationArg) -> PyResult<Option<u64>> {
        let length_ns = length.not_negative("length")?;
        Ok(self.sleeper()?.margin_ns(length_ns))
    }

    /// Ends its sleeps, from any thread, until `clear()`.
    fn interrupt(&self) {
        self.interrupter.interrupt();
    }

    /// Clears a pending interrupt of the sleeper. Returns whether one was pending.
    fn clear(&self) -> bool {
        self.interrupter.clear()
    }
}

/// Whether signals' handlers run in this thread.
pub(crate) fn hears_signals(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// Sleeps until less than two slices are left, hearing signals; how long, ns. Not at all in a thread
/// that has no signals to hear.
///
/// # Errors
/// The exception of a signal's handler.
pub(crate) fn come_near(py: Python<'_>, sleeper: &mut Sleeper, deadline_ns: u64) -> PyResult<u64> {
    let begun_ns = sleeper.now_ns();
    if deadline_ns.saturating_sub(begun_ns) <= 2 * SLICE_NS || !hears_signals(py)? {
        return Ok(0);
    }
    let settings = *sleeper.settings();
    // Who spins does so all the time.
    if settings.policy != SleepPolicy::SpinOnly {
        sleeper.set(SleeperSettings { policy: SleepPolicy::KernelOnly, ..settings });
    }
    let near = in_slices(py, sleeper, deadline_ns);
    sleeper.set(settings);
    near.map(|()| sleeper.now_ns().saturating_sub(begun_ns))
}

/// The remaining part of a sleep by the counter.
enum RemainingSleep {
    /// Remaining ticks.
    Ticks(u64),
    /// The clock has left its counter: the rest goes by time.
    Until(u64),
}

/// Sleeps until shortly before the clock's counter has counted `count` ticks from now.
fn come_near_ticks(py: Python<'_>, sleeper: &mut Sleeper, count: u64) -> PyResult<RemainingSleep> {
    /// Counter and clock differ by less in their rates: what a part of is left for the next round.
    const PART: u64 = 1_000;
    let begun = clock().ticks();
    // A difference above 2^63 would read as a negative one.
    let end = |ticks: u64| Ticks { count: begun.count.wrapping_add(ticks), epoch: begun.epoch };
    let end = end(count.min(u64::MAX / 2));
    let mut deadline_ns = None;
    loop {
        let now = clock().ticks();
        let now_ns = sleeper.now_ns();
        let Ok(left) = clock().elapsed(now, end) else {
            return Ok(deadline_ns.map_or(RemainingSleep::Ticks(count), RemainingSleep::Until));
        };
        let left_ns = u64::try_from(left.ns).unwrap_or(0);
        deadline_ns = Some(now_ns.saturating_add(left_ns));
        let ahead_ns = left_ns - left_ns / PART;
        let near = come_near(py, sleeper, now_ns.saturating_add(ahead_ns))?;
        if near == 0 || sleeper.interrupter().is_set() {
            let counted = clock().ticks().count.wrapping_sub(begun.count);
            return Ok(RemainingSleep::Ticks(count.saturating_sub(counted)));
        }
    }
}

fn in_slices(py: Python<'_>, sleeper: &mut Sleeper, deadline_ns: u64) -> PyResult<()> {
    loop {
        let now_ns = sleeper.now_ns();
        if deadline_ns.saturating_sub(now_ns) <= 2 * SLICE_NS {
            return Ok(());
        }
        let slept = py.detach(|| sleeper.sleep_until_ns(now_ns + SLICE_NS));
        py.check_signals()?;
        if slept.interrupted {
            return Ok(());
        }
    }
}

/// Sleeps, without the interpreter.
pub(crate) fn sleep_until(
    py: Python<'_>,
    sleeper: &mut Sleeper,
    deadline_ns: u64,
) -> PyResult<SleepOutcome> {
    let before_ns = come_near(py, sleeper, deadline_ns)?;
    let mut slept = py.detach(|| sleeper.sleep_until_ns(deadline_ns));
    py.check_signals()?;
    slept.kernel_ns = slept.kernel_ns.saturating_add(before_ns);
    Ok(slept)
}

fn sleep_for(py: Python<'_>, sleeper: &mut Sleeper, length_ns: u64) -> PyResult<SleepOutcome> {
    let deadline_ns = sleeper.now_ns().saturating_add(length_ns);
    sleep_until(py, sleeper, deadline_ns)
}

/// Never set: for sleeps that nothing interrupts.
static NEVER: Interrupt = Interrupt::new();

thread_local! {
    /// The thread's own sleeper, made by its first sleep.
    static OWN: RefCell<Option<Sleeper>> = const { RefCell::new(None) };
}

/// With the thread's own sleeper. A signal's handler that sleeps meanwhile gets another one.
pub(crate) fn by_own_sleeper<T>(
    interrupt: Option<&Bound<'_, PyInterrupt>>,
    work: impl FnOnce(&mut Sleeper) -> T,
) -> T {
    let own = OWN.try_with(|own| own.borrow_mut().take()).ok().flatten();
    let mut sleeper = own.unwrap_or_default();
    sleeper = match interrupt {
        Some(interrupt) => sleeper.interrupted_through(interrupt.get().0.clone()),
        None => sleeper.interrupted_by(&NEVER),
    };
    let done = work(&mut sleeper);
    // Where the thread ends there is nowhere to put it.
    let _ = OWN.try_with(|own| own.replace(Some(sleeper.interrupted_by(&NEVER))));
    done
}

/// Sleeps until a time of `clock.now_ns()`'s scale; not at all if that is past. Never ends early, but for
/// `interrupt`. The thread's own sleeper, which learns how late the kernel wakes it.
#[pyfunction(name = "sleep_until")]
#[pyo3(signature = (deadline_ns, *, interrupt = None))]
fn own_sleep_until(
    py: Python<'_>,
    deadline_ns: TimeArg,
    interrupt: Option<&Bound<'_, PyInterrupt>>,
) -> PyResult<PySlept> {
    by_own_sleeper(interrupt, |sleeper| sleep_until(py, sleeper, deadline_ns.0)).map(PySlept::from)
}

/// Sleeps for `length` from now: whole nanoseconds, a text such as `"1.5ms"`, or a timedelta.
#[pyfunction(name = "sleep_for")]
#[pyo3(signature = (length, *, interrupt = None))]
fn own_sleep_for(
    py: Python<'_>,
    length: DurationArg,
    interrupt: Option<&Bound<'_, PyInterrupt>>,
) -> PyResult<PySlept> {
    let length_ns = length.not_negative("length")?;
    by_own_sleeper(interrupt, |sleeper| sleep_for(py, sleeper, length_ns)).map(PySlept::from)
}

/// Sleeps for `length_ns` nanoseconds from now.
#[pyfunction]
#[pyo3(signature = (length_ns, *, interrupt = None))]
fn sleep_ns(
    py: Python<'_>,
    length_ns: TimeArg,
    interrupt: Option<&Bound<'_, PyInterrupt>>,
) -> PyResult<PySlept> {
    by_own_sleeper(interrupt, |sleeper| sleep_for(py, sleeper, length_ns.0)).map(PySlept::from)
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(own_sleep_until, module)?)?;
    module.add_function(wrap_pyfunction!(own_sleep_for, module)?)?;
    module.add_function(wrap_pyfunction!(sleep_ns, module)?)?;
    module.add_class::<PySlept>()?;
    module.add_class::<PyInterrupt>()?;
    module.add_class::<PySleeper>()
}
