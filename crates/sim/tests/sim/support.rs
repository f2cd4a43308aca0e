//! A sink that keeps everything.

use hourglass_sim::{Event, Sink, Slice, System, Thread};

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
