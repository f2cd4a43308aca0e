//! The language of task files: the tables of a file and their keys, each with its kind of value and its meaning.
//!
//! Owns: [`FILE`] and the tables below it. The reader refuses keys that are not there; the chapter of the handbook
//! ([`chapter`]), the manual page hourglass-tasks(5), the JSON Schema ([`json_schema`]) and the keys that
//! `hourglass check --help` shows are made from it. Must not: read a file.

mod chapter;
mod schema;
mod tables;

pub use chapter::chapter;
pub use schema::json_schema;
pub(crate) use tables::{
    BACKGROUND, CRITICAL_SECTION, INTERFERENCE, MACHINE, OVERHEADS, PHASE, RESOURCE, SERVER, TASK,
};
pub use tables::{FILE, TABLES};

/// What holds for all tables, with an example. Markdown.
pub const INTRODUCTION: &str = include_str!("../format.md");

/// A table of a file.
#[derive(Clone, Copy, Debug)]
pub struct TableDef {
    /// A noun for it, as in `critical section`.
    pub name: &'static str,
    /// How it begins in a file, as in `[[task]]`.
    pub heading: &'static str,
    /// What it describes. Markdown.
    pub about: &'static str,
    /// Its keys, in the order in which they are described.
    pub keys: &'static [KeyDef],
    /// Rules about several keys; may be empty. Markdown.
    pub rules: &'static str,
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct KeyDef {
    pub name: &'static str,
    pub kind: ValueKind,
    /// A value as TOML has it.
    pub example: &'static str,
    /// The meaning. Markdown.
    pub about: &'static str,
    /// Whether it must be there.
    pub presence: Presence,
    /// What holds without it; may be empty. Markdown.
    pub default: &'static str,
    /// Whether it is one of the keys that `hourglass check --help` shows.
    pub is_frequent: bool,
}

/// Whether a key must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Optional,
    Required,
    /// Required unless this key is there.
    RequiredUnless(&'static str),
}

/// The kind of value that a key takes.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    Text,
    /// A time, or a bare number where the file has a `unit`.
    Time,
    /// A time with its unit.
    TimeText,
    Times,
    Fraction,
    Cpus,
    ListOfCpus,
    /// A whole number from 0 to 2^32-1.
    Whole,
    Boolean,
    /// One of these.
    Words(&'static [&'static str]),
    /// A list of names, or one name.
    Names,
    /// A whole number, or `forever`.
    Loops,
    /// A list of steps.
    Steps,
    Table(&'static TableDef),
    Tables(&'static TableDef),
}

impl ValueKind {
    /// The kind in words. Markdown.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            ValueKind::Text => "text".to_owned(),
            ValueKind::Time | ValueKind::TimeText => "time".to_owned(),
            ValueKind::Times => "list of times".to_owned(),
            ValueKind::Fraction => "fraction".to_owned(),
            ValueKind::Cpus => "CPUs".to_owned(),
            ValueKind::ListOfCpus => "list of CPUs".to_owned(),
            ValueKind::Whole => "integer".to_owned(),
            ValueKind::Boolean => "`true` or `false`".to_owned(),
            ValueKind::Words([only]) => format!("`{only}`"),
            ValueKind::Words(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", words.join(", "))
            }
            ValueKind::Names => "list of names, or one name".to_owned(),
            ValueKind::Loops => "integer or `\"forever\"`".to_owned(),
            ValueKind::Steps => "list of steps".to_owned(),
            ValueKind::Table(of) => format!("table, {}", of.name),
            ValueKind::Tables(of) => format!("list of tables, each a {}", of.name),
        }
    }
}

impl TableDef {
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.keys.iter().map(|key| key.name)
    }
}

impl KeyDef {
    /// What holds without the key, in words; empty where nothing needs to be said.
    #[must_use]
    pub fn absence(&self) -> String {
        match self.presence {
            Presence::Required => "refused".to_owned(),
            Presence::RequiredUnless(_) => format!("{}, else refused", self.default),
            Presence::Optional => self.default.to_owned(),
        }
    }
}

/// The keys that `hourglass check --help` shows, with their tables.
pub fn frequent_keys() -> impl Iterator<Item = (&'static TableDef, &'static KeyDef)> {
    let keys = TABLES.iter().flat_map(|table| table.keys.iter().map(move |key| (*table, key)));
    keys.filter(|(_, key)| key.is_frequent)
}
