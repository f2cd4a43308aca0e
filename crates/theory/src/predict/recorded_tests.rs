//! Each assumption broken in turn on a simulated run, recorded as a real one is: the one that fails is named, with its
//! place, and the bound with what was measured in that job is tight.

use std::collections::BTreeMap;

use hourglass_documents::predict::PredictedTask;
use hourglass_measure::experiment::JobTimes;
use hourglass_sim::{self as sim, Event, SimSettings, Sink, Slice};
use hourglass_tasks::TaskSet;
use hourglass_trace::{Interval, IntervalStart};

use super::explain::by_window;
use super::observed::{ObservedJob, ObservedRun, ObservedThread};
use super::theory;
use crate::simulate::{Choices, model};

const MS: u64 = 1_000_000;

/// Section 5.5 of the Hourglass paper: 3 of 8 ms and 17 of 33 ms; the bounds are 3 and 29 ms.
const SET: &str = "unit = \"1ms\"\npriorities = \"given\"\n\
    [[task]]\nname = \"audio\"\nwcet = 3\nperiod = 8\npriority = 20\n\
    [[task]]\nname = \"video\"\nwcet = 17\nperiod = 33\npriority = 10\n";

fn set(text: &str) -> TaskSet {
    TaskSet::from_toml(text).unwrap()
}

/// Records what a run would.
#[derive(Default)]
struct Tape {
    intervals: Vec<Interval>,
    /// The first slice and the time received, by thread and job.
    begun: BTreeMap<(usize, u64), (u64, u64)>,
    jobs: Vec<(usize, JobTimes)>,
}

impl Sink for Tape {
    fn ran(&mut self, slice: Slice) {
        let seen = self.begun.entry((slice.thread, slice.job)).or_insert((slice.start, 0));
        let onset = if seen.1 == 0 { IntervalStart::Wait } else { IntervalStart::Gap };
        seen.1 += slice.end - slice.start;
        self.intervals.push(Interval {
            thread: u32::try_from(slice.thread).unwrap(),
            cpu: slice.cpu,
            start_ns: slice.start.cast_signed(),
            end_ns: slice.end.cast_signed(),
            start_ticks: slice.start,
            end_ticks: slice.end,
            onset,
            evidence: Default::default(),
        });
    }

    fn event(&mut self, now: u64, event: Event) {
        if let Event::Completion { thread, job, response } = event {
            let (begun, received) = self.begun[&(thread, job)];
            self.jobs.push((
                thread,
                JobTimes {
                    arrival_ns: (now - response).cast_signed(),
                    start_ns: begun.cast_signed(),
                    finished_ns: now.cast_signed(),
                    received_ns: received,
                },
            ));
        }
    }
}

/// A run of `really`, of which the first `tasks` are those that the analysis knows. `priorities` are those that the run
/// was asked for.
fn run(really: &str, tasks: usize, priorities: &[u8]) -> (ObservedRun, Tape) {
    let really = set(really);
    let model = model(&really, Choices::default()).unwrap();
    let mut tape = Tape::default();
    let settings = SimSettings::until(264 * MS);
    sim::run_with(&model.system, settings, &mut tape, &mut sim::NullMonitor).unwrap();
    let mut seen = ObservedRun::default();
    for priority in priorities {
        let thread =
            ObservedThread { cpu: Some(0), urgency: Some(*priority), ..ObservedThread::default() };
        seen.threads.push(thread);
    }
    let known: Vec<Interval> =
        tape.intervals.iter().copied().filter(|i| (i.thread as usize) < tasks).collect();
    seen.trace(known);
    for (thread, times) in tape.jobs.iter().filter(|(thread, _)| *thread < tasks) {
        seen.threads[*thread].jobs.push(ObservedJob { times: *times, release_delay_ns: 0 });
    }
    (seen, tape)
}

/// The prediction for video, whose response is over its bound.
fn explained(seen: &ObservedRun) -> PredictedTask {
    let set = set(SET);
    let bounds = theory::bounds_on_paper(&set);
    let worst = seen.threads[1].jobs.iter().map(|job| job.times.response_ns()).max();
    let mut video = PredictedTask {
        name: "video".into(),
        bound_ns: bounds.tasks[1].response_ns,
        measured_ns: worst,
        ..PredictedTask::default()
    };
    assert!(video.measured_ns > video.bound_ns, "{video:?}");
    assert!(by_window(&set, seen, 1, &mut video), "{video:?}");
    assert!(video.corrected_bound_ns >= video.measured_ns, "{video:?}");
    video
}

/// The first failure: assumption, task, excess in us.
fn first(task: &PredictedTask) -> (&str, &str, u64) {
    let row = &task.failed[0];
    assert!(row.at_ns.is_some() && row.cpu == Some(0), "{row:?}");
    (&row.assumption, &row.task, row.excess_ns / 1_000)
}

