//! A robot's control loop that marks its periods: `cargo run --release --example own_loop [DIR]`.
//!
//! Every 5 ms it filters what its sensors say and sets its motors. With a folder, the run is kept
//! there, and `hourglass show DIR` tells what became of it.

use std::path::PathBuf;

use hourglass_measure::Finished;
use hourglass_measure::own_loop::{LoopFailure, MeasuredLoop};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::wait::nanosleep_until;
use hourglass_time::Span;
use hourglass_workload::LoopSpec;

const PERIOD: Span = Span::from_millis(5);
const JOINTS: usize = 64;

/// Stands for the real thing: some tens of microseconds of arithmetic a joint.
struct Robot {
    position: [f64; JOINTS],
    target: [f64; JOINTS],
}

impl Robot {
    fn new() -> Robot {
        let target = std::array::from_fn(|joint| (joint as f64).sin());
        Robot { position: [0.0; JOINTS], target }
    }

    fn move_joint(&mut self, joint: usize) {
        for _ in 0..200 {
            let error = self.target[joint] - self.position[joint];
            self.position[joint] += (error * 0.01).tanh();
        }
    }
}

/// Controls the robot for `periods` periods.
fn control(periods: u32, folder: Option<PathBuf>) -> Result<Finished, LoopFailure> {
    let mut robot = Robot::new();
    let mut own = MeasuredLoop::start(
        LoopSpec {
            // Longer than a joint takes: what lies between two checks is a gap then.
            gap: Some(Span::from_millis(1)),
            jobs: periods as usize,
            ..LoopSpec::every("control", PERIOD)
        },
        folder,
    )?;
    let mut due_ns = now_ns(ClockId::Monotonic);
    for _ in 0..periods {
        // Waking late leaves less time: the deadline counts from when the period was due.
        own.begin_period_due(due_ns);
        for joint in 0..JOINTS {
            robot.move_joint(joint);
            own.check();
        }
        own.end_period();
        due_ns += PERIOD.nanos_or_zero();
        while now_ns(ClockId::Monotonic) < due_ns {
            // A signal may end it early.
            let _ = nanosleep_until(due_ns);
        }
    }
    Ok(own.finish())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let finished = control(400, folder)?;
    let thread = &finished.document.result.threads[0];
    let periods = thread.deadlines.unwrap_or_default();
    println!(
        "{} periods: {} hit, {} missed, {} lost",
        periods.hit + periods.missed + periods.lost,
        periods.hit,
        periods.missed,
        periods.lost
    );
    println!("{} gaps, the longest {} ns", thread.gaps.count, thread.gaps.max_ns);
    if let Some(kept) = finished.folder {
        println!("kept in {}", kept?.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hourglass_runs::open_run;
    use hourglass_trace::{Interval, IntervalStart};

    use super::*;

    /// Issue 6, part 6: the same run folder, document, gaps, evidence and deadlines as a thread of ours.
    #[test]
    fn its_run_is_kept_like_any_other() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run");
        let finished = control(20, Some(path.clone())).unwrap();
        let thread = &finished.document.result.threads[0];
        assert_eq!((thread.name.as_deref(), &*thread.workload), (Some("control"), "LOOP 5ms"));
        let periods = thread.deadlines.unwrap();
        assert_eq!((periods.completed, periods.hit + periods.missed), (20, 20));
        assert!(thread.cpu_time_ns > 0 && thread.cpu_time_ns <= thread.wall_ns);
        assert!(thread.tid.is_some() && !finished.document.manifest.evidence.is_empty());
        assert_eq!(finished.jobs(0).count(), 20);

        let recalled = open_run(&path).unwrap();
        assert_eq!(recalled.document.result, finished.document.result);
        let stored: Vec<Interval> = recalled.intervals().unwrap().map(Result::unwrap).collect();
        assert_eq!(stored, finished.intervals().collect::<Vec<_>>());
        assert_eq!(stored.len() as u64, thread.intervals);
        let waits: Vec<&Interval> =
            stored.iter().filter(|i| i.onset == IntervalStart::Wait).collect();
        assert_eq!(waits.len(), 19);
        // It slept before each of them, unless it was late.
        let slept = waits.iter().filter(|i| i.evidence.counted.is_some_and(|c| c.voluntary > 0));
        assert!(slept.count() as u64 + periods.missed + periods.lost > 10, "{waits:?}");
    }

    #[test]
    fn a_folder_that_is_there_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let refused = control(1, Some(home.path().to_path_buf())).unwrap_err();
        assert!(matches!(refused, LoopFailure::Folder(_)), "{refused}");
    }
}
