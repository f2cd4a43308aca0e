//! The last part of a sleep: looking at the clock until it is time, and saying how it went.

use std::ops::Deref;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;

use super::interrupt::Interrupt;
use super::kernel_wait::{FinalWait, REHEARSAL_NS, SleepTarget, Stage};
use super::margin::Charge;
use super::mechanism::Mechanism;
use super::outcome::{Delay, SleepOutcome};
use super::settings::{SleepEnd, SleepPolicy};
use super::sleeper::Sleeper;

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Sleeper<C, M> {
    /// Sleeps until an absolute time on the clock's scale, ns.
    #[inline(always)]
    pub fn sleep_until_ns(&mut self, deadline_ns: u64) -> SleepOutcome {
        self.sleep_to(SleepTarget::Time(deadline_ns))
    }

    /// Sleeps. Inlined, so that the caller's own code is what is returned to.
    ///
    /// That way out is gone once shortly before it counts: what other programs ran meanwhile has
    /// driven it out of the caches, which makes the return some 150 ns late.
    #[inline(always)]
    pub(super) fn sleep_to(&mut self, until: SleepTarget) -> SleepOutcome {
        if self.settings.policy == SleepPolicy::KernelOnly
            && let Some(slept) = self.only_wait(until)
        {
            return slept;
        }
        let mut rest = self.approach(until);
        if rest.stage == Stage::Over {
            return rest.slept;
        }
        loop {
            let slept = self.finish(&mut rest);
            if rest.stage == Stage::Over {
                return slept;
            }
        }
    }

    /// Spins until the deadline, or in a rehearsal nearly so, and says how the sleep went.
    #[inline(never)]
    fn finish(&mut self, rest: &mut FinalWait) -> SleepOutcome {
        let mut slept = rest.slept;
        let until = match rest.stage {
            Stage::Over => return slept,
            Stage::Rehearsal => slept.deadline_ns.saturating_sub(REHEARSAL_NS),
            Stage::Last => slept.deadline_ns,
        };
        let mut away_ns = 0;
        if !slept.interrupted {
            let spun = self.spin(rest.from_ns, until);
            if rest.stage == Stage::Last || spun.interrupted {
                self.mechanism.spin_ended();
            }
            slept.spin_ns = spun.ended_ns.saturating_sub(slept.woke_ns);
            slept.woke_ns = spun.ended_ns;
            slept.interrupted = spun.interrupted;
            slept.longest_step_ns = spun.longest_step_ns.max(slept.longest_step_ns);
            if slept.miss_ns() > Delay::ON_TIME_NS && !slept.interrupted {
                slept.delay = self.delay(rest, spun);
                let stood_still = spun.last_step_ns > Delay::ON_TIME_NS;
                away_ns = if stood_still { spun.last_step_ns } else { 0 };
            }
            rest.slept.longest_step_ns = slept.longest_step_ns;
            // After a rehearsal its last step counts again: it may have led beyond the deadline.
            rest.from_ns = spun.ended_ns.saturating_sub(spun.last_step_ns);
        }
        self.charge = (self.settings.policy == SleepPolicy::Learned).then(|| Charge {
            place: rest.place,
            length_ns: slept.woke_ns.saturating_sub(rest.start_ns),
            spin_ns: slept.spin_ns.saturating_sub(away_ns),
            waited: rest.waited.is_some(),
        });
        let goes_on = rest.stage == Stage::Rehearsal && !slept.interrupted;
        rest.stage = if goes_on { Stage::Last } else { Stage::Over };
        slept
    }

    #[inline(always)]
    fn spin(&mut self, from: u64, until: u64) -> SpinOutcome {
        let (clock, word) = (&*self.clock, &*self.interrupter);
        match self.settings.ends_when {
            SleepEnd::Reached => {
                let read = |clock: &Clock<B>| (clock.now_ordered(), None);
                spin(clock, &mut self.mechanism, word, read, from, until)
            }
            SleepEnd::SurelyReached => {
                let read = |clock: &Clock<B>| {
                    let bounds = clock.now_bounded();
                    (bounds.middle(), Some(bounds.earliest))
                };
                spin(clock, &mut self.mechanism, word, read, from, until)
            }
        }
    }

    #[cold]
    fn delay(&mut self, rest: &FinalWait, spun: SpinOutcome) -> Delay {
        let deadline = rest.slept.deadline_ns;
        let woken_late = rest.waited.is_some_and(|waited| waited.woke_ns >= deadline);
        if !woken_late && spun.last_step_ns <= Delay::ON_TIME_NS {
            return Delay::None;
        }
        // With [`SleepPolicy::KernelOnly`] preemptions were not read.
        let switched = rest.preemptions.is_some_and(|before| self.mechanism.preemptions() > before);
        match (switched, woken_late) {
            (true, _) => Delay::Preempted,
            (false, true) => Delay::WokenLate,
            (false, false) => Delay::Stalled,
        }
    }
}

/// After this many looks (10 ms or more, longer than any margin) the clock is looked after: one
/// whose counter stands still would never be at the deadline.
const MANY_LOOKS: u32 = 1 << 19;

#[derive(Clone, Copy, Debug)]
struct SpinOutcome {
    ended_ns: u64,
    interrupted: bool,
    longest_step_ns: u64,
    last_step_ns: u64,
}

/// Spins until `read` is at the deadline or the word is set. `read` gives the time, and what counts
/// against the deadline if that is another one.
#[inline]
fn spin<B: Timebase, M: Mechanism>(
    clock: &Clock<B>,
    mechanism: &mut M,
    word: &Interrupt,
    read: impl Fn(&Clock<B>) -> (u64, Option<u64>),
    from: u64,
    deadline: u64,
) -> SpinOutcome {
    let (mut last, mut longest_step_ns, mut looks) = (from, 0, 0u32);
    loop {
        let (now, counts) = read(clock);
        let last_step_ns = now.saturating_sub(last);
        longest_step_ns = last_step_ns.max(longest_step_ns);
        let ended =
            |interrupted| SpinOutcome { ended_ns: now, interrupted, longest_step_ns, last_step_ns };
        let counts = counts.unwrap_or(now);
        if counts >= deadline {
            return ended(false);
        }
        if word.is_set() {
            return ended(true);
        }
        last = now;
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(MANY_LOOKS) {
            clock.maintain();
        }
        mechanism.relax(deadline - counts);
    }
}
