//! Some periods of a real-time process beside others, on this machine.
//!
//! Owns: the processes, and the monitor over them. Must not: decide whom to stop (the monitor does), judge.

use std::sync::Arc;

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_reserve::account::ThreadAccounting;
use hourglass_reserve::progress::cpu_time::CpuTime;
use hourglass_reserve::progress::instructions::{InstructionProgress, SingleThreadRate};
use hourglass_reserve::progress::page::ProgressPage;
use hourglass_reserve::progress::word_progress::WordProgress;
use hourglass_reserve::progress::{Progress, ProgressSource};
use hourglass_reserve::smt::driver::{Driver, MonitorConfig, MonitorReport};
use hourglass_reserve::smt::enforcer::MonitoredReservation;
use hourglass_reserve::smt::jobs::JobReservation;
use hourglass_reserve::smt::monitor::{MonitorSettings, SiblingPolicy};
use hourglass_sim::slack::ProgressRate;
use hourglass_sys::clock::{ClockId, now_ns, own_thread_ns};
use hourglass_sys::instructions::Instructions;
use hourglass_sys::memfd::SharedWords;
use hourglass_sys::thread;
use hourglass_sys::wait::nanosleep_until;
use hourglass_sys::worker_process::{Worker, WorkerSettings};
use hourglass_time::Span;

use super::chunk::Chunk;
use super::contention::CoRunner;
use super::emulator::{CHUNK_NS, OTHER, PARTIES, Participant, REAL_TIME, SAME, WORDS, done_ns};
use super::job_loop::{Loop, LoopResult};
use super::jobs::{ProcessJobs, WorkKind};
use super::outcome::ProcessOutcome;
use super::smt_methods::SmtMethod;
use super::test_host::{self, SmtTestHost, phase, take_place};
use super::workloads::Computation;

/// A compilation works for a time, then waits for a disk for a time, ns.
const WORKS_NS: u64 = 8_000_000;
const WAITS_NS: u64 = 1_000_000;

/// Of a period, until when slack is watched, in hundredths. Who is slowed to the end of each period takes all of a CPU, and the
/// kernel keeps 5 % of each second from real-time threads: it takes 50 ms at once, which no slack covers. A hundredth is for
/// where seconds begin. `reserve` keeps a tenth free, for the same reason.
pub(super) const WATCHED_PERCENT: u64 = 94;

/// Nice value of the others: what else runs on the machine should not be what is compared.
const NICE: i8 = -20;

/// Workers end by themselves after this at the latest, beyond what the periods take, ns.
const LONGER_NS: u64 = 60_000_000_000;

/// The emulator lets this much of its rate pass as certain, in parts of ten.
const CERTAIN: u64 = 9;

