//! How late a thread is woken: several ways of being woken, in turns on one thread, so that all of
//! them meet the same machine.
//!
//! Owns: the grid of absolute times and the turns, what is recorded of each wake-up, the load beside
//! it, the scheduling class.
//! Must not: know a paper.
//!
//! The loop is that of `cyclictest`, the field's program for it: the next time is the last one plus
//! the interval, never the present plus the interval; the lateness of a wake-up is the time at which
//! the thread runs less the time that it asked for; times that passed meanwhile are left out and
//! counted.

mod class;
mod lateness;
mod load;
mod waker;

use std::io;
use std::thread;

use hourglass_sys::clock::{ClockId, now_ns};

use super::costs::PinnedThread;
pub(super) use class::{ThreadClass, why_not_real_time};
pub(super) use lateness::{LatencySamples, Summary, figure, summary_of};
pub(super) use load::CpuHogs;
pub(super) use waker::{Device, EngineWaker, FileTimer, PosixSignal, Sleep, WaitEnd, Waker};

pub(super) type WakerFactory = Box<dyn FnOnce() -> Result<Box<dyn Waker>, String> + Send>;

#[derive(Clone, Copy, Debug)]
pub(super) struct WakeUpPlan {
    pub(super) interval_ns: u64,
    /// Wake-ups of each.
    pub(super) loops: u64,
    /// Wake-ups of one before the next has its turn.
    pub(super) turn: u64,
    /// Each turn begins at another phase of such a stretch; 0 for none. Who is bound to a tick of
    /// that length meets all of its phases.
    pub(super) phases_ns: u64,
    pub(super) loaded: bool,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) found: Vec<Result<LatencySamples, String>>,
    pub(super) class: ThreadClass,
    pub(super) hogs: usize,
}

/// Measures all of them on a thread of its own, on one CPU. `None` if `stopped` said so before the
/// plan was fulfilled.
pub(super) fn measure(
    plan: WakeUpPlan,
    ways: Vec<WakerFactory>,
    stopped: fn() -> bool,
) -> Option<Session> {
    let hogs = if plan.loaded { CpuHogs::on_every_cpu() } else { CpuHogs::none() };
    let asked = ways.len();
    let work = move || in_this_thread(plan, ways, stopped);
    let thread = match thread::Builder::new().spawn(work) {
        Ok(thread) => thread,
        Err(error) => {
            let why = format!("no thread can be started: {error}");
            let found = (0..asked).map(|_| Err(why.clone())).collect();
            return Some(Session { found, class: ThreadClass::Other { why }, hogs: hogs.count() });
        }
    };
    // A panic there is a defect, and goes on here; the hogs end with either.
    let done = match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    done.map(|(found, class)| Session { found, class, hogs: hogs.count() })
}

type WakeUpResults = (Vec<Result<LatencySamples, String>>, ThreadClass);

fn in_this_thread(
    plan: WakeUpPlan,
    ways: Vec<WakerFactory>,
    stopped: fn() -> bool,
) -> Option<WakeUpResults> {
    let _pinned = PinnedThread::to_last_cpu();
    let mut wakers: Vec<_> = ways.into_iter().map(|open| open()).collect();
    let room = usize::try_from(plan.loops).unwrap_or(usize::MAX);
    let mut found: Vec<LatencySamples> =
        wakers.iter().map(|_| LatencySamples::with_room(room)).collect();
    let class = ThreadClass::real_time();
    for (number, begin) in (0..plan.loops).step_by(step(plan.turn)).enumerate() {
        let turn = WakeUpBlock {
            loops: plan.turn.min(plan.loops - begin),
            interval_ns: plan.interval_ns,
            phase_ns: phase(number as u64, plan.phases_ns),
        };
        for (waker, lateness) in wakers.iter_mut().zip(&mut found) {
            let Ok(woken_by) = waker else { continue };
            match turn.run(woken_by.as_mut(), lateness, stopped) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => *waker = Err(format!("it failed: {error}")),
            }
        }
    }
    let found = wakers.into_iter().zip(found).map(|(waker, late)| waker.map(|_| late)).collect();
    Some((found, class))
}

fn step(turn: u64) -> usize {
    usize::try_from(turn).unwrap_or(usize::MAX).max(1)
}

/// Parts of a stretch that are never near one another, however many are taken: multiples of the
/// golden ratio, 2^32 being the whole.
const GOLDEN: u64 = 2_654_435_769;

fn phase(number: u64, stretch_ns: u64) -> u64 {
    let part = u128::from(number.wrapping_mul(GOLDEN) & u64::from(u32::MAX));
    ((part * u128::from(stretch_ns)) >> 32) as u64
}

struct WakeUpBlock {
    loops: u64,
    interval_ns: u64,
    phase_ns: u64,
}

impl WakeUpBlock {
    /// Whether it went to its end; not if `stopped` said so.
    fn run(
        &self,
        waker: &mut dyn Waker,
        lateness: &mut LatencySamples,
        stopped: fn() -> bool,
    ) -> io::Result<bool> {
        let mut next_ns = now_ns(ClockId::Monotonic) + self.interval_ns + self.phase_ns;
        waker.begin(next_ns, self.interval_ns)?;
        let mut done = 0;
        while done < self.loops {
            let slept = waker.wait(next_ns)?;
            let now = now_ns(ClockId::Monotonic);
            if stopped() {
                waker.end()?;
                return Ok(false);
            }
            if slept == WaitEnd::Interrupted {
                continue;
            }
            let passed = waker.passed(now, next_ns, self.interval_ns)?;
            lateness.record(now, next_ns, passed);
            next_ns += self.interval_ns * (1 + passed);
            done += 1;
        }
        waker.end()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
