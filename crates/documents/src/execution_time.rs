//! How much processor time a job needs: fixed, drawn from a distribution, or read from a table
//! (the extension proposed in section 3.2 of the Hourglass paper).

use std::fmt;
use std::str::FromStr;

use hourglass_time::{ParseSpanError, Span};
use rand_distr::{Distribution, Exp, LogNormal, Normal, Uniform};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use thiserror::Error;

use crate::spelling;

/// Bytes that a table of execution times may have.
const LARGEST_TABLE: u64 = 64 << 20;

/// The execution time of successive jobs.
///
/// Written `3ms`, `uniform:2ms,4ms`, `normal:3ms,0.5ms` (mean, standard deviation),
/// `lognormal:3ms,0.5ms` (the same two of the times themselves), `exponential:3ms` (mean),
/// `bimodal:2ms,9ms,0.1` (share of the second), `table:FILE.csv`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ExecutionTime {
    /// The same every time.
    Fixed(Span),
    /// Every length from the first to the second is equally likely.
    Uniform(Span, Span),
    /// Bell curve with mean and standard deviation, cut off at 1 ns.
    Normal(Span, Span),
    /// Skewed to the right; mean and standard deviation of the times themselves.
    Lognormal(Span, Span),
    /// Memoryless, with this mean.
    Exponential(Span),
    /// The first, or with the given probability (0 to 1) the second.
    Bimodal(Span, Span, f64),
    /// One after the other, from the first again at the end; the name is the file's.
    Table(String, Vec<Span>),
}

/// How distributions are written.
const DISTRIBUTIONS: [&str; 6] = [
    "uniform:A,B",
    "normal:MEAN,SD",
    "lognormal:MEAN,SD",
    "exponential:MEAN",
    "bimodal:A,B,SHARE",
    "table:FILE.csv",
];

/// A text that describes no execution time.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ExecutionTimeError {
    /// A time in it is malformed.
    #[error("bad time '{text}': {source}")]
    Time {
        /// What was given.
        text: String,
        /// Why it is malformed.
        source: ParseSpanError,
    },
    /// The distribution is not known.
    #[error("{}", spelling::unknown("distribution", .0, DISTRIBUTIONS))]
    UnknownDistribution(String),
    /// The number of parameters is wrong.
    #[error("'{name}' takes {wanted}")]
    Parameters {
        /// The distribution.
        name: &'static str,
        /// What it takes.
        wanted: &'static str,
    },
    /// A parameter is outside its range.
    #[error("{0}")]
    Range(&'static str),
    /// The table cannot be read, is no regular file, or has more than 64 MiB.
    #[error("table '{path}': {reason}")]
    Table {
        /// The file.
        path: String,
        /// What is wrong with it, with the line where there is one.
        reason: String,
    },
}

impl ExecutionTime {
    /// The longest time that can be drawn, or `None` if there is no limit.
    #[must_use]
    pub fn longest(&self) -> Option<Span> {
        match self {
            ExecutionTime::Fixed(span) => Some(*span),
            ExecutionTime::Uniform(_, high) => Some(*high),
            ExecutionTime::Bimodal(first, second, _) => Some(*first.max(second)),
            ExecutionTime::Table(_, spans) => spans.iter().copied().max(),
            ExecutionTime::Normal(..)
            | ExecutionTime::Lognormal(..)
            | ExecutionTime::Exponential(_) => None,
        }
    }

    /// The times that were read from a file, in their order; empty without a file.
    #[must_use]
    pub fn table(&self) -> &[Span] {
        match self {
            ExecutionTime::Table(_, spans) => spans,
            _ => &[],
        }
    }

    /// The average, in nanoseconds; good for an estimate of the load, not for a verdict.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        let ns = |span: &Span| span.nanos() as f64;
        match self {
            ExecutionTime::Fixed(span)
            | ExecutionTime::Exponential(span)
            | ExecutionTime::Normal(span, _)
            | ExecutionTime::Lognormal(span, _) => ns(span),
            ExecutionTime::Uniform(low, high) => (ns(low) + ns(high)) / 2.0,
            ExecutionTime::Bimodal(first, second, share) => {
                ns(first) * (1.0 - share) + ns(second) * share
            }
            ExecutionTime::Table(_, spans) => {
                spans.iter().map(ns).sum::<f64>() / spans.len().max(1) as f64
            }
        }
    }
}

impl FromStr for ExecutionTime {
    type Err = ExecutionTimeError;

