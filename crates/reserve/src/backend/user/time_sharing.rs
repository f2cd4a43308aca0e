//! How members take turns on the CPUs of their reserve, from outside the kernel.
//!
//! Owns: when their order is made anew, and what that may cost. [`TurnScheduler`] decides on the order; the two priorities of
//! a reserve serve to make it, since a change of priority puts a thread at an end of its queue (sched(7)).
//! Must not: decide on budgets.

use std::io;

use hourglass_sys::clock::{ClockId, now_ns};

use super::budget::DispatchLevel;
use super::member_set::{MemberSet, Queue};
use super::turn_scheduler::{MemberUsage, SLICE_NS, TurnScheduler};

/// Interval at which a reserve of one member is looked at for a second one, ns; a reserve for one thread is not.
const ALONE_NS: u64 = 10_000_000;

/// Making the order anew takes at most this part of a reserve's time: of many members slices are longer.
const COST_PART: u64 = 50;
const LONGEST_SLICE_NS: u64 = 100_000_000;

#[derive(Debug, Default)]
pub(super) struct TimeSharing {
    turns: TurnScheduler,
    order: Vec<u32>,
    pub(super) company: bool,
    since_ns: u64,
    /// Cost of making the order, ns; a running mean.
    cost_ns: u64,
}

impl TimeSharing {
    /// The order that was made last, for members that are raised from below (`from_above` false) or lowered from the
    /// higher of their priorities.
    pub(super) fn queue(&self, from_above: bool) -> Queue<'_> {
        Queue { order: &self.order, from_above }
    }

    /// To be called before a change from one level to another one is carried out, and while they stay raised.
    /// Charges the members for their turns; whether a new order is due.
    pub(super) fn charge_turns(
        &mut self,
        team: &mut MemberSet,
        now_ns: u64,
        from: DispatchLevel,
        to: DispatchLevel,
    ) -> bool {
        let company = team.may_grow() && team.has_company();
        self.charge(company, || team.uses(), now_ns, from, to)
    }

    /// Charges members, of which there are several if `company`; what each has run, as [`MemberSet::uses`].
    fn charge(
        &mut self,
        company: bool,
        uses: impl FnOnce() -> Result<Vec<MemberUsage>, Vec<u32>>,
        now_ns: u64,
        from: DispatchLevel,
        to: DispatchLevel,
    ) -> bool {
        let due = to == DispatchLevel::Raised
            && (from != DispatchLevel::Raised
                || now_ns.saturating_sub(self.since_ns) >= self.slice_ns());
        let leaves = from == DispatchLevel::Raised && to != DispatchLevel::Raised;
        self.company = company;
        if !company {
            // A new member owes nothing to a member that was alone, nor the other way round.
            self.turns.interrupt();
        }
        if !(due || leaves) || !company {
            return false;
        }
        let begun_ns = clock();
        match uses() {
            Ok(used) => {
                self.turns.account(&used, from != DispatchLevel::Lowered);
                self.order = self.turns.order();
            }
            Err(members) => {
                self.turns.interrupt();
                self.order = drawn(members, now_ns);
            }
        }
        self.add_cost(begun_ns, 0);
        if due {
            self.since_ns = now_ns;
        }
        due
    }

    /// Carries out the order among raised members, who get the other one of their priorities: the higher one if `turn`.
    pub(super) fn rotate(&mut self, team: &mut MemberSet, turn: bool) -> io::Result<()> {
        let begun_ns = clock();
        let rotated = team.raise(turn, self.queue(!turn));
        self.add_cost(begun_ns, 1);
        rotated
    }

    /// When a look is due for the sake of turns, if members stay raised.
    pub(super) fn next_ns(&self, team: &MemberSet, now_ns: u64) -> Option<u64> {
        if self.company {
            return Some(
                self.since_ns.saturating_add(self.slice_ns()).max(now_ns.saturating_add(1)),
            );
        }
        team.may_grow().then(|| now_ns.saturating_add(ALONE_NS))
    }

    fn slice_ns(&self) -> u64 {
        self.cost_ns.saturating_mul(COST_PART).clamp(SLICE_NS, LONGEST_SLICE_NS)
    }

    /// The mean of some changes of order, each of two parts.
    fn add_cost(&mut self, begun_ns: u64, part: u32) {
        const MEAN_OF: u64 = 8;
        let cost = clock().saturating_sub(begun_ns).min(SLICE_NS);
        let before = if part == 0 { self.cost_ns - self.cost_ns / MEAN_OF } else { self.cost_ns };
        self.cost_ns = before.saturating_add(cost / MEAN_OF);
    }
}

fn clock() -> u64 {
    now_ns(ClockId::Monotonic)
}

/// An order drawn by lot, in which each is as often the first as any other (Waldspurger and Weihl, OSDI 1994).
fn drawn(members: Vec<u32>, seed: u64) -> Vec<u32> {
    let mut lots: Vec<(u64, u32)> =
        members.into_iter().map(|tid| (mixed(seed ^ u64::from(tid) << 32), tid)).collect();
    lots.sort_unstable();
    lots.into_iter().map(|(_, tid)| tid).collect()
}

/// Splitmix64's last step.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bug: a command that had computed alone for ten minutes was charged for them when it forked a busy helper,
    /// which then headed each order for ten minutes; the same after each stretch alone.
    #[test]
    fn time_alone_is_not_charged() {
        let used = |tid, run_ns| MemberUsage { tid, run_ns, weight: 1_024 };
        let raised = DispatchLevel::Raised;
        let mut sharing = TimeSharing::default();
        let (mut now, mut parent) = (ALONE_NS, 0);
        for helper in 2..5 {
            for _ in 0..60_000 {
                (now, parent) = (now + ALONE_NS, parent + ALONE_NS);
                assert!(!sharing.charge(
                    false,
                    || panic!("asked for a priority"),
                    now,
                    raised,
                    raised
                ));
            }
            let (mut own, mut firsts) = (0, [0u32; 2]);
            for _ in 0..100 {
                // Longer than any slice.
                now += LONGEST_SLICE_NS;
                let members = || Ok(vec![used(1, parent), used(helper, own)]);
                assert!(sharing.charge(true, members, now, raised, raised));
                if sharing.queue(false).order[0] == 1 {
                    (parent, firsts[0]) = (parent + SLICE_NS, firsts[0] + 1);
                } else {
                    (own, firsts[1]) = (own + SLICE_NS, firsts[1] + 1);
                }
            }
            assert!(firsts[0].abs_diff(firsts[1]) <= 2, "helper {helper}: {firsts:?}");
        }
    }

    /// Drawing lots leaves no member out, and no member is first much more often than others.
    #[test]
    fn each_of_many_is_drawn_as_often() {
        let mut first = [0u32; 300];
        for round in 0..30_000u64 {
            let order = drawn((0..300).collect(), round * SLICE_NS);
            assert_eq!(order.len(), 300);
            first[order[0] as usize] += 1;
        }
        let (least, most) = (first.iter().min().unwrap(), first.iter().max().unwrap());
        assert!(*least > 50 && *most < 150, "{least} to {most} of 100");
    }
}
