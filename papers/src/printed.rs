//! Papers and their tables as data: what they print, and the sentences about what differs here.
//!
//! A paper's `paper.toml` has everything that does not depend on a machine; a measurement gives rows and values, and
//! [`Table::assembled`] makes the document's table of both. A sentence is a template:
//!
//! | in braces | stands for |
//! |---|---|
//! | `name` | the row of that name as measured, or a value of the measurement, or a text of the paper's `words` |
//! | `name@paper` | the paper's number of that row |
//! | `a over b` | how many times `b` is `a`: `0.85 times` |
//! | `a above b` | by how much `a` exceeds `b`: `7.9 ns more` |
//! | `?name`, `!name` | nothing; the sentence is said only with such a value, or without |
//!
//! Of several alternatives the first is said whose values are all there, else the last.

use std::collections::BTreeMap;

use hourglass_documents::paper::{Decision, PaperFigure, PaperRow, PaperTable};
use serde::Deserialize;

use super::bench::MeasurementHost;
use super::sentences::{more, percent, time, times};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    pub name: String,
    pub title: String,
    pub source: String,
    /// Machine, method, difference and notes of tables that have none of their own.
    #[serde(default)]
    machine: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    difference: Sentences,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    words: BTreeMap<String, Alternatives>,
    pub tables: Vec<Table>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub id: String,
    pub title: String,
    #[serde(default)]
    machine: String,
    #[serde(default)]
    method: String,
    /// Sentences about what differs, and why. One that begins with `; ` goes on with the one before.
    #[serde(default)]
    difference: Sentences,
    /// Templates of notes; those without their values are left out.
    #[serde(default)]
    notes: Vec<String>,
    /// What is not a number of the table, such as the interval of its wake-ups.
    #[serde(default)]
    settings: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) lines: Vec<Line>,
    #[serde(skip)]
    words: BTreeMap<String, Alternatives>,
    #[serde(skip)]
    pub(crate) measure: Option<Measure>,
}

pub(crate) type Measure = fn(&Table, &MeasurementHost) -> Option<MeasuredTable>;

pub(crate) type MeasureOf = fn(&str) -> Option<Measure>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) unit: String,
    /// The paper's numbers; `nan` where it has none.
    #[serde(default)]
    pub(crate) paper: Vec<f64>,
}

