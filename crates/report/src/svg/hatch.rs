//! Hatching: stripes distinguish threads beyond the dozen that have a colour of their own.
//!
//! Owns: which thread has which stripes, and their patterns. Must not: choose colours.

use std::fmt::Write as _;

/// Colours for threads in the style sheet; further threads begin again with the first.
pub(super) const THREAD_COLOURS: u32 = 12;

/// Ways to fill a colour: plain, and these patterns.
pub(super) const SORTS: u32 = 6;

/// The stripes of each pattern, within a square of six pixels.
const STRIPES: [&str; SORTS as usize - 1] =
    ["M-1 7L7 -1", "M-1 -1L7 7", "M3 0V6", "M0 3H6", "M-1 7L7 -1M-1 -1L7 7"];

/// What stripes a thread's colour; `None` for a plain one.
pub(super) fn of(thread: u32) -> Option<String> {
    let sort = thread / THREAD_COLOURS % SORTS;
    (sort > 0).then(|| format!("url(#hg-h{sort})"))
}

/// The patterns that these threads need, as SVG; nothing if all are plain.
pub(super) fn patterns(threads: impl Iterator<Item = u32>) -> String {
    let mut sorts: Vec<u32> = threads.map(|thread| thread / THREAD_COLOURS % SORTS).collect();
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

    /// Issue 6: 64 threads share twelve colours, and still no two look the same.
    #[test]
    fn as_many_threads_as_a_big_run_has_look_different() {
        let look = |thread: u32| (thread % THREAD_COLOURS, of(thread));
        let mut looks: Vec<_> = (0..64).map(look).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 64);
        assert_eq!(of(11), None);
        assert_eq!(patterns(0..12), "");
        assert_eq!(patterns(0..64).matches("<pattern").count(), 5);
    }
}
