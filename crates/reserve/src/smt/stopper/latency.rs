//! How long stopping takes, measured on a victim of our own, and the choice by that.
//!
//! The victim spins on one CPU and writes down when it last ran. A thread on another CPU, as urgent as a monitor,
//! sleeps to a time, decides, stops the victim, and looks later when its last beat was. Trials in which the victim did
//! not run at the decision do not count, nor those in which a host had the deciding thread's CPU during the order, as
//! far as that is proven: a monitor runs on a co-runner's CPU, and that co-runner disturbs nothing while the host has
//! the CPU. What is not proven counts, and what stopping takes in the run makes the margin larger.

use std::io;
use std::time::Duration;

use hourglass_documents::CpuSet;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::heart_beat::HeartBeat;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;
use hourglass_timer::Sleeper;
use thiserror::Error;

use super::{CoRunners, Stopper, StopperKind, StopperRequest, Unavailable, on_the_set, open};
use crate::account::ThreadAccounting;
use crate::guardian::Guardian;
use crate::smt::topology::Topology;
use crate::target::Target;

/// Trials of each kind from which the choice is made.
const QUICK: u32 = 60;

/// A victim whose last beat is older than this does not run, ns: a beat takes some 30 ns, on an emulated
/// processor some 1,000.
const FRESH_NS: u64 = 5_000;

/// First and last look after a stop, ns. A victim that still runs at the last one was not stopped.
const FIRST_LOOK_NS: u64 = 400_000;
const LAST_LOOK_NS: u64 = 200_000_000;

/// Between two trials, ns; a random part of it comes on top, so that decisions fall anywhere between
/// the victim's ticks.
const PAUSE_NS: u64 = 250_000;

/// Sleeps from which the sleeper learns before their lateness counts.
const LESSONS: u32 = 20;

/// An order during which a host had the CPU for longer than this does not count, ns.
pub(super) const SPOILED_NS: u64 = 20_000;

/// Fewer trials than this say nothing.
const LEAST: usize = 20;

/// How much faster in its 99th percentile a kind must be to be taken before one that is preferred to
/// it: by a fifth.
const WORTH: (u64, u64) = (4, 5);

/// A kind whose 99.9th percentile is more than this multiple of its 99th sometimes waits for something that a few
/// trials do not show. Freezing takes locks that all control groups of the machine share and that know no priorities:
/// where others make and remove groups, one in a thousand takes 4 to 30 ms.
const TAIL: u64 = 4;

/// Where and how long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopTrialSetup {
    /// The CPU on which the decision is made.
    pub controller: u32,
    /// The CPU on which the victim runs.
    pub victim: u32,
    /// Trials that are to count; a thousand give a 99.9th percentile that is not just the maximum.
    pub trials: u32,
    /// No longer than this for one kind, ms.
    pub limit_ms: u64,
    /// `SCHED_FIFO` priority of the deciding thread, 1 to 99; without the privilege it has none.
    pub priority: u8,
}

impl StopTrialSetup {
    /// On this machine, for co-runners on `shares` if this process may run there; 2,000 trials in at most
    /// 4 s, of which the 99.9th percentile leaves two aside.
    ///
    /// # Errors
    /// This process may run on one CPU only.
    pub fn new(shares: &CpuSet) -> Result<StopTrialSetup, NoStopperError> {
        let allowed: CpuSet = thread::affinity().unwrap_or_default().into_iter().collect();
        let there = shares.intersection(&allowed);
        let victim = there.iter().next().or_else(|| allowed.iter().last());
        let (Some(victim), true) = (victim, allowed.len() > 1) else {
            return Err(NoStopperError::OneCpu(allowed));
        };
        let core = Topology::default().core(victim);
        let elsewhere = allowed.difference(&core);
        let other = || allowed.iter().find(|cpu| *cpu != victim);
        let controller = elsewhere.iter().next().or_else(other).unwrap_or(victim);
        Ok(StopTrialSetup { controller, victim, trials: 2_000, limit_ms: 4_000, priority: 60 })
    }
}

/// What a measurement gave. Times in ns, from the decision on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopLatency {
    /// Which one.
    pub stopper: StopperKind,
    /// Trials that counted.
    pub trials: u64,
    /// To the victim's last sign of life: median.
    pub p50_ns: u64,
    /// From the decision on, 99th percentile.
    pub p99_ns: u64,
    /// From the decision on, 99.9th percentile; the maximum of fewer than 1,000 trials.
    pub p999_ns: u64,
    /// From the decision on, maximum.
    pub max_ns: u64,
    /// From the decision to resume to the first sign of life: median.
    pub resumed_p50_ns: u64,
    /// How late the deciding thread's sleeps ended, 99.9th percentile.
    pub timer_p999_ns: u64,
    /// Whether the deciding thread was a real-time one, as a monitor is.
    pub realtime: bool,
}

