//! The lines that Hourglass prints for scripts (Hourglass paper, sections 3.4, 5.1, 5.3, 5.5).

use std::io::{self, Write};

use hourglass_documents::document::{Deadlines, ThreadReport};
use hourglass_trace::CpuGap;
use hourglass_trace::Interval;

/// Bytes that are collected before they are handed on: large enough that the cost of a system
/// call is lost among them, small enough to stay in the caches.
const PIECE: usize = 64 * 1024;

/// No line of numbers is longer: a tag, five columns of at most 21 bytes, separators.
const LONGEST_LINE: usize = 128;

/// `00` to `99`, so that two digits cost one division.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Writes the paper's lines, in pieces of 64 KB. Lines appear in the order of the calls; call
/// [`RecordWriter::finish`] at the end, or the last piece is lost.
///
/// ```
/// use hourglass_trace::CpuGaps;
/// use hourglass_trace::{Interval, IntervalStart};
/// use hourglass_report::text::RecordWriter;
///
/// let record =
///     |thread, start_ns, end_ns| Interval::new(thread, 0, start_ns, end_ns, IntervalStart::Gap);
/// let mut lines = RecordWriter::new(Vec::new());
/// for (interval, gap) in CpuGaps::new([
///     record(0, 442_323_192, 443_222_287),
///     record(1, 443_224_485, 444_123_644),
/// ]) {
///     lines.record(&interval, gap)?;
/// }
/// assert_eq!(
///     String::from_utf8_lossy(&lines.finish()?),
///     "0 442.323192 443.222287 0.899095 0.000000\n\
///      1 443.224485 444.123644 0.899159 0.002198\n",
/// );
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct RecordWriter<W> {
    out: W,
    piece: Vec<u8>,
}

impl<W: Write> RecordWriter<W> {
    /// A writer into `out`, which needs no buffer of its own.
    pub fn new(out: W) -> RecordWriter<W> {
        RecordWriter { out, piece: Vec::with_capacity(PIECE + LONGEST_LINE) }
    }

    /// `id start finish duration gap`, all times in milliseconds from the run's start with
    /// exactly six decimals (section 5.1). `gap` is the one before the record on its CPU, and
    /// `None`, for a CPU's first record, is written as 0.000000.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn record(&mut self, interval: &Interval, gap: Option<CpuGap>) -> io::Result<()> {
        let mut line = Line::new();
        line.milliseconds(gap.map_or(0, |g| g.ns));
        line.byte(b' ');
        line.milliseconds(interval.duration_ns());
        line.byte(b' ');
        line.milliseconds(interval.end_ns);
        line.byte(b' ');
        line.milliseconds(interval.start_ns);
        line.byte(b' ');
        line.number(u64::from(interval.thread));
        self.push(line.bytes())
    }

    /// `cycles: id start end duration gap`, in ticks of the raw counter and not based at zero:
    /// what `-c` adds (Appendix A).
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn raw_record(&mut self, interval: &Interval, gap: Option<CpuGap>) -> io::Result<()> {
        let gap = gap.map_or(0, |g| g.ticks);
        let mut line = Line::new();
        line.number(gap.unsigned_abs());
        if gap < 0 {
            line.byte(b'-');
        }
        line.byte(b' ');
        line.number(interval.end_ticks.saturating_sub(interval.start_ticks));
        line.byte(b' ');
        line.number(interval.end_ticks);
        line.byte(b' ');
        line.number(interval.start_ticks);
        line.byte(b' ');
        line.number(u64::from(interval.thread));
        for &byte in b"cycles: ".iter().rev() {
            line.byte(byte);
        }
        self.push(line.bytes())
    }

    /// `latlate: 97.843206`: how late one timer expired, in microseconds with six decimals
    /// (section 5.3), from whole picoseconds.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn lateness(&mut self, picoseconds: u128) -> io::Result<()> {
        let whole = picoseconds / 1_000_000;
        let part = picoseconds % 1_000_000;
        writeln!(self.piece, "latlate: {whole}.{part:06}")?;
        self.hand_on_if_full()
    }

    /// What a thread counted, in tagged lines: its deadlines (section 5.5), how often a thread
    /// that need not wait got its amount, and its passes over the array (section 5.2). Nothing
    /// for a thread that counts nothing.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn thread(&mut self, thread: &ThreadReport) -> io::Result<()> {
        let id = thread.id;
        if let Some(deadlines) = &thread.deadlines {
            self.deadlines(id, deadlines)?;
        }
        if let Some(times) = super::completed(thread) {
            writeln!(self.piece, "thread {id}: completed {times} times")?;
        }
        if let Some(passes) = thread.work {
            writeln!(self.piece, "thread {id}: work {passes} passes")?;
        }
        self.hand_on_if_full()
    }

    fn deadlines(&mut self, id: u32, deadlines: &Deadlines) -> io::Result<()> {
        let Deadlines { hit, missed, lost, .. } = *deadlines;
        write!(self.piece, "thread {id}: missed {missed} deadlines, hit {hit}")?;
        if lost > 0 {
            write!(self.piece, ", lost {lost}")?;
        }
        writeln!(self.piece)
    }

    /// Hands on what is left, flushes, and gives back the writer beneath.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_on()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn push(&mut self, line: &[u8]) -> io::Result<()> {
        self.piece.extend_from_slice(line);
        self.hand_on_if_full()
    }

    fn hand_on_if_full(&mut self) -> io::Result<()> {
        if self.piece.len() < PIECE {
            return Ok(());
        }
        self.hand_on()
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let result = self.out.write_all(&self.piece);
        self.piece.clear();
        result
    }
}

