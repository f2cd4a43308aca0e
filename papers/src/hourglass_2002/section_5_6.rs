//! Section 5.6: the tasks of section 5.5 in CPU reservations, of exactly what they need and of a little
//! more.

use hourglass_documents::document::Deadlines;
use hourglass_documents::paper::PaperRow;
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_time::Span;
use hourglass_workload::{ThreadSpec, models, wake};

use super::super::bench::MeasurementHost;
use super::super::printed::{Line, MeasuredTable, Table, Values};
use super::super::rows::measured;
use super::runs::{self, Rounds, most_rounds, paper_meets_all, paper_share, share};

/// As long as in the paper, and what suffices to see that it is all periods or none.
const FULL: Span = Span::from_secs(10);
const QUICK: Span = Span::from_secs(2);

const NAMES: [&str; 2] = ["audio", "video"];
const WORK: [&str; 2] = ["PERIODIC 3ms 8ms", "PERIODIC 17ms 33ms"];
const PERIODS_MS: [i64; 2] = [8, 33];

/// A pair of reservations: the budgets of audio and of video, us.
struct Case {
    budgets_us: [i64; 2],
    strength: ReservationKind,
}

/// In the order of the table's lines.
const CASES: [Case; 4] = [
    Case { budgets_us: [3_000, 17_000], strength: ReservationKind::Hard },
    Case { budgets_us: [3_100, 17_100], strength: ReservationKind::Hard },
    Case { budgets_us: [3_500, 19_000], strength: ReservationKind::Hard },
    Case { budgets_us: [3_100, 17_100], strength: ReservationKind::Soft },
];

impl Case {
    fn threads(&self) -> Result<Vec<ThreadSpec>, String> {
        let tasks = WORK.iter().zip(self.budgets_us.iter().zip(PERIODS_MS));
        let thread = |(work, (budget_us, period_ms)): (&&str, (&i64, i64))| {
            let words: Vec<&str> = work.split_whitespace().collect();
            let (budget, period) = (Span::from_micros(*budget_us), Span::from_millis(period_ms));
            let reservation = Reservation::new(budget, period, self.strength);
            // On all CPUs, since the deadline class, where it is the means, keeps no thread on one.
            Ok(ThreadSpec {
                model: models::parse(&words).map_err(|error| error.to_string())?,
                wake: wake::parse("HR").map_err(|error| error.to_string())?,
                reservation: Some(reservation.map_err(|error| error.to_string())?),
                ..ThreadSpec::default()
            })
        };
        tasks.map(thread).collect()
    }
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = bench.at_most(FULL, QUICK);
    let mut values = runs::values(0, duration);
    let (mut rows, mut best) = (Vec::new(), Vec::new());
    for (line, case) in table.lines.iter().zip(&CASES) {
        match Rounds::run(most_rounds(line, bench), late, || once(case, duration)) {
            Ok(rounds) => {
                let rounds = rounds?;
                let note = rounds.note(&line.name);
                values = values.with_some(&format!("{}: rounds", line.name), note);
                rows.extend(case_rows(line, &Ok(rounds.best)));
                best.push((line, case.strength, rounds.best));
            }
            Err(why) => rows.extend(case_rows(line, &Err(why))),
        }
    }
    let values = texts(&best, values);
    Some(table.with_rows(rows, values))
}

type TaskDeadlines = [Deadlines; 2];

fn once(case: &Case, duration: Span) -> Result<Option<TaskDeadlines>, String> {
    let Some((finished, _)) = runs::run(case.threads()?, duration, &|| 0)? else {
        return Ok(None);
    };
    let mut counts = TaskDeadlines::default();
    for (count, thread) in counts.iter_mut().zip(&finished.document.result.threads) {
        *count = thread.deadlines.unwrap_or_default();
    }
    Ok(Some(counts))
}

fn late(counts: &TaskDeadlines) -> u64 {
    counts.iter().map(|count| count.missed + count.lost).sum()
}

