//! What a keeper does while no guardian lives: both of its processes were killed, and others are being started.
//!
//! Owns: how long a reservation waits for them at its start, and that members which may not be suspended meanwhile do
//! not stay raised beyond their budget. Must not: decide on budgets, start a guardian.

use std::io;

use super::member_set::MemberSet;
use super::refusal as refused;
use crate::admission::{Obstacle, Refusal};
use crate::guardian::GuardianUnavailable;

/// Pause before another attempt to start, and the number of attempts. Another guardian takes a wake-up and a `fork(2)`;
/// where the kernel refuses that, it is tried again each 50 ms.
pub(super) const PAUSE_NS: u64 = 1_000_000;
const PAUSES: u32 = 120;

/// Begins, and waits for a guardian where none lives. `pause` waits for [`PAUSE_NS`]; false if that is to end.
///
/// # Errors
/// That of `attempt`; [`GuardianUnavailable`] if no guardian came.
pub(super) fn begin(
    mut pause: impl FnMut() -> bool,
    mut attempt: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    for _ in 0..PAUSES {
        match attempt() {
            Err(error) if GuardianUnavailable::is_behind(&error) && pause() => {}
            begun => return begun,
        }
    }
    attempt()
}

/// The refusal if no guardian came.
pub(super) fn refusal() -> Refusal {
    let waited_ms = u64::from(PAUSES) * PAUSE_NS / 1_000_000;
    refused(
        Obstacle::Missing,
        format!(
            "the processes that would put everything back if this one were killed (hourglass-guard) were killed, and \
             no other one could be started for {waited_ms} ms"
        ),
        "end what kills them; where the number of processes is limited (ulimit -u, pids.max), allow more",
    )
}

/// Members that can be suspended.
pub(super) trait SuspendableMembers {
    fn lower(&mut self) -> io::Result<()>;
    /// Refused where no guardian lives.
    fn suspend(&mut self) -> io::Result<()>;
}

impl SuspendableMembers for MemberSet {
    fn lower(&mut self) -> io::Result<()> {
        MemberSet::lower(self)
    }

    fn suspend(&mut self) -> io::Result<()> {
        MemberSet::suspend(self)
    }
}

/// Suspends members, which are lowered before if there are several (`company`), and behind it if they were not
/// suspended, so that no member stays urgent without a budget. Returns whether they were lowered.
pub(super) fn suspend(
    members: &mut impl SuspendableMembers,
    company: bool,
) -> (bool, io::Result<()>) {
    let before = if company { members.lower() } else { Ok(()) };
    let suspended = members.suspend();
    let lowered = company || suspended.is_err();
    // Lowering takes no guardian.
    let behind = if lowered && !company { members.lower() } else { Ok(()) };
    (lowered, suspended.and(before).and(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Simulated {
        done: Vec<&'static str>,
        guarded: bool,
    }

    impl SuspendableMembers for Simulated {
        fn lower(&mut self) -> io::Result<()> {
            self.done.push("lower");
            Ok(())
        }

        fn suspend(&mut self) -> io::Result<()> {
            self.done.push("suspend");
            if self.guarded { Ok(()) } else { Err(GuardianUnavailable.into()) }
        }
    }

    /// The bug: where no guardian lived, one thread of a hard reservation that had used up its budget kept its
    /// real-time priority, and went on above all other work.
    #[test]
    fn who_cannot_be_suspended_is_lowered() {
        for (company, guarded, wanted, low) in [
            (false, true, &["suspend"][..], false),
            (true, true, &["lower", "suspend"], true),
            (false, false, &["suspend", "lower"], true),
            (true, false, &["lower", "suspend"], true),
        ] {
            let mut members = Simulated { guarded, ..Simulated::default() };
            let (lowered, done) = suspend(&mut members, company);
            assert_eq!((&members.done[..], lowered, done.is_ok()), (wanted, low, guarded));
        }
    }

    /// The bug: a reservation whose start met guardians that were just being replaced was refused.
    #[test]
    fn a_start_waits_for_the_next_guardian() {
        let starts = |absent: u32, other: Option<io::ErrorKind>, patient: bool| {
            let (mut pauses, mut attempts) = (0, 0);
            let begun = begin(
                || {
                    pauses += 1;
                    patient
                },
                || {
                    attempts += 1;
                    let end = other.map_or(Ok(()), |kind| Err(kind.into()));
                    if attempts <= absent { Err(GuardianUnavailable.into()) } else { end }
                },
            );
            (begun.map_err(|error| GuardianUnavailable::is_behind(&error)), pauses)
        };
        assert_eq!(starts(0, None, true), (Ok(()), 0));
        assert_eq!(starts(7, None, true), (Ok(()), 7));
        // Whatever else is refused is refused at once; none that comes ends the wait, as does the end of the work.
        assert_eq!(starts(2, Some(io::ErrorKind::PermissionDenied), true), (Err(false), 2));
        assert_eq!(starts(u32::MAX, None, true), (Err(true), PAUSES));
        assert_eq!(starts(u32::MAX, None, false), (Err(true), 1));
    }
}
