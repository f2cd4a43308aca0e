//! Table 1: dispatch latencies with contention from filesystem and network activity (section 5.3).

use hourglass_infer::inferences::{Dispatch, LATER_THAN_NS, dispatch};
use hourglass_lab::experiment::Finished;
use hourglass_model::paper::{MeasurementKind, PaperRow};
use hourglass_time::Span;

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::super::rows::without_figure;
use super::runs::{self, US, row};
use crate::load::{NetworkLoad, Path, SearchLoad};

pub(super) const ID: &str = "1";
pub(super) const TITLE: &str = "Dispatch latencies under filesystem and network activity";

const FULL: Span = Span::from_secs(360);
const QUICK: Span = Span::from_secs(5);

/// The paper's line for its plain kernel: samples later than 1, 5, 10 and 50 ms, of about 65,000.
const PLAIN: [f64; 4] = [284.0, 56.0, 45.0, 1.0];
const PAPER_SAMPLES: f64 = 65_000.0;

/// The paper's timer is the real-time clock, here beside a high-resolution timer.
const TIMERS: [&str; 2] = ["RTC", "HR"];

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = runs::duration(bench, FULL, QUICK);
    let cpu = runs::measured_cpu();
    let mut notes = vec![
        "The paper's other kernels, later than 1, 5, 10 and 50 ms: 2.2.14 RedHat 179, 112, 112, 0; \
         2.4.17 RML 202, 8, 2, 0; 2.4.7 TimeSys none."
            .to_owned(),
        "With the real-time clock at 1024 Hz a thread wakes at the next interrupt, up to 976 us after its \
         time."
            .to_owned(),
        "The paper searches 900 MB over NFS; here a tree of 32 MiB in memory, a sixteenth of which is \
         written and brought to the disk in each round. Its network load is that NFS traffic."
            .to_owned(),
    ];
    // Both go on until the end of this function.
    let network = NetworkLoad::onto(cpu);
    let search = SearchLoad::onto(cpu);
    match &network {
        Ok(load) => notes.extend(way(load.path())),
        Err(why) => notes.push(format!("No network load: {why}.")),
    }
    if let Err(error) = &search {
        notes.push(format!("No search through files: {error}."));
    }
    let threads = TIMERS.map(|timer| runs::thread("LAT 5.3ms", "RTHIGH", timer, cpu));
    let threads: Result<Vec<_>, String> = threads.into_iter().collect();
    let searched = || search.as_ref().map_or(0, SearchLoad::searched_files);
    let ran = threads.and_then(|threads| runs::run_degraded(threads, duration, &searched));
    let method = format!(
        "hourglass -d {duration} -n 2 -a -p RTHIGH -w LAT 5.3ms, one with -i RTC and one with -i HR, on \
         CPU {cpu}, where a TCP stream at full speed is received and a recursive search goes on; \
         counts are of samples here, the paper's of about 65,000"
    );
    let (finished, beside) = match ran {
        Ok(ran) => ran?,
        Err(why) => {
            let rows = TIMERS
                .iter()
                .flat_map(|timer| timer_rows(timer, MeasurementKind::Measured, Err(&why)));
            let rows = rows.collect();
            let table = runs::table((ID, TITLE), method, rows, String::new(), notes);
            return Some(without_figure(table));
        }
    };
    notes.push(format!("{} files were searched meanwhile.", beside.counted));
    notes.extend(lesser_policy(&finished));
    let (mut rows, mut clauses) = (Vec::new(), Vec::new());
    for (thread, timer) in (0u32..).zip(TIMERS) {
        let emulated = emulation(&finished, thread);
        let how =
            if emulated.is_some() { MeasurementKind::Emulated } else { MeasurementKind::Measured };
        notes.extend(emulated.map(|how| format!("{timer} is emulated: {how}.")));
        let found = dispatch(finished.latencies_ps(thread));
        clauses.extend(found.as_ref().map(|found| clause(timer, found)));
        let found = found.ok_or("no wake-up was measured");
        rows.extend(timer_rows(timer, how, found.as_ref().map_err(|why| *why)));
    }
    let difference = clauses.join(" ");
    Some(without_figure(runs::table((ID, TITLE), method, rows, difference, notes)))
}

