//! Restartable sequences (rseq), turned round: a critical section that is never run shows whether the kernel took the
//! CPU from the thread.
//!
//! When a thread comes back to user mode after it was descheduled, migrated, or given a signal, the kernel looks at the
//! critical section named in the thread's rseq area. If the thread is not inside, it clears the name. So if a thread
//! writes a name there and finds it gone, something of the kind happened; after a plain interrupt or system call it
//! stays, as a rule.
//!
//! From Linux 6.19 on the kernel looks only if an interrupt or an exception took the thread out of user mode: a switch
//! inside a system call, the thread's own wait or a preemption there, leaves the name ([`ClearRule`]). The kernel's
//! documentation states this for areas of more than 32 bytes (ABI version 2, glibc 2.41); Debian's 7.3 does it with
//! areas of 32 bytes too, so that only a test tells.
//!
//! Owns: finding the area that the C library registered, registering one where it did not, the
//! descriptor, and the test whether all of this works here. Must not: say why the thread lost its CPU.

mod self_test;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ptr;

use thiserror::Error;

pub use self_test::{self_test, self_test_of_every_switch};

/// The word before an abort address, so that no other address can be one (`RSEQ_SIG` of the C library): an undefined
/// instruction.
#[cfg(target_arch = "x86_64")]
const SIGNATURE: u32 = 0x5305_3053;
/// The word before an abort address on aarch64: a breakpoint.
#[cfg(target_arch = "aarch64")]
const SIGNATURE: u32 = 0xd428_bc00;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SIGNATURE: u32 = 0;

/// Whether this module knows the processor.
const KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// `struct rseq`, as every kernel takes it: 32 bytes.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: u32,
    cpu_id: u32,
    /// Address of the critical section's descriptor, or 0.
    rseq_cs: u64,
    flags: u32,
    rest: [u32; 2],
    /// `slice_ctrl`: whether an extension of the time slice is asked for, and whether one was granted, a
    /// byte each. Padding before Linux 7.0.
    slice: [u8; 4],
}

const _: () = assert!(size_of::<Area>() == AREA_BYTES);
const AREA_BYTES: usize = 32;

/// `RSEQ_CPU_ID_UNINITIALIZED`.
const NO_CPU: u32 = u32::MAX;

/// `RSEQ_FLAG_UNREGISTER`.
const UNREGISTER: libc::c_int = 1;

/// Where the critical section would be if it were code. It is data, so that no thread is ever inside.
#[repr(C, align(32))]
struct DummySection {
    range: [u8; RANGE_BYTES],
    padding: [u8; 12],
    /// Read by the kernel before it believes the abort address.
    signature: u32,
    abort: u8,
}

const RANGE_BYTES: usize = 16;

static NOWHERE: DummySection =
    DummySection { range: [0; RANGE_BYTES], padding: [0; 12], signature: SIGNATURE, abort: 0 };

/// `struct rseq_cs`.
#[repr(C, align(32))]
struct Descriptor {
    version: u32,
    flags: u32,
    start: &'static [u8; RANGE_BYTES],
    post_commit_offset: u64,
    abort: &'static u8,
}

impl Descriptor {
    const NOWHERE: Descriptor = Descriptor {
        version: 0,
        flags: 0,
        start: &NOWHERE.range,
        post_commit_offset: RANGE_BYTES as u64,
        abort: &NOWHERE.abort,
    };
}

/// One for each user, so that two in one thread see each other: what one armed is [`SectionState::Foreign`] to the other.
static DESCRIPTOR: Descriptor = Descriptor::NOWHERE;
static DESCRIPTOR_OF_SPANS: Descriptor = Descriptor::NOWHERE;

