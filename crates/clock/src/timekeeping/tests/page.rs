//! The page: its layout, and that what is read together belongs together.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::*;

fn content(number: u64) -> Content {
    let line = ClockLine {
        source: SourceId::OS,
        status: Status::Steady,
        epoch: number as u32,
        slope: Slope { mult: number, shift: 60 },
        base_ticks: number,
        valid_for: 1 << 40,
        base_ns: number,
        bound_ns: number,
        growth: 0,
        validity: LineValidity::Always,
    };
    Content { line, raw: RawRate { error: number, ..RawRate::UNKNOWN }, wall: WallLine::UNKNOWN }
}

#[test]
fn the_layout_is_the_documented_one() {
    assert_eq!((size_of::<Page>(), align_of::<Page>()), (BYTES as usize, 64));
    let page = Page::new();
    let word = |index| PageWords::load(&page, index, Relaxed);
    assert_eq!(word(0).to_le_bytes(), *b"hgclkpag");
    assert_eq!((word(1), word(2), word(8)), (2, 512, 0));
    page.switch(None, |_| content(7)).unwrap();
    // Slot 1 counts, turn 1.
    assert_eq!(word(8), 0b110);
    assert_eq!(word(40), 1 | 60 << 16 | 2 << 24 | 7 << 32);
    assert_eq!([word(41), word(42), word(43), word(44), word(45)], [7, 1 << 40, 7, 7, 7]);
    assert_eq!(content_under(&page, 0b110), content(7));
}

#[test]
fn before_anything_is_drawn_readers_are_sent_on() {
    let page = Page::new();
    assert_eq!(now(&page, |_| Some(5)), None);
    assert_eq!(content_under(&page, 0), Content::UNDRAWN);
}

#[test]
fn an_interrupted_writer_begins_again() {
    let page = Page::new();
    let mut turns = 0;
    let drawn = page.switch(None, |old| {
        assert_eq!(old.base_ns, 0);
        turns += 1;
        if turns < 3 {
            let turn = PageWords::load(&page, word::TURN, Relaxed);
            assert!(page.interrupt(turn));
            assert!(!page.interrupt(turn), "once");
        }
        content(turns)
    });
    assert_eq!((turns, drawn), (3, Some(content(3))));
    let busy = page.switch(None, |_| {
        assert!(page.interrupt(PageWords::load(&page, word::TURN, Relaxed)));
        content(9)
    });
    assert_eq!(busy, None);
    assert_eq!(super::content(&page), Some(content(3)), "nothing changed");
    assert!(!page.interrupt(PageWords::load(&page, word::TURN, Relaxed) | SWITCHING));
}

#[test]
fn readers_never_see_half_of_a_line() {
    let page = Page::new();
    page.switch(None, |_| content(1)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Relaxed) {
                    let Some(found) = super::content(&page) else { continue };
                    assert_eq!(found, content(found.line.base_ns));
                    assert!(found.line.base_ns >= last);
                    last = found.line.base_ns;
                    let reference_state = bounded(&page, |_| Some(last), |_| true).map(|r| r.ns);
                    assert!(reference_state.is_none_or(|ns| ns >= last));
                }
            });
        }
        let end = Instant::now() + Duration::from_millis(300);
        let mut number = 1;
        while Instant::now() < end {
            number += 1;
            page.switch(None, |_| content(number)).unwrap();
        }
        done.store(true, Relaxed);
        assert!(number > 1_000);
    });
}

/// The bug: turns that follow one another may differ by 2, as generations do, so that a guard that a reader had found
/// for itself passed for that of the next line, under a rate of the kernel's clock that this line knew nothing of.
#[test]
fn a_guard_is_of_one_turn_alone() {
    let page = Page::new();
    page.switch(None, |_| content(1)).unwrap();
    let first = PageWords::load(&page, word::TURN, Relaxed);
    page.switch(None, |_| content(2)).unwrap();
    let second = PageWords::load(&page, word::TURN, Relaxed);
    assert_eq!(second - first, 2);
    let guard = guard_of(first, 100);
    assert!(guards(guard, first, 100) && !guards(guard, first, 102));
    assert!(!guards(guard, second, 102) && !guards(guard, second, 100));
    assert!(guards(guard_of(u64::MAX - 1, 3), u64::MAX - 1, 3), "modulo 2^32");
}

/// A page that is given two lines more just before a word of it is read for the first time.
struct SwitchedBefore {
    page: Page,
    index: usize,
    switched: AtomicBool,
}

impl PageWords for SwitchedBefore {
    fn load(&self, index: usize, order: Ordering) -> u64 {
        if index == self.index && !self.switched.swap(true, Relaxed) {
            for number in 2..4 {
                self.page.switch(None, |_| content(number)).unwrap();
            }
        }
        PageWords::load(&self.page, index, order)
    }
}

/// The bug, which the fuzzer found: whether a line holds by itself was read behind the look whether the page was still the
/// one that was read, from a slot that had a later line by then.
#[test]
fn a_line_does_not_hold_by_what_a_later_one_says() {
    let guarded = |number: u64| {
        let mut content = content(number);
        content.line.validity = LineValidity::Under(8);
        content
    };
    for index in (0..WORDS).chain([WORDS]) {
        let page = Page::new();
        page.switch(None, |_| guarded(1)).unwrap();
        let words = SwitchedBefore { page, index, switched: AtomicBool::new(false) };
        let turn = PageWords::load(&words.page, word::TURN, Relaxed);
        let found = bounded(&words, |_| Some(1), |turn| holds(&words, turn, 9));
        let is_later = PageWords::load(&words.page, word::TURN, Relaxed) != turn;
        assert!(
            found.is_none() || (is_later && index == word::TURN),
            "switched before word {index} was read"
        );
    }
}
