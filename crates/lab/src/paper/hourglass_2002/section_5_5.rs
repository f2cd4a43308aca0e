//! Section 5.5: audio and video on paper, in simulation and on this machine, with the timers of 2002
//! and with those of today.

use hourglass_model::document::Warning;
use hourglass_model::paper::{How, PaperRow, PaperTable};
use hourglass_model::predict::{PredictDocument, PredictedTask};
use hourglass_model::tasks::{Assignment, Task, TaskSet};
use hourglass_time::Span;

use super::super::MeasuredTable;
use super::super::bench::{Bench, Effort};
use super::super::rows::{beside, found, lacking, without_figure};
use crate::experiment::{Failure, Watch};
use crate::theory::predict::{self, PredictError, Request, RunRequest};

pub(super) const ID: &str = "5.5";
pub(super) const TITLE: &str = "Deadlines of two concurrent applications";

/// As long as in the paper, and what suffices to see the pattern: it repeats every 330 ms.
const FULL: Span = Span::from_secs(10);
const QUICK: Span = Span::from_secs(4);

/// `usleep` of Linux 2.4, as this program emulates it.
const TICK: &str = "TICK:100";

/// A case of the section: the video task of it, and what the paper found.
struct Case {
    name: &'static str,
    video_ms: i64,
    timer: &'static str,
    /// Missed and hit, of audio and of video.
    paper: [(u32, u32); 2],
}

/// The three runs of the section.
const CASES: [Case; 3] = [
    Case { name: "17/33, tick", video_ms: 17, timer: TICK, paper: [(0, 1001), (142, 143)] },
    Case { name: "17/33, HR", video_ms: 17, timer: "HR", paper: [(0, 1003), (0, 304)] },
    Case { name: "12/33, tick", video_ms: 12, timer: TICK, paper: [(0, 1001), (0, 303)] },
];

/// An analysis of the section: execution time and release jitter of the video task, and the
/// response times that the paper gives.
struct Analysis {
    name: &'static str,
    video_ms: i64,
    jitter_ms: i64,
    paper_ms: [Option<f64>; 2],
}

const ANALYSES: [Analysis; 3] = [
    Analysis { name: "17/33", video_ms: 17, jitter_ms: 0, paper_ms: [Some(3.0), Some(29.0)] },
    Analysis { name: "19/33, 8 ms late", video_ms: 19, jitter_ms: 8, paper_ms: [None, Some(39.0)] },
    Analysis { name: "12/33, 8 ms late", video_ms: 12, jitter_ms: 8, paper_ms: [None, None] },
];

/// Audio of 3/8 and a video task, by rate-monotonic priorities.
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

/// What is wanted of a set; without a duration, it is not run.
fn request(set: TaskSet, duration: Option<Span>) -> Request {
    Request {
        set,
        name: String::new(),
        notes: Vec::new(),
        run: duration.map(RunRequest::of),
        seed: 0,
        horizon: None,
    }
}

pub(super) fn measure(bench: &Bench) -> Option<MeasuredTable> {
    let duration = match bench.effort {
        Effort::Quick => QUICK,
        Effort::Full => FULL,
    };
    let mut rows = analysed();
    let mut explained = None;
    for case in &CASES {
        if (bench.stopped)() {
            return None;
        }
        let set = tasks(case.video_ms, 0, case.timer);
        match predict::predict(request(set.clone(), Some(duration)), &mut Unheard) {
            Ok(predicted) if predicted.signal.is_some() => return None,
            Ok(predicted) => {
                simulated_rows(case, &predicted.document, &mut rows);
                measured_rows(case, &predicted.document, &mut rows);
                let video = predicted.document.tasks.into_iter().nth(1);
                explained = explained.or_else(|| video.and_then(|video| video.explanation));
            }
            Err(error) => refused_rows(case, &why(&error), set, &mut rows),
        }
    }
    let difference = explained.map_or_else(
        || "Nothing contradicted the analysis of 17/33.".to_owned(),
        |why| format!("What misses deadlines that the analysis of 17/33 promises: {why}."),
    );
    Some(without_figure(table(rows, difference, duration)))
}

fn table(rows: Vec<PaperRow>, difference: String, duration: Span) -> PaperTable {
    PaperTable {
        id: ID.into(),
        title: TITLE.into(),
        paper_machine: "Pentium III of 850 MHz, Linux 2.4.17 with a patch for high-resolution timers"
            .into(),
        method: format!(
            "response times by analysis, from nominal arrival; deadlines in runs of {duration} on \
             CPU 0, audio (3/8) and video under SCHED_FIFO by rate; the tick of 10 ms, and its busy \
             waiting for up to 2 ms, are emulated; missed are shares of the periods that were \
             missed or hit, as the paper counts them"
        ),
        rows,
        decisions: Vec::new(),
        difference,
        notes: vec![
            "The paper's 8 ms of jitter are a tick less the 2 ms for which it busy-waits. Here ticks \
             begin with the run, and a release comes 9 ms late, or 10 where a period ends with a tick."
                .into(),
            "hourglass predict examples/tasks-5-5.toml replays the first case.".into(),
        ],
        figure: None,
    }
}

