//! Interleaved comparison: on shared machines only figures of the same moment can be compared.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::document::Row;

/// Runs `ours` and `peer` in turn, changing who goes first, and compares round by round.
pub(crate) fn compare(
    case: &str,
    unit: &'static str,
    rounds: u32,
    peer_name: &'static str,
    mut ours: impl FnMut() -> f64,
    mut peer: impl FnMut() -> f64,
) -> Vec<Row> {
    let mut found = Rounds::of(vec!["hourglass", peer_name]);
    for _ in 0..rounds {
        found.round(|subject| if subject == 0 { ours() } else { peer() });
    }
    found.rows(case, unit)
}

#[derive(Debug)]
pub(crate) struct Rounds {
    subjects: Vec<&'static str>,
    /// One list a subject, one value a round.
    values: Vec<Vec<f64>>,
}

impl Rounds {
    pub(crate) fn of(subjects: Vec<&'static str>) -> Rounds {
        let values = vec![Vec::new(); subjects.len()];
        Rounds { subjects, values }
    }

    /// Measures every subject once, by its place in the list. Another one begins each time.
    pub(crate) fn round(&mut self, mut measure: impl FnMut(usize) -> f64) {
        let Ok(()) = self.try_round(|subject| Ok::<f64, Infallible>(measure(subject)));
    }

    /// The same where measuring may fail; no rows may be made of what is left then.
    ///
    /// # Errors
    /// Those of `measure`.
    pub(crate) fn try_round<E>(
        &mut self,
        mut measure: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<(), E> {
        let begun = self.values.first().map_or(0, Vec::len);
        let count = self.subjects.len();
        for place in 0..count {
            let subject = (begun + place) % count;
            let value = measure(subject)?;
            self.values[subject].push(value);
        }
        Ok(())
    }

    /// A row a subject: the median, and for ours the medians of the ratios to every peer in the
    /// same round. Ours are called `hourglass`, or begin with `hourglass/`.
    pub(crate) fn rows(&self, case: &str, unit: &'static str) -> Vec<Row> {
        let row = |(subject, values): (&&'static str, &Vec<f64>)| Row {
            ratio_to: if is_ours(subject) { self.ratios(values) } else { BTreeMap::new() },
            ..Row::alone(case, subject, median(&mut values.clone()), unit)
        };
        self.subjects.iter().zip(&self.values).map(row).collect()
    }

    fn ratios(&self, ours: &[f64]) -> BTreeMap<String, f64> {
        let peers = self.subjects.iter().zip(&self.values).filter(|(name, _)| !is_ours(name));
        let ratio = |(name, theirs): (&&'static str, &Vec<f64>)| {
            let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
            ((*name).to_owned(), median(&mut ratios))
        };
        peers.map(ratio).collect()
    }
}

fn is_ours(subject: &str) -> bool {
    subject == "hourglass" || subject.starts_with("hourglass/")
}

/// The middle value; 0 of none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that is twice as slow in every second round: medians of all would be compared
    /// across rounds, ratios are not.
    #[test]
    fn ratios_are_paired_within_a_round() {
        let mut found = Rounds::of(vec!["hourglass", "hourglass/slow", "peer"]);
        for round in 0..9u32 {
            let load = if round % 2 == 0 { 1.0 } else { 100.0 };
            found.round(|subject| [3.0, 6.0, 2.0][subject] * load);
        }
        let rows = found.rows("now", "ns");
        let ratio = |row: &Row| row.ratio_to.get("peer").copied();
        assert_eq!(rows.iter().map(ratio).collect::<Vec<_>>(), [Some(1.5), Some(3.0), None]);
        assert_eq!(rows[0].ratio_to.len(), 1, "a variant of ours is no peer");
        assert_eq!(rows[2].value, 2.0);
    }

    #[test]
    fn everybody_begins_once() {
        let mut found = Rounds::of(vec!["hourglass", "a", "b"]);
        let mut begun = Vec::new();
        for _ in 0..3 {
            let mut first = None;
            found.round(|subject| {
                first.get_or_insert(subject);
                1.0
            });
            begun.extend(first);
        }
        assert_eq!(begun, [0, 1, 2]);
    }
}
