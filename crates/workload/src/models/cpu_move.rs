//! CPU bound, copying: moves one block of memory onto another, as oslat's memmove does.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use super::{AnyExecution, Demand, Entry, Execution, Model};
use crate::recorder::{Recorder, Work};
use crate::stage::Stage;

pub(super) const ENTRY: Entry = Entry {
    name: "CPU_MOVE",
    synopsis: "CPU_MOVE SIZE",
    about: "cpu-bound, and copies SIZE KB (or 4M) between two looks at the counter",
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
        let bytes = self.bytes.saturating_mul(2);
        Demand { cpu_bound: true, bytes, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(Running(Move::new(self.bytes)))
    }
}

/// Two blocks of memory, every page of them written.
struct Move {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Move {
    fn new(bytes: usize) -> Move {
        Move { from: vec![1; bytes], to: vec![2; bytes] }
    }
}

impl Work for Move {
    #[inline(always)]
    fn step(&mut self) {
        self.to.copy_from_slice(black_box(&self.from));
        black_box(&mut self.to);
    }
}

struct Running(Move);

impl Execution for Running {
    type Work = Move;

    fn work(&mut self) -> &mut Move {
        &mut self.0
    }

    fn run<C: Stage>(&mut self, recorder: &mut Recorder<C>) {
        recorder.receive_all(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_moves_the_whole_block() {
        let mut blocks = Move::new(4 << 10);
        blocks.step();
        assert_eq!(blocks.to, vec![1; 4 << 10]);
    }
}
