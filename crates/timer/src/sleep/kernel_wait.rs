//! The first part of a sleep: all that is done before the spin.

use std::ops::Deref;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;

use super::margin::{Length, MarginKey, SHORTEST_WAIT_NS, SleepPlan, WORTH_NS, WaitCost};
use super::mechanism::{Mechanism, WakeReason};
use super::outcome::{Delay, SleepOutcome};
use super::settings::{SleepEnd, SleepPolicy};
use super::sleeper::Sleeper;

/// Sleeps as long as this are worth a system call to ask for the scheduling class, ns; for others it
/// is as last asked for.
const WORTH_ASKING_NS: u64 = 20_000;
/// How long before the deadline the end of the sleep is rehearsed, ns.
pub(super) const REHEARSAL_NS: u64 = 1_500;

/// The least timer slack, ns; 0 would mean the default.
pub(super) const LEAST_SLACK_NS: u64 = 1;

#[derive(Clone, Copy, Debug)]
pub(super) enum SleepTarget {
    Time(u64),
    Passed(u64),
}

impl SleepTarget {
    #[inline]
    const fn deadline_ns(self, begun_ns: u64) -> u64 {
        match self {
            SleepTarget::Time(deadline_ns) => deadline_ns,
            SleepTarget::Passed(length_ns) => begun_ns.saturating_add(length_ns),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its end is to be rehearsed.
    Rehearsal,
    Last,
    Over,
}

/// A sleep of which only the spin is left, at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinalWait {
    pub(super) slept: SleepOutcome,
    pub(super) stage: Stage,
    pub(super) place: MarginKey,
    pub(super) start_ns: u64,
    /// A reading of the clock, the last one or the one before, ns.
    pub(super) from_ns: u64,
    pub(super) waited: Option<FinishedWait>,
    pub(super) preemptions: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FinishedWait {
    pub(super) woke_ns: u64,
    target_ns: u64,
    interrupted: bool,
    /// What it took of the CPU and what was thought before it, where that was measured.
    cost: Option<WaitCost>,
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Sleeper<C, M> {
    #[inline(never)]
    pub(super) fn approach(&mut self, until: SleepTarget) -> FinalWait {
        let begun = self.clock.now_ordered();
        let deadline = until.deadline_ns(begun);
        let mut rest = FinalWait {
            slept: SleepOutcome {
                deadline_ns: deadline,
                woke_ns: begun,
                kernel_ns: 0,
                spin_ns: 0,
                margin_ns: 0,
                longest_step_ns: 0,
                interrupted: self.interrupter.is_set(),
                delay: Delay::None,
            },
            stage: Stage::Over,
            place: MarginKey::UNKNOWN,
            start_ns: begun,
            from_ns: begun,
            waited: None,
            preemptions: None,
        };
        if self.surely_reached(begun, deadline) {
            rest.slept.delay = Delay::AlreadyPast;
        } else if !rest.slept.interrupted {
            self.get_near(&mut rest, deadline.saturating_sub(begun));
        }
        rest
    }

    /// A whole sleep that is the kernel's wait and nothing else; `None` if there is nothing to wait for, or more to do.
    /// By itself and straight on: what the thread runs after a long wait is in no cache.
    #[inline(never)]
    pub(super) fn only_wait(&mut self, until: SleepTarget) -> Option<SleepOutcome> {
        let begun = self.clock.now_ordered();
        let deadline = until.deadline_ns(begun);
        let spins = self.settings.ends_when != SleepEnd::Reached;
        if spins || deadline.saturating_sub(begun) < SHORTEST_WAIT_NS || self.interrupter.is_set() {
            return None;
        }
        let FinishedWait { woke_ns, interrupted, .. } =
            self.wait_absolute(MarginKey::UNKNOWN, deadline);
        let late = !interrupted && woke_ns.saturating_sub(deadline) > Delay::ON_TIME_NS;
        Some(SleepOutcome {
            deadline_ns: deadline,
            woke_ns,
            kernel_ns: woke_ns.saturating_sub(begun),
            spin_ns: 0,
            margin_ns: 0,
            longest_step_ns: 0,
            interrupted,
            delay: if late { Delay::WokenLate } else { Delay::None },
        })
    }

    fn get_near(&mut self, rest: &mut FinalWait, left: u64) {
        let deadline = rest.slept.deadline_ns;
        // A sleeper that only waits in the kernel learns nothing and spins nothing: it is spared the questions.
        let asks = self.settings.policy != SleepPolicy::KernelOnly;
        rest.place = if asks { self.place(left) } else { MarginKey::UNKNOWN };
        let plan = self.plan(rest.place, left);
        rest.preemptions = (asks && left > WORTH_NS).then(|| self.mechanism.preemptions());
        if let SleepPlan::Kernel { margin_ns, .. } = plan {
            let waited = self.wait(rest.place, rest.start_ns, deadline, margin_ns);
            self.record_wait(rest.place, plan, waited, deadline);
            rest.slept.margin_ns = margin_ns;
            rest.slept.kernel_ns = waited.woke_ns.saturating_sub(rest.start_ns);
            rest.slept.woke_ns = waited.woke_ns;
            rest.slept.interrupted = waited.interrupted;
            rest.waited = Some(waited);
            rest.from_ns = self.clock.now_ordered();
        }
        rest.stage = match deadline.saturating_sub(rest.from_ns) {
            left if left > REHEARSAL_NS => Stage::Rehearsal,
            _ => Stage::Last,
        };
    }

    fn plan(&mut self, place: MarginKey, left: u64) -> SleepPlan {
        if left < SHORTEST_WAIT_NS {
            return SleepPlan::Spin;
        }
        let kernel = |margin_ns| SleepPlan::Kernel { margin_ns, forced: false };
        match (self.settings.policy, self.settings.policy.tick_ns()) {
            (_, Some(tick)) if left >= tick => kernel(tick),
            (SleepPolicy::SpinOnly | SleepPolicy::Thesis { .. }, _) => SleepPlan::Spin,
            (SleepPolicy::KernelOnly, _) => kernel(0),
            (SleepPolicy::Learned, _) => {
                self.settle();
                self.margins.plan(&self.settings, place, left)
            }
        }
    }

    fn wait(&mut self, place: MarginKey, begun: u64, deadline: u64, margin: u64) -> FinishedWait {
        /// One of this many waits has its cost measured, and so has each of the first ones.
        const MEASURE_EVERY: u32 = 8;
        let until = deadline - margin;
        let learning = self.settings.policy == SleepPolicy::Learned;
        let measuring = self.waits < MEASURE_EVERY || self.waits.is_multiple_of(MEASURE_EVERY);
        self.waits = self.waits.wrapping_add(1);
        let before = (learning && measuring).then(|| {
            let thought_ns = self.clock.now_ordered().saturating_sub(begun);
            (thought_ns, self.mechanism.cpu_time_ns())
        });
        self.mechanism.spin_follows();
        self.mechanism.clock_says(begun);
        let waited = match self.settings.policy {
            SleepPolicy::Thesis { .. } => self.wait_relative(begun, until),
            _ => self.wait_absolute(place, until),
        };
        self.mechanism.clock_says(waited.woke_ns);
        // Also of those that are late: they cost more than the others.
        let cost = before.map(|(thought_ns, cpu_ns)| WaitCost {
            wait_ns: self.mechanism.cpu_time_ns().saturating_sub(cpu_ns),
            thought_ns,
        });
        FinishedWait { cost, ..waited }
    }

    /// Waits for an absolute time, without slack.
    #[inline(always)]
    fn wait_absolute(&mut self, place: MarginKey, until: u64) -> FinishedWait {
        let none = self.has_no_slack || place.class.is_real_time();
        let slack = if none { None } else { self.mechanism.slack_ns() };
        let slack = slack.filter(|slack| *slack > LEAST_SLACK_NS);
        if slack.is_some() {
            self.mechanism.set_slack_ns(LEAST_SLACK_NS);
        }
        self.interrupter.enter();
        let (woke_ns, interrupted) = loop {
            let Some((word, value)) = self.interrupter.unset() else {
                break (self.clock.now_ordered(), true);
            };
            let woken = self.mechanism.wait_until(word, value, until);
            let now = self.clock.now_ordered();
            // Otherwise a signal, or a wake-up for another purpose: there is time left to wait.
            if woken == WakeReason::Timeout || now >= until {
                break (now, false);
            }
        };
        self.interrupter.leave();
        if let Some(slack) = slack {
            self.mechanism.set_slack_ns(slack);
        }
        FinishedWait { woke_ns, target_ns: until, interrupted, cost: None }
    }

    /// Waits for a length of time as the thesis does: once, with the slack that the thread has, for
    /// the length computed before. `usleep`, but on the word that interrupts it.
    fn wait_relative(&mut self, begun: u64, until: u64) -> FinishedWait {
        self.interrupter.enter();
        if let Some((word, value)) = self.interrupter.unset() {
            self.mechanism.wait_for(word, value, until - begun);
        }
        self.interrupter.leave();
        FinishedWait {
            woke_ns: self.clock.now_ordered(),
            target_ns: until,
            interrupted: self.interrupter.is_set(),
            cost: None,
        }
    }

    /// Waits in the kernel until about that time, and learns nothing from it; `false` if
    /// interrupted.
    pub(super) fn wait_coarsely(&mut self, until: u64) -> bool {
        let place = self.place(u64::MAX);
        !self.wait_absolute(place, until).interrupted
    }

    /// Before the spin, where it costs nothing.
    fn record_wait(
        &mut self,
        place: MarginKey,
        plan: SleepPlan,
        waited: FinishedWait,
        deadline: u64,
    ) {
        if self.settings.policy == SleepPolicy::Learned && !waited.interrupted {
            let overhead = waited.woke_ns.saturating_sub(waited.target_ns);
            let late = waited.woke_ns >= deadline;
            self.margins.record(&self.settings, place, plan, overhead, late);
            if let Some(cost) = waited.cost {
                self.margins.record_cost(&self.settings, place, cost);
            }
        }
    }

    /// Charges the last sleep to the account; not at its end, where it would make it late.
    pub(super) fn settle(&mut self) {
        if let Some(charge) = self.charge.take() {
            self.margins.charge(&self.settings, charge);
        }
    }

    pub(super) fn place(&mut self, length_ns: u64) -> MarginKey {
        let class = match self.class {
            Some(class) if length_ns < WORTH_ASKING_NS => class,
            _ => *self.class.insert(self.mechanism.class()),
        };
        MarginKey { class, cpu: self.mechanism.cpu(), length: Length::for_length(length_ns) }
    }

    fn surely_reached(&self, now: u64, deadline: u64) -> bool {
        now >= deadline
            && (self.settings.ends_when == SleepEnd::Reached
                || self.clock.now_bounded().earliest >= deadline)
    }
}
