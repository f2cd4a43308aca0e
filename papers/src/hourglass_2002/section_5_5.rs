//! Section 5.5: audio and video on paper, in simulation and on this machine, with the timers of 2002
//! and with those of today.

use hourglass_documents::paper::{MeasurementKind, PaperRow};
use hourglass_documents::predict::PredictDocument;
use hourglass_tasks::{Assignment, Task, TaskSet};
use hourglass_theory::predict::{self, PredictError, PredictRequest, RunRequest};
use hourglass_time::Span;

use super::super::bench::MeasurementHost;
use super::super::printed::{Line, MeasuredTable, Table};
use super::super::rows::row;
use super::runs::{self, Rounds, most_rounds, paper_meets_all, paper_share, share};

/// As long as in the paper, and what suffices to see the pattern: it repeats every 1.32 s.
const FULL: Span = Span::from_secs(10);
const QUICK: Span = Span::from_secs(2);

/// `usleep` of Linux 2.4, as this program emulates it.
const TICK: &str = "TICK:100";

/// The analyses of the section, which are the table's first lines: execution time and release jitter of the video
/// task, ms.
const ANALYSES: [(i64, i64); 3] = [(17, 0), (19, 8), (12, 8)];

/// Its three runs, which are the other lines: execution time of the video task, ms, and its timer.
const CASES: [(i64, &str); 3] = [(17, TICK), (17, "HR"), (12, TICK)];

pub(super) fn tasks(video_ms: i64, jitter_ms: i64, timer: &str) -> TaskSet {
    let ms = Span::from_millis;
    let audio = Task { timer: Some("HR".to_owned()), ..Task::new("audio", ms(3), ms(8)) };
    let video = Task {
        jitter: ms(jitter_ms),
        timer: Some(timer.to_owned()),
        ..Task::new("video", ms(video_ms), ms(33))
    };
    TaskSet {
        name: "audio and video".to_owned(),
        assignment: Some(Assignment::RateMonotonic),
        ..TaskSet::new(vec![audio, video])
    }
}

fn request(set: TaskSet, duration: Option<Span>) -> PredictRequest {
    PredictRequest {
        set,
        name: String::new(),
        notes: Vec::new(),
        run: duration.map(RunRequest::with_duration),
        seed: 0,
        horizon: None,
    }
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = bench.at_most(FULL, QUICK);
    let (analyses, cases) = table.lines.split_at(ANALYSES.len());
    let mut rows = analysed(analyses);
    let mut values = runs::values(0, duration);
    for (line, (video_ms, timer)) in cases.iter().zip(CASES) {
        let set = tasks(video_ms, 0, timer);
        match Rounds::run(most_rounds(line, bench), late, || {
            once(bench, line, set.clone(), duration)
        }) {
            Ok(rounds) => {
                let rounds = rounds?;
                let note = rounds.note(&line.name);
                values = values
                    .with_some(&format!("{}: rounds", line.name), note)
                    .with_some(&format!("{}: why", line.name), what_misses(&rounds.best));
                rows.extend(simulated_rows(line, &rounds.best));
                rows.extend(measured_rows(line, timer, &Ok(rounds.best)));
            }
            Err(error) => rows.extend(measured_rows(line, timer, &Err(why(&error)))),
        }
    }
    Some(table.with_rows(rows, values))
}

fn late(document: &PredictDocument) -> u64 {
    document.tasks.iter().map(|task| task.missed.unwrap_or(0) + task.lost.unwrap_or(0)).sum()
}

fn once(
    bench: &MeasurementHost,
    line: &Line,
    set: TaskSet,
    duration: Span,
) -> Result<Option<PredictDocument>, PredictError> {
    if (bench.stopped)() {
        return Ok(None);
    }
    let mut wanted = request(set, Some(duration));
    // Of a remedy, its own jobs tell what they lost.
    if let Some(run) = &mut wanted.run {
        run.watches_others = !paper_meets_all(line);
    }
    let predicted = predict::predict(wanted, &mut ())?;
    Ok(predicted.signal.is_none().then_some(predicted.document))
}

fn what_misses(document: &PredictDocument) -> Option<String> {
    let video = document.tasks.iter().find(|task| task.name == "video")?;
    let missed = video.missed.unwrap_or(0) + video.lost.unwrap_or(0);
    video.explanation.as_ref().filter(|_| missed > 0).map(ToString::to_string)
}

fn analysed(lines: &[Line]) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for (line, (video_ms, jitter_ms)) in lines.iter().zip(ANALYSES) {
        let set = tasks(video_ms, jitter_ms, "HR");
        let Ok(predicted) = predict::predict(request(set, None), &mut ()) else { continue };
        for (column, task) in predicted.document.tasks.iter().enumerate() {
            let paper = line.printed(column);
            if task.name == "audio" && paper.is_none() {
                continue;
            }
            let name = format!("{}: {} responds in, by analysis", line.name, task.name);
            let found = task.bound_ns.map(|ns| (ns as f64, 1));
            let found = found.ok_or_else(|| "the analysis gives no bound".to_owned());
            rows.push(row(name, &line.unit, paper, MeasurementKind::Simulated, found));
        }
    }
    rows
}

fn simulated_rows(line: &Line, document: &PredictDocument) -> Vec<PaperRow> {
    let simulated = document.tasks.iter().filter(|_| document.simulation.is_some());
    simulated
        .filter_map(|task| {
            let name = format!("{}: {} responds in", line.name, task.name);
            let found = Ok((task.simulated_ns? as f64, 1));
            Some(row(name, "ms", None, MeasurementKind::Simulated, found))
        })
        .collect()
}

fn measured_rows(
    line: &Line,
    timer: &str,
    document: &Result<PredictDocument, String>,
) -> Vec<PaperRow> {
    let of = |(at, name): (usize, &str)| {
        let found = document.as_ref().map_err(Clone::clone).and_then(|document| {
            let task = document.tasks.get(at);
            let counts = task.and_then(|task| task.missed.zip(task.hit));
            let found = counts.and_then(|(missed, hit)| Some((share(missed, hit)?, missed + hit)));
            found.ok_or_else(|| "no period came to its end".to_owned())
        });
        let emulated = timer == TICK && name == "video";
        let how = if emulated { MeasurementKind::Emulated } else { MeasurementKind::Measured };
        row(format!("{}: {name} missed", line.name), &line.unit, paper_share(line, at), how, found)
    };
    ["audio", "video"].into_iter().enumerate().map(of).collect()
}

fn why(error: &PredictError) -> String {
    match error {
        PredictError::Run(failure) => runs::why(failure),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;

    /// The numbers of section 5.5: 3 and 29; 39 with the tick's jitter and busy wait.
    #[test]
    fn the_analyses_of_the_section() {
        let rows = analysed(&table("5.5").lines[..ANALYSES.len()]);
        let with_paper = rows.iter().filter(|row| row.paper.is_some());
        assert_eq!(with_paper.clone().count(), 3);
        for row in with_paper {
            assert_eq!(row.measured, row.paper, "{}", row.name);
        }
        assert!(rows.iter().all(|row| row.measured.is_some_and(|ms| ms <= 39.0)));
    }

    #[test]
    fn the_file_replays_the_first_case() {
        let text = include_str!("../../../examples/tasks.toml");
        let file = TaskSet::from_toml(text).unwrap();
        assert_eq!(file, tasks(CASES[0].0, 0, CASES[0].1));
    }
}
