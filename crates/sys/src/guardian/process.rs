//! The life of a guardian.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;

use super::record::Record;
use super::table::{PROMISES, SLOTS, Table};
use super::undo::{CONTINUE, HAS_CPUS, LAST, MEMBERS, THREAD, WRITE};
use super::{acts, oom};
use crate::clock::{ClockId, now_ns};
use crate::pidfd::PidFd;
use crate::process::NoSigpipeWriter;
use crate::sched::Attributes;
use crate::{checked, checked_long, sched, thread};

/// The name under which `ps` shows it.
const NAME: &std::ffi::CStr = c"hourglass-guard";

/// Above whatever a reservation raises.
pub(super) const PRIORITY: u8 = 98;

/// Asks a guardian to look at the promises anew.
pub(super) const LOOK: u8 = b'?';
/// Asks it to put back what is left, and to end.
pub(super) const END: u8 = b'.';

/// Where there is no descriptor: `poll(2)` leaves it out.
const NONE: RawFd = -1;

/// Resources of a guardian, made before it starts.
pub(super) struct GuardianSetup<'a> {
    pub(super) table: &'a Table,
    pub(super) record: Option<&'a Record>,
    /// Becomes readable when the maker ends.
    pub(super) maker: &'a PidFd,
    /// The guardian that does the work as long as it lives; without one, this does.
    pub(super) partner: Option<&'a PidFd>,
}

/// A guardian, as its maker has it.
#[derive(Debug)]
pub(super) struct GuardianProcess {
    /// Its number: a child that was not waited for.
    pub(super) pid: libc::pid_t,
    pub(super) file: PidFd,
    /// The line on which it is spoken to; closed, it ends.
    pub(super) line: NoSigpipeWriter,
}

impl GuardianSetup<'_> {
    /// Starts one. May be called in a process of many threads: the child makes system calls alone.
    pub(super) fn begin(&self) -> io::Result<GuardianProcess> {
        let (reading, line) = NoSigpipeWriter::line()?;
        // SAFETY: the child makes nothing but system calls with memory that was made before, so
        // that locks which other threads hold do not matter; it never returns.
        let pid = checked(unsafe { libc::fork() })?;
        if pid == 0 {
            self.live(reading.as_raw_fd());
        }
        match PidFd::open(pid.unsigned_abs()) {
            Ok(file) => Ok(GuardianProcess { pid, file, line }),
            Err(error) => {
                // Left to itself it would wait for its partner, or put back what is still in use. It has done nothing.
                // SAFETY: takes its arguments by value; a child that was not waited for keeps its number.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                wait_for(pid);
                Err(error)
            }
        }
    }

    fn live(&self, line: RawFd) -> ! {
        let partner = self.partner.map_or(NONE, AsRawFd::as_raw_fd);
        let record = self.record.map_or(NONE, Record::descriptor);
        leave_the_others([line, self.maker.as_raw_fd(), partner, record]);
        // The maker's lock is not inherited.
        let _ = self.record.map_or(Ok(()), Record::hold);
        oom::end_last();
        // Refused where real-time policies are; then it may have to wait for its turn.
        let _ =
            sched::set(Attributes::Fifo(PRIORITY)).or_else(|_| sched::set(Attributes::Other(0)));
        // More CPUs than there are; the kernel takes those that it has.
        let _ = thread::set_affinity(0..1024);
        let mut watch = GuardianLoop { line, partner, broken_promises: [0; PROMISES] };
        while self.wait(&mut watch) {}
        // The partner puts everything back; if it is killed meanwhile, or stands, this does.
        if watch.partner != NONE {
            wait_on([watch.partner], PARTNER_MS);
        }
        put_all_back(self.table, self.record);
        // SAFETY: ends this process at once, without the parent's exit handlers.
        unsafe { libc::_exit(0) }
    }

    /// Waits until the maker says something, ends, or breaks a promise; false if it ended.
    fn wait(&self, watch: &mut GuardianLoop) -> bool {
        // Promises concern the one that does the work.
        let left_ns =
            if watch.partner == NONE { self.least_left(&mut watch.broken_promises) } else { None };
        let wait = |left: u64| left.div_ceil(1_000_000).clamp(LEAST_MS, MOST_MS) as libc::c_int;
        let files = [watch.line, self.maker.as_raw_fd(), watch.partner];
        let [heard, maker_ended, partner_ended] = wait_on(files, left_ns.map_or(-1, wait));
        if partner_ended {
            watch.partner = NONE;
        }
        if maker_ended {
            return false;
        }
        if !heard {
            return true;
        }
        let mut word = 0u8;
        // SAFETY: the kernel writes one byte to a live local.
        let count = unsafe { libc::read(watch.line, (&raw mut word).cast(), 1) };
        (count == 1 && word != END)
            || (count == -1 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted)
    }

    /// Acts on promises that were broken; how long the next one has, ns, if any is made.
    fn least_left(&self, kept: &mut [u64; PROMISES]) -> Option<u64> {
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
                // Afterwards: a reader that sees the count also sees the effects.
                self.table.count_broken(index);
            }
            left_ns = Some(left_ns.map_or(left, |least: u64| least.min(left)));
        }
        left_ns
    }

    /// A promise was broken: all that is stopped runs again, and if it is not the maker's own, threads that are not
    /// kept to a budget any more lose their urgency. They stay on their CPUs, to be raised again there.
    fn act_on(&self, promise: usize) {
        wake_all(self.table);
        if promise != 0 {
            carry_out(self.table, MEMBERS, false);
            carry_out(self.table, THREAD, false);
        }
    }
}

