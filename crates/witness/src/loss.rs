//! What a span lost.

use hourglass_documents::{Cause, Policy};
use hourglass_sys::sched::{self, Attributes};
use hourglass_time::{Bounded, Span};
use hourglass_trace::cause::{
    CauseBasis, Indication, IndicationSet, RunFacts, SpanSeen, ThreadFacts, judge_span,
};

use crate::core::Core;
use crate::machine::HostFacts;
use crate::sample::Totals;

/// Shorter losses are not asked about policies and quotas, ns.
const STOP_NS: u64 = 100_000;

/// Context switches within a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// By the thread's own waits; stops by a signal, a tracer or the freezer are counted here too.
    pub voluntary: u64,
    /// Forced on it; its yields are counted here too.
    pub involuntary: u64,
}

/// What the scheduler did to a span.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loss {
    /// For how long the span went on, on threads that witnessed it: at most, and a microsecond or two less at least.
    pub length: Span,
    /// For how long its thread was off the CPU: at least, at most. By the times of its switches if the evidence has
    /// [`Indication::RecordedSwitch`], else by the kernel's counts.
    pub off_cpu: Bounded<Span>,
    /// Number of context switches.
    pub switches: Switches,
    /// For how long it was ready and waited for a CPU, as the kernel counts it (`schedstat`); zero where it does not.
    pub waited: Span,
    /// Page faults, at most: those before the span count too that came since the thread was last disturbed.
    pub faults: u64,
    /// The CPUs that it began and ended on, if these are two.
    pub migrated: Option<(u32, u32)>,
    /// Why it was off the CPU; of several reasons, the one that took the longest.
    pub cause: Cause,
    /// Confidence in the cause, from 0 to 1; 0 means unknown.
    pub confidence: f64,
    /// Indications of the cause.
    pub evidence: IndicationSet,
    /// Who had the CPU, by the kernel's number: another witnessed thread of this process that was seen on it within the
    /// span. Others may have had it too. `None`: unknown.
    pub who: Option<u32>,
}

/// A span, as its end found it.
pub(crate) struct SpanEnd {
    pub(crate) lost: Totals,
    pub(crate) ticks: u64,
    pub(crate) cpus: (u32, u32),
    pub(crate) busy: bool,
}

/// Both ends, in order.
pub(crate) fn between(least_ns: u64, most_ns: u64) -> Bounded<Span> {
    let most = Span::saturating_from_nanos(most_ns);
    Bounded::new(Span::saturating_from_nanos(least_ns), most).unwrap_or(Bounded::exact(most))
}

impl Loss {
    /// Of a span of which only the greatest length is known.
    pub(crate) fn unknown(length_ns: u64) -> Loss {
        Loss {
            length: Span::saturating_from_nanos(length_ns),
            off_cpu: between(0, length_ns),
            switches: Switches::default(),
            waited: Span::ZERO,
            faults: 0,
            migrated: None,
            cause: Cause::Unknown,
            confidence: 0.0,
            evidence: IndicationSet::NONE,
            who: None,
        }
    }

    /// Of a span in which the thread was switched; `None` if it was not.
    pub(crate) fn from_span(core: &Core, ended: &SpanEnd) -> Option<Loss> {
        let lost = &ended.lost;
        if lost.switches() == 0 {
            return None;
        }
        let length_ns = core.length_ns(ended.ticks);
        let most_ns = lost.max_ns.min(length_ns);
        let least_ns = lost.min_ns.min(most_ns);
        let (before, after) = ended.cpus;
        let (cause, basis, mut evidence) = classify(core, ended, most_ns);
        if lost.are_timed() {
            evidence = evidence.with(Indication::RecordedSwitch);
        }
        Some(Loss {
            length: Span::saturating_from_nanos(length_ns),
            off_cpu: between(least_ns, most_ns),
            switches: Switches { voluntary: lost.voluntary, involuntary: lost.involuntary },
            waited: Span::saturating_from_nanos(lost.waited_ns.min(most_ns)),
            faults: lost.faults(),
            migrated: (before != after).then_some((before, after)),
            cause,
            confidence: basis.confidence(),
            evidence,
            who: if before == after { core.last_thread_on_cpu(length_ns) } else { None },
        })
    }

    /// Whether it is unknown: the span was ended where its witness is not. See [`crate::SpanError`].
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.cause == Cause::Unknown && self.evidence.is_empty()
    }
}

/// By the judge of run folders. Of waits and forced switches those are judged that took longer: waiting for a CPU
/// is what forced switches cost, the rest is the thread's own.
fn classify(core: &Core, ended: &SpanEnd, lost_ns: u64) -> (Cause, CauseBasis, IndicationSet) {
    let lost = &ended.lost;
    let forced_ns = lost.waited_ns.min(lost_ns);
    let own_ns = lost_ns - forced_ns;
    let both = lost.voluntary > 0 && lost.involuntary > 0;
    let (voluntary, involuntary, judged_ns) = match forced_ns >= own_ns {
        true if both => (0, lost.involuntary, forced_ns),
        false if both => (lost.voluntary, 0, own_ns),
        _ => (lost.voluntary, lost.involuntary, lost_ns),
    };
    let long = judged_ns >= STOP_NS;
    let thread = ThreadFacts {
        policy: if long { policy() } else { None },
        never_waits: ended.busy,
        waits_unseen: !ended.busy,
        highest: false,
        reservation: None,
        in_user_space: false,
        number: None,
    };
    let (throttled_ns, counted) = lost.throttled();
    let (quota, same) = if long && involuntary > 0 { core.quota() } else { (None, true) };
    let seen = SpanSeen {
        lost_ns: judged_ns,
        involuntary,
        voluntary,
        major_faults: lost.major_faults(),
        cpu_changed: ended.cpus.0 != ended.cpus.1,
        cleared: core.has_section().then_some(true),
        throttled_ns: quota.map(|_| throttled_ns),
        other_quotas: !(counted && same),
        stolen_ns: lost.stolen_ns(),
    };
    let facts = RunFacts { rt_limit: HostFacts::here().rt_limit, quota, ..RunFacts::default() };
    judge_span(&facts, &thread, &seen)
}

fn policy() -> Option<Policy> {
    Some(match sched::read(0).ok()?? {
        Attributes::Other(nice) => Policy::Other(nice),
        Attributes::Batch(_) => Policy::Batch,
        Attributes::Idle => Policy::Idle,
        Attributes::Fifo(priority) => Policy::Fifo(priority),
        Attributes::RoundRobin(priority) => Policy::RoundRobin(priority),
        Attributes::Deadline { .. } => Policy::Deadline,
    })
}
