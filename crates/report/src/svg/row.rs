//! One row of a picture: a stream of intervals, reduced to what its pixels can show.
//!
//! A column of pixels that holds one interval or the edge of one keeps that edge exactly. A column
//! in which the thread was interrupted keeps how much of it was covered. The longest gap is kept
//! whatever its length. Memory: at most one piece for each column.

use hourglass_trace::Interval;

use super::view::TimeRange;

/// How much of a piece was covered, in steps that the eye can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Coverage {
    /// Less than a quarter.
    Quarter,
    /// Less than a half.
    Half,
    /// Less than three quarters.
    ThreeQuarters,
    /// More, but interrupted.
    Interrupted,
    /// Without a gap.
    Whole,
}

impl Coverage {
    fn of(covered_ns: u64, length_ns: u64) -> Coverage {
        match u128::from(covered_ns) * 4 / u128::from(length_ns.max(1)) {
            0 => Coverage::Quarter,
            1 => Coverage::Half,
            2 => Coverage::ThreeQuarters,
            _ => Coverage::Interrupted,
        }
    }
}

/// What is drawn as one rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowSegment {
    /// Left edge, ns from the run's start.
    pub(super) from_ns: i64,
    /// Right edge.
    pub(super) to_ns: i64,
    /// How much of it was covered.
    pub(super) cover: Coverage,
    /// The thread that ran; the one that ran longest where a column saw several.
    pub(super) thread: u32,
    /// Start of the first and end of the last record that it shows a part of.
    pub(super) record: (i64, i64),
}

/// A gap, in nanoseconds from the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongestRowGap {
    /// End of the record before it.
    pub(super) from_ns: i64,
    /// Start of the record behind it.
    pub(super) to_ns: i64,
}

impl LongestRowGap {
    /// Its length in nanoseconds.
    pub(super) fn length_ns(&self) -> u64 {
        self.to_ns.abs_diff(self.from_ns)
    }
}

/// The longest gap of a row of records, among those that reach into the view.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongestGap {
    last_end_ns: Option<i64>,
    longest: Option<LongestRowGap>,
}

impl LongestGap {
    /// Takes the next record; gives the end of what came before it.
    pub(super) fn push(&mut self, view: &TimeRange, interval: &Interval) -> Option<i64> {
        let before = self.last_end_ns;
        let end = before.map_or(interval.end_ns, |b| b.max(interval.end_ns));
        self.last_end_ns = Some(end);
        let gap = LongestRowGap { from_ns: before?, to_ns: interval.start_ns };
        let inside = gap.from_ns < view.to_ns && gap.to_ns > view.from_ns;
        let longer = self.longest.is_none_or(|l| gap.length_ns() > l.length_ns());
        if interval.onset.is_gap() && gap.to_ns > gap.from_ns && inside && longer {
            self.longest = Some(gap);
        }
        before
    }

    /// The longest gap so far.
    pub(super) fn get(&self) -> Option<LongestRowGap> {
        self.longest
    }
}

/// The column that is being filled.
#[derive(Clone, Debug)]
struct OpenColumn {
    index: u32,
    from_ns: i64,
    to_ns: i64,
    covered_ns: u64,
    record: (i64, i64),
    cut: bool,
    /// Threads seen in it and how long each ran.
    threads: Vec<(u32, u64)>,
}

/// Threads that one column of pixels can show.
const THREADS_PER_COLUMN: usize = 16;

/// A row while its records come in, sorted by start.
///
/// Where a record begins before the one before it ended, which an honest trace does not contain,
/// the later one is drawn from that end on.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    longest: LongestGap,
    open: Option<OpenColumn>,
    /// A gap that the column to be opened next has to show.
    cut: Option<u32>,
    pieces: Vec<RowSegment>,
}

impl Row {
    pub(super) fn push(&mut self, view: &TimeRange, interval: &Interval) {
        let before = self.longest.push(view, interval);
        let from_ns = interval.start_ns.max(view.from_ns).max(before.unwrap_or(i64::MIN));
        let to_ns = interval.end_ns.min(view.to_ns);
        let instant = interval.start_ns == interval.end_ns;
        if from_ns >= view.to_ns || to_ns < from_ns || (to_ns == from_ns && !instant) {
            return;
        }
        if let Some(before) = before {
            self.cut_between(view, before, from_ns);
        }
        let first = view.column(from_ns);
        let last = view.column(from_ns.max(to_ns.saturating_sub(1)));
        self.close_unless(view, first);
        let first_end = to_ns.min(view.start_of(first.saturating_add(1)));
        self.cover(first, from_ns, first_end.max(from_ns), interval);
        if last > first {
            // The columns between are covered whole and need not be visited one by one.
            let last_start = view.start_of(last);
            self.close(view);
            self.add(
                view,
                RowSegment {
                    from_ns: first_end,
                    to_ns: last_start,
                    cover: Coverage::Whole,
                    thread: interval.thread,
                    record: (interval.start_ns, interval.end_ns),
                },
            );
            self.cover(last, last_start, to_ns, interval);
        }
    }

