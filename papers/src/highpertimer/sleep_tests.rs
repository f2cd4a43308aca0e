//! The tables of chapter 5 from a simulated machine, and their numbers against the thesis' text.

use hourglass_documents::paper::{Curves, MeasurementKind, PaperFigure, PaperTable};
use hourglass_timer::sleep::HzProbe;

use super::super::Table;
use super::super::printed::MeasuredTable;
use super::sleep_figures::{counted_time, one_after_the_other};
use super::sleep_tables::SweepTable;
use super::sleeps::sweep::LENGTHS;
use super::sleeps::tests::{Simulated, simulated};
use super::table_5_3::Table53Data;
use super::table_5_7::Table57Data;
use super::tests::table;

/// A kernel that counts CPU time in whole milliseconds.
fn probe() -> HzProbe {
    let probe = HzProbe::with(|| 14_000_000);
    assert_eq!(probe.hz, 1_000);
    probe
}

fn all() -> Vec<MeasuredTable> {
    let (sweep, conditions) = (simulated(1_000), "a simulated machine".to_owned());
    let (probe, how) = (probe(), MeasurementKind::Simulated);
    let slept = SweepTable { sweep: &sweep, probe, conditions: conditions.clone(), how };
    let mut machine = Simulated::new(1_000);
    let mut measured = |table: &Table| match table.id.as_str() {
        "5.2" => slept.assembled(table, Some(PaperFigure::Curves(counted_time(|busy| busy)))),
        "5.3" => {
            let (counted, probe) = (vec![14_500_000; 20], HzProbe::with(|| 14_500_000));
            let conditions = conditions.clone();
            Table53Data { counted, probe, tick_hz: Some(250), conditions }.assembled(table, how)
        }
        "5.5" => {
            let figure = one_after_the_other(table, &mut machine, 120, || false).unwrap();
            slept.assembled(table, Some(figure))
        }
        "5.7" => {
            let found = Table57Data::measured(&mut machine, probe, 3, || false).unwrap();
            found.assembled(table, how, &conditions)
        }
        _ => slept.assembled(table, slept.figure(table)),
    };
    (1..=9).map(|number| measured(table(&format!("5.{number}")))).collect()
}

fn row(table: &PaperTable, name: &str) -> (Option<f64>, f64) {
    let row = table.rows.iter().find(|row| row.name == name);
    let row = row.unwrap_or_else(|| panic!("no {name} in Table {}", table.id));
    (row.paper, row.measured.unwrap_or_else(|| panic!("{row:?}")))
}

#[test]
fn every_table_of_chapter_5_is_complete() {
    for (measured, id) in all().iter().zip(1..) {
        let table = &measured.table;
        assert_eq!(table.id, format!("5.{id}"));
        assert!(table.rows.iter().any(|row| row.paper.is_some()));
        for row in &table.rows {
            assert!(row.measured.is_some() && row.missing.is_none(), "{row:?}");
            assert!(row.count.is_some_and(|count| count > 0), "{row:?}");
            assert!(matches!(row.unit.as_str(), "ns" | "us" | "ms" | "s" | "%"), "{row:?}");
        }
        assert!(table.method.contains("a simulated machine"), "{}", table.method);
        let said = &table.difference;
        assert!(said.ends_with('.') && !said.contains("NaN"), "{said}");
        assert!(!said.contains("nothing measured"), "{said}");
        assert!(table.title.chars().count() <= 67, "wider than a page: {}", table.title);
        let unreliable = table.notes.iter().any(|note| note.contains("unreliable"));
        assert_eq!(unreliable, matches!(id, 3..=7 | 9), "Table {id} says what its policy is");
    }
}

#[test]
fn rows_have_both_numbers_in_the_thesis_units() {
    let tables: Vec<PaperTable> = all().into_iter().map(|measured| measured.table).collect();
    let (paper, here) = row(&tables[0], "1 s, system: median");
    assert_eq!(paper, Some(161.135));
    assert!((80.0..80.2).contains(&here), "slack and wake-up, us: {here}");
    let (paper, here) = row(&tables[1], "1 us, busy-wait: median");
    assert!(paper == Some(44.0) && here < 200.0, "ns: {here}");
    assert_eq!(row(&tables[2], "HZ 250"), (Some(16.0), 16.0));
    assert_eq!(row(&tables[2], "this kernel, most frequent").1, 14.5);
    assert_eq!(row(&tables[3], "0.25 s, run 2: median").0, Some(290.0));
    let (paper, here) = row(&tables[4], "system sleep, >= 1/HZ: mean");
    assert!(paper == Some(61.985) && (80.0..80.2).contains(&here), "us: {here}");
    assert_eq!(row(&tables[5], "62.5 ms, T3 - T2: here").0, Some(-14.0));
    assert_eq!(row(&tables[6], "inline, >= 1/HZ: mean").0, Some(0.250));
    let (paper, here) = row(&tables[7], "busy-waiting: CPU use of real time");
    assert!(paper == Some(99.681) && here > 99.0, "{here}");
}

