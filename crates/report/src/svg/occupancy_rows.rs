//! Rows of CPUs whose occupants the kernel's trace names: an occupant of more than a pixel has a rectangle, and a
//! pixel of several occupants is cut into their shares. Memory: a few numbers for each pixel.

use std::collections::BTreeMap;

use hourglass_trace::cpu_occupancy::{Occupant, Slice};

use super::view::TimeRange;

/// Occupants that one column of pixels can show: further ones are added to the share of the last.
const OCCUPANTS_PER_COLUMN: usize = 16;

/// What is drawn as one rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShareSegment {
    /// Its edges, in columns from the left.
    pub(super) from: f64,
    pub(super) to: f64,
    /// Its lower and its upper edge, as parts of the row's height.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The place of its party.
    pub(super) party: usize,
}

/// A row while its slices come in, sorted by start. Idle ones are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct OccupancyRow {
    /// Times over whole columns.
    long: Vec<(i64, i64, Occupant)>,
    /// Shares of the columns that no occupant had as a whole, with their start and end.
    columns: BTreeMap<u32, Column>,
}

#[derive(Clone, Debug, Default)]
struct Column {
    occupants: Vec<(Occupant, u64)>,
    from_ns: i64,
    to_ns: i64,
    parts: u32,
}

impl OccupancyRow {
    pub(super) fn push(&mut self, view: &TimeRange, slice: &Slice) {
        let (from_ns, to_ns) = (slice.from_ns.max(view.from_ns), slice.to_ns.min(view.to_ns));
        if from_ns >= to_ns || slice.who == Occupant::Idle {
            return;
        }
        let (first, last) = (view.column(from_ns), view.column(to_ns - 1));
        let first_end = to_ns.min(view.start_of(first.saturating_add(1)));
        self.add(first, from_ns, first_end, slice.who);
        if last > first {
            let last_start = view.start_of(last);
            if last_start > first_end {
                self.long.push((first_end, last_start, slice.who));
            }
            self.add(last, last_start, to_ns, slice.who);
        }
    }

    fn add(&mut self, column: u32, from_ns: i64, to_ns: i64, who: Occupant) {
        let ns = to_ns.saturating_sub(from_ns).max(0).unsigned_abs();
        let begun = || Column { from_ns, ..Column::default() };
        let column = self.columns.entry(column).or_insert_with(begun);
        (column.to_ns, column.parts) = (to_ns, column.parts.saturating_add(1));
        let room = column.occupants.len() < OCCUPANTS_PER_COLUMN;
        match column.occupants.iter().position(|(known, _)| *known == who) {
            None if room => column.occupants.push((who, ns)),
            known => {
                let place = known.unwrap_or(OCCUPANTS_PER_COLUMN - 1);
                if let Some((_, sum)) = column.occupants.get_mut(place) {
                    *sum = sum.saturating_add(ns);
                }
            }
        }
    }

    /// The pieces; `place` says whose an occupant's time is, and the parties stand on each other in the order
    /// of their places.
    pub(super) fn finish(
        self,
        view: &TimeRange,
        place: impl Fn(Occupant) -> Option<usize>,
    ) -> Vec<ShareSegment> {
        let whole = |(from_ns, to_ns, who): (i64, i64, Occupant)| {
            let party = place(who)?;
            Some(ShareSegment {
                from: view.x(from_ns),
                to: view.x(to_ns),
                low: 0.0,
                high: 1.0,
                party,
            })
        };
        let mut pieces: Vec<ShareSegment> = self.long.into_iter().filter_map(whole).collect();
        for (number, column) in self.columns {
            if let ([(who, _)], 1) = (&column.occupants[..], column.parts) {
                pieces.extend(whole((column.from_ns, column.to_ns, *who)));
                continue;
            }
            let start_ns = view.start_of(number);
            let length_ns = view.start_of(number.saturating_add(1)).abs_diff(start_ns).max(1);
            let mut parties: BTreeMap<usize, u64> = BTreeMap::new();
            for (who, ns) in column.occupants {
                if let Some(party) = place(who) {
                    let sum = parties.entry(party).or_default();
                    *sum = sum.saturating_add(ns);
                }
            }
            let mut low = 0.0;
            for (party, ns) in parties {
                // Only for drawing.
                let high = (low + ns as f64 / length_ns as f64).min(1.0);
                let (from, to) = (f64::from(number), f64::from(number) + 1.0);
                pieces.push(ShareSegment { from, to, low, high, party });
                low = high;
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::random::Stream;

    use super::*;

    const VIEW: TimeRange = TimeRange { from_ns: 0, to_ns: 1_000, columns: 10 };

    fn slice(from_ns: i64, to_ns: i64, number: u32) -> Slice {
        let who = if number == 0 { Occupant::Idle } else { Occupant::Thread(number) };
        Slice { cpu: 0, from_ns, to_ns, who }
    }

    fn drawn(slices: &[Slice]) -> Vec<ShareSegment> {
        let mut shares = OccupancyRow::default();
        slices.iter().for_each(|slice| shares.push(&VIEW, slice));
        shares.finish(&VIEW, |who| match who {
            Occupant::Thread(number) => Some(number as usize),
            _ => None,
        })
    }

    #[test]
    fn long_slices_have_exact_edges_and_short_ones_shares() {
        let pieces = drawn(&[slice(-50, 220, 1), slice(220, 230, 2), slice(230, 300, 1)]);
        let piece = |from, to, low, high, party| ShareSegment { from, to, low, high, party };
        let wanted = [
            piece(1.0, 2.0, 0.0, 1.0, 1),
            piece(0.0, 1.0, 0.0, 1.0, 1),
            piece(2.0, 3.0, 0.0, 0.9, 1),
            piece(2.0, 3.0, 0.9, 1.0, 2),
        ];
        assert_eq!(pieces, wanted);
        assert_eq!(drawn(&[slice(125, 175, 3)]), [piece(1.25, 1.75, 0.0, 1.0, 3)]);
        assert_eq!(drawn(&[slice(0, 1_000, 0), slice(2_000, 3_000, 1)]), []);
    }

    /// The area of each occupant is its running time, however short the slices. The sequence is fixed.
    #[test]
    fn areas_are_times() {
        let mut random = Stream::from_seeds(&[64]);
        let mut below = |limit: u64| random.below(limit);
        for round in 0..200 {
            let (mut now, mut slices, mut truth) = (0, Vec::new(), [0.0; 5]);
            while now < 1_000 {
                let length = 1 + below(1 << (1 + round % 8)) as i64;
                let (end, who) = ((now + length).min(1_000), below(5) as u32);
                slices.push(slice(now, end, who));
                truth[who as usize] += (end - now) as f64;
                now = end;
            }
            let mut found = [0.0; 5];
            for piece in drawn(&slices) {
                found[piece.party] += (piece.to - piece.from) * (piece.high - piece.low) * 100.0;
            }
            for party in 1..5 {
                assert!(
                    (found[party] - truth[party]).abs() < 1e-6,
                    "round {round}: {found:?} {truth:?}"
                );
            }
        }
    }
}
