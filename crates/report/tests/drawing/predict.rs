//! The table of a prediction.

use hourglass_documents::predict::{
    MeasuredTerms, MeasurementFacts, NoiseFacts, PREDICT_SCHEMA, PredictDocument, PredictedTask,
    SimulationFacts,
};
use hourglass_report::text::{Style, predict};

const MS: u64 = 1_000_000;

fn task(name: &str, bound_ms: u64, measured_ns: u64, deadline_ms: u64) -> PredictedTask {
    PredictedTask {
        name: name.into(),
        bound_ns: Some(bound_ms * MS),
        simulated_ns: Some(bound_ms * MS),
        measured_ns: Some(measured_ns),
        deadline_ns: deadline_ms * MS,
        missed: Some(0),
        hit: Some(1_000),
        lost: Some(0),
        verdict: "feasible".into(),
        measured: Some(MeasuredTerms::default()),
        ..PredictedTask::default()
    }
}

/// Section 5.5 of the Hourglass paper, as it comes out on some machine.
fn document() -> PredictDocument {
    let video = PredictedTask {
        missed: Some(142),
        hit: Some(143),
        lost: Some(18),
        explanation: Some(
            "its timer releases it up to 9 ms late, it keeps the CPU for up to 1.9 ms to wait: with \
             this the bound is 38.9 ms"
                .into(),
        ),
        explained: Some(true),
        ..task("video with a name that is far too long", 29, 38_123_456, 33)
    };
    PredictDocument {
        against: None,
        schema: PREDICT_SCHEMA.into(),
        name: "audio and video".into(),
        analysis: "fp-preemptive".into(),
        verdict: "feasible".into(),
        not_analysed: None,
        simulation: Some(SimulationFacts { horizon_ns: 264 * MS, jobs: 41 }),
        not_simulated: None,
        run: Some(MeasurementFacts {
            duration_ns: 10_000 * MS,
            elapsed_ns: 10_001 * MS,
            seed: 0,
            folder: None,
            warnings: vec!["somebody else is at work; ask them to stop".into()],
        }),
        noise: Some(NoiseFacts { watched_ns: MS, longest_ns: 300, total_ns: 400, gaps: 2 }),
        tasks: vec![task("au\u{1b}[31mdio", 3, 3_010_000, 8), video],
        assumptions: Vec::new(),
        notes: vec!["nothing was left out".into()],
        interrupted: false,
    }
}

#[test]
fn the_table_fits_a_page_of_80_columns() {
    let text = predict(&document(), Style::Plain);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.ends_with(' '), "{line:?}");
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
    let audio = text.lines().nth(2).unwrap();
    assert!(audio.contains("3.00") && audio.contains("3.01"), "a hundredth is seen: {audio}");
    let wanted = ["missed", "142", "18", "with this", "41 jobs simulated", "were missed by"];
    for word in wanted {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_was_not_done_is_said() {
    let mut document = document();
    document.run = None;
    document.noise = None;
    document.simulation = None;
    document.not_simulated = Some("it has no end".into());
    for task in &mut document.tasks {
        (task.measured_ns, task.missed, task.lost, task.hit) = (None, None, None, None);
    }
    let text = predict(&document, Style::Plain);
    for word in ["not simulated: it has no end", "no run", "nothing was run"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

/// What the simulation missed is not passed over by a verdict on paper.
#[test]
fn a_simulated_miss_is_in_the_verdict() {
    let mut document = document();
    document.run = None;
    document.verdict = "feasible".into();
    for task in &mut document.tasks {
        (task.measured_ns, task.missed, task.lost, task.hit) = (None, None, None, None);
        task.simulated_ns = Some(task.deadline_ns);
    }
    let last = |document: &PredictDocument| {
        predict(document, Style::Plain).replace("\n  ", " ").lines().last().unwrap().to_owned()
    };
    assert_eq!(last(&document), "on paper every deadline holds; nothing was run");
    document.tasks[1].name = "video".to_owned();
    document.tasks[1].simulated_ns = Some(document.tasks[1].deadline_ns + 1);
    let wanted = "in the simulation they are missed by video";
    assert!(last(&document).contains(wanted), "{}", last(&document));
}
