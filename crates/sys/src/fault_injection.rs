//! A TSC and a CPUID that lie, for tests of code that must notice.
//!
//! The processor can be set to raise SIGSEGV where a thread reads the TSC (`prctl(PR_SET_TSC)`) or asks CPUID
//! (`arch_prctl(ARCH_SET_CPUID)`); a handler then puts a made-up answer in its place. No privilege is needed, and it
//! works in virtual machines. A read takes microseconds. The C library's clocks, which read the TSC too, get the true
//! values.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use crate::counter::{TscMode, set_tsc_mode};
use crate::{checked, checked_long};

/// The false answers. They are one set for the whole process; each thread has its own state of whether it gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultInjection {
    /// How much faster the TSC seems, parts per million.
    pub rate_ppm: i64,
    /// Distance of reads that are off by [`FaultInjection::jump_ticks`], in reads; 0 for never.
    pub jump_every: u64,
    /// How far that read is ahead, in ticks.
    pub jump_ticks: i64,
    /// How far every read is ahead, in ticks.
    pub ahead_ticks: i64,
    /// The value of every read, whatever else is set: a counter that stands still.
    pub frozen: Option<u64>,
    /// How much longer every read takes, ns, the C library's too: a machine on which an emulated
    /// read is slow.
    pub delay_ns: u64,
}

static RATE_PPM: AtomicI64 = AtomicI64::new(0);
static JUMP_EVERY: AtomicU64 = AtomicU64::new(0);
static JUMP_TICKS: AtomicI64 = AtomicI64::new(0);
static AHEAD_TICKS: AtomicI64 = AtomicI64::new(0);
static IS_FROZEN: AtomicBool = AtomicBool::new(false);
static FROZEN_TICKS: AtomicU64 = AtomicU64::new(0);
static DELAY_NS: AtomicU64 = AtomicU64::new(0);
static READS: AtomicU64 = AtomicU64::new(0);
/// The count at which the lies began, so that a wrong rate begins at the right value.
static BEGAN: AtomicU64 = AtomicU64::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Where the kernel's own code in this process begins; zero if it has none.
static VDSO: AtomicUsize = AtomicUsize::new(0);

/// Makes the TSC give false values to the calling thread and to threads that it starts from now on.
///
/// # Errors
/// What the kernel answers; EINVAL on one without `PR_SET_TSC`.
pub fn about_tsc(lies: FaultInjection) -> io::Result<()> {
    install()?;
    set_tsc_mode(TscMode::Enabled)?;
    make_up(lies);
    set_tsc_mode(TscMode::Fault)
}

/// Changes the false answers from now on; to be called by a thread that gets true ones. The rate begins anew, so
/// what an earlier one has added up to is gone at once.
pub fn make_up(lies: FaultInjection) {
    BEGAN.store(crate::counter::tsc(), Ordering::Relaxed);
    RATE_PPM.store(lies.rate_ppm, Ordering::Relaxed);
    JUMP_EVERY.store(lies.jump_every, Ordering::Relaxed);
    JUMP_TICKS.store(lies.jump_ticks, Ordering::Relaxed);
    AHEAD_TICKS.store(lies.ahead_ticks, Ordering::Relaxed);
    DELAY_NS.store(lies.delay_ns, Ordering::Relaxed);
    FROZEN_TICKS.store(lies.frozen.unwrap_or(0), Ordering::Relaxed);
    IS_FROZEN.store(lies.frozen.is_some(), Ordering::Release);
}

/// Makes CPUID deny to the calling thread, and to the threads that it starts from now on, that
/// the TSC is invariant.
///
/// # Errors
/// ENODEV where the processor cannot raise a signal at CPUID.
pub fn about_invariant_tsc() -> io::Result<()> {
    install()?;
    set_cpuid_enabled(false)
}

/// Gives the calling thread true values again.
///
/// # Errors
/// What the kernel answers.
pub fn end() -> io::Result<()> {
    set_tsc_mode(TscMode::Enabled)?;
    match set_cpuid_enabled(true) {
        // It could not lie in the first place.
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        ended => ended,
    }
}

fn set_cpuid_enabled(enabled: bool) -> io::Result<()> {
    const ARCH_SET_CPUID: libc::c_int = 0x1012;
    // SAFETY: this request takes its argument by value.
    checked_long(unsafe {
        libc::syscall(libc::SYS_arch_prctl, ARCH_SET_CPUID, libc::c_long::from(enabled))
    })
    .map(|_| ())
}

fn install() -> io::Result<()> {
    if INSTALLED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    // SAFETY: asks for a number of the auxiliary vector.
    VDSO.store(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize, Ordering::Relaxed);
    // SAFETY: an all-zero sigaction is a valid one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = answer as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, makes only system calls that
    // a handler may make, and hands every other fault to the default action.
    checked(unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()) })
        .map(|_| ())
}

