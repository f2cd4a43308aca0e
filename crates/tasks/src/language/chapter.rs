//! The chapter of the handbook.

use super::{INTRODUCTION, KeyDef, TABLES, ValueKind};

/// The introduction and the tables of keys, in Markdown.
#[must_use]
pub fn chapter() -> String {
    let mut text = INTRODUCTION.to_owned();
    for table in TABLES {
        let heading = match table.heading.contains(' ') {
            true => table.heading.to_owned(),
            false => format!("`{}`", table.heading),
        };
        text += &format!("\n## {heading}\n\n{}\n\n", table.about);
        text += "| key | value | meaning | without it |\n|---|---|---|---|\n";
        for key in table.keys {
            let (value, absence) = (value(key), key.absence());
            text += &format!("| `{}` | {value} | {} | {absence} |\n", key.name, key.about);
        }
        if !table.rules.is_empty() {
            text += &format!("\n{}\n", table.rules);
        }
    }
    text
}

/// The kind of value, with an example where it does not name all values.
fn value(key: &KeyDef) -> String {
    let words = key.kind.words();
    match key.kind {
        ValueKind::Words(_) | ValueKind::Boolean => words,
        _ if key.example.is_empty() => words,
        _ => format!("{words}: `{}`", key.example),
    }
}
