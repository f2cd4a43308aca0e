//! The language of task files, in help and as the manual page hourglass-tasks(5).
//!
//! Owns: how the tables of `tasks::language` look there. Must not: know a key.

use clap_mangen::roff::{Inline, Roff, bold, roman};
use hourglass_tasks::language::{self, INTRODUCTION, KeyDef, TableDef, ValueKind};

use crate::options::help::{entry_of, row_at, section};

/// The name of the manual page, and of its file.
pub(crate) const PAGE: (&str, &str) = ("tasks", "hourglass-tasks.5");

/// Where the right column of the keys begins.
const COLUMN: usize = 30;

/// The keys that are used most, with an example of each.
pub(crate) fn frequent_keys() -> String {
    let mut text = String::from("Keys of a file of tasks:\n");
    let mut table_before = "";
    for (table, key) in language::frequent_keys() {
        if table.name != table_before {
            table_before = table.name;
            if table.heading.starts_with('[') {
                text.push_str(&format!("  {}\n", table.heading));
            }
        }
        let meaning = match key.kind {
            ValueKind::Words(words) => format!("{} Words: {}.", key.about, words.join(", ")),
            _ => key.about.to_owned(),
        };
        let name = format!("{} = {}", key.name, key.example);
        row_at(&mut text, &name, &plain(&meaning), COLUMN);
    }
    row_at(&mut text, "...", "All keys: hourglass man tasks.", COLUMN);
    text
}

/// Markdown without its signs.
fn plain(markdown: &str) -> String {
    markdown.replace(['`', '*'], "")
}

/// The manual page.
pub(crate) fn page() -> Vec<u8> {
    let mut page = Roff::new();
    let release = format!("hourglass {}", env!("CARGO_PKG_VERSION"));
    page.control("TH", ["hourglass-tasks", "5", "", &release, "File formats"]);
    // Blanks between the words of an example would not be TOML's.
    page.control("ad", ["l"]);
    section(&mut page, "NAME");
    page.text([roman(
        "hourglass-tasks - files of tasks for hourglass check, simulate, predict and sweep",
    )]);
    section(&mut page, "DESCRIPTION");
    introduction(&mut page);
    for table in language::TABLES {
        table_section(&mut page, table);
    }
    section(&mut page, "SEE ALSO");
    page.text([
        bold("hourglass"),
        roman("(1), "),
        bold("hourglass-check"),
        roman("(1), "),
        bold("hourglass-simulate"),
        roman("(1), "),
        bold("hourglass-predict"),
        roman("(1), "),
        bold("hourglass-sweep"),
        roman("(1)"),
    ]);
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = page.to_writer(&mut text);
    text
}

/// The introduction but for its title: paragraphs, lists, code and headings.
fn introduction(page: &mut Roff) {
    let mut is_code = false;
    let mut paragraph = String::new();
    let end = |page: &mut Roff, paragraph: &mut String| {
        if !paragraph.is_empty() {
            page.text(inlines(paragraph));
            paragraph.clear();
        }
    };
    for line in INTRODUCTION.lines().skip(1) {
        if line.starts_with("```") {
            end(page, &mut paragraph);
            match is_code {
                true => page.control("fi", []).control("RE", []),
                false => page.control("PP", []).control("RS", ["4"]).control("nf", []),
            };
            is_code = !is_code;
        } else if is_code {
            page.text([roman(line)]);
        } else if let Some(heading) = line.strip_prefix("## ") {
            end(page, &mut paragraph);
            section(page, heading);
        } else if line.is_empty() {
            end(page, &mut paragraph);
            page.control("PP", []);
        } else if let Some(item) = line.strip_prefix("- ") {
            end(page, &mut paragraph);
            page.control("IP", ["\\(bu", "2"]);
            paragraph = item.to_owned();
        } else {
            let blank = if paragraph.is_empty() { "" } else { " " };
            paragraph = format!("{paragraph}{blank}{}", line.trim());
        }
    }
    end(page, &mut paragraph);
}

fn table_section(page: &mut Roff, table: &TableDef) {
    // The name of a table is not put into capitals.
    page.control("SH", [table.heading]).text(inlines(table.about));
    for key in table.keys {
        entry_of(page, key.name, inlines(&key_text(key)));
    }
    if !table.rules.is_empty() {
        page.control("PP", []).text(inlines(table.rules));
    }
}

fn key_text(key: &KeyDef) -> String {
    let mut text = format!("{} Value: {}", key.about, key.kind.words());
    if !key.example.is_empty() {
        text += &format!(", as in `{} = {}`", key.name, key.example);
    }
    match &key.absence()[..] {
        "" => text + ".",
        "refused" => text + ". It must be there.",
        absence => format!("{text}. Without it: {absence}."),
    }
}

/// What stands in backticks or asterisks is bold.
fn inlines(markdown: &str) -> Vec<Inline> {
    let parts = markdown.replace("**", "`");
    let parts = parts.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(at, part)| if at % 2 == 1 { bold(part) } else { roman(part) }).collect()
}
