//! Undisturbed spans that are not entered, in memory of a fixed size: the extensions of a registry are reached through
//! four locked instructions and an allocation, these through one.
//!
//! A slot is free, held by a thread for some instructions, or a span's. A span that finds no room is kept in its
//! extensions. What threads that leave a span at once keep in two slots is added when it closes.

use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_witness::UndisturbedSpan;

const FREE: u64 = 0;
/// No span: their numbers are below.
const HELD: u64 = u64::MAX;
const SLOTS: usize = 4;
const GROUPS_LOG2: u32 = 8;

#[derive(Default)]
struct Slot {
    span: AtomicU64,
    words: [AtomicU64; 2],
}

#[derive(Default)]
#[repr(align(64))]
struct Group {
    slots: [Slot; SLOTS],
    /// Spans of this group that are kept in their extensions.
    elsewhere: AtomicU64,
}

pub(crate) struct Paused {
    groups: Box<[Group]>,
}

impl Slot {
    /// From a state to held, if it is in that state.
    fn hold(&self, from: u64) -> bool {
        let held = self.span.compare_exchange(from, HELD, Ordering::Acquire, Ordering::Relaxed);
        held.is_ok()
    }

    fn read(&self) -> UndisturbedSpan {
        UndisturbedSpan::of_words(self.words.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    fn write(&self, piece: UndisturbedSpan) {
        for (kept, word) in self.words.iter().zip(piece.words()) {
            kept.store(word, Ordering::Relaxed);
        }
    }
}

impl Paused {
    pub(crate) fn new() -> Paused {
        Paused { groups: (0..1 << GROUPS_LOG2).map(|_| Group::default()).collect() }
    }

    fn group(&self, span: u64) -> &Group {
        /// 2^64 divided by the golden ratio: neighbours are far apart.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let place = span.wrapping_mul(SPREAD) >> (u64::BITS - GROUPS_LOG2);
        &self.groups[place as usize]
    }

    /// Keeps a piece of a span in which nothing happened; `false` if there is no room.
    pub(crate) fn keep(&self, span: u64, piece: UndisturbedSpan) -> bool {
        let slots = &self.group(span).slots;
        for slot in slots {
            if slot.span.load(Ordering::Relaxed) == span && slot.hold(span) {
                slot.write(slot.read().and(piece));
                slot.span.store(span, Ordering::Release);
                return true;
            }
        }
        for slot in slots {
            if slot.span.load(Ordering::Relaxed) == FREE && slot.hold(FREE) {
                slot.write(piece);
                slot.span.store(span, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Takes what is kept of a span.
    pub(crate) fn take(&self, span: u64) -> Option<UndisturbedSpan> {
        let mut taken: Option<UndisturbedSpan> = None;
        for slot in &self.group(span).slots {
            if slot.span.load(Ordering::Relaxed) == span && slot.hold(span) {
                let piece = slot.read();
                slot.span.store(FREE, Ordering::Release);
                taken = Some(taken.map_or(piece, |others| others.and(piece)));
            }
        }
        taken
    }

    /// Forgets a span that closes, so that no thread is in it, and of which all is kept here: then nothing happened
    /// in it. `false` if a part is in its extensions.
    pub(crate) fn close(&self, span: u64) -> bool {
        let group = self.group(span);
        if group.elsewhere.load(Ordering::Acquire) != 0 {
            return false;
        }
        for slot in &group.slots {
            if slot.span.load(Ordering::Acquire) == span {
                slot.span.store(FREE, Ordering::Release);
            }
        }
        true
    }

    /// A part of the span is in its extensions from now on.
    pub(crate) fn moved_out(&self, span: u64) {
        self.group(span).elsewhere.fetch_add(1, Ordering::AcqRel);
    }

    /// It is not any more.
    pub(crate) fn moved_back(&self, span: u64) {
        self.group(span).elsewhere.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    fn piece(ticks: u64, cpu: u64) -> UndisturbedSpan {
        UndisturbedSpan::of_words([ticks, cpu])
    }

    /// Numbers of one group.
    fn neighbours(paused: &Paused, count: usize) -> Vec<u64> {
        let first = std::ptr::from_ref(paused.group(1));
        (1..).filter(|span| std::ptr::eq(paused.group(*span), first)).take(count).collect()
    }

    #[test]
    fn pieces_are_added_until_they_are_taken() {
        let paused = Paused::new();
        assert!(paused.keep(7, piece(10, 3)) && paused.keep(7, piece(5, 4)));
        assert_eq!(paused.take(7).map(UndisturbedSpan::words), Some([15, 3]));
        assert!(paused.take(7).is_none());
        assert!(paused.keep(7, piece(1, 2)) && paused.close(7));
        assert!(paused.take(7).is_none(), "a span that closed is forgotten");
    }

    #[test]
    fn what_finds_no_room_is_kept_elsewhere() {
        let paused = Paused::new();
        let spans = neighbours(&paused, SLOTS + 1);
        let kept: Vec<bool> = spans.iter().map(|span| paused.keep(*span, piece(1, 0))).collect();
        assert_eq!(kept, [true, true, true, true, false]);
        let last = spans[SLOTS];
        paused.moved_out(last);
        assert!(!paused.close(spans[0]) && !paused.close(last), "each is looked for");
        paused.moved_back(last);
        assert!(spans.iter().all(|span| paused.close(*span)));
        assert!(spans.iter().all(|span| paused.take(*span).is_none()));
    }

    /// Threads that leave spans of one group at once: no piece is lost, and none is another's.
    #[test]
    fn threads_keep_pieces_at_once() {
        const ROUNDS: u64 = 20_000;
        let paused = Paused::new();
        let spans = neighbours(&paused, 2);
        let (begin, without_room) = (Barrier::new(4), AtomicU64::new(0));
        thread::scope(|scope| {
            for number in 0..4 {
                let (paused, begin, without_room) = (&paused, &begin, &without_room);
                let (span, ticks) = (spans[number % 2], 1 + number as u64 % 2);
                scope.spawn(move || {
                    begin.wait();
                    for _ in 0..ROUNDS {
                        if !paused.keep(span, piece(ticks, 0)) {
                            without_room.fetch_add(ticks, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let kept = spans.iter().filter_map(|span| paused.take(*span)).map(|sum| sum.words()[0]);
        let all = kept.sum::<u64>() + without_room.into_inner();
        assert_eq!(all, 2 * ROUNDS * (1 + 2));
    }
}
