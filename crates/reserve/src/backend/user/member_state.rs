//! From levels to what is done to the members: orders follow how they stand, not what was last decided.
//!
//! Owns: [`MemberState`], which knows the last level that was carried out whole. An order that the kernel refused is
//! given again until it is taken, soon at first and then more rarely; so work that should run and stands is resumed
//! again until it runs. Must not: touch a thread, read a clock.

use super::budget::DispatchLevel;

/// How soon a refused order is given again: at first, and at most.
const FIRST_NS: u64 = 1_000_000;
const LAST_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberAction {
    Nothing,
    Raise,
    Resume,
    ResumeAndRaise,
    Lower,
    ResumeAndLower,
    Suspend,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MemberState {
    pub(super) requested: DispatchLevel,
    /// The level that was carried out whole; `None` after a refusal, or when another program may have changed it.
    applied: Option<DispatchLevel>,
    pause_ns: u64,
    pub(super) refused: u64,
    /// How often guardians had changed how members stand, when that was looked at.
    woken: u64,
}

impl MemberState {
    /// All have just been raised; before that, guardians had changed how members stand `woken` times.
    pub(super) fn raised(woken: u64) -> MemberState {
        MemberState {
            requested: DispatchLevel::Raised,
            applied: Some(DispatchLevel::Raised),
            pause_ns: FIRST_NS,
            refused: 0,
            woken,
        }
    }

    /// To be called before each order: how often guardians have changed how members stand. They change those of all
    /// reservations, whichever of these broke its promise, and also for want of one that lives.
    pub(super) fn note_guardian_action(&mut self, woken: u64) {
        if woken != self.woken {
            (self.woken, self.applied) = (woken, None);
        }
    }

    pub(super) fn act(&mut self, level: DispatchLevel, anew: bool) -> MemberAction {
        self.requested = level;
        match (self.applied, level) {
            (Some(DispatchLevel::Suspended), DispatchLevel::Raised) if anew => {
                MemberAction::ResumeAndRaise
            }
            (Some(DispatchLevel::Suspended), DispatchLevel::Raised) => MemberAction::Resume,
            (Some(DispatchLevel::Raised), DispatchLevel::Raised) if anew => MemberAction::Raise,
            (Some(DispatchLevel::Lowered), DispatchLevel::Raised) => MemberAction::Raise,
            (Some(before), level) if before == level => MemberAction::Nothing,
            (None | Some(DispatchLevel::Suspended), DispatchLevel::Lowered) => {
                MemberAction::ResumeAndLower
            }
            (_, DispatchLevel::Lowered) => MemberAction::Lower,
            (_, DispatchLevel::Suspended) => MemberAction::Suspend,
            (_, DispatchLevel::Raised) => MemberAction::ResumeAndRaise,
        }
    }

    pub(super) fn done(&mut self, taken: bool) {
        if taken {
            (self.applied, self.pause_ns) = (Some(self.requested), FIRST_NS);
        } else {
            if self.applied.is_none() && self.refused > 0 {
                self.pause_ns = self.pause_ns.saturating_mul(2).min(LAST_NS);
            }
            self.applied = None;
            self.refused = self.refused.saturating_add(1);
        }
    }

    /// Whether the members are known to be below real-time priority, or to stand.
    pub(super) fn leave_the_cpu(&self) -> bool {
        matches!(self.applied, Some(DispatchLevel::Lowered | DispatchLevel::Suspended))
    }

    /// When to look next, if nothing else is to be done before `next_ns`.
    pub(super) fn next_ns(&self, now_ns: u64, next_ns: u64) -> u64 {
        match self.applied {
            Some(_) => next_ns,
            None => next_ns.min(now_ns.saturating_add(self.pause_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bug: the level counted as carried out, and work whose resuming was refused once stood for a whole period.
    #[test]
    fn who_is_not_resumed_is_resumed_again_until_he_runs() {
        let mut orders = MemberState::raised(0);
        assert_eq!(orders.act(DispatchLevel::Suspended, false), MemberAction::Suspend);
        orders.done(true);
        assert_eq!(
            (orders.act(DispatchLevel::Suspended, false), orders.next_ns(5, 900)),
            (MemberAction::Nothing, 900)
        );
        orders.done(true);
        let (mut now, mut waits) = (0, Vec::new());
        assert_eq!(orders.act(DispatchLevel::Raised, false), MemberAction::Resume);
        for _ in 0..10 {
            orders.done(false);
            let next = orders.next_ns(now, u64::MAX);
            waits.push((next - now) / FIRST_NS);
            now = next;
            assert_eq!(orders.act(DispatchLevel::Raised, false), MemberAction::ResumeAndRaise);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]);
        orders.done(true);
        assert_eq!(orders.act(DispatchLevel::Raised, false), MemberAction::Nothing);
        assert_eq!((orders.next_ns(now, now + 7), orders.refused), (now + 7, 10));
        // The next refusal is tried again soon.
        orders.act(DispatchLevel::Suspended, false);
        orders.done(false);
        assert_eq!(orders.next_ns(now, u64::MAX), now + FIRST_NS);
    }

    #[test]
    fn each_change_has_its_act() {
        let act = |before, level, anew| {
            let mut orders = MemberState::raised(0);
            orders.act(before, false);
            orders.done(true);
            orders.act(level, anew)
        };
        use DispatchLevel::{Lowered, Raised, Suspended};
        assert_eq!(act(Raised, Raised, true), MemberAction::Raise);
        assert_eq!(act(Lowered, Raised, false), MemberAction::Raise);
        assert_eq!(act(Suspended, Raised, true), MemberAction::ResumeAndRaise);
        assert_eq!(act(Raised, Lowered, false), MemberAction::Lower);
        assert_eq!(act(Lowered, Lowered, true), MemberAction::Nothing);
        assert_eq!(act(Lowered, Suspended, false), MemberAction::Suspend);
    }

    /// The bug: a guardian that acted on the broken promise of one reservation lowered and resumed the members of
    /// another one, whose keeper held them for raised, or suspended, until its next order.
    #[test]
    fn what_a_guardian_changed_is_carried_out_again() {
        use DispatchLevel::{Lowered, Raised, Suspended};
        let again = [
            (Raised, MemberAction::ResumeAndRaise),
            (Lowered, MemberAction::ResumeAndLower),
            (Suspended, MemberAction::Suspend),
        ];
        for (level, wanted) in again {
            let mut orders = MemberState::raised(3);
            orders.note_guardian_action(3);
            orders.act(level, false);
            orders.done(true);
            orders.note_guardian_action(3);
            assert_eq!(orders.act(level, false), MemberAction::Nothing);
            orders.note_guardian_action(4);
            assert_eq!(orders.act(level, false), wanted);
            orders.done(true);
            orders.note_guardian_action(4);
            assert_eq!(orders.act(level, false), MemberAction::Nothing);
            assert_eq!(orders.refused, 0);
        }
        // Suspended work that was lowered is raised at its next period, and not only resumed.
        let mut orders = MemberState::raised(0);
        orders.act(Suspended, false);
        orders.done(true);
        orders.note_guardian_action(1);
        assert_eq!(orders.act(Raised, false), MemberAction::ResumeAndRaise);
    }
}
