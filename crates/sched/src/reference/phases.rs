//! Tasks with known phases, simulated one unit of time after the other.
//!
//! Owns: the simulation of whole schedules. Must not: share code with the search.

use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, ResponseTime};

/// Longer schedules are not simulated: most units of time.
const MOST_UNITS: u64 = 20_000;

/// Asserts that no response of the schedule in which every job is released on arrival, or as late as
/// it may, is over its bound.
pub(crate) fn assert_phases(set: &TaskSet, analysis: &Analysis) {
    for late in [false, true] {
        let delay = |_, _, jitter| if late { jitter } else { 0 };
        let Some(worst) = worst_with_phases(set, delay) else { return };
        for (task, worst) in worst.iter().enumerate() {
            let Some(bound) = analysis.tasks[task].outcome.response() else { continue };
            assert!(
                worst.from_arrival <= bound.from_arrival
                    && worst.from_release <= bound.from_release,
                "task {task} of {set:?}: {worst:?} simulated, bound {bound:?}"
            );
        }
    }
}

/// The worst responses over two repetitions after all tasks have begun, each job released `delay`
/// after its arrival (of task, number and jitter). `None` if phases are not all known, a task states
/// blocking or suspension, or it takes too long.
pub(crate) fn worst_with_phases(
    set: &TaskSet,
    delay: impl Fn(usize, u64, u64) -> u64,
) -> Option<Vec<ResponseTime>> {
    let tasks = set.tasks();
    if tasks.iter().any(|t| t.blocking > 0 || t.suspension > 0) {
        return None;
    }
    let offsets = tasks.iter().map(Task::phase).collect::<Option<Vec<u64>>>()?;
    let repeats = crate::exact_fraction::hyperperiod(tasks.iter())?;
    let begun = tasks.iter().zip(&offsets).map(|(t, o)| o.saturating_add(t.jitter)).max()?;
    let end = repeats.checked_mul(2)?.checked_add(begun)?;
    if end.checked_mul(tasks.len() as u64)? > MOST_UNITS {
        return None;
    }
    // Arrival, release, remaining, task; of one task in the order of arrivals.
    let mut jobs: Vec<(u64, u64, u64, usize)> = Vec::new();
    let mut worst = vec![ResponseTime { from_arrival: 0, from_release: 0 }; tasks.len()];
    let mut number = vec![0u64; tasks.len()];
    let mut released = vec![0u64; tasks.len()];
    for now in 0..end {
        for (task, of) in tasks.iter().enumerate() {
            if now >= offsets[task] && (now - offsets[task]).is_multiple_of(of.period) {
                // Jobs of a task are released in the order in which they arrive.
                let release = now + delay(task, number[task], of.jitter).min(of.jitter);
                released[task] = release.max(released[task]);
                jobs.push((now, released[task], of.cost, task));
                number[task] += 1;
            }
        }
        let ready = |at: &usize| jobs[*at].1 <= now;
        let key = |at: &usize| {
            let (arrival, release, _, task) = jobs[*at];
            (std::cmp::Reverse(tasks[task].priority), release, task, arrival)
        };
        let Some(at) = (0..jobs.len()).filter(ready).min_by_key(key) else { continue };
        jobs[at].2 -= 1;
        if jobs[at].2 == 0 {
            let (arrival, release, _, task) = jobs.remove(at);
            let worst = &mut worst[task];
            worst.from_arrival = worst.from_arrival.max(now + 1 - arrival);
            worst.from_release = worst.from_release.max(now + 1 - release);
        }
    }
    Some(worst)
}
