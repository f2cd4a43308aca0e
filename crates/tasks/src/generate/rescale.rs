//! Numbers with a fixed sum and bounds of their own: the Dirichlet-rescale algorithm (Griffin, Bate
//! and Davis, RTSS 2020).
//!
//! Owns: the rescaling. Must not: claim more than its authors do: they have found since that with
//! uneven bounds the values are not always uniform. `uunifast-discard` with the same bounds is, where
//! it finds a set.
//!
//! A point is drawn from the flat Dirichlet distribution. The numbers above their bounds all lie in a
//! corner of the simplex that looks like the whole of it; the corner is stretched to the whole, again
//! and again, until no number is above its bound.

use hourglass_documents::random::Stream;

/// Rescalings of one point: each uses up some of the digits with which it began.
const MOST_RESCALINGS: u32 = 10_000;

/// Points begun with; by then something is wrong that no further point mends.
const MOST_STARTS: u32 = 100;

/// A number with less room than this share of the sum is drawn uniformly from its room: rescaling
/// would take too many steps. Its true density changes by less than the number of tasks times this.
const LEAST_ROOM: f64 = 1e-3;

/// A corner smaller than this share of the simplex has too few digits left.
const LEAST_CORNER: f64 = 1e-9;

/// As many numbers as bounds, each from 0 to its bound, whose sum is `total`. The bounds are finite,
/// not negative, and have at least this sum. `None` if every point was used up.
pub(super) fn rescaled(total: f64, bounds: &[f64], stream: &mut Stream) -> Option<Vec<f64>> {
    let room: f64 = bounds.iter().sum();
    // The rest of the bounds has the same shape; the smaller simplex has fewer corners to cut.
    let mirrored = room - total < total;
    let sum = if mirrored { (room - total).max(0.0) } else { total };
    if sum <= 0.0 {
        return Some(if mirrored { bounds.to_vec() } else { vec![0.0; bounds.len()] });
    }
    let drawn = split(sum, bounds, stream)?;
    Some(if mirrored {
        bounds.iter().zip(drawn).map(|(bound, value)| (bound - value).max(0.0)).collect()
    } else {
        drawn
    })
}

/// Draws numbers with hardly any room by themselves, the others by rescaling.
fn split(sum: f64, bounds: &[f64], stream: &mut Stream) -> Option<Vec<f64>> {
    let tight = |bound: f64| bound < sum * LEAST_ROOM;
    let (mut rest, mut room) = (sum, bounds.iter().sum::<f64>());
    let mut drawn = vec![0.0; bounds.len()];
    for (value, bound) in drawn.iter_mut().zip(bounds).filter(|(_, bound)| tight(**bound)) {
        room -= bound;
        let (low, high) = ((rest - room).clamp(0.0, *bound), bound.min(rest));
        *value = low + (high - low).max(0.0) * stream.share();
        rest = (rest - *value).max(0.0);
    }
    let wide: Vec<usize> = (0..bounds.len()).filter(|at| !tight(bounds[*at])).collect();
    let limits: Vec<f64> = wide.iter().map(|at| bounds[*at]).collect();
    let others = (0..MOST_STARTS).find_map(|_| one_start(rest, &limits, stream))?;
    for (at, value) in wide.into_iter().zip(others) {
        drawn[at] = value;
    }
    Some(drawn)
}

fn one_start(sum: f64, bounds: &[f64], stream: &mut Stream) -> Option<Vec<f64>> {
    let mut values = dirichlet(sum, bounds.len(), stream);
    for _ in 0..MOST_RESCALINGS {
        let cut: f64 =
            values.iter().zip(bounds).filter(|(v, bound)| v > bound).map(|(_, bound)| bound).sum();
        if values.iter().zip(bounds).all(|(value, bound)| value <= bound) {
            return Some(values);
        }
        let corner = sum - cut;
        if corner < sum * LEAST_CORNER {
            return None;
        }
        for (value, bound) in values.iter_mut().zip(bounds) {
            if *value > *bound {
                *value -= bound;
            }
            *value *= sum / corner;
        }
    }
    None
}

/// A point of the flat Dirichlet distribution, times `sum`: each number is its share of as many
/// exponentially distributed ones.
pub(super) fn dirichlet(sum: f64, n: usize, stream: &mut Stream) -> Vec<f64> {
    let drawn: Vec<f64> = (0..n).map(|_| -stream.share().ln()).collect();
    let all: f64 = drawn.iter().sum();
    if all <= 0.0 {
        // Every share was exactly 1: once in 2^53 draws, of one number.
        return vec![sum / n as f64; n];
    }
    drawn.into_iter().map(|value| value * sum / all).collect()
}
