//! Arrival curves: the shortest time in which so many activations come.

/// Up to this number of activations each distance is computed; beyond, in steps of a part in [`PART`].
const SINGLE: usize = 256;
const PART: usize = 50;
/// Activations of a burst, at most.
const LONGEST_BURST: usize = 16;
/// Arrivals are sporadic where no number of them comes more than this often as slowly as the closest two do.
const BURSTY: u64 = 2;

/// The shortest time from the first to the last of `number` activations in a row, by its number, ascending.
pub(super) type Distances = Vec<(usize, u64)>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Curve {
    /// From the first to the 2nd, 3rd, 4th activation.
    pub(super) arrivals_ns: Vec<u64>,
    /// From there to each further one.
    pub(super) period_ns: u64,
}

/// Distances within each of `stretches`, ascending times without a hole.
pub(super) fn distances(stretches: &[Vec<i64>]) -> Distances {
    let most = stretches.iter().map(Vec::len).max().unwrap_or(0);
    let mut found = Vec::new();
    let mut number = 2;
    while number <= most {
        let windows = stretches.iter().flat_map(|times| times.windows(number));
        let length = |window: &[i64]| match window {
            [first, .., last] => super::activity::length(*first, *last),
            _ => 0,
        };
        found.extend(windows.map(length).min().map(|shortest| (number, shortest)));
        number += 1 + if number < SINGLE { 0 } else { number / PART };
    }
    found
}

/// Whether the shortest distance of two says all.
pub(super) fn is_sporadic(distances: &Distances) -> bool {
    let Some((_, closest)) = distances.first() else { return false };
    let short = distances.iter().take_while(|(number, _)| *number <= LONGEST_BURST);
    short.into_iter().all(|(number, length)| {
        *length <= closest.saturating_mul(*number as u64 - 1).saturating_mul(BURSTY)
    })
}

/// The curve of bursts with the longest period, of these with the shortest burst.
pub(super) fn curve(distances: &Distances) -> Option<Curve> {
    let short = distances.iter().take_while(|(number, _)| *number <= LONGEST_BURST);
    let mut best: Option<(usize, u64)> = None;
    for (burst, length) in short {
        let Some(period) = period_beyond(distances, *burst, *length) else { continue };
        // A longer burst has to be worth it.
        if best.is_none_or(|(_, known)| period > known.saturating_add(known / PART as u64)) {
            best = Some((*burst, period));
        }
    }
    let (burst, period_ns) = best.filter(|(_, period)| *period > 0)?;
    let arrivals = distances.iter().take_while(|(number, _)| *number <= burst);
    Some(Curve { arrivals_ns: arrivals.map(|(_, length)| *length).collect(), period_ns })
}

fn period_beyond(distances: &Distances, burst: usize, length: u64) -> Option<u64> {
    let beyond = distances.iter().enumerate().filter(|(_, (number, _))| *number > burst);
    let per_activation = beyond.map(|(place, (number, far))| {
        // What lies between two numbers is not shorter than the lower one.
        let most = distances.get(place + 1).map_or(*number, |(next, _)| next - 1);
        far.saturating_sub(length) / (most - burst) as u64
    });
    per_activation.min()
}
