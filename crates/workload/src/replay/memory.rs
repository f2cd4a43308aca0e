//! Acts that read and write memory.
//!
//! Owns: rings of pointers, going through buffers piece by piece. Must not: allocate but for a new ring.

use super::execution::ReplayExecution;
use super::script::RingSize;
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{Recorder, RecordingEnd};

/// Read or written between two looks at the counter, bytes.
pub(super) const CHUNK: usize = 4 << 10;

/// Pointers followed between two looks at the counter.
const HOPS: u64 = 256;
const POINTER: u64 = 8;

/// Pointers that go round a buffer.
#[derive(Debug)]
pub(super) struct Ring {
    /// Where each pointer stands is the place of the next one.
    words: Vec<u64>,
    at: u64,
}

impl Ring {
    /// Goes through all of the buffer's pointers once round: in turn, or by their numbers with the bits
    /// reversed, so that no prefetcher sees the next one coming.
    pub(super) fn new(size: RingSize) -> Ring {
        let words = usize::try_from(size.buffer / POINTER).unwrap_or(0);
        let step = (size.stride / POINTER).max(1);
        let count = size.buffer / (step * POINTER);
        let mut words = vec![0; words.max(1)];
        let bits = count.next_power_of_two().trailing_zeros();
        let reversed = |number: u64| match bits {
            0 => 0,
            _ => number.reverse_bits() >> (u64::BITS - bits),
        };
        let all = 0..count.next_power_of_two();
        let order = all.map(|number| if size.sequential { number } else { reversed(number) });
        let places = order.filter(|number| *number < count).map(|number| number * step);
        let mut last = 0;
        for place in places.skip(1) {
            write(&mut words, last, place);
            last = place;
        }
        write(&mut words, last, 0);
        Ring { words, at: 0 }
    }

    fn follow(&mut self, hops: u64) {
        let mut at = self.at;
        for _ in 0..hops {
            at = usize::try_from(at).ok().and_then(|at| self.words.get(at)).copied().unwrap_or(0);
        }
        self.at = at;
    }
}

fn write(words: &mut [u64], at: u64, value: u64) {
    if let Some(word) = usize::try_from(at).ok().and_then(|at| words.get_mut(at)) {
        *word = value;
    }
}

impl ReplayExecution {
    /// Writes this many bytes at the beginning of the buffer, over and over.
    pub(super) fn write_memory<C: MeasuringCounter>(
        &mut self,
        bytes: u64,
        buffer: u64,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        self.pass_through(bytes, buffer, recorder, |chunk| {
            // What is written depends on what was there, so that it is not left out.
            chunk.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        })
    }

    pub(super) fn read_memory<C: MeasuringCounter>(
        &mut self,
        bytes: u64,
        buffer: u64,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        self.pass_through(bytes, buffer, recorder, |chunk| {
            let sum = chunk.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            std::hint::black_box(sum);
        })
    }

    fn pass_through<C: MeasuringCounter>(
        &mut self,
        bytes: u64,
        buffer: u64,
        recorder: &mut Recorder<C>,
        mut act: impl FnMut(&mut [u8]),
    ) -> RecordingEnd {
        self.has_worked = true;
        let mut left = bytes;
        let size = usize::try_from(buffer).unwrap_or(usize::MAX).min(self.buffer.len());
        let mut ended = recorder.touch();
        while left > 0 && ended == RecordingEnd::Done && size > 0 {
            for chunk in self.buffer[..size].chunks_mut(CHUNK) {
                let length = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                act(&mut chunk[..length]);
                left -= length as u64;
                ended = recorder.touch();
                if left == 0 || ended == RecordingEnd::TimeOver {
                    break;
                }
            }
        }
        ended
    }

    pub(super) fn chase<C: MeasuringCounter>(
        &mut self,
        ring: usize,
        hops: u64,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        self.has_worked = true;
        let mut left = hops;
        let mut ended = recorder.touch();
        while left > 0 && ended == RecordingEnd::Done {
            let now = left.min(HOPS);
            if let Some(ring) = self.rings.get_mut(ring) {
                ring.follow(now);
            }
            left -= now;
            ended = recorder.touch();
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pointer's place comes once a round, and a round has as many as fit.
    #[test]
    fn a_ring_goes_round_all_its_pointers() {
        for (buffer, stride) in [(4096, 64), (1000, 8), (1000, 24), (128, 64), (4097, 100)] {
            for sequential in [false, true] {
                let mut ring = Ring::new(RingSize { buffer, stride, sequential });
                let step = stride / POINTER;
                let count = buffer / (step * POINTER);
                let mut seen = Vec::new();
                for _ in 0..count {
                    seen.push(ring.at);
                    ring.follow(1);
                }
                assert_eq!(ring.at, 0, "{buffer} {stride}");
                assert_eq!(seen.is_sorted(), sequential || count <= 2, "{buffer} {stride}");
                seen.sort_unstable();
                let all: Vec<u64> = (0..count).map(|number| number * step).collect();
                assert_eq!(seen, all, "{buffer} {stride}");
            }
        }
    }
}
