//! Random numbers with printed seeds, and a sink that keeps everything.

use hourglass_sim::{Event, Sink, Slice, System, Thread};

/// xorshift64*: the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From `low` to `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % (high - low + 1)
    }
}

/// A machine with `cpus` CPUs and these threads.
pub(crate) fn system(cpus: u32, threads: Vec<Thread>) -> System {
    let mut system = System::new(cpus);
    system.threads = threads;
    system
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) slices: Vec<Slice>,
    pub(crate) events: Vec<(u64, Event)>,
}

impl Sink for Record {
    fn ran(&mut self, slice: Slice) {
        self.slices.push(slice);
    }

    fn event(&mut self, at: u64, event: Event) {
        self.events.push((at, event));
    }
}

impl Record {
    /// Thread, start and end of all slices on a CPU.
    pub(crate) fn on(&self, cpu: u32) -> Vec<(usize, u64, u64)> {
        let slices = self.slices.iter().filter(|slice| slice.cpu == cpu);
        slices.map(|slice| (slice.thread, slice.start, slice.end)).collect()
    }

    /// When jobs of a thread were done.
    pub(crate) fn completions(&self, of: usize) -> Vec<u64> {
        let done = |(at, event): &(u64, Event)| match event {
            Event::Completion { thread, .. } if *thread == of => Some(*at),
            _ => None,
        };
        self.events.iter().filter_map(done).collect()
    }
}
