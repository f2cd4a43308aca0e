//! Where the losses of spans are drawn: the intervals and gaps of one thread.
//!
//! A span's loss may lie anywhere within it, but what spans within it lost lies within them. So each span keeps what
//! is left of its loss, and that is put into its longest part that no inner span covers, in the middle.

use hourglass_trace::{CounterDeltas, Evidence, Interval, IntervalStart};
use hourglass_witness::sites::{SpanLoss, StoredSpan};

/// The unexplained rest of a loss may reach this by measurement error alone: at each switch the kernel's counters and
/// its switch events differ by up to this time, ns.
const ERROR_NS: u64 = 100_000;

struct Node<'a> {
    span: &'a StoredSpan,
    inner: Vec<Node<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    from_ns: u64,
    to_ns: u64,
    cpu_after: u32,
    evidence: Evidence,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OmittedIntervals {
    /// Spans that began within another one and ended behind it.
    pub(super) overlapping: u64,
}

/// The intervals of one thread with its gaps between them, by `CLOCK_MONOTONIC`, from all of its spans. `number` is
/// the thread's in the run, `zero_ns` the run's zero.
pub(super) fn intervals(
    spans: &mut [StoredSpan],
    number: u32,
    zero_ns: u64,
) -> (Vec<Interval>, OmittedIntervals) {
    spans.sort_by_key(|span| (span.start_ns, std::cmp::Reverse(span.ended_ns)));
    let (roots, left_out) = nested(spans);
    let mut all = Vec::new();
    for root in &roots {
        let mut gaps = Vec::new();
        place(root, &mut gaps);
        gaps.sort_by_key(|gap| gap.from_ns);
        let span = root.span;
        let onset = if all.is_empty() { IntervalStart::Start } else { IntervalStart::Wait };
        let mut next = (span.start_ns, span.cpus.0, onset, Evidence::NONE);
        let mut push = |(from_ns, cpu, onset, evidence), to_ns: u64| {
            all.push(interval(number, cpu, (from_ns, to_ns), zero_ns, onset, evidence));
        };
        for gap in gaps {
            push(next, gap.from_ns);
            next = (gap.to_ns, gap.cpu_after, IntervalStart::Gap, gap.evidence);
        }
        push(next, span.ended_ns);
    }
    (all, left_out)
}

fn interval(
    thread: u32,
    cpu: u32,
    (from_ns, to_ns): (u64, u64),
    zero_ns: u64,
    onset: IntervalStart,
    evidence: Evidence,
) -> Interval {
    let at = |ns: u64| i64::try_from(i128::from(ns) - i128::from(zero_ns)).unwrap_or(i64::MAX);
    let (start_ns, end_ns) = (at(from_ns), at(to_ns));
    let (start_ticks, end_ticks) = (from_ns, to_ns);
    Interval { thread, cpu, start_ns, end_ns, start_ticks, end_ticks, onset, evidence }
}

/// Spans in order of their begins, each within the one that holds it.
fn nested(spans: &[StoredSpan]) -> (Vec<Node<'_>>, OmittedIntervals) {
    let mut left_out = OmittedIntervals::default();
    let mut roots: Vec<Node<'_>> = Vec::new();
    // Those that go on, the innermost last.
    let mut open: Vec<Node<'_>> = Vec::new();
    for span in spans {
        close(&mut open, &mut roots, span.start_ns);
        if open.last().is_some_and(|outer| span.ended_ns > outer.span.ended_ns) {
            left_out.overlapping += 1;
            continue;
        }
        open.push(Node { span, inner: Vec::new() });
    }
    close(&mut open, &mut roots, u64::MAX);
    (roots, left_out)
}

/// Puts spans that are over by `at_ns` into those that hold them.
fn close<'a>(open: &mut Vec<Node<'a>>, roots: &mut Vec<Node<'a>>, at_ns: u64) {
    while let Some(node) = open.pop_if(|node| node.span.ended_ns <= at_ns) {
        let outer = open.last_mut().map_or(&mut *roots, |outer| &mut outer.inner);
        outer.push(node);
    }
}

/// Places the losses of a span and of those within it. Returns how much it placed, ns.
fn place(node: &Node<'_>, gaps: &mut Vec<Gap>) -> u64 {
    let inner: u64 = node.inner.iter().map(|inner| place(inner, gaps)).sum();
    let Some(lost) = node.span.lost.filter(|lost| !lost.unknown) else { return inner };
    let rest = lost.off_cpu.latest().nanos_or_zero().saturating_sub(inner);
    if rest == 0 || (inner > 0 && rest <= ERROR_NS) {
        return inner;
    }
    let counted = own_counts(node, &lost);
    if counted.voluntary == 0 && counted.involuntary == 0 {
        // Those within it had all switches: what is left is the error of their bounds.
        return inner;
    }
    let (from_ns, to_ns) = longest_free(node);
    let length = rest.min(to_ns - from_ns);
    let from_ns = from_ns + (to_ns - from_ns - length) / 2;
    let evidence = Evidence { cleared: Some(true), counted: Some(counted) };
    let cpu_after = node.span.cpus.1;
    gaps.push(Gap { from_ns, to_ns: from_ns + length, cpu_after, evidence });
    inner.saturating_add(length)
}

