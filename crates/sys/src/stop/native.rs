//! Gates of this process' threads: the signal, the timer, the thread's own place.
//!
//! Owns: the disposition of the signal, once taken for good; which gate the calling thread has.
//! Must not: know the steps at a gate.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::gate::{NEVER, StopGate};
use super::late_thread::{self, DisarmOutcome, LateThread};
use super::machine::GatePlatform;
use crate::clock::{ClockId, now_ns};
use crate::posix_timer::{PosixTimer, block, expire_soon, take, unblock};
use crate::{checked, futex, sched, thread};

thread_local! {
    /// How many regions the thread is in that put stops off.
    static DEPTH: AtomicU32 = const { AtomicU32::new(0) };
    /// The shared part of the calling thread's registration, which keeps it alive; null without one.
    static CURRENT: Cell<*const Registration> = const { Cell::new(ptr::null()) };
}

/// Enters a region in which the calling thread is not stopped. May be called by any thread.
#[inline]
pub fn enter() {
    DEPTH.with(late_thread::enter);
    compiler_fence(Ordering::SeqCst);
}

/// Leaves it. If it is the outermost, what was put off happens now, before this returns.
#[inline]
pub fn leave() {
    compiler_fence(Ordering::SeqCst);
    match current() {
        Some(shared) => shared.with_offender(|offender| offender.leave()),
        None => DEPTH.with(|depth| {
            depth.store(depth.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }),
    }
}

/// Whether the calling thread was asked to end; `false` for one without a registration.
#[inline]
#[must_use]
pub fn has_ended() -> bool {
    current().is_some_and(|shared| shared.gate.is_ended())
}

fn current<'a>() -> Option<&'a Registration> {
    // SAFETY: the pointer is null, or was made from an `Arc` that the thread's registration holds until it
    // has set the pointer to null; only this thread uses it, and within one call.
    unsafe { CURRENT.get().as_ref() }
}

/// State that a registration shares with the responders of its thread.
#[derive(Debug)]
struct Registration {
    gate: StopGate,
    machine: NativePlatform,
    tid: u32,
    /// Cookie of the timer's signal, to distinguish it from other signals.
    cookie: usize,
    /// Whether the thread is to be called to account when its budget's timer signals.
    counts_budget: AtomicBool,
    /// The thread's own `DEPTH`, as long as it is watched.
    depth: AtomicPtr<AtomicU32>,
    /// Whether the number is its own; locked while it is used.
    life: Mutex<WatchedLifetime>,
}

/// The life of the thread, for others that use its number.
#[derive(Debug)]
struct WatchedLifetime {
    with_watched: bool,
    /// The scheduling that the thread had before it was demoted, while it is.
    before: Option<sched::Attributes>,
}

impl Registration {
    fn life(&self) -> MutexGuard<'_, WatchedLifetime> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_offender<R>(&self, act: impl FnOnce(&LateThread<'_, NativePlatform>) -> R) -> R {
        DEPTH.with(|depth| act(&LateThread { gate: &self.gate, depth, machine: &self.machine }))
    }
}

/// The kernel as a gate's world.
#[derive(Debug)]
pub struct NativePlatform {
    timer: Option<PosixTimer>,
    pid: u32,
}

impl NativePlatform {
    /// For the side that answers, which has no timer.
    #[must_use]
    pub fn without_timer() -> NativePlatform {
        NativePlatform { timer: None, pid: std::process::id() }
    }
}

impl GatePlatform for NativePlatform {
    fn now_ns(&self) -> u64 {
        now_ns(ClockId::Monotonic)
    }

    fn set_timer(&self, at_ns: u64) -> bool {
        // In a child the number may be that of a timer of its own.
        let timer = self.timer.as_ref().filter(|_| !self.is_child());
        timer.is_some_and(|timer| timer.set_absolute(at_ns, 0).is_ok())
    }

    fn stop_timer(&self) {
        if let Some(timer) = self.timer.as_ref().filter(|_| !self.is_child()) {
            // Refused by no kernel: it is there, and the setting is a valid one.
            let _ = timer.disarm();
        }
    }

    fn wait(&self, word: &AtomicU32, expected: u32, until_ns: u64) {
        // Whatever ended the wait, the caller looks again.
        let _ = futex::wait_until(word, expected, until_ns);
    }

    fn wake(&self, word: &AtomicU32) {
        futex::wake(word, u32::MAX);
    }

    fn is_child(&self) -> bool {
        std::process::id() != self.pid
    }
}

impl Drop for NativePlatform {
    fn drop(&mut self) {
        if self.is_child() {
            // Not to be deleted: its number may be that of a timer of the child's own.
            std::mem::forget(self.timer.take());
        }
    }
}

/// Why a thread gets no registration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeatError {
    #[error("this thread is already being watched for a deadline")]
    Taken,
    /// The program handles this signal itself.
    #[error("signal {0} has a handler of the program's")]
    Handled(i32),
    /// The kernel refused: EAGAIN if the user may have no more signals queued
    /// (`RLIMIT_SIGPENDING`), EINVAL for a number that is no signal.
    #[error(transparent)]
    Os(#[from] io::Error),
}

