//! Some microseconds of a computation, and how much of a CPU's time they are worth.
//!
//! Owns: measuring chunks, running them. Must not: know who shares the CPU, read progress.
//!
//! On hardware threads of one core a chunk is a number of steps: what makes it slow is what is to be found
//! out. Where contention is emulated it is a length of time instead, since a host changes a machine's speed
//! from one moment to the next, by more than what jobs leave of their reservation: then no job would be of
//! known length, and contention that is not emulated would be taken for contention that is.

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::memfd::SharedWords;

use super::emulator::{CHUNK_NS, PARTIES, Participant, REAL_TIME, WORDS};
use super::workloads::Computation;

const ROUNDS: usize = 15;
const CHUNKS: u64 = 100;

const PIECES: u64 = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    steps: u64,
    /// How long they take, with what the loop does between two chunks, on a CPU that is not shared.
    pub(super) ns: u64,
    /// Whether it is worth the time that it takes.
    timed: bool,
}

impl Chunk {
    /// Measured now, in a loop of its own: machines change their speed. Takes some 10 ms.
    pub(super) fn of(
        work: &mut dyn Computation,
        step_ps: u64,
        timed: bool,
    ) -> Result<Chunk, String> {
        let words = SharedWords::create(c"hourglass-smt", WORDS).map_err(|e| e.to_string())?;
        let pace = Participant::new(words.words(), REAL_TIME, [100; PARTIES]);
        let steps = (CHUNK_NS * 1_000 / step_ps).max(1);
        let mut rounds: Vec<u64> = (0..ROUNDS)
            .map(|_| {
                let begun = now_ns(ClockId::Monotonic);
                for _ in 0..CHUNKS {
                    work.run(steps);
                    let _ = pace.after(CHUNK_NS);
                }
                (now_ns(ClockId::Monotonic) - begun) / CHUNKS
            })
            .collect();
        rounds.sort_unstable();
        let ns = rounds.get(ROUNDS / 2).copied().unwrap_or(CHUNK_NS).max(1);
        Ok(Chunk { steps, ns, timed })
    }

    /// Works for `ns`, at most the whole chunk; what came of it, ns of a CPU that is not shared.
    pub(super) fn run(&self, work: &mut dyn Computation, ns: u64) -> u64 {
        if !self.timed {
            work.run((self.steps * ns / self.ns).max(1));
            return ns;
        }
        let piece = (self.steps / PIECES).max(1);
        let usual = (self.ns * piece / self.steps).max(1);
        let (mut worked, mut last) = (0, now_ns(ClockId::Monotonic));
        while worked < ns {
            work.run(piece);
            let now = now_ns(ClockId::Monotonic);
            worked += worth(now.saturating_sub(last), usual);
            last = now;
        }
        worked
    }
}

/// A piece that takes more than this multiple of its usual time was interrupted. Beside a busy sibling that
/// belongs to a host, it takes up to some two times its usual time.
const MOST: u64 = 4;

/// What a piece is worth that usually takes `usual`, ns: what it took, unless it was interrupted.
fn worth(took: u64, usual: u64) -> u64 {
    if took <= usual.saturating_mul(MOST) { took } else { usual }
}

#[cfg(test)]
mod tests {
    use super::super::workloads::WordLookup;
    use super::*;

    #[test]
    fn interruptions_are_worth_nothing() {
        assert_eq!(
            [0, 900, 4_000, 4_001, 1_000_000].map(|took| worth(took, 1_000)),
            [0, 900, 4_000, 1_000, 1_000]
        );
    }

    #[test]
    fn a_timed_chunk_takes_what_it_is_worth() {
        let mut work = WordLookup::new();
        let mut chunk = Chunk { steps: 100, ns: 1_000_000, timed: true };
        for steps in [100, 10_000] {
            chunk.steps = steps;
            let begun = now_ns(ClockId::Monotonic);
            let worth = chunk.run(&mut work, 1_000_000);
            assert!(worth >= 1_000_000 && now_ns(ClockId::Monotonic) - begun >= worth);
        }
        chunk.timed = false;
        assert_eq!(chunk.run(&mut work, 500_000), 500_000);
    }
}
