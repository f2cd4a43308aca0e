//! Runs put together: against all their samples, whatever the order and the steps; and refusals.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::store::merged::{HISTOGRAM_FILE, MERGED_FILE};
use crate::store::{MANIFEST_FILE, RunFolder, StoredWakeUp, TRACE_FILE};
use hdrhistogram::Histogram;
use hourglass_dice::Dice;
use hourglass_documents::document::{GapReport, LatencyReport, RunResult, ThreadReport};
use hourglass_documents::histogram_steps::step_of;
use hourglass_documents::manifest::{ClockFacts, Epoch, Manifest, ThreadFacts};
use hourglass_documents::merged::{FleetDocument, Metric};
use hourglass_trace::{Interval, IntervalStart};

use super::*;

/// A run of one thread that was made up.
struct TestFolder {
    node: &'static str,
    begun_s: u64,
    gaps_ns: Vec<u64>,
    latencies_ns: Vec<u64>,
}

/// Lengths from 100 ns to 3 ms, more short ones than long ones; the seed is the only source.
fn lengths(seed: u64, count: usize) -> Vec<u64> {
    let mut dice = Dice::new(seed);
    (0..count).map(|_| 100 + (3_000_000 >> dice.below(13)) * dice.below(1_000) / 1_000).collect()
}

fn noise(node: &'static str, begun_s: u64) -> TestFolder {
    TestFolder { node, begun_s, gaps_ns: lengths(begun_s, 400), latencies_ns: Vec::new() }
}

impl TestFolder {
    fn manifest(&self) -> Manifest {
        let thread = ThreadFacts {
            workload: if self.latencies_ns.is_empty() { "CPU" } else { "GRID 1ms" }.to_owned(),
            wake_up: "NATIVE".to_owned(),
            policy_asked: "FIFO:80".to_owned(),
            policy: "FIFO:80".to_owned(),
            cpus: "0".to_owned(),
            finish_ns: 1_000_000_000,
            gap_ns: 100,
            loop_ns: 20,
            records_capacity: 1_000,
            ..ThreadFacts::default()
        };
        let mut manifest = Manifest {
            hourglass: "0.1.0".to_owned(),
            command_line: vec!["hourglass".to_owned()],
            epoch: Epoch {
                monotonic_ns: self.begun_s * 1_000_000_000,
                realtime_ns: self.begun_s * 1_000_000_000 + 7,
                ticks: self.begun_s,
            },
            duration_ns: 1_000_000_000,
            elapsed_ns: 1_000_000_000,
            seed: 1,
            records_capacity: 1_000,
            clock: ClockFacts {
                source: "tsc".to_owned(),
                trusted: true,
                frequency_hz: 1e9,
                ..ClockFacts::default()
            },
            threads: vec![thread],
            ..Manifest::default()
        };
        manifest.host.node = Some(self.node.to_owned());
        manifest.host.boot_id = Some("a boot".to_owned());
        manifest.host.kernel = "6.18".to_owned();
        manifest
    }

    fn report(&self) -> ThreadReport {
        let max = |all: &[u64]| all.iter().copied().max().unwrap_or(0);
        let latency = (!self.latencies_ns.is_empty()).then(|| LatencyReport {
            count: self.latencies_ns.len() as u64,
            max_ns: max(&self.latencies_ns),
            ..LatencyReport::default()
        });
        let gaps = GapReport {
            count: self.gaps_ns.len() as u64,
            total_ns: self.gaps_ns.iter().sum(),
            max_ns: max(&self.gaps_ns),
            ..GapReport::default()
        };
        ThreadReport {
            id: 0,
            policy: "FIFO:80".to_owned(),
            wall_ns: 1_000_000_000,
            gaps,
            latency,
            ..ThreadReport::default()
        }
    }

    /// Writes the folder of the run, which is called as its node is.
    fn keep(&self, parent: &Path) -> PathBuf {
        self.keep_with(parent, self.node, |_| ())
    }

