//! What a run rests on and what did not hold to its end: each thread keeps the CPUs that it was given.
//!
//! Owns: looking at the kernel's mask of each pinned thread while the run goes on, and saying what changed. Threads
//! that change their CPUs themselves are left out. Must not: look from a CPU that is measured.

use std::collections::BTreeMap;

use hourglass_documents::CpuSet;
use hourglass_documents::document::{Premise, RunResult, ThreadReport, Warning};
use hourglass_sys::thread as os;
use hourglass_time::Span;
use hourglass_workload::LiveThreads;
use hourglass_workload::spec::{RunSpec, ThreadSpec};

use crate::observer::ExperimentObserver;

/// A thread did not keep the CPUs that it was given.
const PINNING_LOST: &str = "pinning-lost";

/// Models whose phases may have CPUs of their own are written so.
const OWN_CPUS: &str = "PHASES";

#[derive(Debug)]
pub(crate) struct Masks {
    /// By their places: CPUs as given.
    given: Vec<Option<CpuSet>>,
    /// Of those, whose mask was once as given.
    tids: BTreeMap<u32, usize>,
    /// The first other mask, and when it was found.
    broken: BTreeMap<usize, (CpuSet, u64)>,
}

impl Masks {
    pub(crate) fn of(spec: &RunSpec) -> Masks {
        let own = |thread: &ThreadSpec| thread.model.to_string().starts_with(OWN_CPUS);
        let given = { &spec.threads }.iter();
        let given = given.map(|thread| thread.cpus.clone().filter(|_| !own(thread))).collect();
        Masks { given, tids: BTreeMap::new(), broken: BTreeMap::new() }
    }

    /// Looks at those that run; returns what was not known to be broken.
    pub(crate) fn look(&mut self, live: &LiveThreads, elapsed: Span) -> Vec<Premise> {
        let at_ns = elapsed.nanos_or_zero();
        let known: Vec<usize> = self.broken.keys().copied().collect();
        for ((place, given), glance) in self.given.iter().enumerate().zip(live.read()) {
            let Some(given) = given.as_ref().filter(|_| glance.tid != 0) else { continue };
            // A thread that has ended has none.
            let Ok(cpus) = os::affinity_of(glance.tid) else { continue };
            let cpus: CpuSet = cpus.into_iter().collect();
            if cpus == *given {
                self.tids.insert(glance.tid, place);
            } else if self.tids.contains_key(&glance.tid) {
                self.broken.entry(place).or_insert((cpus, at_ns));
            }
        }
        let places = self.broken.keys().filter(|place| !known.contains(place));
        places.filter_map(|place| self.changed(*place)).collect()
    }

    fn changed(&self, place: usize) -> Option<Premise> {
        let (cpus, at_ns) = self.broken.get(&place)?;
        let given = self.given.get(place)?.as_ref()?;
        let text = format!(
            "thread {place}: its CPUs were changed from outside from {given} to {cpus} (taskset -p, a cpuset, a CPU that \
             went offline)"
        );
        Some(Premise { id: PINNING_LOST.to_owned(), text, at_ns: *at_ns })
    }

    /// What broke, by the masks, and beyond that by where the threads of `result` ran.
    fn premises(&self, result: &RunResult) -> (Vec<Premise>, Vec<Premise>) {
        let changed = self.broken.keys().filter_map(|place| self.changed(*place)).collect();
        let seen = |thread: &&ThreadReport| {
            !thread.workload.starts_with(OWN_CPUS)
                && !self.broken.contains_key(&(thread.id as usize))
        };
        let strayed = result.threads.iter().filter(seen).filter_map(strayed);
        (changed, strayed.collect())
    }

    /// Puts them into `result` and tells `watch` those that no look found; `left-its-cpus` warns of threads that
    /// were seen elsewhere already.
    pub(crate) fn fill(self, result: &mut RunResult, watch: &mut dyn ExperimentObserver) {
        let (changed, strayed) = self.premises(result);
        strayed.iter().for_each(|premise| watch.broke(premise));
        result.premises = changed.into_iter().chain(strayed).collect();
        if result.threads.iter().any(|thread| thread.strayed.is_some()) {
            return;
        }
        result.warnings.extend(result.premises.iter().map(|premise| Warning {
            id: premise.id.clone(),
            text: premise.text.clone(),
            remedy: "measure again without such changes".to_owned(),
        }));
    }
}

fn strayed(thread: &ThreadReport) -> Option<Premise> {
    let strayed = thread.strayed?;
    let given: CpuSet = thread.cpus.iter().copied().collect();
    let text = format!(
        "thread {}: it was given CPU {given} and was moved from CPU {} to CPU {}",
        thread.id, strayed.from_cpu, strayed.to_cpu
    );
    Some(Premise { id: PINNING_LOST.to_owned(), text, at_ns: strayed.at_ns })
}

#[cfg(test)]
mod tests {
    use hourglass_documents::document::StrayReport;

    use super::*;

    fn ids(masks: &Masks, threads: Vec<ThreadReport>) -> Vec<(String, u64)> {
        let result = RunResult { threads, ..RunResult::default() };
        let (changed, strayed) = masks.premises(&result);
        changed.into_iter().chain(strayed).map(|premise| (premise.id, premise.at_ns)).collect()
    }

    #[test]
    fn a_mask_that_changed_and_a_thread_that_was_moved_are_one_premise() {
        let masks = |broken: bool| Masks {
            given: vec!["1".parse().ok()],
            tids: BTreeMap::new(),
            broken: broken.then(|| (0, ("0".parse().unwrap(), 7))).into_iter().collect(),
        };
        let thread = |strays: bool| ThreadReport {
            cpus: vec![1],
            strayed: strays.then_some(StrayReport {
                at_ns: 9,
                from_cpu: 1,
                to_cpu: 0,
                intervals: 3,
                cpu_time_ns: 1,
            }),
            ..ThreadReport::default()
        };
        assert_eq!(ids(&masks(false), vec![thread(false)]), []);
        for (broken, strays, at_ns) in [(true, false, 7), (true, true, 7), (false, true, 9)] {
            let wanted = [(PINNING_LOST.to_owned(), at_ns)];
            assert_eq!(ids(&masks(broken), vec![thread(strays)]), wanted, "{broken} {strays}");
        }
    }
}
