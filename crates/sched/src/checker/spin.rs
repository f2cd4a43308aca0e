//! Bounds of tasks that share spin locks, checked by substitution.
//!
//! Owns: what [`spin_counting`] checks. Must not: search.

use std::collections::BTreeMap;

use crate::task::Task;
use crate::verdict::Analysis;

use super::Defect;

/// Checks an answer of [`crate::spin::analyse`] by counting: with the bounds of all tasks, no bound
/// is exceeded by cost, interference, spinning and blocking in a window of its length.
///
/// # Errors
/// The first property that does not hold.
pub fn spin_counting(tasks: &[Task], analysis: &Analysis) -> Result<(), Defect> {
    let bounds = analysis.from_arrival();
    if bounds.iter().all(Option::is_none) {
        return Ok(());
    }
    for (k, of) in tasks.iter().enumerate() {
        let bound = bounds[k].ok_or(Defect::Bound { task: k })?;
        if bound > of.deadline.min(of.period) {
            return Err(Defect::Verdict { task: k });
        }
        let window = u128::from(bound);
        let mut sum = u128::from(of.cost);
        // How often this processor asks for each lock.
        let mut asked: BTreeMap<usize, u128> = BTreeMap::new();
        for (i, t) in tasks.iter().enumerate().filter(|(_, t)| t.cpu() == of.cpu()) {
            let jobs = if i == k { 1 } else { window.div_ceil(t.period.into()) };
            if t.priority >= of.priority {
                sum += if i == k { 0 } else { jobs * u128::from(t.cost) };
                for r in t.critical_sections() {
                    *asked.entry(r.resource).or_default() += jobs * u128::from(r.count);
                }
            }
        }
        let waits =
            |lock: usize, requests: u128| waits(tasks, &bounds, of.cpu(), window, lock, requests);
        let all = |extra: Option<usize>| -> u128 {
            let locks = tasks.iter().flat_map(Task::critical_sections).map(|r| r.resource);
            let locks: std::collections::BTreeSet<usize> = locks.collect();
            let count = |lock: &usize| {
                asked.get(lock).copied().unwrap_or(0) + u128::from(extra == Some(*lock))
            };
            locks.iter().map(|lock| waits(*lock, count(lock))).sum()
        };
        let mut worst = all(None);
        for t in tasks.iter().filter(|t| t.cpu() == of.cpu() && t.priority < of.priority) {
            for r in t.critical_sections().iter() {
                worst = worst.max(all(Some(r.resource)) + u128::from(r.length));
            }
        }
        if sum + worst > window {
            return Err(Defect::NotFixed { task: k, point: 0 });
        }
    }
    Ok(())
}

fn waits(
    tasks: &[Task],
    bounds: &[Option<u64>],
    cpu: usize,
    window: u128,
    lock: usize,
    requests: u128,
) -> u128 {
    // Of each processor, sections by length.
    let mut found: BTreeMap<usize, BTreeMap<u64, u128>> = BTreeMap::new();
    for (i, t) in tasks.iter().enumerate().filter(|(_, t)| t.cpu() != cpu) {
        let jobs = (window + u128::from(bounds[i].unwrap_or(0))).div_ceil(t.period.into());
        for r in t.critical_sections().iter().filter(|r| r.resource == lock) {
            *found.entry(t.cpu()).or_default().entry(r.length).or_default() +=
                jobs * u128::from(r.count);
        }
    }
    let mut sum = 0;
    for sections in found.values() {
        let mut left = requests;
        for (length, count) in sections.iter().rev() {
            let taken = left.min(*count);
            sum += taken * u128::from(*length);
            left -= taken;
        }
    }
    sum
}