/// Runs one job of each; `None` if a signal asked to stop.
///
/// # Errors
/// One line: what was refused, and what would grant it.
pub(super) fn run(
    rig: &SmtTestHost,
    jobs: &ProcessJobs,
    beside: Option<CoRunner>,
    way: SmtMethod,
    stopped: fn() -> bool,
) -> Result<Option<ProcessOutcome>, String> {
    // A thread of its own: the real-time class ends with it, and so do the workers.
    std::thread::scope(|scope| {
        let body = || SmtTrial::new(rig, jobs, beside)?.run(way, stopped);
        let made =
            std::thread::Builder::new().name("smt-real-time".into()).spawn_scoped(scope, body);
        match made.map_err(|error| error.to_string())?.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

pub(super) fn instructions() -> Result<(), String> {
    Instructions::open(0, false).map(drop).map_err(|error| error.to_string())
}

pub(super) struct PhaseWork {
    pub(super) work: Box<dyn Computation>,
    pub(super) chunk: Chunk,
}

struct SmtTrial<'a> {
    rig: &'a SmtTestHost,
    jobs: &'a ProcessJobs,
    beside: Option<CoRunner>,
    words: Arc<SharedWords>,
    phases: Vec<PhaseWork>,
    /// The co-runner on the real-time process' CPU, and the one on the sibling.
    workers: Vec<Worker>,
}

impl SmtTrial<'_> {
    fn new<'a>(
        rig: &'a SmtTestHost,
        jobs: &'a ProcessJobs,
        beside: Option<CoRunner>,
    ) -> Result<SmtTrial<'a>, String> {
        let words = SharedWords::create(c"hourglass-smt", WORDS).map_err(|e| e.to_string())?;
        // Before there are others to compete with.
        take_place(rig.cpu)?;
        let phased = |kind| {
            let mut work = phase(kind);
            work.run(test_host::WARM_UP);
            let chunk = Chunk::of(work.as_mut(), rig.phase_ps(kind), rig.emulated)?;
            Ok(PhaseWork { work, chunk })
        };
        let phases: Result<Vec<PhaseWork>, String> =
            WorkKind::ALL.into_iter().map(phased).collect();
        let mut trial = SmtTrial {
            rig,
            jobs,
            beside,
            words: Arc::new(words),
            phases: phases?,
            workers: Vec::new(),
        };
        if let Some(kind) = beside {
            let mut work = test_host::co_runner(kind);
            work.run(test_host::WARM_UP);
            let chunk = Chunk::of(work.as_mut(), rig.co_runner_ps(kind), rig.emulated)?;
            for party in [SAME, OTHER] {
                let worker = trial.worker(kind, party, chunk);
                trial.workers.push(worker.map_err(|error| format!("no process: {error}"))?);
            }
        }
        Ok(trial)
    }

    /// Rates of a party beside each of the others, in hundredths.
    fn rates(&self, party: usize) -> [u64; PARTIES] {
        let Some(kind) = self.beside.filter(|_| self.rig.emulated) else { return [100; PARTIES] };
        let (with, among) = (kind.percent(), CoRunner::AMONG_THEMSELVES);
        match party {
            REAL_TIME => [100, 100, with],
            SAME => [100, 100, among],
            _ => [with, among, 100],
        }
    }

    fn worker(&self, kind: CoRunner, party: usize, chunk: Chunk) -> std::io::Result<Worker> {
        let cpu = if party == SAME { self.rig.cpu } else { self.rig.sibling };
        let periods = self.jobs.jobs.len() as u64 + 2;
        let most_ns = periods.saturating_mul(self.jobs.period_ns).saturating_mul(2) + LONGER_NS;
        let mut work = test_host::co_runner(kind);
        let pace = Participant::new(self.words.words(), party, self.rates(party));
        let mut worked = 0;
        Worker::start(
            WorkerSettings { cpu: Some(cpu), nice: NICE, max_lifetime_ns: most_ns },
            || {
                let ns = chunk.run(work.as_mut(), chunk.ns);
                let _ = pace.after(ns);
                worked += ns;
                if kind == CoRunner::Compile && worked > WORKS_NS {
                    worked = 0;
                    pace.rests();
                    // Woken early it works on.
                    let _ = nanosleep_until(now_ns(ClockId::Monotonic) + WAITS_NS);
                }
                true
            },
        )
    }

    fn source(
        &self,
        way: SmtMethod,
        page: ProgressPage,
    ) -> Result<Box<dyn ProgressSource>, String> {
        let tid = thread::id();
        Ok(match way {
            SmtMethod::Ignore | SmtMethod::Disable | SmtMethod::Word => {
                Box::new(WordProgress::new(page))
            }
            SmtMethod::CpuTime => {
                let certain = self.beside.filter(|_| self.rig.emulated);
                let alpha = certain.map_or(Some(ProgressRate::ZERO), |kind| {
                    ProgressRate::new(kind.percent() * CERTAIN, 1_000)
                });
                let settle = self.rig.stopping.p999_ns + 4 * CHUNK_NS;
                let read = move || own_thread_ns(tid).ok();
                Box::new(CpuTime::new(read, alpha.unwrap_or(ProgressRate::ZERO), settle))
            }
            SmtMethod::Instructions => {
                let counter = Instructions::open(tid, false).map_err(|error| error.to_string())?;
                let rate = single_thread_rate(&counter)?;
                let settle = self.rig.stopping.p999_ns + 4 * CHUNK_NS;
                let time = move || own_thread_ns(tid).ok();
                Box::new(InstructionProgress::new(
                    move || counter.read().ok(),
                    time,
                    Some(rate),
                    settle,
                ))
            }
        })
    }

    fn watch(&self, way: SmtMethod, page: ProgressPage) -> Result<Driver, String> {
        let span = |ns: u64| Span::saturating_from_nanos(ns);
        let (reserved, period) = (span(self.jobs.reserve_ns), self.jobs.period_ns);
        let watched_ns = if way.monitors() { period / 100 * WATCHED_PERCENT } else { period };
        let reservation = Reservation::new(reserved, span(period), ReservationKind::Hard)
            .and_then(|reservation| reservation.with_deadline(span(watched_ns)))
            .map_err(|error| error.to_string())?;
        let policy = match way {
            SmtMethod::Ignore => SiblingPolicy::Ignore,
            SmtMethod::Disable => SiblingPolicy::Disable,
            _ => SiblingPolicy::Monitor,
        };
        // With the lateness of timers, so that the monitor need not measure it again.
        let margin_ns = self.rig.stopping.margin_ns();
        let plan = MonitorConfig {
            settings: MonitorSettings { policy, margin_ns, ..MonitorSettings::default() },
            cpus: vec![self.rig.sibling],
            priority: Some(test_host::MONITOR),
            timer_samples: 0,
        };
        let sibling = self.workers.last().map(Worker::pid);
        let stopper = self.rig.stopper(sibling.as_slice())?;
        let promised = JobReservation::new(&reservation, now_ns(ClockId::Monotonic));
        let watched = MonitoredReservation {
            reservation: promised,
            progress: self.source(way, page)?,
            gate: None,
        };
        Driver::start(plan, vec![watched], stopper).map_err(|error| error.to_string())
    }

    fn run(
        &mut self,
        way: SmtMethod,
        stopped: fn() -> bool,
    ) -> Result<Option<ProcessOutcome>, String> {
        let page = ProgressPage::create().map_err(|error| error.to_string())?;
        let seen = ProgressPage::open(&page.path()).map_err(|error| error.to_string())?;
        let progress = Progress::on(page);
        let driver = self.watch(way, seen)?;
        // On the monitor's grid, but for periods that have begun by now.
        let promised = driver.promised().first().copied();
        let first = promised.map_or(0, |p| p.after(now_ns(ClockId::Monotonic)).first_ns());
        let words = Arc::clone(&self.words);
        let others = || done_ns(words.words(), SAME) + done_ns(words.words(), OTHER);
        let rates = self.rates(REAL_TIME);
        let looped = Loop {
            jobs: self.jobs,
            reported: way == SmtMethod::Word,
            pace: Participant::new(words.words(), REAL_TIME, rates),
            account: ThreadAccounting::open(),
            progress,
        };
        let found = looped.run(first, &mut self.phases, &others, stopped);
        let report = driver.stop();
        Ok(found.map(|found| outcome(self.rig, self.jobs, found, &report)))
    }
}

