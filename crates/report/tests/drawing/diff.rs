//! The text of a comparison.

use hourglass_documents::diff::{
    DiffDocument, DiffMetric, DiffSide, DiffVerdict, Difference, RoundGates, Statement,
};
use hourglass_documents::document::{GateReport, Warning};
use hourglass_report::text::{Style, diff};

fn metric(name: &str, unit: &str, [a, b, lo, hi]: [f64; 4], verdict: DiffVerdict) -> DiffMetric {
    DiffMetric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        a: Some(a),
        b: Some(b),
        change: Some(b - a),
        change_percent: (a != 0.0).then(|| (b - a) * 100.0 / a),
        ci_lo: Some(lo),
        ci_hi: Some(hi),
        verdict,
        reason: String::new(),
        leads: name != "gaps.max_ns",
        rounds_needed: 8,
    }
}

/// A limit that B broke in the first of two rounds.
fn gates() -> Vec<RoundGates> {
    [(1, "a", 300e3, true), (1, "b", 600e3, false), (2, "a", 400e3, true), (2, "b", 2e5, true)]
        .map(|(round, side, value, passed)| RoundGates {
            round,
            side: side.to_owned(),
            gates: vec![GateReport {
                name: "max-gap".to_owned(),
                limit: 500e3,
                value,
                unit: "ns".to_owned(),
                passed,
                confidence: None,
            }],
        })
        .into()
}

fn document() -> DiffDocument {
    let side = |what: &str, letter: char| DiffSide {
        what: what.to_owned(),
        folders: (1..=10).map(|round| format!("rounds/{letter}-{round:02}")).collect(),
    };
    let max = DiffMetric {
        ci_lo: None,
        ci_hi: None,
        reason: "not in every run".to_owned(),
        ..metric("gaps.max_ns", "ns", [5e6, 4e6, 0.0, 0.0], DiffVerdict::Unknown)
    };
    DiffDocument {
        schema: "hourglass.diff/1".to_owned(),
        a: side("-n 1 -d 2s", 'a'),
        b: side("-n 1 -d 2s -a -p LOW\u{1b}[2J", 'b'),
        method: "rounds".to_owned(),
        rounds: 10,
        seed: 42,
        confidence: 0.95,
        margin_percent: 5.0,
        gap_ns: 210,
        verdict: DiffVerdict::Worse,
        metrics: vec![
            metric("gaps.p50_ns", "ns", [2_180.0, 2_620.0, 350.0, 510.0], DiffVerdict::Worse),
            max,
            metric("gaps.per_s", "1/s", [251.0, 250.5, -3.0, 2.0], DiffVerdict::Same),
            metric("gaps.lost_percent", "percent", [0.5, 0.3, -0.3, -0.1], DiffVerdict::Better),
            metric("deadlines.failed_percent", "percent", [0.0, 0.0, 0.0, 0.0], DiffVerdict::Same),
            metric("causes.irq.lost_percent", "percent", [0.1, 0.4, 0.2, 0.4], DiffVerdict::Worse),
        ],
        differences: vec![Difference {
            what: "thread 0: policy".to_owned(),
            a: "OTHER:0".to_owned(),
            b: "OTHER:5".to_owned(),
        }],
        warnings: vec![Warning {
            id: "few-rounds".to_owned(),
            text: "too few".to_owned(),
            remedy: "measure more".to_owned(),
        }],
        gates: gates(),
        statements: vec![Statement {
            name: Statement::LOAD.to_owned(),
            subject: "b".to_owned(),
            answer: "yes".to_owned(),
            confidence: 0.9999,
            text:
                "251.0 gaps a second longer than 1us in B, 120.0 in A: what B does and A does not \
                   causes 52 % of them"
                    .to_owned(),
        }],
        control: None,
        interrupted: false,
    }
}

#[test]
fn the_table_and_its_verdict() {
    insta::assert_snapshot!(diff(&document(), Style::Plain));
}

/// Command lines come from files.
/// Issue 33, 6: 3.85 ms in A, 3.69 ms in B, and a change of +763 us, since the medians are those of other rounds.
#[test]
fn a_change_against_its_columns_says_why() {
    let said = |change: f64| {
        let mut document = document();
        document.metrics[0] = DiffMetric {
            change: Some(change),
            ..metric("gaps.p50_ns", "ns", [3.85e6, 3.69e6, -2e5, 1e6], DiffVerdict::Unknown)
        };
        diff(&document, Style::Plain)
    };
    assert!(said(763e3).contains("gaps.p50_ns: the change is that of round by round"));
    assert!(!said(-763e3).contains("round by round"));
}

#[test]
fn nothing_takes_over_the_terminal() {
    let text = diff(&document(), Style::Plain);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn one_run_each_without_a_verdict() {
    let unknown = DiffDocument {
        method: "blocks".to_owned(),
        verdict: DiffVerdict::Unknown,
        metrics: Vec::new(),
        ..document()
    };
    let text = diff(&unknown, Style::Plain);
    assert!(text.contains("One run each\n"), "{text}");
    assert!(text.contains("Verdict      unknown: nothing could be decided"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("hourglass run --against"), "{text}");
    assert!(words.contains("the exit code is 4, with --fail-on worse it is 0"), "{text}");
}

/// Too few rounds for what is undecided: how many can decide it.
#[test]
fn few_rounds_say_how_many_decide() {
    let unknown = DiffDocument {
        rounds: 6,
        verdict: DiffVerdict::Unknown,
        metrics: vec![metric("gaps.p50_ns", "ns", [1e3, 2e3, -100.0, 2e3], DiffVerdict::Unknown)],
        ..document()
    };
    let text = diff(&unknown, Style::Plain);
    assert!(
        text.contains("Verdict      unknown: whether gaps.p50_ns changed is not decided"),
        "{text}"
    );
    assert!(text.contains("8 rounds or more can decide; the exit code is 4"), "{text}");
}
