//! Scheduling policies of threads.

use std::{io, ptr};

use crate::{checked, checked_long};

/// Policy and parameters as `sched_setattr` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// `SCHED_OTHER` with a nice value.
    Other(i8),
    /// `SCHED_BATCH` with a nice value.
    Batch(i8),
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority from 1 to 99.
    RoundRobin(u8),
    /// `SCHED_DEADLINE`.
    Deadline {
        /// Budget, ns.
        runtime_ns: u64,
        /// Relative deadline, ns.
        deadline_ns: u64,
        /// Period, ns.
        period_ns: u64,
        /// Use bandwidth that others leave (`SCHED_FLAG_RECLAIM`).
        reclaim: bool,
        /// Signal SIGXCPU when the budget is overrun (`SCHED_FLAG_DL_OVERRUN`).
        overrun_signal: bool,
    },
}

/// `struct sched_attr`, its first published size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const FLAG_RESET_ON_FORK: u64 = 1;
const FLAG_RECLAIM: u64 = 2;
const FLAG_DL_OVERRUN: u64 = 4;

/// Gives the calling thread a policy (`sched_setattr`).
///
/// # Errors
/// EPERM without the privilege, EBUSY where deadline bandwidth is used up, EINVAL for times
/// that the kernel does not take.
pub fn set(attributes: Attributes) -> io::Result<()> {
    set_of(0, attributes)
}

/// Gives thread `tid` a policy; 0 is the calling thread. The number must still be its own.
///
/// # Errors
/// As [`set`]; ESRCH if there is no such thread.
pub fn set_of(tid: u32, attributes: Attributes) -> io::Result<()> {
    set_raw(tid, &raw_from(attributes))
}

/// As [`set_of`], and what the thread forks from now on begins with `SCHED_OTHER` (`SCHED_FLAG_RESET_ON_FORK`). Without
/// it, a thread of `SCHED_DEADLINE` may not fork (EAGAIN).
///
/// # Errors
/// As [`set_of`].
pub fn set_without_children(tid: u32, attributes: Attributes) -> io::Result<()> {
    let mut raw = raw_from(attributes);
    raw.flags |= FLAG_RESET_ON_FORK;
    set_raw(tid, &raw)
}

/// Gives thread `tid` the policy of `attributes`; the nice value stays the one that it has now, which it keeps under a
/// real-time policy too, and which may be another one than it had before that.
///
/// # Errors
/// As [`set_of`].
pub fn put_back(tid: u32, attributes: Attributes) -> io::Result<()> {
    // Without privilege this flag cannot be removed; the policy can be set back.
    put_back_with(tid, attributes, 0)
        .or_else(|_| put_back_with(tid, attributes, libc::SCHED_RESET_ON_FORK))
}

fn put_back_with(tid: u32, attributes: Attributes, flag: libc::c_int) -> io::Result<()> {
    let policy = match attributes {
        Attributes::Other(_) => libc::SCHED_OTHER,
        Attributes::Batch(_) => libc::SCHED_BATCH,
        Attributes::Idle => libc::SCHED_IDLE,
        _ if flag == 0 => return set_of(tid, attributes),
        _ => return set_without_children(tid, attributes),
    };
    // The kernel's `struct sched_param` is this one number; that of musl has more.
    let no_priority: libc::c_int = 0;
    // `sched_setattr` takes a nice value; this call keeps the thread's own (`_sched_setscheduler` in
    // kernel/sched/syscalls.c).
    // SAFETY: the structure is a live one.
    checked_long(unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, tid, policy | flag, ptr::from_ref(&no_priority))
    })
    .map(drop)
}

fn raw_from(attributes: Attributes) -> RawAttributes {
    let mut raw = RawAttributes { size: size_of::<RawAttributes>() as u32, ..Default::default() };
    match attributes {
        Attributes::Other(nice) => {
            raw.policy = libc::SCHED_OTHER as u32;
            raw.nice = i32::from(nice);
        }
        Attributes::Batch(nice) => {
            raw.policy = libc::SCHED_BATCH as u32;
            raw.nice = i32::from(nice);
        }
        Attributes::Idle => raw.policy = libc::SCHED_IDLE as u32,
        Attributes::Fifo(priority) => {
            raw.policy = libc::SCHED_FIFO as u32;
            raw.priority = u32::from(priority);
        }
        Attributes::RoundRobin(priority) => {
            raw.policy = libc::SCHED_RR as u32;
            raw.priority = u32::from(priority);
        }
        Attributes::Deadline { runtime_ns, deadline_ns, period_ns, reclaim, overrun_signal } => {
            raw.policy = libc::SCHED_DEADLINE as u32;
            raw.runtime = runtime_ns;
            raw.deadline = deadline_ns;
            raw.period = period_ns;
            raw.flags = if reclaim { FLAG_RECLAIM } else { 0 }
                | if overrun_signal { FLAG_DL_OVERRUN } else { 0 };
        }
    }
    raw
}

