//! One run each: their parts are drawn anew, and how much a quantity changes by that is its
//! uncertainty (the block bootstrap, H. R. Künsch, *Annals of Statistics* 17, 1989).

use hourglass_documents::diff::DiffMetric;
use hourglass_documents::random::Stream;

use super::quantity::{Quantity, Value};
use super::sample::{MeasuredValue, PARTS, RunSample};
use super::verdict::{QuantityChange, Rules};
use crate::statistics::{Estimate, USUAL, share};

const DRAWS: usize = 1_000;

/// Student's t for 19 degrees of freedom, as many as a run has parts less one, at 95 %, and the
/// normal quantile beside it (Jain 1991, appendix A.4).
const T_95: f64 = 2.093;
const NORMAL_95: f64 = 1.960;

/// A percentile must have this many measurements above it in each run.
const LEAST_ABOVE: f64 = 10.0;

/// Minimum number of parts of each run that must hold a measurement.
const LEAST_FILLED: usize = 10;

/// Neighbouring parts may resemble each other up to this; what is more alike has no interval that
/// could be trusted.
const MOST_ALIKE: f64 = 0.8;

/// How much more alike neighbours may be than so few parts show: an autocorrelation over twenty parts
/// comes out too low by a twentieth, and may be off by a fifth.
const ALIKE_UNSEEN: f64 = 0.15;

/// Bits of a number that are kept where numbers are put together: to 0.4 %.
const BITS: u32 = 8;
const NS_PER_S: f64 = 1e9;
const PER_CENT: f64 = 100.0;

/// Quantities that follow from what fell into each part.
const DRAWN: usize = 10;

/// The first of them that is one of latencies.
const FIRST_LATENCY: usize = 6;

/// Compares two runs. If neighbouring parts resemble each other, intervals become wider.
pub fn by_parts(a: &RunSample, b: &RunSample, rules: &Rules) -> Vec<DiffMetric> {
    let uncertainty = Uncertainty::of(&RunParts::of(a), &RunParts::of(b), rules.seed);
    let (values_a, values_b) = (a.values(), b.values());
    let mut all: Vec<Quantity> =
        values_a.iter().chain(&values_b).map(|value| value.quantity.clone()).collect();
    all.sort_unstable();
    all.dedup();
    let changes = all.into_iter().map(|quantity| {
        let of = |values: &[Value]| values.iter().find(|v| v.quantity == quantity).cloned();
        let (a_value, b_value) = (of(&values_a), of(&values_b));
        let in_order = a.latencies_in_order && b.latencies_in_order;
        let drawn = Quantity::PLAIN[..DRAWN].iter().position(|one| *one == quantity);
        let drawn = drawn.filter(|at| in_order || *at < FIRST_LATENCY);
        match (drawn, &quantity) {
            (Some(at), _) => uncertainty.change(at, a_value, b_value),
            (None, Quantity::DeadlinesFailed) => periods(a, b),
            (None, _) => {
                let number = |value: Option<Value>| value.and_then(|value| value.value);
                no_interval(quantity, number(a_value), number(b_value))
            }
        }
    });
    changes.map(|change| change.judged(rules)).collect()
}

fn no_interval(quantity: Quantity, a: Option<f64>, b: Option<f64>) -> QuantityChange {
    let change = a.zip(b).map(|(a, b)| Estimate {
        value: b - a,
        lo: f64::NEG_INFINITY,
        hi: f64::INFINITY,
        count: 1,
    });
    let reason = "one run each gives it no interval; compare rounds".to_owned();
    QuantityChange {
        quantity,
        a,
        b,
        change,
        is_significant: false,
        reason,
        rounds: 0,
        rounds_needed: 0,
    }
}

/// Periods that fail come in bursts: a run counts as no more independent ones than it has parts. The
/// interval of the difference is Newcombe's (*Statistics in Medicine* 17, 1998, method 10).
fn periods(a: &RunSample, b: &RunSample) -> QuantityChange {
    let score = |sample: &RunSample| {
        let (failed, all) = sample.periods().filter(|(_, all)| *all > 0)?;
        let counted = all.min(PARTS as u64);
        let value = failed as f64 / all as f64;
        let score = share((value * counted as f64).round() as u64, counted, USUAL)?;
        // Rounding to whole periods must not move the interval off the value.
        Some(Estimate { value, lo: score.lo.min(value), hi: score.hi.max(value), count: all })
    };
    let (a, b) = (score(a), score(b));
    let change = a.zip(b).map(|(a, b)| {
        let value = b.value - a.value;
        let lo = value - ((b.value - b.lo).powi(2) + (a.hi - a.value).powi(2)).sqrt();
        let hi = value + ((b.hi - b.value).powi(2) + (a.value - a.lo).powi(2)).sqrt();
        Estimate { value, lo, hi, count: a.count.min(b.count) }.scaled(PER_CENT)
    });
    let per_cent = |share: Option<Estimate>| share.map(|share| share.value * PER_CENT);
    QuantityChange {
        quantity: Quantity::DeadlinesFailed,
        a: per_cent(a),
        b: per_cent(b),
        is_significant: change.is_some_and(|change| !change.holds(0.0)),
        reason: if change.is_none() { "not in both runs".to_owned() } else { String::new() },
        change,
        rounds: 0,
        rounds_needed: 0,
    }
}

