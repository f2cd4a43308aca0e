//! One gap, all that is known about it, and the verdict.
//!
//! Confidences that are constants here are the shares measured against the kernel's own events,
//! rounded down: they are what the rule is worth where nothing else speaks. What is not calibrated has at most 0.85.

use crate::{IntervalStart, KernelEvent};
use hourglass_documents::{Cause, Policy};

use super::facts::{RunFacts, ThreadFacts};
use super::gap::{CauseBasis, GapBreakdown, GapOccupants, Successor};
use super::indications::{Indication, IndicationSet};
use super::kernel::KernelEvidence;
use super::switch_evidence::SwitchEvidence;
use super::throttled::gave_way;

/// On its way into the kernel and out an interrupt takes no longer than this, ns; in virtual
/// machines 12 us are usual. What is silent for longer was not the interrupt's delivery.
const DELIVERY_NS: u64 = 50_000;
/// A wait was counted for a thread that never waits: it was stopped, or waited for a page.
const STOPPED: f64 = 0.8;
/// No interrupt but ticks was counted while the gap was: of 2,000 such gaps 2 had an event of the kernel.
const BELOW_QUIET: f64 = 0.98;
/// Gaps of that size are periodic, and their period is not the tick's.
const BELOW_PERIODIC: f64 = 0.97;
/// The gap is shorter than half of the shortest ticks, in a virtual machine.
const BELOW_SHORT: f64 = 0.97;
/// Of gaps of that size no more than this part can be interrupts; half of it is to be expected.
pub(super) const MOST_INTERRUPTS: f64 = 0.1;
/// An interrupt, where ticks were counted that do not show.
const WITHOUT_TICKS: f64 = 0.5;
/// An interrupt, or what is below the kernel.
const IRQ_OR_BELOW: f64 = 0.97;
/// The critical section was cleared, and a tick was due, although most gaps there are something else.
const TICK_CLEARED: f64 = 0.9;
/// The critical section was cleared, nothing was counted: an interrupt that thought of switching.
const INTERRUPT_CLEARED: f64 = 0.7;
/// An interrupt, where it is only known that no switch is possible (section 4, third rule).
const INTERRUPT_BY_RULE: f64 = 0.6;
/// The kernel recorded nothing, but lost events somewhere in the run.
const SILENT_WITH_LOSSES: f64 = 0.6;
/// A stop of the length of a throttling, once: beside a real-time competitor with such turns, 3 of 11 were right. At the
/// period's distance from others it is not calibrated.
const THROTTLED_ONCE: f64 = 0.27;
const THROTTLED_PERIODIC: f64 = 0.85;
/// A stop of that length, once, and the kernel said that it throttles.
const THROTTLED_LOGGED: f64 = 0.85;
/// A quota stopped the group in the run, and the CPU was idle while the thread could have run.
const QUOTA_BY_IDLE: f64 = 0.9;
/// Time-sharing threads ran while a real-time thread could have. One that had its priority from a lock looks the same.
const TIME_SHARED: f64 = 0.9;
/// A budget explains a long gap that ends on its grid, at most with this: it is not calibrated.
pub(super) const MOST_BUDGET: f64 = 0.85;
/// The most for a quota: beside other work, 72 of 79 were right.
pub(super) const MOST_QUOTA: f64 = 0.91;
/// The thread yielded and was away for longer than a yield takes; no more is known.
const YIELDED: f64 = 0.7;
/// The thread continued on another CPU, and no more is known; not calibrated.
const MOVED: f64 = 0.85;
/// A gap of a thread that may be switched, without further evidence.
const GUESSED: f64 = 0.3;
/// A thread that was made ready long after it was due: its timer's interrupt was late; not calibrated.
const WOKEN_LATE: f64 = 0.85;
/// A gap that ordinary threads make each other is not shorter, ns: the shortest turn that
/// schedulers give.
const TURN_NS: u64 = 500_000;
const TICK_NS: u64 = 500_000;

