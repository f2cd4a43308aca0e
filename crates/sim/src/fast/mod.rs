//! The common case, fast: independent periodic threads, each on a CPU of its own choice alone, under
//! fixed priorities or under EDF, preempted anywhere or nowhere, at no cost.
//!
//! Owns: which systems it takes, and their simulation with statistics and slices. CPUs that share no thread do
//! not know each other, so that one is simulated after the other, a stretch of time each. Its outcome and
//! what it tells are those of the engine, event for event (tests compare them). Must not: differ.

mod keys;
mod ready;
mod slices;
mod track;

use std::cmp::Reverse;

use super::check;
use super::error::SimError;
use super::outcome::{CpuOutcome, SimOutcome, ThreadOutcome};
use super::settings::SimSettings;
use super::sink::{Sink, SinkDetail, Slice};
use super::system::{Overheads, System};
use super::thread::{ArrivalPattern, Class, Jitter, Preemption, Thread};
use keys::lane_bits;
use slices::CpuSlices;
use track::{DispatchOrder, Track};

/// About the number of jobs between two questions whether to go on: some milliseconds.
const JOBS_TO_ASK: u64 = 1 << 16;

/// The number of jobs between two such questions where slices are stored in between.
const JOBS_TO_TELL: u64 = 1 << 11;

pub(super) enum FastOutcome {
    Done(Result<SimOutcome, SimError>),
    /// The engine must simulate. The sink already received this number of slices, which are the engine's first ones.
    Left(u64),
}

/// Simulates the system if it is a simple one, and if the sink wants no events. The sink hears now and then how
/// far the simulation is, in ns, and says whether it goes on; if not, it ends there as at its horizon.
pub(super) fn run(system: &System, settings: SimSettings, sink: &mut dyn Sink) -> FastOutcome {
    let tells = match sink.interest() {
        SinkDetail::Nothing => false,
        SinkDetail::Slices => true,
        SinkDetail::Everything => return FastOutcome::Left(0),
    };
    let Some(tracks) = tracks(system, settings, tells) else { return FastOutcome::Left(0) };
    let stretch = stretch(system, if tells { JOBS_TO_TELL } else { JOBS_TO_ASK });
    FastRun { system, settings, tracks, slices: Vec::new(), slices_sent: 0 }.run(stretch, sink)
}

struct FastRun<'a> {
    system: &'a System,
    settings: SimSettings,
    tracks: Vec<Track>,
    /// Room for those of a stretch.
    slices: Vec<(Slice, slices::SliceEnd)>,
    /// Number of slices that the sink received.
    slices_sent: u64,
}

impl FastRun<'_> {
    /// A stretch of time after the other.
    fn run(mut self, stretch: u64, sink: &mut dyn Sink) -> FastOutcome {
        let (mut until, mut ended) = (0u64, false);
        while !ended {
            until = self.settings.horizon.min(until.saturating_add(stretch));
            ended = until == self.settings.horizon;
            if let Err(error) = self.advance(until, ended) {
                return self.failed(error);
            }
            if self.system.cpus > 1 && events(&self.tracks) > self.settings.max_events {
                return FastOutcome::Left(self.slices_sent);
            }
            if !ended {
                self.flush(sink);
                if !sink.reached(until) {
                    // Work of this instant counts as done, as at a horizon.
                    ended = true;
                    if let Err(error) = self.advance(until, true) {
                        return self.failed(error);
                    }
                }
            }
        }
        self.tracks.iter_mut().for_each(|track| track.close(until));
        self.flush(sink);
        FastOutcome::Done(Ok(outcome(self.system, self.tracks, until)))
    }

    fn advance(&mut self, until: u64, is_horizon: bool) -> Result<(), SimError> {
        self.tracks.iter_mut().try_for_each(|track| track.advance(until, is_horizon))
    }

    /// With several CPUs, an earlier error may have occurred on another one.
    fn failed(&self, error: SimError) -> FastOutcome {
        if self.system.cpus == 1 {
            FastOutcome::Done(Err(error))
        } else {
            FastOutcome::Left(self.slices_sent)
        }
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        let recorded = self.tracks.iter_mut().filter_map(|track| track.slices.as_mut());
        self.slices_sent += slices::flush(recorded, &mut self.slices, sink);
    }
}

