//! Slices of a CPU, as the engine would report them.
//!
//! Owns: [`CpuSlices`], the slices of a stretch of time, and their order among CPUs. Must not: keep them longer.

use super::super::sink::{Sink, Slice};

/// Why a slice ended. At one instant the engine tells first of jobs that are done, then of those that lose their
/// CPU, then of those that it leaves at the horizon, each in the order of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SliceEnd {
    Completed,
    Displaced,
    Horizon,
}

#[derive(Debug)]
pub(super) struct CpuSlices {
    cpu: u32,
    /// Since when what runs now has run.
    from: u64,
    slices: Vec<(Slice, SliceEnd)>,
}

impl CpuSlices {
    pub(super) fn new(cpu: u32) -> CpuSlices {
        CpuSlices { cpu, from: 0, slices: Vec::new() }
    }

    /// Something else runs from now on.
    #[inline]
    pub(super) fn from(&mut self, now: u64) {
        self.from = now;
    }

    /// Ends the slice of the running job now.
    #[inline]
    pub(super) fn until(
        &mut self,
        now: u64,
        end: SliceEnd,
        thread: usize,
        job: impl FnOnce() -> u64,
    ) {
        if self.from < now {
            let slice = Slice { cpu: self.cpu, thread, job: job(), start: self.from, end: now };
            self.slices.push((slice, end));
            self.from = now;
        }
    }
}

/// Tells the slices of all CPUs, which are given in their order, and forgets them. Gives their number.
pub(super) fn flush<'a>(
    cpus: impl Iterator<Item = &'a mut CpuSlices>,
    all: &mut Vec<(Slice, SliceEnd)>,
    sink: &mut dyn Sink,
) -> u64 {
    all.clear();
    let mut parts = 0;
    for cpu in cpus {
        parts += 1;
        all.append(&mut cpu.slices);
    }
    if parts > 1 {
        // Each part is in order, which a stable sort makes use of; equals stay in the order of CPUs.
        all.sort_by_key(|(slice, end)| (slice.end, *end));
    }
    all.iter().for_each(|(slice, _)| sink.ran(*slice));
    all.len() as u64
}
