//! Waits for the end of the target of a reservation, and passes signals on.

use std::io;
use std::os::fd::AsFd;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::eventfd::either_readable;
use hourglass_sys::guardian::TaskIdentity;
use hourglass_sys::pidfd::PidFd;
use hourglass_sys::signal_file::{self, ENDING, SignalFile};

/// When the waiting caller is asked to look at what was started, ns after the start.
const SETTLED_NS: u64 = 500_000_000;

/// Interval of looks at a target without a descriptor, ns.
const LOOK_NS: u64 = 50_000_000;

/// How often the reservation itself is looked at, ns.
const WATCH_NS: u64 = 100_000_000;

#[derive(Debug)]
pub(crate) struct Wait<'a> {
    /// A descriptor that becomes readable with the end; without, the target is looked at 20 times a second.
    pub(crate) file: Option<&'a PidFd>,
    pub(crate) life: TaskIdentity,
    /// Whether signals are passed on to it, as to a program that was started; else a signal that
    /// asks to end ends the waiting.
    pub(crate) pass_on: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// It has ended. A child is still to be waited for. With the last signal that asked for an end.
    Gone(Option<i32>),
    /// A signal asked for the end of the reservation.
    Asked(i32),
}

/// Waits. Signals that the kernel sent by itself (the keys of a terminal) are not passed on, since the started program
/// has had them too. `settled` is called once, half a second after the begin, if it has not ended by then; `watch` ten
/// times a second, and with what a signal asks to be changed.
pub(crate) fn until_end(
    wait: &Wait<'_>,
    signals: &SignalFile,
    settled: impl FnOnce(),
    mut watch: impl FnMut(Option<u64>),
) -> io::Result<WaitEnd> {
    let mut asked = None;
    let settles_ns = now_ns(ClockId::Monotonic).saturating_add(SETTLED_NS);
    let mut settled = Some(settled);
    let mut watched_ns = now_ns(ClockId::Monotonic);
    loop {
        while let Some(came) = signals.next()? {
            if came.signal == signal_file::change() {
                watch(Some(came.value));
                continue;
            }
            if ENDING.contains(&came.signal) {
                if !wait.pass_on {
                    return Ok(WaitEnd::Asked(came.signal));
                }
                asked = Some(came.signal);
            }
            if wait.pass_on
                && !came.by_kernel
                && let Some(file) = wait.file
            {
                // It may have ended meanwhile, which the next look tells.
                let _ = file.signal(came.signal);
            }
        }
        // Only where there is no descriptor: the first thread of a process may end before it.
        if wait.file.is_none() && !wait.life.is_alive() {
            return Ok(WaitEnd::Gone(asked));
        }
        let now = now_ns(ClockId::Monotonic);
        let left_ns = settles_ns.saturating_sub(now);
        if left_ns == 0
            && let Some(settled) = settled.take()
        {
            settled();
        }
        if now.saturating_sub(watched_ns) >= WATCH_NS {
            watched_ns = now;
            watch(None);
        }
        let timeout_ns = if wait.file.is_none() { LOOK_NS } else { WATCH_NS };
        let timeout_ns = settled.as_ref().map_or(timeout_ns, |_| timeout_ns.min(left_ns));
        let signal = signals.as_fd();
        let file = wait.file.map_or(signal, AsFd::as_fd);
        match either_readable(file, signal, Some(timeout_ns)) {
            Ok((true, false)) if wait.file.is_some() => return Ok(WaitEnd::Gone(asked)),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}
