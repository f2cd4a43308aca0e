//! What the jobs of a run did, where an analysis assumes something.
//!
//! Owns: execution, release jitter, busy waiting and interference by others, as the longest seen
//! of each. Must not: say whether that explains anything.

use hourglass_documents::predict::{MeasuredTerms, PredictedTask};
use hourglass_measure::experiment::{Finished, JobTimes};
use hourglass_tasks::{Task, TaskSet};
use hourglass_time::Span;

use hourglass_measure::task_threads::TaskRunPlan;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskMeasurement {
    pub(super) terms: MeasuredTerms,
    /// The longest response, a job that the end cut off included if it had taken longer by then.
    pub(super) longest_ns: Option<u64>,
    pub(super) hit: u64,
    pub(super) missed: u64,
    pub(super) lost: u64,
}

impl TaskMeasurement {
    /// Fills in what was measured.
    pub(super) fn tell(&self, task: &mut PredictedTask) {
        task.measured_ns = self.longest_ns;
        task.hit = Some(self.hit);
        task.missed = Some(self.missed);
        task.lost = Some(self.lost);
        task.measured = Some(self.terms);
    }
}

pub(super) fn found(
    set: &TaskSet,
    plan: &TaskRunPlan,
    finished: &Finished,
) -> Vec<TaskMeasurement> {
    let result = &finished.document.result;
    let is_whole = result.threads.iter().all(|thread| thread.records_dropped == 0);
    let covered = is_whole.then(|| Coverage::of(finished));
    let tasks = (0..).zip(&set.tasks);
    tasks.map(|(id, task)| of_task(id, task, plan, finished, covered.as_ref())).collect()
}

fn of_task(
    id: u32,
    task: &Task,
    plan: &TaskRunPlan,
    finished: &Finished,
    covered: Option<&Coverage>,
) -> TaskMeasurement {
    let mut found = TaskMeasurement::default();
    let report = finished.document.result.threads.iter().find(|thread| thread.id == id);
    if let Some(counted) = report.and_then(|thread| thread.deadlines) {
        found.terms.jobs = counted.completed;
        (found.hit, found.missed, found.lost) = (counted.hit, counted.missed, counted.lost);
    }
    let worst = finished.worst_job(id);
    let cut_off = finished.cut_off_ns(id).filter(|ns| *ns > task.deadline().nanos_or_zero());
    found.longest_ns = worst.map(|job| job.response_ns()).max(cut_off);
    let cpu = report.and_then(|thread| only_cpu(&thread.cpus));
    let covered = covered.zip(cpu);
    let busy_wait = plan.timer(id as usize).map_or(Span::ZERO, |timer| {
        let policy = plan.spec.threads.get(id as usize).map(|thread| thread.policy);
        policy.map_or(Span::ZERO, |policy| timer.busy_wait(policy))
    });
    let grid = plan.timer(id as usize).and_then(|timer| timer.grid());
    let rule = Rule { busy_wait, grid, covered, comes_by_itself: task.after.is_empty() };
    let blocks = blocks_itself(task);
    let mut previous: Option<JobTimes> = None;
    for job in finished.jobs(id) {
        let terms = &mut found.terms;
        terms.execution_ns = terms.execution_ns.max(job.received_ns);
        let before = rule.before(job, previous);
        terms.busy_wait_ns = terms.busy_wait_ns.max(before.busy_wait_ns);
        terms.jitter_ns = terms.jitter_ns.max(before.late_ns);
        if let Some((covered, cpu)) = covered.filter(|_| !blocks) {
            let taken = covered.uncovered(cpu, job.start_ns, job.finished_ns);
            terms.taken_ns = terms.taken_ns.max(taken);
        }
        previous = Some(job);
    }
    found
}

/// The delays before a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReleaseOverhead {
    /// How long its thread used the CPU to wait for it, ns.
    pub(super) busy_wait_ns: u64,
    /// How long its timer delayed the release, ns.
    pub(super) late_ns: u64,
}

/// How the jobs of a task are released.
#[derive(Clone, Copy)]
pub(super) struct Rule<'a> {
    pub(super) busy_wait: Span,
    pub(super) grid: Option<Span>,
    pub(super) covered: Option<(&'a Coverage, u32)>,
    pub(super) comes_by_itself: bool,
}

impl Rule<'_> {
    /// The delays before a job that came after `previous`.
    pub(super) fn before(&self, job: JobTimes, previous: Option<JobTimes>) -> ReleaseOverhead {
        let ahead = previous.map(|job_before| job.arrival_ns - job_before.finished_ns);
        match ahead {
            Some(ahead) if ahead > 0 && ahead <= self.busy_wait.nanos() => {
                ReleaseOverhead { busy_wait_ns: ahead.unsigned_abs(), late_ns: 0 }
            }
            Some(..=0) => ReleaseOverhead::default(),
            // The thread slept, or this is its first job.
            _ => {
                let late_ns = match (self.grid, self.covered) {
                    (Some(grid), _) => waited_for_grid(job.arrival_ns, job.start_ns, grid),
                    (None, Some((covered, cpu))) if self.comes_by_itself => {
                        covered.uncovered(cpu, job.arrival_ns, job.start_ns)
                    }
                    _ => 0,
                };
                ReleaseOverhead { busy_wait_ns: 0, late_ns }
            }
        }
    }
}

