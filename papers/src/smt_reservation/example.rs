//! Section 3.3: the example of Figures 4 and 5, on a simulated core.
//!
//! 6 ms of single-thread time are reserved until 10 ms. In the first 4 ms the real-time process makes
//! half of its speed, in the 2 ms after these none, beside two other processes in turn.

use hourglass_documents::paper::{MeasurementKind, PaperFigure, TraceFigure, TracePiece};
use hourglass_sim::slack::{Decision, ProgressRate, SlackReservation};
use hourglass_sim::smt::{self, Monitoring, SmtOutcome, SmtPolicy};
use hourglass_sim::{
    ArrivalPattern, Class, CostModel, Event, SimSettings, Sink, Slice, System, Thread,
};
use hourglass_tasks::Fraction;

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::row;

const MS: u64 = 1_000_000;
const DEADLINE: u64 = 10 * MS;
const RESERVED: u64 = 6 * MS;
/// How long each of the first two co-runners runs: beside the one the process makes half of its speed,
/// beside the other nothing.
const SLOWED: u64 = 4 * MS;

/// Positions of the threads. A last one is on the real-time process' hardware thread.
const REAL_TIME: usize = 0;
const SLOWING: usize = 1;
const STARVING: usize = 2;

fn system() -> System {
    let mut system = System::new(2);
    system.cores = vec![vec![0, 1]];
    system.threads.push(Thread::periodic(RESERVED, DEADLINE).on(&[0]));
    let once = ArrivalPattern::Listed(vec![0]);
    let slowing = Thread::new(Class::Fair(0), once, CostModel::Worst(SLOWED), u64::MAX);
    system.threads.push(slowing.on(&[1]));
    let mut starving = Thread::best_effort(0).on(&[1]);
    starving.arrivals.set_offset(SLOWED);
    system.threads.push(starving);
    system.threads.push(Thread::best_effort(0).on(&[0]));
    let half = Fraction::new(1, 2).unwrap_or(Fraction::ONE);
    let none = Fraction::new(0, 1).unwrap_or(Fraction::ONE);
    system.interference.set(REAL_TIME, SLOWING, half);
    system.interference.set(REAL_TIME, STARVING, none);
    system
}

#[derive(Debug, Default)]
struct Log {
    slices: Vec<Slice>,
    done: Option<u64>,
}

impl Sink for Log {
    fn ran(&mut self, slice: Slice) {
        self.slices.push(slice);
    }

    fn event(&mut self, _: u64, event: Event) {
        if let Event::Completion { thread: REAL_TIME, response, .. } = event {
            self.done = Some(response);
        }
    }
}

impl Log {
    /// Until when CPU 1 was used while the process ran, ns.
    fn stopped(&self) -> Option<u64> {
        let done = self.done?;
        let beside = self.slices.iter().filter(|s| s.cpu == 1 && s.start < done);
        beside.map(|s| s.end).max()
    }

    fn others(&self) -> u64 {
        self.slices.iter().filter(|s| s.thread != REAL_TIME).map(|s| s.end - s.start).sum()
    }

    fn figure(&self, id: &str, title: &str) -> TraceFigure {
        let row = |slice: &Slice| match (slice.thread, slice.cpu) {
            (REAL_TIME, _) => 0,
            (_, 0) => 1,
            _ => 2,
        };
        let end = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let mut pieces: Vec<TracePiece> = self
            .slices
            .iter()
            .map(|slice| TracePiece {
                thread: row(slice),
                cpu: slice.cpu,
                start_ns: end(slice.start),
                end_ns: end(slice.end),
                onset: 0,
            })
            .collect();
        pieces.sort_unstable_by_key(|piece| (piece.start_ns, piece.thread));
        let names = ["real-time on CPU 0", "best effort on CPU 0", "best effort on CPU 1"];
        TraceFigure {
            id: id.to_owned(),
            title: title.to_owned(),
            from_ns: 0,
            to_ns: end(DEADLINE),
            threads: (0..).zip(names.map(str::to_owned)).collect(),
            pieces,
        }
    }
}