struct Cell {
    ns: u64,
    part: u8,
    count: u32,
}

struct RunParts {
    gaps: Vec<Cell>,
    latencies: Vec<Cell>,
    gaps_ns: [f64; PARTS],
    watched_ns: [f64; PARTS],
}

type Weights = [u32; PARTS];

impl RunParts {
    fn of(sample: &RunSample) -> RunParts {
        let mut gaps_ns = [0.0; PARTS];
        for gap in &sample.gaps {
            gaps_ns[usize::from(gap.part) % PARTS] += gap.ns as f64;
        }
        RunParts {
            gaps: cells(&sample.gaps),
            latencies: cells(&sample.latencies),
            gaps_ns,
            watched_ns: sample.watched_ns.map(|ns| ns as f64),
        }
    }

    fn quantities(&self, weights: &Weights) -> [Option<f64>; DRAWN] {
        let weighed = |sums: &[f64; PARTS]| -> f64 {
            sums.iter().zip(weights).map(|(sum, weight)| sum * f64::from(*weight)).sum()
        };
        let watched = weighed(&self.watched_ns);
        let ratio = |sum: f64, unit: f64| (watched > 0.0).then(|| sum * unit / watched);
        let (gaps, [g50, g99, g999]) = percentiles(&self.gaps, weights);
        let (_, [l50, l99, l999]) = percentiles(&self.latencies, weights);
        let rate = ratio(gaps as f64, NS_PER_S);
        let lost = ratio(weighed(&self.gaps_ns), PER_CENT);
        // A maximum of parts drawn anew says nothing about that of the next run.
        [g50, g99, g999, None, rate, lost, l50, l99, l999, None]
    }

    fn filled(&self) -> (usize, usize) {
        let filled = |cells: &[Cell]| {
            let mut parts = [false; PARTS];
            cells.iter().for_each(|cell| parts[usize::from(cell.part) % PARTS] = true);
            parts.into_iter().filter(|filled| *filled).count()
        };
        (filled(&self.gaps), filled(&self.latencies))
    }
}

/// Puts together what agrees in its leading bits, in ascending order.
fn cells(measured: &[MeasuredValue]) -> Vec<Cell> {
    let rounded = |ns: u64| {
        let spare = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS);
        ns >> spare << spare
    };
    let mut sorted: Vec<(u64, u8)> =
        measured.iter().map(|one| (rounded(one.ns), one.part)).collect();
    sorted.sort_unstable();
    let mut cells: Vec<Cell> = Vec::new();
    for (ns, part) in sorted {
        match cells.last_mut() {
            Some(last) if (last.ns, last.part) == (ns, part) => last.count += 1,
            _ => cells.push(Cell { ns, part, count: 1 }),
        }
    }
    cells
}

fn percentiles(cells: &[Cell], weights: &Weights) -> (u64, [Option<f64>; 3]) {
    let weight =
        |cell: &Cell| u64::from(weights[usize::from(cell.part) % PARTS]) * u64::from(cell.count);
    let all: u64 = cells.iter().map(weight).sum();
    let rank = |share: f64| ((share * all as f64).ceil() as u64).max(1);
    let ranks = [0.5, 0.99, 0.999].map(rank);
    let mut found = [None; 3];
    let (mut below, mut next) = (0, 0);
    for cell in cells {
        below += weight(cell);
        while next < ranks.len() && below >= ranks[next] {
            found[next] = Some(cell.ns as f64);
            next += 1;
        }
    }
    (all, found)
}

/// How uncertain each quantity is, and how far the most uncertain of them strays.
struct Uncertainty {
    /// Standard error of the difference; `None` where it cannot be computed.
    error: [Option<f64>; DRAWN],
    /// Standard errors within which all quantities together stay in 19 of 20 draws.
    together: f64,
    filled: (usize, usize),
}

impl Uncertainty {
    fn of(a: &RunParts, b: &RunParts, seed: u64) -> Uncertainty {
        let mut random = Stream::from_seeds(&[seed, DRAWS as u64]);
        let draws: Vec<[Option<f64>; DRAWN]> = (0..DRAWS)
            .map(|_| {
                let (in_a, in_b) = (draw(&mut random), draw(&mut random));
                difference(a.quantities(&in_a), b.quantities(&in_b))
            })
            .collect();
        let centre = difference(a.quantities(&[1; PARTS]), b.quantities(&[1; PARTS]));
        let alike = alike(a, b);
        let spread: [Option<f64>; DRAWN] = std::array::from_fn(|at| {
            let drawn: Vec<f64> = draws.iter().filter_map(|draw| draw[at]).collect();
            (drawn.len() * 10 >= DRAWS * 9).then(|| deviation(&drawn))
        });
        let error = std::array::from_fn(|at| {
            let alike = (alike[at] + ALIKE_UNSEEN).clamp(0.0, MOST_ALIKE);
            Some(spread[at]? * ((1.0 + alike) / (1.0 - alike)).sqrt())
        });
        let mut strays: Vec<f64> =
            draws.iter().map(|draw| farthest(draw, &centre, &spread)).collect();
        strays.sort_unstable_by(f64::total_cmp);
        let stray = strays[(USUAL * (DRAWS - 1) as f64).round() as usize];
        let filled = (a.filled(), b.filled());
        Uncertainty {
            error,
            together: (stray * T_95 / NORMAL_95).max(T_95),
            filled: (filled.0.0.min(filled.1.0), filled.0.1.min(filled.1.1)),
        }
    }

