//! How sets of tasks are drawn, and drawing them.
//!
//! Owns: [`Recipe`], [`Source`]. Must not: depend on what was drawn before.

use std::fmt;
use std::str::FromStr;

use hourglass_time::Span;

use hourglass_documents::random::Stream;

use super::error::{GenerateError, WordError};
use super::millionths::Millionths;
use super::periods::Periods;
use super::rounding;
use super::stream::{Purpose, for_set};
use super::utilisations::{Bound, UtilisationMethod, UtilisationSampler};

/// Tasks that a set has at most.
pub const MOST_TASKS: usize = 1_000;

/// Processors that a set is drawn for at most.
pub const MOST_PROCESSORS: u32 = 1_024;

/// How deadlines are drawn.
///
/// Written `implicit`, `share:0.7,1` or `slack:0.5,1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deadlines {
    #[default]
    Implicit,
    /// A share of the period between these, which may be over 1; it may be under the cost.
    Share(Millionths, Millionths),
    /// The cost and a share of the rest of the period.
    Slack(Millionths, Millionths),
}

impl fmt::Display for Deadlines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deadlines::Implicit => f.write_str("implicit"),
            Deadlines::Share(low, high) => write!(f, "share:{low},{high}"),
            Deadlines::Slack(low, high) => write!(f, "slack:{low},{high}"),
        }
    }
}

impl FromStr for Deadlines {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Deadlines, WordError> {
        let wanted = || WordError::Form {
            given: text.to_owned(),
            wanted: "implicit, share:LOW,HIGH or slack:LOW,HIGH",
        };
        match text.trim().split_once(':') {
            None if text.trim() == "implicit" => Ok(Deadlines::Implicit),
            Some(("share", ends)) => range(ends).map(|(low, high)| Deadlines::Share(low, high)),
            Some(("slack", ends)) => range(ends).map(|(low, high)| Deadlines::Slack(low, high)),
            _ => Err(wanted()),
        }
    }
}

/// Two numbers, the smaller one first, or one that stands for both.
fn range(text: &str) -> Result<(Millionths, Millionths), WordError> {
    let (low, high) = text.split_once(',').unwrap_or((text, text));
    let (low, high) = (low.parse()?, high.parse()?);
    if low > high { Err(WordError::Backwards(text.to_owned())) } else { Ok((low, high)) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    pub seed: u64,
    /// Tasks a set, 1 to [`MOST_TASKS`].
    pub tasks: usize,
    /// Processors that the sets are for, which bounds the utilisation.
    pub processors: u32,
    pub method: UtilisationMethod,
    /// None, one for all tasks, or one for each.
    pub bounds: Vec<Bound>,
    pub periods: Periods,
    /// Periods and deadlines are multiples of it.
    pub granularity: Span,
    /// Execution times are multiples of it.
    pub cost_granularity: Span,
    pub deadlines: Deadlines,
    /// Release jitter as a share of the period, between these.
    pub jitter: (Millionths, Millionths),
}

impl Default for Recipe {
    fn default() -> Recipe {
        Recipe {
            seed: 1,
            tasks: 10,
            processors: 1,
            method: UtilisationMethod::default(),
            bounds: Vec::new(),
            periods: Periods::default(),
            granularity: Span::from_micros(1),
            cost_granularity: Span::from_nanos(1),
            deadlines: Deadlines::default(),
            jitter: (Millionths::ZERO, Millionths::ZERO),
        }
    }
}

/// A task that was drawn; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnTask {
    /// The longest execution time, at least 1.
    pub cost: u64,
    /// The time between two arrivals.
    pub period: u64,
    /// The time from arrival to deadline; at least 1.
    pub deadline: u64,
    /// The longest time from arrival to release.
    pub jitter: u64,
}

impl Recipe {
    /// Reads the range of jitter, `0,0.2`, or one share for all.
    ///
    /// # Errors
    /// A text that is no such thing.
    pub fn jitter_of(text: &str) -> Result<(Millionths, Millionths), WordError> {
        range(text)
    }