fn simulate(policy: SmtPolicy) -> Result<(SmtOutcome, Log), String> {
    let mut log = Log::default();
    // A job that ends with the horizon is reported.
    let settings = SimSettings::until(DEADLINE);
    let outcome =
        smt::run(&system(), policy, settings, &mut log).map_err(|error| error.to_string())?;
    Ok((outcome, log))
}

fn slack_samples() -> Vec<(u64, i128)> {
    let promise = SlackReservation::new(DEADLINE, RESERVED, ProgressRate::ZERO, 0);
    let progress = |now: u64| now.min(SLOWED) / 2;
    let mut looks = Vec::new();
    let mut now = 0;
    loop {
        let slack = promise.slack(now, progress(now));
        looks.push((now, slack));
        match promise.decide(now, slack) {
            Decision::RunUntil(next) => now = next,
            Decision::Stop => return looks,
        }
    }
}

/// Figure 4, with monitoring, or Figure 5, with SMT disabled.
pub(super) fn measure(table: &Table, _: &MeasurementHost) -> Option<MeasuredTable> {
    let monitored = table.id == "figure-4";
    let (number, title, policy) = if monitored {
        let exact = Monitoring { margin: 0, ..Monitoring::default() };
        ("4", "slack time monitoring, simulated", SmtPolicy::Monitor(exact))
    } else {
        ("5", "SMT disabled, simulated", SmtPolicy::Disable)
    };
    let looks = if monitored { slack_samples() } else { Vec::new() };
    let simulated = simulate(policy);
    let log = simulated.as_ref().ok().map(|(_, log)| log);
    let rows = table.lines.iter().map(|line| {
        let look = line.name.strip_prefix("look ").and_then(|look| look.split_once(": "));
        let ns = match (look, line.name.as_str()) {
            (Some((number, what)), _) => {
                let at = number
                    .parse::<usize>()
                    .ok()
                    .and_then(|number| looks.get(number.checked_sub(1)?));
                at.and_then(
                    |(at, slack)| {
                        if what == "at" { Some(*at) } else { u64::try_from(*slack).ok() }
                    },
                )
            }
            (_, "co-scheduled process preempted at") => log.and_then(Log::stopped),
            (_, "real-time process done at") => log.and_then(|log| log.done),
            _ => log.map(Log::others),
        };
        let found = ns.map(|ns| (ns as f64, 1)).ok_or_else(|| "it did not come to that".to_owned());
        let paper = line.printed(0);
        row(&*line.name, &line.unit, paper, MeasurementKind::Simulated, found)
    });
    let outcome = simulated.as_ref().ok().map(|(outcome, _)| outcome);
    let values = Values::default()
        .with_some("looks", outcome.map(|outcome| outcome.watched.wakeups))
        .with_some("why", simulated.as_ref().err().map(String::as_str));
    let figure = log.map(|log| PaperFigure::Trace(log.figure(number, title)));
    Some(table.with_rows(rows.collect(), values).with_figure(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_the_example() {
        let of = |ms: u64, slack: i128| (ms * MS, slack * i128::from(MS));
        assert_eq!(slack_samples(), [of(0, 4), of(4, 2), of(6, 0)]);
    }

    /// Figure 4: preempted at 6, done at 10. Figure 5: done at 6, and two others for 4 ms each.
    #[test]
    fn both_figures() {
        let exact = SmtPolicy::Monitor(Monitoring { margin: 0, ..Monitoring::default() });
        let (outcome, log) = simulate(exact).unwrap();
        assert_eq!((log.stopped(), log.done, log.others()), (Some(6 * MS), Some(10 * MS), 6 * MS));
        assert_eq!((outcome.watched.wakeups, outcome.watched.stops), (2, 1));
        let (_, log) = simulate(SmtPolicy::Disable).unwrap();
        assert_eq!((log.done, log.others()), (Some(6 * MS), 8 * MS));
        let figure = log.figure("5", "");
        assert!(figure.pieces.iter().all(|piece| piece.end_ns <= figure.to_ns));
    }
}
