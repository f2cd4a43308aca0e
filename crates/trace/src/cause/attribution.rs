//! The second reading of a trace: each gap gets its cause.

use std::collections::BTreeMap;

use crate::delay::{BudgetEnds, Delay, RunSegment};
use crate::model::Budget;
use crate::{Interval, IntervalStart, KernelEvent};
use hourglass_documents::{Cause, Policy};

use super::classify::{Case, MOST_BUDGET, MOST_INTERRUPTS, ThrottlePatterns};
use super::facts::{InterruptFacts, RunFacts};
use super::gap::{AttributedGap, Successor, length_ns};
use super::grid::{GapGrid, is_within};
use super::indications::{Indication, IndicationSet};
use super::kernel::{KernelEvidence, KernelSide, Soundness};
use super::periodic_gaps::RepeatFollower;
use super::switch_evidence::{SwitchEvidence, SwitchSide};
use super::trace_patterns::{
    Patterns, Ticks, longest_tick_ns, may_be_budget, may_be_quota, may_be_throttling, tick_ns,
};

/// Events inside intervals are checked once there are this many of them.
const INSIDE_FEWEST: u64 = 32;
/// If more than one in this number of events of threads of the run lies where the thread was seen to
/// run, events and trace do not have one time line.
const INSIDE_ONE_IN: u64 = 5;

/// Share of the gaps on a grid that had to be found in a virtual machine that were the guest's tick: measured in nine
/// runs under load, from 0 to 0.69.
const TICK_FOUND: f64 = 0.3;

/// Gives each gap its cause. Takes intervals in order of start, and between them the kernel's
/// events in order of time: before an interval all events up to [`Attribution::wants_events_to`].
///
/// Memory: some kilobytes for each CPU and thread.
#[derive(Clone, Debug)]
pub struct Attribution<'a> {
    facts: &'a RunFacts,
    patterns: &'a Patterns,
    kernel: Option<KernelSide<'a>>,
    switches: Option<SwitchSide<'a>>,
    threads: BTreeMap<u32, Thread>,
    cpus: BTreeMap<u32, Cpu>,
    /// Of threads of the deadline class.
    budgets: BTreeMap<u32, BudgetEnds>,
    last_start_ns: i64,
    remarks: AttributionCounts,
    ran: RanByCause,
}

/// Who had the CPU in the gaps of each cause, and for how long, ns.
pub type RanByCause = BTreeMap<Cause, BTreeMap<Successor, u64>>;

#[derive(Clone, Copy, Debug)]
struct Thread {
    cpu: u32,
    start_ns: i64,
    end_ns: i64,
    successor: Option<u32>,
    /// Whether the thread was to run from here on, and was not seen to run.
    unstarted: bool,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    occupant: Option<u32>,
    end_ns: i64,
    repeats: RepeatFollower,
    last_tick: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributionCounts {
    pub intervals: u64,
    pub gaps: u64,
    /// Gaps too short to have one of their own.
    pub short: u64,
    /// Sum of their lengths, ns.
    pub short_ns: u64,
    /// Gaps with a cause about which the thread itself found out something.
    pub with_evidence: u64,
    /// Gaps with a cause that the kernel's events cover without a hole.
    pub with_events: u64,
    pub in_holes: u64,
    /// Intervals that began while another of the same CPU, or of the same thread, went on.
    pub overlapping: u64,
    pub out_of_order: u64,
    pub events: u64,
    pub events_inside: u64,
    pub events_lost: u64,
    /// Whether the kernel's events were not believed, because too many lie inside of intervals.
    pub events_refused: bool,
}

impl<'a> Attribution<'a> {
    /// Gives causes by these facts, and by the patterns that a [`super::TracePatterns`] found.
    pub fn new(facts: &'a RunFacts, patterns: &'a Patterns) -> Attribution<'a> {
        let kernel = KernelSide::new(facts, facts.tick_hz.map(tick_ns));
        let switches = if kernel.is_none() { SwitchSide::new(facts) } else { None };
        Attribution {
            facts,
            patterns,
            kernel,
            switches,
            threads: BTreeMap::new(),
            cpus: BTreeMap::new(),
            last_start_ns: i64::MIN,
            budgets: BTreeMap::new(),
            remarks: AttributionCounts::default(),
            ran: RanByCause::new(),
        }
    }

