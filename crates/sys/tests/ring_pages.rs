//! Pieces of the kernel's ring: one written by hand, many written at random, and ones that no
//! kernel would write.

#![cfg(target_os = "linux")]

use hourglass_dice::{Dice, seed};
use hourglass_sys::tracefs::{Page, PageLayout};

const HEADER_PAGE: &str = include_str!("data/header_page.txt");

/// Bytes before the entries.
const HEADER: usize = 16;

fn layout() -> PageLayout {
    PageLayout::parse(HEADER_PAGE).unwrap()
}

/// Time and bytes of an entry.
type RingEntry = (u64, Vec<u8>);

/// The entries, and whether the piece was damaged.
fn read(bytes: &[u8]) -> Option<(Vec<RingEntry>, bool)> {
    let page = Page::new(&layout(), bytes)?;
    let mut entries = page.entries();
    let found = entries.by_ref().map(|entry| (entry.time, entry.data.to_vec())).collect();
    Some((found, entries.damaged()))
}

#[cfg(target_endian = "little")]
#[test]
fn a_piece_written_by_hand() {
    let text = include_str!("data/page.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.flat_map(str::split_ascii_whitespace);
    let bytes: Vec<u8> = words.map(|word| u8::from_str_radix(word, 16).unwrap()).collect();

    let page = Page::new(&layout(), &bytes).unwrap();
    assert_eq!((page.time(), page.lost()), (1000, Some(9)));
    let (entries, damaged) = read(&bytes).unwrap();
    let expected = [
        (1005, vec![0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22]),
        (1005 + (1 << 27) + 3, vec![0x33; 4]),
        ((1 << 28) + 8, vec![0x44, 0x44, 0x44, 0x44, 0x55, 0x55, 0x55, 0]),
        ((1 << 28) + 10, vec![0x66; 4]),
    ];
    assert_eq!((entries, damaged), (expected.to_vec(), false));
}

/// The upper five bits, which an absolute time stamp leaves out, come from the time before it.
#[test]
fn absolute_times_keep_their_upper_bits() {
    for (before, lower, expected) in [
        (5, 9, 9),
        (1 << 60, 9, (1 << 60) + 9),
        // The lower bits began again from zero.
        ((1 << 60) - 2, 9, (1 << 60) + 9),
    ] {
        let mut writer = Writer::new(before);
        writer.words(&[word(31, lower as u32), 0, word(1, 0), 7]);
        let (entries, damaged) = read(&writer.finish()).unwrap();
        assert_eq!((entries, damaged), (vec![(expected, 7u32.to_ne_bytes().to_vec())], false));
    }
}

/// First word of an entry.
fn word(kind: u32, delta: u32) -> u32 {
    if cfg!(target_endian = "big") { kind << 27 | delta } else { delta << 5 | kind }
}

/// Writes a piece as the kernel does.
struct Writer {
    time: u64,
    data: Vec<u8>,
}

impl Writer {
    fn new(time: u64) -> Writer {
        Writer { time, data: Vec::new() }
    }

    fn words(&mut self, words: &[u32]) {
        self.data.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }

    /// An event `delta` later than the last, in `length` bytes.
    fn event(&mut self, delta: u64, body: &[u8]) {
        let mut short = delta;
        if delta >= 1 << 27 {
            self.words(&[word(30, (delta & 0x7ff_ffff) as u32), (delta >> 27) as u32]);
            short = 0;
        }
        let words = body.len() / 4;
        if (1..=28).contains(&words) {
            self.words(&[word(words as u32, short as u32)]);
        } else {
            self.words(&[word(0, short as u32), body.len() as u32 + 4]);
        }
        self.data.extend(body);
    }

    fn finish(&self) -> Vec<u8> {
        let mut bytes = self.time.to_ne_bytes().to_vec();
        bytes.extend((self.data.len() as u64).to_ne_bytes());
        bytes.extend(&self.data);
        bytes
    }
}

/// Writes a piece at random; its bytes, and what a reader must find in it.
fn piece(dice: &mut Dice) -> (Vec<u8>, Vec<RingEntry>) {
    let mut time = dice.below(1 << 50);
    let mut writer = Writer::new(time);
    let mut expected = Vec::new();
    for _ in 0..dice.below(40) {
        let delta = dice.roll() >> 27 >> dice.below(37);
        let words = dice.below(40) as usize;
        let body: Vec<u8> = (0..words * 4).map(|_| dice.roll() as u8).collect();
        time += delta;
        writer.event(delta, &body);
        expected.push((time, body));
    }
    (writer.finish(), expected)
}

#[test]
fn what_is_written_at_random_is_read_again() {
    let mut dice = Dice::new(seed());
    for _ in 0..2_000 {
        let (bytes, expected) = piece(&mut dice);
        let (found, damaged) = read(&bytes).unwrap();
        assert_eq!((found, damaged), (expected, false));
    }
}

/// Whatever is missing at the end, the data before it is read, and the loss is reported.
#[test]
fn what_is_cut_short_is_read_as_far_as_it_goes() {
    let mut dice = Dice::new(seed());
    for _ in 0..500 {
        let (bytes, expected) = piece(&mut dice);
        let length = dice.below(bytes.len() as u64) as usize;
        let cut = &bytes[..length];
        let Some((found, damaged)) = read(cut) else {
            assert!(length < HEADER);
            continue;
        };
        assert!(damaged, "{length} of {} bytes", bytes.len());
        assert_eq!(found, expected[..found.len()]);
    }
}

/// Noise, and pieces with some of their bytes changed: no panic, no endless loop, nothing beyond
/// the end.
#[test]
fn noise_is_survived() {
    let mut dice = Dice::new(seed());
    for round in 0..20_000 {
        let bytes = if round % 2 == 0 {
            (0..dice.below(300)).map(|_| dice.roll() as u8).collect()
        } else {
            let mut bytes = piece(&mut dice).0;
            for _ in 0..=dice.below(4) {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] = dice.roll() as u8;
            }
            bytes
        };
        if let Some((found, _)) = read(&bytes) {
            let inside: usize = found.iter().map(|(_, body)| body.len() + 4).sum();
            assert!(inside <= bytes.len() - HEADER);
        }
    }
}

#[test]
fn a_header_page_that_is_none() {
    for text in ["", "field: u64 timestamp; offset:0; size:8;", "\0"] {
        assert_eq!(PageLayout::parse(text), None);
    }
    assert_eq!(layout().size(), 128);
}