/// What the network load is, if it is not the usual one.
pub(super) fn way(path: &Path) -> Option<String> {
    match path {
        Path::Veth => None,
        Path::Loopback(why) => Some(format!(
            "The stream goes over the loopback device, so that the kernel receives it on the sender's \
             CPU: {why}."
        )),
    }
}

fn emulation(finished: &Finished, thread: u32) -> Option<String> {
    let threads = &finished.document.result.threads;
    threads.iter().find(|report| report.id == thread)?.emulated.clone()
}

/// That the threads had not the priority that the paper gives them.
fn lesser_policy(finished: &Finished) -> Option<String> {
    let report = finished.document.result.threads.iter().find(|t| !t.policy.starts_with("FIFO"))?;
    let warnings = &finished.document.result.warnings;
    let why = warnings.iter().find(|warning| warning.text.contains("FIFO"));
    let why = why.map_or(String::new(), |why| format!(" ({}; {})", why.text, why.remedy));
    Some(format!("The threads ran under {} instead of a real-time priority{why}.", report.policy))
}

/// A time that a statement about latencies holds, ns.
type Time = fn(&Dispatch) -> f64;

/// Counts and percentiles of a timer.
fn timer_rows(timer: &str, how: MeasurementKind, found: Result<&Dispatch, &str>) -> Vec<PaperRow> {
    let why = found.err().unwrap_or_default();
    let found = found.ok();
    let count = found.map_or(0, |found| found.count);
    let mut rows = Vec::new();
    for ((at, limit_ns), paper) in LATER_THAN_NS.into_iter().enumerate().zip(PLAIN) {
        let name = format!("{timer}: later than {} ms", limit_ns / 1_000_000);
        let later = found.and_then(|found| found.later.get(at));
        let number = later.map(|later| (later.samples as f64, count));
        rows.push(row(&name, Some(paper), ("samples", 1.0), number, why));
    }
    let times: [(&str, Time); 4] = [
        ("median", |found| found.p50.value),
        ("p99", |found| found.p99.value),
        ("p99.9", |found| found.p999.value),
        ("latest", |found| found.max_ns),
    ];
    for (name, of) in times {
        let number = found.map(|found| (of(found), count));
        rows.push(row(&format!("{timer}: {name}"), None, ("us", US), number, why));
    }
    rows.into_iter().map(|row| PaperRow { how, ..row }).collect()
}

/// The paper's share of late samples and ours.
fn clause(timer: &str, found: &Dispatch) -> String {
    let late = found.later.first().map_or(0.0, |later| later.share.value * 100.0);
    let hi = found.later.first().map_or(1.0, |later| later.share.hi) * 100.0;
    format!(
        "By {timer} {late:.2} % of {} samples are later than 1 ms (95 %: below {hi:.2}), in the paper \
         {:.2} %.",
        found.count,
        PLAIN[0] / PAPER_SAMPLES * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's line, if it had been measured here.
    #[test]
    fn the_papers_line() {
        const MS: u64 = 1_000_000_000;
        let groups = [(1, 51 * MS), (44, 11 * MS), (11, 6 * MS), (228, 2 * MS), (64_716, MS / 10)];
        let samples = groups.iter().flat_map(|(times, ps)| std::iter::repeat_n(*ps, *times));
        let found = dispatch(samples).unwrap();
        let rows = timer_rows("HR", MeasurementKind::Measured, Ok(&found));
        for row in rows.iter().filter(|row| row.paper.is_some()) {
            assert_eq!(row.measured, row.paper, "{}", row.name);
        }
        assert_eq!(rows.len(), 8);
        assert!(clause("HR", &found).starts_with("By HR 0.44 % of 65000 samples"));
    }

    /// A machine that refuses has every row, with the reason.
    #[test]
    fn refusals_are_reported() {
        let rows = timer_rows("RTC", MeasurementKind::Emulated, Err("no privilege"));
        assert!(rows.iter().all(|row| row.missing.as_deref() == Some("no privilege")));
        assert!(way(&Path::Veth).is_none());
        assert!(way(&Path::Loopback("refused".into())).unwrap().ends_with("CPU: refused."));
    }
}