fn case_rows(line: &Line, counts: &Result<TaskDeadlines, String>) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for (task, name) in NAMES.into_iter().enumerate() {
        let count = counts.as_ref().map(|counts| counts[task]).map_err(Clone::clone);
        let mut add = |what: &str, paper, late: fn(&Deadlines) -> u64| {
            let found = count.clone().and_then(|count| {
                let of = late(&count) + count.hit;
                let percent = share(late(&count), count.hit).map(|percent| (percent, of));
                percent.ok_or_else(|| "no period came to its end".to_owned())
            });
            rows.push(measured(format!("{}: {name} {what}", line.name), &line.unit, paper, found));
        };
        add("missed", paper_share(line, task), |count| count.missed);
        if count.is_ok() {
            add("missed or lost, of all periods", None, |count| count.missed + count.lost);
        }
    }
    rows
}

fn texts(best: &[(&Line, ReservationKind, TaskDeadlines)], mut values: Values) -> Values {
    let missed = |counts: &TaskDeadlines| counts.iter().map(|count| count.missed).sum::<u64>();
    let hit = |counts: &TaskDeadlines| counts.iter().map(|count| count.hit).sum::<u64>();
    let hard = best.iter().filter(|(_, strength, _)| *strength == ReservationKind::Hard);
    let mut exact = hard.clone().filter(|(line, ..)| !paper_meets_all(line));
    let Some((.., exact)) = exact.next() else { return values };
    values = values
        .with("missed", missed(exact))
        .with("periods", missed(exact) + hit(exact))
        .with_if("enough", missed(exact) == 0);
    for (line, _, counts) in hard.filter(|(line, ..)| paper_meets_all(line)) {
        if missed(counts) == 0 {
            return values.with("none", line.name.as_str());
        }
        values = values.with(&format!("{}: more", line.name), missed(counts));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;

    #[test]
    fn threads_have_their_reservations() {
        let [exact, more, _, soft] = CASES.each_ref().map(|case| case.threads().unwrap());
        let words = |spec: &ThreadSpec| spec.reservation.unwrap().to_string();
        assert_eq!(words(&exact[0]), "DEADLINE:3ms/8ms");
        assert_eq!(words(&more[1]), "DEADLINE:17.1ms/33ms");
        assert_eq!(words(&soft[1]), "DEADLINE:17.1ms/33ms+");
        assert_eq!(more[1].model.to_string(), "PERIODIC 17ms 33ms");
    }

    #[test]
    fn the_difference_names_what_is_not_as_in_the_paper() {
        let counts = |missed| {
            let audio = Deadlines { hit: 10, missed, lost: 0, completed: 10 };
            [audio, Deadlines { missed: 0, ..audio }]
        };
        let difference = |missed: &[u64]| {
            let lines = table("5.6").lines.iter().zip(missed);
            let best: Vec<_> = lines
                .map(|(line, missed)| (line, ReservationKind::Hard, counts(*missed)))
                .collect();
            let values = texts(&best, Values::default());
            table("5.6").with_rows(Vec::new(), values).table.difference
        };
        let same = difference(&[99, 0, 0]);
        assert!(same.starts_with("The paper's result repeats"), "{same}");
        assert!(
            same.contains("99 of 119") && same.contains("with hard 3.1/8, 17.1/33 none"),
            "{same}"
        );
        let other = difference(&[99, 3, 0]);
        assert!(other.contains("misses 3 periods") && other.contains("19/33 none"), "{other}");
        let none = difference(&[0, 3, 2]);
        assert!(none.contains("is enough") && !none.contains("none was"), "{none}");
        assert_eq!(difference(&[]), "Nothing could be run.");
        let rows = |counts| case_rows(&table("5.6").lines[1], &counts);
        assert_eq!(rows(Ok(counts(30)))[0].measured, Some(75.0));
        assert!(rows(Err("why".to_owned())).iter().all(|row| row.missing.is_some()));
    }
}
