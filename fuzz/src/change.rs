//! Changes of inputs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hourglass_documents::random::Stream;

/// No input grows beyond this, bytes.
const LONGEST: usize = 1 << 16;

/// Words that inputs of each target are made of; as `hard`, texts that readers of numbers, strings and trees get wrong.
static DICTIONARIES: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../words.json")).expect("lists of words by target")
});

fn dictionary(target: &str) -> &'static [String] {
    DICTIONARIES.get(target).map_or(&[], Vec::as_slice)
}

/// Words of binary files.
const WORDS: &[u64] = &[
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 62,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

#[derive(Debug)]
pub struct Mutator {
    dice: Stream,
    words: &'static [String],
}

impl Mutator {
    #[must_use]
    pub fn new(seed: u64, target: &str) -> Mutator {
        Mutator { dice: Stream::from_seeds(&[seed]), words: dictionary(target) }
    }

    pub fn next_below(&mut self, count: usize) -> usize {
        self.dice.below(count as u64) as usize
    }

    /// `input` after one to eight changes; `other` is another input, of which parts are taken.
    #[must_use]
    pub fn changed(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..1 << self.next_below(4) {
            self.change(&mut bytes, other);
            bytes.truncate(LONGEST);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.next_below(bytes.len() + 1);
        match self.next_below(14) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.dice.below(8);
                }
            }
            1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = self.dice.below(256) as u8;
                }
            }
            2 => bytes.insert(at, self.dice.below(256) as u8),
            3 => drop(self.part(bytes).map(|range| drop(bytes.drain(range)))),
            4 => bytes.truncate(at),
            5 => self.repeat(bytes),
            6 | 7 => self.replace_number(bytes),
            8 => {
                let word = self.word();
                insert(bytes, at, word.as_bytes());
            }
            9 => self.replace_word(bytes),
            10 => {
                if let Some(range) = self.part(other) {
                    insert(bytes, at, &other[range]);
                }
            }
            11 => {
                if let (Some(from), Some(to)) = (self.part(other), self.part(bytes)) {
                    bytes.splice(to, other[from].iter().copied());
                }
            }
            12 => self.exchange_lines(bytes),
            _ => self.write_word(bytes, at),
        }
    }

    fn part(&mut self, bytes: &[u8]) -> Option<std::ops::Range<usize>> {
        if bytes.is_empty() {
            return None;
        }
        let start = self.next_below(bytes.len());
        let most =
            if self.next_below(4) == 0 { bytes.len() - start } else { 32.min(bytes.len() - start) };
        Some(start..start + 1 + self.next_below(most))
    }

    /// A part once more, or very often: depth and length.
    fn repeat(&mut self, bytes: &mut Vec<u8>) {
        let Some(range) = self.part(bytes) else { return };
        let part = bytes[range.clone()].to_vec();
        let times =
            if self.next_below(16) == 0 { LONGEST / part.len() } else { 1 + self.next_below(4) };
        insert(bytes, range.start, &part.repeat(times));
    }

    fn replace_number(&mut self, bytes: &mut Vec<u8>) {
        let digit = |byte: &u8| byte.is_ascii_digit();
        let starts: Vec<usize> = (0..bytes.len())
            .filter(|at| digit(&bytes[*at]) && (*at == 0 || !digit(&bytes[at - 1])))
            .collect();
        if starts.is_empty() {
            return;
        }
        let start = starts[self.next_below(starts.len())];
        let length = bytes[start..].iter().take_while(|byte| digit(byte)).count();
        let new = match self.next_below(3) {
            0 => self.dice.below(1000).to_string(),
            _ => {
                let hard = dictionary("hard");
                hard[self.next_below(hard.len())].clone()
            }
        };
        bytes.splice(start..start + length, new.into_bytes());
    }

    fn replace_word(&mut self, bytes: &mut Vec<u8>) {
        let Some(range) = self.part(bytes) else { return };
        let letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'-';
        let before = bytes[..range.start].iter().rev().take_while(|byte| letter(byte)).count();
        let behind = bytes[range.start..].iter().take_while(|byte| letter(byte)).count();
        let word = self.word();
        bytes.splice(range.start - before..range.start + behind, word.bytes());
    }

    fn word(&mut self) -> &'static str {
        let of_target = !self.words.is_empty() && self.next_below(3) > 0;
        let all = if of_target { self.words } else { dictionary("hard") };
        &all[self.next_below(all.len())]
    }

    fn exchange_lines(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> =
            bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let (from, to) = (self.next_below(lines.len()), self.next_below(lines.len()));
        let line = if self.next_below(2) == 0 { lines.remove(from) } else { lines[from].clone() };
        lines.insert(to.min(lines.len()), line);
        *bytes = lines.join(&b'\n');
    }

    /// A word of 1, 2, 4 or 8 bytes, in either order.
    fn write_word(&mut self, bytes: &mut [u8], at: usize) {
        let size = 1 << self.next_below(4);
        let word = WORDS[self.next_below(WORDS.len())];
        let word = if self.next_below(2) == 0 {
            word.to_le_bytes()
        } else {
            word.swap_bytes().to_le_bytes()
        };
        let at = if self.next_below(2) == 0 { at } else { at & !7 };
        if let Some(place) = bytes.get_mut(at..at + size) {
            place.copy_from_slice(&word[..size]);
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    bytes.splice(at..at, new.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_the_changes_and_no_input_grows_without_end() {
        let drawn = |seed| {
            let mut changer = Mutator::new(seed, "tasks-toml");
            let mut bytes = b"[[task]]\nwcet = 3\n".to_vec();
            let mut all = Vec::new();
            for _ in 0..2_000 {
                bytes = changer.changed(&bytes, b"period = 8");
                all.push(bytes.clone());
            }
            all
        };
        assert_eq!(drawn(1), drawn(1));
        let (one, two) = (drawn(1), drawn(2));
        assert_ne!(one, two);
        assert!(one.iter().all(|bytes| bytes.len() <= LONGEST));
        assert!(one.iter().any(|bytes| bytes.len() > LONGEST / 2), "depth and length are tried");
    }

    #[test]
    fn numbers_become_hard_ones() {
        let mut changer = Mutator::new(3, "queue");
        let mut seen = false;
        for _ in 0..1_000 {
            let mut bytes = b"a = 12".to_vec();
            changer.replace_number(&mut bytes);
            assert!(bytes.starts_with(b"a = "), "{bytes:?}");
            seen |= bytes == b"a = 18446744073709551616";
        }
        assert!(seen);
    }
}
