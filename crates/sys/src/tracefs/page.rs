//! The pieces in which a ring is read (sub-buffers), and the entries in them.
//!
//! A piece that is cut short or invalid is read as far as it is valid, and the reader reports that. Nothing in it can
//! make the reader panic or read beyond its end.

use super::format::{Field, fields};

/// Bits of the commit word that count bytes.
const COMMIT_BYTES: u64 = (1 << 27) - 1;

/// Bit of the commit word: entries were lost before this piece.
const MISSED: u64 = 1 << 31;

/// Bit of the commit word: how many were lost stands behind the last entry.
const MISSED_STORED: u64 = 1 << 30;

/// `type_len` of an entry that is not data (`events/header_event`).
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of the time in an entry's own word; the rest stands in the next word.
const DELTA_BITS: u32 = 27;

/// Upper bits that an absolute time leaves out.
const TIME_UPPER: u64 = 0xf8 << 56;

/// Bytes of a word of an entry.
const WORD: usize = 4;

/// The form of a piece (`events/header_page`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    timestamp: Field,
    commit: Field,
    data: usize,
    size: usize,
}

impl PageLayout {
    /// Reads the text of `events/header_page`.
    #[must_use]
    pub fn parse(text: &str) -> Option<PageLayout> {
        // There the names are `field: u64 timestamp`.
        let fields = fields(text);
        let (data, bytes) = fields.get("data")?.place();
        let commit = fields.get("commit")?.place();
        let timestamp = fields.get("timestamp")?.place();
        Some(PageLayout {
            timestamp: Field::new(timestamp.0, timestamp.1, false),
            commit: Field::new(commit.0, commit.1, false),
            data,
            size: data.checked_add(bytes)?,
        })
    }

    /// Bytes of a whole piece, which is what a reader must ask for.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }
}

/// A piece of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    data: &'a [u8],
    time: u64,
    lost: Option<u64>,
    cut: bool,
}

/// An entry at a time of the kernel's trace clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEntry<'a> {
    /// When, in the trace clock's own unit.
    pub time: u64,
    /// The event's bytes; which event it is stands in them.
    pub data: &'a [u8],
}

impl<'a> Page<'a> {
    /// Takes the header apart. `None` if there is not even that.
    #[must_use]
    pub fn new(layout: &PageLayout, bytes: &'a [u8]) -> Option<Page<'a>> {
        let (time, commit) = (layout.timestamp.read(bytes)?, layout.commit.read(bytes)?);
        let all = bytes.get(layout.data..)?;
        let committed = usize::try_from(commit & COMMIT_BYTES).ok()?;
        let cut = committed > all.len();
        let (data, behind) = all.split_at(committed.min(all.len()));
        let lost = (commit & MISSED != 0).then(|| match commit & MISSED_STORED {
            0 => 0,
            _ => Field::new(0, layout.commit.place().1, false).read(behind).unwrap_or(0),
        });
        Some(Page { data, time, lost, cut })
    }

    /// The time of the first entry, in the trace clock's own unit.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// How many entries were lost before this piece; `Some(0)` if some were lost but not counted.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// The entries that are events.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        Entries { data: self.data, at: 0, time: self.time, damaged: self.cut, ended: false }
    }
}

/// Iterator over the entries of a piece.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    data: &'a [u8],
    at: usize,
    time: u64,
    damaged: bool,
    ended: bool,
}

impl<'a> Entries<'a> {
    /// Whether the piece was cut short, or made no sense from some entry on; known at its end.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.damaged
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at.checked_add(WORD)?)?;
        bytes.try_into().ok().map(u32::from_ne_bytes)
    }

    /// The next entry. `Err` where it cannot be understood.
    fn step(&mut self) -> Result<Option<RingEntry<'a>>, ()> {
        while self.at < self.data.len() {
            let word = self.word(self.at).ok_or(())?;
            // A bit field: its first member is the lowest, or on big-endian the highest.
            let (kind, delta) = if cfg!(target_endian = "big") {
                (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
            } else {
                (word & 0x1f, word >> 5)
            };
            let delta = u64::from(delta);
            let body = self.at + WORD;
            match kind {
                // Nothing but padding up to the end.
                PADDING if delta == 0 => return Ok(None),
                PADDING => self.skip(body, self.word(body).ok_or(())?)?,
                TIME_EXTEND => {
                    let upper = u64::from(self.word(body).ok_or(())?);
                    self.time = self.time.wrapping_add((upper << DELTA_BITS) + delta);
                    self.at = body + WORD;
                }
                TIME_STAMP => {
                    let upper = u64::from(self.word(body).ok_or(())?);
                    self.time = absolute((upper << DELTA_BITS) + delta, self.time);
                    self.at = body + WORD;
                }
                short => return self.data_entry(body, short, delta).map(Some),
            }
        }
        Ok(None)
    }

    fn data_entry(&mut self, body: usize, short: u32, delta: u64) -> Result<RingEntry<'a>, ()> {
        // 0: the length stands in the first word of the body, which it counts too.
        let (start, length) = match short {
            0 => (body + WORD, self.word(body).ok_or(())?),
            words => (body, words * WORD as u32),
        };
        self.skip(body, length)?;
        let data = self.data.get(start..self.at).ok_or(())?;
        self.time = self.time.wrapping_add(delta);
        Ok(RingEntry { time: self.time, data })
    }

    /// Goes behind a body of `length` bytes, which ends at a whole word.
    fn skip(&mut self, body: usize, length: u32) -> Result<(), ()> {
        let length = usize::try_from(length).map_err(|_| ())?;
        let end = length.checked_next_multiple_of(WORD).and_then(|length| body.checked_add(length));
        self.at = end.filter(|end| *end <= self.data.len()).ok_or(())?;
        Ok(())
    }
}

/// An absolute time, which lacks its upper bits, beside a time shortly before it.
fn absolute(lower: u64, before: u64) -> u64 {
    if before & TIME_UPPER == 0 {
        return lower;
    }
    let time = lower | before & TIME_UPPER;
    // The lower bits began again from zero meanwhile.
    if time < before { time.wrapping_add(1 << 59) } else { time }
}

impl<'a> Iterator for Entries<'a> {
    type Item = RingEntry<'a>;

    fn next(&mut self) -> Option<RingEntry<'a>> {
        if self.ended {
            return None;
        }
        let step = self.step();
        self.damaged |= step.is_err();
        let entry = step.ok().flatten();
        self.ended = entry.is_none();
        entry
    }
}
