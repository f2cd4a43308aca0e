//! Points above the deadline: what they are, in the figure and in words.
//!
//! Owns: sorting them by their reason, their curves, the sentence that counts them. Must not: decide why a job was
//! late ([`ProcessOutcome`] does).

use hourglass_documents::paper::{Curve, CurveOrigin};

use super::super::drawing::curve;
use super::evaluation::SubjectRuns;
use super::outcome::{FinishedJob, LateReason, ProcessOutcome};
use super::smt_methods::SmtMethod;

const COLOURS: [(LateReason, u32); 3] =
    [(LateReason::Missed, 5), (LateReason::Overran, 6), (LateReason::Host, 7)];

const fn name(late: LateReason) -> &'static str {
    match late {
        LateReason::Missed => "above the deadline: missed",
        LateReason::Overran => "above the deadline: needed more than reserved, or than it reported",
        LateReason::Host => "above the deadline: only by gaps below the kernel",
    }
}

pub(super) fn place(done: &FinishedJob) -> (f64, f64) {
    ((done.period + 1) as f64, done.response_ns as f64)
}

/// The outcomes of the ways that promise something: what promises nothing has no points to explain, since all of
/// them may be late.
fn promised<'a>(
    runs: &'a SubjectRuns,
    ways: &'a [SmtMethod],
) -> impl Iterator<Item = (SmtMethod, &'a ProcessOutcome)> {
    let some = ways.iter().filter(|way| **way != SmtMethod::Ignore);
    some.filter_map(|way| Some((*way, runs.here(*way)?.as_ref().ok()?)))
}

pub(super) fn curves(runs: &SubjectRuns, ways: &[SmtMethod]) -> Vec<Curve> {
    let marks = |(late, colour): (LateReason, u32)| {
        let done = promised(runs, ways).flat_map(|(_, outcome)| outcome.late_so(late));
        let mut points: Vec<(f64, f64)> = done.map(place).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let marks = curve(name(late), CurveOrigin::Here, colour, points);
        (!marks.points.is_empty()).then_some(Curve { joined: false, ..marks })
    };
    COLOURS.into_iter().filter_map(marks).collect()
}

pub(super) fn excused_words(runs: &SubjectRuns, ways: &[SmtMethod]) -> String {
    let counted = |(late, why): (LateReason, &str)| {
        let counts = promised(runs, ways).map(|(way, of)| (way, of.late_so(late).count()));
        let counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        let all: usize = counts.iter().map(|(_, count)| count).sum();
        let each: Vec<String> =
            counts.iter().map(|(way, count)| format!("{} {count}", way.name())).collect();
        (all > 0).then(|| format!("{all} {why} ({})", each.join("; ")))
    };
    let reasons = [
        (LateReason::Overran, "of jobs that needed more than reserved, or than they reported"),
        (LateReason::Host, "late only by gaps below the kernel"),
    ];
    reasons.into_iter().filter_map(counted).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(responses: &[(u64, u64, u64)]) -> ProcessOutcome {
        let done =
            |(period, (response_ns, own_ns, taken_ns)): (usize, &(u64, u64, u64))| FinishedJob {
                period: period as u64,
                response_ns: *response_ns,
                own_ns: *own_ns,
                taken_ns: *taken_ns,
                ..FinishedJob::default()
            };
        ProcessOutcome {
            deadline_ns: 70,
            reserve_ns: Some(50),
            periods: responses.len() as u64,
            done: responses.iter().enumerate().map(done).collect(),
            ..ProcessOutcome::default()
        }
    }

    /// The bug: Figure 11 drew points above the deadline under a text that said there were none. What is late is
    /// marked, and the text counts what is marked.
    #[test]
    fn points_above_the_deadline_are_marked_and_counted() {
        let word = outcome(&[(60, 50, 0), (80, 65, 0), (75, 50, 6)]);
        let disable = outcome(&[(71, 51, 0), (60, 50, 0)]);
        let ignore = outcome(&[(99, 50, 0), (98, 50, 0)]);
        let here = vec![
            (SmtMethod::Ignore, Ok(ignore)),
            (SmtMethod::Word, Ok(word)),
            (SmtMethod::Disable, Ok(disable)),
        ];
        let mut runs = SubjectRuns { here, simulated: Vec::new() };
        let ways = [SmtMethod::Ignore, SmtMethod::Word, SmtMethod::Disable];
        let marks = curves(&runs, &ways);
        let found: Vec<(&str, usize)> =
            marks.iter().map(|curve| (curve.name.as_str(), curve.points.len())).collect();
        assert_eq!(found, [(name(LateReason::Overran), 2), (name(LateReason::Host), 1)]);
        assert!(marks.iter().flat_map(|curve| &curve.points).all(|place| place.up > 70.0));
        let text = excused_words(&runs, &ways);
        assert!(text.contains("2 of jobs that needed more"), "{text}");
        assert!(text.contains("(monitor, word 1; disable 1)"), "{text}");
        assert!(text.contains("1 late only by gaps below the kernel (monitor, word 1)"), "{text}");
        runs.here.truncate(1);
        assert_eq!((curves(&runs, &ways).len(), excused_words(&runs, &ways)), (0, String::new()));
        // What was missed is marked as such; its sentence is that of the difference from the paper.
        runs.here.push((SmtMethod::Word, Ok(outcome(&[(90, 50, 0)]))));
        let marks = curves(&runs, &ways);
        assert_eq!((marks.len(), marks[0].name.as_str()), (1, name(LateReason::Missed)));
        assert_eq!(excused_words(&runs, &ways), "");
    }
}