impl Line {
    pub(crate) fn printed(&self, column: usize) -> Option<f64> {
        self.paper.get(column).copied().filter(|number| !number.is_nan())
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Alternatives {
    One(String),
    Several(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Sentences {
    One(String),
    Several(Vec<Alternatives>),
}

impl Default for Sentences {
    fn default() -> Sentences {
        Sentences::Several(Vec::new())
    }
}

impl Sentences {
    fn all(&self) -> Vec<&[String]> {
        match self {
            Sentences::One(text) => vec![std::slice::from_ref(text)],
            Sentences::Several(sentences) => sentences.iter().map(Alternatives::all).collect(),
        }
    }
}

impl Alternatives {
    fn all(&self) -> &[String] {
        match self {
            Alternatives::One(text) => std::slice::from_ref(text),
            Alternatives::Several(texts) => texts,
        }
    }
}

#[derive(Debug)]
pub(crate) struct MeasuredTable {
    pub(crate) table: PaperTable,
    pub(crate) figure: Option<PaperFigure>,
}

impl MeasuredTable {
    pub(crate) fn with_figure(self, figure: impl Into<Option<PaperFigure>>) -> MeasuredTable {
        MeasuredTable { figure: figure.into(), ..self }
    }

    pub(crate) fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> MeasuredTable {
        self.table.notes.extend(notes);
        self
    }

    pub(crate) fn with_decisions(mut self, decisions: Vec<Decision>) -> MeasuredTable {
        self.table.decisions = decisions;
        self
    }
}

impl Paper {
    pub(crate) fn read(text: &str, measure: MeasureOf) -> Result<Paper, toml::de::Error> {
        let mut paper: Paper = toml::from_str(text)?;
        for table in &mut paper.tables {
            if table.machine.is_empty() {
                table.machine.clone_from(&paper.machine);
            }
            if table.method.is_empty() {
                table.method.clone_from(&paper.method);
            }
            if table.difference.all().is_empty() {
                table.difference.clone_from(&paper.difference);
            }
            if table.notes.is_empty() {
                table.notes.clone_from(&paper.notes);
            }
            table.words.clone_from(&paper.words);
            table.measure = measure(&table.id);
        }
        Ok(paper)
    }
}

impl Table {
    pub(crate) fn with_rows(&self, rows: Vec<PaperRow>, mut values: Values) -> MeasuredTable {
        values.add_rows(&rows);
        let texts = Texts { values: &values, words: &self.words };
        let mut difference = String::new();
        for said in self.difference.all().into_iter().filter_map(|of| texts.first_of(of)) {
            append(&mut difference, &said);
        }
        let notes = self.notes.iter().filter_map(|note| texts.filled(note, None));
        let table = PaperTable {
            id: self.id.clone(),
            title: self.title.clone(),
            paper_machine: self.machine.clone(),
            method: texts.first_of(std::slice::from_ref(&self.method)).unwrap_or_default(),
            rows,
            decisions: Vec::new(),
            difference,
            notes: notes.collect(),
            figure: None,
        };
        MeasuredTable { table, figure: None }
    }

    /// A setting; 0 if the table has none of that name.
    pub(crate) fn setting(&self, name: &str) -> u64 {
        self.settings.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn printed(&self, line: &str, column: usize) -> Option<f64> {
        self.lines.iter().find(|own| own.name == line)?.printed(column)
    }
}

/// Adds a sentence, or a clause to the last one.
fn append(text: &mut String, said: &str) {
    match said.strip_prefix("; ") {
        Some(_) if text.ends_with('.') => {
            text.pop();
            text.push_str(said);
        }
        clause => {
            let mut letters = clause.unwrap_or(said).chars();
            let Some(first) = letters.next() else { return };
            text.push_str(if text.is_empty() { "" } else { " " });
            text.extend(first.to_uppercase());
            text.push_str(letters.as_str());
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A length of time, ns.
    Time(f64),
    Percent(f64),
    Number(f64),
    Words(String),
}

impl From<String> for Value {
    fn from(words: String) -> Value {
        Value::Words(words)
    }
}

impl From<&str> for Value {
    fn from(words: &str) -> Value {
        Value::Words(words.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number as f64)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Number(number as f64)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Values(BTreeMap<String, Value>);

impl Values {
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Values {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Values {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With a name that `?name` asks for.
    pub(crate) fn with_if(self, name: &str, holds: bool) -> Values {
        self.with_some(name, holds.then_some(""))
    }

    fn add_rows(&mut self, rows: &[PaperRow]) {
        for row in rows {
            let of = |number: f64| match (size(&row.unit), row.unit.as_str()) {
                (Some(size), _) => Value::Time(number * size),
                (None, "%") => Value::Percent(number),
                _ => Value::Number(number),
            };
            let numbers =
                [(row.name.clone(), row.measured), (row.name.clone() + "@paper", row.paper)];
            for (name, number) in numbers {
                if let Some(number) = number {
                    self.0.insert(name, of(number));
                }
            }
        }
    }
}

pub(crate) fn size(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    })
}

struct Texts<'a> {
    values: &'a Values,
    words: &'a BTreeMap<String, Alternatives>,
}

impl Texts<'_> {
    /// The first alternative that can be said; the last says of missing numbers that they are missing.
    fn first_of(&self, alternatives: &[String]) -> Option<String> {
        let whole = alternatives.iter().find_map(|text| self.filled(text, None));
        whole.or_else(|| self.filled(alternatives.last()?, Some("nothing measured")))
    }

    fn filled(&self, template: &str, nothing: Option<&str>) -> Option<String> {
        let has = |name: &str| self.values.0.contains_key(name);
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, (name, behind))) =
            rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            text.push_str(before);
            match (name.strip_prefix('?'), name.strip_prefix('!')) {
                (Some(name), _) if !has(name) => return None,
                (_, Some(name)) if has(name) => return None,
                (None, None) => {
                    text.push_str(&self.said(name).or_else(|| nothing.map(str::to_owned))?);
                }
                _ => {}
            }
            rest = behind;
        }
        Some(text + rest)
    }

    fn said(&self, name: &str) -> Option<String> {
        if let Some((one, other)) = name.split_once(" over ") {
            return Some(times(self.number(one)?, self.number(other)?));
        }
        if let Some((one, other)) = name.split_once(" above ") {
            return Some(more(self.number(one)? - self.number(other)?));
        }
        Some(match self.values.0.get(name) {
            Some(Value::Time(ns)) => time(*ns),
            Some(Value::Percent(value)) => percent(*value),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Words(words)) => words.clone(),
            None => self.first_of(self.words.get(name)?.all())?,
        })
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.values.0.get(name)? {
            Value::Time(number) | Value::Percent(number) | Value::Number(number) => Some(*number),
            Value::Words(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::paper::MeasurementKind;

    use super::super::rows::row;
    use super::*;

    fn table(difference: &str, rows: Vec<PaperRow>, values: Values) -> PaperTable {
        let text = format!(
            "name = 'x'\ntitle = 'x'\nsource = 'x'\nwords = {{ shared = ['so {{b}}', 'so not'] }}\n\
             [[tables]]\nid = '1'\ntitle = 'x'\ndifference = {difference}\n\
             notes = ['{{?a}}with a', '{{!a}}without a']"
        );
        let paper = Paper::read(&text, |_| None).unwrap();
        paper.tables[0].with_rows(rows, values).table
    }

    fn rows() -> Vec<PaperRow> {
        let how = MeasurementKind::Measured;
        vec![
            row("a", "us", Some(2.0), how, Ok((8_000.0, 1))),
            row("b", "%", None, how, Ok((3.0, 1))),
        ]
    }

    #[test]
    fn sentences_say_what_there_is() {
        let said = |difference: &str| table(difference, rows(), Values::default()).difference;
        assert_eq!(said("['a is {a} of {b}.']"), "A is 8.00 us of 3.00 %.");
        assert_eq!(said("['{a over a@paper}, {a above a@paper}']"), "4.00 times, 6.00 us more");
        assert_eq!(said("[['{c}', 'no c.'], '; {shared}.']"), "No c; so 3.00 %.");
        assert_eq!(said("[['{?c}c', '{!a}no a'], 'only {c}']"), "Only nothing measured");
        assert_eq!(said("['; alone.', ['{c}', '']]"), "Alone.");
        assert_eq!(table("['{shared}']", Vec::new(), Values::default()).difference, "So not");
        assert_eq!(table("[]", rows(), Values::default()).notes, ["with a"]);
        assert_eq!(table("[]", Vec::new(), Values::default()).notes, ["without a"]);
        let given = Values::default().with("n", 12_u64).with_if("is", true).with_if("not", false);
        assert_eq!(table("['{?is}{!not}{n} of them']", Vec::new(), given).difference, "12 of them");
    }
}