    fn keep_with(&self, parent: &Path, name: &str, change: impl Fn(&mut Manifest)) -> PathBuf {
        fs::create_dir_all(parent).unwrap();
        let mut folder = RunFolder::create(parent.join(name)).unwrap();
        let mut trace = folder.trace().unwrap();
        let (mut at_ns, mut onset) = (0, IntervalStart::Start);
        for gap_ns in self.gaps_ns.iter().copied().chain([0]) {
            let end_ns = at_ns + 1_000;
            let ticks = |ns: i64| u64::try_from(ns).unwrap();
            trace
                .write(&Interval {
                    start_ticks: ticks(at_ns),
                    end_ticks: ticks(end_ns),
                    ..Interval::new(0, 0, at_ns, end_ns, onset)
                })
                .unwrap();
            (at_ns, onset) = (end_ns + i64::try_from(gap_ns).unwrap(), IntervalStart::Gap);
        }
        trace.finish().unwrap();
        let manifest = self.manifest();
        if !self.latencies_ns.is_empty() {
            let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
            self.latencies_ns.iter().for_each(|ns| histogram.record(*ns).unwrap());
            folder.write_latencies(&manifest.epoch, 1, &[(0, &histogram)]).unwrap();
            let wake_up = |(at, ns): (usize, &u64)| StoredWakeUp {
                woke_ns: Some(at as i64),
                lateness_ps: ns * 1_000,
            };
            let wake_ups = self.latencies_ns.iter().enumerate().map(wake_up);
            folder.write_samples([(0, wake_ups)]).unwrap();
        }
        let mut result = RunResult { threads: vec![self.report()], ..RunResult::default() };
        result.warnings.clear();
        let mut manifest = Manifest { result: Some(result), ..manifest };
        change(&mut manifest);
        folder.finish(&manifest).unwrap().path().to_path_buf()
    }
}

/// How often values of each step were seen, by node and metric.
fn histograms(folder: &Path) -> BTreeMap<(String, Metric), BTreeMap<u64, u64>> {
    let folder = MergedFolder::open(folder).unwrap();
    let mut steps = folder.steps().unwrap();
    let mut all: BTreeMap<_, BTreeMap<u64, u64>> = BTreeMap::new();
    for run in &folder.document().runs {
        for series in &run.series {
            let counts = all.entry((run.node.clone(), series.metric)).or_default();
            let add = |step: Step| {
                *counts.entry(step.lo_ns).or_default() += step.count;
                Ok::<_, FleetError>(())
            };
            steps.series(series, add).unwrap();
        }
    }
    all
}

fn counted(values: &[u64]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(step_of(*value).0).or_default() += 1);
    counts
}

fn bytes(folder: &Path) -> [Vec<u8>; 2] {
    [MERGED_FILE, HISTOGRAM_FILE].map(|name| fs::read(folder.join(name)).unwrap())
}

/// Issue 23: the merged histogram is the one of all samples.
#[test]
fn the_histogram_is_the_one_of_all_samples() {
    let home = tempfile::tempdir().unwrap();
    let (runs, out) = (home.path().join("runs"), home.path().join("out"));
    let made = [noise("n1", 10), noise("n2", 20), noise("n3", 30)];
    made.iter().for_each(|one| drop(one.keep(&runs)));
    // The same node a second time, later.
    let again = noise("n2", 40);
    again.keep_with(&runs, "n2-again", |_| ());
    merge(std::slice::from_ref(&runs), &out).unwrap();
    let found = histograms(&out);
    let of = |node: &str| &found[&(node.to_owned(), Metric::Gap)];
    assert_eq!(of("n1"), &counted(&made[0].gaps_ns));
    assert_eq!(of("n3"), &counted(&made[2].gaps_ns));
    let both = [made[1].gaps_ns.clone(), again.gaps_ns].concat();
    assert_eq!(of("n2"), &counted(&both));
    let FleetDocument { nodes, warnings, runs, .. } = summary(&out).unwrap();
    assert_eq!((runs, warnings), (4, Vec::new()));
    let node = nodes.iter().find(|node| node.node == "n2").unwrap();
    let gaps = node.gaps.as_ref().unwrap();
    let mut sorted = both.clone();
    sorted.sort_unstable();
    assert_eq!((gaps.count, gaps.stored), (800, 800));
    assert_eq!(gaps.lost_ns, both.iter().sum::<u64>());
    assert_eq!(gaps.max_ns, *sorted.last().unwrap());
    // The 400th, 792nd and 800th of 800.
    let step = |rank: usize| (step_of(sorted[rank - 1]).1 - 1).min(gaps.max_ns);
    assert_eq!([gaps.p50_ns, gaps.p99_ns, gaps.p999_ns], [400, 792, 800].map(step));
    let shares: Vec<u64> = nodes.iter().map(|n| n.gaps.as_ref().unwrap().lost_ppb).collect();
    assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
}

