//! The document `hourglass.bench/1`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use hourglass_lab::host::HostReader;
use hourglass_model::host::Host;
use serde::Serialize;

/// A suite's results with the machine they were measured on.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    schema: &'static str,
    name: &'static str,
    hourglass: &'static str,
    rounds: u32,
    rows: Vec<Row>,
    host: Host,
}

/// One figure.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) case: String,
    /// Whose figure: `hourglass`, a variant, or a peer.
    pub(crate) subject: String,
    /// Median over the rounds.
    pub(crate) value: f64,
    /// Unit of `value`.
    pub(crate) unit: &'static str,
    /// Median of the ratios to a peer measured in the same round.
    pub(crate) ratio_to: BTreeMap<String, f64>,
}

impl Row {
    /// A figure without a peer.
    pub(crate) fn alone(case: &str, subject: &str, value: f64, unit: &'static str) -> Row {
        Row {
            case: case.to_owned(),
            subject: subject.to_owned(),
            value,
            unit,
            ratio_to: BTreeMap::new(),
        }
    }
}

impl Document {
    /// A document about this machine.
    pub(crate) fn new(name: &'static str, rounds: u32, rows: Vec<Row>) -> Document {
        Document {
            schema: "hourglass.bench/1",
            name,
            hourglass: env!("CARGO_PKG_VERSION"),
            rounds,
            rows,
            host: HostReader::new(Path::new("/")).read(),
        }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24} {:<20} {:>14} {:<6} ratio", "case", "subject", "value", "unit")?;
        for row in &self.rows {
            write!(f, "{:<24} {:<20} {:>14.2} {:<6}", row.case, row.subject, row.value, row.unit)?;
            for (peer, ratio) in &row.ratio_to {
                write!(f, " {ratio:.3} of {peer}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
