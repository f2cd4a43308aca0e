//! A simulation as people see it.

use hourglass_documents::document::Warning;
use hourglass_documents::simulation::{
    BackgroundFindings, SIMULATE_SCHEMA, SimulationDocument, SmtFindings, TaskFindings,
};
use hourglass_report::text::{Style, simulation};

const MS: u64 = 1_000_000;

fn task(name: &str, missed: u64, lost: u64, longest: u64) -> TaskFindings {
    TaskFindings {
        name: name.to_owned(),
        period_ns: 33 * MS,
        deadline_ns: 33 * MS,
        jobs: 40,
        hit: 40 - missed - lost,
        missed,
        lost,
        max_response_ns: Some(longest),
        max_response_from_release_ns: Some(longest - 2 * MS),
        min_response_ns: Some(3 * MS),
        p50_response_ns: Some(3 * MS),
        p99_response_ns: Some(longest),
        ..TaskFindings::default()
    }
}

fn document() -> SimulationDocument {
    SimulationDocument {
        schema: SIMULATE_SCHEMA.to_owned(),
        name: "a set\u{1b}[31m".to_owned(),
        scheduler: "fixed-priority".to_owned(),
        seed: 7,
        releases: "critical".to_owned(),
        horizon_ns: 1_320 * MS,
        horizon_from: "hyperperiod".to_owned(),
        hyperperiod_ns: Some(1_320 * MS),
        simulated_ns: 1_000 * MS,
        events: 412,
        jobs: 80,
        tasks: vec![task("audio", 0, 0, 5 * MS), task("video", 14, 2, 39_250_000)],
        background: vec![BackgroundFindings {
            name: "integer".to_owned(),
            thread: 2,
            cpu_time_ns: 700 * MS,
            progress_ns: 420 * MS,
            ..BackgroundFindings::default()
        }],
        smt: Some(SmtFindings {
            policy: "slack-monitoring".to_owned(),
            alpha: Some("1/2".to_owned()),
            margin_ns: Some(10_000),
            latency_ns: Some(0),
            interval_ns: None,
            progress: Some("reported:256".to_owned()),
            wakeups: 150,
            wakeups_per_job_max: 15,
            stops: 10,
            best_effort_ns: 420 * MS,
            best_effort_disabling_ns: Some(350 * MS),
            throughput_ratio: Some(1.2),
        }),
        warnings: vec![Warning {
            id: "phases".to_owned(),
            text: "1 of 2 tasks have no offset: their first jobs arrive at 0".to_owned(),
            remedy: "give each task an offset".to_owned(),
        }],
        interrupted: true,
    }
}

#[test]
fn everything_there_is_to_say() {
    let text = simulation(&document(), Style::Plain);
    insta::assert_snapshot!("simulation", text);
    assert!(!text.contains('\u{1b}'));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// Columns and lines that have nothing to say are left out.
#[test]
fn nothing_is_said_of_nothing() {
    let mut quiet = document();
    quiet.tasks = vec![TaskFindings {
        max_response_from_release_ns: Some(5 * MS),
        ..task("audio", 0, 0, 5 * MS)
    }];
    (quiet.background, quiet.smt, quiet.interrupted) = (Vec::new(), None, false);
    quiet.warnings.clear();
    let text = simulation(&quiet, Style::Plain);
    for word in ["lost", "from release", "migrations", "Background", "Cores", "Warning", "Stopped"]
    {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert!(text.contains("all 40 deadlines met"), "{text}");
    quiet.tasks[0].hit = 0;
    assert!(simulation(&quiet, Style::Plain).contains("no deadline came"));
}
