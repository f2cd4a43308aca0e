//! The period of activations: the numbers of the periods by least squares, then the narrowest strip that holds all but
//! the few that are far later.
//!
//! A mean of distances would carry the jitter of the first and the last one, and count periods without a job.

/// With fewer activations no law is stated.
pub(super) const FEWEST: usize = 20;
const ROUNDS: usize = 16;
/// Places from which the periods may be numbered where not all are near their steps.
const STARTS: usize = 100;
/// Round periods are tried first, in these units, ns.
const UNITS: [i128; 6] = [1_000_000, 100_000, 10_000, 1_000, 100, 10];
/// A round period may widen the strip by this, ns, and by a part in `WIDER` of it up to `WIDEST_NS`.
const WIDER_NS: i128 = 1_000;
const WIDER: i128 = 10;
const WIDEST_NS: i128 = 9_000;
/// A period this near to a round one, by a part of the unit, is that one if the strip widens by its own jitter at most.
const NEAR: i128 = 10_000;
/// One release in this number may be far later than all others: by the width of these and this, ns.
pub(super) const RARE: usize = 100;
/// One in this number where no law has so few: a busy host holds up its guests in stretches.
const OFTEN: usize = 20;
const FAR_NS: i128 = 20_000;
/// Where fewer than half of the periods have a job, the jitter is this part of the period at most.
const SPARSE: i128 = 8;
/// Releases near a grid differ from those that drift by their spread over that of their steps: at most a part in
/// `SPREAD_PART` of their number, and of `MOST`. Up to `MANY` their jitter may show it too.
const SPREAD_PART: i128 = 80;
const MOST: i128 = 960;
const MANY: i128 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodFit {
    /// ns, as all times here.
    pub period_ns: u64,
    /// Of all releases.
    pub jitter_ns: u64,
    /// The jitter without the late releases.
    pub usual_ns: u64,
    /// Number of releases far later than all others, one in twenty at most.
    pub late: u64,
    /// The earliest release in the period of the first activation.
    pub offset_ns: i64,
    pub skipped: u64,
    /// Whether the first activation is in the period of the second, and left out: a thread that begins may be woken before its
    /// first job.
    pub has_early: bool,
}

/// A number as a fraction; the lower part is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio(i128, i128);

/// A number of a period, and the time of its activation.
type Point = (i128, i128);

/// The period that explains all of `times`, ascending; `None` without one.
pub fn fit(times: &[i64]) -> Option<PeriodFit> {
    if times.len() < FEWEST {
        return None;
    }
    let mut distances: Vec<i64> =
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    distances.sort_unstable();
    let at = |percent: usize| distances.get(distances.len().saturating_mul(percent) / 100).copied();
    let guesses = [at(50), at(25), at(10), at(75)];
    let guesses = guesses.into_iter().flatten().filter(|guess| *guess > 0).map(i128::from);
    let relative = |fit: &PeriodFit| {
        u128::from(fit.usual_ns).saturating_mul(1 << 20) / u128::from(fit.period_ns.max(1))
    };
    let first = i128::from(*times.first()?);
    let best = |numbered: &dyn Fn(&[i64], i128) -> Option<Numbered>, rare| {
        let found = guesses.clone().filter_map(|guess| numbered(times, guess));
        found.filter_map(|numbered| on_line(numbered, first, rare)).min_by_key(relative)
    };
    let start = steadiest(times);
    let from_start = |times: &[i64], guess| by_doubling(times, guess, start);
    let law = |rare| best(&by_steps, rare).or_else(|| best(&from_start, rare));
    law(RARE).or_else(|| law(OFTEN))
}

/// The place of the few activations in a row whose distances differ least.
fn steadiest(times: &[i64]) -> usize {
    let distance = |pair: &[i64]| pair[1].saturating_sub(pair[0]);
    let spread = |times: &[i64]| {
        let distances = || times.windows(2).map(distance);
        distances().max().unwrap_or(0).saturating_sub(distances().min().unwrap_or(0))
    };
    let chunks = times.chunks_exact(FEWEST).take(STARTS).enumerate();
    chunks.min_by_key(|(_, times)| spread(times)).map_or(0, |(chunk, _)| chunk * FEWEST)
}

/// A slope, and the intercept over its lower part.
type Line = (Ratio, i128);

/// Activations with the numbers of their periods, and the line through them.
type Numbered = (Vec<Point>, Line);

/// The numbers of periods from one activation to the next, as many as fit into all of `times`.
fn by_steps(times: &[i64], guess: i128) -> Option<Numbered> {
    let mut points = steps(times, guess)?;
    let line = settled(&mut points)?;
    Some((points, line))
}

