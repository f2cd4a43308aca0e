//! From levels to what is done to the members: orders follow how they stand, not what was last decided.
//!
//! Owns: [`Orders`], which knows the last level that was carried out whole. An order that the kernel refused is
//! given again until it is taken, soon at first and then more rarely; so work that should run and stands is resumed
//! again until it runs. Must not: touch a thread, read a clock.

use super::budget::Level;

/// How soon a refused order is given again: at first, and at most.
const FIRST_NS: u64 = 1_000_000;
const LAST_NS: u64 = 100_000_000;

/// What is to be done to all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// They are as they should be.
    Nothing,
    /// Raise them, and those who are new.
    Raise,
    /// Let them go on as they are.
    Resume,
    /// Let them go on, and raise them.
    ResumeAndRaise,
    /// Give them their own policy.
    Lower,
    /// The same, also to those who may stand.
    ResumeAndLower,
    /// Let them stand.
    Suspend,
}

/// How the members stand, as far as is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders {
    /// The level that was decided last.
    wanted: Level,
    /// The level that was carried out whole; `None` after a refusal, or when somebody else may have changed it.
    stands: Option<Level>,
    /// After how long a refused order is given again.
    pause_ns: u64,
    refused: u64,
    /// How often guardians had changed how members stand, when that was looked at.
    woken: u64,
}

impl Orders {
    /// All have just been raised; before that, guardians had changed how members stand `woken` times.
    pub(super) fn raised(woken: u64) -> Orders {
        Orders {
            wanted: Level::Raised,
            stands: Some(Level::Raised),
            pause_ns: FIRST_NS,
            refused: 0,
            woken,
        }
    }

    /// What was decided last.
    pub(super) fn level(&self) -> Level {
        self.wanted
    }

    /// Orders that the kernel refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// To be called before each order: how often guardians have changed how members stand. They change those of all
    /// reservations, whichever of these broke its promise, and also for want of one that lives.
    pub(super) fn heed(&mut self, woken: u64) {
        if woken != self.woken {
            (self.woken, self.stands) = (woken, None);
        }
    }

    /// What brings the members to `level`. `anew`: members may have come, or may have set a policy themselves.
    pub(super) fn act(&mut self, level: Level, anew: bool) -> Act {
        self.wanted = level;
        match (self.stands, level) {
            (Some(Level::Suspended), Level::Raised) if anew => Act::ResumeAndRaise,
            (Some(Level::Suspended), Level::Raised) => Act::Resume,
            (Some(Level::Raised), Level::Raised) if anew => Act::Raise,
            (Some(Level::Lowered), Level::Raised) => Act::Raise,
            (Some(before), level) if before == level => Act::Nothing,
            (None | Some(Level::Suspended), Level::Lowered) => Act::ResumeAndLower,
            (_, Level::Lowered) => Act::Lower,
            (_, Level::Suspended) => Act::Suspend,
            (_, Level::Raised) => Act::ResumeAndRaise,
        }
    }

    pub(super) fn done(&mut self, taken: bool) {
        if taken {
            (self.stands, self.pause_ns) = (Some(self.wanted), FIRST_NS);
        } else {
            if self.stands.is_none() && self.refused > 0 {
                self.pause_ns = self.pause_ns.saturating_mul(2).min(LAST_NS);
            }
            self.stands = None;
            self.refused = self.refused.saturating_add(1);
        }
    }

    /// Whether the members are known to be below real-time priority, or to stand.
    pub(super) fn leave_the_cpu(&self) -> bool {
        matches!(self.stands, Some(Level::Lowered | Level::Suspended))
    }

    /// When to look next, if nothing else is to be done before `next_ns`.
    pub(super) fn next_ns(&self, now_ns: u64, next_ns: u64) -> u64 {
        match self.stands {
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
        let mut orders = Orders::raised(0);
        assert_eq!(orders.act(Level::Suspended, false), Act::Suspend);
        orders.done(true);
        assert_eq!(
            (orders.act(Level::Suspended, false), orders.next_ns(5, 900)),
            (Act::Nothing, 900)
        );
        orders.done(true);
        let (mut now, mut waits) = (0, Vec::new());
        assert_eq!(orders.act(Level::Raised, false), Act::Resume);
        for _ in 0..10 {
            orders.done(false);
            let next = orders.next_ns(now, u64::MAX);
            waits.push((next - now) / FIRST_NS);
            now = next;
            assert_eq!(orders.act(Level::Raised, false), Act::ResumeAndRaise);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]);
        orders.done(true);
        assert_eq!(orders.act(Level::Raised, false), Act::Nothing);
        assert_eq!((orders.next_ns(now, now + 7), orders.refused()), (now + 7, 10));
        // The next refusal is tried again soon.
        orders.act(Level::Suspended, false);
        orders.done(false);
        assert_eq!(orders.next_ns(now, u64::MAX), now + FIRST_NS);
    }

    #[test]
    fn each_change_has_its_act() {
        let act = |before, level, anew| {
            let mut orders = Orders::raised(0);
            orders.act(before, false);
            orders.done(true);
            orders.act(level, anew)
        };
        use Level::{Lowered, Raised, Suspended};
        assert_eq!(act(Raised, Raised, true), Act::Raise);
        assert_eq!(act(Lowered, Raised, false), Act::Raise);
        assert_eq!(act(Suspended, Raised, true), Act::ResumeAndRaise);
        assert_eq!(act(Raised, Lowered, false), Act::Lower);
        assert_eq!(act(Lowered, Lowered, true), Act::Nothing);
        assert_eq!(act(Lowered, Suspended, false), Act::Suspend);
    }

    /// The bug: a guardian that acted on the broken promise of one reservation lowered and resumed the members of
    /// another one, whose keeper held them for raised, or suspended, until its next order.
    #[test]
    fn what_a_guardian_changed_is_carried_out_again() {
        use Level::{Lowered, Raised, Suspended};
        let again = [
            (Raised, Act::ResumeAndRaise),
            (Lowered, Act::ResumeAndLower),
            (Suspended, Act::Suspend),
        ];
        for (level, wanted) in again {
            let mut orders = Orders::raised(3);
            orders.heed(3);
            orders.act(level, false);
            orders.done(true);
            orders.heed(3);
            assert_eq!(orders.act(level, false), Act::Nothing);
            orders.heed(4);
            assert_eq!(orders.act(level, false), wanted);
            orders.done(true);
            orders.heed(4);
            assert_eq!(orders.act(level, false), Act::Nothing);
            assert_eq!(orders.refused(), 0);
        }
        // Suspended work that was lowered is raised at its next period, and not only resumed.
        let mut orders = Orders::raised(0);
        orders.act(Suspended, false);
        orders.done(true);
        orders.heed(1);
        assert_eq!(orders.act(Raised, false), Act::ResumeAndRaise);
    }
}
