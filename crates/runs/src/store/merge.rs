//! The records of several threads in one order of start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use hourglass_trace::Interval;

/// Order of the heads: ticks, then thread, then the stream's place among the streams. The last
/// two share a word, because comparing heads is what a merge spends its time on.
type Key = Reverse<(u64, u64)>;

/// Merges streams of records, each in order of start, into one in order of
/// (`start_ticks`, `thread`); records that are equal in both keep the order of their streams.
///
/// Takes time proportional to the logarithm of the number of streams for each record, and holds
/// one record of each stream. If a stream is out of order, so is the result;
/// no record is lost.
pub fn merge_by_start<I: Iterator<Item = Interval>>(streams: Vec<I>) -> Merge<I> {
    let heads: Vec<(Interval, I)> = streams
        .into_iter()
        .filter_map(|mut stream| stream.next().map(|head| (head, stream)))
        .collect();
    let order = heads.iter().enumerate().map(|(place, (head, _))| key(head, place)).collect();
    Merge { heads, order }
}

/// Iterator of [`merge_by_start`].
#[derive(Debug)]
pub struct Merge<I> {
    /// The next record of each stream, and what follows it.
    heads: Vec<(Interval, I)>,
    order: BinaryHeap<Key>,
}

/// No machine holds 2^32 streams, so the place fits the lower half of a word.
const PLACE_BITS: u32 = 32;

fn key(head: &Interval, place: usize) -> Key {
    Reverse((head.start_ticks, u64::from(head.thread) << PLACE_BITS | place as u64))
}

impl<I: Iterator<Item = Interval>> Iterator for Merge<I> {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        let mut first = self.order.peek_mut()?;
        let place = (first.0.1 & ((1 << PLACE_BITS) - 1)) as usize;
        let (head, rest) = self.heads.get_mut(place)?;
        let interval = *head;
        match rest.next() {
            Some(next) => {
                *head = next;
                *first = key(head, place);
            }
            None => {
                PeekMut::pop(first);
            }
        }
        Some(interval)
    }
}

#[cfg(test)]
mod tests {
    use hourglass_trace::IntervalStart;
    use proptest::prelude::*;

    use super::*;

    fn interval(thread: u32, start_ticks: u64, mark: i64) -> Interval {
        Interval {
            start_ticks,
            end_ticks: start_ticks,
            ..Interval::new(thread, 0, mark, mark, IntervalStart::Gap)
        }
    }

    #[test]
    fn no_streams_and_empty_streams_give_nothing() {
        assert_eq!(merge_by_start(Vec::<std::vec::IntoIter<Interval>>::new()).next(), None);
        let empty: Vec<Interval> = Vec::new();
        assert_eq!(merge_by_start(vec![empty.clone().into_iter(), empty.into_iter()]).next(), None);
    }

    #[test]
    fn equal_starts_go_by_thread_and_then_by_stream() {
        let streams = vec![
            vec![interval(2, 5, 0), interval(2, 5, 1)],
            vec![interval(1, 5, 2)],
            vec![interval(2, 5, 3)],
        ];
        let merged: Vec<i64> = merge_by_start(streams.into_iter().map(Vec::into_iter).collect())
            .map(|interval| interval.start_ns)
            .collect();
        assert_eq!(merged, [2, 0, 1, 3]);
    }

    proptest! {
        /// The slow twin is a stable sort of everything.
        #[test]
        fn agrees_with_a_stable_sort(
            lengths in prop::collection::vec(prop::collection::vec(0_u64..20, 0..30), 0..8)
        ) {
            let mut mark = 0;
            let streams: Vec<Vec<Interval>> = lengths
                .into_iter()
                .enumerate()
                .map(|(thread, mut starts)| {
                    starts.sort_unstable();
                    let thread = u32::try_from(thread / 2).unwrap();
                    starts.iter().map(|start| { mark += 1; interval(thread, *start, mark) }).collect()
                })
                .collect();
            let mut sorted: Vec<Interval> = streams.iter().flatten().copied().collect();
            sorted.sort_by_key(|interval| (interval.start_ticks, interval.thread));
            let merged: Vec<Interval> =
                merge_by_start(streams.into_iter().map(Vec::into_iter).collect()).collect();
            prop_assert_eq!(merged, sorted);
        }
    }
}
