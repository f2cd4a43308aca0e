//! How a measured thread, or a signal, wakes the thread that waits for the end of the run.
//!
//! Owns: one word of the process. Must not: say what is wrong; a woken thread looks for itself.
//! Two runs of one process at the same time wake each other's, and find nothing.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_sys::inherited_signals::is_ignored;
use hourglass_sys::{futex, signal};

/// The lowest bit belongs to the signal, the others count.
static WORD: AtomicU32 = AtomicU32::new(0);

/// What a signal sets (see [`signal::latch`]).
const ASKED: u32 = 1;
const CALL: u32 = 2;

/// Wakes the waiting thread. One system call; to be made when the measuring is over.
pub(crate) fn notify() {
    WORD.fetch_add(CALL, Ordering::AcqRel);
    futex::wake(&WORD, u32::MAX);
}

/// The calls so far; to be read before looking whether there is anything to do.
pub(crate) fn seen() -> u32 {
    WORD.load(Ordering::Acquire)
}

/// Waits until the next call, a signal comes, or `CLOCK_MONOTONIC` reaches `until_ns`.
pub(crate) fn wait(seen: u32, until_ns: u64) {
    // Whatever ended it, the caller looks at everything again.
    let _ = futex::wait_until(&WORD, seen, until_ns);
}

/// From here on SIGUSR1 is a call, unless the process ignores it.
///
/// # Errors
/// What the kernel answers; does not happen for this signal.
pub(crate) fn heed_questions() -> io::Result<()> {
    if is_ignored(signal::SIGUSR1) {
        return Ok(());
    }
    signal::latch(signal::SIGUSR1, &WORD)
}

/// From here on a signal that asks for the end is a call, whichever thread it is given to.
pub(crate) fn heed_stop() {
    signal::notify_on_stop(&WORD);
}

/// Takes a request for the progress of the run; returns whether there was one.
pub(crate) fn take_question() -> bool {
    WORD.fetch_and(!ASKED, Ordering::AcqRel) & ASKED != 0
}
