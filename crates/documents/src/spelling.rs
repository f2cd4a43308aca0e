//! What a mistyped word may have meant.
//!
//! Owns: the known words nearest to a given one, and how a message offers them. Must not: change what was given.

/// More letters that differ make another word.
const MOST_CHANGES: usize = 2;

/// Of each group of this many letters one may differ.
const LETTERS_A_CHANGE: usize = 3;

/// Minimum number of letters of a beginning that stands for a known word.
const SHORTEST_BEGINNING: usize = 3;

/// No more words than these are offered.
const MOST_OFFERED: usize = 3;

/// Those of `known` that `word` may have meant, in their order: the nearest, by letters to insert, drop, replace or
/// swap with their neighbour (two at most, and at most one in three), or those that begin like it. Capital letters,
/// dashes in front and what stands behind a colon (`FIFO:PRIO`, `NATIVE[:SLACK]`) do not count.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let plain = |word: &str| {
        let word = word.trim_start_matches('-');
        word.split([':', '[']).next().unwrap_or(word).to_lowercase()
    };
    let wanted = plain(word);
    let letters = wanted.chars().count();
    let allowed = MOST_CHANGES.min(letters / LETTERS_A_CHANGE);
    let all: Vec<(&str, String)> = known.into_iter().map(|name| (name, plain(name))).collect();
    // A distance takes time and memory in proportion to both lengths, and a word of a file may be as long as the file.
    let changes = |name: &str| match letters.abs_diff(name.chars().count()) {
        0..=MOST_CHANGES => strsim::osa_distance(&wanted, name),
        apart => apart,
    };
    let least = all.iter().map(|(_, name)| changes(name)).min().filter(|least| *least <= allowed);
    let is_meant = |name: &str| match least {
        Some(least) => changes(name) == least,
        None => letters >= SHORTEST_BEGINNING && name.starts_with(&wanted),
    };
    let mut meant: Vec<&str> = Vec::new();
    for (name, plain) in &all {
        if is_meant(plain) && !meant.contains(name) && meant.len() < MOST_OFFERED {
            meant.push(name);
        }
    }
    meant
}

/// The question whether one of `known` was meant: `did you mean 'deadline'?` `None` if none is near.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // An option is known by its dashes.
    let quoted = |name: &&str| match name.starts_with('-') {
        true => (*name).to_owned(),
        false => format!("'{name}'"),
    };
    let meant: Vec<String> = nearest(word, known).iter().map(quoted).collect();
    let (last, others) = meant.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        others => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

/// The line about a word that is not among the `known` ones, which are `what`: `unknown workload 'CPUU'; did you
/// mean 'CPU'?`, or all of them where none is near.
#[must_use]
pub fn unknown<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match did_you_mean(word, known.iter().copied()) {
        Some(question) => format!("unknown {what} '{word}'; {question}"),
        None => format!("unknown {what} '{word}'; use one of {}", known.join(", ")),
    }
}

/// The same of a key that serde does not know, from its message; `None` if the message is about something else.
#[must_use]
pub fn unknown_key(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field `")?;
    let mut words = rest.split('`').step_by(2);
    let word = words.next()?;
    Some(unknown("key", word, words.filter(|word| !word.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["period", "deadline", "wcet", "jitter", "policy"];

    /// Found by fuzzing: a word of 64 KiB took a second, and a file of tasks may have one of 64 MiB.
    #[test]
    fn a_word_as_long_as_a_file_is_near_to_none() {
        let long = "period".repeat(1 << 20);
        assert_eq!(nearest(&long, ["period", "periods", "deadline"]), Vec::<&str>::new());
    }

    #[test]
    fn slips_find_their_word() {
        for (word, key) in [
            ("perod", "period"),
            ("Period", "period"),
            ("peroid", "period"),
            ("dedline", "deadline"),
            ("wect", "wcet"),
            ("dead", "deadline"),
            ("--jiter", "jitter"),
        ] {
            assert_eq!(nearest(word, KEYS), [key], "{word}");
        }
    }

    #[test]
    fn another_word_is_another_word() {
        for word in ["colour", "", "x", "wait", "--", "de"] {
            assert!(nearest(word, KEYS).is_empty(), "{word}");
        }
    }

    #[test]
    fn equals_are_all_offered() {
        let known = ["RTLOW", "RTMED", "LOW", "RTHIGH", "OTHER"];
        assert_eq!(
            unknown("priority", "low", known),
            "unknown priority 'low'; did you mean 'LOW'?"
        );
        assert_eq!(did_you_mean("-rx", ["-rh", "-rs"]), None, "one of two letters");
        assert_eq!(
            did_you_mean("rtl", ["rtlow", "rtlong", "other"]).as_deref(),
            Some("did you mean 'rtlow' or 'rtlong'?")
        );
        assert_eq!(did_you_mean("--cpus", ["--cpu", "-n"]).as_deref(), Some("did you mean --cpu?"));
        let timers = ["NATIVE[:SLACK]", "TICK:HZ", "HR"];
        assert_eq!(nearest("natve:5us", timers), ["NATIVE[:SLACK]"]);
        assert_eq!(
            unknown("timer", "SUN", ["HR", "RTC"]),
            "unknown timer 'SUN'; use one of HR, RTC"
        );
    }

    #[test]
    fn keys_that_serde_does_not_know() {
        let message = "unknown field `workloads`, expected one of `name`, `workload`, `timer`";
        assert_eq!(
            unknown_key(message).as_deref(),
            Some("unknown key 'workloads'; did you mean 'workload'?")
        );
        let message = "unknown field `a`, expected `bc`";
        assert_eq!(unknown_key(message).as_deref(), Some("unknown key 'a'; use one of bc"));
        assert_eq!(unknown_key("missing field `a`"), None);
    }
}