pub(super) struct Case<'a> {
    pub(super) facts: &'a RunFacts,
    pub(super) thread: Option<&'a ThreadFacts>,
    pub(super) onset: IntervalStart,
    pub(super) length: u64,
    pub(super) kernel_evidence: Option<KernelEvidence>,
    pub(super) switched: Option<SwitchEvidence>,
    pub(super) successor: Option<u32>,
    pub(super) cpu_changed: bool,
    pub(super) highest: bool,
    pub(super) stops: ThrottlePatterns,
    pub(super) tick: Option<f64>,
    /// Whether a tick is where the gap is, even if ticks do not show among the gaps.
    pub(super) tick_due: bool,
    pub(super) ticks_known: bool,
    pub(super) periodic: bool,
    /// Whether ticks were counted that do not show among the gaps.
    pub(super) ticks_missing: bool,
    /// Whether it is shorter than ticks, and shorter interrupts are too few.
    pub(super) too_short: bool,
    /// Whether no interrupt but ticks was counted meanwhile.
    pub(super) quiet: bool,
    /// Which part of the gaps of that size interrupts can be at most, where that is known.
    pub(super) interrupts_share: Option<f64>,
    pub(super) signs: IndicationSet,
}

/// Patterns of being kept off the CPU that the gap fits, with what they are worth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThrottlePatterns {
    /// Whether such gaps are a period apart; `None` for a gap not as long as a throttling.
    pub(super) throttled: Option<bool>,
    /// Ended at a replenishment.
    pub(super) replenished: Option<f64>,
    pub(super) in_user_space: bool,
    /// Ended with a quota's period.
    pub(super) quota: Option<f64>,
    /// May be a quota's whose periods do not show: which part of such gaps is at most.
    pub(super) unplaced: Option<f64>,
    /// May hold a throttling: how sure it is that it does not.
    pub(super) without_stop: Option<f64>,
}

/// A cause, how it is known, who had the CPU, where the time went.
pub(super) struct Verdict {
    pub(super) cause: Cause,
    pub(super) basis: CauseBasis,
    pub(super) signs: IndicationSet,
    pub(super) to: Option<Successor>,
    pub(super) ran: GapOccupants,
    pub(super) composition: Option<GapBreakdown>,
}