    fn from_str(text: &str) -> Result<ExecutionTime, ExecutionTimeError> {
        let Some((name, parameters)) = text.split_once(':') else {
            return positive(text).map(ExecutionTime::Fixed);
        };
        let parts: Vec<&str> = parameters.split(',').collect();
        match name {
            "uniform" => {
                let (low, high) = parse_pair("uniform", &parts)?;
                if low > high {
                    return Err(ExecutionTimeError::Range("uniform: the first time is the longer"));
                }
                Ok(ExecutionTime::Uniform(low, high))
            }
            "normal" => parse_pair("normal", &parts).map(|(m, s)| ExecutionTime::Normal(m, s)),
            "lognormal" => {
                parse_pair("lognormal", &parts).map(|(m, s)| ExecutionTime::Lognormal(m, s))
            }
            "exponential" => match parts[..] {
                [mean] => positive(mean).map(ExecutionTime::Exponential),
                _ => Err(ExecutionTimeError::Parameters {
                    name: "exponential",
                    wanted: "one time: exponential:MEAN",
                }),
            },
            "bimodal" => bimodal(&parts),
            "table" => read_table(parameters),
            _ => Err(ExecutionTimeError::UnknownDistribution(name.to_owned())),
        }
    }
}

fn positive(text: &str) -> Result<Span, ExecutionTimeError> {
    let span: Span = text
        .trim()
        .parse()
        .map_err(|source| ExecutionTimeError::Time { text: text.to_owned(), source })?;
    if span <= Span::ZERO {
        return Err(ExecutionTimeError::Range("the amount of processor time must be above zero"));
    }
    Ok(span)
}

fn parse_pair(name: &'static str, parts: &[&str]) -> Result<(Span, Span), ExecutionTimeError> {
    match parts {
        [first, second] => Ok((positive(first)?, positive(second)?)),
        _ => Err(ExecutionTimeError::Parameters { name, wanted: "two times, as in NAME:2ms,4ms" }),
    }
}

fn bimodal(parts: &[&str]) -> Result<ExecutionTime, ExecutionTimeError> {
    let [first, second, share] = parts else {
        return Err(ExecutionTimeError::Parameters {
            name: "bimodal",
            wanted: "two times and the share of the second, as in bimodal:2ms,9ms,0.1",
        });
    };
    let share = share
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or(ExecutionTimeError::Range("bimodal: the share must be from 0 to 1"))?;
    Ok(ExecutionTime::Bimodal(positive(first)?, positive(second)?, share))
}

/// Reads times from the first column of a CSV file. Empty lines and lines that begin with `#`
/// are passed over; the first line may be a heading.
/// The text of a table. Nothing that may never end is opened: a pipe, a device.
fn read_text(path: &str) -> Result<String, String> {
    let facts = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("is not a file; give a file with a time such as 3.2ms on each line".into());
    }
    if facts.len() > LARGEST_TABLE {
        return Err(format!(
            "has {} bytes; a table may have {LARGEST_TABLE}: take fewer times, they repeat",
            facts.len()
        ));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

fn read_table(path: &str) -> Result<ExecutionTime, ExecutionTimeError> {
    let refused = |reason: String| ExecutionTimeError::Table { path: path.to_owned(), reason };
    let text = read_text(path).map_err(refused)?;
    let mut spans = Vec::new();
    let mut heading_allowed = true;
    for (number, line) in text.lines().enumerate() {
        let cell = line.split(',').next().unwrap_or("").trim();
        if cell.is_empty() || cell.starts_with('#') {
            continue;
        }
        match positive(cell) {
            Ok(span) => spans.push(span),
            Err(_) if heading_allowed && !cell.starts_with(|c: char| c.is_ascii_digit()) => {}
            Err(error) => return Err(refused(format!("line {}: {error}", number + 1))),
        }
        heading_allowed = false;
    }
    if spans.is_empty() {
        return Err(refused(
            "no times in it; the first column must hold times such as 3.2ms".into(),
        ));
    }
    Ok(ExecutionTime::Table(path.to_owned(), spans))
}

/// As it is written on the command line.
impl fmt::Display for ExecutionTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecutionTime::Fixed(span) => write!(f, "{span}"),
            ExecutionTime::Uniform(low, high) => write!(f, "uniform:{low},{high}"),
            ExecutionTime::Normal(mean, sd) => write!(f, "normal:{mean},{sd}"),
            ExecutionTime::Lognormal(mean, sd) => write!(f, "lognormal:{mean},{sd}"),
            ExecutionTime::Exponential(mean) => write!(f, "exponential:{mean}"),
            ExecutionTime::Bimodal(first, second, share) => {
                write!(f, "bimodal:{first},{second},{share}")
            }
            ExecutionTime::Table(path, _) => write!(f, "table:{path}"),
        }
    }
}

/// Draws execution times, one job after the other.
///
/// The same description and seed give the same sequence. Drawing never allocates, blocks or
/// fails, so that it may stand on a measured path.
#[derive(Clone, Debug)]
pub struct Sampler {
    shape: Shape,
    random: Pcg64Mcg,
}

#[derive(Clone, Debug)]
enum Shape {
    Fixed(Span),
    Uniform(Uniform<i64>),
    Normal(Normal<f64>),
    Lognormal(LogNormal<f64>),
    Exponential(Exp<f64>),
    Bimodal(Span, Span, f64),
    Table(Vec<Span>, usize),
}

