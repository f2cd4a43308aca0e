//! Whose turn it is among raised members: decisions over processor time, nothing else.
//!
//! Owns: [`TurnScheduler`], which takes the time that each member has run and answers with the order in which they are
//! to have the CPU. Must not: read a clock, touch a thread.
//!
//! Threads of one `SCHED_FIFO` priority run to their end one after the other. Members of a reserve are programs that
//! expect to share a CPU as the fair class does, so that the keeper orders them anew after each slice: first comes the
//! member that has had least for its weight (weighted fair queueing, as the kernel's fair class has it by nice values).
//! Which of them sleep is not looked up, which would cost more than it saves: a place at the head of the queue is lost
//! on a thread that sleeps, and does no harm.

use std::collections::HashMap;

/// How long one member runs while others wait, ns: the fair class has 3 ms on a few CPUs, and switches at the tick.
pub(crate) const SLICE_NS: u64 = 3_000_000;

/// Weight of a thread at nice 0 (`sched_prio_to_weight` in `kernel/sched/core.c`).
const NICE_0: u64 = 1_024;
/// Of `SCHED_IDLE`.
pub(crate) const IDLE: u64 = 3;

/// The weight of a thread by its nice value, from -20 to 19: a quarter more with each step, as in the fair class.
pub(crate) fn weight(nice: i8) -> u64 {
    let steps = u32::from(nice.clamp(-20, 19).unsigned_abs());
    let (above, below) = if nice < 0 { (5u64, 4u64) } else { (4, 5) };
    // Within 64 bits: 2^10 times 5^20 at most.
    NICE_0 * above.pow(steps) / below.pow(steps)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberUsage {
    pub(crate) tid: u32,
    /// Processor time since it began, ns.
    pub(crate) run_ns: u64,
    /// Its share in relation to others; above 0.
    pub(crate) weight: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TurnScheduler {
    known: HashMap<u32, MemberTurn>,
    samples: u64,
    /// Whether members have been in turns since the last look; not before the first one.
    in_turns: bool,
}

#[derive(Clone, Copy, Debug)]
struct MemberTurn {
    run_ns: u64,
    /// Processor time divided by weight: the member with the least is next.
    virtual_ns: u64,
    /// The last look that found that it had run, and the last one at all.
    last_run: u64,
    last_seen: u64,
}

impl TurnScheduler {
    /// Takes what members have run; `charged` tells whether that was in turns, since the last look. A member that is
    /// missing is forgotten. A new one is charged for nothing: its processor time is that of its whole life.
    pub(crate) fn account(&mut self, members: &[MemberUsage], charged: bool) {
        self.samples = self.samples.saturating_add(1);
        let looks = self.samples;
        let charged = std::mem::replace(&mut self.in_turns, true) && charged;
        // The least place of those that ran: those that waited had no less.
        let mut served = u64::MAX;
        for member in members {
            let Some(turn) = self.known.get_mut(&member.tid) else { continue };
            let run = member.run_ns.saturating_sub(turn.run_ns);
            turn.run_ns = member.run_ns.max(turn.run_ns);
            turn.last_seen = looks;
            if run > 0 && charged {
                served = served.min(turn.virtual_ns);
                let share = u128::from(run) * u128::from(NICE_0) / u128::from(member.weight.max(1));
                let share = u64::try_from(share).unwrap_or(u64::MAX);
                turn.virtual_ns = turn.virtual_ns.saturating_add(share);
                turn.last_run = looks;
            }
        }
        self.known.retain(|_, turn| turn.last_seen == looks);
        if served < u64::MAX {
            self.forgive(served.saturating_sub(SLICE_NS));
        }
        self.welcome(members);
    }

    /// Time that members run from now to the next look is not in turns: one of them is alone, say.
    pub(crate) fn interrupt(&mut self) {
        self.in_turns = false;
    }

    /// New members begin with those that have had least, once these are charged, and behind them.
    fn welcome(&mut self, members: &[MemberUsage]) {
        let least = self.known.values().map(|turn| turn.virtual_ns).min().unwrap_or(0);
        let looks = self.samples;
        for member in members {
            self.known.entry(member.tid).or_insert(MemberTurn {
                run_ns: member.run_ns,
                virtual_ns: least,
                last_run: looks,
                last_seen: looks,
            });
        }
    }

    /// A member that slept has no claim on what it left to others, but for one slice (as in start-time fair queueing:
    /// Goyal, Vin and Cheng, SIGCOMM 1996).
    fn forgive(&mut self, floor: u64) {
        for turn in self.known.values_mut() {
            turn.virtual_ns = turn.virtual_ns.max(floor);
        }
    }

    /// The members in the order in which they are to run; of equals, the one that has not run for longest comes first.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order: Vec<_> =
            self.known.iter().map(|(tid, turn)| (turn.virtual_ns, turn.last_run, *tid)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, tid)| tid).collect()
    }
}

#[cfg(test)]
#[path = "tests/turns.rs"]
mod tests;
