//! What a mistyped word of a file of tasks may have meant.
//!
//! Owns: words that people use for keys of a task. Must not: change what was given.

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

/// The question whether one of `known` was meant: one whose synonym `word` is, or what is near.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<String> {
    let lower = word.to_lowercase();
    let synonym = SYNONYMS.iter().find(|(said, _)| *said == lower).map(|(_, key)| *key);
    match known.clone().find(|key| Some(*key) == synonym) {
        Some(key) => Some(format!("did you mean '{key}'?")),
        None => hourglass_documents::spelling::did_you_mean(word, known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_find_their_key() {
        let meant = |word| did_you_mean(word, ["period", "deadline", "wcet"].into_iter());
        assert_eq!(meant("cost").as_deref(), Some("did you mean 'wcet'?"));
        assert_eq!(meant("T").as_deref(), Some("did you mean 'period'?"));
        assert_eq!(meant("dedline").as_deref(), Some("did you mean 'deadline'?"));
        assert_eq!(meant("affinity"), None, "not known here");
    }
}