impl Sampler {
    /// A source of execution times that replays from `seed`.
    #[must_use]
    pub fn new(times: &ExecutionTime, seed: u64) -> Sampler {
        let ns = |span: &Span| span.nanos() as f64;
        // Parameters were checked on parsing: positive, finite, ordered. Should a caller have
        // built impossible ones by hand, the first parameter stands as a fixed time.
        let shape = match times {
            ExecutionTime::Fixed(span) => Shape::Fixed(*span),
            ExecutionTime::Uniform(low, high) => Uniform::new_inclusive(low.nanos(), high.nanos())
                .map_or(Shape::Fixed(*low), Shape::Uniform),
            ExecutionTime::Normal(mean, sd) => {
                Normal::new(ns(mean), ns(sd)).map_or(Shape::Fixed(*mean), Shape::Normal)
            }
            ExecutionTime::Lognormal(mean, sd) => {
                LogNormal::from_mean_cv(ns(mean), ns(sd) / ns(mean))
                    .map_or(Shape::Fixed(*mean), Shape::Lognormal)
            }
            ExecutionTime::Exponential(mean) => {
                Exp::new(1.0 / ns(mean)).map_or(Shape::Fixed(*mean), Shape::Exponential)
            }
            ExecutionTime::Bimodal(first, second, share) => Shape::Bimodal(*first, *second, *share),
            ExecutionTime::Table(_, spans) => Shape::Table(spans.clone(), 0),
        };
        Sampler { shape, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The execution time of the next job; at least 1 ns.
    pub fn draw(&mut self) -> Span {
        let random = &mut self.random;
        let rounded = |ns: f64| Span::from_nanos(ns.round() as i64);
        let span = match &mut self.shape {
            Shape::Fixed(span) => *span,
            Shape::Uniform(shape) => Span::from_nanos(shape.sample(random)),
            Shape::Normal(shape) => rounded(shape.sample(random)),
            Shape::Lognormal(shape) => rounded(shape.sample(random)),
            Shape::Exponential(shape) => rounded(shape.sample(random)),
            Shape::Bimodal(first, second, share) => {
                let draw: f64 = rand_distr::StandardUniform.sample(random);
                if draw < *share { *second } else { *first }
            }
            Shape::Table(spans, next) => {
                let span = spans.get(*next).copied().unwrap_or(Span::ZERO);
                *next = if *next + 1 >= spans.len() { 0 } else { *next + 1 };
                span
            }
        };
        span.max(Span::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 0x5eed_2002;

    fn mean(text: &str) -> f64 {
        let mut sampler = Sampler::new(&text.parse().unwrap(), SEED);
        let n = 100_000;
        (0..n).map(|_| sampler.draw().nanos() as f64).sum::<f64>() / f64::from(n)
    }

    /// Each distribution has the mean that its description promises (seed in `SEED`).
    #[test]
    fn draws_have_the_promised_mean() {
        for text in [
            "uniform:2ms,4ms",
            "normal:3ms,0.5ms",
            "lognormal:3ms,1ms",
            "exponential:3ms",
            "bimodal:2ms,12ms,0.1",
        ] {
            let described: ExecutionTime = text.parse().unwrap();
            let ratio = mean(text) / described.mean_ns();
            assert!((0.98..1.02).contains(&ratio), "{text}: ratio {ratio}, seed {SEED:#x}");
        }
    }

    #[test]
    fn a_seed_replays() {
        let times: ExecutionTime = "lognormal:3ms,1ms".parse().unwrap();
        let draw = |seed| {
            let mut sampler = Sampler::new(&times, seed);
            (0..10).map(|_| sampler.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_table_is_read_and_repeats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.csv");
        std::fs::write(&path, "time,kind\n3ms,I\n# comment\n\n1.5ms,B\n").unwrap();
        let times: ExecutionTime = format!("table:{}", path.display()).parse().unwrap();
        let mut sampler = Sampler::new(&times, 0);
        let drawn: Vec<String> = (0..3).map(|_| sampler.draw().to_string()).collect();
        assert_eq!(drawn, ["3ms", "1.5ms", "3ms"]);
    }

    #[test]
    fn a_bad_table_names_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.csv");
        std::fs::write(&path, "3ms\nsoon\n").unwrap();
        let error = format!("table:{}", path.display()).parse::<ExecutionTime>().unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    /// Opening a pipe without a writer waits for ever, and a device may never end.
    #[test]
    fn what_is_no_file_is_not_opened() {
        for path in ["/dev/zero", "/"] {
            let error = format!("table:{path}").parse::<ExecutionTime>().unwrap_err();
            assert!(error.to_string().contains("is not a file"), "{error}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(LARGEST_TABLE + 1).unwrap();
        let error = format!("table:{}", file.path().display()).parse::<ExecutionTime>();
        assert!(error.unwrap_err().to_string().contains("67108864"));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "0ms",
            "-1ms",
            "uniform:4ms,2ms",
            "uniform:4ms",
            "bimodal:1ms,2ms,1.5",
            "gamma:1ms,2ms",
            "normal:3ms,x",
            "table:/nonexistent.csv",
        ] {
            assert!(text.parse::<ExecutionTime>().is_err(), "{text}");
        }
    }
}