/// Policy and parameters of a thread as they were: what [`Attributes`] cannot say too.
#[derive(Clone, Copy, Debug)]
pub struct SavedScheduling(RawAttributes);

impl SavedScheduling {
    /// Those of thread `tid`; 0 is the calling thread.
    ///
    /// # Errors
    /// ESRCH if there is no such thread.
    pub fn read(tid: u32) -> io::Result<SavedScheduling> {
        raw_of(tid).map(SavedScheduling)
    }

    /// Puts them back, but for the nice value, which stays the one that the thread has now.
    ///
    /// # Errors
    /// As [`set_of`].
    pub fn restore(self, tid: u32) -> io::Result<()> {
        let nice = nice_of(tid).map_or(self.0.nice, i32::from);
        set_raw(tid, &RawAttributes { nice, ..self.0 })
    }
}

fn set_raw(tid: u32, raw: &RawAttributes) -> io::Result<()> {
    // SAFETY: the structure is a live one that states its own size.
    checked_long(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, ptr::from_ref(raw), 0) })
        .map(|_| ())
}

fn raw_of(tid: u32) -> io::Result<RawAttributes> {
    let mut raw = RawAttributes::default();
    let size = size_of::<RawAttributes>() as u32;
    // SAFETY: the kernel writes at most the size of the live local that it is given.
    checked_long(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut raw, size, 0) })?;
    Ok(raw)
}

/// Whether a thread or process of that number exists, also an ended one whose parent has not waited for it.
///
/// To be asked ahead of its folder in `/proc`: opening that of one that is being taken away waits in a loop of the kernel
/// (`d_invalidate`) for the thread that takes it away. Below a real-time thread on its CPU that one has no turn: the loop was
/// measured to last for 950 ms, until the kernel's limit for real-time threads.
#[must_use]
pub fn is_there(tid: u32) -> bool {
    !matches!(raw_of(tid), Err(error) if error.raw_os_error() == Some(libc::ESRCH))
}

/// The policy of thread `tid` (`sched_getattr`); 0 is the calling thread. `None` for a policy that
/// [`Attributes`] cannot say.
///
/// # Errors
/// ESRCH if there is no such thread.
pub fn read(tid: u32) -> io::Result<Option<Attributes>> {
    let raw = raw_of(tid)?;
    let priority = raw.priority as u8;
    Ok(match raw.policy as i32 {
        libc::SCHED_OTHER => Some(Attributes::Other(raw.nice as i8)),
        libc::SCHED_BATCH => Some(Attributes::Batch(raw.nice as i8)),
        libc::SCHED_IDLE => Some(Attributes::Idle),
        libc::SCHED_FIFO => Some(Attributes::Fifo(priority)),
        libc::SCHED_RR => Some(Attributes::RoundRobin(priority)),
        libc::SCHED_DEADLINE => Some(Attributes::Deadline {
            runtime_ns: raw.runtime,
            deadline_ns: raw.deadline,
            period_ns: raw.period,
            reclaim: raw.flags & FLAG_RECLAIM != 0,
            overrun_signal: raw.flags & FLAG_DL_OVERRUN != 0,
        }),
        _ => None,
    })
}

/// Until it is dropped, a calling thread of `SCHED_DEADLINE` may make threads, which the kernel refuses
/// otherwise (EAGAIN): those begin with `SCHED_OTHER` (`SCHED_FLAG_RESET_ON_FORK`). Threads of other
/// policies may anyway, and hand theirs on; for them this does nothing.
#[derive(Debug)]
pub struct MayFork {
    /// The attributes to be set again; `None` if nothing was changed.
    before: Option<RawAttributes>,
    own: std::marker::PhantomData<*const ()>,
}

