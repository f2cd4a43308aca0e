//! What a run rests on and what did not hold to its end: each thread keeps the CPUs that it was given, which stay online.
//!
//! Owns: looking at the kernel's mask of each pinned thread while the run goes on, comparing the mask of every thread at
//! its end, and saying what changed. Threads that change their CPUs themselves are left out. Must not: look from a CPU
//! that is measured.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_documents::CpuSet;
use hourglass_documents::document::{Premise, RunResult, ThreadReport, Warning};
use hourglass_documents::premise::PremiseKind;
use hourglass_sys::thread as os;
use hourglass_time::Span;
use hourglass_workload::spec::{RunSpec, ThreadSpec};
use hourglass_workload::{LiveThreads, RunMeasurement};

use crate::observer::ExperimentObserver;
use crate::workload_file::online_cpus;

/// Models whose phases may have CPUs of their own are written so.
const OWN_CPUS: &str = "PHASES";

#[derive(Debug, Default)]
pub(crate) struct Masks {
    /// By their places: CPUs as given.
    given: Vec<Option<CpuSet>>,
    /// Of those, whose mask was once as given.
    tids: BTreeMap<u32, usize>,
    /// Places of threads that have another mask.
    changed: BTreeSet<usize>,
    /// CPUs that went offline.
    gone: CpuSet,
    /// What broke, in the order in which it was found.
    premises: Vec<Premise>,
}

/// Whether the model changes the CPUs of its thread.
fn changes_its_cpus(model: &str) -> bool {
    model.starts_with(OWN_CPUS)
}

impl Masks {
    pub(crate) fn of(spec: &RunSpec) -> Masks {
        let given = |thread: &ThreadSpec| {
            thread.cpus.clone().filter(|_| !changes_its_cpus(&thread.model.to_string()))
        };
        Masks { given: spec.threads.iter().map(given).collect(), ..Masks::default() }
    }

    /// Looks at those that run; returns what was not known to be broken.
    pub(crate) fn look(&mut self, live: &LiveThreads, elapsed: Span) -> &[Premise] {
        let known = self.premises.len();
        for (place, glance) in live.read().enumerate() {
            let given = self.given.get(place).cloned().flatten();
            let Some(given) = given.filter(|_| glance.tid != 0) else { continue };
            // A thread that has ended has none.
            let Ok(cpus) = os::affinity_of(glance.tid) else { continue };
            let cpus: CpuSet = cpus.into_iter().collect();
            if cpus == given {
                self.tids.insert(glance.tid, place);
            } else if self.tids.contains_key(&glance.tid) {
                self.take(place, &given, &cpus, elapsed.nanos_or_zero());
            }
        }
        self.premises.get(known..).unwrap_or_default()
    }

    /// Takes what threads found at their own ends: no look is needed for that.
    fn take_ends(&mut self, threads: &[ThreadReport], measured: &RunMeasurement) {
        for (thread, outcome) in threads.iter().zip(&measured.threads) {
            let given = outcome.cpus.iter().copied().collect();
            let cpus: CpuSet = outcome.cpus_at_end.iter().copied().collect();
            if !cpus.is_empty() && cpus != given && !changes_its_cpus(&thread.workload) {
                self.take(thread.id as usize, &given, &cpus, measured.elapsed.nanos_or_zero());
            }
        }
    }

    /// Takes threads that ran elsewhere, whose masks are as given again.
    fn take_strayed(&mut self, threads: &[ThreadReport]) {
        for thread in threads.iter().filter(|thread| !changes_its_cpus(&thread.workload)) {
            let is_known = self.changed.contains(&(thread.id as usize));
            self.premises.extend(strayed(thread).filter(|_| !is_known));
        }
    }

