//! Reading the keys of a table, with errors that name table, key, value and remedy.
//!
//! Owns: the forms that values have in files: times, fractions, CPUs, words of a choice.
//! Must not: know what a task is.

use std::fmt;
use std::str::FromStr;

use hourglass_documents::CpuSet;
use hourglass_time::{ParseSpanError, ParseSpanErrorKind, Span};

use super::error::{Location, TaskSetError};
use super::language::TableDef;
use super::node::Node;
use super::spelling::did_you_mean;

pub(crate) type KeyResult<T> = Result<T, TaskSetError>;

/// A table whose keys have been found to be known and to stand there once.
pub(crate) struct Keys<'a> {
    pub(crate) place: Location,
    entries: &'a [(String, Node)],
    /// The unit of bare numbers of time, if the file states it.
    unit: Option<Span>,
}

impl<'a> Keys<'a> {
    /// Opens a table that may have the keys of `table`.
    pub(crate) fn open(
        place: Location,
        node: &'a Node,
        table: &TableDef,
        unit: Option<Span>,
    ) -> KeyResult<Keys<'a>> {
        let Node::Table(entries) = node else {
            return Err(place.contradiction(format!("{} is not a table", node.kind())));
        };
        for (position, (key, _)) in entries.iter().enumerate() {
            if entries[..position].iter().any(|(earlier, _)| earlier == key) {
                return Err(TaskSetError::KeyTwice { place, key: key.clone() });
            }
            if !table.names().any(|known| known == key) {
                return Err(place.unknown_key(key, table.names()));
            }
        }
        Ok(Keys { place, entries, unit })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(crate) fn bad(&self, key: &str, node: &Node, reason: impl fmt::Display) -> TaskSetError {
        self.place.bad(key, node, reason)
    }

    fn wrong_type(&self, key: &str, node: &Node, wanted: &str) -> TaskSetError {
        self.bad(key, node, format_args!("expected {wanted}, found {}", node.kind()))
    }

    pub(crate) fn missing(&self, key: &'static str, remedy: &str) -> TaskSetError {
        self.place.missing(key, remedy)
    }

    pub(crate) fn text(&self, key: &str) -> KeyResult<Option<&'a str>> {
        self.get(key).map(|node| self.as_text(key, node)).transpose()
    }

    fn as_text(&self, key: &str, node: &'a Node) -> KeyResult<&'a str> {
        match node {
            Node::Text(text) => Ok(text),
            _ => Err(self.wrong_type(key, node, "a text")),
        }
    }

    pub(crate) fn parsed<T>(&self, key: &str) -> KeyResult<Option<T>>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let Some(node) = self.get(key) else { return Ok(None) };
        let text = self.as_text(key, node)?;
        text.parse().map(Some).map_err(|error: T::Err| self.bad(key, node, error))
    }

    pub(crate) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> KeyResult<Option<T>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let text = self.as_text(key, node)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*value));
        }
        let words = words.iter().map(|(word, _)| *word);
        let reason = match did_you_mean(text, words.clone()) {
            Some(question) => format!("unknown word; {question}"),
            None => format!("unknown word; use {}", listed(words)),
        };
        Err(self.bad(key, node, reason))
    }

    /// A whole number from 0 to 2^32-1, or to 2^64-1 for wider types.
    pub(crate) fn whole<T: TryFrom<i128>>(&self, key: &str) -> KeyResult<Option<T>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let Node::Whole(value) = node else {
            return Err(self.wrong_type(key, node, "a whole number"));
        };
        let top = 8 * size_of::<T>();
        T::try_from(*value)
            .map(Some)
            .map_err(|_| self.bad(key, node, format_args!("give a number from 0 to 2^{top}-1")))
    }

    pub(crate) fn span(&self, key: &str) -> KeyResult<Option<Span>> {
        self.get(key).map(|node| self.as_span(key, node)).transpose()
    }

    pub(crate) fn needed_span(&self, key: &'static str, remedy: &str) -> KeyResult<Span> {
        self.span(key)?.ok_or_else(|| self.missing(key, remedy))
    }

    pub(crate) fn spans(&self, key: &str) -> KeyResult<Vec<Span>> {
        self.list(key)?.iter().map(|node| self.as_span(key, node)).collect()
    }

    fn as_span(&self, key: &str, node: &Node) -> KeyResult<Span> {
        match (node, self.unit) {
            (Node::Text(text), _) => {
                text.trim().parse::<Span>().map_err(|error| self.bad(key, node, explained(error)))
            }
            (Node::Whole(number), Some(unit)) => number
                .checked_mul(unit.nanos().into())
                .and_then(|ns| Span::try_from_nanos(ns).ok())
                .ok_or_else(|| self.bad(key, node, "longer than 292 years")),
            (Node::Whole(_), None) => {
                let remedy = "the unit is missing; write a text such as \"3ms\", or say once for \
                              the file what a number counts, as in unit = \"1ms\"";
                Err(self.bad(key, node, remedy))
            }
            _ => Err(self.wrong_type(key, node, "a time such as \"3ms\"")),
        }
    }

    /// CPUs: a number, a list of numbers, or a text as the kernel writes it.
    pub(crate) fn cpus(&self, key: &str) -> KeyResult<Option<CpuSet>> {
        self.get(key).map(|node| self.as_cpus(key, node)).transpose()
    }

    pub(crate) fn as_cpus(&self, key: &str, node: &Node) -> KeyResult<CpuSet> {
        let text = match node {
            Node::Text(text) => text.clone(),
            Node::Whole(number) => number.to_string(),
            Node::List(items) if items.iter().all(|item| matches!(item, Node::Whole(_))) => {
                items.iter().map(Node::to_string).collect::<Vec<_>>().join(",")
            }
            _ => {
                let wanted = "a list of CPUs such as 0, [0, 2] or \"0-3\"";
                return Err(self.wrong_type(key, node, wanted));
            }
        };
        text.parse().map_err(|error| self.bad(key, node, error))
    }

    /// The items of a list; none where the key is absent.
    pub(crate) fn list(&self, key: &str) -> KeyResult<&'a [Node]> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Node::List(items)) => Ok(items),
            Some(node) => Err(self.wrong_type(key, node, "a list")),
        }
    }

    /// Names in a list, or a single one.
    pub(crate) fn names(&self, key: &str) -> KeyResult<Vec<String>> {
        if let Some(Node::Text(name)) = self.get(key) {
            return Ok(vec![name.clone()]);
        }
        let name = |node: &'a Node| self.as_text(key, node).map(str::to_owned);
        self.list(key)?.iter().map(name).collect()
    }
}

fn explained(error: ParseSpanError) -> String {
    if error.kind() != ParseSpanErrorKind::TooLong {
        return error.to_string();
    }
    "longer than 292 years, which is all that 64 bits of nanoseconds hold".to_owned()
}

pub(crate) fn remedy<'k>(word: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    match did_you_mean(word, known.clone()) {
        Some(question) => question,
        None if known.clone().next().is_none() => "there is none at all".to_owned(),
        None => format!("use {}", listed(known)),
    }
}

/// `a, b or c`, cut short where there are many.
fn listed<'k>(words: impl Iterator<Item = &'k str>) -> String {
    const MOST: usize = 24;
    let words: Vec<&str> = words.collect();
    match words[..] {
        [] => String::new(),
        [only] => only.to_owned(),
        [.., end] if words.len() <= MOST => {
            format!("{} or {end}", words[..words.len() - 1].join(", "))
        }
        _ => format!("{}, ...", words[..MOST].join(", ")),
    }
}
