//! The common case, fast: independent periodic threads, each on a CPU of its own choice alone, under distinct
//! fixed priorities or under EDF, preempted anywhere, at no cost.
//!
//! Owns: which systems it takes, and their simulation with statistics only. CPUs that share no thread do not
//! know each other, so that one is simulated after the other, a stretch of time each. Its outcome is that of
//! the engine, event for event (tests compare them). Must not: differ.

mod track;

use super::check;
use super::error::SimError;
use super::outcome::{CpuOutcome, Outcome, ThreadOutcome};
use super::settings::Settings;
use super::system::{Overheads, System};
use super::thread::{Arrivals, Class, Jitter, Preemption, Thread};
use track::{LANE_BITS, MOST_THREADS, Track};

/// Times in keys are below this: nine years.
const MOST_TIME: u64 = 1 << (u64::BITS - LANE_BITS);

/// Jobs between two looks at whether to go on, about: some milliseconds.
const JOBS_TO_ASK: u64 = 1 << 16;

/// Simulates the system if it is a simple one. `reached` hears now and then how far the simulation is, in ns,
/// and says whether it goes on; if not, it ends there as at its horizon.
pub(super) fn run(
    system: &System,
    settings: Settings,
    reached: &mut dyn FnMut(u64) -> bool,
) -> Option<Result<Outcome, SimError>> {
    let mut tracks = tracks(system, settings)?;
    let stretch = stretch(system);
    let (mut until, mut ended) = (0u64, false);
    while !ended {
        until = settings.horizon.min(until.saturating_add(stretch));
        ended = until == settings.horizon;
        for track in &mut tracks {
            match (track.advance(until, ended), system.cpus) {
                (Ok(()), _) => {}
                (Err(error), 1) => return Some(Err(error)),
                // On another CPU something may have failed before.
                (Err(_), _) => return None,
            }
        }
        if system.cpus > 1 && events(&tracks) > settings.most_events {
            return None;
        }
        if !ended && !reached(until) {
            // What is done at this instant is done, as at a horizon.
            let end = |track: &mut Track| track.advance(until, true);
            return match tracks.iter_mut().try_for_each(end) {
                Ok(()) => Some(Ok(outcome(system, tracks, until))),
                Err(error) => Some(Err(error)),
            };
        }
    }
    Some(Ok(outcome(system, tracks, settings.horizon)))
}

/// A track for each CPU; `None` where the system is not simple.
fn tracks(system: &System, settings: Settings) -> Option<Vec<Track>> {
    let plain = !system.threads.is_empty()
        && system.servers.is_empty()
        && system.overheads == Overheads::default()
        && system.throttling.is_none()
        && (system.cpus == 1 || system.interference.entries().is_empty());
    if !plain || !system.threads.iter().all(|thread| is_simple(thread, settings.horizon)) {
        return None;
    }
    let mut here: Vec<Vec<usize>> = vec![Vec::new(); system.cpus as usize];
    for (position, thread) in system.threads.iter().enumerate() {
        let mask = check::mask(thread, system.cpus);
        if mask.count_ones() != 1 {
            return None;
        }
        here.get_mut(mask.trailing_zeros() as usize)?.push(position);
    }
    here.iter().map(|threads| track(system, settings, threads)).collect()
}

/// The track of a CPU with these threads; `None` where they are too many, or not all by deadline or by
/// distinct priorities.
fn track(system: &System, settings: Settings, threads: &[usize]) -> Option<Track> {
    let is_edf = |at: &usize| system.threads[*at].class == Class::Edf;
    let by_deadline = threads.iter().any(is_edf);
    if threads.len() > MOST_THREADS || (by_deadline && !threads.iter().all(is_edf)) {
        return None;
    }
    let mut threads = threads.to_vec();
    if !by_deadline {
        let priority = |at: usize| match system.threads[at].class {
            Class::Fifo(priority) => priority,
            _ => 0,
        };
        threads.sort_by_key(|at| std::cmp::Reverse(priority(*at)));
        if threads.windows(2).any(|pair| priority(pair[0]) == priority(pair[1])) {
            return None;
        }
    }
    Track::new(system, settings, &threads, by_deadline)
}

fn is_simple(thread: &Thread, horizon: u64) -> bool {
    let below = |time: u64| horizon.checked_add(time).is_some_and(|sum| sum < MOST_TIME);
    let class = match thread.class {
        Class::Edf => below(thread.deadline),
        Class::Fifo(_) => true,
        _ => false,
    };
    let arrivals = match (&thread.arrivals, thread.jitter) {
        (Arrivals::Periodic { offset, period }, Jitter::None) => {
            below(*period) && *offset < MOST_TIME
        }
        (Arrivals::Periodic { offset, period }, Jitter::Worst(jitter)) => {
            below(*period) && offset.checked_add(jitter).is_some_and(|first| first < MOST_TIME)
        }
        _ => false,
    };
    class
        && arrivals
        && thread.after.is_empty()
        && thread.tick <= 1
        && thread.preemption == Preemption::Full
        && thread.marks.is_empty()
        && thread.server.is_none()
}

/// The time in which about [`JOBS_TO_ASK`] jobs arrive, ns; at least 1.
fn stretch(system: &System) -> u64 {
    let rate: u128 = system
        .threads
        .iter()
        .filter_map(|thread| match thread.arrivals {
            Arrivals::Periodic { period, .. } => Some((1u128 << 64) / u128::from(period.max(1))),
            _ => None,
        })
        .sum();
    let time = (u128::from(JOBS_TO_ASK) << 64) / rate.max(1);
    u64::try_from(time).unwrap_or(u64::MAX).max(1)
}

fn events(tracks: &[Track]) -> u64 {
    tracks.iter().map(|track| track.events).fold(0, u64::saturating_add)
}

fn outcome(system: &System, tracks: Vec<Track>, horizon: u64) -> Outcome {
    let events = events(&tracks);
    let mut threads = vec![ThreadOutcome::default(); system.threads.len()];
    let cpus: Vec<CpuOutcome> =
        tracks.into_iter().map(|track| track.finish(horizon, &mut threads)).collect();
    let jobs = threads.iter().map(|thread| thread.jobs).sum();
    Outcome { horizon, events, jobs, threads, servers: Vec::new(), cpus }
}

#[cfg(test)]
mod tests;