impl MayFork {
    /// For the calling thread.
    ///
    /// # Errors
    /// As [`set`].
    pub fn enter() -> io::Result<MayFork> {
        let own = std::marker::PhantomData;
        let before = raw_of(0)?;
        if before.policy as i32 != libc::SCHED_DEADLINE || before.flags & FLAG_RESET_ON_FORK != 0 {
            return Ok(MayFork { before: None, own });
        }
        set_raw(0, &RawAttributes { flags: before.flags | FLAG_RESET_ON_FORK, ..before })?;
        Ok(MayFork { before: Some(before), own })
    }
}

impl Drop for MayFork {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Refused without the privilege to have set the policy; then it stays allowed.
            let _ = set_raw(0, &before);
        }
    }
}

/// The nice value of the calling thread.
#[must_use]
pub fn nice() -> i32 {
    // SAFETY: takes no memory. On Linux a `who` of 0 means the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// The nice value of thread `tid`, which it keeps under a real-time policy too; 0 is the calling thread.
///
/// # Errors
/// ESRCH if there is no such thread.
pub fn nice_of(tid: u32) -> io::Result<i8> {
    /// The kernel answers with numbers above zero (getpriority(2)).
    const ABOVE: i64 = 20;
    // SAFETY: takes no memory.
    let answer =
        checked_long(unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, tid) })?;
    Ok(i8::try_from(ABOVE - answer).unwrap_or(0))
}

/// The policy that the kernel says the calling thread has, as its number (`SCHED_FIFO` = 1...).
///
/// # Errors
/// What the kernel answers; does not happen for the calling thread.
pub fn policy_number() -> io::Result<i32> {
    // SAFETY: takes no memory.
    checked(unsafe { libc::sched_getscheduler(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `wait4(2)`: until it is waited for, a process keeps its number.
    #[test]
    fn who_was_waited_for_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        assert!(is_there(pid));
        child.wait().unwrap();
        assert!(!is_there(pid) && is_there(std::process::id()) && is_there(0));
    }

    /// The nice value and the flag that children begin anew come back too.
    #[test]
    fn what_was_saved_comes_back() {
        std::thread::spawn(|| {
            set_without_children(0, Attributes::Other(3)).unwrap();
            let saved = SavedScheduling::read(0).unwrap();
            // Without a privilege, a nice value only grows and the flag stays.
            set_without_children(0, Attributes::Batch(3)).unwrap();
            assert_eq!(read(0).unwrap(), Some(Attributes::Batch(3)));
            saved.restore(0).unwrap();
            assert_eq!(read(0).unwrap(), Some(Attributes::Other(3)));
            assert_eq!(raw_of(0).unwrap().flags & FLAG_RESET_ON_FORK, FLAG_RESET_ON_FORK);
        })
        .join()
        .unwrap();
    }

    /// The bug: a nice value that was set under a real-time policy was gone when the policy was put back.
    #[test]
    fn a_nice_value_set_meanwhile_stays() {
        std::thread::spawn(|| {
            let saved = SavedScheduling::read(0).unwrap();
            let before = read(0).unwrap().unwrap();
            let raised = set(Attributes::Fifo(1)).is_ok();
            // SAFETY: takes no memory.
            checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 15) }).unwrap();
            put_back(0, before).unwrap();
            assert_eq!((read(0).unwrap(), nice()), (Some(Attributes::Other(15)), 15), "{raised}");
            for attributes in [Attributes::Batch(0), Attributes::Idle] {
                put_back(0, attributes).unwrap();
                assert_eq!(nice(), 15);
            }
            if raised {
                set(Attributes::Fifo(1)).unwrap();
                saved.restore(0).unwrap();
                assert_eq!(read(0).unwrap(), Some(Attributes::Other(15)));
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_is_set_is_read_back() {
        std::thread::spawn(|| {
            for attributes in [Attributes::Other(3), Attributes::Batch(4), Attributes::Idle] {
                // Without a privilege, a nice value only grows; SCHED_IDLE comes last.
                set(attributes).unwrap();
                assert_eq!(read(0).unwrap(), Some(attributes));
                assert_eq!(read(crate::thread::id()).unwrap(), Some(attributes));
            }
            if set(Attributes::Fifo(1)).is_ok() {
                assert_eq!(read(0).unwrap(), Some(Attributes::Fifo(1)));
            }
        })
        .join()
        .unwrap();
    }
}
