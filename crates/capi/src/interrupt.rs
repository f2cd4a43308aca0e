//! Interrupts of sleeps: a word in the caller's memory.
//!
//! Must not: keep a reference to it except where the header says so, or allocate where a signal handler may be.

use hourglass_timer::sleep::Interrupt;

use crate::error::{
    CapiError, HG_INVALID, HG_NULL, HG_OK, HG_PANIC, answer, guard, hg_error, hg_status,
};

/// Interrupts sleeps. Lies in the caller's memory, all zero at first.
#[repr(C, align(64))]
pub struct hg_interrupt {
    /// Private to the library.
    pub word: [u32; 16],
}

const _: () = assert!(size_of::<hg_interrupt>() == size_of::<Interrupt>());
const _: () = assert!(align_of::<hg_interrupt>() == align_of::<Interrupt>());

/// The caller's word.
///
/// # Errors
/// `HG_NULL`; `HG_INVALID` if it is not aligned.
///
/// # Safety
/// `word` is NULL or the address of an `hg_interrupt`, all zero or used only by this library, that stays
/// there while the reference is used.
unsafe fn find_interrupt(word: *const hg_interrupt) -> Result<&'static Interrupt, hg_status> {
    if word.is_null() {
        return Err(HG_NULL);
    }
    if !word.is_aligned() {
        return Err(HG_INVALID);
    }
    // SAFETY: aligned and not NULL; both are of 64 bytes that are valid whatever they hold, are
    // changed by atomics only, and the caller promises the rest.
    Ok(unsafe { &*word.cast::<Interrupt>() })
}

/// Like [`find_interrupt`], with a text in the error; not for signal handlers.
///
/// # Errors
/// As [`find_interrupt`].
///
/// # Safety
/// As [`find_interrupt`].
pub(crate) unsafe fn interrupt_at(
    word: *const hg_interrupt,
) -> Result<&'static Interrupt, CapiError> {
    // SAFETY: as the caller promises.
    unsafe { find_interrupt(word) }.map_err(|kind| match kind {
        HG_NULL => CapiError::null("interrupt"),
        _ => CapiError::invalid(
            "the interrupt does not lie at a multiple of 64 bytes: let the compiler place it, or \
             allocate it with aligned_alloc(64, ...)",
        ),
    })
}

/// Never set: for sleeps that nothing interrupts.
pub(crate) static NEVER: Interrupt = Interrupt::new();

/// Ends the sleeps that use it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_set(interrupt: *mut hg_interrupt) -> hg_status {
    answer(HG_PANIC, || {
        // SAFETY: as the header says; nothing keeps the reference.
        match unsafe { find_interrupt(interrupt) } {
            Ok(interrupt) => {
                interrupt.interrupt();
                HG_OK
            }
            Err(kind) => kind,
        }
    })
}

/// Clears the interrupt. Returns whether it was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_clear(interrupt: *mut hg_interrupt) -> bool {
    // SAFETY: as the header says; nothing keeps the reference.
    answer(false, || unsafe { find_interrupt(interrupt) }.is_ok_and(Interrupt::clear))
}

/// Whether it is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_is_set(interrupt: *const hg_interrupt) -> bool {
    // SAFETY: as the header says; nothing keeps the reference.
    answer(false, || unsafe { find_interrupt(interrupt) }.is_ok_and(Interrupt::is_set))
}

/// Makes a signal set it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_on_signal(
    interrupt: *mut hg_interrupt,
    signal: i32,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says; it stays until the process ends.
        let interrupt = unsafe { interrupt_at(interrupt) }?;
        interrupt.interrupt_on_signal(signal).map_err(|found| {
            let text = format!("signal {signal} cannot interrupt sleeps: {found}");
            CapiError { text: text.into(), ..CapiError::os(&found) }
        })
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
