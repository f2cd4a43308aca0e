//! For how long threads that are not followed held up those that come before a followed one: what these made up for afterwards comes
//! before it, too, also where it became ready later.

use std::collections::{BTreeMap, BTreeSet};

use super::others::{OtherThreads, ReadyMoment};
use super::reserved::FollowedThread;

/// The threads of one urgency and all more urgent ones, of those that may meet on a CPU.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Those that run or could.
    pending: BTreeSet<u32>,
    /// For how long they were held up since the first of these, and what of each CPU's others that counts.
    held_ns: u64,
    charged_ns: BTreeMap<u32, u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    places: BTreeMap<u32, (u32, u8)>,
    levels: BTreeMap<(u32, u8), Level>,
}

impl Levels {
    pub(super) fn of(threads: &[FollowedThread]) -> Levels {
        let place = |thread: &FollowedThread| (thread.tid, (thread.group, thread.urgency));
        let places: BTreeMap<u32, (u32, u8)> = threads.iter().map(place).collect();
        let levels = places.values().map(|place| (*place, Level::default())).collect();
        Levels { places, levels }
    }

    /// The levels that a thread is in.
    fn with(&mut self, tid: u32) -> impl Iterator<Item = &mut Level> {
        let place = self.places.get(&tid).copied();
        let range = place.map(|(group, urgency)| (group, 0)..=(group, urgency));
        let levels = range.map(|range| self.levels.range_mut(range));
        levels.into_iter().flatten().map(|(_, level)| level)
    }

    pub(super) fn set(&mut self, tid: u32, is_pending: bool) {
        for level in self.with(tid) {
            if is_pending {
                level.pending.insert(tid);
            } else if level.pending.remove(&tid) && level.pending.is_empty() {
                *level = Level::default();
            }
        }
    }

    /// Events are missing.
    pub(super) fn lose(&mut self) {
        self.levels.values_mut().for_each(|level| *level = Level::default());
    }

    /// A thread takes `cpu`, for which it was ready since then.
    pub(super) fn take(
        &mut self,
        tid: u32,
        since: &ReadyMoment,
        others: &OtherThreads,
        (ns, cpu): (i64, u32),
    ) {
        let ran_ns = others.ran(ns, cpu);
        let held_ns = others.since(since, ns, cpu);
        for level in self.with(tid) {
            // Several of them may have waited for the same.
            let charged_ns = level.charged_ns.insert(cpu, ran_ns).unwrap_or(0);
            let more_ns = held_ns.min(ran_ns.saturating_sub(charged_ns));
            level.held_ns = level.held_ns.saturating_add(more_ns);
        }
    }

    /// What a thread and those before it were held up since one of them could run all the time.
    pub(super) fn held_ns(&self, tid: u32) -> u64 {
        let level = self.places.get(&tid).and_then(|place| self.levels.get(place));
        level.map_or(0, |level| level.held_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::activity::of_events;
    use super::*;
    use crate::{KernelEvent, KernelEventKind as Kind};

    const FIRST: u32 = 1;
    const SECOND: u32 = 2;
    const OTHER: u32 = 9;

    fn event(ns: i64, kind: Kind, (a, b): (u32, u32), value: u64) -> KernelEvent {
        KernelEvent { ns, ticks: 0, value, cpu: 0, a, b, kind }
    }

    /// Another thread has the CPU for 100 ns for which the first one is ready; the second one is woken at `woken_ns`, while that
    /// one works until 150, or later.
    fn held(first: (u8, u32), second: (u8, u32), woken_ns: i64) -> u64 {
        let followed = [(FIRST, first), (SECOND, second)].map(|(tid, (urgency, group))| {
            FollowedThread { urgency, group, ..FollowedThread::from(tid) }
        });
        let switch = |ns, from, to| event(ns, Kind::Switch, (from, to), 1);
        let mut events = vec![
            switch(0, 0, OTHER),
            event(10, Kind::Waking, (FIRST, 0), 0),
            switch(110, OTHER, FIRST),
            event(woken_ns, Kind::Waking, (SECOND, 0), 0),
        ];
        if woken_ns < 150 {
            events.push(switch(150, FIRST, SECOND));
        } else {
            events.extend([switch(150, FIRST, 0), switch(woken_ns, 0, SECOND)]);
        }
        events.push(switch(300, SECOND, 0));
        events.sort_by_key(|event| event.ns);
        let found = of_events(followed, events.into_iter().map(Ok::<_, Infallible>)).unwrap();
        found[&SECOND].bursts[0].others_ns
    }

    #[test]
    fn what_held_up_more_urgent_ones_holds_up_what_comes_after_them() {
        for (first, second, woken_ns, expected) in [
            ((50, 0), (40, 0), 120, 100),
            ((50, 0), (50, 0), 120, 100),
            ((50, 0), (40, 0), 30, 100),
            ((40, 0), (50, 0), 120, 0),
            ((50, 0), (40, 1), 120, 0),
            ((50, 0), (40, 0), 200, 0),
        ] {
            let found = held(first, second, woken_ns);
            assert_eq!(found, expected, "{first:?} {second:?} {woken_ns}");
        }
    }
}