/// The descriptor and state of a guardian's waits.
struct GuardianLoop {
    line: RawFd,
    /// [`NONE`] for the one that does the work.
    partner: RawFd,
    /// The promises last found broken.
    broken_promises: [u64; PROMISES],
}

/// Which of these are readable, or closed at their other end; `timeout_ms` as `poll(2)` has it.
pub(super) fn wait_on<const N: usize>(files: [RawFd; N], timeout_ms: libc::c_int) -> [bool; N] {
    let mut polls = files.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: the kernel reads and writes the live array of this length.
    let ready = unsafe { libc::poll(polls.as_mut_ptr(), N as libc::nfds_t, timeout_ms) };
    polls.map(|poll| ready > 0 && poll.revents != 0)
}

/// Lets the kernel forget a child that ended, or waits until it has.
pub(super) fn wait_for(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: writes to a live local; the child is ours and was not waited for.
    while checked(unsafe { libc::waitpid(pid, &raw mut status, 0) })
        .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
    {}
}

/// Lets all that is stopped run again; everything is kept.
pub(super) fn wake_all(table: &Table) {
    carry_out(table, WRITE, true);
    carry_out(table, CONTINUE, true);
}

fn carry_out(table: &Table, kind: u64, with_cpus: bool) {
    for index in 0..SLOTS {
        if let Some((_, mut words)) = table.read_slot(index)
            && words[0] == kind
        {
            words[HAS_CPUS] *= u64::from(with_cpus);
            // No process is left to receive the error.
            let _ = acts::carry_out(&words);
        }
    }
}

/// Puts back whatever is left, once, and keeps what the kernel refuses in the record. Takes no memory.
pub(super) fn put_all_back(table: &Table, record: Option<&Record>) {
    if table.finished() {
        return;
    }
    for kind in WRITE..=LAST {
        for index in 0..SLOTS {
            if let Some((state, words)) = table.read_slot(index)
                && words[0] == kind
                && acts::carry_out(&words).is_ok()
            {
                record.into_iter().for_each(|record| record.clear(index));
                table.free(index, state);
            }
        }
    }
    if let Some(record) = record
        && (0..SLOTS).all(|index| table.read_slot(index).is_none())
    {
        record.remove();
    }
    table.finish();
}

/// Keeps nothing of the parent's but the given descriptors: neither its terminal, nor its folder, nor its files, whose
/// other ends would otherwise wait for this process.
fn leave_the_others(mut but: [RawFd; 4]) {
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
    but.sort_unstable();
    let mut first = 0;
    for file in but.into_iter().filter_map(|file| libc::c_uint::try_from(file).ok()) {
        if file > first && close_all(first, file - 1).is_err() {
            return close_one_by_one(but);
        }
        first = file + 1;
    }
    if close_all(first, libc::c_uint::MAX).is_err() {
        close_one_by_one(but);
    }
}

/// Time limit of the partner: some removals are tried for up to 5 s.
const PARTNER_MS: libc::c_int = 20_000;

/// How long it sleeps at least and at most while there is a promise.
const LEAST_MS: u64 = 10;
const MOST_MS: u64 = 1000;

/// Closes the descriptors from `first` to `last`; ENOSYS before Linux 5.9.
pub(super) fn close_all(first: libc::c_uint, last: libc::c_uint) -> io::Result<()> {
    // SAFETY: takes its arguments by value; nothing in the guardian uses those descriptors.
    checked_long(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// As [`close_all`], where the kernel has no call for it.
fn close_one_by_one(but: [RawFd; 4]) {
    /// More than any process of ours has open.
    const MOST: RawFd = 4096;
    for descriptor in (0..MOST).filter(|descriptor| !but.contains(descriptor)) {
        // SAFETY: nothing in the guardian uses the descriptor; one that is not open is refused.
        unsafe { libc::close(descriptor) };
    }
}
