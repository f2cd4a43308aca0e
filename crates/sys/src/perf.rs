//! Records of context switches, which the kernel gives any user about the user's own threads (`perf_event_open(2)`),
//! unless it is set not to.
//!
//! Owns: the event, its ring, the records in it, why the kernel refuses. Must not: put records on
//! another clock than the kernel's, say what a switch means.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

mod count;
mod times;

pub(crate) use count::Count;
pub use times::{SwitchSums, SwitchTimes};

/// `struct perf_event_attr` as of Linux 4.8 (`PERF_ATTR_SIZE_VER5`); later kernels take it as well.
#[repr(C)]
#[derive(Default)]
pub(crate) struct PerfAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<PerfAttributes>() == 112);

impl PerfAttributes {
    /// An event that only counts.
    pub(crate) fn counting(kind: u32, config: u64, flags: u64) -> PerfAttributes {
        PerfAttributes { kind, config, flags, ..PerfAttributes::default() }
    }
}

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_DUMMY`: counts nothing, carries records.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
/// `PERF_SAMPLE_TID`, `PERF_SAMPLE_TIME` and `PERF_SAMPLE_CPU`: what stands behind each record.
const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 7;
/// `PERF_FORMAT_LOST` (Linux 6.0): how many records found no room.
const FORMAT_LOST: u64 = 1 << 4;
/// `disabled`, `exclude_kernel`, `exclude_hv`, `sample_id_all`, `use_clockid`, `context_switch`.
const FLAGS: u64 = 1 | 1 << 5 | 1 << 6 | 1 << 18 | 1 << 25 | 1 << 26;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
/// The place of the head in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
/// `PERF_RECORD_LOST` and `PERF_RECORD_SWITCH`.
const LOST: u32 = 2;
const SWITCH: u32 = 14;
/// `PERF_RECORD_MISC_SWITCH_OUT` and `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`.
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// Bytes of a record of a switch: its header, thread, time and CPU.
pub const SWITCH_BYTES: usize = 32;

/// Why there are no records.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PerfUnavailable {
    /// The kernel is set to refuse users (`kernel.perf_event_paranoid`).
    #[error("kernel.perf_event_paranoid is {0}, which keeps users from recording switches")]
    Paranoid(i32),
    /// A filter of system calls, as containers have, or the kernel's own policy.
    #[error("perf_event_open is forbidden here, as a container's filter of system calls does")]
    Forbidden,
    /// The kernel was built without.
    #[error("this kernel has no perf events")]
    Missing,
    /// No room for a ring: the limit for users (`kernel.perf_event_mlock_kb`, `RLIMIT_MEMLOCK`) is
    /// used up.
    #[error("no memory may be locked for a ring of records (kernel.perf_event_mlock_kb)")]
    NoRoom,
    /// Something else, with its errno.
    #[error("the kernel answers: {}", io::Error::from_raw_os_error(*.0))]
    Other(i32),
}

/// Switches of one thread, being recorded since [`SwitchRecords::enable`].
#[derive(Debug)]
pub struct SwitchRecords {
    event: OwnedFd,
    map: *mut u8,
    bytes: usize,
    /// Whether the kernel counts records that find no room.
    counts_lost: bool,
}

// SAFETY: file and mapping belong to the process; any thread may use them, one at a time, since
// nothing here can be called through a shared reference that writes.
unsafe impl Send for SwitchRecords {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// When, `CLOCK_MONOTONIC_RAW`, ns.
    pub raw_ns: u64,
    /// The kernel's number of the thread.
    pub tid: u32,
    /// The CPU that the thread left or took.
    pub cpu: u32,
    /// Which of the two, and how.
    pub way: SwitchDirection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchDirection {
    In,
    /// It waited from then on.
    Waited,
    /// It was runnable and lost the CPU: preempted, or by its own yield.
    Preempted,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchRecordSet {
    /// The switches, in order of time.
    pub switches: Vec<Switch>,
    /// Records that found the ring full. `None` where it was full and the kernel does not count them.
    pub lost: Option<u64>,
    /// Whether records could not be read to the end.
    pub damaged: bool,
}

impl SwitchRecords {
    /// Makes the ring for thread `tid` of this process: of `bytes`, or less where the kernel gives no
    /// more, but room for a thousand switches. Records nothing yet.
    ///
    /// # Errors
    /// See [`PerfUnavailable`].
    pub fn open(tid: u32, bytes: usize) -> Result<SwitchRecords, PerfUnavailable> {
        let (event, counts_lost) = match open_event(tid, FORMAT_LOST) {
            Ok(event) => (event, true),
            // Before Linux 6.0.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                (open_event(tid, 0).map_err(|error| refused(&error))?, false)
            }
            Err(error) => return Err(refused(&error)),
        };
        let page = page_bytes();
        let least = 1_000 * SWITCH_BYTES;
        let mut room = bytes.max(least).next_power_of_two().max(page);
        loop {
            match map(&event, page + room) {
                Ok(map) => {
                    return Ok(SwitchRecords { event, map, bytes: page + room, counts_lost });
                }
                Err(_) if room / 2 >= least && room / 2 >= page => room /= 2,
                Err(_) => return Err(PerfUnavailable::NoRoom),
            }
        }
    }

    /// How many switches find room.
    #[must_use]
    pub fn capacity(&self) -> usize {
        (self.bytes - page_bytes()) / SWITCH_BYTES
    }

    /// Starts recording of switches.
    ///
    /// # Errors
    /// What the kernel answers; does not happen for an open event.
    pub fn enable(&self) -> io::Result<()> {
        control(&self.event, ENABLE)
    }

    /// Stops recording of switches.
    ///
    /// # Errors
    /// What the kernel answers; does not happen for an open event.
    pub fn disable(&self) -> io::Result<()> {
        control(&self.event, DISABLE)
    }

    /// Ends recording and gives what was recorded.
    #[must_use]
    pub fn finish(self) -> SwitchRecordSet {
        let _ = self.disable();
        let written = self.written();
        let room = self.bytes - page_bytes();
        let mut recorded = parse(&self.copy(written.min(room)));
        let full = written.saturating_add(SWITCH_BYTES) > room;
        let reported = recorded.lost.unwrap_or(0);
        recorded.lost = match self.lost() {
            Some(lost) => Some(lost.max(reported)),
            None if full => None,
            None => Some(reported),
        };
        recorded
    }

    /// Bytes that the kernel has written. Nothing is ever taken out, so that the ring does not wrap.
    fn written(&self) -> usize {
        // SAFETY: the head is an aligned word of the first page, which is mapped for as long as `self`
        // and written by the kernel only.
        let head = unsafe { AtomicU64::from_ptr(self.map.add(DATA_HEAD).cast()) };
        usize::try_from(head.load(Ordering::Acquire)).unwrap_or(usize::MAX)
    }

    /// The first `length` bytes of the ring, which are no more than it has.
    fn copy(&self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: the ring begins behind the first page and is mapped for as long as `self`; the kernel
        // writes it no longer, since the event is disabled; `bytes` has room for what is copied.
        unsafe {
            ptr::copy_nonoverlapping(self.map.add(page_bytes()), bytes.as_mut_ptr(), length);
        }
        bytes
    }

    /// Records that found no room, as the kernel counts them.
    fn lost(&self) -> Option<u64> {
        if !self.counts_lost {
            return None;
        }
        let mut numbers = [0; 16];
        let event = self.event.try_clone().ok()?;
        File::from(event).read_exact(&mut numbers).ok()?;
        numbers.get(8..).and_then(|lost| lost.try_into().ok()).map(u64::from_ne_bytes)
    }
}

impl Drop for SwitchRecords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nothing points into it any more.
        unsafe { libc::munmap(self.map.cast(), self.bytes) };
    }
}

fn control(event: &OwnedFd, command: libc::c_ulong) -> io::Result<()> {
    // SAFETY: takes no memory.
    crate::checked(unsafe { libc::ioctl(event.as_raw_fd(), command as _, 0) }).map(|_| ())
}

fn open_event(tid: u32, read_format: u64) -> io::Result<OwnedFd> {
    let attributes = PerfAttributes {
        kind: SOFTWARE,
        config: DUMMY,
        sample_type: SAMPLE,
        read_format,
        flags: FLAGS,
        clockid: libc::CLOCK_MONOTONIC_RAW,
        ..PerfAttributes::default()
    };
    open_on(tid, attributes)
}

/// Opens an event on thread `tid`, wherever it runs.
pub(crate) fn open_on(tid: u32, mut attributes: PerfAttributes) -> io::Result<OwnedFd> {
    attributes.size = size_of::<PerfAttributes>() as u32;
    // SAFETY: the kernel reads the live local, whose size stands in it.
    let event = crate::checked_long(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            tid as libc::pid_t,
            -1,
            -1,
            CLOSE_ON_EXEC,
        )
    })?;
    // SAFETY: the kernel has just opened it, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(event as libc::c_int) })
}

fn map(event: &OwnedFd, bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
    let map = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            event.as_raw_fd(),
            0,
        )
    };
    if map == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(map.cast()) }
}

fn page_bytes() -> usize {
    // SAFETY: takes no memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Why the kernel refused the event.
pub(crate) fn refused(error: &io::Error) -> PerfUnavailable {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => match paranoid() {
            Some(level) if level > 2 => PerfUnavailable::Paranoid(level),
            _ => PerfUnavailable::Forbidden,
        },
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => PerfUnavailable::Missing,
        errno => PerfUnavailable::Other(errno.unwrap_or(0)),
    }
}

/// The level of `kernel.perf_event_paranoid`: up to 2 users may record their own threads outside the kernel. Debian and
/// Ubuntu add levels above, which refuse users everything.
fn paranoid() -> Option<i32> {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

/// The records in `bytes`, up to the first that cannot be one.
fn parse(bytes: &[u8]) -> SwitchRecordSet {
    let mut found = SwitchRecordSet { lost: Some(0), ..SwitchRecordSet::default() };
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((record, others)) = record(rest) else {
            found.damaged = true;
            break;
        };
        rest = others;
        match (word(record, 0), record.get(8..)) {
            (Some(SWITCH), Some(body)) => match switch(record, body) {
                Some(switch) => found.switches.push(switch),
                None => found.damaged = true,
            },
            (Some(LOST), Some(body)) => {
                let lost = long(body, 8).unwrap_or(0);
                found.lost = found.lost.map(|before| before.saturating_add(lost));
            }
            _ => {}
        }
    }
    found
}

/// The first record and what follows it.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = half(bytes, 6).map(usize::from).filter(|size| *size >= 8)?;
    bytes.split_at_checked(size)
}

fn switch(record: &[u8], body: &[u8]) -> Option<Switch> {
    let way = way(half(record, 4)?);
    Some(Switch { raw_ns: long(body, 8)?, tid: word(body, 4)?, cpu: word(body, 16)?, way })
}

fn way(misc: u16) -> SwitchDirection {
    match (misc & OUT != 0, misc & PREEMPTED != 0) {
        (false, _) => SwitchDirection::In,
        (true, false) => SwitchDirection::Waited,
        (true, true) => SwitchDirection::Preempted,
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ClockId, now_ns};

    /// A thread that sleeps leaves the CPU waiting and takes it again, both between two readings of
    /// the clock.
    #[test]
    fn sleeps_are_recorded_on_the_raw_clock() {
        let tid = crate::thread::id();
        let records = match SwitchRecords::open(tid, 1 << 16) {
            Ok(records) => records,
            Err(PerfUnavailable::Other(errno)) => panic!("errno {errno}"),
            Err(reason) => return eprintln!("not allowed here: {reason}"),
        };
        assert!(records.capacity() >= 1_000);
        std::thread::sleep(std::time::Duration::from_millis(1));
        records.enable().unwrap();
        let before = now_ns(ClockId::MonotonicRaw);
        // A sleep may be over before its thread has left the CPU: as many as the kernel counts.
        let counted = crate::thread::counters().voluntary;
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let counted = (crate::thread::counters().voluntary - counted) as usize;
        let after = now_ns(ClockId::MonotonicRaw);
        let found = records.finish();
        assert_eq!((found.lost, found.damaged), (Some(0), false));
        let of = |way| found.switches.iter().filter(|switch| switch.way == way).count();
        assert!(counted >= 1 && of(SwitchDirection::Waited) >= counted, "{counted}, {found:?}");
        assert!(of(SwitchDirection::In) >= counted, "{counted}, {found:?}");
        assert!(found.switches.iter().all(|s| s.tid == tid));
        assert!(found.switches.iter().all(|s| (before..=after).contains(&s.raw_ns)));
        assert!(found.switches.is_sorted_by_key(|switch| switch.raw_ns));
    }

    /// Beyond its room the ring keeps the oldest and the others are counted, or said to be missing.
    #[test]
    fn what_finds_no_room_is_counted() {
        let Ok(records) = SwitchRecords::open(crate::thread::id(), 1) else { return };
        let room = records.capacity();
        records.enable().unwrap();
        let nap = libc::timespec { tv_sec: 0, tv_nsec: 1_000 };
        for _ in 0..room {
            // SAFETY: reads a live local; asks for no remainder.
            unsafe { libc::nanosleep(&raw const nap, ptr::null_mut()) };
        }
        let found = records.finish();
        assert!(found.switches.len() <= room);
        assert!(found.lost != Some(0), "{} of {room}", found.switches.len());
    }

    fn bytes(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
        let size = 8 + 8 * body.len() as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn records_of_every_kind() {
        let ours = 9 << 32 | 5;
        let mut ring = bytes(SWITCH, OUT | PREEMPTED, &[ours, 1_000, 3]);
        ring.extend(bytes(99, 0, &[1]));
        ring.extend(bytes(LOST, 0, &[1, 7, ours, 1_500, 3]));
        ring.extend(bytes(SWITCH, OUT, &[ours, 2_000, 2]));
        ring.extend(bytes(SWITCH, 0, &[ours, 3_000, 1]));
        let switch = |raw_ns, cpu, way| Switch { raw_ns, tid: 9, cpu, way };
        let switches = vec![
            switch(1_000, 3, SwitchDirection::Preempted),
            switch(2_000, 2, SwitchDirection::Waited),
            switch(3_000, 1, SwitchDirection::In),
        ];
        assert_eq!(parse(&ring), SwitchRecordSet { switches, lost: Some(7), damaged: false });
    }

    /// No bytes make it panic or go on for ever.
    #[test]
    fn damaged_rings_are_read_as_far_as_they_are_sound() {
        let mut ring = bytes(SWITCH, 0, &[5, 1_000, 3]);
        ring.extend(bytes(SWITCH, 0, &[5, 2_000, 3]));
        for length in 0..ring.len() {
            let found = parse(&ring[..length]);
            assert_eq!(found.switches.len(), length / SWITCH_BYTES);
            assert_eq!(found.damaged, length % SWITCH_BYTES != 0);
        }
        for place in 0..ring.len() {
            for value in [0, 1, 7, 0x80, 0xff] {
                let mut damaged = ring.clone();
                damaged[place] = value;
                assert!(parse(&damaged).switches.len() <= ring.len() / 8);
            }
        }
    }

    #[test]
    fn a_refusal_has_its_reason() {
        let of = |errno| refused(&io::Error::from_raw_os_error(errno));
        assert!(matches!(
            of(libc::EACCES),
            PerfUnavailable::Paranoid(3..) | PerfUnavailable::Forbidden
        ));
        assert_eq!(of(libc::ENOSYS), PerfUnavailable::Missing);
        assert_eq!(of(libc::EBUSY), PerfUnavailable::Other(libc::EBUSY));
        let absent = SwitchRecords::open(u32::MAX >> 1, 1).unwrap_err();
        let other = PerfUnavailable::Other(libc::ESRCH);
        assert!(absent == other || !matches!(absent, PerfUnavailable::Other(_)), "{absent}");
    }
}