/// The numbers of periods by a line through those near `start`, of a few first, then of twice as many each time: several steps
/// that are late one after the other move none behind them.
fn by_doubling(times: &[i64], guess: i128, start: usize) -> Option<Numbered> {
    let first = i128::from(*times.first()?);
    let mut end = start.checked_add(FEWEST)?;
    let mut points = steps(times.get(start..end)?, guess)?;
    let from = i128::from(*times.get(start)?) - first;
    points.iter_mut().for_each(|(_, at)| *at += from);
    let mut begin = start;
    let mut line = settled(&mut points)?;
    while points.len() < times.len() {
        let (slope, intercept) = line;
        let point = |time: &i64| {
            let at = i128::from(*time) - first;
            (rounded(at * slope.1 - intercept, slope.0), at)
        };
        let (left, right) = (begin - points.len().min(begin), times.len().min(end + points.len()));
        points.splice(0..0, times.get(left..begin)?.iter().map(point));
        points.extend(times.get(end..right)?.iter().map(point));
        (begin, end) = (left, right);
        line = settled(&mut points)?;
    }
    Some((points, line))
}

fn steps(times: &[i64], guess: i128) -> Option<Vec<Point>> {
    let first = i128::from(*times.first()?);
    let (mut number, mut before) = (0, 0);
    let point = |time: &i64| {
        let at = i128::from(*time) - first;
        number += rounded(at - before, guess);
        before = at;
        (number, at)
    };
    Some(times.iter().map(point).collect())
}

/// The line through points, each with the number of the period that it is nearest to on the line.
fn settled(points: &mut [Point]) -> Option<Line> {
    let mut line = least_squares(points)?;
    for _ in 0..ROUNDS {
        let (slope, intercept) = line;
        let mut is_stable = true;
        for (number, at) in &mut *points {
            // Both over the same lower part.
            let again = rounded(*at * slope.1 - intercept, slope.0);
            is_stable &= again == *number;
            *number = again;
        }
        if is_stable {
            break;
        }
        line = least_squares(points)?;
    }
    Some(line)
}

fn on_line((points, line): Numbered, first: i128, rare: usize) -> Option<PeriodFit> {
    let (mut all, has_early) = without_doubles(points);
    let points = usual(&mut all, line.0, rare)?;
    let slope = narrowest(&points)?;
    let width = |slope: Ratio| {
        let (low, high) = bounds(&points, slope);
        (high - low + slope.1 - 1) / slope.1
    };
    let jitter = width(slope);
    let round = |unit: &i128| {
        let period = Ratio(rounded(slope.0, slope.1 * unit) * unit, 1);
        let is_near = (period.0 * slope.1 - slope.0).abs() * NEAR <= unit * slope.1;
        let wider = if is_near { jitter } else { jitter / WIDER };
        let allowed = jitter + WIDEST_NS.min(wider) + WIDER_NS;
        (period.0 > 0 && width(period) <= allowed).then_some(period)
    };
    let (period, jitter) = match UNITS.iter().find_map(round) {
        Some(period) => (period.0, width(period)),
        // A shorter period with the same jitter allows for no fewer activations.
        None => (slope.0 / slope.1, jitter),
    };
    let skipped = all.last()?.0 - all.first()?.0 + 1 - i128::try_from(all.len()).ok()?;
    let (low, high) = bounds(&all, Ratio(period, 1));
    let offset = first + low + all.first()?.0 * period;
    // With enough empty periods and freedom everything has a grid.
    let is_dense = skipped <= i128::try_from(all.len()).ok()? || jitter * SPARSE <= period;
    let is_law = is_dense && jitter * 2 <= period && jitter_is_bounded(&points, period, jitter);
    is_law.then_some(PeriodFit {
        period_ns: u64::try_from(period).ok()?,
        jitter_ns: u64::try_from(high - low).ok()?,
        usual_ns: u64::try_from(jitter).ok()?,
        late: all.len().abs_diff(points.len()) as u64,
        offset_ns: i64::try_from(offset).ok()?,
        skipped: u64::try_from(skipped).ok()?,
        has_early,
    })
}

/// A release later than half a period is in its own one where the next one is in time.
fn without_doubles(mut points: Vec<Point>) -> (Vec<Point>, bool) {
    let has_early = points.len() > FEWEST && points[0].0 == points[1].0;
    if has_early {
        points.remove(0);
    }
    for place in 1..points.len() {
        if points[place - 1].0 == points[place].0 {
            points[place - 1].0 -= 1;
        }
    }
    (points, has_early)
}

/// The points without those, one in `rare` at most, that are far later than all others: a host or an interrupt held up
/// the timer. One that seems far too early is that of the period before, which has none else, if the first job lies before it:
/// that one may have begun with the thread, or with the record, unless the second is in its period. `None` where two are in one.
fn usual(points: &mut [Point], slope: Ratio, rare: usize) -> Option<Vec<Point>> {
    let rest = |point: &Point| point.1 * slope.1 - point.0 * slope.0;
    let mut rests: Vec<i128> = points.iter().map(rest).collect();
    rests.sort_unstable();
    let most = rests.len() - rests.len() / rare;
    let narrow = rests.windows(most).min_by_key(|window| window[most - 1] - window[0])?;
    let (low, high) = (*narrow.first()?, *narrow.last()?);
    let width = high - low + FAR_NS * slope.1;
    let mut before: Option<i128> = None;
    for place in 0..points.len() {
        let point = points[place];
        let is_free = match before {
            Some(before) => point.0 - 1 > before,
            None => points.get(1).is_some_and(|next| next.0 == point.0),
        };
        if is_free && rest(&point) < low - width {
            points[place].0 -= 1;
        }
        if before.is_some_and(|before| points[place].0 <= before) {
            return None;
        }
        before = Some(points[place].0);
    }
    let is_usual = |point: &&Point| (low - width..=high + width).contains(&rest(point));
    Some(points.iter().filter(is_usual).copied().collect())
}

