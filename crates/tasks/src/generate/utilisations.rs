//! Utilisations of the tasks of a set, whose sum is fixed.
//!
//! Owns: the choice among the ways of the literature, and bounds on single tasks. Must not: round.

use std::fmt;
use std::str::FromStr;

use super::error::{GenerateError, WordError};
use super::fixed_sum::FixedSum;
use super::millionths::Millionths;
use super::rescale::rescaled;
use hourglass_documents::random::Stream;

/// Draws that are thrown away for one set before it is given up.
const MOST_TRIES: u32 = 10_000;

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum UtilisationMethod {
        /// UUniFast (Bini and Buttazzo, RTSJ 2005): uniform over all vectors with the sum; one processor.
        #[default]
        UUniFast => "uunifast",
        /// UUniFast-Discard (Davis and Burns, RTSS 2009): the same, drawn again while a task is outside
        /// its bounds; without bounds, while it has more than 1. Uniform over what is left.
        UUniFastDiscard => "uunifast-discard",
        /// Randfixedsum (Stafford 2006; Emberson, Stafford and Davis, WATERS 2010): uniform, with the same
        /// bounds for all tasks, at any sum.
        RandFixedSum => "randfixedsum",
        /// Dirichlet-rescale (Griffin, Bate and Davis, RTSS 2020): bounds for each task, at any sum. Not
        /// always uniform where these are uneven, as its authors have found since.
        DirichletRescale => "drs",
    }
}

impl fmt::Display for UtilisationMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for UtilisationMethod {
    type Err = WordError;

    fn from_str(text: &str) -> Result<UtilisationMethod, WordError> {
        UtilisationMethod::from_name(text.trim()).ok_or_else(|| WordError::Form {
            given: text.to_owned(),
            wanted: "uunifast, uunifast-discard, randfixedsum or drs",
        })
    }
}

/// The least and the most that a task may use of a processor.
///
/// Written `0.1..0.5`; without one of its ends, 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The lower bound, from 0.
    pub least: Millionths,
    /// Up to 1.
    pub most: Millionths,
}

impl Bound {
    /// Anything that a processor can give.
    pub const FREE: Bound = Bound { least: Millionths::ZERO, most: Millionths::ONE };
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.least, self.most)
    }
}

impl FromStr for Bound {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Bound, WordError> {
        let wanted =
            || WordError::Form { given: text.to_owned(), wanted: "LEAST..MOST, as 0.1..0.5" };
        let (least, most) = text.trim().split_once("..").ok_or_else(wanted)?;
        let end = |part: &str, free: Millionths| match part.trim() {
            "" => Ok(free),
            part => part.parse(),
        };
        Ok(Bound { least: end(least, Bound::FREE.least)?, most: end(most, Bound::FREE.most)? })
    }
}

/// A way of drawing, prepared for one sum.
#[derive(Clone, Debug)]
pub(super) struct UtilisationSampler {
    tasks: usize,
    total: Millionths,
    way: SamplingMethod,
}

#[derive(Clone, Debug)]
enum SamplingMethod {
    UUniFast,
    Discard(Vec<(f64, f64)>),
    /// Numbers from 0 to 1, to be scaled to `least` and `width`.
    FixedSum {
        table: FixedSum,
        least: f64,
        width: f64,
    },
    Rescale {
        least: Vec<f64>,
        room: Vec<f64>,
        rest: f64,
    },
}

