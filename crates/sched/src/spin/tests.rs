//! SchedCAT's example, and random sets: no simulated response is over its bound.

use hourglass_dice::Dice;
use proptest::prelude::*;

use super::{SpinBound, analyse};
use crate::task::{CriticalSection, Task};
use crate::verdict::{Refusal, Verdict};

fn locking(task: (u64, u64), cpu: usize, priority: u32, requests: &[(usize, u64)]) -> Task {
    let section = |(resource, length): &(usize, u64)| CriticalSection {
        resource: *resource,
        count: 1,
        length: *length,
    };
    let sections: Vec<CriticalSection> = requests.iter().map(section).collect();
    let made = Task::new(task.0, task.1, task.1).unwrap().with_priority(priority).with_cpu(cpu);
    made.with_critical_sections(&sections)
}

fn bounds(tasks: &[Task], account: SpinBound) -> Vec<Option<u64>> {
    analyse(tasks, account).unwrap().from_arrival()
}

/// SchedCAT, tests/fp_blocking.py, PFPSpinlockInflationVsILP1. One section of the other processor
/// delays one request only, which is all that its linear program gains here.
#[test]
fn the_example_of_schedcat() {
    let lock = [(0, 100)];
    let tasks = [
        locking((1_700, 10_000), 0, 3, &lock),
        locking((6_700, 34_000), 1, 2, &lock),
        locking((2_700, 15_000), 0, 1, &lock),
    ];
    assert_eq!(bounds(&tasks, SpinBound::Inflation), [Some(2_000), Some(6_800), Some(4_600)]);
    assert_eq!(bounds(&tasks, SpinBound::Counting), [Some(1_900), Some(6_800), Some(4_500)]);
}

/// A miss that spinning may cause is not certain; one that costs alone cause is.
#[test]
fn spinning_makes_no_miss_certain() {
    let tasks = [
        locking((5, 8), 0, 2, &[(0, 3)]),
        locking((4, 9), 1, 2, &[(0, 3)]),
        locking((2, 8), 0, 1, &[]),
    ];
    let found = analyse(&tasks, SpinBound::Inflation).unwrap();
    assert_eq!(found.tasks[2].verdict, Verdict::Unknown(Refusal::NotExact));
    let mut late = tasks.to_vec();
    late[2].deadline = 6;
    let found = analyse(&late, SpinBound::Inflation).unwrap();
    assert!(matches!(found.tasks[2].verdict, Verdict::Infeasible(_)));
}

#[test]
fn sections_must_fit_into_the_cost() {
    let why = analyse(&[locking((5, 9), 0, 1, &[(0, 3), (1, 3)])], SpinBound::Counting);
    let text = why.map_err(|why| why.to_string()).unwrap_err();
    assert!(text.starts_with("task 0 holds locks for 6, but its cost is 5"));
}

/// The next part of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Run,
    Ask(usize),
    Hold(usize),
}

struct Job {
    task: usize,
    arrival: u64,
    /// The parts of the job, the next last.
    parts: Vec<Part>,
}

impl Job {
    fn keeps_the_processor(&self, queues: &[Vec<usize>]) -> bool {
        let waits = queues.iter().any(|queue| queue.contains(&self.task));
        waits || matches!(self.parts.last(), Some(Part::Hold(_)))
    }
}

/// A job's units, with its sections anywhere.
fn parts(of: &Task, dice: &mut Dice) -> Vec<Part> {
    let held: u64 = of.critical_sections().iter().map(|r| r.length).sum();
    let plain = usize::try_from(of.cost - held).unwrap();
    let mut parts = vec![vec![Part::Run]; plain];
    for request in of.critical_sections() {
        let mut section = vec![Part::Ask(request.resource)];
        section.extend((0..request.length).map(|_| Part::Hold(request.resource)));
        let at = dice.below(parts.len() as u64 + 1) as usize;
        parts.insert(at, section);
    }
    parts.into_iter().flatten().rev().collect()
}

/// The longest response of each task, unit after unit. Each task has at most one job at a time.
fn simulate(tasks: &[Task], offsets: &[u64], units: u64, seed: u64) -> Vec<u64> {
    let mut dice = Dice::new(seed);
    let mut longest = vec![0; tasks.len()];
    let mut jobs: Vec<Job> = Vec::new();
    // Tasks that wait for a lock or hold it, the holder first.
    let mut queues: Vec<Vec<usize>> = vec![Vec::new(); 4];
    let mut next = offsets.to_vec();
    for now in 0..units {
        for (task, of) in tasks.iter().enumerate() {
            if next[task] <= now && jobs.iter().all(|job| job.task != task) {
                jobs.push(Job { task, arrival: next[task], parts: parts(of, &mut dice) });
                next[task] += of.period;
            }
        }
        let mut chosen = Vec::new();
        for cpu in 0..4 {
            let here = (0..jobs.len()).filter(|at| tasks[jobs[*at].task].cpu() == cpu);
            let urgent = |at: &usize| {
                let job = &jobs[*at];
                let first = std::cmp::Reverse(job.task);
                (job.keeps_the_processor(&queues), tasks[job.task].priority, first)
            };
            chosen.extend(here.max_by_key(urgent));
        }
        for at in &chosen {
            // Asking takes no time.
            while let Some(Part::Ask(lock)) = jobs[*at].parts.last().copied() {
                jobs[*at].parts.pop();
                queues[lock].push(jobs[*at].task);
            }
        }
        for at in &chosen {
            let job = &mut jobs[*at];
            match job.parts.last().copied() {
                Some(Part::Hold(lock)) if queues[lock].first() == Some(&job.task) => {
                    job.parts.pop();
                    if !matches!(job.parts.last(), Some(Part::Hold(_))) {
                        queues[lock].remove(0);
                    }
                }
                Some(Part::Run) => {
                    job.parts.pop();
                }
                _ => {}
            }
            if job.parts.is_empty() {
                longest[job.task] = longest[job.task].max(now + 1 - job.arrival);
            }
        }
        jobs.retain(|job| !job.parts.is_empty());
    }
    longest
}

fn small_sets() -> impl Strategy<Value = Vec<Task>> {
    let one = (2..9u64, 10..60u64, 0..3usize, 0..3usize, 0..4u64);
    proptest::collection::vec(one, 2..6).prop_map(|tasks| {
        let make =
            |(rank, (cost, period, cpu, lock, length)): (usize, (u64, u64, usize, usize, u64))| {
                let requests = if length == 0 { vec![] } else { vec![(lock, length.min(cost))] };
                locking((cost, period), cpu, u32::try_from(9 - rank).unwrap(), &requests)
            };
        tasks.into_iter().enumerate().map(make).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn bounds_hold(
        tasks in small_sets(),
        offsets in proptest::collection::vec(0..20u64, 6),
        seed in 1..u64::MAX,
    ) {
        let longest = simulate(&tasks, &offsets[..tasks.len()], 1_500, seed);
        for account in [SpinBound::Inflation, SpinBound::Counting] {
            let found = bounds(&tasks, account);
            for (longest, bound) in longest.iter().zip(&found) {
                prop_assert!(bound.is_none_or(|bound| *longest <= bound), "{:?}: {:?}", account, found);
            }
        }
    }

    /// Counting never says more than inflating, where it says anything.
    #[test]
    fn counting_is_not_worse(tasks in small_sets()) {
        let counted = bounds(&tasks, SpinBound::Counting);
        for (counted, inflated) in counted.iter().zip(bounds(&tasks, SpinBound::Inflation)) {
            let both = counted.zip(inflated);
            prop_assert!(both.is_none_or(|(counted, inflated)| counted <= inflated));
        }
    }
}
