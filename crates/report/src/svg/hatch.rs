//! Hatching: stripes distinguish threads beyond the eight that have a colour of their own, and others than the measured ones.
//!
//! Owns: which thread has which stripes, and their patterns. Must not: choose colours.

use std::fmt::Write as _;

/// Colours for threads in the style sheet: those of Okabe and Ito, which the colour-blind can tell apart. Further threads begin again with the first.
pub(super) const THREAD_COLOURS: u32 = 8;

/// Ways to fill a colour: plain, and these patterns.
pub(super) const SORTS: u32 = 8;

/// The stripes of each pattern, within a square of six pixels.
const STRIPES: [&str; SORTS as usize - 1] = [
    "M-1 7L7 -1",
    "M-1 -1L7 7",
    "M3 0V6",
    "M0 3H6",
    "M-1 7L7 -1M-1 -1L7 7",
    "M3 0V6M0 3H6",
    "M2 3H4",
];

/// What stripes a thread's colour; `None` for a plain one.
pub(super) fn of(thread: u32) -> Option<String> {
    paint(sort_of(thread))
}

/// The stripes of a thread; 0 for none.
pub(super) fn sort_of(thread: u32) -> u32 {
    thread / THREAD_COLOURS % SORTS
}

/// What stripes a colour with this kind of stripes, after the last again with the first; `None` for 0.
pub(super) fn paint(sort: u32) -> Option<String> {
    let sort = folded(sort);
    (sort > 0).then(|| format!("url(#hg-h{sort})"))
}

fn folded(sort: u32) -> u32 {
    if sort == 0 { 0 } else { (sort - 1) % (SORTS - 1) + 1 }
}

/// These patterns as SVG; nothing if all are plain.
pub(super) fn patterns(sorts: impl Iterator<Item = u32>) -> String {
    let mut sorts: Vec<u32> = sorts.map(folded).collect();
    sorts.sort_unstable();
    sorts.dedup();
    let mut out = String::new();
    for sort in sorts.into_iter().filter(|sort| *sort > 0) {
        let stripes = STRIPES[sort as usize - 1];
        let _ = write!(
            out,
            "<pattern id=\"hg-h{sort}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <path class=\"hg-stripe\" d=\"{stripes}\"/></pattern>"
        );
    }
    match out.is_empty() {
        true => out,
        false => format!("<defs>{out}</defs>\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 6: 64 threads share eight colours, and still no two look the same.
    #[test]
    fn as_many_threads_as_a_big_run_has_look_different() {
        let look = |thread: u32| (thread % THREAD_COLOURS, of(thread));
        let mut looks: Vec<_> = (0..64).map(look).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 64);
        assert_eq!(of(7), None);
        assert_eq!(patterns((0..8).map(sort_of)), "");
        assert_eq!(patterns((0..64).map(sort_of)).matches("<pattern").count(), 7);
        // Others than the measured threads, in their order.
        assert_eq!((paint(0), paint(1)), (None, paint(8)));
    }
}
