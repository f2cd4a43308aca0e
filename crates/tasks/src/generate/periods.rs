//! Periods of the tasks of a set.
//!
//! Owns: [`Periods`], its text form, and drawing. Must not: know utilisations.

use std::fmt;
use std::str::FromStr;

use hourglass_time::Span;

use super::error::{GenerateError, WordError};
use hourglass_documents::random::Stream;

/// Doublings that a harmonic range has at most: 63 of one nanosecond are the longest span.
const MOST_DOUBLINGS: u32 = 63;

/// How periods are drawn. All times are above zero; ranges include both ends.
///
/// Written `log-uniform:10ms,1s`, `uniform:10ms,1s`, `harmonic:10ms,1s`, `list:5ms,10ms,20ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Periods {
    /// Every order of magnitude is equally likely (Emberson, Stafford and Davis, WATERS 2010).
    LogUniform(Span, Span),
    /// Every multiple of the granularity is equally likely.
    Uniform(Span, Span),
    /// The first time, twice, four times and so on of it up to the second, each equally likely. Of
    /// two such periods one divides the other.
    Harmonic(Span, Span),
    /// One of these, each equally likely.
    List(Vec<Span>),
}

impl Default for Periods {
    fn default() -> Periods {
        Periods::LogUniform(Span::from_millis(10), Span::from_secs(1))
    }
}

impl Periods {
    /// The shortest that can be drawn, rounded as drawing rounds.
    pub(super) fn shortest(&self, granularity: Span) -> Result<u64, GenerateError> {
        let granule = granularity.nanos_or_zero().max(1);
        let none = || GenerateError::NoPeriod { granularity, periods: self.to_string() };
        match self {
            Periods::LogUniform(low, high) | Periods::Uniform(low, high) => {
                let (least, most) = multiples(*low, *high, granule);
                if least > most { Err(none()) } else { Ok(least * granule) }
            }
            Periods::Harmonic(low, _) => Ok(low.nanos_or_zero()),
            Periods::List(all) => {
                all.iter().map(|span| span.nanos_or_zero()).min().ok_or(GenerateError::NoPeriods)
            }
        }
    }

    /// The next period in nanoseconds: of a range, a multiple of the granularity inside it; else one
    /// of those named.
    pub(super) fn draw(&self, granularity: Span, stream: &mut Stream) -> u64 {
        let granule = granularity.nanos_or_zero().max(1);
        match self {
            Periods::LogUniform(low, high) => {
                let (least, most) = multiples(*low, *high, granule);
                // The end is one granule further, so that the longest is as likely as its
                // neighbours are.
                let (from, to) = ((least as f64).ln(), (most as f64 + 1.0).ln());
                let drawn = (from + (to - from) * (1.0 - stream.share())).exp().floor() as u64;
                drawn.clamp(least, most.max(least)) * granule
            }
            Periods::Uniform(low, high) => {
                let (least, most) = multiples(*low, *high, granule);
                stream.between(least, most) * granule
            }
            Periods::Harmonic(low, high) => {
                let low = low.nanos_or_zero().max(1);
                let times = high.nanos_or_zero() / low;
                let doublings = times.max(1).ilog2().min(MOST_DOUBLINGS);
                low << stream.between(0, u64::from(doublings))
            }
            Periods::List(all) => {
                let chosen = stream.below(all.len() as u64) as usize;
                all.get(chosen).map_or(granule, |span| span.nanos_or_zero())
            }
        }
    }
}

/// The least and the greatest number of granules in a range.
fn multiples(low: Span, high: Span, granule: u64) -> (u64, u64) {
    (low.nanos_or_zero().div_ceil(granule).max(1), high.nanos_or_zero() / granule)
}

impl fmt::Display for Periods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Periods::LogUniform(low, high) => write!(f, "log-uniform:{low},{high}"),
            Periods::Uniform(low, high) => write!(f, "uniform:{low},{high}"),
            Periods::Harmonic(low, high) => write!(f, "harmonic:{low},{high}"),
            Periods::List(all) => {
                let all: Vec<String> = all.iter().map(Span::to_string).collect();
                write!(f, "list:{}", all.join(","))
            }
        }
    }
}

impl FromStr for Periods {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Periods, WordError> {
        let wanted = || WordError::Form {
            given: text.to_owned(),
            wanted: "log-uniform:A,B uniform:A,B harmonic:A,B or list:A,B,...",
        };
        let (name, times) = text.trim().split_once(':').ok_or_else(wanted)?;
        let times: Vec<Span> = times.split(',').map(time).collect::<Result<_, _>>()?;
        let range = |make: fn(Span, Span) -> Periods| match times[..] {
            [low, high] if low <= high => Ok(make(low, high)),
            [_, _] => Err(WordError::Backwards(text.to_owned())),
            _ => Err(wanted()),
        };
        match name.trim() {
            "log-uniform" => range(Periods::LogUniform),
            "uniform" => range(Periods::Uniform),
            "harmonic" => range(Periods::Harmonic),
            "list" => Ok(Periods::List(times)),
            _ => Err(wanted()),
        }
    }
}

pub(super) fn time(text: &str) -> Result<Span, WordError> {
    let refused = |reason: String| WordError::Time { text: text.trim().to_owned(), reason };
    let span: Span =
        text.trim().parse().map_err(|e: hourglass_time::ParseSpanError| refused(e.to_string()))?;
    if span.is_positive() { Ok(span) } else { Err(refused("it must be above zero".to_owned())) }
}