    /// Up to which moment events must have been given before `interval` is, ns.
    pub fn wants_events_to(&self, interval: &Interval) -> i64 {
        let traced = self.kernel.as_ref().map(KernelSide::error_ns);
        let error_ns = traced.or(self.switches.as_ref().map(SwitchSide::error_ns)).unwrap_or(0);
        interval.start_ns.saturating_add(error_ns)
    }

    pub fn event(&mut self, event: &KernelEvent) {
        self.remarks.events = self.remarks.events.saturating_add(1);
        if let Some(kernel) = &mut self.kernel {
            kernel.event(event);
        }
        if let Some(switches) = &mut self.switches {
            switches.event(event);
        }
    }

    /// Takes the next interval, and gives the gap before it if it has a cause of its own.
    pub fn push(&mut self, interval: &Interval) -> Option<AttributedGap> {
        self.remarks.intervals = self.remarks.intervals.saturating_add(1);
        self.look_at_order(interval);
        self.note_successor(interval);
        let evidence = self.kernel.as_mut().and_then(|kernel| kernel.run(interval));
        let switched = self.switches.as_mut().and_then(|switches| switches.run(interval));
        let fresh = Thread {
            cpu: interval.cpu,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            successor: None,
            unstarted: interval.onset == IntervalStart::Start && is_edge(interval),
        };
        let before = self.threads.insert(interval.thread, fresh)?;
        let budget_end = self.budget_end(&before, interval, evidence);
        if !interval.onset.is_gap() {
            return None;
        }
        let length = length_ns(before.end_ns, interval.start_ns);
        if length <= self.facts.reported_ns {
            self.remarks.short = self.remarks.short.saturating_add(1);
            self.remarks.short_ns = self.remarks.short_ns.saturating_add(length);
            return None;
        }
        let gap = self.attribute(&before, interval, (evidence, switched), budget_end);
        if let Some(kernel) = self.kernel.as_ref().filter(|_| gap.occupants.longest().is_some()) {
            let all = self.ran.entry(gap.cause).or_default();
            for share in kernel.all_that_ran() {
                let sum = all.entry(share.who).or_default();
                *sum = sum.saturating_add(share.ns);
            }
        }
        Some(gap)
    }

    /// From here on there are no more events, although the run went on: they could not be read.
    pub fn lose_events(&mut self) {
        self.kernel = None;
        self.switches = None;
    }

    /// Who had the CPU so far: all threads, not only the few that a gap names.
    pub fn ran(&self) -> &RanByCause {
        &self.ran
    }

    pub fn remarks(&self) -> AttributionCounts {
        let sound = self.soundness();
        AttributionCounts {
            events_inside: sound.inside,
            events_lost: sound.lost,
            events_refused: self.events_refused(),
            ..self.remarks
        }
    }

    fn soundness(&self) -> Soundness {
        let traced = self.kernel.as_ref().map(|side| side.soundness);
        traced.or(self.switches.as_ref().map(|side| side.soundness)).unwrap_or_default()
    }

    fn events_refused(&self) -> bool {
        let sound = self.soundness();
        let all = sound.inside.saturating_add(sound.in_gaps);
        sound.inside >= INSIDE_FEWEST && sound.inside > all / INSIDE_ONE_IN
    }

