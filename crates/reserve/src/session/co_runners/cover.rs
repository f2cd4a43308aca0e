//! What a backend is asked for beside co-runners, and what the monitor promises of it.
//!
//! Owns: that arithmetic. Must not: start anything.

use hourglass_documents::Reservation;
use hourglass_time::Span;

use super::super::{CoRunnerSettings, SessionRequest, SiblingPolicy};
use crate::smt::jobs::JobReservation;
use crate::smt::monitor::{self, MonitorSettings, REST_PART, SlackCheck};

/// The policy by which is covered: several reservations are slowed by one another's waiting as well.
pub(super) fn covered_by(request: &SessionRequest, policy: SiblingPolicy) -> SiblingPolicy {
    match policy {
        SiblingPolicy::Disable if !request.additional.is_empty() => SiblingPolicy::Monitor,
        policy => policy,
    }
}

/// The reservation that a backend is asked for, where stopping takes `margin_ns`.
pub(in super::super) fn cover(
    asked: Reservation,
    policy: SiblingPolicy,
    margin_ns: u64,
) -> Reservation {
    let span = Span::saturating_from_nanos;
    let most = asked.deadline().min(span(asked.period().nanos_or_zero() / 10 * 9));
    let wanted = match policy {
        SiblingPolicy::Monitor => most,
        // They slow it while they are being stopped, and when it goes on after a sleep.
        SiblingPolicy::Disable => {
            let unseen_ns = asked.period().nanos_or_zero() / REST_PART;
            span(asked.budget().nanos_or_zero().saturating_add(margin_ns).saturating_add(unseen_ns))
        }
        SiblingPolicy::Ignore => return asked,
    };
    let covered = wanted.min(most).max(asked.budget());
    // These are within what the reservation has already.
    Reservation::new(covered, asked.period(), asked.strength())
        .and_then(|reservation| reservation.with_deadline(asked.deadline()))
        .unwrap_or(asked)
}

pub(super) fn checks(siblings: &CoRunnerSettings) -> SlackCheck {
    siblings.interval.map_or(SlackCheck::Variable, |every| SlackCheck::Fixed(every.nanos_or_zero()))
}

/// The monitor's part: the budget, in time for what the backend keeps for it.
pub(super) fn promise(asked: Reservation, policy: SiblingPolicy, margin_ns: u64) -> Reservation {
    match policy {
        SiblingPolicy::Monitor => {
            let covered = cover(asked, policy, margin_ns).budget();
            asked.with_deadline(covered).unwrap_or(asked)
        }
        SiblingPolicy::Disable | SiblingPolicy::Ignore => asked,
    }
}

/// Why the reservations of a request cannot be watched together; `None` if they can.
pub(super) fn together(request: &SessionRequest, siblings: &CoRunnerSettings) -> Option<String> {
    let policy = covered_by(request, siblings.policy);
    let all = std::iter::once(request.reservation)
        .chain(request.additional.iter().map(|a| a.reservation));
    let promised: Vec<JobReservation> =
        all.map(|asked| JobReservation::new(&promise(asked, policy, 0), 0)).collect();
    let settings =
        MonitorSettings { policy, checks: checks(siblings), ..MonitorSettings::default() };
    monitor::check(settings, &promised).err().map(|why| why.to_string())
}
