//! At which of its system calls a thread waits for its next job.
//!
//! Owns: the choice of that place. Must not: group wakings into jobs (`jobs` does).
//!
//! A thread goes round a loop: each job ends where it waits for the next one, and the waits at other places lie within. Which place
//! begins the jobs is shown by what ends the waits there: a timer of its own or a message that came by itself, and no answer
//! to what the thread asked for; then by how long it waits there. LiME (RTAS 2025) has the separators of jobs from system calls, too.

use std::collections::BTreeMap;

use super::activity::{Burst, Waker, length};
use super::arrivals;
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

#[derive(Clone, Copy, Debug, Default)]
struct PlaceUse {
    waits: usize,
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
        found.own += usize::from(is_timer || arrivals::is_brought(burst));
        let from_ns = burst.slept.map_or(burst.at_ns, |(from_ns, _)| from_ns);
        found.waited_ns = found.waited_ns.saturating_add(length(from_ns, burst.at_ns));
    }
    all.retain(|place, _| !matches!(place.call, WaitCall::Lock | WaitCall::Sleep));
    let most = all.values().map(|found| found.waited_ns).max().unwrap_or(0);
    let mut candidates: Vec<(WaitPlace, PlaceUse)> = all.into_iter().collect();
    if candidates.iter().any(|(_, found)| !found.is_answer()) {
        candidates.retain(|(_, found)| !found.is_answer());
    }
    candidates.sort_by_key(|(_, found)| std::cmp::Reverse(found.waited_ns));
    match candidates[..] {
        [] => Places::Unknown,
        [(_, first), ..] if first.waited_ns.saturating_mul(LEAST) < most => Places::Several,
        [(_, first), (_, second), ..]
            if first.waited_ns < second.waited_ns.saturating_mul(LONGER) =>
        {
            Places::Several
        }
        [(place, _), ..] => Places::Begin(place),
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