/// Why there is no critical section to look at.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RseqUnusable {
    /// A processor that is not known here.
    #[error("restartable sequences are not known for this processor")]
    Processor,
    /// The kernel refused to register an area, with this errno: ENOSYS where it has no
    /// restartable sequences, or a filter forbids them.
    #[error("the kernel refuses restartable sequences: {}", io::Error::from_raw_os_error(*.0))]
    Refused(i32),
    /// Cleared by a plain system call: it would tell nothing.
    #[error("this kernel clears a critical section at every system call")]
    AlwaysCleared,
    /// Kept while the thread slept, and no preemption was seen to clear it.
    #[error(
        "this kernel was not seen to clear a critical section, neither when the thread slept nor when it was preempted"
    )]
    NeverCleared,
    /// [`ClearRule::WhereInterrupted`], where the thread may be switched inside system calls.
    #[error(
        "this kernel keeps a critical section when it switches a thread inside a system call, and the measured loop may make some"
    )]
    KeptInSystemCalls,
}

/// After which context switches a critical section is gone. A signal clears it under both rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearRule {
    /// After each (before Linux 6.19). Also after some interrupts without one.
    EverySwitch,
    /// After those for which the thread was taken out of user mode (Linux 6.19 and later). Kept, it
    /// tells nothing of switches inside system calls.
    WhereInterrupted,
}

/// State of the critical section since it was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionState {
    Kept,
    /// The kernel cleared it; also before the first [`Section::arm`].
    Cleared,
    /// Other code in this thread named another one in its place: the state of ours is not known.
    Foreign,
}

