//! A working set: an array that is scanned in order.

use std::hint::black_box;

use crate::recorder::Work;

/// Bytes read between two reads of the counter: 16 cache lines, long against the counter's cost
/// and short against the shortest gap of interest.
const CHUNK: usize = 1 << 10;
const WORDS: usize = CHUNK / size_of::<u64>();

/// An array whose elements are read one after the other; a pass over all of it is a unit of work
/// (Hourglass paper, section 5.2).
#[derive(Debug)]
pub(super) struct Scan {
    array: Vec<u64>,
    next: usize,
    pub(super) passes: u64,
}

impl Scan {
    /// An array of `bytes`, rounded up to whole chunks, every page of it written.
    pub(super) fn new(bytes: usize) -> Scan {
        let words = bytes.div_ceil(CHUNK).max(1) * WORDS;
        Scan { array: (0..words as u64).collect(), next: 0, passes: 0 }
    }

    /// Begins at the front, with no pass done.
    pub(super) fn restart(&mut self) {
        self.next = 0;
        self.passes = 0;
    }
}

impl Work for Scan {
    #[inline(always)]
    fn step(&mut self) {
        let end = self.next + WORDS;
        let chunk = self.array.get(self.next..end).unwrap_or(&[]);
        black_box(chunk.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
        self.next = end;
        if end >= self.array.len() {
            self.next = 0;
            self.passes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_the_whole_array() {
        let mut scan = Scan::new(4 << 10);
        for _ in 0..3 {
            scan.step();
        }
        assert_eq!(scan.passes, 0);
        scan.step();
        assert_eq!(scan.passes, 1);
        (0..4).for_each(|_| scan.step());
        assert_eq!(scan.passes, 2);
    }
}
