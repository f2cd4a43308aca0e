//! What this crate draws, and the formats of others that it writes.
//!
//! One program for all of it: each program of tests has to be linked with all that it draws from.

mod browser;
mod comparison;
mod diff;
mod doctor;
mod foreign;
mod latency;
mod lines;
mod page;
mod paper;
mod picture;
mod predict;
mod shown;
mod simulation;
mod summary;
mod sweep;

/// `text` without its colours.
fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

/// Enough of an XML parser for what the crate writes: tags nest, attributes are quoted, and text
/// holds no markup.
fn assert_well_formed(text: &str) {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains('>') || open.last() == Some(&"style"), "{before}");
        let (tag, after) = after.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!tag.contains('<'), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split([' ', '\n']).next().unwrap());
        }
        rest = after;
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
}
