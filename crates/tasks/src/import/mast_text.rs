//! The text form of MAST models: elements of named values, nested.
//!
//! Owns: its grammar. Must not: know what an element means.

use super::Import;
use crate::error::TaskSetError;

const ELEMENTS: [&str; 7] = [
    "processing_resource",
    "scheduler",
    "scheduling_server",
    "shared_resource",
    "operation",
    "transaction",
    "model",
];

/// Whether the text begins as a MAST model does: comments, and then an element with its bracket.
pub(crate) fn looks_like(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(comment) = rest.strip_prefix("--") {
        rest = comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (word, rest) = rest.split_at(end);
    ELEMENTS.contains(&word.to_ascii_lowercase().as_str()) && rest.trim_start().starts_with('(')
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A name, a number, a text.
    Word(String),
    List(Vec<MastEntry>),
}

/// One entry of a list: `Key => Value`, or a value alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MastEntry {
    /// In lower case, as MAST takes no notice of it; empty for a value alone.
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) kind: String,
    pub(super) entries: Vec<MastEntry>,
    pub(super) line: usize,
}

/// A token with its line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Open,
    Close,
    Comma,
    Arrow,
    End,
}

struct Tokens {
    all: Vec<(Token, usize, usize)>,
    next: usize,
}

/// Brackets in brackets; a model has five.
const DEEPEST: usize = 32;

pub(super) fn parse(text: &str) -> Import<Vec<Element>> {
    let mut tokens = Tokens { all: tokens(text)?, next: 0 };
    let mut elements = Vec::new();
    while let Some((token, line, column)) = tokens.take() {
        let Token::Word(kind) = token else {
            return Err(syntax(line, column, "expected an element such as Transaction ( ... );"));
        };
        tokens.expect(&Token::Open, "'('")?;
        let entries = tokens.list(0)?;
        tokens.expect(&Token::End, "';'")?;
        elements.push(Element { kind: kind.to_ascii_lowercase(), entries, line });
    }
    Ok(elements)
}

fn syntax(line: usize, column: usize, message: &str) -> TaskSetError {
    TaskSetError::Syntax { line, column, message: message.to_owned() }
}

fn tokens(text: &str) -> Import<Vec<(Token, usize, usize)>> {
    let mut found = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let mut rest = line;
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            rest = &rest[start..];
            let at = (number + 1, line.len() - rest.len() + 1);
            let (token, length) = match rest.as_bytes() {
                [b'-', b'-', ..] => break,
                [b'=', b'>', ..] => (Token::Arrow, 2),
                [b'(', ..] => (Token::Open, 1),
                [b')', ..] => (Token::Close, 1),
                [b',', ..] => (Token::Comma, 1),
                [b';', ..] => (Token::End, 1),
                [b'"', ..] => {
                    let end = rest[1..]
                        .find('"')
                        .ok_or_else(|| syntax(at.0, at.1, "a text without an end"))?;
                    (Token::Word(rest[1..=end].to_owned()), end + 2)
                }
                _ => {
                    let ends = |c: char| c.is_whitespace() || "(),;=\"".contains(c);
                    let end = rest.find(ends).unwrap_or(rest.len());
                    if end == 0 {
                        return Err(syntax(at.0, at.1, "a single '='; write =>"));
                    }
                    (Token::Word(rest[..end].to_owned()), end)
                }
            };
            found.push((token, at.0, at.1));
            rest = &rest[length..];
        }
    }
    Ok(found)
}

impl Tokens {
    fn take(&mut self) -> Option<(Token, usize, usize)> {
        let token = self.all.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn peek(&self) -> Option<&Token> {
        self.all.get(self.next).map(|(token, ..)| token)
    }

    /// The place of the next token, or of the last one.
    fn place(&self) -> (usize, usize) {
        let place = self.all.get(self.next).or(self.all.last());
        place.map_or((1, 1), |(_, line, column)| (*line, *column))
    }

    fn expect(&mut self, wanted: &Token, name: &str) -> Import<()> {
        let (line, column) = self.place();
        match self.take() {
            Some((token, ..)) if token == *wanted => Ok(()),
            _ => Err(syntax(line, column, &format!("expected {name}"))),
        }
    }

    /// The entries up to the closing bracket.
    fn list(&mut self, depth: usize) -> Import<Vec<MastEntry>> {
        let (line, column) = self.place();
        if depth > DEEPEST {
            return Err(syntax(line, column, "too many brackets in brackets"));
        }
        let mut entries = Vec::new();
        if self.peek() == Some(&Token::Close) {
            self.next += 1;
            return Ok(entries);
        }
        loop {
            entries.push(self.entry(depth)?);
            let (line, column) = self.place();
            match self.take() {
                Some((Token::Comma, ..)) => {}
                Some((Token::Close, ..)) => return Ok(entries),
                _ => return Err(syntax(line, column, "expected ',' or ')'")),
            }
        }
    }

    fn entry(&mut self, depth: usize) -> Import<MastEntry> {
        let (line, column) = self.place();
        match self.take() {
            Some((Token::Open, ..)) => Ok(MastEntry {
                key: String::new(),
                value: Value::List(self.list(depth + 1)?),
                line,
            }),
            Some((Token::Word(word), ..)) if self.peek() == Some(&Token::Arrow) => {
                self.next += 1;
                let value = self.entry(depth)?.value;
                Ok(MastEntry { key: word.to_ascii_lowercase(), value, line })
            }
            Some((Token::Word(word), ..)) => {
                Ok(MastEntry { key: String::new(), value: Value::Word(word), line })
            }
            _ => Err(syntax(line, column, "expected a name or '('")),
        }
    }
}
