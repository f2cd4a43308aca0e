//! The suite `merge`: what putting many runs, and many parts of an experiment, together takes. Time and memory are to
//! grow as their number does, and no faster.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hourglass_documents::document::{GapReport, RunResult, ThreadReport};
use hourglass_documents::manifest::{ClockFacts, Epoch, Manifest, ThreadFacts};
use hourglass_documents::random::Stream;
use hourglass_machine::HostReader;
use hourglass_runs::fleet;
use hourglass_runs::store::{MANIFEST_FILE, RunFolder, TRACE_FILE};
use hourglass_theory::sweep;
use hourglass_trace::{Interval, IntervalStart};

use crate::document::Row;

/// Traces that differ; nodes take them in turn, so that making ten thousand takes seconds.
const TRACES: usize = 16;
const THREADS: u32 = 2;
/// Gaps of a thread: those of ten seconds with a tick of 100 Hz.
const GAPS: u64 = 1_000;
const PERIOD_NS: u64 = 10_000_000;
const SEED: u64 = 23;
const MOST_SECONDS: f64 = 60.0;
const MOST_MIB: f64 = 500.0;

/// Puts runs of a tenth of the nodes, and of all, together; and looks for the part that is missing among those of
/// an experiment.
pub(crate) fn measure(nodes: u64, parts: u64) -> Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    let (runs, out) = (home.path().join("runs"), home.path().join("out"));
    fs::create_dir(&runs)?;
    let templates = templates(home.path())?;
    let mut rows = Vec::new();
    let mut made = 0;
    for count in [nodes / 10, nodes] {
        for number in made..count {
            make_node(&runs, number, &templates)?;
        }
        made = count;
        let (seconds, mib) = costs(|| {
            fleet::merge(std::slice::from_ref(&runs), &out)?;
            let found = fleet::summary(&out)?.nodes.len() as u64;
            if found == count { Ok(()) } else { bail!("{found} nodes of {count} are there") }
        })?;
        fs::remove_dir_all(&out)?;
        let case = format!("{count} nodes");
        rows.push(Row::alone(&case, "hourglass", seconds, "s").at_most(MOST_SECONDS));
        rows.push(Row::alone(&case, "hourglass", mib, "MiB").at_most(MOST_MIB));
    }
    rows.extend(missing_part(home.path(), parts)?);
    Ok(rows)
}

/// How long `work` takes, and how much memory it has at most, MiB.
fn costs(work: impl FnOnce() -> Result<()>) -> Result<(f64, f64)> {
    // proc(5): the peak begins anew.
    fs::write("/proc/self/clear_refs", "5").context("/proc/self/clear_refs")?;
    let begun = Instant::now();
    work()?;
    let seconds = begun.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    Ok((seconds, kib.context("no VmHWM in /proc/self/status")? / 1024.0))
}

fn templates(home: &Path) -> Result<Vec<(PathBuf, Manifest)>> {
    let host = HostReader::new(Path::new("/")).read();
    let mut templates = Vec::new();
    for number in 0..TRACES {
        let mut random = Stream::from_seeds(&[SEED, number as u64]);
        let path = home.join(format!("trace-{number}"));
        let mut folder = RunFolder::create(&path)?;
        let mut trace = folder.trace()?;
        let mut reports = vec![(0_u64, 0_u64); THREADS as usize];
        let mut begun_ns = [0_u64; THREADS as usize];
        for at in 0..GAPS {
            for thread in 0..THREADS {
                let slot = thread as usize;
                let end_ns = (at + 1) * PERIOD_NS;
                let interval = Interval {
                    start_ticks: at * PERIOD_NS,
                    end_ticks: end_ns,
                    ..Interval::new(
                        thread,
                        thread,
                        i64::try_from(begun_ns[slot])?,
                        i64::try_from(end_ns)?,
                        if at == 0 { IntervalStart::Start } else { IntervalStart::Gap },
                    )
                };
                trace.write(&interval)?;
                let gap_ns = 1_000 + (2_000_000 >> random.below(11)) * random.below(1_000) / 1_000;
                begun_ns[slot] = end_ns + gap_ns;
                if at + 1 < GAPS {
                    reports[slot].0 += gap_ns;
                    reports[slot].1 = reports[slot].1.max(gap_ns);
                }
            }
        }
        trace.finish()?;
        let manifest = Manifest { host: host.clone(), ..manifest(&reports) };
        folder.finish(&manifest)?;
        templates.push((path, manifest));
    }
    Ok(templates)
}