impl StopLatency {
    /// The margin at which co-runners must be stopped: stopping and timer, each at its 99.9th percentile.
    #[must_use]
    pub fn margin_ns(&self) -> u64 {
        self.p999_ns.saturating_add(self.timer_p999_ns)
    }
}

/// A stopper that was chosen by measurement and is open.
pub struct SelectedStopper {
    /// The chosen stopper.
    pub stopper: Box<dyn Stopper>,
    /// Its latency.
    pub measured: StopLatency,
    /// What it took to stop the co-runners themselves ([`on_the_set`]), ns.
    pub set_ns: u64,
    /// Every kind that was tried, with what came of it.
    pub tried: Vec<Result<StopLatency, Unavailable>>,
}

impl SelectedStopper {
    /// From the order on, how long co-runners may still run, ns: the worse of victim and co-runners.
    #[must_use]
    pub fn stopping_ns(&self) -> u64 {
        self.measured.p999_ns.max(self.set_ns)
    }

    /// The margin at which they must be stopped, ns: that, and how late timers are.
    #[must_use]
    pub fn margin_ns(&self) -> u64 {
        self.stopping_ns().saturating_add(self.measured.timer_p999_ns)
    }
}

/// There is no way of stopping them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoStopperError {
    /// Nothing can be measured, nor be run beside something, on one CPU.
    #[error("this process may run on CPU {0} alone; allow it a second one to stop co-runners from")]
    OneCpu(CpuSet),
    /// Every kind is refused; each with its reason.
    #[error("no way of stopping co-runners: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    None(Vec<Unavailable>),
}

/// Measures each of `kinds` on a victim, and opens the best for `wanted`: the first of them, unless a
/// later one is faster by a fifth at the 99th percentile. If the best one's 99.9th percentile, which makes the
/// margin, is out of all proportion, the one with the least of all is taken. What cannot be opened for
/// `wanted` is left out.
///
/// Takes some 100 ms for each kind and up to [`StopTrialSetup::limit_ms`] for the one that is chosen, or for each.
///
/// # Errors
/// None of them can be had.
pub fn choose(
    kinds: &[StopperKind],
    wanted: &StopperRequest,
    setup: &StopTrialSetup,
    guardian: &Guardian,
) -> Result<SelectedStopper, NoStopperError> {
    let quick = StopTrialSetup { trials: QUICK.min(setup.trials), ..*setup };
    let tried = kinds.iter().map(|kind| measure(*kind, &quick, guardian)).collect();
    let mut race = Race { kinds, tried, fully: vec![false; kinds.len()] };
    while let Some((place, measured)) = race.best(|kind| measure(kind, setup, guardian)) {
        let tried = open(measured.stopper, wanted, guardian).and_then(|mut stopper| {
            let fails = |error: io::Error| {
                let cause = format!("the co-runners themselves: {error}");
                Unavailable::new(measured.stopper, cause, "use another stopper")
            };
            let trial = guardian.must_live().and_then(|()| on_the_set(stopper.as_mut(), setup));
            let set_ns = trial.map_err(fails)?;
            Ok((stopper, set_ns))
        });
        match tried {
            Ok((stopper, set_ns)) => {
                return Ok(SelectedStopper { stopper, measured, set_ns, tried: race.tried });
            }
            Err(refused) => race.tried[place] = Err(refused),
        }
    }
    Err(NoStopperError::None(race.tried.into_iter().filter_map(Result::err).collect()))
}

struct Race<'a> {
    kinds: &'a [StopperKind],
    tried: Vec<Result<StopLatency, Unavailable>>,
    /// Which have been measured in full.
    fully: Vec<bool>,
}

impl Race<'_> {
    /// The best, measured in full; with all others, if it is one that now and then takes very long.
    fn best(
        &mut self,
        measure: impl Fn(StopperKind) -> Result<StopLatency, Unavailable>,
    ) -> Option<(usize, StopLatency)> {
        let in_full = |race: &mut Self, place: usize| {
            if race.tried[place].is_ok() && !std::mem::replace(&mut race.fully[place], true) {
                race.tried[place] = measure(race.kinds[place]);
            }
        };
        loop {
            let place = best_of(&self.tried)?;
            in_full(self, place);
            let Ok(first) = self.tried[place].clone() else { continue };
            if first.p999_ns <= first.p99_ns.saturating_mul(TAIL) {
                return Some((place, first));
            }
            (0..self.kinds.len()).for_each(|place| in_full(self, place));
            let found = self.tried.iter().enumerate();
            let found = found.filter_map(|(place, one)| Some((place, *one.as_ref().ok()?)));
            return found.min_by_key(|(_, one)| one.p999_ns);
        }
    }
}