/// The calling thread's registration: its gate, its timer, its signal. Not to be sent elsewhere.
///
/// Given up when dropped, also at the end of the thread; the signal's mask is as it was then. If it
/// is leaked, so is what it shares: a late signal never finds freed memory.
#[derive(Debug)]
pub struct WatchedThread {
    shared: Arc<Registration>,
    /// Made when it is first asked for.
    budget: Option<PosixTimer>,
    signal: i32,
    was_blocked: bool,
    own: PhantomData<*const ()>,
}

/// In the cookie of a budget's timer, above all that are counted.
const OF_BUDGET: usize = 1 << (usize::BITS - 1);

/// Tells the timers' signals of seats from each other; 0 is what other timers have.
static NEXT_COOKIE: AtomicUsize = AtomicUsize::new(1);

impl WatchedThread {
    /// Takes a registration with that signal, which from now on is the process' for this purpose. Blocked
    /// signals are unblocked for the thread.
    ///
    /// # Errors
    /// [`SeatError`].
    pub fn take(signal: i32) -> Result<WatchedThread, SeatError> {
        if current().is_some() {
            return Err(SeatError::Taken);
        }
        let was_blocked = block(signal)?;
        let taken = catch(signal).and_then(|()| {
            let cookie = NEXT_COOKIE.fetch_add(1, Ordering::Relaxed);
            let tid = thread::id();
            let timer = Some(PosixTimer::with_value(tid, signal, cookie)?);
            let machine = NativePlatform { timer, pid: std::process::id() };
            let life = Mutex::new(WatchedLifetime { with_watched: true, before: None });
            let counts_budget = AtomicBool::new(false);
            let depth = AtomicPtr::new(DEPTH.with(|depth| ptr::from_ref(depth).cast_mut()));
            Ok(Registration {
                gate: StopGate::new(),
                machine,
                tid,
                cookie,
                counts_budget,
                depth,
                life,
            })
        });
        let shared = match taken {
            Ok(shared) => Arc::new(shared),
            Err(error) => {
                if !was_blocked {
                    unblock(signal)?;
                }
                return Err(error);
            }
        };
        CURRENT.set(Arc::as_ptr(&shared));
        let watched = WatchedThread { shared, budget: None, signal, was_blocked, own: PhantomData };
        unblock(signal)?;
        Ok(watched)
    }

    /// Takes a deadline: [`LateThread::arm`].
    pub fn arm(&self, at_ns: u64) -> bool {
        self.shared.with_offender(|offender| offender.arm(at_ns))
    }

    /// Gives it up: [`LateThread::disarm`].
    pub fn disarm(&self) -> (DisarmOutcome, u64) {
        self.shared.with_offender(|offender| offender.disarm())
    }

    /// When the thread has used `budget_ns` of CPU time from now on, it is called to account ([`StopGate::call`], for
    /// the deadline [`NEVER`]), instead of what was asked for before. The deadline stays. Late by up to a tick of the
    /// kernel.
    ///
    /// # Errors
    /// EAGAIN if the user may have no more signals queued; EINVAL in a child made by `fork`.
    pub fn arm_budget(&mut self, budget_ns: u64) -> io::Result<()> {
        self.disarm_budget();
        let cookie = self.shared.cookie | OF_BUDGET;
        let timer = match self.budget.take() {
            Some(timer) => timer,
            None => PosixTimer::on_own_cpu_time(self.signal, cookie)?,
        };
        let timer = self.budget.insert(timer);
        self.shared.counts_budget.store(true, Ordering::Relaxed);
        timer.set_relative(budget_ns).inspect_err(|_| {
            self.shared.counts_budget.store(false, Ordering::Relaxed);
        })
    }

    /// Gives it up. A signal that is on its way means nothing.
    pub fn disarm_budget(&self) {
        if self.shared.counts_budget.swap(false, Ordering::Relaxed)
            && let Some(timer) = &self.budget
        {
            // A signal that was sent is delivered before this returns, and finds nothing asked for. Refused in a child
            // only.
            let _ = timer.disarm();
        }
    }

    #[must_use]
    pub fn gate(&self) -> &StopGate {
        &self.shared.gate
    }

    /// For others: to answer for this thread.
    #[must_use]
    pub fn stops(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.shared))
    }

    /// Whether this is a child of the process that took the registration. There it has no timer.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.shared.machine.is_child()
    }
}