fn own_counts(node: &Node<'_>, lost: &SpanLoss) -> CounterDeltas {
    let count = |of: fn(&SpanLoss) -> u64| {
        let inner = node.inner.iter().filter_map(|inner| inner.span.lost.as_ref());
        let own = inner.map(of).fold(of(lost), u64::saturating_sub);
        u8::try_from(own).unwrap_or(u8::MAX)
    };
    CounterDeltas {
        involuntary: count(|lost| lost.switches.involuntary),
        voluntary: count(|lost| lost.switches.voluntary),
        faults: count(|lost| lost.faults),
    }
}

fn longest_free(node: &Node<'_>) -> (u64, u64) {
    let mut longest = (node.span.start_ns, node.span.start_ns);
    let mut from_ns = node.span.start_ns;
    let ends = node.inner.iter().map(|inner| (inner.span.start_ns, inner.span.ended_ns));
    let end_ns = node.span.ended_ns;
    for (begun_ns, ended_ns) in ends.chain([(end_ns, end_ns)]) {
        if begun_ns.saturating_sub(from_ns) > longest.1 - longest.0 {
            longest = (from_ns, begun_ns);
        }
        from_ns = from_ns.max(ended_ns);
    }
    longest
}

#[cfg(test)]
mod tests {
    use hourglass_witness::{Bounded, Cause, Span, Switches};

    use super::*;

    fn span(begun_ns: u64, ended_ns: u64, lost: Option<(u64, u64)>) -> StoredSpan {
        let lost = lost.map(|(ns, voluntary)| SpanLoss {
            off_cpu: Bounded::exact(Span::from_nanos(ns as i64)),
            switches: Switches { voluntary, involuntary: 0 },
            faults: 0,
            cause: Cause::ContextSwitchVoluntary,
            unknown: false,
        });
        let ticks = (begun_ns, ended_ns);
        StoredSpan { site: 0, thread: 0, start_ns: begun_ns, ended_ns, ticks, cpus: (2, 3), lost }
    }

    /// Begin and end of each interval, and whether a gap is before it.
    fn placed(mut spans: Vec<StoredSpan>) -> Vec<(i64, i64, bool)> {
        let (all, left_out) = intervals(&mut spans, 7, 1_000_000);
        assert_eq!(left_out, OmittedIntervals::default());
        assert!(all.iter().all(|interval| interval.thread == 7));
        let of = |i: &Interval| (i.start_ns, i.end_ns, i.onset.is_gap());
        all.iter().map(of).collect()
    }

    #[test]
    fn a_loss_is_in_the_middle_of_its_span() {
        let spans =
            vec![span(2_000_000, 3_000_000, Some((400_000, 1))), span(3_000_000, 3_000_010, None)];
        let expected = [
            (1_000_000, 1_300_000, false),
            (1_700_000, 2_000_000, true),
            (2_000_000, 2_000_010, false),
        ];
        assert_eq!(placed(spans), expected);
    }

    /// The outer span lost 1 ms, of which the inner one lost 0.5: the rest is where no inner span is.
    #[test]
    fn what_an_inner_span_lost_is_not_placed_twice() {
        let inner = span(2_000_000, 4_000_000, Some((500_000, 2)));
        let outer = span(1_000_000, 9_000_000, Some((1_000_000, 3)));
        let (all, _) = intervals(&mut [inner, outer], 0, 0);
        let gaps: Vec<_> = all.windows(2).map(|pair| (pair[0].end_ns, pair[1].start_ns)).collect();
        assert_eq!(gaps, [(2_750_000, 3_250_000), (6_250_000, 6_750_000)]);
        let counted: Vec<_> =
            all.iter().filter_map(|i| Some(i.evidence.counted?.voluntary)).collect();
        assert_eq!((counted, all[1].cpu), (vec![2, 1], 3));
        // Without a switch of its own it lost no more; and within the error of the kernel's accounts it is the same loss.
        let outer = span(1_000_000, 9_000_000, Some((1_000_000, 2)));
        assert_eq!(placed(vec![inner, outer]).len(), 2);
        let outer = span(1_000_000, 9_000_000, Some((590_000, 3)));
        assert_eq!(placed(vec![inner, outer]).len(), 2);
    }

    #[test]
    fn a_loss_is_no_longer_than_the_room_for_it() {
        // The whole span; and nothing but a part that its inner span leaves.
        assert_eq!(placed(vec![span(1_000_000, 1_000_500, Some((900, 1)))]).len(), 2);
        let spans = vec![span(0, 1_000_000, Some((800_000, 1))), span(0, 900_000, None)];
        let (all, _) = intervals(&mut spans.clone(), 0, 0);
        assert_eq!((all[0].end_ns, all[1].start_ns), (900_000, 1_000_000));
    }

    #[test]
    fn spans_that_overlap_are_counted() {
        let mut spans = vec![span(0, 10, None), span(5, 15, None), span(12, 20, None)];
        let (all, left_out) = intervals(&mut spans, 0, 0);
        assert_eq!((all.len(), left_out.overlapping), (2, 1));
    }
}
