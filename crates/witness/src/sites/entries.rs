//! Disturbed spans in memory of a fixed size: one thread writes them, any thread reads them whole.
//!
//! Each entry has a version, which is odd while it is being written (a sequence lock).

use std::sync::atomic::{AtomicU64, Ordering, fence};

use hourglass_documents::Cause;
use hourglass_trace::cause::{Indication, IndicationSet};

use crate::Loss;
use crate::sites::histogram::zeros;

/// A span that was disturbed, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DisturbedSpan {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) site: u16,
    pub(crate) thread: u16,
    pub(crate) cpus: (u16, u16),
    pub(crate) least_ns: u64,
    pub(crate) most_ns: u64,
    pub(crate) waited_ns: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) faults: u64,
    pub(crate) cause: Cause,
    pub(crate) confidence_ppm: u32,
    pub(crate) evidence: IndicationSet,
    pub(crate) who: u32,
}

/// Words of an entry, behind its version.
const WORDS: usize = 11;
const SLOT: usize = WORDS + 1;
/// How often an entry is read anew that is being written.
const TRIES: u32 = 1_000;

/// Who had the CPU stands between cause and confidence. The kernel numbers threads up to 2^22.
const WHO_AT: u32 = 8;
const MOST_WHO: u32 = (1 << 24) - 1;

/// The thread, or none where its number has no room.
fn known(who: u32) -> u32 {
    if who <= MOST_WHO { who } else { 0 }
}