impl Case<'_> {
    pub(super) fn classify(mut self) -> Verdict {
        let (cause, basis) = match self.kernel_evidence {
            _ if self.onset == IntervalStart::Late => self.late_begin(),
            Some(evidence) if !evidence.hole => self.by_kernel(&evidence),
            evidence => {
                if evidence.is_some() {
                    self.signs.insert(Indication::KernelLost);
                }
                self.without_kernel()
            }
        };
        let evidence = self.kernel_evidence.filter(|evidence| !evidence.hole);
        let named = evidence
            .and_then(|evidence| evidence.next_thread)
            .filter(|to| *to != KernelEvent::UNTOLD);
        let ran = evidence.map(|evidence| evidence.occupants).unwrap_or_default();
        let kernel = ran.longest().map(|share| share.who).or(named.map(Successor::Kernel));
        let recorded = match self.switched {
            Some(SwitchEvidence::Out { to, .. }) => to,
            _ => None,
        };
        Verdict {
            cause,
            basis,
            signs: self.signs,
            to: kernel.or(self.successor.or(recorded).map(Successor::OfRun)),
            ran,
            composition: evidence.map(|evidence| evidence.composition),
        }
    }

    pub(super) fn judge_unstarted(self) -> Verdict {
        let (cause, basis) = match self.successor {
            Some(_) => (Cause::ContextSwitch, CauseBasis::Seen),
            None => (Cause::Unknown, CauseBasis::Inferred { confidence: GUESSED }),
        };
        Verdict {
            cause,
            basis,
            signs: self.signs,
            to: self.successor.map(Successor::OfRun),
            ran: GapOccupants::default(),
            composition: None,
        }
    }

    /// The thread was due after a wait of its own: either others had the CPU, or it was made ready late.
    fn late_begin(&mut self) -> (Cause, CauseBasis) {
        if self.signs.contains(Indication::WaitedForCpu) {
            let cause = Cause::ContextSwitchInvoluntary;
            return self.stopped_by_rule().unwrap_or_else(|| (cause, self.unless_stopped(cause)));
        }
        match self.signs.contains(Indication::WokenLate) {
            true => (Cause::IrqOrBelow, CauseBasis::Inferred { confidence: WOKEN_LATE }),
            false => (Cause::Unknown, CauseBasis::Inferred { confidence: GUESSED }),
        }
    }

    fn by_kernel(&mut self, evidence: &KernelEvidence) -> (Cause, CauseBasis) {
        if evidence.next_thread.is_some() {
            self.signs.insert(Indication::KernelSwitch);
        }
        if evidence.worked {
            self.signs.insert(Indication::KernelWork);
        }
        if evidence.stopped {
            self.signs.insert(Indication::StoppedState);
            return (Cause::Stopped, CauseBasis::Seen);
        }
        let sums = evidence.composition;
        if evidence.next_thread.is_some() {
            if let Some(stop) = self.stopped_by_rule() {
                return stop;
            }
            let rest = sums.tick_ns.max(sums.irq_ns).max(sums.softirq_ns).max(sums.fault_ns);
            let silent = sums.silent_ns.saturating_sub(DELIVERY_NS);
            if sums.switched_ns >= rest.max(silent) {
                return match self.switch_seen(evidence) {
                    Cause::ContextSwitchInvoluntary if is_idle(evidence) => self.kept_from_idle(),
                    Cause::ContextSwitchInvoluntary
                        if gave_way(self.facts, self.thread, evidence) =>
                    {
                        self.signs.insert(Indication::TimeSharing);
                        (Cause::RtThrottling, CauseBasis::Inferred { confidence: TIME_SHARED })
                    }
                    cause => (cause, CauseBasis::Seen),
                };
            }
        }
        if !evidence.worked && evidence.next_thread.is_none() {
            return self.silent(evidence);
        }
        (longest(evidence), CauseBasis::Seen)
    }

    /// A thread that could run left a CPU to idleness: something forbade it to run, or an event is missing.
    fn kept_from_idle(&mut self) -> (Cause, CauseBasis) {
        self.signs.insert(Indication::IdleMeanwhile);
        let throttled = self.facts.quota.is_some_and(|quota| quota.throttled > 0);
        if throttled
            && self.thread.and_then(|thread| thread.policy).is_none_or(|of| !is_real_time(of))
        {
            self.signs.insert(Indication::QuotaCounted);
            return (Cause::CgroupQuota, CauseBasis::Inferred { confidence: QUOTA_BY_IDLE });
        }
        (Cause::Unknown, CauseBasis::Inferred { confidence: GUESSED })
    }

    fn switch_seen(&self, evidence: &KernelEvidence) -> Cause {
        if evidence.moved_away && self.cpu_changed {
            Cause::Migration
        } else if evidence.waiting || self.onset == IntervalStart::Yield {
            Cause::ContextSwitchVoluntary
        } else {
            Cause::ContextSwitchInvoluntary
        }
    }

    fn silent(&mut self, evidence: &KernelEvidence) -> (Cause, CauseBasis) {
        if evidence.complete {
            self.signs.insert(Indication::KernelSilent);
            if self.periodic {
                self.signs.insert(Indication::Periodic);
            }
            return (Cause::BelowKernel, CauseBasis::Seen);
        }
        match self.counted_switch() {
            Some(cause) => (cause, CauseBasis::Seen),
            None => (Cause::BelowKernel, CauseBasis::Inferred { confidence: SILENT_WITH_LOSSES }),
        }
    }

    fn without_kernel(&mut self) -> (Cause, CauseBasis) {
        let counted = self.recorded_switch().or_else(|| self.counted_switch());
        let seen = self.successor.is_some();
        let kept = [Indication::NotCleared, Indication::NoneCounted, Indication::NoRecordedSwitch];
        let kept = kept.into_iter().any(|sign| self.signs.contains(sign));
        if (!kept || seen || counted.is_some())
            && let Some(stop) = self.stopped_by_rule()
        {
            return stop;
        }
        if let Some(cause) = counted {
            return self.unless_own_wait(cause);
        }
        if seen {
            return (self.interleaved(), CauseBasis::Seen);
        }
        if kept { self.classify_not_switched() } else { self.by_the_trace() }
    }

    /// Throttling, a budget, a quota: all look like switches, so these rules come first.
    fn stopped_by_rule(&mut self) -> Option<(Cause, CauseBasis)> {
        let inferred = |cause, confidence| Some((cause, CauseBasis::Inferred { confidence }));
        if let Some(confidence) = self.stops.replenished {
            self.signs.insert(Indication::Replenished);
            let cause = match self.stops.in_user_space {
                true => Cause::ReservationBudget,
                false => Cause::DeadlineBudget,
            };
            return inferred(cause, confidence.min(MOST_BUDGET));
        }
        if let Some(periodic) = self.stops.throttled {
            self.signs.insert(Indication::ThrottlingLength);
            let logged = self.facts.rt_limit.is_some_and(|limit| limit.logged);
            if logged {
                self.signs.insert(Indication::ThrottlingLogged);
            }
            if periodic {
                self.signs.insert(Indication::ThrottlingPeriod);
                return inferred(Cause::RtThrottling, THROTTLED_PERIODIC);
            }
            let once = if logged { THROTTLED_LOGGED } else { THROTTLED_ONCE };
            return inferred(Cause::RtThrottling, once);
        }
        // Another thread of the run in the same control group could not have run meanwhile.
        let confidence = self.stops.quota.filter(|_| self.successor.is_none())?;
        self.signs.insert(Indication::QuotaPeriod);
        self.signs.insert(Indication::QuotaCounted);
        inferred(Cause::CgroupQuota, confidence.min(MOST_QUOTA))
    }

    /// How a switch is known that the kernel counted or recorded: the kernel counts stops by a quota or by
    /// the real-time limit as involuntary too.
    fn unless_stopped(&mut self, cause: Cause) -> CauseBasis {
        let involuntary = cause == Cause::ContextSwitchInvoluntary && self.successor.is_none();
        if !involuntary {
            return CauseBasis::Seen;
        }
        if let Some(most) = self.stops.unplaced {
            self.signs.insert(Indication::QuotaCounted);
            return CauseBasis::Inferred { confidence: (1.0 - most).max(GUESSED) };
        }
        let Some(confidence) = self.stops.without_stop else { return CauseBasis::Seen };
        self.signs.insert(Indication::ThrottlingPossible);
        CauseBasis::Inferred { confidence: confidence.max(GUESSED) }
    }

    /// A switch that was counted or recorded. A wait of a thread that never waits was no wait of its own: it was
    /// stopped (by a signal, a tracer or the freezer), unless it waited for a page.
    fn unless_own_wait(&mut self, cause: Cause) -> (Cause, CauseBasis) {
        let basis = self.unless_stopped(cause);
        let never = self.thread.is_some_and(|thread| thread.never_waits && !thread.waits_unseen);
        // A competitor that had the CPU before, or behind, is counted too.
        let counted = self.signs.contains(Indication::CountedVoluntary);
        let waited = cause == Cause::ContextSwitchVoluntary || counted;
        if !never || !waited || self.onset == IntervalStart::Yield {
            return (cause, basis);
        }
        if self.signs.contains(Indication::CountedFault) {
            return (Cause::PageFault, CauseBasis::Inferred { confidence: STOPPED });
        }
        self.signs.insert(Indication::NeverWaits);
        (Cause::Stopped, CauseBasis::Inferred { confidence: STOPPED })
    }

    fn recorded_switch(&mut self) -> Option<Cause> {
        let (sign, cause) = match self.switched? {
            SwitchEvidence::Kept => (Indication::NoRecordedSwitch, None),
            // A thread that yields stays runnable, as one does that is preempted.
            SwitchEvidence::Out { waited, .. } if waited || self.onset == IntervalStart::Yield => {
                (Indication::RecordedSwitch, Some(Cause::ContextSwitchVoluntary))
            }
            SwitchEvidence::Out { .. } => {
                (Indication::RecordedSwitch, Some(Cause::ContextSwitchInvoluntary))
            }
        };
        self.signs.insert(sign);
        cause
    }

    /// The cause by the kernel's counters.
    fn counted_switch(&self) -> Option<Cause> {
        let involuntary = self.signs.contains(Indication::CountedInvoluntary);
        let voluntary = self.signs.contains(Indication::CountedVoluntary);
        match (involuntary, voluntary) {
            // A yield that switches is counted as involuntary (kernel/sched/core.c).
            (true, _) if self.onset == IntervalStart::Yield => Some(Cause::ContextSwitchVoluntary),
            (true, _) => Some(Cause::ContextSwitchInvoluntary),
            (false, true) => Some(Cause::ContextSwitchVoluntary),
            (false, false) => None,
        }
    }

    /// Another thread of the run had the CPU (section 4, first and second rule).
    fn interleaved(&self) -> Cause {
        let thread = self.thread.copied();
        match self.onset {
            IntervalStart::Yield => Cause::ContextSwitchVoluntary,
            _ if thread.is_some_and(|thread| thread.waits_unseen) => Cause::ContextSwitch,
            _ if thread.is_some_and(|thread| thread.never_waits) => Cause::ContextSwitchInvoluntary,
            // The recorder marks waits and yields; but of a thread of which nothing is known it
            // may be anybody's trace.
            _ if thread.is_some() => Cause::ContextSwitchInvoluntary,
            _ => Cause::ContextSwitch,
        }
    }

    /// The thread was not switched out: a fault, a tick, another interrupt, or what is below.
    fn classify_not_switched(&mut self) -> (Cause, CauseBasis) {
        if self.signs.contains(Indication::CountedFault) {
            return (Cause::PageFault, CauseBasis::Seen);
        }
        if self.cpu_changed {
            return (Cause::Migration, CauseBasis::Inferred { confidence: MOVED });
        }
        if let Some(confidence) = self.tick {
            self.signs.insert(Indication::OnTickGrid);
            let confidence = match self.length > TICK_NS {
                true => confidence / 2.0,
                false => confidence,
            };
            return (Cause::TimerTick, CauseBasis::Inferred { confidence });
        }
        if self.signs.contains(Indication::Cleared) && self.tick_due {
            self.signs.insert(Indication::OnTickGrid);
            return (Cause::TimerTick, CauseBasis::Inferred { confidence: TICK_CLEARED });
        }
        if self.signs.contains(Indication::Cleared) {
            return (Cause::Irq, CauseBasis::Inferred { confidence: INTERRUPT_CLEARED });
        }
        self.classify_below_kernel()
    }

    /// No switch, no fault, no tick: an interrupt, or a cause below the kernel. The kernel's counts
    /// of interrupts show when there was no interrupt, or fewer than gaps.
    fn classify_below_kernel(&mut self) -> (Cause, CauseBasis) {
        let machine = self.facts.virtual_machine;
        if machine == Some(true) {
            self.signs.insert(Indication::VirtualMachine);
        }
        if self.periodic {
            self.signs.insert(Indication::Periodic);
        }
        let inferred = |cause, confidence| (cause, CauseBasis::Inferred { confidence });
        // Evidence of the ticks also shows when no other interrupt came.
        if self.ticks_missing {
            self.signs.insert(Indication::TicksMissing);
            return inferred(Cause::IrqOrBelow, WITHOUT_TICKS);
        }
        if self.quiet {
            self.signs.insert(Indication::NoInterruptCounted);
            return inferred(Cause::BelowKernel, BELOW_QUIET);
        }
        if machine == Some(true) && self.periodic {
            return inferred(Cause::BelowKernel, BELOW_PERIODIC);
        }
        if let Some(share) = self.interrupts_share.filter(|share| *share <= MOST_INTERRUPTS) {
            self.signs.insert(Indication::FewInterrupts);
            return inferred(Cause::BelowKernel, (1.0 - share / 2.0).min(BELOW_QUIET));
        }
        if machine == Some(true) && self.too_short {
            self.signs.insert(Indication::ShorterThanTicks);
            return inferred(Cause::BelowKernel, BELOW_SHORT);
        }
        match machine {
            Some(false) => inferred(Cause::Irq, INTERRUPT_BY_RULE),
            _ => inferred(Cause::IrqOrBelow, IRQ_OR_BELOW),
        }
    }

    /// Neither the kernel's events nor the thread's own evidence: section 4's rules.
    fn by_the_trace(&mut self) -> (Cause, CauseBasis) {
        let inferred = |cause, confidence| (cause, CauseBasis::Inferred { confidence });
        if self.cpu_changed {
            return inferred(Cause::Migration, MOVED);
        }
        if let Some(confidence) = self.tick.filter(|_| self.length <= TICK_NS) {
            self.signs.insert(Indication::OnTickGrid);
            return inferred(Cause::TimerTick, confidence);
        }
        if self.signs.contains(Indication::Cleared) {
            return inferred(Cause::ContextSwitch, 0.5);
        }
        if self.onset == IntervalStart::Yield {
            return inferred(Cause::ContextSwitchVoluntary, YIELDED);
        }
        if self.highest {
            self.signs.insert(Indication::HighestPriority);
            return match self.facts.virtual_machine {
                Some(true) => self.classify_below_kernel(),
                _ => inferred(Cause::Irq, INTERRUPT_BY_RULE),
            };
        }
        if self.periodic {
            return self.classify_below_kernel();
        }
        let real_time = self.thread.and_then(|thread| thread.policy).is_some_and(is_real_time);
        match self.length >= TURN_NS && !real_time {
            true => inferred(Cause::ContextSwitch, 0.6),
            false if self.facts.virtual_machine == Some(true) && self.ticks_known => {
                self.classify_below_kernel()
            }
            false => inferred(Cause::Unknown, GUESSED),
        }
    }
}

