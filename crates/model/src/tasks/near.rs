//! What a mistyped word may have meant.
//!
//! Owns: the nearest of some known words. Must not: change what was given.

/// Words that people use for keys of a task, and the keys.
const SYNONYMS: [(&str, &str); 18] = [
    ("c", "wcet"),
    ("cost", "wcet"),
    ("budget", "wcet"),
    ("runtime", "wcet"),
    ("execution", "execution_time"),
    ("t", "period"),
    ("minimum_separation", "period"),
    ("d", "deadline"),
    ("j", "jitter"),
    ("b", "blocking"),
    ("phase", "offset"),
    ("prio", "priority"),
    ("affinity", "cpus"),
    ("curve", "arrivals"),
    ("suspend", "suspension"),
    ("precedence", "after"),
    ("locks", "critical_sections"),
    ("threshold", "preemption_threshold"),
];

/// More changed letters than this are another word.
const MOST_CHANGES: usize = 2;

/// The one of `known` that `word` may have meant: the same but for two letters at most, and no
/// more than a third of them, or a synonym. The first of equals.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let synonym = SYNONYMS.iter().find(|(said, _)| *said == lower).map(|(_, key)| *key);
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(key) = known.iter().find(|key| Some(**key) == synonym) {
        return Some(key);
    }
    let allowed = MOST_CHANGES.min(lower.chars().count() / 3);
    known
        .into_iter()
        .map(|key| (changes(&lower, &key.to_lowercase()), key))
        .filter(|(changes, _)| *changes <= allowed)
        .min_by_key(|(changes, _)| *changes)
        .map(|(_, key)| key)
}

/// Letters to insert, drop, replace or swap with their neighbour (restricted Damerau distance).
fn changes(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["period", "deadline", "wcet", "jitter"];

    #[test]
    fn slips_find_their_key() {
        for (word, key) in [
            ("perod", "period"),
            ("Period", "period"),
            ("peroid", "period"),
            ("dedline", "deadline"),
            ("wect", "wcet"),
            ("cost", "wcet"),
            ("T", "period"),
        ] {
            assert_eq!(nearest(word, KEYS), Some(key), "{word}");
        }
    }

    #[test]
    fn another_word_is_another_word() {
        for word in ["colour", "", "x", "wait"] {
            assert_eq!(nearest(word, KEYS), None, "{word}");
        }
    }
}
