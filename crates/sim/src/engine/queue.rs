//! Ready threads in the order of their urgency.
//!
//! Owns: [`Queue`], and which threads stand in it: those whose urgency stays as it is until something happens
//! to them or to the server that they have for themselves. Of all others (threads that share a server or have a
//! fair share, holders of locks that others wait for, stopped ones) the urgency is asked whenever CPUs are given
//! out. Must not: choose who runs.

use super::super::server::{self, ServerKind};
use super::super::system::SimLockProtocol;
use super::super::thread::{Class, Preemption};
use super::SimState;
use super::pick_next::{DEADLINE, HELD, PRIORITY};
use super::state::ThreadState;

/// Binary digits of a rank behind band and level.
const PLACE_BITS: u32 = 62;

/// How urgent a thread is, the smaller the more: the band, then the absolute deadline or the priority counted
/// downwards, then the place among equals. No two threads have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadRank(u128);

impl ThreadRank {
    fn new(band: u8, level: u64, place: u64) -> ThreadRank {
        let place = u128::from(place) & ((1 << PLACE_BITS) - 1);
        ThreadRank(
            (u128::from(band) << (PLACE_BITS + u64::BITS))
                | (u128::from(level) << PLACE_BITS)
                | place,
        )
    }

    /// The rank by deadline: of equals those that run go on, then the first.
    fn deadline(due: u64, runs: bool, thread: usize) -> ThreadRank {
        ThreadRank::new(DEADLINE, due, (u64::from(!runs) << (PLACE_BITS - 1)) | thread as u64)
    }

    /// The rank by priority, those that came first before equals.
    fn priority(priority: u32, turn: u64) -> ThreadRank {
        ThreadRank::new(PRIORITY, u64::from(u32::MAX - priority), turn)
    }

