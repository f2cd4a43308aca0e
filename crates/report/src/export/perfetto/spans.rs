//! Tracks of spans: each span a slice with its call site's name, what it lost a slice within it.
//!
//! Slices of a track must nest. What does not goes to a further track of its thread.

use std::cmp::Reverse;
use std::io::{self, Write};

use hourglass_documents::sites::RecordedSpan;

use super::{SLICE_BEGIN, SLICE_END, THREAD_TRACKS, Trace, field, named, with_number, with_text};
use crate::export::protobuf::Message;
use crate::run::RunView;

/// Behind the other ranges of tracks; the tracks of a thread are so far apart.
const SPAN_TRACKS: u64 = 5 << 32;
const APART: u64 = 1 << 32;

/// A slice of a track.
#[derive(Clone, Debug)]
struct Slice {
    from_ns: i64,
    to_ns: i64,
    begin: Message,
}

impl<W: Write> Trace<W> {
    /// The tracks of all threads.
    pub(super) fn spans(&mut self, run: &RunView<'_>) -> io::Result<()> {
        for thread in &run.document.result.threads {
            let of = run.spans.iter().filter(|span| span.thread == thread.id);
            let mut slices: Vec<Slice> = of.map(|span| of_span(run, span)).collect();
            if slices.is_empty() {
                continue;
            }
            slices.extend(losses(run, thread.id));
            // Of those that begin together the outer one first.
            slices.sort_by_key(|slice| (slice.from_ns, Reverse(slice.to_ns)));
            for (number, lane) in (0..).zip(lanes(slices)) {
                self.lane(thread.id, number, lane)?;
            }
        }
        Ok(())
    }

    fn lane(&mut self, thread: u32, number: u64, slices: Vec<Slice>) -> io::Result<()> {
        let name = match number {
            0 => format!("spans of thread {thread}"),
            _ => format!("spans of thread {thread}, overlapping ({number})"),
        };
        let range = SPAN_TRACKS + number * APART;
        self.named(range, thread, THREAD_TRACKS + u64::from(thread), &name)?;
        let track = range + u64::from(thread);
        let end = || Message::new().uint(field::TYPE, SLICE_END).uint(field::TRACK_UUID, track);
        let mut open: Vec<i64> = Vec::new();
        for slice in slices {
            while let Some(to_ns) = open.pop_if(|to_ns| *to_ns <= slice.from_ns) {
                self.event(to_ns, &end())?;
            }
            let begin = slice.begin.uint(field::TYPE, SLICE_BEGIN).uint(field::TRACK_UUID, track);
            self.event(slice.from_ns, &begin)?;
            open.push(slice.to_ns);
        }
        while let Some(to_ns) = open.pop() {
            self.event(to_ns, &end())?;
        }
        Ok(())
    }
}

fn of_span(run: &RunView<'_>, span: &RecordedSpan) -> Slice {
    let site = run.document.result.sites.get(span.site as usize);
    let begin = named("span", site.map_or("(other sites)", |site| &site.name));
    let begin = with_number(begin, "CPU before", u64::from(span.cpu_before));
    let begin = with_number(begin, "CPU after", u64::from(span.cpu_after));
    let begin = match span.lost {
        Some(lost) => {
            let begin = with_number(begin, "off the CPU at least, ns", lost.least_ns);
            let begin = with_number(begin, "off the CPU at most, ns", lost.most_ns);
            with_text(begin, "cause", lost.cause.name())
        }
        None => begin,
    };
    Slice { from_ns: span.start_ns, to_ns: span.end_ns, begin }
}

/// The gaps of a thread.
fn losses(run: &RunView<'_>, thread: u32) -> Vec<Slice> {
    let own = run.intervals.iter().filter(|interval| interval.thread == thread);
    let mut last_ns = None;
    let mut all = Vec::new();
    for interval in own {
        let from_ns = last_ns.replace(interval.end_ns);
        let Some(from_ns) = from_ns.filter(|_| interval.onset.is_gap()) else { continue };
        let why = run.cause_of(thread, interval.start_ns);
        let name =
            why.map_or("off the CPU".to_owned(), |why| format!("off the CPU: {}", why.cause));
        all.push(Slice { from_ns, to_ns: interval.start_ns, begin: named("lost", &name) });
    }
    all
}

/// Slices in order of their begins, shared out so that those of a lane nest.
fn lanes(slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    // With the ends of those that go on, the innermost last.
    let mut lanes: Vec<(Vec<i64>, Vec<Slice>)> = Vec::new();
    for slice in slices {
        let fits = |(open, _): &mut (Vec<i64>, Vec<Slice>)| {
            while open.pop_if(|to_ns| *to_ns <= slice.from_ns).is_some() {}
            open.last().is_none_or(|to_ns| slice.to_ns <= *to_ns)
        };
        let at = lanes.iter_mut().position(fits).unwrap_or_else(|| {
            lanes.push((Vec::new(), Vec::new()));
            lanes.len() - 1
        });
        if let Some((open, all)) = lanes.get_mut(at) {
            open.push(slice.to_ns);
            all.push(slice);
        }
    }
    lanes.into_iter().map(|(_, all)| all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_lane_nest() {
        let slice = |from_ns, to_ns| Slice { from_ns, to_ns, begin: Message::new() };
        let all = [(0, 10), (0, 4), (1, 2), (3, 12), (5, 10), (10, 11), (12, 13)];
        let found = lanes(all.map(|(from, to)| slice(from, to)).to_vec());
        let times = |lane: &Vec<Slice>| -> Vec<(i64, i64)> {
            lane.iter().map(|slice| (slice.from_ns, slice.to_ns)).collect()
        };
        let found: Vec<_> = found.iter().map(times).collect();
        assert_eq!(
            found,
            [vec![(0, 10), (0, 4), (1, 2), (5, 10), (10, 11), (12, 13)], vec![(3, 12)]]
        );
    }
}
