//! Table 1: dispatch latencies with contention from filesystem and network activity (section 5.3).

use hourglass_documents::paper::{MeasurementKind, PaperRow};
use hourglass_measure::experiment::Finished;
use hourglass_time::Span;
use hourglass_trace::inferences::{Dispatch, dispatch};

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::row;
use super::runs;
use crate::load::{NetworkLoad, Path, SearchLoad};

const FULL: Span = Span::from_secs(360);
const QUICK: Span = Span::from_secs(5);

/// The paper's timer is the real-time clock, here beside a high-resolution timer.
const TIMERS: [&str; 2] = ["RTC", "HR"];

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = bench.at_most(FULL, QUICK);
    let cpu = runs::measured_cpu();
    // Both go on until the end of this function.
    let network = NetworkLoad::onto(cpu);
    let search = SearchLoad::onto(cpu);
    let way = network.as_ref().ok().and_then(|load| no_namespace(load.path()));
    let mut values = runs::values(cpu, duration)
        .with_some("no namespace", way)
        .with_some("no network", network.as_ref().err().map(String::as_str))
        .with_some("no search", search.as_ref().err().map(ToString::to_string));
    let threads = TIMERS.map(|timer| runs::thread("LAT 5.3ms", "RTHIGH", timer, cpu));
    let threads: Result<Vec<_>, String> = threads.into_iter().collect();
    let searched = || search.as_ref().map_or(0, SearchLoad::searched_files);
    let mut rows = Vec::new();
    match threads.and_then(|threads| runs::run_degraded(threads, duration, &searched)) {
        Ok(ran) => {
            let (finished, beside) = ran?;
            values = lesser_policy(&finished, values.with("searched", beside.counted));
            for (thread, timer) in (0u32..).zip(TIMERS) {
                let emulated = emulation(&finished, thread);
                let how = match emulated {
                    Some(_) => MeasurementKind::Emulated,
                    None => MeasurementKind::Measured,
                };
                values = values.with_some(&format!("{timer} emulated"), emulated);
                let found = dispatch(finished.latencies_ps(thread));
                values = late_shares(timer, found.as_ref(), values);
                let found = found.as_ref().ok_or("no wake-up was measured");
                rows.extend(timer_rows(table, timer, how, found));
            }
        }
        Err(why) => {
            let how = MeasurementKind::Measured;
            rows.extend(TIMERS.iter().flat_map(|timer| timer_rows(table, timer, how, Err(&why))));
        }
    }
    Some(table.with_rows(rows, values))
}

pub(super) fn no_namespace(path: &Path) -> Option<&str> {
    match path {
        Path::Veth => None,
        Path::Loopback(why) => Some(why),
    }
}

fn emulation(finished: &Finished, thread: u32) -> Option<String> {
    let threads = &finished.document.result.threads;
    threads.iter().find(|report| report.id == thread)?.emulated.clone()
}

fn lesser_policy(finished: &Finished, values: Values) -> Values {
    let result = &finished.document.result;
    let report = result.threads.iter().find(|thread| !thread.policy.starts_with("FIFO"));
    let why = result.warnings.iter().find(|warning| warning.text.contains("FIFO"));
    let why = why.map_or(String::new(), |why| format!(" ({}; {})", why.text, why.remedy));
    values.with_some("policy", report.map(|report| report.policy.as_str())).with("refused", why)
}

/// A time that a statement about latencies holds, ns.
type Time = fn(&Dispatch) -> f64;

fn timer_rows(
    table: &Table,
    timer: &str,
    how: MeasurementKind,
    found: Result<&Dispatch, &str>,
) -> Vec<PaperRow> {
    let number = |of: &dyn Fn(&Dispatch) -> Option<f64>| {
        let found = found.map_err(str::to_owned)?;
        Ok((of(found).unwrap_or_default(), found.count))
    };
    let mut rows = Vec::new();
    for (at, line) in table.lines.iter().enumerate() {
        let later = number(&|found| Some(found.later.get(at)?.samples as f64));
        let name = format!("{timer}: {}", line.name);
        rows.push(row(name, &line.unit, line.printed(0), how, later));
    }
    let times: [(&str, Time); 4] = [
        ("median", |found| found.p50.value),
        ("p99", |found| found.p99.value),
        ("p99.9", |found| found.p999.value),
        ("latest", |found| found.max_ns),
    ];
    for (name, of) in times {
        let found = number(&|found| Some(of(found)));
        rows.push(row(format!("{timer}: {name}"), "us", None, how, found));
    }
    rows
}

fn late_shares(timer: &str, found: Option<&Dispatch>, values: Values) -> Values {
    let Some(found) = found else { return values };
    let share = found.later.first().map(|later| later.share);
    let percent = |share: f64| format!("{:.2}", share * 100.0);
    values
        .with(&format!("{timer} late"), percent(share.map_or(0.0, |share| share.value)))
        .with(&format!("{timer} below"), percent(share.map_or(1.0, |share| share.hi)))
        .with(&format!("{timer} samples"), found.count)
}

#[cfg(test)]
mod tests {
    use hourglass_trace::inferences::LATER_THAN_NS;

    use super::super::tests::table;
    use super::*;

    #[test]
    fn the_papers_line() {
        const MS: u64 = 1_000_000_000;
        let groups = [(1, 51 * MS), (44, 11 * MS), (11, 6 * MS), (228, 2 * MS), (64_716, MS / 10)];
        let samples = groups.iter().flat_map(|(times, ps)| std::iter::repeat_n(*ps, *times));
        let (found, printed) = (dispatch(samples).unwrap(), table("1"));
        let rows = timer_rows(printed, "HR", MeasurementKind::Measured, Ok(&found));
        for row in rows.iter().filter(|row| row.paper.is_some()) {
            assert_eq!(row.measured, row.paper, "{}", row.name);
        }
        assert_eq!(rows.len(), 8);
        let limits = LATER_THAN_NS.map(|ns| format!("later than {} ms", ns / 1_000_000));
        assert_eq!(
            printed.lines.iter().map(|line| &line.name).collect::<Vec<_>>(),
            limits.each_ref()
        );
        let values = late_shares("HR", Some(&found), Values::default());
        let said = printed.with_rows(Vec::new(), values).table.difference;
        assert!(said.starts_with("By HR 0.44 % of 65000 samples"), "{said}");
    }

    #[test]
    fn refusals_are_reported() {
        let rows = timer_rows(table("1"), "RTC", MeasurementKind::Emulated, Err("no privilege"));
        assert!(rows.iter().all(|row| row.missing.as_deref() == Some("no privilege")));
        assert!(no_namespace(&Path::Veth).is_none());
        let path = Path::Loopback("refused".into());
        let values = Values::default().with_some("no namespace", no_namespace(&path));
        let notes = table("1").with_rows(Vec::new(), values).table.notes;
        assert!(notes.iter().any(|note| note.ends_with("CPU: refused.")), "{notes:?}");
    }
}
