//! Columns of integers as text: seven bits a byte, the lowest first, in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A column that is being written. The script has the reader (`data.js`).
#[derive(Debug, Default)]
pub(super) struct ColumnEncoder {
    bytes: Vec<u8>,
}

impl ColumnEncoder {
    /// Appends a byte as it is.
    pub(super) fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a number in one to ten bytes.
    pub(super) fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Appends a number that may be negative: its sign in the lowest bit, so that small ones stay
    /// short.
    pub(super) fn signed(&mut self, value: i64) {
        self.unsigned((value << 1 ^ value >> 63).cast_unsigned());
    }

    pub(super) fn text(&self) -> String {
        STANDARD.encode(&self.bytes)
    }
}

/// The least length that is kept if the `excess` shortest are not; 0 if all are.
pub(super) fn least_kept(lengths: impl Iterator<Item = u64>, excess: usize) -> u64 {
    let Some(last) = excess.checked_sub(1) else { return 0 };
    let mut lengths: Vec<u64> = lengths.collect();
    let (_, longest_dropped, _) = lengths.select_nth_unstable(last);
    longest_dropped.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_bytes() {
        let mut column = ColumnEncoder::default();
        column.unsigned(0);
        column.unsigned(300);
        column.signed(-1);
        column.signed(1);
        column.signed(i64::MIN);
        column.unsigned(u64::MAX);
        column.byte(0xff);
        let mut wanted = vec![0, 0xac, 0x02, 1, 2];
        wanted.extend([[0xff; 9].as_slice(), &[1], &[0xff; 9], &[1], &[0xff]].concat());
        assert_eq!(column.bytes, wanted);
    }
}