    /// All sets with this utilisation in all.
    ///
    /// # Errors
    /// By this recipe no set can be drawn; the error says what to change.
    pub fn at(&self, utilisation: Millionths) -> Result<Source, GenerateError> {
        if self.tasks == 0 || self.tasks > MOST_TASKS {
            return Err(GenerateError::Tasks(self.tasks));
        }
        if self.processors == 0 || self.processors > MOST_PROCESSORS {
            return Err(GenerateError::Processors(self.processors));
        }
        if utilisation == Millionths::ZERO {
            return Err(GenerateError::NoUtilisation);
        }
        let processors = self.processors;
        if utilisation > Millionths::whole(processors.into()) {
            return Err(GenerateError::OverProcessors { utilisation, processors });
        }
        for (span, name) in
            [(self.granularity, "granularity"), (self.cost_granularity, "cost granularity")]
        {
            if !span.is_positive() {
                return Err(GenerateError::NoGranularity(name));
            }
        }
        if let Deadlines::Share(low, _) = self.deadlines
            && low == Millionths::ZERO
        {
            return Err(GenerateError::NoDeadline(self.deadlines.to_string()));
        }
        let shortest = self.periods.shortest(self.granularity)?;
        // Of the least costs every task has one; n g / T <= U leaves room for them.
        let least = self.tasks as u128 * u128::from(self.cost_granularity.nanos_or_zero());
        let room = u128::from(utilisation.count()) * u128::from(shortest);
        if self.cost_granularity.nanos_or_zero() > shortest
            || least * u128::from(Millionths::PER_ONE) > room
        {
            return Err(self.too_coarse(shortest, utilisation));
        }
        let utilisations =
            UtilisationSampler::new(self.method, self.tasks, utilisation, &self.bounds)?;
        Ok(Source { recipe: self.clone(), utilisation, shortest, utilisations })
    }

    fn too_coarse(&self, shortest: u64, utilisation: Millionths) -> GenerateError {
        GenerateError::TooCoarse {
            tasks: self.tasks,
            granularity: self.cost_granularity,
            period: Span::saturating_from_nanos(shortest),
            utilisation,
        }
    }
}

/// The sets of a recipe with one utilisation, by their numbers.
#[derive(Clone, Debug)]
pub struct Source {
    recipe: Recipe,
    utilisation: Millionths,
    shortest: u64,
    utilisations: UtilisationSampler,
}

impl Source {
    /// The set with this number: always the same, whatever else was drawn. The exact sum of cost /
    /// period is not over the utilisation, and by less than (n + 2) cost granules of the shortest
    /// period below it.
    ///
    /// # Errors
    /// Everything that was drawn had a task outside its bounds.
    pub fn draw(&self, set: u64) -> Result<Vec<DrawnTask>, GenerateError> {
        let recipe = &self.recipe;
        let stream = |purpose| for_set(recipe.seed, self.utilisation, set, purpose);
        let utilisations = self.utilisations.draw(&mut stream(Purpose::Utilisations))?;
        let mut dice = stream(Purpose::Periods);
        let periods: Vec<u64> = utilisations
            .iter()
            .map(|_| recipe.periods.draw(recipe.granularity, &mut dice))
            .collect();
        let granule = recipe.cost_granularity.nanos_or_zero();
        let costs = rounding::costs(&utilisations, &periods, granule, self.utilisation)
            .ok_or_else(|| recipe.too_coarse(self.shortest, self.utilisation))?;
        let (mut due, mut late) = (stream(Purpose::Deadlines), stream(Purpose::Jitter));
        let tasks = costs.iter().zip(&periods).map(|(&cost, &period)| DrawnTask {
            cost,
            period,
            deadline: self.deadline(cost, period, &mut due),
            jitter: share_of(period, between(recipe.jitter, &mut late)),
        });
        Ok(tasks.collect())
    }

    /// Rounded down to the granularity, but to no less than one.
    fn deadline(&self, cost: u64, period: u64, dice: &mut Stream) -> u64 {
        let granule = self.recipe.granularity.nanos_or_zero().max(1);
        let rounded = |time: u64| (time / granule * granule).max(granule);
        match self.recipe.deadlines {
            Deadlines::Implicit => period,
            Deadlines::Share(low, high) => rounded(share_of(period, between((low, high), dice))),
            Deadlines::Slack(low, high) => {
                let slack = share_of(period.saturating_sub(cost), between((low, high), dice));
                // Rounding does not take from the cost what it needs.
                let deadline = cost.saturating_add(slack);
                rounded(deadline).max(cost)
            }
        }
    }
}

/// A number of millionths between two, each equally likely.
fn between(ends: (Millionths, Millionths), dice: &mut Stream) -> Millionths {
    Millionths::new(dice.between(ends.0.count(), ends.1.count()))
}

fn share_of(time: u64, share: Millionths) -> u64 {
    let product = u128::from(time) * u128::from(share.count()) / u128::from(Millionths::PER_ONE);
    u64::try_from(product).unwrap_or(u64::MAX)
}
