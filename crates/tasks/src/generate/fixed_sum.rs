//! Numbers from 0 to 1 with a fixed sum: Stafford's Randfixedsum (2006), as Emberson, Stafford and
//! Davis (WATERS 2010) use it.
//!
//! Owns: the table of transitions, and drawing by it. Must not: know bounds other than 0 and 1; the
//! caller scales.
//!
//! The points of the unit cube with this sum are cut into simplices of as many kinds as there are
//! whole numbers about the sum. The table says how likely each is, from its volume; then a point of it
//! is drawn, dimension by dimension.

use hourglass_documents::random::Stream;

/// Draws `n` numbers from 0 to 1 whose sum is `sum`, uniformly among all that have it.
#[derive(Clone, Debug)]
pub(super) struct FixedSum {
    n: usize,
    sum: f64,
    /// The start of the walk through the table.
    start: usize,
    /// Row `i - 2` has, for `i` dimensions, the probability of staying in each kind of simplex.
    transitions: Vec<Vec<f64>>,
}

impl FixedSum {
    /// A table for sums of `n` numbers; a sum outside 0 to `n` is taken as the nearer end.
    pub(super) fn new(n: usize, sum: f64) -> FixedSum {
        let sum = sum.clamp(0.0, n as f64);
        let start = (sum.floor() as usize).min(n.saturating_sub(1));
        // How far the sum lies above each lower corner, and below each upper one.
        let above: Vec<f64> = (0..n).map(|i| sum - (start as f64 - i as f64)).collect();
        let below: Vec<f64> = (0..n).map(|i| (start as f64 + (n - i) as f64) - sum).collect();
        let mut volumes = vec![0.0; n + 1];
        if n > 0 {
            volumes[1] = 1.0;
        }
        let mut transitions = Vec::with_capacity(n.saturating_sub(1));
        for dimensions in 2..=n {
            let mut next = vec![0.0; n + 1];
            let mut row = vec![0.0; dimensions];
            for kind in 0..dimensions {
                let (over, under) = (above[kind], below[n - dimensions + kind]);
                let from_same = volumes[kind + 1] * over / dimensions as f64;
                let from_less = volumes[kind] * under / dimensions as f64;
                next[kind + 1] = from_same + from_less;
                row[kind] = share(from_less, from_same, under > over);
            }
            // Only ratios count; without this, volumes of many dimensions would vanish.
            let largest = next.iter().copied().fold(0.0, f64::max);
            if largest > 0.0 {
                next.iter_mut().for_each(|volume| *volume /= largest);
            }
            volumes = next;
            transitions.push(row);
        }
        FixedSum { n, sum, start, transitions }
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let mut values = Vec::with_capacity(self.n);
        let (mut rest, mut kind) = (self.sum, self.start);
        let (mut shift, mut scale) = (0.0, 1.0);
        for left in (1..self.n).rev() {
            let stays = self.transitions[left - 1].get(kind).copied().unwrap_or(0.0);
            let up = stream.share() <= stays;
            let coordinate = stream.share().powf(1.0 / left as f64);
            shift += (1.0 - coordinate) * scale * rest / (left + 1) as f64;
            scale *= coordinate;
            let step = if up { 1.0 } else { 0.0 };
            values.push((shift + scale * step).clamp(0.0, 1.0));
            rest -= step;
            kind = kind.saturating_sub(usize::from(up));
        }
        if self.n > 0 {
            values.push((shift + scale * rest).clamp(0.0, 1.0));
        }
        stream.shuffle(&mut values);
        values
    }
}

/// `part` of the whole, computed from the smaller share.
fn share(part: f64, other: f64, part_is_smaller: bool) -> f64 {
    // The least positive number keeps kinds that cannot be from dividing by nothing.
    let whole = part + other + f64::MIN_POSITIVE;
    if part_is_smaller { part / whole } else { 1.0 - other / whole }
}