    fn look_at_order(&mut self, interval: &Interval) {
        if interval.start_ns < self.last_start_ns {
            self.remarks.out_of_order = self.remarks.out_of_order.saturating_add(1);
        }
        self.last_start_ns = self.last_start_ns.max(interval.start_ns);
        let own = self.threads.get(&interval.thread).is_some_and(|t| t.end_ns > interval.start_ns);
        // Where a thread is about to have the CPU at the end of the run, another has it still.
        let runs = !is_edge(interval);
        let late = |cpu: &Cpu| runs && cpu.end_ns > interval.start_ns;
        let cpu = self.cpus.get(&interval.cpu).is_some_and(late);
        if own || cpu {
            self.remarks.overlapping = self.remarks.overlapping.saturating_add(1);
        }
    }

    /// Tells the thread that had the CPU last who has it now (section 4, first rule).
    fn note_successor(&mut self, interval: &Interval) {
        let cpu = self.cpus.entry(interval.cpu).or_default();
        cpu.end_ns = interval.end_ns;
        let Some(last) = cpu.occupant.replace(interval.thread) else { return };
        if last != interval.thread
            && let Some(thread) = self.threads.get_mut(&last)
            && thread.cpu == interval.cpu
            && thread.end_ns <= interval.start_ns
        {
            thread.successor.get_or_insert(interval.thread);
        }
    }

    fn attribute(
        &mut self,
        before: &Thread,
        interval: &Interval,
        (evidence, switched): (Option<KernelEvidence>, Option<SwitchEvidence>),
        budget_end: Option<bool>,
    ) -> AttributedGap {
        let length = length_ns(before.end_ns, interval.start_ns);
        let refused = self.events_refused();
        let (evidence, switched) = (evidence.filter(|_| !refused), switched.filter(|_| !refused));
        self.count(interval, evidence);
        let cpu_changed = before.cpu != interval.cpu;
        let thread = self.facts.threads.get(&interval.thread);
        let ticks = self.patterns.ticks.get(&before.cpu);
        let own = |ticks: &&Ticks| self.is_next_tick(ticks, before, interval.start_ns);
        let due = ticks.filter(own);
        let counted = self.facts.interrupts.get(&before.cpu);
        let tick = due.and_then(|ticks| match ticks.show() {
            true => Some(self.tick_confidence(ticks)),
            false => ticks.among_others(length, counted?.timer),
        });
        let case = Case {
            facts: self.facts,
            thread,
            onset: interval.onset,
            length,
            kernel_evidence: evidence,
            switched,
            successor: before.successor,
            cpu_changed,
            highest: thread.is_some_and(|thread| thread.highest && thread.never_waits),
            stops: self.stops(before, interval, length, budget_end.filter(|_| !refused)),
            tick,
            tick_due: due.is_some(),
            ticks_known: ticks.is_some_and(Ticks::show),
            periodic: tick.is_none() && self.periodic(before, length),
            too_short: ticks.and_then(Ticks::too_short_ns).is_some_and(|least| length < least)
                && self
                    .part(before, length, |of| of.others)
                    .is_some_and(|part| part <= MOST_INTERRUPTS),
            ticks_missing: ticks.zip(counted).is_some_and(|(of, all)| of.contradict(all.timer)),
            quiet: self.quiet(before, interval.start_ns),
            interrupts_share: self.part(before, length, |of| of.most),
            signs: signs(before, interval),
        };
        // Evidence of the thread and of the kernel concerns only threads that had begun to run.
        let verdict = match before.unstarted && interval.evidence.is_none() {
            true => case.judge_unstarted(),
            false => case.classify(),
        };
        AttributedGap {
            thread: interval.thread,
            cpu_before: before.cpu,
            cpu_after: interval.cpu,
            start_ns: before.end_ns,
            end_ns: interval.start_ns,
            cause: verdict.cause,
            basis: verdict.basis,
            evidence: verdict.signs,
            to_thread: verdict.to,
            occupants: verdict.ran,
            composition: verdict.composition,
        }
    }

