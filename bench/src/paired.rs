//! Interleaved comparison: on shared machines only figures of the same moment can be compared.

use std::collections::BTreeMap;

use crate::document::Row;

/// Runs `ours` and `peer` in turn, changing who goes first, and compares round by round.
pub(crate) fn compare(
    case: &str,
    unit: &'static str,
    rounds: u32,
    peer_name: &str,
    mut ours: impl FnMut() -> f64,
    mut peer: impl FnMut() -> f64,
) -> [Row; 2] {
    let (mut our_values, mut peer_values, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (our, their) = if round % 2 == 0 {
            let our = ours();
            (our, peer())
        } else {
            let their = peer();
            (ours(), their)
        };
        our_values.push(our);
        peer_values.push(their);
        ratios.push(our / their);
    }
    let ratio_to = BTreeMap::from([(peer_name.to_owned(), median(&mut ratios))]);
    [
        Row { ratio_to, ..Row::alone(case, "hourglass", median(&mut our_values), unit) },
        Row::alone(case, peer_name, median(&mut peer_values), unit),
    ]
}

/// The middle value; 0 of none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
