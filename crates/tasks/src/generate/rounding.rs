//! Execution times from utilisations and periods, whose exact sum is not over what was asked for.
//!
//! Owns: rounding down, and giving back what the least execution time took too much. Must not: decide
//! anything in floating point but the first guess.

use super::millionths::Millionths;

/// Execution times in nanoseconds: multiples of `granule`, at least one, so that the exact sum of
/// cost / period is at most `total`, and by less than (n + 2) granules of the shortest period
/// below it. `None` if granules alone are too much. `granule` is above zero; no period is shorter.
pub(super) fn costs(
    utilisations: &[f64],
    periods: &[u64],
    granule: u64,
    total: Millionths,
) -> Option<Vec<u64>> {
    let pairs = utilisations.iter().zip(periods);
    let guess = |(share, period): (&f64, &u64)| {
        let most = period / granule;
        // A float that is negative or too large for the integer becomes its nearest end.
        let granules = (share * *period as f64 / granule as f64).floor() as u64;
        granules.clamp(1, most.max(1)) * granule
    };
    let mut costs: Vec<u64> = pairs.map(guess).collect();
    let limit = (u128::from(total.count()) << 64) / u128::from(Millionths::PER_ONE);
    // Each pass but the last empties a task down to a granule, or is followed by one that takes
    // the granule which rounding left.
    for _ in 0..2 * costs.len() + 2 {
        let Some(excess) = used(&costs, periods).checked_sub(limit).filter(|over| *over > 0) else {
            return Some(costs);
        };
        let largest = (0..costs.len())
            .filter(|at| costs[*at] > granule)
            .max_by_key(|at| share_ceil(costs[*at], periods[*at]))?;
        let spare = costs[largest] / granule - 1;
        let needed = excess
            .checked_mul(u128::from(periods[largest]))
            .map(|time| (time >> 64) / u128::from(granule) + 1)
            .and_then(|granules| u64::try_from(granules).ok());
        costs[largest] -= granule * needed.unwrap_or(spare).min(spare);
    }
    None
}

/// The sum of the shares, each rounded up to 64 binary digits behind the point.
fn used(costs: &[u64], periods: &[u64]) -> u128 {
    costs.iter().zip(periods).map(|(cost, period)| share_ceil(*cost, *period)).sum()
}

fn share_ceil(cost: u64, period: u64) -> u128 {
    (u128::from(cost) << 64).div_ceil(u128::from(period.max(1)))
}

/// What a guess may be short of a whole nanosecond by the rounding of floats.
const NUDGE: f64 = 1e-12;

/// Execution times in the proportions of these `(cost, period)`, in nanoseconds, so that the exact sum
/// of cost / period is at most `total`, and short of it only by rounding down. A cost is no more
/// than a nanosecond over its period, which says that it does not fit there. `None` if there is no
/// task, or a nanosecond for each is too much.
#[must_use]
pub fn scaled_costs(tasks: &[(u64, u64)], total: Millionths) -> Option<Vec<u64>> {
    let share = |(cost, period): &(u64, u64)| *cost as f64 / (*period).max(1) as f64;
    let now: f64 = tasks.iter().map(share).sum();
    if now <= 0.0 {
        return None;
    }
    let factor = total.as_f64() / now * (1.0 + NUDGE);
    let shares: Vec<f64> = tasks.iter().map(|task| share(task) * factor).collect();
    let periods: Vec<u64> = tasks.iter().map(|(_, period)| *period).collect();
    // Over a whole period and more than rounding: it does not fit.
    if shares.iter().any(|share| *share > 1.0 + 2.0 * NUDGE) {
        let costs = shares.iter().zip(&periods).map(|(share, period)| {
            if *share > 1.0 { period.saturating_add(1) } else { (share * *period as f64) as u64 }
        });
        return Some(costs.map(|cost| cost.max(1)).collect());
    }
    costs(&shares, &periods, 1, total)
}