#[test]
fn nothing_fails_where_everything_is_as_said() {
    let (seen, _) = run(SET, 2, &[20, 10]);
    let table = seen.table(&set(SET));
    assert_eq!(table.len(), 12);
    assert!(table.iter().all(|row| row.held == Some(true) && row.jobs > 0), "{table:?}");
}

#[test]
fn a_job_that_executes_too_long_is_named() {
    let (seen, _) = run(&SET.replace("wcet = 3\n", "wcet = \"3500us\"\n"), 2, &[20, 10]);
    let video = explained(&seen);
    assert_eq!(first(&video), ("cost", "audio", 500));
    assert!(video.explanation.unwrap().contains("'audio' executes 500 us longer than its wcet"));
    let (seen, _) = run(&SET.replace("wcet = 17", "wcet = 19"), 2, &[20, 10]);
    assert_eq!(first(&explained(&seen)), ("cost", "video", 2_000));
}

#[test]
fn a_job_that_arrives_too_early_is_named() {
    let (seen, _) = run(&SET.replace("period = 8", "period = 7"), 2, &[20, 10]);
    let video = explained(&seen);
    let (assumption, task, excess) = first(&video);
    assert_eq!((assumption, task), ("arrivals", "audio"));
    // The k-th next job is k ms too early.
    assert!(excess >= 1_000 && excess % 1_000 == 0, "{excess}");
    assert!(video.failed.iter().all(|row| row.assumption == "arrivals"), "{video:?}");
}

#[test]
fn a_late_timer_is_named() {
    // Video is released 6 ms late; its recorder knows, as a timer with a grid does.
    let late = SET.replace("period = 33", "period = 33\njitter = 6");
    let (mut seen, _) = run(&late, 2, &[20, 10]);
    for job in &mut seen.threads[1].jobs {
        let until_run = (job.times.start_ns - job.times.arrival_ns).unsigned_abs();
        job.release_delay_ns = until_run.min(6 * MS);
    }
    assert_eq!(first(&explained(&seen)), ("release", "video", 6_000));
}

#[test]
fn wrong_priorities_are_named() {
    // What runs has them the other way round; the analysis, and the run's own account, do not.
    let swapped = SET.replace("priority = 20", "priority = 5");
    let (seen, _) = run(&swapped, 2, &[20, 10]);
    let set = set(SET);
    let worst = seen.threads[0].jobs.iter().map(|job| job.times.response_ns()).max();
    let mut audio =
        PredictedTask { measured_ns: worst, bound_ns: Some(3 * MS), ..PredictedTask::default() };
    assert!(worst > audio.bound_ns);
    assert!(by_window(&set, &seen, 0, &mut audio), "{audio:?}");
    assert_eq!(first(&audio), ("priority", "audio", 17_000));
    assert_eq!(audio.corrected_bound_ns, worst, "tight");
}

/// A thread outside the set takes 2 ms every 50: video loses just that, and its bound with it lets one more
/// job of audio in.
#[test]
fn what_others_take_is_named() {
    let others = "[[task]]\nname = \"others\"\nwcet = 2\nperiod = 50\npriority = 99\n";
    let (seen, _) = run(&format!("{SET}{others}"), 2, &[20, 10]);
    let video = explained(&seen);
    assert_eq!(first(&video), ("supply", "video", 2_000));
    assert!(video.explanation.unwrap().contains("others take 2 ms from 'video' (job at "));
    assert!(
        video.corrected_bound_ns <= video.measured_ns.map(|ns| ns + 3 * MS),
        "no looser than a job of audio"
    );
}

/// A real thread runs for a moment before and after each of its jobs, and times are rounded to ns: neither is in what
/// the jobs received, and a bound without them was missed by so little.
#[test]
fn what_threads_do_between_jobs_is_in_the_bound() {
    let others = "[[task]]\nname = \"others\"\nwcet = 2\nperiod = 50\npriority = 99\n";
    let (mut seen, _) = run(&format!("{SET}{others}"), 2, &[20, 10]);
    for thread in &mut seen.threads {
        for job in &mut thread.jobs {
            job.times.received_ns -= 301;
        }
    }
    let video = explained(&seen);
    assert_eq!(first(&video), ("supply", "video", 2_000));
}

/// A job that waits by itself: the simulator has no such onset, so a gap in which no thread ran becomes one.
#[test]
fn a_job_that_waits_is_named() {
    let others = "[[task]]\nname = \"others\"\nwcet = 2\nperiod = 50\noffset = 20\npriority = 99\n";
    let (mut seen, tape) = run(&format!("{SET}{others}"), 2, &[20, 10]);
    let away: Vec<Interval> = tape.intervals.into_iter().filter(|i| i.thread == 2).collect();
    let waits = away.iter().map(|i| (i.start_ns, i.end_ns));
    seen.threads[1].waits = waits.collect();
    let video = explained(&seen);
    assert_eq!(first(&video), ("work-conserving", "video", 2_000), "{video:?}");
}
