//! What a keeper does while no guardian lives: both of its processes were killed, and others are being started.
//!
//! Owns: how long a reservation waits for them at its start, and that members which may not be suspended meanwhile do
//! not stay raised beyond their budget. Must not: decide on budgets, start a guardian.

use std::io;

use super::member_state::MemberAction;
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

/// Suspends members, which are lowered before if there are several (`company`), and behind it if they were not
/// suspended, so that no member stays urgent without a budget. `order` lowers or suspends; only suspending takes a
/// guardian. Returns whether they were lowered.
pub(super) fn suspend(
    company: bool,
    mut order: impl FnMut(MemberAction) -> io::Result<()>,
) -> (bool, io::Result<()>) {
    let before = if company { order(MemberAction::Lower) } else { Ok(()) };
    let suspended = order(MemberAction::Suspend);
    let lowered = company || suspended.is_err();
    let behind = if lowered && !company { order(MemberAction::Lower) } else { Ok(()) };
    (lowered, suspended.and(before).and(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bug: where no guardian lived, one thread of a hard reservation that had used up its budget kept its
    /// real-time priority, and went on above all other work.
    #[test]
    fn who_cannot_be_suspended_is_lowered() {
        use MemberAction::{Lower, Suspend};
        for (company, guarded, wanted, low) in [
            (false, true, &[Suspend][..], false),
            (true, true, &[Lower, Suspend], true),
            (false, false, &[Suspend, Lower], true),
            (true, false, &[Lower, Suspend], true),
        ] {
            let mut orders = Vec::new();
            let (lowered, done) = suspend(company, |order| {
                orders.push(order);
                if order == Lower || guarded { Ok(()) } else { Err(GuardianUnavailable.into()) }
            });
            assert_eq!((&orders[..], lowered, done.is_ok()), (wanted, low, guarded));
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
