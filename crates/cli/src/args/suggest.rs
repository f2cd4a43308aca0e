//! What a mistyped name may have been meant to be.

use super::options::OPTIONS;

/// Names shorter than this are too like each other to guess by distance.
const SHORTEST_GUESSED: usize = 3;

/// Typing errors that a guess forgives.
const FORGIVEN: usize = 2;

/// The option most like `given`, if one is like it.
pub(super) fn option_like(given: &str) -> Option<&'static str> {
    name_like(given, OPTIONS.iter().flat_map(|entry| entry.names).copied())
}

/// The name most like `given`, if one is like it; dashes in front do not count.
pub(crate) fn name_like<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |name: &str| name.trim_start_matches('-').to_lowercase();
    let wanted = plain(given);
    names
        .into_iter()
        .filter_map(|name| {
            let known = plain(name);
            let distance = distance(&wanted, &known);
            let shorter = wanted.chars().count().min(known.chars().count());
            let forgiven = if shorter < SHORTEST_GUESSED { 0 } else { FORGIVEN.min(shorter - 2) };
            (distance <= forgiven).then_some((distance, name))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters must be put in, taken out or changed to make one word of the other
/// (Levenshtein), by the row-by-row table.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_guessed() {
        for (given, meant) in [
            ("--cpus", "--cpu"),
            ("-cpu", "--cpu"),
            ("--bestefort", "--best-effort"),
            ("--dma-latncy", "--dma-latency"),
            ("--warmup", "--warm-up"),
            ("-N", "-n"),
            ("--rh", "-rh"),
            ("--jsn", "--json"),
        ] {
            assert_eq!(option_like(given), Some(meant), "{given}");
        }
    }

    #[test]
    fn strangers_are_not() {
        for given in ["-x", "-z", "--frequency", "-rx", "--"] {
            assert_eq!(option_like(given), None, "{given}");
        }
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("ring", "ring"), 0);
    }
}
