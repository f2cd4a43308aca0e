//! The bell by which a measured thread, or a signal, calls the thread that waits for the end of the run.
//!
//! Owns: one word of the process. Must not: say what is wrong; whoever hears it looks for himself.
//! Two runs of one process at the same time hear each other's bell, and find nothing.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_sys::inherited::is_ignored;
use hourglass_sys::{futex, signal};

/// The lowest bit belongs to the signal, the others count.
static BELL: AtomicU32 = AtomicU32::new(0);

/// What a signal sets (see [`signal::latch`]).
const ASKED: u32 = 1;

/// One more stroke.
const STROKE: u32 = 2;

/// Calls whoever waits. One system call; to be made when the measuring is over.
pub(crate) fn ring() {
    BELL.fetch_add(STROKE, Ordering::AcqRel);
    futex::wake(&BELL, u32::MAX);
}

/// What was heard so far; to be read before looking whether there is anything to do.
pub(crate) fn heard() -> u32 {
    BELL.load(Ordering::Acquire)
}

/// Waits until the bell rings again, a signal comes, or `CLOCK_MONOTONIC` reaches `until_ns`.
pub(crate) fn wait(heard: u32, until_ns: u64) {
    // Whatever ended it, the caller looks at everything again.
    let _ = futex::wait_until(&BELL, heard, until_ns);
}

/// From here on SIGUSR1 rings the bell, unless the process was told to ignore it.
///
/// # Errors
/// What the kernel answers; does not happen for this signal.
pub(crate) fn heed_questions() -> io::Result<()> {
    if is_ignored(signal::SIGUSR1) {
        return Ok(());
    }
    signal::latch(signal::SIGUSR1, &BELL)
}

/// From here on a signal that asks for the end rings the bell, whichever thread it is given to.
pub(crate) fn heed_stop() {
    signal::ring_on_stop(&BELL);
}

/// Whether somebody asked how the run goes, since this was asked last.
pub(crate) fn take_question() -> bool {
    BELL.fetch_and(!ASKED, Ordering::AcqRel) & ASKED != 0
}
