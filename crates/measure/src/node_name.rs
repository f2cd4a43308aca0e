//! What a machine is called among others.

use std::env;

use hourglass_documents::host::Host;

const VARIABLE: &str = "HOURGLASS_NODE";

/// Characters of a name that are kept; host names have 64 at most.
const MOST_CHARACTERS: usize = 256;

pub(crate) fn named(mut host: Host) -> Host {
    if let Some(name) = env::var(VARIABLE).ok().as_deref().and_then(clean) {
        host.node = Some(name);
    }
    host
}

/// A name without what a terminal would obey; `None` if nothing is left.
fn clean(text: &str) -> Option<String> {
    let shown = text.trim().chars().filter(|c| !c.is_control()).take(MOST_CHARACTERS);
    Some(shown.collect::<String>()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_of_text() {
        assert_eq!(clean(" rack-7/n12\n"), Some("rack-7/n12".to_owned()));
        assert_eq!(clean("\u{1b}[31mn1"), Some("[31mn1".to_owned()));
        assert_eq!(clean(" \t"), None);
        assert_eq!(clean(&"n".repeat(1_000)).map(|name| name.len()), Some(MOST_CHARACTERS));
    }
}