    fn count(&mut self, interval: &Interval, evidence: Option<KernelEvidence>) {
        let remarks = &mut self.remarks;
        remarks.gaps = remarks.gaps.saturating_add(1);
        remarks.with_evidence =
            remarks.with_evidence.saturating_add(u64::from(!interval.evidence.is_none()));
        if let Some(evidence) = evidence {
            let count =
                if evidence.hole { &mut remarks.in_holes } else { &mut remarks.with_events };
            *count = count.saturating_add(1);
        }
    }

    /// Whether the gap is a tick that no other gap was before: a tick comes once.
    fn is_next_tick(&mut self, ticks: &Ticks, before: &Thread, end_ns: i64) -> bool {
        let Some(point) = ticks.point(before.end_ns, end_ns) else { return false };
        let cpu = self.cpus.entry(before.cpu).or_default();
        cpu.last_tick.replace(point) != Some(point)
    }

    fn periodic(&mut self, before: &Thread, length: u64) -> bool {
        let Some(repeats) = self.patterns.repeats.get(&before.cpu) else { return false };
        let cpu = self.cpus.entry(before.cpu).or_default();
        let period_ns = cpu.repeats.push(repeats, before.end_ns, length);
        // The timer of a quota is the guest's own.
        let quota =
            |ns: u64| self.facts.quota.is_some_and(|quota| is_within(ns, quota.period_ns, 32));
        period_ns.is_some_and(|ns| !quota(ns))
    }

    /// In a virtual machine a grid that had to be found is the host's tick as often as not.
    fn tick_confidence(&self, ticks: &Ticks) -> f64 {
        let sure = ticks.is_clocked() || self.facts.virtual_machine == Some(false);
        let most = if sure { 1.0 } else { TICK_FOUND };
        ticks.confidence().min(most)
    }

    /// Whether no interrupt but ticks came to the CPU meanwhile.
    fn quiet(&self, before: &Thread, end_ns: i64) -> bool {
        let counted = self.facts.interrupts.get(&before.cpu);
        counted.is_some_and(|counted| counted.is_quiet(before.end_ns, end_ns))
    }

    /// Which part of the gaps at least as long can be interrupts `of` a kind, if all of these are.
    fn part(
        &self,
        before: &Thread,
        length: u64,
        of: impl Fn(&InterruptFacts) -> u64,
    ) -> Option<f64> {
        let most = of(self.facts.interrupts.get(&before.cpu)?);
        let gaps = self.patterns.kept.get(&before.cpu)?.at_least(length);
        Some(most as f64 / (gaps.max(1) as f64))
    }

    /// Whether a budget of the deadline class was used up when the thread left its CPU; `None` where the kernel's record does not
    /// tell. By what the thread ran, as `watch` has it ([`BudgetEnds`]): a gap that ends on the grid of its budgets is as often of a job
    /// that yields, and one that a budget ends need not.
    fn budget_end(
        &mut self,
        before: &Thread,
        interval: &Interval,
        evidence: Option<KernelEvidence>,
    ) -> Option<bool> {
        self.kernel.as_ref()?;
        let known = self.facts.threads.get(&interval.thread)?;
        let (budget_ns, period_ns) = known.reservation.filter(|_| !known.in_user_space)?;
        let ends = || BudgetEnds::of(Budget { budget_ns, period_ns });
        let ends = self.budgets.entry(interval.thread).or_insert_with(ends);
        let (from_ns, to_ns) = (before.start_ns, before.end_ns);
        ends.ran(&RunSegment { from_ns, to_ns, cpu: before.cpu, onset: interval.onset });
        let evidence = evidence.filter(|evidence| !evidence.hole)?;
        let after_wait = evidence.waiting || !interval.onset.is_gap();
        if !after_wait && evidence.next_thread.is_none() {
            return Some(false);
        }
        let from_ns = if after_wait { interval.start_ns } else { before.end_ns };
        let (to_ns, cpu, occupants) = (interval.start_ns, interval.cpu, Vec::new());
        Some(ends.delayed(&Delay { from_ns, to_ns, cpu, after_wait, occupants }))
    }

