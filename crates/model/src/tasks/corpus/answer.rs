//! Answers of cases, and when two of them agree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Case;

/// Answers by name, such as `r` or `schedulable`.
pub type Answers = BTreeMap<String, Answer>;

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// There is no bound.
    None,
    /// Yes or no.
    Yes(bool),
    /// A whole number.
    Whole(i64),
    /// A decimal number.
    Decimal(f64),
    /// A text, also a fraction or a decimal number.
    Text(String),
    /// One answer for each task, job or step.
    List(Vec<Answer>),
    /// One answer for each point, which is the key.
    Points(BTreeMap<String, Answer>),
}

/// Decimal numbers agree to six places.
const PLACES: f64 = 0.5e-6;

/// Answers whose name ends in `_near` agree within this.
const NEAR: f64 = 0.02;

impl Answer {
    /// The number that the answer is, if it is one; good for comparing, not for a verdict.
    fn decimal(&self) -> Option<f64> {
        match self {
            Answer::Whole(number) => Some(*number as f64),
            Answer::Decimal(number) => Some(*number),
            Answer::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn agrees(&self, got: &Answer, tolerance: f64) -> bool {
        match (self, got) {
            (Answer::List(a), Answer::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b, tolerance))
            }
            (Answer::Points(a), Answer::Points(b)) => {
                let same = |(a, b): ((&String, &Answer), (&String, &Answer))| {
                    a.0 == b.0 && a.1.agrees(b.1, tolerance)
                };
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            (Answer::Whole(a), Answer::Whole(b)) if tolerance < NEAR => a == b,
            _ if self == got => true,
            _ => match (self.decimal(), got.decimal()) {
                (Some(a), Some(b)) => (a - b).abs() <= tolerance,
                _ => false,
            },
        }
    }
}

impl Case {
    /// The names of answers that `got` lacks or has different, in alphabetical order. Whole
    /// numbers, verdicts and fractions must be equal, decimal numbers to six places, those whose
    /// name ends in `_near` to 0.02.
    #[must_use]
    pub fn disagreements(&self, got: &Answers) -> Vec<&str> {
        let differs = |(name, expected): &(&String, &Answer)| {
            let tolerance = if name.ends_with("_near") { NEAR } else { PLACES };
            got.get(*name).is_none_or(|got| !expected.agrees(got, tolerance))
        };
        self.expect.iter().filter(differs).map(|(name, _)| name.as_str()).collect()
    }
}