pub(super) fn is_real_time(policy: Policy) -> bool {
    matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline)
}

/// Whether the CPU was idle for most of the time in which the thread was off it.
fn is_idle(evidence: &KernelEvidence) -> bool {
    let idle = evidence.occupants.iter().find(|share| share.who == Successor::Kernel(0));
    idle.is_some_and(|idle| idle.ns > evidence.composition.switched_ns / 2)
}

/// The work that took the longest. What no event accounts for is the delivery of that work, but
/// for what is longer than any delivery.
fn longest(evidence: &KernelEvidence) -> Cause {
    let sums = evidence.composition;
    let tick = if evidence.other_timer { Cause::Irq } else { Cause::TimerTick };
    let silent = sums.silent_ns.saturating_sub(DELIVERY_NS);
    let parts = [
        (sums.switched_ns, Cause::ContextSwitch),
        (sums.signal_ns, Cause::Stopped),
        (sums.softirq_ns, Cause::Softirq),
        (sums.irq_ns, Cause::Irq),
        (sums.fault_ns, Cause::PageFault),
        (sums.tick_ns, tick),
    ];
    match parts.into_iter().max_by_key(|(ns, _)| *ns) {
        Some((ns, _)) if silent > ns => Cause::BelowKernel,
        Some((_, cause)) => cause,
        None => Cause::Unknown,
    }
}