fn best_of(tried: &[Result<StopLatency, Unavailable>]) -> Option<usize> {
    let mut best: Option<(usize, u64)> = None;
    for (place, found) in tried.iter().enumerate() {
        let Ok(found) = found else { continue };
        let better = best.is_none_or(|(_, p99)| {
            u128::from(found.p99_ns) * u128::from(WORTH.1) < u128::from(p99) * u128::from(WORTH.0)
        });
        if better {
            best = Some((place, found.p99_ns));
        }
    }
    best.map(|(place, _)| place)
}

/// Measures one kind.
///
/// # Errors
/// Why it cannot be had here, or that it did not stop its victim.
pub fn measure(
    kind: StopperKind,
    setup: &StopTrialSetup,
    guardian: &Guardian,
) -> Result<StopLatency, Unavailable> {
    let setup = *setup;
    // A thread of its own: it changes its CPU and policy.
    let work = move |guardian: &Guardian| in_thread(kind, &setup, guardian);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("hg-measure".to_owned());
        let thread = thread.spawn_scoped(scope, || work(guardian));
        let failed =
            |cause: String| Unavailable::new(kind, cause, "try again, or use another stopper");
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(failed("its measurement ended early".to_owned())),
            Err(error) => Err(failed(format!("no thread to measure it: {error}"))),
        }
    })
}

fn in_thread(
    kind: StopperKind,
    setup: &StopTrialSetup,
    guardian: &Guardian,
) -> Result<StopLatency, Unavailable> {
    let failed = |what: &str, error: &io::Error| {
        Unavailable::new(kind, format!("{what}: {error}"), "use another stopper")
    };
    let life_ns = setup.limit_ms.saturating_add(2_000).saturating_mul(1_000_000);
    let victim = HeartBeat::start(setup.victim, Attributes::Other(-20), life_ns)
        .map_err(|error| failed("no victim to measure it on", &error))?;
    let (wanted, protected) = arranged(kind, setup, victim.pid(), life_ns)?;
    let mut stopper = open(kind, &wanted, guardian)?;
    let victim = victim.begin();
    // The policy first: pinned to a busy CPU without one, this thread might wait for long.
    let realtime = sched::set(Attributes::Fifo(setup.priority)).is_ok();
    thread::set_affinity([setup.controller])
        .map_err(|error| failed(&format!("CPU {}", setup.controller), &error))?;
    let samples = StopTrials::new(&victim, setup).run(stopper.as_mut());
    drop(stopper);
    drop(protected);
    let samples = samples.map_err(|error| failed("it fails", &error))?;
    samples.judge(kind, realtime)
}

/// The arguments with which the stopper is opened; for cookies also the work that it serves, which runs beside the
/// victim and is more urgent.
fn arranged(
    kind: StopperKind,
    setup: &StopTrialSetup,
    victim: u32,
    life_ns: u64,
) -> Result<(StopperRequest, Option<HeartBeat>), Unavailable> {
    let mut wanted = StopperRequest::processes([victim]);
    if kind != StopperKind::CoreCookie {
        return Ok((wanted, None));
    }
    let refused = |cause: String| Unavailable::new(kind, cause, "use another stopper");
    let core = Topology::default().core(setup.victim);
    let own = [setup.victim].into_iter().collect();
    let Some(sibling) = core.difference(&own).iter().find(|cpu| *cpu != setup.controller) else {
        return Err(refused(format!("CPU {} has no sibling to measure beside", setup.victim)));
    };
    let protected = HeartBeat::start(sibling, Attributes::Fifo(1), life_ns)
        .map_err(|error| refused(format!("no work to protect: {error}")))?
        .begin();
    wanted.co_runners = CoRunners::Everyone;
    wanted.reserved = Some(Target::Process(protected.pid()));
    wanted.shares = own;
    Ok((wanted, Some(protected)))
}

struct StopTrials<'a> {
    victim: &'a HeartBeat,
    trials: usize,
    end_ns: u64,
    sleeper: Sleeper,
    /// xorshift64: phases against the ticks, nothing more.
    random: u64,
}