/// Whether a job of the task may let the CPU idle, by its own doing.
fn blocks_itself(task: &Task) -> bool {
    task.suspension.is_positive() || task.program.is_some() || !task.critical_sections.is_empty()
}

/// The time from `at` to the next point of a grid that begins with the run, ns.
fn after_grid(at: i64, grid: Span) -> u64 {
    let step = grid.nanos_or_zero().max(1);
    let past = at.max(0).unsigned_abs() % step;
    if past == 0 { 0 } else { step - past }
}

/// How much of the time from `arrival` to `begun` a timer is to blame for that wakes only on a grid.
/// A job that ran before the next point was woken at the one that its arrival lies on. Where the
/// counter and the kernel's clock differ by a trifle about an arrival on a point, what the job did
/// tells whether it had to wait for the one behind.
fn waited_for_grid(arrival: i64, begun: i64, grid: Span) -> u64 {
    let (late, waited) = (after_grid(arrival, grid), length(arrival, begun));
    let step = grid.nanos_or_zero();
    if late <= step / 100 && waited >= late.saturating_add(step) {
        late.saturating_add(step)
    } else if waited < late {
        0
    } else {
        late
    }
}

pub(super) fn only_cpu(cpus: &[u32]) -> Option<u32> {
    match cpus {
        [only] => Some(*only),
        _ => None,
    }
}

/// When any thread of the run had each CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    /// Intervals by CPU, in order, each with the sum of those before it.
    cpus: std::collections::BTreeMap<u32, Vec<CoveredTime>>,
}

#[derive(Clone, Copy, Debug)]
struct CoveredTime {
    start: i64,
    end: i64,
    /// The sum of the intervals before this one, ns.
    before: u64,
}

impl Coverage {
    pub(super) fn of(finished: &Finished) -> Coverage {
        let mut coverage = Coverage::default();
        for interval in finished.intervals() {
            coverage.push(interval.cpu, interval.start_ns, interval.end_ns);
        }
        coverage
    }

    /// Adds an interval; they come in the order of their starts.
    pub(super) fn push(&mut self, cpu: u32, start: i64, end: i64) {
        let all = self.cpus.entry(cpu).or_default();
        let last = all.last().copied();
        // Threads of one CPU overlap by rounding at most.
        let start = last.map_or(start, |last| start.max(last.end));
        let before = last.map_or(0, |last| last.before + length(last.start, last.end));
        all.push(CoveredTime { start, end: end.max(start), before });
    }

    /// How much of the time from `start` to `end` they had the CPU.
    pub(super) fn covered(&self, cpu: u32, start: i64, end: i64) -> u64 {
        length(start, end) - self.uncovered(cpu, start, end)
    }

    /// How much of the time from `start` to `end` no thread of the run had the CPU.
    pub(super) fn uncovered(&self, cpu: u32, start: i64, end: i64) -> u64 {
        let until = |at: i64| {
            let Some(all) = self.cpus.get(&cpu) else { return 0 };
            let next = all.partition_point(|covered| covered.start < at);
            let last = next.checked_sub(1).and_then(|last| all.get(last));
            last.map_or(0, |last| last.before + length(last.start, last.end.min(at)))
        };
        length(start, end).saturating_sub(until(end).saturating_sub(until(start)))
    }
}

fn length(start: i64, end: i64) -> u64 {
    end.saturating_sub(start).max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_thread_had_is_counted_by_cpu() {
        let mut coverage = Coverage::default();
        for (cpu, start, end) in [(0, 0, 10), (1, 5, 6), (0, 9, 20), (0, 25, 30)] {
            coverage.push(cpu, start, end);
        }
        assert_eq!(coverage.uncovered(0, 0, 30), 5);
        assert_eq!(coverage.uncovered(0, 3, 22), 2);
        assert_eq!(coverage.uncovered(0, 21, 24), 3);
        assert_eq!(coverage.uncovered(1, 0, 30), 29);
        assert_eq!(coverage.uncovered(2, 0, 30), 30);
    }

    /// A period of whole ticks: the clocks' rounding decides between no delay and one of a tick.
    #[test]
    fn an_arrival_on_the_grid_waits_as_it_did() {
        let waited = |arrival, begun| waited_for_grid(arrival, begun, Span::from_millis(10));
        let (point, tick) = (30_000_000, 10_000_000);
        assert_eq!(waited(point, point + 5_000), 0);
        assert_eq!(waited(point, point + 10_050_000), tick);
        assert_eq!(waited(point - 1, point + 5_000), 1);
        assert_eq!(waited(point - 1, point + 10_050_000), tick + 1);
        assert_eq!(waited(point + 1, point + 10_050_000), tick - 1);
        assert_eq!(waited(point + 1, point + 5_000), 0);
        // From the middle only the next point is possible.
        assert_eq!(waited(point + 3_000_000, point + 25_000_000), 7_000_000);
    }

    /// Section 5.5: with ticks of 10 ms a frame that is due at 33 ms is released 7 ms late.
    #[test]
    fn a_grid_delays_to_its_next_point() {
        let ms = 1_000_000;
        let late = |at: i64| after_grid(at * ms, Span::from_millis(10)) / 1_000_000;
        assert_eq!([0, 33, 66, 231, 330].map(late), [0, 7, 4, 9, 0]);
    }
}