/// The calling thread's critical section. Dropped, it is disarmed; it belongs to its thread.
pub struct Section {
    area: *mut Area,
    /// Whether the area is ours, and not the C library's.
    own: bool,
    /// The descriptor that it names.
    descriptor: &'static Descriptor,
    _of_this_thread: PhantomData<*const ()>,
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Section {
    /// Finds the calling thread's area, or registers one. Allocates; arms nothing.
    ///
    /// # Errors
    /// See [`RseqUnusable`].
    pub fn open() -> Result<Section, RseqUnusable> {
        Section::naming(&DESCRIPTOR)
    }

    /// A section for spans of a program, beside one that a measured loop of the thread has: what one of the two arms is
    /// [`SectionState::Foreign`] to the other.
    ///
    /// # Errors
    /// See [`RseqUnusable`]; refused where the other one had to register an area.
    pub fn open_for_spans() -> Result<Section, RseqUnusable> {
        Section::naming(&DESCRIPTOR_OF_SPANS)
    }

    fn naming(descriptor: &'static Descriptor) -> Result<Section, RseqUnusable> {
        if !KNOWN {
            return Err(RseqUnusable::Processor);
        }
        match registered() {
            Some(area) => {
                Ok(Section { area, own: false, descriptor, _of_this_thread: PhantomData })
            }
            None => Section::register(descriptor),
        }
    }

    /// Registers an area of our own.
    fn register(descriptor: &'static Descriptor) -> Result<Section, RseqUnusable> {
        let area = Area {
            cpu_id_start: 0,
            cpu_id: NO_CPU,
            rseq_cs: 0,
            flags: 0,
            rest: [0; 2],
            slice: [0; 4],
        };
        let area = Box::into_raw(Box::new(area));
        if let Err(error) = rseq(area, 0) {
            // SAFETY: the kernel refused the area, so that the box is ours alone again.
            drop(unsafe { Box::from_raw(area) });
            return Err(RseqUnusable::Refused(error.raw_os_error().unwrap_or(0)));
        }
        Ok(Section { area, own: true, descriptor, _of_this_thread: PhantomData })
    }

    /// Names the critical section, from now on.
    #[inline]
    pub fn arm(&self) {
        self.write(self.name());
    }

    #[inline(always)]
    fn name(&self) -> u64 {
        ptr::from_ref(self.descriptor).addr() as u64
    }

    /// The CPU on which the thread runs. Some nanoseconds; no system call.
    #[inline]
    #[must_use]
    pub fn cpu(&self) -> u32 {
        // SAFETY: as in `look`.
        unsafe { (&raw const (*self.area).cpu_id).read_volatile() }
    }

    /// Where the section is named, and its name while it is kept: for code that looks without calling. Both
    /// hold for as long as `self`, in its thread.
    #[must_use]
    pub fn place(&self) -> (*const u64, u64) {
        // SAFETY: takes the address of a field of a live area.
        (unsafe { &raw const (*self.area).rseq_cs }, self.name())
    }

    /// Its state. Some nanoseconds; no system call.
    #[inline]
    #[must_use]
    pub fn state(&self) -> SectionState {
        // SAFETY: the area is registered for this thread and lives at least as long as `self`; only
        // the kernel writes it meanwhile, between two instructions of this thread.
        let named = unsafe { (&raw const (*self.area).rseq_cs).read_volatile() };
        match named {
            0 => SectionState::Cleared,
            ours if ours == self.name() => SectionState::Kept,
            _ => SectionState::Foreign,
        }
    }

    /// Whether it is still there. The least that can be asked.
    #[inline(always)]
    #[must_use]
    pub fn is_kept(&self) -> bool {
        // SAFETY: as in `look`.
        unsafe { (&raw const (*self.area).rseq_cs).read_volatile() == self.name() }
    }

    #[inline]
    fn write(&self, named: u64) {
        // SAFETY: as in `look`; the name is 0 or the address of a descriptor that is never freed and
        // has the signature where the kernel looks for it. One aligned store, so that the kernel
        // never sees half of it.
        unsafe { (&raw mut (*self.area).rseq_cs).write_volatile(named) };
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        // A name that other code wrote is left alone.
        if self.state() == SectionState::Kept {
            self.write(0);
        }
        if self.own && rseq(self.area, UNREGISTER).is_ok() {
            // SAFETY: it came from a box, and the kernel has just let go of it. If it had not, the
            // area would have to stay for as long as the thread.
            drop(unsafe { Box::from_raw(self.area) });
        }
    }
}

/// Registers or unregisters an area for the calling thread.
fn rseq(area: *mut Area, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the area is writable, aligned and of the length given, and the callers keep it for as
    // long as it is registered.
    let answer = unsafe { libc::syscall(libc::SYS_rseq, area, AREA_BYTES, flags, SIGNATURE) };
    crate::checked_long(answer).map(|_| ())
}

/// Fields for the kernel and the thread in the area that the C library registered, besides the critical section
/// ([`crate::time_slice`]). Of the calling thread, and not to be sent to another.
#[derive(Clone, Copy)]
pub(crate) struct LibraryArea(*mut Area);

/// The calling thread's, if the C library registered one.
#[inline]
pub(crate) fn library_area() -> Option<LibraryArea> {
    registered().map(LibraryArea)
}

impl LibraryArea {
    /// The flags that the kernel set when the area was registered.
    #[inline]
    pub(crate) fn flags(self) -> u32 {
        // SAFETY: the C library keeps the area for as long as its thread, which is the calling one.
        unsafe { (&raw const (*self.0).flags).read_volatile() }
    }

    /// Asks for a longer time slice, or no more.
    #[inline]
    pub(crate) fn set_request(self, asks: bool) {
        // SAFETY: as in `flags`; user mode is to write this byte, and the kernel writes it only between two
        // instructions of this thread.
        unsafe { (&raw mut (*self.0).slice[0]).write_volatile(u8::from(asks)) };
    }

    /// Whether a longer slice is asked for.
    pub(crate) fn is_requested(self) -> bool {
        // SAFETY: as in `flags`.
        unsafe { (&raw const (*self.0).slice[0]).read_volatile() != 0 }
    }

    /// Whether the slice is being extended.
    #[inline]
    pub(crate) fn is_granted(self) -> bool {
        // SAFETY: as in `flags`.
        unsafe { (&raw const (*self.0).slice[1]).read_volatile() != 0 }
    }