    fn change(&self, at: usize, a: Option<Value>, b: Option<Value>) -> QuantityChange {
        let quantity = Quantity::PLAIN[at].clone();
        let is_thin = |value: &Value| !value.has_above(LEAST_ABOVE);
        let thin = a.iter().chain(&b).any(is_thin);
        let (number_a, number_b) = (a.and_then(|a| a.value), b.and_then(|b| b.value));
        let filled = if at < FIRST_LATENCY { self.filled.0 } else { self.filled.1 };
        let reason = match (number_a.zip(number_b), self.error[at]) {
            (None, _) => "not in both runs",
            (_, None) if quantity.percentile().is_none() => {
                return no_interval(quantity, number_a, number_b);
            }
            _ if thin || (filled < LEAST_FILLED && quantity.percentile().is_some()) => {
                "too few measurements for this percentile"
            }
            _ => "",
        };
        let value = number_a.zip(number_b).map(|(a, b)| b - a);
        // The cells into which numbers were put together are as wide as this.
        let coarse = number_a.unwrap_or(0.0).max(number_b.unwrap_or(0.0)) / f64::from(1 << BITS);
        let coarse = if quantity.percentile().is_some() { coarse } else { 0.0 };
        // Not `hypot`: glibc has a new one since 2.35, which the wheel would ask for.
        let sampled = self.error[at].unwrap_or(f64::INFINITY);
        let error = (sampled * sampled + coarse * coarse).sqrt();
        let reach = error * T_95;
        let change = value.map(|value| Estimate {
            value,
            lo: value - reach,
            hi: value + reach,
            count: PARTS as u64,
        });
        QuantityChange {
            quantity,
            a: number_a,
            b: number_b,
            change,
            is_significant: value.is_some_and(|value| value.abs() > error * self.together),
            reason: reason.to_owned(),
            rounds: 0,
            rounds_needed: 0,
        }
    }
}

fn draw(random: &mut Stream) -> Weights {
    let mut weights = [0; PARTS];
    for _ in 0..PARTS {
        weights[random.below(PARTS as u64) as usize % PARTS] += 1;
    }
    weights
}

fn difference(a: [Option<f64>; DRAWN], b: [Option<f64>; DRAWN]) -> [Option<f64>; DRAWN] {
    std::array::from_fn(|at| Some(b[at]? - a[at]?))
}

/// The distance of the farthest quantity of a draw, standard deviations.
fn farthest(
    draw: &[Option<f64>; DRAWN],
    centre: &[Option<f64>; DRAWN],
    spread: &[Option<f64>; DRAWN],
) -> f64 {
    let stray = |at: usize| {
        let spread = spread[at].filter(|spread| *spread > 0.0)?;
        Some((draw[at]? - centre[at]?).abs() / spread)
    };
    (0..DRAWN).filter_map(stray).fold(0.0, f64::max)
}

/// How much neighbouring parts resemble each other in each quantity, from -1 to 1: the
/// autocorrelation at a lag of one, the mean of the two runs.
fn alike(a: &RunParts, b: &RunParts) -> [f64; DRAWN] {
    let of = |parts: &RunParts| -> [Option<f64>; DRAWN] {
        let rows: Vec<[Option<f64>; DRAWN]> = (0..PARTS)
            .map(|part| {
                let mut weights = [0; PARTS];
                weights[part] = 1;
                parts.quantities(&weights)
            })
            .collect();
        std::array::from_fn(|at| {
            autocorrelation(&rows.iter().filter_map(|row| row[at]).collect::<Vec<_>>())
        })
    };
    let (a, b) = (of(a), of(b));
    std::array::from_fn(|at| match (a[at], b[at]) {
        (Some(a), Some(b)) => (a + b) / 2.0,
        (one, other) => one.or(other).unwrap_or(0.0),
    })
}

/// `None` for what does not vary or is short.
fn autocorrelation(series: &[f64]) -> Option<f64> {
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    let variance: f64 = series.iter().map(|x| (x - mean).powi(2)).sum();
    let lagged: f64 = series.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (series.len() >= LEAST_FILLED && variance > 0.0).then(|| lagged / variance)
}

fn deviation(drawn: &[f64]) -> f64 {
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    let squares: f64 = drawn.iter().map(|x| (x - mean).powi(2)).sum();
    (squares / drawn.len().saturating_sub(1).max(1) as f64).sqrt()
}