fn outcome(
    rig: &SmtTestHost,
    jobs: &ProcessJobs,
    found: LoopResult,
    report: &MonitorReport,
) -> ProcessOutcome {
    ProcessOutcome {
        deadline_ns: jobs.period_ns,
        // On hardware threads it is unknown what a job needs by itself.
        reserve_ns: rig.emulated.then_some(jobs.reserve_ns),
        periods: jobs.jobs.len() as u64,
        done: found.done,
        best_effort_ns: found.best_effort_ns as f64,
        stops: report.statistics.stops,
        checks: report.statistics.checks,
        latest_look_ns: report.statistics.max_latency_ns,
        monitor_ns: report.cpu_ns,
        margin_ns: report.margin_ns,
    }
}

const WINDOWS: usize = 8;
const WINDOW_STEPS: u64 = 10_000;

/// Instructions of the product by time. No other thread of the core without a real-time class runs yet.
fn single_thread_rate(counter: &Instructions) -> Result<SingleThreadRate, String> {
    let mut work = phase(WorkKind::Product);
    let mut windows = Vec::with_capacity(WINDOWS);
    for _ in 0..WINDOWS {
        let read = || counter.read().map_err(|error| error.to_string());
        let (before, begun) = (read()?, now_ns(ClockId::ThreadCpu));
        work.run(WINDOW_STEPS);
        windows.push((read()? - before, now_ns(ClockId::ThreadCpu) - begun));
    }
    SingleThreadRate::of_windows(&windows).ok_or_else(|| "no instruction was counted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::jobs::{product, video};
    use super::*;
    use hourglass_skip::{Requirement, skip};

    /// The emulated set-up, or real siblings, at work: what is disabled stands, what is ignored does not.
    /// How well deadlines hold is a figure, not a verdict of a shared machine.
    #[test]
    fn the_three_policies_do_what_they_say() {
        let rig = match SmtTestHost::for_this_machine() {
            Ok(rig) => rig,
            Err(why) => return skip(Requirement::REAL_TIME, why),
        };
        println!("{}", rig.words());
        let jobs = product(8);
        let once = |way| run(&rig, &jobs, Some(CoRunner::Integer), way, || false);
        let outcome = |way| {
            // A monitor that gets no processor time says so and protects no job: seen once on a shared machine.
            let starved = |why: &String| why.contains("got no processor time");
            match once(way).or_else(|why| if starved(&why) { once(way) } else { Err(why) }) {
                Ok(outcome) => outcome.unwrap(),
                Err(why) => panic!("{}: {why}", way.name()),
            }
        };
        let [ignore, disable, word, time] =
            [SmtMethod::Ignore, SmtMethod::Disable, SmtMethod::Word, SmtMethod::CpuTime].map(|way| {
                let found = outcome(way);
                println!(
                    "{} missed {} overran {} excused {} latest {:?} best effort {:.3} stops {} checks {} monitor {}",
                    way.name(),
                    found.missed(),
                    found.overran(),
                    found.excused(),
                    found.latest_ns(),
                    found.best_effort(),
                    found.stops,
                    found.checks,
                    found.monitor_ns
                );
                found
            });
        assert_eq!((ignore.stops, ignore.periods), (0, 8));
        assert!(disable.stops >= 1 && word.checks > ignore.checks && time.checks > 0);
        let control = run(&rig, &video(4), None, SmtMethod::Ignore, || false).unwrap().unwrap();
        assert!(control.best_effort() == 0.0 && !control.done.is_empty());
    }
}