/// A track for each CPU; `None` where the system is not simple.
fn tracks(system: &System, settings: SimSettings, tells: bool) -> Option<Vec<Track>> {
    let plain = !system.threads.is_empty()
        && system.servers.is_empty()
        && system.overheads == Overheads::default()
        && system.throttling.is_none()
        && (system.cpus == 1 || system.interference.entries().is_empty());
    if !plain {
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
    let track = |(cpu, threads): (u32, &Vec<usize>)| {
        track(system, settings, threads, tells.then(|| CpuSlices::new(cpu)))
    };
    (0..).zip(&here).map(track).collect()
}

/// The track of a CPU with these threads; `None` where they are too many, or not all by deadline or by
/// priority.
fn track(
    system: &System,
    settings: SimSettings,
    threads: &[usize],
    slices: Option<CpuSlices>,
) -> Option<Track> {
    let is_edf = |at: &usize| system.threads[*at].class == Class::Edf;
    let by_deadline = threads.iter().any(is_edf);
    if by_deadline && !threads.iter().all(is_edf) {
        return None;
    }
    let mut most = 1u64 << (u64::BITS - lane_bits(threads.len()));
    let mut order = if by_deadline { DispatchOrder::Deadline } else { DispatchOrder::Priority };
    let mut threads = threads.to_vec();
    if !by_deadline {
        let priority = |at: usize| match system.threads[at].class {
            Class::Fifo(priority) => priority,
            _ => 0,
        };
        let given = threads.clone();
        threads.sort_by_key(|at| Reverse(priority(*at)));
        if threads.windows(2).any(|pair| priority(pair[0]) == priority(pair[1])) {
            let mut groups: Vec<u32> = threads.iter().map(|at| priority(*at)).collect();
            groups.dedup();
            most >>= groups.len().next_power_of_two().trailing_zeros();
            let group = |at: &usize| groups.partition_point(|group| *group > priority(*at)) as u64;
            order = DispatchOrder::Turn(given.iter().map(|at| group(at) * most).collect());
            threads = given;
        }
    }
    if !threads.iter().all(|at| is_simple(&system.threads[*at], settings.horizon, most)) {
        return None;
    }
    Track::new(system, settings, &threads, order, slices)
}

/// Whether a thread is simple, with times below `most` ns: nine years with few threads, days with many.
fn is_simple(thread: &Thread, horizon: u64, most: u64) -> bool {
    let below = |time: u64| horizon.checked_add(time).is_some_and(|sum| sum < most);
    let class = match thread.class {
        Class::Edf => below(thread.deadline),
        Class::Fifo(_) => true,
        _ => false,
    };
    let arrivals = match (&thread.arrivals, thread.jitter) {
        (ArrivalPattern::Periodic { offset, period }, Jitter::None) => {
            below(*period) && *offset < most
        }
        (ArrivalPattern::Periodic { offset, period }, Jitter::Worst(jitter)) => {
            below(*period) && offset.checked_add(jitter).is_some_and(|first| first < most)
        }
        _ => false,
    };
    class
        && arrivals
        && thread.after.is_empty()
        && thread.tick <= 1
        && matches!(thread.preemption, Preemption::Full | Preemption::None)
        && thread.marks.is_empty()
        && thread.server.is_none()
}

/// The time in which about `jobs` jobs arrive, ns; at least 1.
fn stretch(system: &System, jobs: u64) -> u64 {
    let rate: u128 = system
        .threads
        .iter()
        .filter_map(|thread| match thread.arrivals {
            ArrivalPattern::Periodic { period, .. } => {
                Some((1u128 << 64) / u128::from(period.max(1)))
            }
            _ => None,
        })
        .sum();
    let time = (u128::from(jobs) << 64) / rate.max(1);
    u64::try_from(time).unwrap_or(u64::MAX).max(1)
}

fn events(tracks: &[Track]) -> u64 {
    tracks.iter().map(|track| track.events).fold(0, u64::saturating_add)
}

fn outcome(system: &System, tracks: Vec<Track>, horizon: u64) -> SimOutcome {
    let events = events(&tracks);
    let mut threads = vec![ThreadOutcome::default(); system.threads.len()];
    let cpus: Vec<CpuOutcome> =
        tracks.into_iter().map(|track| track.finish(horizon, &mut threads)).collect();
    let jobs = threads.iter().map(|thread| thread.jobs).sum();
    SimOutcome { horizon, events, jobs, threads, servers: Vec::new(), cpus }
}

#[cfg(test)]
mod tests;
