//! What a process has of the machine, sampled, and whether it grows.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

/// KiB, and numbers.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    values: [u64; 4],
}

const NAMES: [&str; 4] = ["rss_kib", "data_kib", "descriptors", "threads"];

/// What each may grow by. Pages of what was allocated at the start are touched late: a ring's as it fills, 37 KiB a second for
/// 80 s.
const GROWTH: [u64; 4] = [1024, 768, 0, 0];

impl Footprint {
    /// `None` where the process has ended.
    fn of(pid: u32) -> Option<Footprint> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kib = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        let count = |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).ok();
        let descriptors = count("fd")?.count() as u64;
        let threads = count("task")?.count() as u64;
        Some(Footprint { values: [kib("VmRSS:")?, kib("VmData:")?, descriptors, threads] })
    }
}

/// The samples of a process.
pub(super) struct Growth {
    pub(super) name: &'static str,
    pub(super) pid: u32,
    samples: Vec<Footprint>,
    /// Samples that are left out.
    warm_up: usize,
}

impl Growth {
    /// Samples are taken `every`, and the first half of `length` is left out, two minutes of it at most.
    pub(super) fn new(name: &'static str, pid: u32, length: Duration, every: Duration) -> Growth {
        let warm_up = (length / 2).min(Duration::from_secs(120));
        let warm_up = (warm_up.as_millis() / every.as_millis()) as usize;
        Growth { name, pid, samples: Vec::new(), warm_up }
    }

    pub(super) fn sample(&mut self) {
        self.samples.extend(Footprint::of(self.pid));
    }

    /// The least of the first quarter after the warm-up, and of the last one: what comes and goes is no growth.
    fn ends(&self) -> Option<[[u64; 4]; 2]> {
        let rest = self.samples.get(self.warm_up..)?;
        let quarter = rest.len().div_ceil(4);
        let least = |samples: &[Footprint]| {
            let least = |place: usize| samples.iter().map(|one| one.values[place]).min();
            Some([least(0)?, least(1)?, least(2)?, least(3)?])
        };
        Some([least(&rest[..quarter])?, least(&rest[rest.len() - quarter..])?])
    }

    /// What grew; and that it was sampled at all.
    pub(super) fn wrong(&self) -> Vec<String> {
        let Some([before, after]) = self.ends() else {
            return vec![format!("{} was sampled {} times only", self.name, self.samples.len())];
        };
        let grew = |place: &usize| after[*place] > before[*place] + GROWTH[*place];
        let line = |place: usize| {
            let (name, before, after) = (NAMES[place], before[place], after[place]);
            format!("{} of {} grew from {before} to {after}", name, self.name)
        };
        (0..NAMES.len()).filter(grew).map(line).collect()
    }

    pub(super) fn document(&self) -> Value {
        let [before, after] = self.ends().unwrap_or_default();
        let values =
            (0..NAMES.len()).map(|place| (NAMES[place], json!([before[place], after[place]])));
        let mut document: Value = values.map(|(name, ends)| (name.to_owned(), ends)).collect();
        document["samples"] = self.samples.len().into();
        document
    }
}

#[test]
fn what_grows_is_seen_and_what_comes_and_goes_is_not() {
    let grown = |values: &dyn Fn(u64) -> [u64; 4]| {
        let mut growth = Growth::new("it", 0, Duration::from_secs(10), Duration::from_secs(1));
        growth.samples = (0..10).map(|at| Footprint { values: values(at) }).collect();
        growth.wrong().len()
    };
    assert_eq!(grown(&|at| [at * 10, 0, 5 + at % 2, 3]), 0);
    assert_eq!(grown(&|at| [at * 1_000, 0, 5 + at, 3]), 2);
    assert_eq!(grown(&|at| [0, if at < 5 { 0 } else { 10_000 }, 0, 0]), 0, "the warm-up");
    let never = Growth::new("it", 0, Duration::from_secs(10), Duration::from_secs(1));
    assert_eq!(never.wrong().len(), 1);
}
