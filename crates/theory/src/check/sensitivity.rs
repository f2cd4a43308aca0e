//! How far a task may change before the set is no longer known to be feasible.
//!
//! Owns: which processors it is asked of, and with how much effort. Must not: search
//! (`sched::sensitivity` does).

use hourglass_model::check::SensitivityFacts;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::edf::qpa;
use hourglass_sched::effort::Effort;
use hourglass_sched::fixed_priority::{self, TimeModel};
use hourglass_sched::sensitivity::{Tested, largest_cost, largest_jitter, smallest_period};
use hourglass_sched::{TaskSet as Numbers, Verdict};
use hourglass_tasks::TaskSet;

use super::processor::Processor;

/// Looks at a task that each analysis may take; there are some 200 analyses for each task.
const LOOKS: u64 = 500_000;

/// What each task of the set may be while the others stay as they are; nothing where it is not known.
pub(super) fn sensitivity(set: &TaskSet, processors: &[Processor]) -> Vec<SensitivityFacts> {
    let named = |task: &hourglass_tasks::Task| SensitivityFacts {
        name: task.name.clone(),
        ..SensitivityFacts::default()
    };
    let mut found: Vec<SensitivityFacts> = set.tasks.iter().map(named).collect();
    for processor in processors.iter().filter(|processor| is_plain(set, processor)) {
        let numbers = processor.in_any_phase();
        let test = |numbers: &Numbers| tested(processor, numbers);
        if test(&numbers).verdict != Verdict::Feasible {
            continue;
        }
        for (at, member) in processor.members.iter().enumerate() {
            let Some(position) = member.position else { continue };
            let task = &set.tasks[position];
            // What overheads and timers add is no part of what may change.
            let added = member.task.cost().saturating_sub(task.wcet.nanos_or_zero());
            let timers = member.jitter.saturating_sub(task.jitter.nanos_or_zero());
            let facts = &mut found[position];
            facts.largest_wcet_ns =
                largest_cost(&numbers, at, test).and_then(|cost| cost.checked_sub(added));
            facts.smallest_period_ns = smallest_period(&numbers, at, test);
            facts.largest_jitter_ns =
                largest_jitter(&numbers, at, test).and_then(|jitter| jitter.checked_sub(timers));
        }
    }
    found
}

fn tested(processor: &Processor, numbers: &Numbers) -> Tested {
    let (sections, time) = (processor.sections, TimeModel::Continuous);
    match processor.rule {
        Rule::Edf => {
            let found = qpa::feasible_within(numbers, sections, time, Effort::of(LOOKS));
            Tested::from(&found)
        }
        Rule::FixedPriority | Rule::Fifo => {
            let found = fixed_priority::analyse_within(numbers, sections, time, Effort::of(LOOKS));
            Tested::from(&found)
        }
    }
}

fn is_plain(set: &TaskSet, processor: &Processor) -> bool {
    processor.refused.is_none()
        && processor.situation == Situation::Alone
        && !processor.has_thresholds()
        && !processor.has_bursts()
        && !processor.finds_priorities
        && set.interference.is_empty()
        && processor.members.iter().all(|member| member.unknown.is_none())
}