#[derive(Default)]
struct Samples {
    stopped: Vec<u64>,
    resumed: Vec<u64>,
    late: Vec<u64>,
    /// Trials in which the victim ran on.
    ran_on: u64,
}

impl<'a> StopTrials<'a> {
    fn new(victim: &'a HeartBeat, setup: &StopTrialSetup) -> StopTrials<'a> {
        let begun = now_ns(ClockId::Monotonic);
        StopTrials {
            victim,
            trials: setup.trials as usize,
            end_ns: begun.saturating_add(setup.limit_ms.saturating_mul(1_000_000)),
            sleeper: Sleeper::new(),
            random: begun | 1,
        }
    }

    fn run(&mut self, stopper: &mut dyn Stopper) -> io::Result<Samples> {
        let room = self.trials;
        let mut samples = Samples {
            stopped: Vec::with_capacity(room),
            resumed: Vec::with_capacity(room),
            late: Vec::with_capacity(2 * room),
            ran_on: 0,
        };
        for _ in 0..LESSONS {
            let _ = self.sleeper.sleep_ns(PAUSE_NS);
        }
        let (account, mut resumed_ns) = (ThreadAccounting::open(), None);
        while samples.stopped.len() < room && now_ns(ClockId::Monotonic) < self.end_ns {
            let pause = PAUSE_NS + self.phase();
            let slept = self.sleeper.sleep_ns(pause);
            if samples.late.len() < samples.late.capacity() {
                samples.late.push(slept.miss_ns());
            }
            if let Some(resumed_ns) = resumed_ns.take() {
                let back = self.victim.back_ns();
                samples.resumed.extend(back.checked_sub(resumed_ns).filter(|_| back > resumed_ns));
            }
            let before = account.read();
            let beat = self.victim.last_ns();
            let decided = now_ns(ClockId::Monotonic);
            if beat == 0 || decided.saturating_sub(beat) > FRESH_NS {
                continue;
            }
            stopper.stop()?;
            let ordered_ns = now_ns(ClockId::Monotonic).saturating_sub(decided);
            let spoiled = account.read().since(before).taken_ns(ordered_ns) > SPOILED_NS;
            let last = self.last_beat();
            resumed_ns = Some(now_ns(ClockId::Monotonic));
            stopper.resume()?;
            match last {
                Some(_) if spoiled => {}
                Some(last) => samples.stopped.push(last.saturating_sub(decided)),
                None => samples.ran_on += 1,
            }
        }
        Ok(samples)
    }

    fn phase(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % PAUSE_NS
    }

    /// When the victim last ran; `None` if it still does. Two equal values in a row are needed, with longer and longer
    /// pauses.
    fn last_beat(&self) -> Option<u64> {
        let mut pause = FIRST_LOOK_NS;
        let mut before = None;
        while pause < LAST_LOOK_NS {
            std::thread::sleep(Duration::from_nanos(pause));
            let last = self.victim.last_ns();
            if before == Some(last) {
                return Some(last);
            }
            pause = if before.is_none() { FIRST_LOOK_NS / 4 } else { pause * 2 };
            before = Some(last);
        }
        None
    }
}

impl Samples {
    fn judge(mut self, kind: StopperKind, realtime: bool) -> Result<StopLatency, Unavailable> {
        let refused = |cause: String| Unavailable::new(kind, cause, "use another stopper");
        let trials = self.stopped.len();
        // One in a hundred may be the scheduler's; more is no stopping.
        if self.ran_on.saturating_mul(100) > trials as u64 {
            return Err(refused(format!("its victim ran on in {} of its trials", self.ran_on)));
        }
        if trials < LEAST {
            let cause =
                format!("only {trials} trials in which its victim ran; the machine is too busy");
            return Err(refused(cause));
        }
        for samples in [&mut self.stopped, &mut self.resumed, &mut self.late] {
            samples.sort_unstable();
        }
        Ok(StopLatency {
            stopper: kind,
            trials: trials as u64,
            p50_ns: at(&self.stopped, 500),
            p99_ns: at(&self.stopped, 990),
            p999_ns: at(&self.stopped, 999),
            max_ns: at(&self.stopped, 1_000),
            resumed_p50_ns: at(&self.resumed, 500),
            timer_p999_ns: at(&self.late, 999),
            realtime,
        })
    }
}

/// The smallest sample that `per_mille` in a thousand do not exceed; 0 without samples.
fn at(sorted: &[u64], per_mille: usize) -> u64 {
    let rank = (sorted.len() * per_mille).div_ceil(1_000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
