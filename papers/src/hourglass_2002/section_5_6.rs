//! Section 5.6: the tasks of section 5.5 in CPU reservations, of exactly what they need and of a little
//! more.

use hourglass_model::document::Deadlines;
use hourglass_model::paper::{MeasurementKind, PaperRow, PaperTable};
use hourglass_model::{Reservation, ReservationKind};
use hourglass_time::Span;
use hourglass_workload::{ThreadSpec, models, wake};

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::super::rows::{beside, found, lacking, without_figure};
use super::runs;

pub(super) const ID: &str = "5.6";
pub(super) const TITLE: &str = "Two concurrent applications in CPU reservations";

/// As long as in the paper, and what suffices to see that it is all periods or none.
const FULL: Span = Span::from_secs(10);
const QUICK: Span = Span::from_secs(2);

/// Runs of a case that should miss nothing, at most: what a hypervisor takes comes in bursts.
const ROUNDS: usize = 3;
const ROUNDS_QUICK: usize = 2;

/// What each of the tasks needs, and how often.
const NAMES: [&str; 2] = ["audio", "video"];
const WORK: [&str; 2] = ["PERIODIC 3ms 8ms", "PERIODIC 17ms 33ms"];
const PERIODS_MS: [i64; 2] = [8, 33];

/// A pair of reservations, and what the paper found.
struct Case {
    name: &'static str,
    budgets_us: [i64; 2],
    strength: ReservationKind,
    /// Missed and hit, of audio and of video.
    paper: Option<[(u64, u64); 2]>,
}

/// The two runs of the section; one with the margin that virtual machines need; and what the section
/// says it would have done for a real application.
const CASES: [Case; 4] = [
    Case {
        name: "hard 3/8, 17/33",
        budgets_us: [3_000, 17_000],
        strength: ReservationKind::Hard,
        paper: Some([(985, 12), (106, 197)]),
    },
    Case {
        name: "hard 3.1/8, 17.1/33",
        budgets_us: [3_100, 17_100],
        strength: ReservationKind::Hard,
        paper: Some([(0, 1_000), (0, 303)]),
    },
    Case {
        name: "hard 3.5/8, 19/33",
        budgets_us: [3_500, 19_000],
        strength: ReservationKind::Hard,
        paper: None,
    },
    Case {
        name: "soft 3.1/8, 17.1/33",
        budgets_us: [3_100, 17_100],
        strength: ReservationKind::Soft,
        paper: None,
    },
];

impl Case {
    /// Whether nothing should be missed.
    fn is_enough(&self) -> bool {
        self.paper.is_none_or(|paper| paper.iter().all(|(missed, _)| *missed == 0))
    }

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

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = runs::duration(bench, FULL, QUICK);
    let most = runs::at_most(bench, ROUNDS, ROUNDS_QUICK);
    let (mut rows, mut notes, mut best) = (Vec::new(), Vec::new(), Vec::new());
    for case in &CASES {
        let rounds = match rounds(case, duration, most) {
            Ok(rounds) => rounds?,
            Err(why) => {
                rows.extend(refused(case, &why));
                continue;
            }
        };
        notes.extend(rounds_note(case, &rounds));
        let Some(counts) = rounds.into_iter().min_by_key(late) else { continue };
        rows.extend(case_rows(case, &counts));
        best.push((case, counts));
    }
    notes.push(
        "The kernel looks at a budget at its tick, and to the moment only where the scheduler has the feature \
         HRTICK_DL, which is off by default. Here each thread has the kernel charge its time every 50 us, by \
         asking for its own processor time."
            .into(),
    );
    Some(without_figure(table(rows, difference(&best), notes, duration)))
}

/// Periods of both tasks as they were counted.
type TaskDeadlines = [Deadlines; 2];

/// Runs a case, one that should miss nothing again while it does; `None` where a signal ended it.
fn rounds(case: &Case, duration: Span, most: usize) -> Result<Option<Vec<TaskDeadlines>>, String> {
    let mut all: Vec<TaskDeadlines> = Vec::new();
    while all.is_empty()
        || (case.is_enough() && all.len() < most && all.iter().all(|counts| late(counts) > 0))
    {
        let Some((finished, _)) = runs::run(case.threads()?, duration, &|| 0)? else {
            return Ok(None);
        };
        let mut counts = TaskDeadlines::default();
        for (count, thread) in counts.iter_mut().zip(&finished.document.result.threads) {
            *count = thread.deadlines.unwrap_or_default();
        }
        all.push(counts);
    }
    Ok(Some(all))
}

/// Periods that were missed or lost.
fn late(counts: &TaskDeadlines) -> u64 {
    counts.iter().map(|count| count.missed + count.lost).sum()
}

/// That there was more than one run.
fn rounds_note(case: &Case, rounds: &[TaskDeadlines]) -> Option<String> {
    (rounds.len() > 1).then(|| {
        let late: Vec<String> = rounds.iter().map(|counts| late(counts).to_string()).collect();
        format!(
            "{}: the best of {} runs, in which {} periods were missed or lost; what others than these \
             threads take from the CPU comes in bursts.",
            case.name,
            rounds.len(),
            late.join(", ")
        )
    })
}

/// Missed of those missed or hit, in per cent, as the paper counts.
fn share(missed: u64, hit: u64) -> Option<f64> {
    let all = missed + hit;
    (all > 0).then(|| (missed as f64 * 1_000.0 / all as f64).round() / 10.0)
}