/// One line, built from its end to its beginning, because that is the order in which division
/// yields digits.
struct Line {
    bytes: [u8; LONGEST_LINE],
    start: usize,
}

impl Line {
    /// An empty line with its line break.
    fn new() -> Line {
        let mut line = Line { bytes: [0; LONGEST_LINE], start: LONGEST_LINE };
        line.byte(b'\n');
        line
    }

    fn byte(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    fn pair(&mut self, below_hundred: u32) {
        let [tens, ones] = PAIRS[below_hundred as usize % PAIRS.len()];
        self.start -= 2;
        self.bytes[self.start] = tens;
        self.bytes[self.start + 1] = ones;
    }

    fn number(&mut self, mut value: u64) {
        while value >= 100 {
            self.pair((value % 100) as u32);
            value /= 100;
        }
        if value >= 10 {
            self.pair(value as u32);
        } else {
            self.byte(b'0' + value as u8);
        }
    }

    /// `ns` as milliseconds with six decimals, exactly.
    fn milliseconds(&mut self, ns: i64) {
        let magnitude = ns.unsigned_abs();
        let part = (magnitude % 1_000_000) as u32;
        self.pair(part % 100);
        self.pair(part / 100 % 100);
        self.pair(part / 10_000);
        self.byte(b'.');
        self.number(magnitude / 1_000_000);
        if ns < 0 {
            self.byte(b'-');
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_trace::IntervalStart;

    fn interval(thread: u32, start_ns: i64, end_ns: i64) -> Interval {
        Interval::new(thread, 0, start_ns, end_ns, IntervalStart::Gap)
    }

    fn written(write: impl FnOnce(&mut RecordWriter<Vec<u8>>) -> io::Result<()>) -> String {
        let mut lines = RecordWriter::new(Vec::new());
        write(&mut lines).unwrap();
        String::from_utf8(lines.finish().unwrap()).unwrap()
    }

    /// The three lines of section 5.1, byte for byte.
    #[test]
    fn the_papers_record_lines() {
        let text = written(|lines| {
            for (record, ns) in [
                (interval(0, 442_323_192, 443_222_287), 2_184),
                (interval(1, 443_224_485, 444_123_644), 2_198),
                (interval(9, 444_125_827, 445_024_925), 2_183),
            ] {
                lines.record(&record, Some(CpuGap { ns, ticks: 0 }))?;
            }
            Ok(())
        });
        assert_eq!(
            text,
            "0 442.323192 443.222287 0.899095 0.002184\n\
             1 443.224485 444.123644 0.899159 0.002198\n\
             9 444.125827 445.024925 0.899098 0.002183\n"
        );
    }

    #[test]
    fn the_first_record_of_a_cpu_has_gap_zero() {
        let text = written(|lines| lines.record(&interval(10, 0, 7), None));
        assert_eq!(text, "10 0.000000 0.000007 0.000007 0.000000\n");
    }

    /// Appendix A, `-c`: in cycles and not based at zero.
    #[test]
    fn raw_lines_are_tagged() {
        let mut record = interval(2, 0, 0);
        record.start_ticks = 375_974_713_200;
        record.end_ticks = 375_975_477_431;
        let text = written(|lines| {
            lines.raw_record(&record, None)?;
            lines.raw_record(&record, Some(CpuGap { ns: 0, ticks: -17 }))
        });
        assert_eq!(
            text,
            "cycles: 2 375974713200 375975477431 764231 0\n\
             cycles: 2 375974713200 375975477431 764231 -17\n"
        );
    }

    /// Section 5.3 prints 97.843206, 54.101933 and 62.381242.
    #[test]
    fn the_papers_lateness_lines() {
        let text = written(|lines| {
            lines.lateness(97_843_206)?;
            lines.lateness(54_101_933)?;
            lines.lateness(7)?;
            lines.lateness(u128::MAX)
        });
        assert_eq!(
            text,
            "latlate: 97.843206\nlatlate: 54.101933\nlatlate: 0.000007\n\
             latlate: 340282366920938463463374607431768.211455\n"
        );
    }

    #[test]
    fn the_longest_lines_fit() {
        let mut record = interval(u32::MAX, i64::MIN, i64::MIN);
        record.start_ticks = u64::MAX;
        record.end_ticks = u64::MAX;
        let gap = CpuGap { ns: i64::MIN, ticks: i64::MIN };
        let text = written(|lines| {
            lines.record(&record, Some(gap))?;
            lines.raw_record(&record, Some(gap))
        });
        assert_eq!(
            text,
            "4294967295 -9223372036854.775808 -9223372036854.775808 0.000000 -9223372036854.775808\n\
             cycles: 4294967295 18446744073709551615 18446744073709551615 0 -9223372036854775808\n"
        );
    }

    #[test]
    fn pieces_keep_the_order_and_lose_nothing() {
        let count = 5_000;
        let text = written(|lines| {
            for n in 0..count {
                lines.record(&interval(n, 0, 0), None)?;
                lines.lateness(u128::from(n))?;
            }
            Ok(())
        });
        assert!(text.len() > 2 * PIECE);
        for (n, line) in text.lines().enumerate() {
            let start = if n % 2 == 0 {
                format!("{} 0.000000 ", n / 2)
            } else {
                "latlate: 0.00".to_owned()
            };
            assert!(line.starts_with(&start), "line {n}: {line}");
        }
        assert_eq!(text.lines().count(), 2 * count as usize);
    }

    /// A writer that has no room.
    struct FullWriter;

    impl Write for FullWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut lines = RecordWriter::new(FullWriter);
        lines.record(&interval(0, 0, 0), None).unwrap();
        let error = lines.finish().err().map(|e| e.kind());
        assert_eq!(error, Some(io::ErrorKind::StorageFull));
    }
}
