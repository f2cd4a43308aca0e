//! Contention between hardware threads, emulated on CPUs that share nothing.
//!
//! Owns: heart beats, and the waiting that makes a thread slow while another's heart beats. Must not:
//! compute, measure.
//!
//! Each thread works in chunks of some microseconds. After each chunk it writes the time into its word,
//! its heart beat, and reads the words of the threads on other CPUs of the core. If one is fresh, both ran
//! at the same time: then it spins, its heart still beating, for as long as makes the chunk's rate the one
//! that is asked for. So both sides are slowed, and within some microseconds after one stops the other has
//! its full speed. What is not emulated: that contention changes from one instruction to the next, and
//! that what was taken from a cache is to be fetched again after a stop.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::clock::{ClockId, now_ns};

/// Those who take part: the real-time process, the co-runner on its CPU, and the one on the other.
pub(super) const REAL_TIME: usize = 0;
pub(super) const SAME: usize = 1;
pub(super) const OTHER: usize = 2;
pub(super) const PARTIES: usize = 3;

/// Words of each: its last heart beat, ns; what it has done, ns of a CPU that is not shared. They are
/// far enough apart to share no cache line.
pub(super) const STRIDE: usize = 16;
const BEAT: usize = 0;
const DONE: usize = 1;

pub(super) const WORDS: usize = PARTIES * STRIDE;

pub(super) const CHUNK_NS: u64 = 5_000;

/// Time for which a heart beat is fresh, ns: some chunks.
const FRESH_NS: u64 = 15_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Participant<'a> {
    words: &'a [AtomicU64],
    own: usize,
    /// Rate beside each other party, in hundredths; 100 beside those on its own CPU.
    beside: [u64; PARTIES],
}

impl<'a> Participant<'a> {
    /// The party `own`; `beside` has its rates, in hundredths from 1 to 100.
    pub(super) fn new(
        words: &'a [AtomicU64],
        own: usize,
        beside: [u64; PARTIES],
    ) -> Participant<'a> {
        Participant { words, own, beside: beside.map(|percent| percent.clamp(1, 100)) }
    }

    fn word(&self, party: usize, word: usize) -> Option<&'a AtomicU64> {
        self.words.get(party * STRIDE + word)
    }

    fn beat(&self, now: u64) {
        if let Some(word) = self.word(self.own, BEAT) {
            word.store(now, Ordering::Release);
        }
    }

    /// The least rate beside those who run now, in hundredths.
    fn rate(&self, now: u64) -> u64 {
        let mut rate = 100;
        for (party, percent) in self.beside.iter().enumerate() {
            let beat = self.word(party, BEAT).map_or(0, |word| word.load(Ordering::Acquire));
            // Of two clocks readings the other's may be the later one.
            if now.saturating_sub(beat) < FRESH_NS {
                rate = rate.min(*percent);
            }
        }
        rate
    }

    /// A chunk is done that takes `chunk_ns` on a CPU that is not shared. Returns when it would be done
    /// on one that is; the time at which it was really done, later by what waiting took too long: another thread
    /// had the CPU.
    #[inline]
    pub(super) fn after(&self, chunk_ns: u64) -> u64 {
        let done = now_ns(ClockId::Monotonic);
        let (mut now, mut end) = (done, done);
        self.beat(now);
        let rate = self.rate(now);
        if rate < 100 {
            end = now.saturating_add(chunk_ns * (100 - rate) / rate);
            while now < end && self.rate(now) < 100 {
                spin_loop();
                now = now_ns(ClockId::Monotonic);
                self.beat(now);
            }
        }
        if let Some(word) = self.word(self.own, DONE) {
            // No other thread writes it.
            word.store(word.load(Ordering::Relaxed).wrapping_add(chunk_ns), Ordering::Release);
        }
        done + now.saturating_sub(end)
    }

    pub(super) fn rests(&self) {
        self.beat(0);
    }
}

pub(super) fn done_ns(words: &[AtomicU64], party: usize) -> u64 {
    words.get(party * STRIDE + DONE).map_or(0, |word| word.load(Ordering::Acquire))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn alone_there_is_no_contention() {
        let words = words();
        let own = Participant::new(&words, REAL_TIME, [100, 100, 1]);
        let other = Participant::new(&words, OTHER, [100; PARTIES]);
        other.beat(now_ns(ClockId::Monotonic));
        other.rests();
        let begun = now_ns(ClockId::Monotonic);
        let rate = own.rate(begun);
        own.after(1_000_000_000);
        assert_eq!(rate, 100);
        // A second at a hundredth of the speed would be 99.
        assert!(now_ns(ClockId::Monotonic) - begun < 50_000_000_000);
        assert_eq!((done_ns(&words, REAL_TIME), done_ns(&words, OTHER)), (1_000_000_000, 0));
    }

    #[test]
    fn beside_another_both_are_slow() {
        let words = words();
        let own = Participant::new(&words, REAL_TIME, [100, 100, 25]);
        let future = now_ns(ClockId::Monotonic) + 1_000_000_000_000;
        // A beat that stays fresh.
        words[OTHER * STRIDE].store(future, Ordering::Release);
        let begun = now_ns(ClockId::Monotonic);
        own.after(2_000_000);
        assert!(now_ns(ClockId::Monotonic) - begun >= 6_000_000);
    }

    #[test]
    fn waiting_ends_with_the_other() {
        let words = words();
        let own = Participant::new(&words, REAL_TIME, [100, 100, 1]);
        words[OTHER * STRIDE].store(now_ns(ClockId::Monotonic), Ordering::Release);
        let begun = now_ns(ClockId::Monotonic);
        own.after(10_000_000_000);
        // 990 s, had it gone on.
        assert!(now_ns(ClockId::Monotonic) - begun < 60_000_000_000);
    }
}