#[test]
fn latencies_are_added_and_their_maximum_has_its_place() {
    let home = tempfile::tempdir().unwrap();
    let (runs, out) = (home.path().join("runs"), home.path().join("out"));
    let mut latencies_ns = lengths(5, 300);
    latencies_ns[77] = 9_000_000;
    let made = TestFolder { node: "n1", begun_s: 1, gaps_ns: Vec::new(), latencies_ns };
    made.keep(&runs);
    merge(&[runs.join("n1")], &out).unwrap();
    let found = histograms(&out);
    assert_eq!(found.len(), 1);
    assert_eq!(found[&("n1".to_owned(), Metric::Latency)], counted(&made.latencies_ns));
    let document = summary(&out).unwrap();
    let latency = document.nodes[0].latency.as_ref().unwrap();
    assert_eq!((latency.count, latency.max_ns), (300, 9_000_000));
    assert_eq!(latency.worst.as_ref().unwrap().at_ns, Some(77));
    assert_eq!(document.nodes[0].gaps, None);
    let folder = MergedFolder::open(&out).unwrap();
    let total_ns = folder.document().runs[0].series[0].total_ns;
    assert_eq!(total_ns, Some(made.latencies_ns.iter().sum()));
}

/// Issue 23: bytes do not depend on the order of folders, nor on the steps in which they were added.
#[test]
fn bytes_are_those_of_one_merge_whatever_the_order_and_the_steps() {
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str| home.path().join(name);
    let names = ["a", "b", "c", "d", "e"];
    let made: Vec<PathBuf> =
        (0..5).map(|at| noise(names[4 - at], 10 + at as u64).keep(&place("runs"))).collect();
    merge(&[place("runs")], &place("all")).unwrap();
    let wanted = bytes(&place("all"));
    let backwards: Vec<PathBuf> = made.iter().rev().cloned().collect();
    merge(&backwards, &place("backwards")).unwrap();
    assert_eq!(bytes(&place("backwards")), wanted);
    merge(&[made[0].clone(), made[3].clone()], &place("one")).unwrap();
    merge(&[made[4].clone(), made[1].clone()], &place("other")).unwrap();
    merge(&[place("other"), made[2].clone(), place("one")], &place("steps")).unwrap();
    assert_eq!(bytes(&place("steps")), wanted);
    merge(&[place("steps")], &place("again")).unwrap();
    assert_eq!(bytes(&place("again")), wanted);
}

#[test]
fn what_does_not_belong_together_is_refused_and_nothing_written() {
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str| home.path().join(name);
    let out = place("out");
    let refused = |folders: &[&str]| {
        let folders: Vec<_> = folders.iter().map(|name| place(name)).collect();
        let error = merge(&folders, &out).unwrap_err().to_string();
        assert!(!out.exists(), "{error}");
        assert!(!error.contains('\n'), "{error}");
        error
    };
    noise("n1", 10).keep(&place("runs"));
    noise("n1", 10).keep(&place("copy"));
    // A node that answers twice, under another name too.
    let error = refused(&["runs", "copy"]);
    assert!(error.contains("of n1 is there twice, in ") && error.ends_with("leave one out"));
    noise("n9", 10).keep(&place("renamed"));
    assert!(refused(&["runs", "renamed"]).contains("is there twice"));
    merge(&[place("runs")], &place("merged")).unwrap();
    assert!(refused(&["runs", "merged"]).contains("is there twice"));
    // Half-written: one, and several.
    let broken = noise("n2", 20).keep(&place("broken"));
    fs::remove_file(broken.join(MANIFEST_FILE)).unwrap();
    assert!(refused(&["runs", "broken"]).contains("is half-written"));
    for (name, begun_s) in [("n3", 30), ("n4", 40)] {
        let broken = noise(name, begun_s).keep(&place("broken"));
        fs::write(broken.join(TRACE_FILE), "PAR1").unwrap();
    }
    let error = refused(&["runs", "broken"]);
    assert!(error.contains("n2 is half-written") && error.contains("; 2 more are not whole: "));
    assert!(error.ends_with(&format!("{}", place("broken/n4").display())), "{error}");
    // Other kinds.
    let latencies_ns = vec![1_000];
    TestFolder { node: "n5", begun_s: 50, gaps_ns: Vec::new(), latencies_ns }.keep(&place("late"));
    let error = refused(&["runs", "late"]);
    assert!(error.contains("n5 measured GRID 1ms by NATIVE, "), "{error}");
    assert!(error.contains("n1 CPU by NATIVE; merge"), "{error}");
    fs::create_dir_all(place("sweep/part")).unwrap();
    fs::write(place("sweep/part/experiment.json"), "{}").unwrap();
    assert!(refused(&["runs", "sweep"]).contains("is of hourglass sweep"));
    fs::create_dir_all(place("empty")).unwrap();
    assert!(refused(&["runs", "empty"]).contains("no run is there"));
    // A folder that is there is not written to.
    fs::create_dir(&out).unwrap();
    let error = merge(&[place("runs")], &out).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
}