    /// The pieces, from left to right, and the longest gap.
    pub(super) fn finish(mut self, view: &TimeRange) -> (Vec<RowSegment>, Option<LongestRowGap>) {
        self.close(view);
        (self.pieces, self.longest.get())
    }

    /// Notes a gap that is too short to be seen, in the column that holds its middle.
    fn cut_between(&mut self, view: &TimeRange, from_ns: i64, to_ns: i64) {
        let length = to_ns.abs_diff(from_ns);
        if to_ns <= from_ns || from_ns < view.from_ns || !view.is_hidden(length) {
            return;
        }
        let column = view.column(from_ns.saturating_add_unsigned(length / 2));
        match &mut self.open {
            Some(open) if open.index == column => open.cut = true,
            _ => self.cut = Some(column),
        }
    }

    /// Closes the open column if it is another one than `index`.
    fn close_unless(&mut self, view: &TimeRange, index: u32) {
        if self.open.as_ref().is_some_and(|open| open.index != index) {
            self.close(view);
        }
    }

    /// Covers part of a column, which must be the open one or one to its right.
    fn cover(&mut self, index: u32, from_ns: i64, to_ns: i64, interval: &Interval) {
        let cut = self.cut.take() == Some(index);
        let open = self.open.get_or_insert_with(|| OpenColumn {
            index,
            from_ns,
            to_ns: from_ns,
            covered_ns: 0,
            record: (interval.start_ns, interval.end_ns),
            cut,
            threads: Vec::new(),
        });
        let length = to_ns.abs_diff(from_ns);
        open.to_ns = to_ns;
        open.record.1 = interval.end_ns;
        let thread = interval.thread;
        open.covered_ns = open.covered_ns.saturating_add(length);
        let known = open.threads.iter().position(|(id, _)| *id == thread);
        if let Some((_, ns)) = known.and_then(|at| open.threads.get_mut(at)) {
            *ns = ns.saturating_add(length);
        } else if open.threads.len() < THREADS_PER_COLUMN {
            open.threads.push((thread, length));
        }
    }

    /// Makes a piece of the open column.
    fn close(&mut self, view: &TimeRange) {
        let Some(open) = self.open.take() else {
            return;
        };
        let length = open.to_ns.abs_diff(open.from_ns);
        let cover = if !open.cut && open.covered_ns >= length {
            Coverage::Whole
        } else {
            Coverage::of(open.covered_ns, length)
        };
        // The first of equals, so that a picture does not depend on anything but its trace.
        let longest = open.threads.iter().map(|(_, ns)| *ns).max();
        let thread = open.threads.iter().find(|(_, ns)| Some(*ns) == longest);
        self.add(
            view,
            RowSegment {
                from_ns: open.from_ns,
                to_ns: open.to_ns,
                cover,
                thread: thread.map_or(0, |(id, _)| *id),
                record: open.record,
            },
        );
    }