/// A manifest of a run whose threads lost these times: the sum, and the longest at once.
fn manifest(lost: &[(u64, u64)]) -> Manifest {
    let thread = |id: u32| ThreadFacts {
        id,
        workload: "CPU".to_owned(),
        wake_up: "NATIVE".to_owned(),
        policy_asked: "OTHER:0".to_owned(),
        policy: "OTHER:0".to_owned(),
        cpus: id.to_string(),
        finish_ns: GAPS * PERIOD_NS,
        gap_ns: 100,
        loop_ns: 20,
        records_capacity: GAPS,
        ..ThreadFacts::default()
    };
    let report = |(id, (total_ns, max_ns)): (u32, &(u64, u64))| ThreadReport {
        id,
        workload: "CPU".to_owned(),
        policy: "OTHER:0".to_owned(),
        wall_ns: GAPS * PERIOD_NS,
        intervals: GAPS,
        gaps: GapReport {
            count: GAPS - 1,
            total_ns: *total_ns,
            max_ns: *max_ns,
            ..GapReport::default()
        },
        ..ThreadReport::default()
    };
    let reports = (0..THREADS).zip(lost).map(report).collect();
    Manifest {
        hourglass: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: vec!["hourglass".to_owned(), "noise".to_owned()],
        duration_ns: GAPS * PERIOD_NS,
        elapsed_ns: GAPS * PERIOD_NS,
        seed: SEED,
        records_capacity: GAPS * u64::from(THREADS),
        clock: ClockFacts {
            source: "tsc".to_owned(),
            trusted: true,
            frequency_hz: 1e9,
            ..ClockFacts::default()
        },
        threads: (0..THREADS).map(thread).collect(),
        result: Some(RunResult { threads: reports, ..RunResult::default() }),
        ..Manifest::default()
    }
}

fn make_node(runs: &Path, number: u64, templates: &[(PathBuf, Manifest)]) -> Result<()> {
    let at = usize::try_from(number)? % templates.len();
    let (template, manifest) = templates.get(at).context("no trace")?;
    let path = runs.join(format!("node-{number:07}"));
    fs::create_dir(&path)?;
    fs::hard_link(template.join(TRACE_FILE), path.join(TRACE_FILE))?;
    let mut manifest = manifest.clone();
    manifest.host.node = Some(format!("node-{number:07}"));
    manifest.host.boot_id = Some(format!("boot of {number}"));
    manifest.epoch =
        Epoch { monotonic_ns: number, realtime_ns: 1_700_000_000_000_000_000 + number, ticks: 1 };
    fs::write(path.join(MANIFEST_FILE), serde_json::to_vec_pretty(&manifest)?)?;
    Ok(())
}

fn missing_part(home: &Path, parts: u64) -> Result<Vec<Row>> {
    let draft = sweep::ExperimentBuilder::from_toml("sets = 1_000_000\nanalyses = [\"rm\"]")?;
    let mut experiment = draft.finish(None)?;
    let mut rows = Vec::new();
    for of in [parts / 10, parts] {
        let all = home.join(format!("parts-{of}"));
        fs::create_dir(&all)?;
        for index in 1..of {
            experiment.shard = Some((index, of));
            let part = sweep::part_folder(&all, (index, of));
            fs::create_dir(&part)?;
            fs::write(part.join("experiment.json"), serde_json::to_vec(&experiment.facts())?)?;
        }
        let (seconds, mib) =
            costs(|| match sweep::merge(std::slice::from_ref(&all), &home.join("whole")) {
                Err(sweep::SweepError::Missing { named, .. }) if named == "0" => Ok(()),
                other => bail!("the missing part is not named: {:?}", other.err()),
            })?;
        let case = format!("{of} parts, one missing");
        rows.push(Row::alone(&case, "hourglass", seconds, "s"));
        rows.push(Row::alone(&case, "hourglass", mib, "MiB"));
        fs::remove_dir_all(&all)?;
    }
    Ok(rows)
}