    /// Takes the mask of a thread that is not as given. The kernel moves threads before it says that their CPU is
    /// offline, so that is asked anew for a thread that is known.
    fn take(&mut self, place: usize, given: &CpuSet, cpus: &CpuSet, at_ns: u64) {
        let offline = online_cpus().map(|online| given.difference(&online)).unwrap_or_default();
        for cpu in offline.difference(&self.gone).iter() {
            let text = format!("CPU {cpu}, on which thread {place} is measured, went offline");
            self.premises.push(PremiseKind::CpuGone.broken(text, at_ns));
            self.gone.insert(cpu);
        }
        if self.changed.insert(place) && given.difference(&offline) != *cpus {
            let text = format!(
                "thread {place}: its CPUs were changed from outside from {given} to {cpus} (taskset -p, a cpuset, a CPU \
                 that went offline)"
            );
            self.premises.push(PremiseKind::PinningLost.broken(text, at_ns));
        }
    }

    /// Puts all that broke into `result`, with the limit that ended the run, and tells `watch` what no look found.
    /// `left-its-cpus` warns of threads that were seen elsewhere already.
    pub(crate) fn fill(
        mut self,
        result: &mut RunResult,
        measured: &RunMeasurement,
        limit: Option<Premise>,
        watch: &mut dyn ExperimentObserver,
    ) {
        let known = self.premises.len();
        self.premises.extend(limit);
        self.take_ends(&result.threads, measured);
        self.take_strayed(&result.threads);
        self.premises.iter().skip(known).for_each(|premise| watch.broke(premise));
        let is_warned_of = |premise: &&Premise| {
            let strayed = result.threads.iter().any(|thread| thread.strayed.is_some());
            (strayed && premise.id == PremiseKind::PinningLost.name())
                || result.warnings.iter().any(|warning| warning.id == premise.id)
        };
        let new: Vec<&Premise> = self.premises.iter().filter(|p| !is_warned_of(p)).collect();
        result.warnings.extend(new.into_iter().map(Warning::from));
        result.premises = self.premises;
    }
}

fn strayed(thread: &ThreadReport) -> Option<Premise> {
    let strayed = thread.strayed?;
    let given: CpuSet = thread.cpus.iter().copied().collect();
    let text = format!(
        "thread {}: it was given CPU {given} and was moved from CPU {} to CPU {}",
        thread.id, strayed.from_cpu, strayed.to_cpu
    );
    Some(PremiseKind::PinningLost.broken(text, strayed.at_ns))
}

#[cfg(test)]
mod tests {
    use hourglass_documents::document::StrayReport;

    use super::*;

    fn ids(mut masks: Masks, threads: &[ThreadReport]) -> Vec<(String, u64)> {
        masks.take_strayed(threads);
        masks.premises.into_iter().map(|premise| (premise.id, premise.at_ns)).collect()
    }

    fn cpus(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_mask_that_changed_and_a_thread_that_was_moved_are_one_premise() {
        let masks = |broken: bool| {
            let mut masks = Masks::default();
            if broken {
                masks.take(0, &cpus("0"), &cpus("0,4000"), 7);
            }
            masks
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
        assert_eq!(ids(masks(false), &[thread(false)]), []);
        for (broken, strays, at_ns) in [(true, false, 7), (true, true, 7), (false, true, 9)] {
            let wanted = [("pinning-lost".to_owned(), at_ns)];
            assert_eq!(ids(masks(broken), &[thread(strays)]), wanted, "{broken} {strays}");
        }
    }

    /// A CPU of that number is never online.
    #[test]
    fn a_cpu_that_is_gone_is_told_once_and_from_a_mask_that_was_changed() {
        let online = online_cpus().unwrap();
        let with_4000: CpuSet = online.iter().chain([4000]).collect();
        let mut masks = Masks::default();
        // What is left of several CPUs is what was given.
        masks.take(0, &with_4000, &online, 7);
        masks.take(0, &with_4000, &online, 8);
        // The kernel moves a thread whose only CPU goes, first of all: CPU 4001 seems to be online at 9.
        masks.take(1, &cpus("4000"), &online, 9);
        masks.take(1, &cpus("4001"), &online, 10);
        let ids = ids(masks, &[]);
        let wanted = [("cpu-gone", 7), ("pinning-lost", 9), ("cpu-gone", 10)];
        assert_eq!(ids, wanted.map(|(id, at_ns)| (id.to_owned(), at_ns)));
    }
}
