//! The load beside a measurement (`--load`): its kinds, how it is asked for, and what came of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::spelling;

crate::named_enum! {
    /// What a process of the load does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub serde enum LoadKind {
        /// Computes.
        Cpu => "cpu",
        /// Jumps through an array as large as a cache of the last level.
        Cache => "cache",
        /// Writes more memory than caches hold.
        Memory => "memory",
        /// Writes a file and has it written to the disk.
        Io => "io",
        /// Wakes by timers, tens of thousands of times a second.
        Timer => "timer",
        /// Pairs of processes that wake each other.
        Switch => "switch",
    }
}

/// Most processes of one kind.
const MOST: u32 = 256;

/// A load that is asked for: kinds, each with a number of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSpec(Vec<(LoadKind, Option<u32>)>);

impl LoadSpec {
    /// The word for every kind.
    pub const ALL: &str = "all";

    /// The kinds in their order, each with its number on a machine with `cpus`: where none is given, one process a CPU
    /// computes, and there is one of each other kind.
    #[must_use]
    pub fn kinds(&self, cpus: u32) -> Vec<(LoadKind, u32)> {
        let usual = |kind| if kind == LoadKind::Cpu { cpus.clamp(1, MOST) } else { 1 };
        self.0.iter().map(|(kind, number)| (*kind, number.unwrap_or(usual(*kind)))).collect()
    }
}

/// Why a text is no load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadSpecError(String);

impl FromStr for LoadSpec {
    type Err = LoadSpecError;

    /// Reads `all`, or `KIND[:NUMBER],...`.
    fn from_str(text: &str) -> Result<LoadSpec, LoadSpecError> {
        if text == LoadSpec::ALL {
            return Ok(LoadSpec(LoadKind::ALL.map(|kind| (kind, None)).to_vec()));
        }
        let mut kinds: Vec<(LoadKind, Option<u32>)> = Vec::new();
        for part in text.split(',') {
            let (name, number) = match part.split_once(':') {
                Some((name, number)) => (name, Some(number_of(name, number)?)),
                None => (part, None),
            };
            let kind = LoadKind::from_name(name).ok_or_else(|| unknown(name))?;
            if kinds.iter().any(|(known, _)| *known == kind) {
                let twice = format!("'{name}' is given twice; write one number, as {name}:2");
                return Err(LoadSpecError(twice));
            }
            kinds.push((kind, number));
        }
        Ok(LoadSpec(kinds))
    }
}

fn number_of(name: &str, text: &str) -> Result<u32, LoadSpecError> {
    let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
    number.ok_or_else(|| {
        LoadSpecError(format!("bad number '{text}' of {name}: give one from 1 to {MOST}"))
    })
}

fn unknown(name: &str) -> LoadSpecError {
    let kinds = LoadKind::NAMES.join(", ");
    if name == LoadSpec::ALL {
        return LoadSpecError(format!("'all' stands alone; name kinds instead: {kinds}"));
    }
    let nearest = spelling::nearest(name, LoadKind::NAMES);
    let meant = nearest.first().map_or(String::new(), |near| format!("did you mean '{near}'? "));
    LoadSpecError(format!("unknown load '{name}'; {meant}use all, or some of {kinds}"))
}

/// What ran beside a measurement, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// What made it: `stress-ng`, or `hourglass` where that is not installed.
    pub by: String,
    /// Version of stress-ng, as it says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// CPUs on which it was allowed to run.
    pub cpus: String,
    /// Its kinds, in the order in which they were given.
    pub kinds: Vec<LoadKindFacts>,
    /// Processor time that all of it received during the measurement.
    pub cpu_time_ns: u64,
    /// Whether each kind ran to the end of the measurement.
    pub ran: bool,
}

/// One kind of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadKindFacts {
    /// Which.
    pub kind: LoadKind,
    /// How many processes; of `switch`, pairs.
    pub number: u32,
    /// What they did: the command line of stress-ng, or a sentence.
    pub does: String,
    /// Processor time that it received during the measurement.
    pub cpu_time_ns: u64,
    /// Whether all of its processes were there to the end of the measurement, and received processor time.
    pub ran: bool,
}

/// Who made it, and the numbers of its kinds: `stress-ng 0.15.06: cpu 2, memory 1`.
impl fmt::Display for LoadFacts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.by)?;
        if let Some(version) = &self.version {
            write!(to, " {version}")?;
        }
        for (place, kind) in self.kinds.iter().enumerate() {
            let before = if place == 0 { ": " } else { ", " };
            write!(to, "{before}{} {}", kind.kind.name(), kind.number)?;
            if !kind.ran {
                to.write_str(" (did not run to the end)")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(&'static str, u32)> {
        let spec: LoadSpec = text.parse().unwrap();
        spec.kinds(4).into_iter().map(|(kind, number)| (kind.name(), number)).collect()
    }

    #[test]
    fn kinds_and_numbers_are_read() {
        assert_eq!(kinds("memory:3,cpu"), [("memory", 3), ("cpu", 4)]);
        assert_eq!(kinds("all").len(), LoadKind::ALL.len());
        assert_eq!(kinds("all")[..2], [("cpu", 4), ("cache", 1)]);
    }

    #[test]
    fn mistakes_are_named() {
        let every = "use all, or some of cpu, cache, memory, io, timer, switch";
        for (text, wanted) in [
            ("", format!("unknown load ''; {every}")),
            ("disk:1", format!("unknown load 'disk'; {every}")),
            ("cpu,memry", format!("unknown load 'memry'; did you mean 'memory'? {every}")),
            ("cpu:0", "bad number '0' of cpu: give one from 1 to 256".to_owned()),
            ("cpu:257", "bad number '257' of cpu: give one from 1 to 256".to_owned()),
            ("cpu:x", "bad number 'x' of cpu: give one from 1 to 256".to_owned()),
            ("io,cpu,io:2", "'io' is given twice; write one number, as io:2".to_owned()),
            (
                "cpu,all",
                "'all' stands alone; name kinds instead: cpu, cache, memory, io, timer, switch"
                    .to_owned(),
            ),
        ] {
            let found = text.parse::<LoadSpec>().unwrap_err().to_string();
            assert_eq!(found, wanted, "{text}");
        }
    }
}