fn paper_share(case: &Case, task: usize) -> Option<f64> {
    let (missed, hit) = case.paper?.get(task).copied()?;
    share(missed, hit)
}

fn case_rows(case: &Case, counts: &TaskDeadlines) -> Vec<PaperRow> {
    let rows = |(task, (name, count)): (usize, (&&str, &Deadlines))| {
        let Deadlines { hit, missed, lost, .. } = *count;
        let row = |what: &str, late: u64, of: u64| {
            let name = format!("{}: {name} {what}", case.name);
            match share(late, of - late) {
                Some(percent) => found(name, percent, "%", MeasurementKind::Measured, of),
                None => lacking(name, "%", MeasurementKind::Measured, "no period came to its end"),
            }
        };
        let counted = beside(paper_share(case, task), row("missed", missed, missed + hit));
        [counted, row("missed or lost, of all periods", missed + lost, missed + lost + hit)]
    };
    NAMES.iter().zip(counts).enumerate().flat_map(rows).collect()
}

fn refused(case: &Case, why: &str) -> Vec<PaperRow> {
    let row = |(task, name): (usize, &&str)| {
        let name = format!("{}: {name} missed", case.name);
        beside(paper_share(case, task), lacking(name, "%", MeasurementKind::Measured, why))
    };
    NAMES.iter().enumerate().map(row).collect()
}

/// Whether a reservation of exactly what is needed fails, and one of a little more does not.
fn difference(best: &[(&Case, TaskDeadlines)]) -> String {
    let missed = |counts: &TaskDeadlines| counts.iter().map(|count| count.missed).sum::<u64>();
    let hit = |counts: &TaskDeadlines| counts.iter().map(|count| count.hit).sum::<u64>();
    let hard = best.iter().filter(|(case, _)| case.strength == ReservationKind::Hard);
    type Found<'a> = Vec<&'a (&'a Case, TaskDeadlines)>;
    let (more, exact): (Found, Found) = hard.partition(|(case, _)| case.is_enough());
    let Some((_, exact)) = exact.first() else { return "Nothing could be run.".into() };
    let mut said = Vec::new();
    if missed(exact) == 0 {
        said.push("Other than in the paper, exactly what a task needs is enough.".to_owned());
    }
    for (case, counts) in more {
        if missed(counts) == 0 {
            let what = if said.is_empty() { "The paper's result repeats" } else { "In the end" };
            said.push(format!(
                "{what}: with exactly what each task needs, {} of {} periods were missed, since the smallest \
                 perturbation makes a job wait for its next budget; with {} none was.",
                missed(exact),
                missed(exact) + hit(exact),
                case.name
            ));
            return said.join(" ");
        }
        said.push(format!(
            "Other than in the paper, {} misses {} periods: other programs, interrupts or a hypervisor took more \
             than what is spare.",
            case.name,
            missed(counts)
        ));
    }
    said.join(" ")
}

fn table(
    rows: Vec<PaperRow>,
    difference: String,
    mut notes: Vec<String>,
    duration: Span,
) -> PaperTable {
    notes.push(
        "A period is lost whose job never began because the one before was late: a job that runs out of budget \
         ends in the next period, and takes it. The paper does not say how it counts these."
            .into(),
    );
    notes.push(
        "The paper would have taken soft reservations for real applications. In the kernel's \
         deadline class they are an approximation: a thread may use the bandwidth that nobody reserved."
            .into(),
    );
    let method = format!(
        "hourglass -n 2 -d {duration} -t 0 -w PERIODIC 3ms 8ms -rh BUDGET 8ms -t 1 -w PERIODIC 17ms 33ms \
         -rh BUDGET 33ms, by the means that keeps it here, on all CPUs that there are; missed are shares \
         of the periods that were missed or hit, as the paper counts them"
    );
    PaperTable {
        paper_machine: "Pentium III of 850 MHz, TimeSys Linux or Linux/RK".into(),
        ..runs::table((ID, TITLE), method, rows, difference, notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's lines: 985 missed and 12 hit, 106 and 197; then none.
    #[test]
    fn shares_of_the_paper() {
        let shares = CASES.iter().map(|case| [0, 1].map(|task| paper_share(case, task)));
        let wanted = [[Some(98.8), Some(35.0)], [Some(0.0), Some(0.0)], [None, None], [None, None]];
        assert_eq!(shares.collect::<Vec<_>>(), wanted);
        assert_eq!(CASES.map(|case| case.is_enough()), [false, true, true, true]);
    }

    /// Reservations are the paper's options.
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
        let [exact, more, much, _] = &CASES;
        let same = difference(&[(exact, counts(99)), (more, counts(0)), (much, counts(0))]);
        assert!(same.starts_with("The paper's result repeats"), "{same}");
        assert!(
            same.contains("99 of 119") && same.contains("with hard 3.1/8, 17.1/33 none"),
            "{same}"
        );
        let other = difference(&[(exact, counts(99)), (more, counts(3)), (much, counts(0))]);
        assert!(other.contains("misses 3 periods") && other.contains("19/33 none"), "{other}");
        let none = difference(&[(exact, counts(0)), (more, counts(3)), (much, counts(2))]);
        assert!(none.contains("is enough") && !none.contains("none was"), "{none}");
        assert_eq!(difference(&[]), "Nothing could be run.");
        assert_eq!(case_rows(more, &counts(30))[0].measured, Some(75.0));
        assert!(refused(exact, "why").iter().all(|row| row.missing.is_some()));
    }
}