impl Drop for WatchedThread {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
        if self.is_inherited() {
            // The responder does not exist here, and may have held the lock when the child was made.
            return;
        }
        // Nothing here fails for a signal that was blocked once.
        let _ = block(self.signal);
        self.shared.gate.leave_for_good(&self.shared.machine);
        let before = {
            let mut life = self.shared.life();
            life.with_watched = false;
            life.before.take()
        };
        if let Some(before) = before {
            // No other code will bring it back. Refused only if a privilege was given up since.
            let _ = sched::set(before);
        }
        self.disarm_budget();
        // No caller makes it fire from here on.
        self.shared.machine.stop_timer();
        while matches!(take(self.signal, Some(0)), Ok(Some(_))) {}
        if !self.was_blocked {
            let _ = unblock(self.signal);
        }
    }
}

/// The responder's handle of a thread: its gate, and its number as long as that is its own.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Registration>);

impl StopHandle {
    #[must_use]
    pub fn gate(&self) -> &StopGate {
        &self.0.gate
    }

    /// The kernel's number of the thread; may be another's once it has given up its registration.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.0.tid
    }

    /// Uses the thread's number while that is surely its own; `None` if the thread has given up its
    /// registration, which it cannot do meanwhile, and in a child made by `fork`, where it is not.
    pub fn with_tid<R>(&self, act: impl FnOnce(u32) -> R) -> Option<R> {
        if self.is_inherited() {
            return None;
        }
        let life = self.0.life();
        life.with_watched.then(|| act(self.0.tid))
    }

    /// Gives the thread another scheduling until [`StopHandle::restore`], or until it gives up its registration.
    /// `None` as for [`StopHandle::with_tid`].
    ///
    /// # Errors
    /// The kernel's; `Unsupported` for a policy that could not be given back.
    pub fn demote(&self, to: sched::Attributes) -> Option<io::Result<()>> {
        if self.is_inherited() {
            return None;
        }
        let mut life = self.0.life();
        life.with_watched.then(|| {
            if life.before.is_none() {
                let before = sched::read(self.0.tid)?.ok_or(io::ErrorKind::Unsupported)?;
                sched::set_of(self.0.tid, to)?;
                life.before = Some(before);
            }
            Ok(())
        })
    }

    /// Gives the thread this scheduling, or what it had before it was demoted. `None` as for
    /// [`StopHandle::with_tid`].
    ///
    /// # Errors
    /// The kernel's; then it stays demoted.
    pub fn restore(&self, to: Option<sched::Attributes>) -> Option<io::Result<()>> {
        if self.is_inherited() {
            return None;
        }
        let mut life = self.0.life();
        life.with_watched.then(|| {
            if let Some(scheduling) = to.or(life.before) {
                sched::set_of(self.0.tid, scheduling)?;
                life.before = None;
            }
            Ok(())
        })
    }

    /// Whether the thread is in a region that puts stops off.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.with_tid(|_| {
            let depth = self.0.depth.load(Ordering::Relaxed);
            // SAFETY: the watched thread's own, which lives until its end; while this runs it cannot give up its
            // registration, which it does before.
            unsafe { (*depth).load(Ordering::SeqCst) != 0 }
        })
        .unwrap_or(false)
    }

    /// Makes the thread look at its gate, wherever it is; whether it will.
    pub fn nudge(&self) -> bool {
        // It is there, and the setting is a valid one.
        let expire = |timer: &PosixTimer| expire_soon(timer.number()).is_ok();
        self.with_tid(|_| self.0.machine.timer.as_ref().is_some_and(expire)).unwrap_or(false)
    }

    /// Whether this is a child of the process that took the registration.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.0.machine.is_child()
    }
}

/// Makes the signal ours. It stays so: one that is late must not meet another disposition, which may
/// be to end the program.
fn catch(signal: i32) -> Result<(), SeatError> {
    /// One at a time, or a handler could be put back over ours.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let ours = on_signal as *const () as usize;
    // SAFETY: an all-zero sigaction is a valid one.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only, and writes to a live local.
    checked(unsafe { libc::sigaction(signal, ptr::null(), &raw mut before) })?;
    if ![ours, libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction) {
        return Err(SeatError::Handled(signal));
    }
    // SAFETY: an all-zero sigaction is a valid one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    action.sa_sigaction = ours;
    // SAFETY: writes to the live local's mask.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: the handler is async-signal-safe: it uses atomics, the clock, the thread's timer and
    // futexes only, and memory that is valid as long as the signal's thread has a registration.
    checked(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) })?;
    Ok(())
}

extern "C" fn on_signal(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: errno is this thread's own; the location is valid as long as the thread lives.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid one; `si_value` is set for timers.
    let (code, value) = unsafe { ((*info).si_code, (*info).si_value().sival_ptr.addr()) };
    if let Some(shared) = current()
        && code == libc::SI_TIMER
    {
        let is_of_budget = value == shared.cookie | OF_BUDGET
            && shared.counts_budget.swap(false, Ordering::Relaxed);
        if is_of_budget {
            shared.gate.call(NEVER);
        }
        if is_of_budget || value == shared.cookie {
            shared.with_offender(|offender| offender.expired());
        }
    }
    // SAFETY: as above; what was interrupted must find its errno unchanged.
    unsafe { *libc::__errno_location() = errno };
}