    /// Appends a piece, or lengthens the last one if they look the same and touch.
    fn add(&mut self, view: &TimeRange, piece: RowSegment) {
        if piece.to_ns == piece.from_ns && piece.cover == Coverage::Whole {
            // Between two columns that follow each other there is nothing; but an instant at
            // which a thread was seen stays.
            if self.pieces.last().is_some_and(|l| l.to_ns == piece.from_ns) {
                return;
            }
        }
        if let Some(last) = self.pieces.last_mut() {
            let apart = piece.from_ns.abs_diff(last.to_ns);
            let touches = match piece.cover {
                Coverage::Whole => apart == 0,
                _ => view.is_hidden(apart),
            };
            if touches && last.cover == piece.cover && last.thread == piece.thread {
                last.to_ns = piece.to_ns;
                last.record.1 = piece.record.1;
                return;
            }
        }
        self.pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_trace::IntervalStart;

    fn interval(start_ns: i64, end_ns: i64) -> Interval {
        Interval::new(7, 0, start_ns, end_ns, IntervalStart::Gap)
    }

    fn drawn(view: &TimeRange, trace: &[Interval]) -> (Vec<RowSegment>, Option<LongestRowGap>) {
        let mut row = Row::default();
        for interval in trace {
            row.push(view, interval);
        }
        row.finish(view)
    }

    const VIEW: TimeRange = TimeRange { from_ns: 0, to_ns: 1_000, columns: 10 };

    #[test]
    fn edges_are_exact_where_a_column_has_one() {
        let (pieces, _) = drawn(&VIEW, &[interval(10, 350), interval(517, 1_200)]);
        let edges: Vec<_> = pieces.iter().map(|p| (p.from_ns, p.to_ns, p.cover)).collect();
        assert_eq!(edges, [(10, 350, Coverage::Whole), (517, 1_000, Coverage::Whole)]);
    }

    /// Figure 3: clock interrupts that are much shorter than a pixel can be counted.
    #[test]
    fn a_gap_too_short_to_be_seen_makes_its_column_fainter() {
        let (pieces, longest) = drawn(&VIEW, &[interval(0, 449), interval(451, 1_000)]);
        let edges: Vec<_> =
            pieces.iter().map(|p| (p.from_ns, p.to_ns, p.cover, p.record)).collect();
        assert_eq!(
            edges,
            [
                (0, 400, Coverage::Whole, (0, 449)),
                (400, 500, Coverage::Interrupted, (0, 1_000)),
                (500, 1_000, Coverage::Whole, (451, 1_000))
            ]
        );
        assert_eq!(longest.map(|g| g.length_ns()), Some(2));
        // The same where the gap lies across the edge of two columns.
        let (pieces, _) = drawn(&VIEW, &[interval(0, 499), interval(501, 1_000)]);
        let fainter = pieces.iter().filter(|p| p.cover != Coverage::Whole);
        assert_eq!(fainter.count(), 1);
    }

    #[test]
    fn what_lies_outside_still_measures_the_gaps_at_the_edges() {
        let trace = [interval(-900, -800), interval(100, 900), interval(5_000, 5_001)];
        let (pieces, longest) = drawn(&VIEW, &trace);
        assert_eq!(pieces.len(), 1);
        assert_eq!(longest.map(|g| g.length_ns()), Some(4_100));
    }

    #[test]
    fn a_wait_is_not_the_longest_gap() {
        let mut late = interval(800, 900);
        late.onset = IntervalStart::Wait;
        let (_, longest) = drawn(&VIEW, &[interval(0, 100), interval(103, 200), late]);
        assert_eq!(longest.map(|g| g.length_ns()), Some(3));
    }

    #[test]
    fn an_instant_is_seen() {
        let (pieces, _) = drawn(&VIEW, &[interval(555, 555)]);
        assert_eq!(pieces.len(), 1);
    }

    #[test]
    fn extremes_and_disorder_are_drawn_somehow() {
        let view = TimeRange { from_ns: i64::MIN + 1, to_ns: i64::MAX, columns: 8_192 };
        let trace = [
            interval(i64::MIN, i64::MAX),
            interval(i64::MIN, i64::MIN),
            interval(i64::MAX, i64::MIN),
            interval(0, 5),
        ];
        let (pieces, _) = drawn(&view, &trace);
        assert_eq!(pieces.len(), 1);
    }

    /// Random traces against what they must be, read off the intervals one by one.
    #[test]
    fn pieces_say_what_the_intervals_say() {
        let mut dice = hourglass_dice::Dice::new(2002);
        let mut below = |limit: u64| dice.below(limit) as i64;
        for round in 0..300 {
            let view = TimeRange {
                from_ns: below(2_000),
                to_ns: 2_001 + below(40_000),
                columns: 1 + below(300) as u32,
            };
            let mut trace = Vec::new();
            let mut now = below(500);
            while now < 45_000 {
                let end = now + below(1 << (1 + round % 12));
                trace.push(interval(now, end));
                now = end + below(1 << (1 + round % 7));
            }
            let (pieces, longest) = drawn(&view, &trace);
            assert!(pieces.len() <= view.columns as usize, "round {round}");
            check(&view, &trace, &pieces, round);
            let gaps = trace
                .windows(2)
                .map(|w| LongestRowGap { from_ns: w[0].end_ns, to_ns: w[1].start_ns });
            let inside = gaps.filter(|g| g.from_ns < view.to_ns && g.to_ns > view.from_ns);
            let lengths = inside.map(|g| g.length_ns()).filter(|&ns| ns > 0);
            assert_eq!(longest.map(|g| g.length_ns()), lengths.max(), "round {round}");
        }
    }

    fn check(view: &TimeRange, trace: &[Interval], pieces: &[RowSegment], round: i32) {
        for pair in pieces.windows(2) {
            assert!(pair[0].to_ns <= pair[1].from_ns, "round {round}: {pair:?}");
        }
        let shared = |piece: &RowSegment, i: &Interval| {
            (i.end_ns.min(piece.to_ns) - i.start_ns.max(piece.from_ns)).max(0)
        };
        let mut drawn = 0;
        for piece in pieces {
            let covered: i64 = trace.iter().map(|i| shared(piece, i)).sum();
            let length = piece.to_ns - piece.from_ns;
            if piece.cover == Coverage::Whole {
                assert_eq!(covered, length, "round {round}: {piece:?}");
            }
            drawn += covered;
        }
        let whole = RowSegment {
            from_ns: view.from_ns,
            to_ns: view.to_ns,
            cover: Coverage::Whole,
            thread: 0,
            record: (0, 0),
        };
        let received: i64 = trace.iter().map(|i| shared(&whole, i)).sum();
        assert_eq!(drawn, received, "round {round}: all that ran is drawn");
    }
}