    pub(super) fn band(self) -> u8 {
        (self.0 >> (PLACE_BITS + u64::BITS)) as u8
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QueueState {
    /// The thread is not ready.
    #[default]
    Away,
    /// The thread is in the queue of its domain.
    Queued(ThreadRank),
    /// Among those that are asked each time.
    Asked,
}

/// Threads by rank. The most urgent stands last, so that threads that come and go quickly move few others.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Vec<(ThreadRank, usize)>);

impl Queue {
    /// The most urgent first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ThreadRank, usize)> + Clone + '_ {
        self.0.iter().rev().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The position of a rank, or where it belongs. Most searches end near the end.
    fn place(&self, rank: ThreadRank) -> Result<usize, usize> {
        const NEAR: usize = 4;
        let near = self.0.len().saturating_sub(NEAR);
        match self.0.get(near) {
            Some((first, _)) if near > 0 && *first < rank => {
                self.0[..near].binary_search_by(|(known, _)| rank.cmp(known))
            }
            _ => {
                let more_urgent =
                    self.0[near..].iter().rev().take_while(|(known, _)| *known < rank);
                let place = self.0.len() - more_urgent.count();
                match place.checked_sub(1) {
                    Some(found) if self.0[found].0 == rank => Ok(found),
                    _ => Err(place),
                }
            }
        }
    }

    fn insert(&mut self, rank: ThreadRank, thread: usize) {
        let place = self.place(rank).unwrap_or_else(|place| place);
        self.0.insert(place, (rank, thread));
    }

    /// Moves a thread whose rank changed; mostly its neighbours stay.
    fn replace(&mut self, before: ThreadRank, rank: ThreadRank, thread: usize) {
        let Ok(place) = self.place(before) else { return };
        let above = self.0.get(place + 1).is_none_or(|(next, _)| *next < rank);
        if above && (place == 0 || self.0[place - 1].0 > rank) {
            self.0[place].0 = rank;
        } else {
            self.0.remove(place);
            self.insert(rank, thread);
        }
    }

    fn remove(&mut self, rank: ThreadRank) {
        match self.0.last() {
            Some((last, _)) if *last == rank => {
                self.0.pop();
            }
            _ => {
                if let Ok(place) = self.place(rank) {
                    self.0.remove(place);
                }
            }
        }
    }
}

impl<const TELL: bool> SimState<TELL> {
    /// The rank of a thread that is ready; `None` where its urgency depends on others.
    fn rank(&self, thread: usize) -> Option<ThreadRank> {
        let runner = &self.runners[thread];
        if runner.stopped {
            return None;
        }
        let own = match runner.server {
            None if runner.held && runner.cpu.is_some() && !runner.is_fair() => {
                return Some(ThreadRank::new(HELD, 0, thread as u64));
            }
            None => runner.rank(thread)?,
            Some(server) => self.rank_in_server(thread, server)?,
        };
        match runner.holds {
            None => Some(own),
            Some(lock) => self.rank_with_lock(own, lock, thread),
        }
    }

    /// The rank of a thread in a server; `None` where it shares it, or the server may leave it to the fair class.
    fn rank_in_server(&self, thread: usize, server: usize) -> Option<ThreadRank> {
        let (keeper, runner) = (&self.servers[server], &self.runners[thread]);
        let alone = keeper.threads.len() == 1 && keeper.server.kind != ServerKind::ReserveSoft;
        (alone && !runner.held).then(|| match keeper.server.rank {
            server::ServerRank::Deadline => {
                ThreadRank::deadline(keeper.deadline, runner.cpu.is_some(), thread)
            }
            server::ServerRank::Priority(priority) => ThreadRank::priority(priority, keeper.turn),
        })
    }

    /// The rank of the holder of a lock; `None` if it may inherit another one's, or hold several.
    fn rank_with_lock(&self, own: ThreadRank, lock: usize, thread: usize) -> Option<ThreadRank> {
        let (lock, runner) = (&self.locks[lock], &self.runners[thread]);
        let inherits = lock.protocol == SimLockProtocol::Inheritance && !lock.waiters.is_empty();
        if inherits || !self.scripts.is_empty() {
            return None;
        }
        Some(match lock.protocol {
            SimLockProtocol::Ceiling(priority) => {
                own.min(ThreadRank::priority(priority, runner.fifo_order))
            }
            SimLockProtocol::DeadlineFloor(floor) if runner.server.is_none() => {
                let due = lock.held_since.saturating_add(floor);
                own.min(ThreadRank::deadline(due, runner.cpu.is_some(), thread))
            }
            _ => own,
        })
    }

    /// Whether a thread that stands in the queue may run now: it has no server, or one with budget.
    #[inline]
    pub(super) fn has_budget(&self, thread: usize) -> bool {
        self.runners[thread].server.is_none_or(|server| {
            let keeper = &self.servers[server];
            !keeper.throttled && keeper.remaining_budget > 0
        })
    }

    /// Something has happened to a server on which the urgency of its thread depends.
    pub(super) fn rank_served(&mut self, server: usize) {
        if let [thread] = self.servers[server].threads[..] {
            self.rank_again(thread);
        }
    }

    /// A thread has got a CPU or lost it, on which the urgency of some depends.
    #[inline]
    pub(super) fn rank_moved(&mut self, thread: usize) {
        let runner = &self.runners[thread];
        let is_by_deadline = runner.class == Class::Edf || runner.holds.is_some();
        if is_by_deadline || runner.held || runner.server.is_some() {
            self.rank_again(thread);
        }
    }

    /// A thread that has become ready takes its place.
    pub(super) fn enqueue(&mut self, thread: usize) {
        let rank = self.rank(thread);
        let runner = &mut self.runners[thread];
        let domain = &mut self.domains[runner.domain];
        match rank {
            Some(rank) => {
                domain.queue.insert(rank, thread);
                runner.stand = QueueState::Queued(rank);
            }
            None => {
                domain.rekeyed.push(thread);
                runner.stand = QueueState::Asked;
            }
        }
    }

    /// A thread is not ready any more.
    pub(super) fn dequeue(&mut self, thread: usize) {
        let runner = &mut self.runners[thread];
        let domain = &mut self.domains[runner.domain];
        match std::mem::take(&mut runner.stand) {
            QueueState::Away => {}
            QueueState::Queued(rank) => domain.queue.remove(rank),
            QueueState::Asked => {
                if let Some(place) = domain.rekeyed.iter().position(|other| *other == thread) {
                    domain.rekeyed.swap_remove(place);
                }
            }
        }
    }

    /// Something has happened to a thread on which its urgency depends.
    #[inline]
    pub(super) fn rank_again(&mut self, thread: usize) {
        let stand = self.runners[thread].stand;
        if stand == QueueState::Away {
            return;
        }
        let now = self.rank(thread).map_or(QueueState::Asked, QueueState::Queued);
        match (stand, now) {
            (QueueState::Queued(before), QueueState::Queued(rank)) if before != rank => {
                let runner = &mut self.runners[thread];
                runner.stand = now;
                self.domains[runner.domain].queue.replace(before, rank, thread);
            }
            _ if now != stand => {
                self.dequeue(thread);
                self.enqueue(thread);
            }
            _ => {}
        }
    }

    /// That ready threads of a domain stand where their urgency puts them: all of them where there are few, else
    /// some at each event, so that a debug build with thousands of threads is not a thousand times slower.
    #[cfg(debug_assertions)]
    pub(super) fn assert_ranks(&self, domain: usize) {
        const MOST: usize = 64;
        let count = self.runners.len();
        let from = if count > MOST { self.events as usize * MOST % count } else { 0 };
        let some = (0..count.min(MOST)).map(|step| (from + step) % count);
        for (at, runner) in
            some.map(|at| (at, &self.runners[at])).filter(|(_, r)| r.domain == domain)
        {
            let stand = match (runner.ready, self.rank(at)) {
                (false, _) => QueueState::Away,
                (true, None) => QueueState::Asked,
                (true, Some(rank)) => QueueState::Queued(rank),
            };
            assert_eq!(runner.stand, stand, "thread {at}");
        }
        let queue = &self.domains[domain].queue.0;
        let near = &queue[queue.len().saturating_sub(MOST)..];
        assert!(near.is_sorted_by(|a, b| a.0 > b.0));
    }
}

impl ThreadState {
    /// The rank of a thread by its class alone; `None` of a fair one.
    fn rank(&self, thread: usize) -> Option<ThreadRank> {
        match self.class {
            Class::Edf => {
                let due = self.job.as_ref().map_or(u64::MAX, |job| job.deadline);
                Some(ThreadRank::deadline(due, self.cpu.is_some(), thread))
            }
            Class::Fifo(priority) | Class::RoundRobin(priority) => {
                let begun = || self.job.as_ref().is_some_and(|job| job.started);
                let threshold = match self.preemption {
                    Preemption::Threshold(threshold) if begun() => threshold,
                    _ => 0,
                };
                Some(ThreadRank::priority(priority.max(threshold), self.fifo_order))
            }
            // Sums over fair shares are made of those that are asked.
            Class::Fair(_) | Class::Idle => None,
        }
    }
}
