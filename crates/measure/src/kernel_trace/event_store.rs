//! Where events are kept while they come: by CPU, in order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hourglass_trace::KernelEventKind as Kind;

use super::missing::MissingSwitches;
use crate::time_namespace::Offset;

/// Events in a chunk. A table that grew would be copied while the run is measured.
const CHUNK: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raw {
    pub(super) time: u64,
    pub(super) value: u64,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) kind: Kind,
}

impl Raw {
    /// The same with the expiry of a timer on the clock of this process.
    pub(super) fn on(self, offset: Offset) -> Raw {
        if self.kind != Kind::HrtimerStart {
            return self;
        }
        let expiry = offset.own_ns(u64::from(self.b) << 32 | u64::from(self.a));
        Raw { a: expiry as u32, b: (expiry >> 32) as u32, ..self }
    }
}

#[derive(Debug, Default)]
pub(super) struct CpuEvents {
    pub(super) cpu: u32,
    chunks: Vec<Vec<Raw>>,
    pub(super) events: u64,
    last: u64,
    unordered: bool,
    pub(super) lost: u64,
    pub(super) damaged: u64,
}

impl CpuEvents {
    pub(super) fn new(cpu: u32) -> CpuEvents {
        CpuEvents { cpu, ..CpuEvents::default() }
    }

    /// Keeps an event if there is room for it in `room`, which counts events; else it is lost.
    pub(super) fn push(&mut self, raw: Raw, room: &mut u64) {
        if *room == 0 {
            self.lose(raw.time, 1);
            return;
        }
        *room -= 1;
        self.append(raw);
        self.events += u64::from(raw.kind != Kind::Lost);
    }

    /// Notes that `count` events were lost before `time`; 0 if they were not counted.
    pub(super) fn lose(&mut self, time: u64, count: u64) {
        self.lost = self.lost.saturating_add(count);
        if let Some(last) = self.chunks.last_mut().and_then(|chunk| chunk.last_mut())
            && last.kind == Kind::Lost
        {
            last.value = last.value.saturating_add(count);
            return;
        }
        self.append(Raw { time, value: count, a: 0, b: 0, kind: Kind::Lost });
    }

    fn append(&mut self, raw: Raw) {
        self.unordered |= raw.time < self.last;
        self.last = self.last.max(raw.time);
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(raw),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(raw);
                self.chunks.push(chunk);
            }
        }
    }

    /// Takes out the events before `time`, in order.
    pub(super) fn take_before(&mut self, time: u64) -> CpuEvents {
        self.order();
        let mut before = CpuEvents::new(self.cpu);
        let mut kept = Vec::new();
        for mut chunk in std::mem::take(&mut self.chunks) {
            let rest = chunk.split_off(chunk.partition_point(|raw| raw.time < time));
            before.chunks.push(chunk);
            if !rest.is_empty() {
                kept.push(rest);
            }
        }
        self.chunks = kept;
        before
    }

    /// Brings the events in order of time, if a clock that went backwards left them otherwise.
    pub(super) fn order(&mut self) {
        if self.unordered {
            let mut all = self.chunks.concat();
            all.sort_by_key(|raw| raw.time);
            self.chunks = vec![all];
            self.unordered = false;
        }
    }

    /// Switches that the kernel did not write. What could not be read to its end says nothing of that.
    pub(super) fn missing(&self, all: &MissingSwitches) -> u64 {
        if self.damaged > 0 { 0 } else { all.on(self.cpu) }
    }

    fn iter(&self) -> impl Iterator<Item = &Raw> {
        self.chunks.iter().flatten()
    }
}

/// The events of all CPUs in one order of time.
pub(super) fn merged(lanes: &[CpuEvents]) -> impl Iterator<Item = (u32, Raw)> + '_ {
    let mut streams: Vec<_> = lanes.iter().map(|lane| (lane.cpu, lane.iter())).collect();
    let mut heads: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut next: Vec<Option<Raw>> = Vec::with_capacity(streams.len());
    for (place, (_, stream)) in streams.iter_mut().enumerate() {
        let first = stream.next().copied();
        heads.extend(first.map(|raw| Reverse((raw.time, place))));
        next.push(first);
    }
    std::iter::from_fn(move || {
        let Reverse((_, place)) = heads.pop()?;
        let (cpu, stream) = streams.get_mut(place)?;
        let raw = next.get_mut(place)?;
        let out = (*raw)?;
        *raw = stream.next().copied();
        heads.extend(raw.map(|raw| Reverse((raw.time, place))));
        Some((*cpu, out))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(time: u64) -> Raw {
        Raw { time, value: 0, a: 0, b: 0, kind: Kind::Switch }
    }

    #[test]
    fn events_without_room_are_lost_and_reported_once() {
        let (mut lane, mut room) = (CpuEvents::new(3), 2);
        for time in 0..5 {
            lane.push(raw(time), &mut room);
        }
        let kept: Vec<(u64, u64, Kind)> = lane.iter().map(|r| (r.time, r.value, r.kind)).collect();
        let expected = [(0, 0, Kind::Switch), (1, 0, Kind::Switch), (2, 3, Kind::Lost)];
        assert_eq!((kept, lane.events, lane.lost), (expected.to_vec(), 2, 3));
    }

    #[test]
    fn what_is_taken_before_a_time_is_in_order_and_the_rest_stays() {
        let (mut lane, mut room) = (CpuEvents::new(0), 100);
        for time in [1, 9, 5, 12] {
            lane.push(raw(time), &mut room);
        }
        let times = |lane: &CpuEvents| lane.iter().map(|raw| raw.time).collect::<Vec<u64>>();
        assert_eq!((times(&lane.take_before(9)), times(&lane)), (vec![1, 5], vec![9, 12]));
        lane.push(raw(11), &mut room);
        assert_eq!((times(&lane.take_before(20)), times(&lane)), (vec![9, 11, 12], vec![]));
    }

    #[test]
    fn cpus_are_merged_by_time_and_clocks_that_went_back_are_put_in_order() {
        let (mut first, mut second, mut room) = (CpuEvents::new(0), CpuEvents::new(1), 100);
        for time in [1, 5, 9, 7, 20] {
            first.push(raw(time), &mut room);
        }
        for time in [2, 5, 6] {
            second.push(raw(time), &mut room);
        }
        first.order();
        let lanes = [first, second];
        let order: Vec<(u64, u32)> = merged(&lanes).map(|(cpu, raw)| (raw.time, cpu)).collect();
        assert_eq!(order, [(1, 0), (2, 1), (5, 0), (5, 1), (6, 1), (7, 0), (9, 0), (20, 0)]);
    }
}
