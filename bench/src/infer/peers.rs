//! Whether `hourglass latency` and `hourglass noise` see what cyclictest and oslat see.
//!
//! They are run in turns on the same CPU. How far apart two distributions are is the largest difference of
//! their cumulative shares (Kolmogorov and Smirnov's distance), from 0 to 1. On a machine that others share,
//! two runs of one program are apart too: the peer's distance from its own next run is the yardstick.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::document::Row;
use crate::paired::median;

const TURNS: usize = 7;
/// How far apart the two may be, against the peer and itself: with so few runs, both medians have an
/// error of a third.
const AGREES: f64 = 1.5;

struct Pair {
    case: &'static str,
    command: &'static str,
    peer: &'static str,
    options: &'static [&'static str],
    /// Shorter ones are not compared, us: below it each counts by a threshold of its own.
    from_us: u64,
}

const PAIRS: [Pair; 2] = [
    Pair {
        case: "latency",
        command: "latency",
        peer: "cyclictest",
        options: &["-q", "-m", "-p80", "-i1000", "-l2000", "-h2000", "-t1", "-a1"],
        from_us: 0,
    },
    Pair {
        case: "noise",
        command: "noise",
        peer: "oslat",
        options: &["-c", "1", "-D", "3", "-f", "60"],
        from_us: 3,
    },
];

/// Distances, medians and 99th percentiles; without the peer nothing, and the reason is printed.
pub(super) fn measure() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for pair in &PAIRS {
        match pair.measure() {
            Ok(found) => rows.extend(found),
            Err(why) => eprintln!("{}: left out: {why:#}", pair.case),
        }
    }
    Ok(rows)
}

impl Pair {
    fn measure(&self) -> Result<Vec<Row>> {
        let binary = crate::workload::binary()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            theirs.push(self.run(&mut Command::new(self.peer))?);
            ours.push(self.run(Command::new(&binary).arg(self.command))?);
        }
        Ok(self.rows(&ours, &theirs))
    }

    fn run(&self, command: &mut Command) -> Result<Histogram> {
        let output = command
            .args(self.options)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{command:?}; rt-tests has it"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?}: {}: {}", output.status, said.trim());
        let found = Histogram::read(&String::from_utf8_lossy(&output.stdout), self.from_us);
        ensure!(found.total() > 0, "{command:?} printed no histogram");
        Ok(found)
    }

    fn rows(&self, ours: &[Histogram], theirs: &[Histogram]) -> Vec<Row> {
        let apart = |pairs: &mut dyn Iterator<Item = (&Histogram, &Histogram)>| {
            median(&mut pairs.map(|(one, other)| one.distance(other)).collect::<Vec<_>>())
        };
        let between = apart(&mut ours.iter().zip(theirs));
        let itself = apart(&mut theirs.iter().zip(theirs.iter().skip(1)));
        let case = |what: &str| format!("{}_{what}", self.case);
        let mut first = Row::alone(&case("distance"), "hourglass", between, "share");
        let own = format!("{}/itself", self.peer);
        first.ratio_to.insert(own.clone(), between / itself.max(f64::MIN_POSITIVE));
        first.set_goal(&own, AGREES);
        let mut rows = vec![first, Row::alone(&case("distance"), &own, itself, "share")];
        for (what, share) in [("p50", 0.5), ("p90", 0.9)] {
            for (subject, runs) in [("hourglass", ours), (self.peer, theirs)] {
                let mut values: Vec<f64> = runs.iter().map(|run| run.quantile(share)).collect();
                rows.push(Row::alone(&case(what), subject, median(&mut values), "us"));
            }
        }
        rows
    }
}

/// Counts by whole microseconds.
#[derive(Debug, PartialEq)]
struct Histogram(BTreeMap<u64, u64>);

impl Histogram {
    /// Of what was printed: lines of a number and a count, with or without the unit of oslat.
    fn read(text: &str, from_us: u64) -> Histogram {
        let line = |line: &str| {
            let line = line.replacen("(us):", "", 1);
            let mut words = line.split_whitespace();
            let (value, count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            (value >= from_us && count > 0).then_some((value, count))
        };
        Histogram(text.lines().filter_map(line).collect())
    }

    fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The largest difference of the shares up to any value.
    fn distance(&self, other: &Histogram) -> f64 {
        let (all, others) = (self.total().max(1) as f64, other.total().max(1) as f64);
        let (mut here, mut there, mut most) = (0, 0, 0f64);
        let values: std::collections::BTreeSet<u64> =
            self.0.keys().chain(other.0.keys()).copied().collect();
        for value in values {
            here += self.0.get(&value).unwrap_or(&0);
            there += other.0.get(&value).unwrap_or(&0);
            most = most.max((here as f64 / all - there as f64 / others).abs());
        }
        most
    }

    /// The value that this share does not exceed, us.
    fn quantile(&self, share: f64) -> f64 {
        let wanted = self.total() as f64 * share;
        let mut seen = 0;
        for (value, count) in &self.0 {
            seen += count;
            if seen as f64 >= wanted {
                return *value as f64;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_histograms_are_read() {
        let cyclictest = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\n000001 000003\n000007 000001\n# Total: 000000004\n";
        let oslat = "        Core:\t 1\nCounter Freq:\t 2298 (Mhz)\n    001 (us):\t 3\n    007 (us):\t 1 (including overflows)\n     Minimum:\t 1 (us)\n";
        let expected = Histogram([(1, 3), (7, 1)].into());
        assert_eq!(Histogram::read(cyclictest, 0), expected);
        assert_eq!(Histogram::read(oslat, 1), expected);
        assert_eq!(Histogram::read(oslat, 2).total(), 1);
        assert_eq!((expected.quantile(0.5), expected.quantile(0.9)), (1.0, 7.0));
    }

    /// By hand: of 4 and of 2, up to 1 the shares are 3/4 and 0.
    #[test]
    fn distances() {
        let one = Histogram([(1, 3), (7, 1)].into());
        let other = Histogram([(7, 1), (9, 1)].into());
        assert!((one.distance(&other) - 0.75).abs() < 1e-12);
        assert!(one.distance(&one) < 1e-12);
    }
}