    #[cfg(test)]
    pub(crate) fn slice_control(self) -> u32 {
        // SAFETY: as in `flags`.
        u32::from_le_bytes(unsafe { (&raw const (*self.0).slice).read_volatile() })
    }
}

/// The area that the C library registered for the calling thread.
#[inline]
fn registered() -> Option<*mut Area> {
    let offset = library_offset();
    if offset.is_null() {
        return None;
    }
    // SAFETY: a C library that has the symbol keeps there a constant of this type.
    let offset = unsafe { *offset };
    let area = thread_pointer().wrapping_offset(offset).cast::<Area>();
    // SAFETY: the C library keeps an area at this offset for every thread, registered or not.
    let cpu = unsafe { (&raw const (*area).cpu_id).read_volatile() };
    // Negative as a signed number until it is registered, or if that failed.
    i32::try_from(cpu).is_ok().then_some(area)
}

/// The address of a constant of the C library; null where it has none of that name, as musl.
#[cfg(target_arch = "x86_64")]
macro_rules! library_constant {
    ($name:literal) => {{
        let address: *const _;
        // SAFETY: only loads an address from the global offset table; being weak, the linker puts 0 there
        // where no library has the symbol.
        unsafe {
            std::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        address
    }};
}

/// The address of a constant of the C library; null where it has none of that name, as musl.
#[cfg(target_arch = "aarch64")]
macro_rules! library_constant {
    ($name:literal) => {{
        let address: *const _;
        // SAFETY: only loads an address from the global offset table; being weak, the linker puts 0 there
        // where no library has the symbol.
        unsafe {
            std::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        address
    }};
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! library_constant {
    ($name:literal) => {
        ptr::null()
    };
}

/// Where the C library says at which offset from the thread pointer it keeps the area (glibc 2.35).
fn library_offset() -> *const isize {
    library_constant!("__rseq_offset")
}

/// The length of the area that the C library registered for the calling thread, bytes: more than 32 is version 2
/// of the ABI. `None` where it registered none.
#[must_use]
pub fn library_bytes() -> Option<usize> {
    registered()?;
    let size: *const u32 = library_constant!("__rseq_size");
    if size.is_null() {
        return None;
    }
    // SAFETY: a C library that has the symbol keeps there a constant of this type.
    let size = unsafe { *size };
    // The size that glibc and the kernel know, which was less once, while the area was as long.
    Some(AREA_BYTES.max(size as usize))
}

#[cfg(target_arch = "x86_64")]
fn thread_pointer() -> *mut u8 {
    let pointer: *mut u8;
    // SAFETY: the first word of the thread's block holds its own address on every x86-64 Linux.
    unsafe {
        std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    }
    pointer
}

#[cfg(target_arch = "aarch64")]
fn thread_pointer() -> *mut u8 {
    let pointer: *mut u8;
    // SAFETY: reads a register that user mode may read.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn thread_pointer() -> *mut u8 {
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::self_test::{of, sleep, system_call};
    use super::*;
    use crate::thread::counters;

    /// Runs `check` on a thread of its own with a section, unless the machine has none; then the
    /// reason must be the kernel's.
    fn with_section(open: fn() -> Result<Section, RseqUnusable>, check: fn(&Section)) {
        let on_its_own = move || match open() {
            Ok(section) => check(&section),
            Err(reason) => assert!(matches!(reason, RseqUnusable::Refused(errno) if errno > 0)),
        };
        std::thread::spawn(on_its_own).join().unwrap();
    }

    fn kept_and_cleared(section: &Section) {
        let kept = (0..100).any(|_| {
            section.arm();
            system_call();
            section.state() == SectionState::Kept
        });
        assert!(kept);
        let rule = of(section).unwrap();
        // A preemption behind the last arming would clear it under both rules.
        let after_a_sleep = (0..100).map(|_| {
            let before = counters().voluntary;
            section.arm();
            while counters().voluntary == before {
                sleep(100_000);
            }
            section.state()
        });
        let expected = match rule {
            ClearRule::EverySwitch => SectionState::Cleared,
            ClearRule::WhereInterrupted => SectionState::Kept,
        };
        assert!(after_a_sleep.into_iter().any(|state| state == expected), "{rule:?}");
    }

    /// The mechanism as it was measured on such machines: a system call keeps the section, a sleep
    /// clears it, unless only the switches do that to which an interrupt led.
    #[test]
    fn a_system_call_keeps_it_and_a_sleep_clears_it() {
        with_section(Section::open, kept_and_cleared);
        match (self_test(), self_test_of_every_switch()) {
            (Ok(ClearRule::WhereInterrupted), strict) => {
                assert_eq!(strict, Err(RseqUnusable::KeptInSystemCalls));
            }
            (tested, strict) => {
                assert_eq!(tested, strict);
                assert!(matches!(tested, Ok(_) | Err(RseqUnusable::Refused(_))), "{tested:?}");
            }
        }
    }

    /// Under both rules. Not each time that is counted, which a system call around it may be, too.
    #[test]
    fn a_preemption_clears_it() {
        with_section(Section::open, |section| {
            let preempted = self_test::preemptions(section);
            assert!(preempted.contains(&SectionState::Cleared), "{preempted:?}");
        });
    }

    /// Two users in one thread: neither takes the other's section for its own.
    #[test]
    fn two_users_see_each_other() {
        with_section(Section::open, |of_a_loop| {
            let Ok(of_spans) = Section::open_for_spans() else { return };
            let seen = (0..100).any(|_| {
                of_spans.arm();
                let before = (of_spans.state(), of_a_loop.state());
                of_a_loop.arm();
                let (place, name) = of_spans.place();
                // SAFETY: the section lives, and this is its thread.
                let is_named = unsafe { place.read_volatile() } == name;
                before == (SectionState::Kept, SectionState::Foreign)
                    && (of_spans.state(), of_a_loop.state())
                        == (SectionState::Foreign, SectionState::Kept)
                    && !is_named
            });
            assert!(seen);
            let stayed = |_| {
                let cpu = of_spans.cpu();
                crate::clock::current_cpu() == cpu && of_spans.cpu() == cpu
            };
            assert!((0..100).any(stayed));
        });
    }

    #[test]
    fn another_name_is_foreign_and_left_alone() {
        with_section(Section::open, |section| {
            static OTHER: Descriptor = Descriptor {
                version: 0,
                flags: 0,
                start: &NOWHERE.range,
                post_commit_offset: RANGE_BYTES as u64,
                abort: &NOWHERE.abort,
            };
            let seen = (0..100).any(|_| {
                section.write((&raw const OTHER).addr() as u64);
                section.state() == SectionState::Foreign
            });
            assert!(seen);
        });
    }

    /// Dropped, the name is gone: the memory may be a library's that is unloaded.
    #[test]
    fn a_dropped_section_is_disarmed() {
        with_section(Section::open, |first| {
            if first.own {
                return;
            }
            for _ in 0..100 {
                let again = Section::open().unwrap();
                again.arm();
                drop(again);
                assert_eq!(first.state(), SectionState::Cleared);
            }
        });
    }

    /// Without a registration by the C library, one of our own serves: the library's is removed first.
    #[test]
    fn without_the_c_library_an_area_of_our_own_serves() {
        let open = || {
            if let Some(area) = registered() {
                let answer =
                    // SAFETY: takes away what the C library registered, of that length.
                    unsafe { libc::syscall(libc::SYS_rseq, area, library_bytes().unwrap(), UNREGISTER, SIGNATURE) };
                assert_eq!(answer, 0, "{}", io::Error::last_os_error());
                assert!(registered().is_none());
            }
            let section = Section::open()?;
            assert!(section.own);
            Ok(section)
        };
        with_section(open, kept_and_cleared);
    }
}