/// The thesis' sums: its 100,000 rounds of 0.5 s, and that with HZ 1000 the same mixture costs about
/// what it says (Table 5.9), whatever the machine.
#[test]
fn the_thesis_mixture_costs_what_the_thesis_says() {
    let tables = all();
    let table = &tables[8].table;
    let (paper, here) = row(table, "thesis' sleep: real time");
    assert!((paper.unwrap() / here - 1.0).abs() < 0.01, "{here} s");
    let (paper, here) = row(table, "thesis' sleep: CPU use of real time");
    assert!(paper == Some(1.892) && (1.5..2.5).contains(&here), "{here} %");
    let (_, ours) = row(table, "learned: CPU use of real time");
    assert!(ours < here / 4.0, "{ours} % against {here} %");
    let sum: f64 = ["CPU of sleeps >= 1/HZ", "CPU of sleeps < 1/HZ"]
        .map(|name| row(table, &format!("thesis' sleep: {name}")).1)
        .iter()
        .sum();
    let all = row(table, "thesis' sleep: user + system CPU").1;
    assert!((sum / all - 1.0).abs() < 1e-9);
}

#[test]
fn the_transcription_agrees_with_the_text() {
    let column = |id: &str, name: &str| {
        let lines = &table(id).lines;
        let paper = &lines.iter().find(|line| line.name == name).unwrap().paper;
        assert_eq!(paper.len(), LENGTHS.len(), "{id} {name}");
        paper.clone()
    };
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    // Section 5.1: "aligned and in average are equal to 53 microseconds".
    let shortest = mean(&column("5.1", "system: median")[13..]);
    assert!((shortest - 53.4).abs() < 0.1, "{shortest}");
    // Section 5.2: below 1/HZ "approximately equal to 50 nanoseconds".
    let short = mean(&column("5.2", "busy-wait: median")[10..]);
    assert!((45.0..58.0).contains(&short), "{short}");
    // Table 5.4: below 1/HZ "varies from 50 until 100 nanoseconds".
    for run in ["run 1: median", "run 2: median"] {
        assert!(column("5.4", run)[11..].iter().all(|ns| (38.0..=128.0).contains(ns)));
    }
    // Table 5.6: T4 - T1 is the sum of the parts, within a tic or two and its five exceptions.
    let [all, inside, entry, exit] = ["T4 - T1", "T3 - T2", "T2 - T1", "T4 - T3"]
        .map(|part| column("5.6", &format!("{part}: here")));
    let sums = (0..LENGTHS.len())
        .filter(|at| (all[*at] - inside[*at] - entry[*at] - exit[*at]).abs() <= 15.0);
    assert!(sums.count() >= 15);
    // Halved from line to line, down to 1 us.
    for pair in LENGTHS.windows(2) {
        let half = pair[0].ns as f64 / 2.0;
        assert!((pair[1].ns as f64 / half - 1.0).abs() < 0.35, "{pair:?}");
    }
}

fn curves(measured: &MeasuredTable) -> &Curves {
    let Some(PaperFigure::Curves(curves)) = &measured.figure else { panic!("{measured:?}") };
    curves
}

#[test]
fn the_figures_of_chapter_5() {
    let tables = all();
    let ids = tables.iter().map(|table| table.figure.as_ref().map(PaperFigure::id));
    let ids: Vec<&str> = ids.map(Option::unwrap_or_default).collect();
    assert_eq!(ids, ["", "5.3", "5.4", "5.5", "5.6", "", "", "table-5.8", "table-5.9"]);
    for table in &tables[7..] {
        let counts: Vec<usize> =
            curves(table).curves.iter().map(|curve| curve.points.len()).collect();
        assert_eq!(counts, [4, 4, 1, 1, 1, 1, 1, 1], "ours over budgets, three others");
        let ours = &curves(table).curves[0].points;
        assert!(ours[0].across < ours[2].across && ours[0].up > 100.0 * ours[2].up, "{ours:?}");
    }
    let counted = &curves(&tables[1]).curves[0].points;
    assert!(counted.iter().all(|place| place.across == place.up), "counted precisely");
    let tries = curves(&tables[2]);
    assert!(tries.curves.iter().skip(1).all(|curve| curve.points.len() == 40));
    let lengths = curves(&tables[3]);
    assert_eq!(lengths.curves.len(), 8, "three of the paper's, five of ours");
    assert!(lengths.curves.iter().all(|curve| curve.points.len() == LENGTHS.len()));
    assert_eq!(lengths.curves[0].points[0].up, 53_267.0, "Table 5.1, 1 us");
    let Some(PaperFigure::Measurements(figure)) = &tables[4].figure else { panic!() };
    assert_eq!((figure.count, figure.series[0].points.len()), (120, 120));
    assert_eq!(figure.series[1].paper_mean_ns, Some(70.0));
}

#[test]
fn a_stop_ends_the_measurements() {
    let mut machine = Simulated::new(1_000);
    assert!(one_after_the_other(table("5.5"), &mut machine, 120, || true).is_none());
    assert!(Table57Data::measured(&mut machine, probe(), 3, || true).is_none());
}