/// Whether releases stay near a grid, rather than drift away from it step by step, as those of a thread that sleeps for
/// a length do. A step of a grid goes back: steps differ by twice the jitter, and have twice the variance of the
/// releases; of a drift the releases have about their number times that of the steps, over 15.
fn jitter_is_bounded(points: &[Point], period: i128, jitter: i128) -> bool {
    let step = |pair: &[Point]| pair[1].1 - pair[0].1 - (pair[1].0 - pair[0].0) * period;
    let steps = || points.windows(2).map(step);
    let number = points.len() as i128;
    let range = steps().max().unwrap_or(0) - steps().min().unwrap_or(0);
    if jitter <= WIDER_NS || number < MANY && jitter * 5 <= range * 4 {
        return true;
    }
    let rests = || points.iter().map(|point| point.1 - point.0 * period);
    let mean = rests().sum::<i128>() / number;
    let spread: i128 = rests().map(|rest| (rest - mean) * (rest - mean)).sum();
    let of_steps: i128 = steps().map(|step| step * step).sum();
    spread * SPREAD_PART <= of_steps * number.min(MOST)
}

fn rounded(number: i128, by: i128) -> i128 {
    (number * 2 + by).div_euclid(by * 2)
}

fn least_squares(points: &[Point]) -> Option<Line> {
    let count = i128::try_from(points.len()).ok()?;
    let sum = |of: fn(&Point) -> i128| points.iter().map(of).sum::<i128>();
    let (numbers, times) = (sum(|point| point.0), sum(|point| point.1));
    let squares = sum(|point| point.0 * point.0);
    let products = sum(|point| point.0 * point.1);
    let below = count.checked_mul(squares)?.checked_sub(numbers.checked_mul(numbers)?)?;
    let above = count.checked_mul(products)?.checked_sub(numbers.checked_mul(times)?)?;
    // Products of these with times must stay in range; whole picoseconds are enough.
    let scale = 1000;
    let slope = above.checked_mul(scale)?.checked_div(below)?;
    let intercept = (times.checked_mul(scale)? - slope.checked_mul(numbers)?).checked_div(count)?;
    (slope > 0).then_some((Ratio(slope, scale), intercept))
}

/// The least and the greatest distance of the points from a line through 0, over the lower part of its slope.
fn bounds(points: &[Point], slope: Ratio) -> (i128, i128) {
    let rest = |point: &Point| point.1 * slope.1 - point.0 * slope.0;
    let least = points.iter().map(rest).min().unwrap_or(0);
    (least, points.iter().map(rest).max().unwrap_or(0))
}

/// The slope of the narrowest strip, by time, that holds all points: that of an edge of their convex hull.
fn narrowest(points: &[Point]) -> Option<Ratio> {
    let lower = hull(points.iter().copied());
    let upper: Vec<Point> = hull(points.iter().map(|point| (point.0, -point.1)))
        .into_iter()
        .map(|point| (point.0, -point.1))
        .collect();
    let edges = lower.windows(2).chain(upper.windows(2));
    let mut slopes: Vec<Ratio> =
        edges.map(|edge| Ratio(edge[1].1 - edge[0].1, edge[1].0 - edge[0].0)).collect();
    slopes.sort_by(|one, other| (one.0 * other.1).cmp(&(other.0 * one.1)));
    let all: Vec<Point> = lower.into_iter().chain(upper).collect();
    // The width falls up to the narrowest strip and grows beyond: there the lowest point lies behind the highest.
    let grows = |slope: &Ratio| {
        let rest = |point: &&Point| point.1 * slope.1 - point.0 * slope.0;
        let low = all.iter().max_by_key(|point| (-rest(point), point.0));
        let high = all.iter().max_by_key(|point| (rest(point), -point.0));
        low.zip(high).is_some_and(|(low, high)| low.0 >= high.0)
    };
    let place = slopes.partition_point(|slope| !grows(slope));
    let slope = slopes.get(place).or(slopes.last()).copied()?;
    (slope.0 > 0).then_some(slope)
}

/// The lower convex hull of points in the order of their numbers.
fn hull(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        while let [.., before, last] = kept[..] {
            let turn = (last.0 - before.0) * (point.1 - before.1)
                - (last.1 - before.1) * (point.0 - before.0);
            if turn > 0 {
                break;
            }
            kept.pop();
        }
        kept.push(point);
    }
    kept
}