fn analysed() -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for analysis in &ANALYSES {
        let set = tasks(analysis.video_ms, analysis.jitter_ms, "HR");
        let Ok(predicted) = predict::predict(request(set, None), &mut Unheard) else { continue };
        for (task, paper) in predicted.document.tasks.iter().zip(analysis.paper_ms) {
            if task.name == "audio" && paper.is_none() {
                continue;
            }
            let name = format!("{}: {} responds in", analysis.name, task.name);
            let row = match task.bound_ns {
                Some(ns) => found(name, ns as f64 / 1e6, "ms", How::Analysed, 1),
                None => lacking(name, "ms", How::Analysed, "the analysis gives no bound"),
            };
            rows.push(beside(paper, row));
        }
    }
    rows
}

fn simulated_rows(case: &Case, document: &PredictDocument, rows: &mut Vec<PaperRow>) {
    for task in &document.tasks {
        let (Some(ns), Some(_)) = (task.simulated_ns, &document.simulation) else { continue };
        let name = format!("{}: {} responds in", case.name, task.name);
        rows.push(found(name, ns as f64 / 1e6, "ms", How::Simulated, 1));
    }
}

fn how(case: &Case, task: &str) -> How {
    if case.timer == TICK && task == "video" { How::Emulated } else { How::Measured }
}

fn measured_rows(case: &Case, document: &PredictDocument, rows: &mut Vec<PaperRow>) {
    for (task, (missed, hit)) in document.tasks.iter().zip(case.paper) {
        let name = format!("{}: {} missed", case.name, task.name);
        let paper = share(u64::from(missed), u64::from(hit));
        let how = how(case, &task.name);
        let row = match counts(task)
            .and_then(|(missed, hit)| Some((share(missed, hit)?, missed + hit)))
        {
            Some((percent, periods)) => found(name, percent, "%", how, periods),
            None => lacking(name, "%", how, "no period came to its end"),
        };
        rows.push(beside(paper, row));
    }
}

fn counts(task: &PredictedTask) -> Option<(u64, u64)> {
    task.missed.zip(task.hit)
}

/// Missed of all, in per cent, to a tenth.
fn share(missed: u64, hit: u64) -> Option<f64> {
    let all = missed + hit;
    (all > 0).then(|| (missed as f64 * 1_000.0 / all as f64).round() / 10.0)
}

fn refused_rows(case: &Case, why: &str, set: TaskSet, rows: &mut Vec<PaperRow>) {
    for (task, (missed, hit)) in set.tasks.iter().zip(case.paper) {
        let name = format!("{}: {} missed", case.name, task.name);
        let paper = share(u64::from(missed), u64::from(hit));
        rows.push(beside(paper, lacking(name, "%", how(case, &task.name), why)));
    }
}

/// One line.
fn why(error: &PredictError) -> String {
    match error {
        PredictError::Run(Failure::Refused(refusals)) => refusals.first().map_or_else(
            || error.to_string(),
            |r| format!("{}: {}; {}", r.what, r.reason, r.remedy),
        ),
        _ => error.to_string(),
    }
}

/// Nobody watches.
struct Unheard;

impl Watch for Unheard {
    fn warn(&mut self, _warnings: &[Warning]) {}
    fn started(&mut self, _duration: Span, _ticking: bool) {}
    fn tick(&mut self, _elapsed: Span) {}
    fn ended(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of section 5.5: 3 and 29; 39 with the tick's jitter and busy wait.
    #[test]
    fn the_analyses_of_the_section() {
        let rows = analysed();
        let with_paper = rows.iter().filter(|row| row.paper.is_some());
        assert_eq!(with_paper.clone().count(), 3);
        for row in with_paper {
            assert_eq!(row.measured, row.paper, "{}", row.name);
        }
        assert!(rows.iter().all(|row| row.measured.is_some_and(|ms| ms <= 39.0)));
    }

    /// The file that the table names says the same as the code.
    #[test]
    fn the_file_replays_the_first_case() {
        let text = include_str!("../../../../../examples/tasks-5-5.toml");
        let file = TaskSet::from_toml(text).unwrap();
        assert_eq!(file, tasks(CASES[0].video_ms, 0, CASES[0].timer));
    }

    #[test]
    fn shares_are_the_papers() {
        assert_eq!(share(142, 143), Some(49.8));
        assert_eq!((share(0, 1001), share(0, 0)), (Some(0.0), None));
    }
}