impl UtilisationSampler {
    /// Checks the request and prepares it. `bounds` is empty, or has one bound for all or one for each.
    pub(super) fn new(
        method: UtilisationMethod,
        tasks: usize,
        total: Millionths,
        bounds: &[Bound],
    ) -> Result<UtilisationSampler, GenerateError> {
        let each = each_bound(tasks, total, bounds)?;
        let ends: Vec<(f64, f64)> =
            each.iter().map(|bound| (bound.least.as_f64(), bound.most.as_f64())).collect();
        let way = match method {
            UtilisationMethod::UUniFast if !bounds.is_empty() || total > Millionths::ONE => {
                return Err(GenerateError::NeedsDiscard);
            }
            UtilisationMethod::UUniFast => SamplingMethod::UUniFast,
            UtilisationMethod::UUniFastDiscard => SamplingMethod::Discard(ends),
            UtilisationMethod::RandFixedSum => {
                if each.iter().any(|bound| *bound != each[0]) {
                    return Err(GenerateError::NeedsRescale);
                }
                let (least, most) = ends.first().copied().unwrap_or((0.0, 1.0));
                let width = most - least;
                let sum =
                    if width > 0.0 { (total.as_f64() - least * tasks as f64) / width } else { 0.0 };
                SamplingMethod::FixedSum { table: FixedSum::new(tasks, sum), least, width }
            }
            UtilisationMethod::DirichletRescale => SamplingMethod::Rescale {
                least: ends.iter().map(|(least, _)| *least).collect(),
                room: ends.iter().map(|(least, most)| most - least).collect(),
                rest: (total.as_f64() - ends.iter().map(|(least, _)| least).sum::<f64>()).max(0.0),
            },
        };
        Ok(UtilisationSampler { tasks, total, way })
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> Result<Vec<f64>, GenerateError> {
        let total = self.total.as_f64();
        let found = match &self.way {
            SamplingMethod::UUniFast => Some(uunifast(self.tasks, total, stream)),
            SamplingMethod::Discard(ends) => (0..MOST_TRIES).find_map(|_| {
                let drawn = uunifast(self.tasks, total, stream);
                let inside = drawn
                    .iter()
                    .zip(ends)
                    .all(|(value, (least, most))| least <= value && value <= most);
                inside.then_some(drawn)
            }),
            SamplingMethod::FixedSum { table, least, width } => {
                Some(table.draw(stream).into_iter().map(|value| least + width * value).collect())
            }
            SamplingMethod::Rescale { least, room, rest } => rescaled(*rest, room, stream)
                .map(|drawn| drawn.iter().zip(least).map(|(value, least)| least + value).collect()),
        };
        found.ok_or(GenerateError::Discarded {
            tries: MOST_TRIES,
            tasks: self.tasks,
            utilisation: self.total,
        })
    }
}

/// The bound of each task, of which the sums leave room for the total.
fn each_bound(
    tasks: usize,
    total: Millionths,
    bounds: &[Bound],
) -> Result<Vec<Bound>, GenerateError> {
    let each = match bounds {
        [] => vec![Bound::FREE; tasks],
        [one] => vec![*one; tasks],
        all if all.len() == tasks => all.to_vec(),
        all => return Err(GenerateError::Bounds { bounds: all.len(), tasks }),
    };
    if let Some(bad) =
        each.iter().find(|bound| bound.least > bound.most || bound.most > Millionths::ONE)
    {
        return Err(GenerateError::Bound(bad.to_string()));
    }
    let sum = |end: fn(&Bound) -> Millionths| {
        Millionths::new(each.iter().map(|bound| end(bound).count()).sum())
    };
    let (least, most) = (sum(|bound| bound.least), sum(|bound| bound.most));
    if total > most {
        return Err(GenerateError::OverTasks { utilisation: total, most, tasks });
    }
    if total < least {
        return Err(GenerateError::UnderTasks { utilisation: total, least, tasks });
    }
    Ok(each)
}

/// Each task takes its share of what is left, so that the rest is spread like a set of one task less.
fn uunifast(tasks: usize, total: f64, stream: &mut Stream) -> Vec<f64> {
    let mut left = total;
    let mut drawn = Vec::with_capacity(tasks);
    for others in (1..tasks).rev() {
        let rest = left * stream.share().powf(1.0 / others as f64);
        drawn.push(left - rest);
        left = rest;
    }
    drawn.push(left);
    drawn
}