/// A number that 16 bits may not hold: then the greatest that they do.
pub(crate) fn narrow(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// The cause's place in [`Cause::ALL`].
pub(crate) fn code(cause: Cause) -> usize {
    Cause::ALL.iter().position(|one| *one == cause).unwrap_or(Cause::ALL.len())
}

fn bits(signs: IndicationSet) -> u64 {
    signs.iter().fold(0, |bits, sign| bits | 1 << sign as u8)
}

fn signs(bits: u64) -> IndicationSet {
    let set = Indication::ALL.into_iter().filter(|sign| bits & (1 << *sign as u8) != 0);
    set.fold(IndicationSet::NONE, IndicationSet::with)
}

impl DisturbedSpan {
    pub(crate) fn of(loss: &Loss, place: (u16, u16), ticks: (u64, u64), cpu: u32) -> DisturbedSpan {
        let (before, after) = loss.migrated.unwrap_or((cpu, cpu));
        DisturbedSpan {
            begun: ticks.0,
            ended: ticks.1,
            site: place.0,
            thread: place.1,
            cpus: (narrow(before), narrow(after)),
            least_ns: loss.off_cpu.earliest().nanos_or_zero(),
            most_ns: loss.off_cpu.latest().nanos_or_zero(),
            waited_ns: loss.waited.nanos_or_zero(),
            voluntary: loss.switches.voluntary,
            involuntary: loss.switches.involuntary,
            faults: loss.faults,
            cause: loss.cause,
            confidence_ppm: (loss.confidence * 1e6) as u32,
            evidence: loss.evidence,
            who: loss.who.unwrap_or(0),
        }
    }

    /// By which spans are compared: what was lost at most.
    pub(crate) fn lost_ns(&self) -> u64 {
        self.most_ns
    }

    fn words(&self) -> [u64; WORDS] {
        let [site, thread] = [self.site, self.thread].map(u64::from);
        let [before, after] = [self.cpus.0, self.cpus.1].map(u64::from);
        [
            self.begun,
            self.ended,
            site | thread << 16 | before << 32 | after << 48,
            self.least_ns,
            self.most_ns,
            self.waited_ns,
            self.voluntary,
            self.involuntary,
            self.faults,
            code(self.cause) as u64
                | u64::from(known(self.who)) << WHO_AT
                | u64::from(self.confidence_ppm) << 32,
            bits(self.evidence),
        ]
    }

    fn of_words(words: &[u64; WORDS]) -> DisturbedSpan {
        let [begun, ended, place, least_ns, most_ns, waited_ns, rest @ ..] = *words;
        let [voluntary, involuntary, faults, cause, evidence] = rest;
        let part = |at: u32| (place >> (16 * at)) as u16;
        DisturbedSpan {
            begun,
            ended,
            site: part(0),
            thread: part(1),
            cpus: (part(2), part(3)),
            least_ns,
            most_ns,
            waited_ns,
            voluntary,
            involuntary,
            faults,
            cause: Cause::ALL.get((cause & 0xff) as usize).copied().unwrap_or(Cause::Unknown),
            confidence_ppm: (cause >> 32) as u32,
            evidence: signs(evidence),
            who: (cause >> WHO_AT) as u32 & MOST_WHO,
        }
    }
}

/// Room for some entries.
#[derive(Debug)]
pub(crate) struct Entries {
    words: Box<[AtomicU64]>,
}

impl Entries {
    pub(crate) const BYTES: usize = SLOT * size_of::<u64>();

    pub(crate) fn new(count: usize) -> Entries {
        Entries { words: zeros(count * SLOT) }
    }

    fn slot(&self, at: usize) -> Option<&[AtomicU64]> {
        self.words.chunks_exact(SLOT).nth(at)
    }

    /// Writes an entry. By one thread only.
    fn write(&self, at: usize, entry: &DisturbedSpan) {
        let Some([version, words @ ..]) = self.slot(at) else { return };
        let last = version.load(Ordering::Relaxed);
        version.store(last.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in words.iter().zip(entry.words()) {
            word.store(value, Ordering::Relaxed);
        }
        version.store(last.wrapping_add(2), Ordering::Release);
    }

    /// An entry, where there is one; not one that is being written all the while.
    fn read(slot: &[AtomicU64]) -> Option<DisturbedSpan> {
        let [version, words @ ..] = slot else { return None };
        for _ in 0..TRIES {
            let before = version.load(Ordering::Acquire);
            if before == 0 {
                return None;
            }
            let mut values = [0; WORDS];
            for (value, word) in values.iter_mut().zip(words) {
                *value = word.load(Ordering::Relaxed);
            }
            fence(Ordering::Acquire);
            if before % 2 == 0 && version.load(Ordering::Relaxed) == before {
                return Some(DisturbedSpan::of_words(&values));
            }
            std::thread::yield_now();
        }
        None
    }

    /// Writes an entry at a place if it lost more than what is there. By the writing thread.
    pub(crate) fn keep_at(&self, at: usize, entry: &DisturbedSpan) {
        if self.slot(at).is_some_and(|slot| lost_there(slot) < Some(entry.lost_ns())) {
            self.write(at, entry);
        }
    }

    /// Writes an entry in place of the one that lost least, if it lost more. By the writing thread.
    pub(crate) fn keep_worst(&self, entry: &DisturbedSpan) {
        let places = self.words.chunks_exact(SLOT).map(lost_there).enumerate();
        if let Some((at, _)) = places.min_by_key(|(_, lost_ns)| *lost_ns) {
            self.keep_at(at, entry);
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = DisturbedSpan> + '_ {
        self.words.chunks_exact(SLOT).filter_map(Entries::read)
    }
}

/// Time that the span of an entry lost; `None` if the entry is empty. Only for the writing thread.
fn lost_there(slot: &[AtomicU64]) -> Option<u64> {
    const MOST: usize = 5;
    let at = |place: usize| slot.get(place).map(|word| word.load(Ordering::Relaxed));
    (at(0)? > 0).then_some(at(MOST)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lost_ns: u64) -> DisturbedSpan {
        DisturbedSpan {
            begun: 1,
            ended: 2,
            site: 3,
            thread: 4,
            cpus: (5, u16::MAX),
            least_ns: lost_ns,
            most_ns: lost_ns,
            waited_ns: 6,
            voluntary: 7,
            involuntary: 8,
            faults: 9,
            cause: Cause::CgroupQuota,
            confidence_ppm: 900_000,
            evidence: IndicationSet::NONE
                .with(Indication::Cleared)
                .with(Indication::ShorterThanTicks),
            who: 1 << 22,
        }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let entries = Entries::new(2);
        assert_eq!(entries.all().count(), 0);
        entries.keep_at(1, &entry(10));
        entries.keep_at(1, &entry(9));
        entries.keep_at(2, &entry(11));
        assert_eq!(entries.all().collect::<Vec<_>>(), [entry(10)]);
        for cause in Cause::ALL {
            assert_eq!(Cause::ALL[code(cause)], cause);
        }
    }

    /// Signs from the 33rd on made other threads of who had the CPU.
    #[test]
    fn signs_and_who_had_the_cpu_are_apart() {
        for sign in Indication::ALL {
            for who in [0, 1, 4_711, 1 << 22] {
                let entry =
                    DisturbedSpan { evidence: IndicationSet::NONE.with(sign), who, ..entry(1) };
                assert_eq!(DisturbedSpan::of_words(&entry.words()), entry);
            }
        }
        let beyond = DisturbedSpan { who: u32::MAX, ..entry(1) };
        assert_eq!(DisturbedSpan::of_words(&beyond.words()).who, 0);
    }

    #[test]
    fn the_worst_stay() {
        let entries = Entries::new(3);
        for lost_ns in [5, 0, 9, 7, 1, 8, 3] {
            entries.keep_worst(&entry(lost_ns));
        }
        let mut kept: Vec<u64> = entries.all().map(|entry| entry.lost_ns()).collect();
        kept.sort_unstable();
        assert_eq!(kept, [7, 8, 9]);
        Entries::new(0).keep_worst(&entry(1));
    }

    /// A reader never sees a mixture of two entries.
    #[test]
    fn entries_are_read_whole() {
        let entries = Entries::new(1);
        let rounds = 20_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..rounds).for_each(|ns| {
                    entries.keep_at(0, &DisturbedSpan { waited_ns: ns, faults: ns, ..entry(ns) });
                });
            });
            for _ in 0..rounds {
                for read in entries.all() {
                    assert_eq!(
                        DisturbedSpan { waited_ns: 6, faults: 9, ..read },
                        entry(read.least_ns)
                    );
                    assert_eq!((read.waited_ns, read.faults), (read.least_ns, read.least_ns));
                }
            }
        });
    }
}
