//! The life of the guardian.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;

use super::acts;
use super::table::{PROMISES, SLOTS, Table};
use super::undo::{CONTINUE, HAS_CPUS, LAST, MEMBERS, THREAD, WRITE};
use crate::clock::{ClockId, now_ns};
use crate::process::Speaker;
use crate::sched::Attributes;
use crate::{checked, checked_long, sched, thread};

/// The name under which `ps` shows it.
const NAME: &std::ffi::CStr = c"hourglass-guard";

/// Above whatever a reservation raises.
const PRIORITY: u8 = 98;

/// What it needs, made before it is.
pub(super) struct Duty<'a> {
    table: &'a Table,
    line: RawFd,
}

impl Duty<'_> {
    /// Starts it: its number, and the line that holds it back.
    pub(super) fn begin(table: &Table) -> io::Result<(libc::pid_t, Speaker)> {
        let (reading, speaker) = Speaker::line()?;
        let duty = Duty { table, line: reading.as_raw_fd() };
        // SAFETY: the child makes nothing but system calls with memory that was made before, so
        // that locks which other threads hold do not matter; it never returns.
        let pid = checked(unsafe { libc::fork() })?;
        if pid == 0 {
            duty.live();
        }
        Ok((pid, speaker))
    }

    fn live(&self) -> ! {
        self.leave_the_others();
        // Refused where real-time policies are; then it may have to wait for its turn.
        let _ =
            sched::set(Attributes::Fifo(PRIORITY)).or_else(|_| sched::set(Attributes::Other(0)));
        // More CPUs than there are; the kernel takes those that it has.
        let _ = thread::set_affinity(0..1024);
        let mut kept = [0; PROMISES];
        while self.goes_on(&mut kept) {}
        (WRITE..=LAST).for_each(|kind| self.carry_out(kind, true));
        // SAFETY: ends this process at once, without the parent's exit handlers.
        unsafe { libc::_exit(0) }
    }

    /// Waits until the maker says something, ends, or breaks a promise; false if it ended.
    /// `kept` are the promises last found broken.
    fn goes_on(&self, kept: &mut [u64; PROMISES]) -> bool {
        let mut left_ns = None;
        for (index, kept) in kept.iter_mut().enumerate() {
            let promised = self.table.promised(index);
            if promised == 0 {
                continue;
            }
            let left = promised.saturating_sub(now_ns(ClockId::Monotonic));
            if left == 0 && promised != *kept {
                *kept = promised;
                self.act_on(index);
                // Afterwards: whoever sees the count sees what was done.
                self.table.count_broken(index);
            }
            left_ns = Some(left_ns.map_or(left, |least: u64| least.min(left)));
        }
        let mut line = libc::pollfd { fd: self.line, events: libc::POLLIN, revents: 0 };
        let wait = |left: u64| left.div_ceil(1_000_000).clamp(LEAST_MS, MOST_MS) as libc::c_int;
        let wait_ms = left_ns.map_or(-1, wait);
        // SAFETY: the kernel reads and writes one live local.
        let heard = unsafe { libc::poll(&raw mut line, 1, wait_ms) };
        if heard != 1 {
            return true;
        }
        let mut word = 0u8;
        // SAFETY: the kernel writes one byte to a live local.
        let count = unsafe { libc::read(self.line, (&raw mut word).cast(), 1) };
        count == 1
            || (count == -1 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted)
    }

    /// A promise was broken: whoever stands runs again, and if it is not the maker's own, those lose their urgency
    /// whom nobody keeps to a budget any more. They stay on their CPUs, to be raised again there.
    fn act_on(&self, promise: usize) {
        self.carry_out(WRITE, true);
        self.carry_out(CONTINUE, true);
        if promise != 0 {
            self.carry_out(MEMBERS, false);
            self.carry_out(THREAD, false);
        }
    }

    fn carry_out(&self, kind: u64, with_cpus: bool) {
        for index in 0..SLOTS {
            if let Some((_, mut words)) = self.table.look(index)
                && words[0] == kind
            {
                words[HAS_CPUS] *= u64::from(with_cpus);
                // Nobody is left to be told.
                let _ = acts::carry_out(&words);
            }
        }
    }

    /// Keeps nothing of the parent's: neither its terminal, nor its folder, nor its files, whose
    /// other ends would otherwise wait for this process.
    fn leave_the_others(&self) {
        // SAFETY: an all-zero set is a valid one to fill.
        let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: fills a live local and blocks what is in it, for this process alone.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
        }
        // SAFETY: takes no memory but two constant names.
        unsafe {
            libc::setsid();
            libc::chdir(c"/".as_ptr());
            libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        }
        let line = self.line as libc::c_uint;
        let below = line.checked_sub(1).map_or(Ok(()), |last| close_all(0, last));
        if below.is_err() || close_all(line + 1, libc::c_uint::MAX).is_err() {
            close_one_by_one(self.line);
        }
    }
}

/// How long it sleeps at least and at most while there is a promise.
const LEAST_MS: u64 = 10;
const MOST_MS: u64 = 1000;

/// Closes the descriptors from `first` to `last`; ENOSYS before Linux 5.9.
fn close_all(first: libc::c_uint, last: libc::c_uint) -> io::Result<()> {
    // SAFETY: takes its arguments by value; nothing in the guardian uses those descriptors.
    checked_long(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// The same where the kernel has no call for it.
fn close_one_by_one(but: RawFd) {
    /// More than any process of ours has open.
    const MOST: RawFd = 4096;
    for descriptor in (0..MOST).filter(|descriptor| *descriptor != but) {
        // SAFETY: nothing in the guardian uses the descriptor; one that is not open is refused.
        unsafe { libc::close(descriptor) };
    }
}
