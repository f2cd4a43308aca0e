//! The document `hourglass.bench/1`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use hourglass_documents::host::Host;
use hourglass_machine::HostReader;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct Document {
    schema: &'static str,
    name: &'static str,
    hourglass: &'static str,
    rounds: u32,
    #[serde(flatten)]
    conditions: SuiteConditions,
    rows: Vec<Row>,
    host: Host,
}

#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) conditions: SuiteConditions,
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct SuiteConditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<&'static str>,
    /// The CPU that reads were timed on; none if it could not be held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comparisons: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    /// Whose figure: `hourglass`, a variant, or a peer.
    pub(crate) subject: String,
    /// Median over the rounds.
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// Median of the ratios to a peer measured in the same round.
    pub(crate) ratio_to: BTreeMap<String, f64>,
    /// What it is meant to be. A figure, not a verdict: nothing fails if it is missed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) goals: Vec<Threshold>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Threshold {
    /// The peer to whose figure the ratio is meant; none if the value itself.
    pub(crate) ratio_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_least: Option<f64>,
    pub(crate) met: bool,
}

impl Row {
    pub(crate) fn alone(case: &str, subject: &str, value: f64, unit: &'static str) -> Row {
        Row {
            case: case.to_owned(),
            subject: subject.to_owned(),
            value,
            unit,
            ratio_to: BTreeMap::new(),
            goals: Vec::new(),
        }
    }

    pub(crate) fn at_most(mut self, limit: f64) -> Row {
        let met = self.value <= limit;
        self.goals.push(Threshold { ratio_to: None, at_most: Some(limit), at_least: None, met });
        self
    }

    pub(crate) fn at_least(mut self, limit: f64) -> Row {
        let met = self.value >= limit;
        self.goals.push(Threshold { ratio_to: None, at_most: None, at_least: Some(limit), met });
        self
    }

    pub(crate) fn set_goal(&mut self, peer: &str, limit: f64) {
        if let Some(ratio) = self.ratio_to.get(peer) {
            let met = *ratio <= limit;
            let (ratio_to, at_most) = (Some(peer.to_owned()), Some(limit));
            self.goals.push(Threshold { ratio_to, at_most, at_least: None, met });
        }
    }
}

impl Document {
    pub(crate) fn new(name: &'static str, rounds: u32, found: Findings) -> Document {
        Document {
            schema: "hourglass.bench/1",
            name,
            hourglass: env!("CARGO_PKG_VERSION"),
            rounds,
            conditions: found.conditions,
            rows: found.rows,
            host: HostReader::new(Path::new("/")).read(),
        }
    }
}

const WIDTH: usize = 80;
const INDENT: usize = 29;

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", wrapped(&self.conditions.items(), 0))?;
        writeln!(f, "{:<28} {:<22} {:>14} unit", "case", "subject", "value")?;
        self.rows.iter().try_for_each(|row| row.fmt(f))
    }
}

impl SuiteConditions {
    fn items(&self) -> Vec<String> {
        let mut items = vec!["medians over the rounds".to_owned()];
        items.extend(self.source.map(|source| format!("our source {source}")));
        items.extend(self.cpu.map(|cpu| format!("reads on CPU {cpu}")));
        items.extend(self.processes.map(|count| format!("{count} fresh processes")));
        items.extend(self.seconds.map(|seconds| format!("clocks compared for {seconds} s")));
        items.extend(self.comparisons.map(|count| format!("{count} comparisons")));
        items
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = if self.unit == "count" { 0 } else { 2 };
        let Row { case, subject, value, unit, .. } = self;
        writeln!(f, "{case:<28} {subject:<22} {value:>14.decimals$} {unit}")?;
        let ratios = self.ratio_to.iter().map(|(peer, ratio)| format!("{ratio:.3} of {peer}"));
        let ratios: Vec<String> = ratios.collect();
        if !ratios.is_empty() {
            writeln!(f, "{}", wrapped(&ratios, INDENT))?;
        }
        for goal in &self.goals {
            let of = match &goal.ratio_to {
                Some(peer) => format!(" of {peer}"),
                None if *unit == "count" => String::new(),
                None => format!(" {unit}"),
            };
            let met = if goal.met { "met" } else { "NOT met" };
            for (side, limit) in [("most", goal.at_most), ("least", goal.at_least)] {
                if let Some(limit) = limit {
                    writeln!(f, "{:INDENT$}goal: at {side} {limit}{of}: {met}", "")?;
                }
            }
        }
        Ok(())
    }
}

fn wrapped(items: &[String], indent: usize) -> String {
    let mut text = " ".repeat(indent);
    let mut column = indent;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
            // The item, a space before and perhaps a comma behind it.
            if column + 1 + item.len() + 2 > WIDTH {
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                column = indent;
            } else {
                text.push(' ');
                column += 2;
            }
        }
        text.push_str(item);
        column += item.len();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let peers = ["rdtsc", "vdso", "std", "quanta", "quanta_raw", "minstant", "fastant"];
        let ratio_to = peers.iter().map(|peer| ((*peer).to_owned(), 1.25)).collect();
        let mut row = Row { ratio_to, ..Row::alone("now", "hourglass/with_source", 12.5, "ns") };
        row.set_goal("rdtsc", 1.25);
        row.set_goal("vdso", 0.6);
        row.set_goal("nobody", 1.0);
        row
    }

    fn document() -> Document {
        let conditions = SuiteConditions {
            source: Some("tsc"),
            cpu: Some(1),
            processes: Some(100),
            seconds: Some(60),
            comparisons: Some(12_345_678_901),
        };
        let count = Row::alone(
            "first_value/same_process/max",
            "hourglass/failed_over",
            2_000_000.0,
            "count",
        );
        let rows = vec![row(), count.at_most(0.0)];
        Document::new("clock", 15, Findings { conditions, rows })
    }

    #[test]
    fn the_document_has_the_keys_of_the_contract() {
        let json = serde_json::to_value(document()).unwrap();
        assert_eq!(json["schema"], "hourglass.bench/1");
        assert_eq!((json["seconds"].as_u64(), json["source"].as_str()), (Some(60), Some("tsc")));
        let row = &json["rows"][0];
        for key in ["case", "subject", "value", "unit", "ratio_to"] {
            assert!(!row[key].is_null(), "{key}");
        }
        assert_eq!(row["ratio_to"]["quanta"], 1.25);
        let met = |goal: usize| row["goals"][goal]["met"].as_bool();
        assert_eq!((met(0), met(1), met(2)), (Some(true), Some(false), None));
        assert!(json["rows"][1]["goals"][0]["ratio_to"].is_null());
    }

    #[test]
    fn suites_that_compare_no_clocks_do_not_say_so() {
        let document = Document::new("workload", 1, Findings::default());
        let json = serde_json::to_value(document).unwrap();
        assert!(json.get("seconds").is_none() && json.get("source").is_none());
    }

    #[test]
    fn the_text_fits_a_terminal_and_says_which_goals_are_missed() {
        let text = document().to_string();
        for line in text.lines() {
            assert!(line.len() <= WIDTH, "{} columns: {line}", line.len());
        }
        assert!(text.contains("goal: at most 1.25 of rdtsc: met\n"), "{text}");
        assert!(text.contains("goal: at most 0.6 of vdso: NOT met\n"), "{text}");
        assert!(text.contains("goal: at most 0: NOT met\n"), "{text}");
    }
}
