//! At which of its system calls a thread waits for its next job.
//!
//! Owns: the choice of that place. Must not: group wakings into jobs (`jobs` does).
//!
//! A thread goes round a loop: each job ends where it waits for the next one, and the waits at other places lie within. Which place
//! begins the jobs is shown by what ends the waits there: a timer of its own or a message that came by itself, and no answer
//! to what the thread asked for; then by how long it waits there. LiME (RTAS 2025) has the separators of jobs from system calls, too.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::activity::{Burst, Waker, length};
use super::{arrivals, period};
use crate::{KernelEvent, WaitCall};

/// Of a hundred waits so many have a place where places decide.
const KNOWN: usize = 95;
/// Of a hundred waits at a place so many come by themselves where its wakings are no answers.
const SURE: usize = 95;
/// Jobs begin where the thread waits so many times as long as at any other place that may begin them.
const LONGER: u64 = 3;
/// A place where it waits for a smaller part of the time than this of the others begins no jobs for sure.
const LEAST: u64 = 8;

/// The system call in which a thread waits, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitPlace {
    pub call: WaitCall,
    /// An address, a descriptor, or the number of the call.
    pub object: u64,
}

/// A condition variable has two futexes side by side, and its waiters go from one to the other.
const FUTEX_PAIR_BITS: u32 = 3;

impl WaitPlace {
    pub(super) fn of(event: &KernelEvent) -> Option<WaitPlace> {
        let call = WaitCall::from_code(event.b)?;
        let object = match call {
            WaitCall::Futex => event.value >> FUTEX_PAIR_BITS,
            _ => event.value,
        };
        Some(WaitPlace { call, object })
    }
}

/// What the places of its waits say about a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Places {
    #[default]
    /// They were not recorded, or do not tell its waits from each other.
    Unknown,
    /// Its jobs begin with the waits here, and all others lie within.
    Begin(WaitPlace),
    /// It waits at several, of which none is sure to begin its jobs.
    Several,
}

#[derive(Clone, Debug, Default)]
struct PlaceUse {
    waits: usize,
    /// Waits that a timer or a device ended, all times of wakings, and the lengths of the waits.
    timed: usize,
    times: Vec<i64>,
    lengths: Vec<u64>,
    /// Waits of which it is known what ended them.
    known: usize,
    /// Those that a timer or a message that came by itself ended.
    own: usize,
    waited_ns: u64,
}

impl PlaceUse {
    /// Whether its waits end by what the thread had asked for, or by who was at work before.
    fn is_answer(&self) -> bool {
        self.known * 2 >= self.waits && self.own * 100 < self.known * SURE
    }

    fn is_timed(&self) -> bool {
        self.timed * 100 >= self.waits * SURE
    }

    /// Of half of its waits, those of middle length, ns.
    fn length_spread_ns(&self) -> u64 {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        let at = |part: usize| lengths.get(lengths.len() * part / 4).copied().unwrap_or(0);
        at(3).saturating_sub(at(1))
    }

    /// How far its wakings are from a grid, ns.
    fn jitter_ns(&self) -> u64 {
        period::fit(&self.times).map_or(u64::MAX, |fit| fit.usual_ns)
    }
}

/// Which of two calls that timers end begins jobs: one until a time, then one of a descriptor, which may be a timer of its own. Others
/// wait for a length at most.
fn rank(place: WaitPlace) -> u8 {
    match place.call {
        WaitCall::SleepUntil => 2,
        WaitCall::Descriptor => 1,
        _ => 0,
    }
}

/// Leaves out the places where a thread waits for a length within its jobs, though longer than for these: the other place is of a
/// call that may begin jobs, on a steadier grid, or without a length of its own. False where that is not sure.
fn without_timeouts(candidates: &mut Vec<(WaitPlace, PlaceUse)>) -> bool {
    let mut timed = candidates.iter().filter(|(_, found)| found.is_timed());
    let Some((longest, of_longest)) = timed.next() else { return true };
    let timed = timed.filter(|(place, _)| rank(*place) >= rank(*longest));
    let first =
        |(place, found): &&(WaitPlace, PlaceUse)| (Reverse(rank(*place)), found.jitter_ns());
    let Some((best, of_best)) = timed.min_by_key(first) else { return true };
    let is_less = |one: u64, other: u64| one <= other / 2;
    let [jitter_ns, other_ns] = [of_best, of_longest].map(PlaceUse::jitter_ns);
    let [length_ns, of_timeout_ns] = [of_best, of_longest].map(PlaceUse::length_spread_ns);
    let is_better = match best.call {
        WaitCall::SleepUntil => !is_less(other_ns, jitter_ns),
        _ => is_less(jitter_ns, other_ns) || is_less(of_timeout_ns, length_ns),
    };
    let (best, is_of_one_kind) = (*best, rank(*best) == rank(*longest));
    if is_better {
        candidates.retain(|(place, found)| *place == best || !found.is_timed());
    }
    is_better || is_of_one_kind
}

pub(super) fn of(bursts: &[Burst], in_kernel: impl Fn(&Burst) -> bool) -> Places {
    let waits = || bursts.iter().filter(|burst| burst.slept.is_some() && !in_kernel(burst));
    let placed = || waits().filter_map(|burst| Some((burst.place?, burst)));
    if placed().count() * 100 < waits().count() * KNOWN {
        return Places::Unknown;
    }
    let mut all: BTreeMap<WaitPlace, PlaceUse> = BTreeMap::new();
    for (place, burst) in placed() {
        let found = all.entry(place).or_default();
        let is_timer = burst.waker == Waker::Interrupt || place.call == WaitCall::SleepUntil;
        let is_known = is_timer || burst.by.and_then(|by| by.begun_ns).is_some();
        found.waits += 1;
        found.known += usize::from(is_known);
        found.timed += usize::from(burst.waker == Waker::Interrupt);
        found.times.push(burst.at_ns);
        found.own += usize::from(is_timer || arrivals::is_brought(burst));
        let from_ns = burst.slept.map_or(burst.at_ns, |(from_ns, _)| from_ns);
        found.lengths.push(length(from_ns, burst.at_ns));
        found.waited_ns = found.waited_ns.saturating_add(length(from_ns, burst.at_ns));
    }
    all.retain(|place, _| !matches!(place.call, WaitCall::Lock | WaitCall::Sleep));
    let most = all.values().map(|found| found.waited_ns).max().unwrap_or(0);
    let mut candidates: Vec<(WaitPlace, PlaceUse)> = all.into_iter().collect();
    if candidates.iter().any(|(_, found)| !found.is_answer()) {
        candidates.retain(|(_, found)| !found.is_answer());
    }
    candidates.sort_by_key(|(_, found)| Reverse(found.waited_ns));
    if !without_timeouts(&mut candidates) {
        return Places::Several;
    }
    match &candidates[..] {
        [] => Places::Unknown,
        [(_, first), ..] if first.waited_ns.saturating_mul(LEAST) < most => Places::Several,
        [(_, first), (_, second), ..]
            if first.waited_ns < second.waited_ns.saturating_mul(LONGER) =>
        {
            Places::Several
        }
        [(place, _), ..] => Places::Begin(*place),
    }
}

/// The bursts of each stretch from the first one on of which the call is known: of a wait that began before its record nothing tells
/// whether it lies within a job.
pub(super) fn from_first(bursts: &[Burst]) -> Vec<Burst> {
    let mut known = None;
    let is_known = |burst: &&Burst| {
        if burst.place.is_some() {
            known = Some(burst.stretch);
        }
        known == Some(burst.stretch)
    };
    bursts.iter().filter(is_known).copied().collect()
}
