//! The form of an event in the ring, read from its `format` file.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    signed: bool,
    /// The field says where its bytes are, in place of holding them (`__data_loc`).
    elsewhere: bool,
}

/// The format of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The number by which its entries are known ([`Format::ID`]).
    pub id: u16,
    fields: BTreeMap<String, Field>,
    symbols: BTreeMap<u64, String>,
}

impl Field {
    /// A field of `size` bytes (1, 2, 4 or 8 where it is a number) at `offset`.
    pub(super) fn new(offset: usize, size: usize, signed: bool) -> Field {
        Field { offset, size, signed, elsewhere: false }
    }

    /// Where it begins, and how many bytes it has.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.offset, self.size)
    }

    /// The element at `index` of an array of numbers of `size` bytes each.
    #[must_use]
    pub fn element(&self, index: usize, size: usize) -> Option<Field> {
        let from = index.checked_mul(size)?;
        let is_within = from.checked_add(size)? <= self.size && !self.elsewhere;
        is_within.then_some(Field { offset: self.offset.checked_add(from)?, size, ..*self })
    }

    fn bytes<'a>(&self, entry: &'a [u8]) -> Option<&'a [u8]> {
        entry.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The number in an entry; a signed one as the bits of an `i64`. `None` if the entry is too
    /// short, or the field is no number of 1, 2, 4 or 8 bytes.
    #[must_use]
    #[inline]
    pub fn read(&self, entry: &[u8]) -> Option<u64> {
        let bytes = self.bytes(entry)?;
        let number = match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        };
        if !self.signed {
            return Some(number);
        }
        let unused = 64 - 8 * bytes.len() as u32;
        Some(((number << unused).cast_signed() >> unused).cast_unsigned())
    }

    /// The text in an entry, up to its first zero. `None` if the entry is too short.
    #[must_use]
    pub fn text<'a>(&self, entry: &'a [u8]) -> Option<Cow<'a, str>> {
        let bytes = if self.elsewhere {
            // Two halves: where, and how many bytes.
            let word = u32::from_ne_bytes(self.bytes(entry)?.try_into().ok()?);
            let (start, length) = ((word & 0xffff) as usize, (word >> 16) as usize);
            entry.get(start..start + length)?
        } else {
            self.bytes(entry)?
        };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]))
    }

    /// From where the field begins to the end of the entry, for a last field without a size.
    #[must_use]
    pub fn rest<'a>(&self, entry: &'a [u8]) -> Option<&'a [u8]> {
        entry.get(self.offset..)
    }
}

impl Format {
    /// The field in which every entry has the number of its event.
    pub const ID: &'static str = "common_type";

    /// Reads the text of a `format` file; `None` if it has no number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let symbols = text.lines().find_map(|line| line.strip_prefix("print fmt:"));
        Some(Format {
            id,
            fields: fields(text),
            symbols: symbols.map(symbols_in).unwrap_or_default(),
        })
    }

    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }

    /// Numbers that the format gives names to, as it does with softirqs and thread states.
    #[must_use]
    pub fn symbols(&self) -> &BTreeMap<u64, String> {
        &self.symbols
    }
}

/// The fields described in `text`, by their names.
pub(super) fn fields(text: &str) -> BTreeMap<String, Field> {
    text.lines().filter_map(field).collect()
}

/// `field:int prev_prio;  offset:28;  size:4;  signed:1;`
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.trim().parse::<usize>().ok(),
            Some(("size", number)) => size = number.trim().parse::<usize>().ok(),
            Some(("signed", number)) => signed = number.trim() == "1",
            _ => {}
        }
    }
    let name = declared.split('[').next()?.split_ascii_whitespace().next_back()?;
    // `__data_loc char[] comm`: the brackets belong to the type.
    let elsewhere = declared.starts_with("__data_loc");
    let name = if elsewhere { declared.split_ascii_whitespace().next_back()? } else { name };
    let name = name.trim_start_matches('*').to_owned();
    Some((name, Field { offset: offset?, size: size?, signed, elsewhere }))
}

/// Every `{ 3, "NET_RX" }` of a print format.
fn symbols_in(print: &str) -> BTreeMap<u64, String> {
    let mut symbols = BTreeMap::new();
    for piece in print.split('{').skip(1) {
        let Some((inside, _)) = piece.split_once('}') else { continue };
        let Some((number, name)) = inside.split_once(',') else { continue };
        let number = number.trim();
        let number = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        };
        let name = name.trim().strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        if let (Some(number), Some(name)) = (number, name) {
            symbols.insert(number, name.to_owned());
        }
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shaped as a kernel's files are, with offsets of no kernel.
    const TEXT: &str = "name: thing_happened\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[8];\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:void * hrtimer;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"vec=%u [%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 0x10, \"RCU\" })\n";

    #[test]
    fn fields_by_name_offset_and_size() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!(format.id, 372);
        let mut entry = [0u8; 48];
        entry[..2].copy_from_slice(&372u16.to_ne_bytes());
        entry[8..16].copy_from_slice(b"two wrds");
        entry[16..20].copy_from_slice(&(-5i32).to_ne_bytes());
        entry[20..24].copy_from_slice(&(6u32 << 16 | 32).to_ne_bytes());
        entry[24..32].copy_from_slice(&u64::MAX.to_ne_bytes());
        entry[32..38].copy_from_slice(b"eth0\0x");
        let read = |name| format.field(name).unwrap().read(&entry);
        assert_eq!(read("common_type"), Some(372));
        assert_eq!(read("prev_pid"), Some((-5i64).cast_unsigned()));
        assert_eq!(read("hrtimer"), Some(u64::MAX));
        let text = |name| format.field(name).unwrap().text(&entry).unwrap().into_owned();
        assert_eq!((text("prev_comm"), text("name")), ("two wrds".into(), "eth0".into()));
        assert_eq!(format.field("next_pid"), None);
        assert_eq!(format.field("hrtimer").unwrap().read(&entry[..31]), None);
        assert_eq!(format.field("name").unwrap().text(&entry[..36]), None);
    }

    #[test]
    fn symbols_of_both_bases() {
        let format = Format::parse(TEXT).unwrap();
        let symbols: Vec<_> = format.symbols().iter().map(|(n, s)| (*n, s.as_str())).collect();
        assert_eq!(symbols, [(0, "HI"), (16, "RCU")]);
    }

    #[test]
    fn what_is_no_format_is_none() {
        for text in ["", "ID: x", "name: a\nID: 70000\n", "\0\0"] {
            assert_eq!(Format::parse(text), None, "{text:?}");
        }
        let odd = Format::parse("ID: 1\n field:;offset:;\n field:int a;offset:1;\nprint fmt: {,}{");
        assert_eq!(odd.unwrap().fields.len(), 0);
    }
}
