//! The monitor on simulated time: the same machine and the same hands as on a real one.
//!
//! Owns: a core with reserved work and co-runners, of which every rate and every delay is given. Must
//! not: read a clock.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::progress::ProgressSource;

use super::enforcer::{CoRunnerEnforcer, MonitoredReservation};
use super::jobs::JobReservation;
use super::monitor::{MonitorDecision, MonitorError, MonitorSettings, MonitorStatistics};
use super::stopper::Stopper;

/// A rate of one: as fast as without co-runners.
pub(super) const FULL: u64 = 1_000;

/// Events beside the monitor. All times in ns.
pub(super) trait SimEnvironment: Send {
    /// Single-thread time that job `job` (from 0) of a reservation needs.
    fn work_ns(&mut self, reservation: usize, job: u64) -> u64;
    /// How fast reserved work goes beside co-runners from `now` on, 0 to [`FULL`], and until when.
    fn rate(&mut self, reservation: usize, now: u64) -> (u64, u64);
    /// How late the next timer is.
    fn late_ns(&mut self) -> u64 {
        0
    }
    /// How long the next order to stop takes.
    fn stop_ns(&mut self) -> u64 {
        0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimJob {
    pub(super) reservation: usize,
    /// Begin of its period.
    pub(super) begun_ns: u64,
    pub(super) due_ns: u64,
    /// When it was done; `None` if it was not.
    pub(super) done_ns: Option<u64>,
}

impl SimJob {
    /// Whether it was not done by its deadline, as far as that has come.
    pub(super) fn is_missed(&self, now: u64) -> bool {
        self.due_ns <= now && self.done_ns.is_none_or(|done| done > self.due_ns)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct SmtSimOutcome {
    pub(super) jobs: Vec<SimJob>,
    /// All looks: when, and what was ordered.
    pub(super) looks: Vec<(u64, MonitorDecision)>,
    /// Time for which co-runners ran beside reserved work.
    pub(super) beside_ns: u64,
    /// Time for which they ran while no reserved work was to be done.
    pub(super) free_ns: u64,
    pub(super) statistics: MonitorStatistics,
    pub(super) end_ns: u64,
}

impl SmtSimOutcome {
    pub(super) fn missed(&self) -> usize {
        self.jobs.iter().filter(|job| job.is_missed(self.end_ns)).count()
    }
}

struct Task {
    promised: JobReservation,
    /// Job under way, and its place among the jobs of the outcome.
    job: Option<(u64, usize)>,
    /// Its work, and what is done of it, in thousandths of ns.
    whole: u64,
    done: u64,
    next_ns: u64,
    count: u64,
    held: bool,
}

struct SimWorld<N> {
    nature: N,
    now: u64,
    tasks: Vec<Task>,
    /// Whether co-runners run, and from when on it is otherwise.
    running: bool,
    change: Option<(u64, bool)>,
    outcome: SmtSimOutcome,
}

/// Runs these reservations with these settings until `end_ns`. A job that is not done when the next one
/// begins is given up.
pub(super) fn simulate<N: SimEnvironment + 'static>(
    settings: MonitorSettings,
    promised: &[JobReservation],
    nature: N,
    end_ns: u64,
) -> Result<SmtSimOutcome, MonitorError> {
    let task = |promised: &JobReservation| Task {
        promised: *promised,
        job: None,
        whole: 0,
        done: 0,
        next_ns: promised.first_ns(),
        count: 0,
        held: false,
    };
    let world = Arc::new(Mutex::new(SimWorld {
        nature,
        now: 0,
        tasks: promised.iter().map(task).collect(),
        running: true,
        change: None,
        outcome: SmtSimOutcome::default(),
    }));
    let several = promised.len() > 1;
    let watched = promised.iter().enumerate().map(|(index, promised)| MonitoredReservation {
        reservation: *promised,
        progress: Box::new(Source { world: Arc::clone(&world), index, reserved_ns: 0, job: 0 }),
        gate: several.then(|| Box::new(Gate { world: Arc::clone(&world), index }) as _),
    });
    let stopper = CoRunners { world: Arc::clone(&world), graded: settings.slow_ns.is_some() };
    let stopper = Box::new(stopper);
    let mut enforcer = CoRunnerEnforcer::new(settings, watched.collect(), stopper)?;
    let mut next = enforcer.monitor.next_ns;
    loop {
        let mut at = lock(&world).nature.late_ns();
        at = at.saturating_add(next).min(end_ns);
        lock(&world).advance(at);
        if at >= end_ns {
            break;
        }
        next = enforcer.enforce(at);
        if let Some(order) = enforcer.last {
            lock(&world).outcome.looks.push((at, order));
        }
    }
    let statistics = enforcer.monitor.statistics;
    drop(enforcer);
    let mut outcome = std::mem::take(&mut lock(&world).outcome);
    outcome.statistics = statistics;
    outcome.end_ns = end_ns;
    Ok(outcome)
}

fn lock<N>(world: &Mutex<SimWorld<N>>) -> MutexGuard<'_, SimWorld<N>> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<N: SimEnvironment> SimWorld<N> {
    fn advance(&mut self, to: u64) {
        loop {
            self.release();
            if self.now >= to {
                return;
            }
            let releases = self.tasks.iter().map(|task| task.next_ns);
            let change = self.change.map(|(at, _)| at);
            let mut until = releases.chain(change).fold(to, u64::min);
            let works = self.works();
            let rate = match (works, self.running) {
                (Some(index), true) => {
                    let (rate, holds) = self.nature.rate(index, self.now);
                    until = until.min(holds.max(self.now + 1));
                    rate.min(FULL)
                }
                _ => FULL,
            };
            self.pass(works, rate, until);
        }
    }

    /// Jobs whose time has come, and orders that take effect.
    fn release(&mut self) {
        if let Some((at, running)) = self.change
            && at <= self.now
        {
            self.running = running;
            self.change = None;
        }
        for (index, task) in self.tasks.iter_mut().enumerate() {
            if task.next_ns > self.now {
                continue;
            }
            task.whole = self.nature.work_ns(index, task.count).saturating_mul(FULL);
            task.done = 0;
            task.count += 1;
            task.job = Some((task.count, self.outcome.jobs.len()));
            self.outcome.jobs.push(SimJob {
                reservation: index,
                begun_ns: task.next_ns,
                due_ns: task.next_ns + task.promised.deadline_ns(),
                done_ns: (task.whole == 0).then_some(task.next_ns),
            });
            task.next_ns += task.promised.period_ns();
        }
    }

    /// Whose work the core does: of those that are not held, the earliest deadline's.
    fn works(&self) -> Option<usize> {
        let ready = |task: &&Task| !task.held && task.job.is_some() && task.done < task.whole;
        let ready = self.tasks.iter().filter(ready);
        let first = ready.min_by_key(|task| task.due_ns())?;
        self.tasks.iter().position(|task| std::ptr::eq(task, first))
    }

    fn pass(&mut self, works: Option<usize>, rate: u64, until: u64) {
        let mut until = until;
        if let Some(task) = works.and_then(|index| self.tasks.get_mut(index)) {
            let left = task.whole - task.done;
            if rate > 0 {
                until = until.min(self.now.saturating_add(left.div_ceil(rate)));
            }
            task.done += (rate * (until - self.now)).min(left);
            let job = task.job.and_then(|(_, place)| self.outcome.jobs.get_mut(place));
            if let (true, Some(job)) = (task.done == task.whole, job) {
                job.done_ns = Some(until);
            }
        }
        if self.running {
            let sum = match works {
                Some(_) => &mut self.outcome.beside_ns,
                None => &mut self.outcome.free_ns,
            };
            *sum += until - self.now;
        }
        self.now = until;
    }
}

impl Task {
    fn due_ns(&self) -> u64 {
        (self.next_ns - self.promised.period_ns()) + self.promised.deadline_ns()
    }
}

/// Progress as a word tells it that is written all the time.
struct Source<N> {
    world: Arc<Mutex<SimWorld<N>>>,
    index: usize,
    reserved_ns: u64,
    job: u64,
}

impl<N: SimEnvironment> ProgressSource for Source<N> {
    fn name(&self) -> &'static str {
        "word"
    }

    fn begin(&mut self, reserved_ns: u64) {
        self.reserved_ns = reserved_ns;
        self.job = lock(&self.world).tasks.get(self.index).map_or(0, |task| task.count);
    }

    fn done_ns(&mut self) -> u64 {
        let world = lock(&self.world);
        match world.tasks.get(self.index) {
            Some(task) if task.count == self.job && task.done < task.whole => {
                let share = u128::from(self.reserved_ns) * u128::from(task.done);
                u64::try_from(share / u128::from(task.whole)).unwrap_or(0)
            }
            Some(task) if task.count > self.job => {
                let jobs = world.outcome.jobs.iter().rev();
                let last = jobs.filter(|job| job.reservation == self.index).nth(1);
                if last.is_some_and(|job| job.done_ns.is_some()) { self.reserved_ns } else { 0 }
            }
            Some(_) => self.reserved_ns,
            None => 0,
        }
    }
}

/// Slowing them changes nothing: the worst that can come of it.
struct CoRunners<N> {
    world: Arc<Mutex<SimWorld<N>>>,
    graded: bool,
}

impl<N: SimEnvironment> Stopper for CoRunners<N> {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn is_graded(&self) -> bool {
        self.graded
    }

    fn stop(&mut self) -> io::Result<()> {
        let mut world = lock(&self.world);
        let at = world.now + world.nature.stop_ns();
        world.change = Some((at, false));
        Ok(())
    }

    fn resume(&mut self) -> io::Result<()> {
        let mut world = lock(&self.world);
        (world.running, world.change) = (true, None);
        Ok(())
    }
}

struct Gate<N> {
    world: Arc<Mutex<SimWorld<N>>>,
    index: usize,
}

impl<N> Gate<N> {
    fn set(&self, held: bool) {
        if let Some(task) = lock(&self.world).tasks.get_mut(self.index) {
            task.held = held;
        }
    }
}

impl<N: SimEnvironment> Stopper for Gate<N> {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn stop(&mut self) -> io::Result<()> {
        self.set(true);
        Ok(())
    }

    fn resume(&mut self) -> io::Result<()> {
        self.set(false);
        Ok(())
    }
}