/// The signal handler: recognises the instruction, answers, and goes on behind it.
extern "C" fn answer(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    /// The code of faults that are not about an address.
    const SI_KERNEL: libc::c_int = 0x80;
    // SAFETY: the kernel passes live structures of these types to a handler with SA_SIGINFO, and nothing else refers to
    // them while it runs.
    let (code, registers) = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        ((*info).si_code, &mut context.uc_mcontext.gregs)
    };
    let place = registers[libc::REG_RIP as usize] as usize;
    let instruction = if code == SI_KERNEL { instruction_at(place) } else { [0; 3] };
    let length = match instruction {
        [0x0f, 0x31, _] => answer_tsc(registers, place, false),
        [0x0f, 0x01, 0xf9] => answer_tsc(registers, place, true),
        [0x0f, 0xa2, _] => answer_cpuid(registers),
        _ => {
            // SAFETY: resets the signal; the instruction faults again and ends the process.
            unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
            0
        }
    };
    registers[libc::REG_RIP as usize] += length;
}

type Registers = [libc::greg_t; 23];

/// The first bytes of the instruction that was about to run.
fn instruction_at(place: usize) -> [u8; 3] {
    // SAFETY: the processor has just fetched a faulting instruction of two or three bytes there,
    // and one that is followed by another in every function that returns.
    unsafe { std::ptr::with_exposed_provenance::<[u8; 3]>(place).read_unaligned() }
}

fn answer_tsc(registers: &mut Registers, place: usize, with_cpu: bool) -> libc::greg_t {
    /// The kernel's code in a process takes no more than this, bytes.
    const VDSO_LENGTH: usize = 0x4000;
    // Neither call fails where the first one, outside the handler, did not.
    let _ = set_tsc_mode(TscMode::Enabled);
    wait(DELAY_NS.load(Ordering::Relaxed));
    let truth = crate::counter::tsc();
    let cpu = if with_cpu { crate::counter::tsc_aux() } else { 0 };
    let _ = set_tsc_mode(TscMode::Fault);
    let is_kernels = place.wrapping_sub(VDSO.load(Ordering::Relaxed)) < VDSO_LENGTH;
    let ticks = if is_kernels { truth } else { lie(truth) };
    registers[libc::REG_RAX as usize] = i64::from(ticks as u32);
    registers[libc::REG_RDX as usize] = i64::from((ticks >> 32) as u32);
    if with_cpu {
        registers[libc::REG_RCX as usize] = i64::from(cpu);
        return 3;
    }
    2
}

/// Spins, as a handler may.
fn wait(ns: u64) {
    use crate::clock::{ClockId, now_ns};
    if ns > 0 {
        let end_ns = now_ns(ClockId::Monotonic).saturating_add(ns);
        while now_ns(ClockId::Monotonic) < end_ns {
            std::hint::spin_loop();
        }
    }
}

fn lie(truth: u64) -> u64 {
    const MILLION: i128 = 1_000_000;
    if IS_FROZEN.load(Ordering::Acquire) {
        return FROZEN_TICKS.load(Ordering::Relaxed);
    }
    let began = BEGAN.load(Ordering::Relaxed);
    let since = i128::from(truth.wrapping_sub(began));
    let extra = since * i128::from(RATE_PPM.load(Ordering::Relaxed)) / MILLION;
    let every = JUMP_EVERY.load(Ordering::Relaxed);
    let read = READS.fetch_add(1, Ordering::Relaxed);
    let jumps = read.checked_rem(every) == Some(0);
    let jump = if jumps { JUMP_TICKS.load(Ordering::Relaxed) } else { 0 };
    let ahead = AHEAD_TICKS.load(Ordering::Relaxed).wrapping_add(jump);
    truth.wrapping_add(extra as u64).wrapping_add(ahead as u64)
}

fn answer_cpuid(registers: &mut Registers) -> libc::greg_t {
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    let leaf = registers[libc::REG_RAX as usize] as u32;
    let subleaf = registers[libc::REG_RCX as usize] as u32;
    // Neither call fails where the first one, outside the handler, did not.
    let _ = set_cpuid_enabled(true);
    let mut found = crate::cpuid::ask(leaf, subleaf);
    let _ = set_cpuid_enabled(false);
    if leaf == POWER_MANAGEMENT {
        found.edx &= !INVARIANT_TSC;
    }
    registers[libc::REG_RAX as usize] = i64::from(found.eax);
    registers[libc::REG_RBX as usize] = i64::from(found.ebx);
    registers[libc::REG_RCX as usize] = i64::from(found.ecx);
    registers[libc::REG_RDX as usize] = i64::from(found.edx);
    2
}