    fn stops(
        &self,
        before: &Thread,
        interval: &Interval,
        length: u64,
        budget_end: Option<bool>,
    ) -> ThrottlePatterns {
        let known = self.facts.threads.get(&interval.thread);
        let policy = known.and_then(|known| known.policy);
        let patterns = self.patterns;
        let limit = self.facts.rt_limit;
        let throttled = limit
            .filter(|limit| may_be_throttling(policy, *limit, length, longest_tick_ns(self.facts)))
            .and_then(|_| patterns.throttlings.get(&interval.thread))
            .and_then(|found| found.of(before.end_ns));
        let on = |grid: Option<&GapGrid>| {
            grid.filter(|grid| grid.holds(interval.start_ns)).map(GapGrid::confidence)
        };
        let budget = known.and_then(|known| known.reservation);
        let replenished = match budget_end {
            Some(is_end) => is_end.then_some(MOST_BUDGET),
            None => budget
                .filter(|budget| may_be_budget(*budget, length))
                .and_then(|_| on(patterns.replenished.get(&interval.thread))),
        };
        let may_be = self
            .facts
            .quota
            .filter(|quota| quota.throttled > 0 && may_be_quota(known, length, *quota))
            // Each CPU counts by itself, so no gap is longer than their sum.
            .filter(|quota| quota.throttled_ns.is_none_or(|all| length / 2 <= all))
            .filter(|_| before.cpu == interval.cpu || interval.onset == IntervalStart::Migration);
        let quota = may_be
            .and(patterns.quota)
            .filter(|periods| periods.holds(before.end_ns, interval.start_ns))
            .map(|periods| periods.confidence);
        // Where its periods do not show, each gap may be the quota's.
        let excluded = patterns
            .quota
            .is_some_and(|periods| periods.excludes(before.end_ns, interval.start_ns));
        let unplaced = may_be.and(patterns.quota_most).filter(|_| !excluded && quota.is_none());
        let in_user_space = known.is_some_and(|known| known.in_user_space);
        let real_time = matches!(policy, Some(Policy::Fifo(_) | Policy::RoundRobin(_)));
        let without_stop = limit
            .filter(|_| real_time)
            .zip(patterns.lost.get(&interval.thread))
            .and_then(|(limit, lost)| lost.without_stop(limit, length));
        ThrottlePatterns { throttled, replenished, in_user_space, quota, unplaced, without_stop }
    }
}

fn is_edge(interval: &Interval) -> bool {
    interval.start_ns == interval.end_ns
}

fn signs(before: &Thread, interval: &Interval) -> IndicationSet {
    let mut signs = IndicationSet::NONE;
    let mut insert = |sign: Indication, holds: bool| {
        if holds {
            signs.insert(sign);
        }
    };
    let evidence = interval.evidence;
    insert(Indication::Cleared, evidence.cleared == Some(true));
    insert(Indication::NotCleared, evidence.cleared == Some(false));
    let counted = evidence.counted.filter(|_| interval.onset != IntervalStart::Late);
    if let Some(late) = evidence.counted.filter(|_| interval.onset == IntervalStart::Late) {
        insert(Indication::WaitedForCpu, late.involuntary > 0);
        insert(Indication::WokenLate, late.involuntary == 0);
        insert(Indication::CountedFault, late.faults > 0);
    }
    if let Some(counted) = counted {
        insert(Indication::CountedInvoluntary, counted.involuntary > 0);
        insert(Indication::CountedVoluntary, counted.voluntary > 0);
        insert(Indication::NoneCounted, counted.involuntary == 0 && counted.voluntary == 0);
        insert(Indication::CountedFault, counted.faults > 0);
    }
    insert(Indication::OtherThreadSeen, before.successor.is_some());
    insert(Indication::CpuChanged, before.cpu != interval.cpu);
    insert(Indication::Yielded, interval.onset == IntervalStart::Yield);
    signs
}
