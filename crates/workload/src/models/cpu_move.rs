//! CPU bound, copying: moves one block of memory onto another, as oslat's memmove does.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{Recorder, Work};

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "CPU_MOVE",
    synopsis: "CPU_MOVE SIZE",
    about: "cpu-bound, and copies SIZE KB (or 4M) between two reads of the counter",
    parameters: 1,
    parse: |mut words| {
        let bytes = words.size("SIZE")?;
        words.end()?;
        Ok(Arc::new(CpuMove { bytes }))
    },
};

#[derive(Clone, Copy, Debug)]
struct CpuMove {
    bytes: usize,
}

impl fmt::Display for CpuMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", ENTRY.name, self.bytes >> 10)
    }
}

impl Model for CpuMove {
    fn demand(&self) -> Demand {
        // There are two blocks.
        let bytes = distance(self.bytes) + self.bytes;
        Demand { cpu_bound: true, bytes, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: Move::new(self.bytes) })
    }
}

/// Two blocks of memory, every page of them written.
struct Move {
    memory: Vec<u8>,
    bytes: usize,
}

/// The processor tells a load from a store before it by the lowest twelve bits of their addresses.
const PAGE: usize = 4 << 10;

impl Move {
    /// Both blocks in one piece of memory, half a page apart from a whole number of pages. Blocks that lie
    /// alike in their pages, as blocks of a size that is a power of two do, make the processor take each load for
    /// one that must wait for a store, and some then copy a byte at a time: thirty times as slow.
    fn new(bytes: usize) -> Move {
        let mut memory = vec![1; distance(bytes) + bytes];
        memory[distance(bytes)..].fill(2);
        Move { memory, bytes }
    }
}

fn distance(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE) + PAGE / 2
}

impl Work for Move {
    #[inline(always)]
    fn step(&mut self) {
        let (from, to) = self.memory.split_at_mut(distance(self.bytes));
        to.copy_from_slice(black_box(&from[..self.bytes]));
        black_box(to);
    }
}

impl ThreadLoop for CpuMove {
    type Work = Move;

    fn run<C: MeasuringCounter>(&self, work: &mut Move, recorder: &mut Recorder<C>) {
        recorder.receive_all(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_moves_the_whole_block() {
        for bytes in [4 << 10, 5 << 10] {
            let mut blocks = Move::new(bytes);
            blocks.step();
            assert_eq!(blocks.memory[distance(bytes)..], vec![1; bytes]);
        }
    }

    /// `CPU_MOVE 64` took 35 us a turn on an AMD EPYC, 63 and 65 took 1.5 us: the blocks lay 16 bytes from alike
    /// in their pages.
    #[test]
    fn blocks_of_any_size_lie_differently_in_their_pages() {
        for kb in [1, 2, 4, 31, 32, 33, 48, 63, 64, 65, 128, 1 << 10, 4 << 10] {
            let apart = distance(kb << 10) % PAGE;
            assert!((PAGE / 4..=PAGE / 4 * 3).contains(&apart), "{kb} KB: {apart}");
            assert!(distance(kb << 10) >= kb << 10);
        }
    }
}