#[test]
fn latencies_that_are_not_the_runs_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let made = TestFolder { node: "n1", begun_s: 1, gaps_ns: Vec::new(), latencies_ns: vec![5; 9] };
    made.keep_with(home.path(), "n1", |manifest| {
        let result = manifest.result.as_mut().unwrap();
        result.threads[0].latency.as_mut().unwrap().count = 10;
    });
    let error = merge(&[home.path().join("n1")], &home.path().join("out")).unwrap_err();
    assert!(error.to_string().contains("has 9 wake-ups of thread 0, of 10"), "{error}");
}

#[test]
fn a_damaged_folder_of_merged_runs_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (runs, merged) = (home.path().join("runs"), home.path().join("merged"));
    noise("n1", 10).keep(&runs);
    merge(&[runs], &merged).unwrap();
    let file = merged.join(MERGED_FILE);
    let text = fs::read_to_string(&file).unwrap();
    let error_of = |text: &str| {
        fs::write(&file, text).unwrap();
        summary(&merged).unwrap_err().to_string()
    };
    let error = error_of(&text.replacen("\"rows\":", "\"rows\":1", 1));
    assert!(error.contains("is damaged: it has "), "{error}");
    let error = error_of(&text.replacen("\"count\":", "\"count\":1", 1));
    assert!(error.contains("counts are not those of the document"), "{error}");
    let error = error_of(&text.replacen("merged/1", "merged/2", 1));
    assert!(error.contains("the schema 'hourglass.merged/2'"), "{error}");
    assert!(error_of("{").contains("is damaged"));
    fs::remove_file(&file).unwrap();
    assert!(summary(&merged).unwrap_err().to_string().contains("is half-written"));
}

#[test]
fn what_makes_nodes_unlike_is_said() {
    let home = tempfile::tempdir().unwrap();
    let runs = home.path().join("runs");
    noise("n1", 10).keep(&runs);
    noise("n2", 20).keep(&runs);
    noise("n3", 30).keep_with(&runs, "n3", |manifest| {
        manifest.hourglass = "0.2.0".to_owned();
        manifest.host.kernel = "6.6".to_owned();
        manifest.threads[0].policy = "OTHER:0".to_owned();
        manifest.threads[0].gap_ns = 500;
        let result = manifest.result.as_mut().unwrap();
        result.threads[0].gaps.count += 2;
        result.interrupted = true;
    });
    noise("n4", 40).keep_with(&runs, "unnamed", |manifest| manifest.host.node = None);
    noise("n5", 50).keep_with(&runs, "n5", |manifest| {
        // The gap at the end of the run: more room would not help.
        manifest.result.as_mut().unwrap().threads[0].gaps.count += 1;
    });
    let out = home.path().join("out");
    merge(&[runs], &out).unwrap();
    let document = summary(&out).unwrap();
    let ids: Vec<&str> = document.warnings.iter().map(|warning| warning.id.as_str()).collect();
    let wanted = [
        "mixed-versions",
        "mixed-kernels",
        "policy-not-granted",
        "thresholds-differ",
        "gaps-not-stored",
        "interrupted",
        "node-not-named",
    ];
    assert_eq!(ids, wanted);
    assert!(document.warnings[..6].iter().all(|warning| warning.text.starts_with("n3: ")));
    assert!(document.warnings[6].text.starts_with("unnamed: "));
    assert_eq!(document.kernels[0].runs, 4);
}
