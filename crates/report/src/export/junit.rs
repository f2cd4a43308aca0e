//! Limits and checks as test cases in the XML of JUnit, which servers of continuous integration read.
//!
//! A limit that was kept is a test that passed, a broken one a failure. What decides nothing is skipped: a limit that
//! was kept while a premise of the run broke (the premise is an error of its own), a check that the machine does not
//! answer.

use std::fmt::Write as _;

use hourglass_documents::doctor::{CheckResult, DoctorDocument, Status};
use hourglass_documents::document::{GateReport, Premise, RunDocument};

use super::wall_time;
use crate::clean::for_xml;
use crate::text::{confidence, limit};
use crate::units::seconds;

/// How a test case ended.
enum Outcome {
    Passed,
    Skipped,
    Failure,
    Error,
}

struct TestCase<'a> {
    name: &'a str,
    outcome: Outcome,
    /// In one line.
    message: String,
    /// More about it; may be empty.
    text: String,
}

/// A test suite, and what its attributes say beside the counts.
struct TestSuite<'a> {
    name: String,
    elapsed_ns: u64,
    /// Nanoseconds since 1970, where the start is known.
    start_ns: Option<u64>,
    properties: Vec<(&'static str, String)>,
    cases: Vec<TestCase<'a>>,
}

/// The limits of a run of `command` (`run`, `latency`, `noise`).
#[must_use]
pub fn junit_run(command: &str, document: &RunDocument) -> String {
    let (manifest, result) = (&document.manifest, &document.result);
    let gates = result.gates.iter().map(|gate| of_gate(gate, result.premises.first()));
    let premises = result.premises.iter().map(|premise| TestCase {
        name: &premise.id,
        outcome: Outcome::Error,
        message: format!("no verdict: {}", premise.text),
        text: String::new(),
    });
    let suite = TestSuite {
        name: format!("hourglass {command}"),
        elapsed_ns: manifest.elapsed_ns,
        start_ns: Some(manifest.epoch.realtime_ns),
        properties: vec![
            ("command_line", manifest.command_line.join(" ")),
            ("version", manifest.hourglass.clone()),
            ("kernel", manifest.host.kernel.clone()),
            ("interrupted", result.interrupted.to_string()),
        ],
        cases: gates.chain(premises).collect(),
    };
    suite.xml()
}

fn of_gate<'a>(gate: &'a GateReport, premise: Option<&Premise>) -> TestCase<'a> {
    let (outcome, message) = match premise {
        _ if !gate.passed => (Outcome::Failure, limit(gate, premise.is_none())),
        Some(premise) => (Outcome::Skipped, format!("no verdict: {}", premise.text)),
        None => (Outcome::Passed, limit(gate, true)),
    };
    let text = gate.confidence.as_ref().map(confidence).unwrap_or_default().join("\n");
    TestCase { name: &gate.name, outcome, message, text }
}

/// The checks of the doctor. Those whose status is `worst_accepted` or better pass; unknown ones, where they are not
/// accepted, are skipped, others fail.
#[must_use]
pub fn junit_doctor(document: &DoctorDocument, worst_accepted: Status) -> String {
    let suite = TestSuite {
        name: "hourglass doctor".to_owned(),
        elapsed_ns: 0,
        start_ns: None,
        properties: vec![("cpus", document.cpus.to_string())],
        cases: document.checks.iter().map(|check| of_check(check, worst_accepted)).collect(),
    };
    suite.xml()
}

fn of_check(check: &CheckResult, worst_accepted: Status) -> TestCase<'_> {
    let CheckResult { id, status, found, wanted, remedy, .. } = check;
    let outcome = match status {
        Status::Unknown => Outcome::Skipped,
        status if *status < worst_accepted => Outcome::Failure,
        _ => Outcome::Passed,
    };
    let mut text = format!("found: {found}\nwanted: {wanted}\n");
    if !remedy.is_empty() {
        let _ = writeln!(text, "remedy: {remedy}");
    }
    TestCase { name: id, outcome, message: format!("{}: {found}", status.name()), text }
}

impl TestSuite<'_> {
    /// The counts as attributes.
    fn counts(&self) -> String {
        let count = |wanted: fn(&Outcome) -> bool| {
            self.cases.iter().filter(|case| wanted(&case.outcome)).count()
        };
        format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
            self.cases.len(),
            count(|outcome| matches!(outcome, Outcome::Failure)),
            count(|outcome| matches!(outcome, Outcome::Error)),
            count(|outcome| matches!(outcome, Outcome::Skipped)),
            seconds(self.elapsed_ns),
        )
    }

    fn xml(&self) -> String {
        let (name, counts) = (for_xml(&self.name), self.counts());
        let start = self
            .start_ns
            .map(|ns| format!(" timestamp=\"{}\"", wall_time::iso(ns)))
            .unwrap_or_default();
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{name}\" {counts}>\n  \
             <testsuite name=\"{name}\" {counts}{start}>\n    <properties>\n"
        );
        // Text into a string does not fail; here and below.
        for (property, value) in &self.properties {
            let value = for_xml(value);
            let _ = writeln!(out, "      <property name=\"{property}\" value=\"{value}\"/>");
        }
        out.push_str("    </properties>\n");
        let class = for_xml(&self.name.replace(' ', "."));
        self.cases.iter().for_each(|case| case.write(&mut out, &class));
        out.push_str("  </testsuite>\n</testsuites>\n");
        out
    }
}

impl TestCase<'_> {
    fn write(&self, out: &mut String, class: &str) {
        let (name, message) = (for_xml(self.name), for_xml(&self.message));
        let text: Vec<String> = self.text.lines().map(for_xml).collect();
        let text = text.join("\n");
        let _ = writeln!(out, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"0\">");
        let _ = match self.outcome {
            Outcome::Passed if text.is_empty() => {
                writeln!(out, "      <system-out>{message}</system-out>")
            }
            Outcome::Passed => {
                writeln!(out, "      <system-out>{message}\n{text}</system-out>")
            }
            Outcome::Skipped => writeln!(out, "      <skipped message=\"{message}\"/>"),
            Outcome::Failure => {
                writeln!(
                    out,
                    "      <failure message=\"{message}\" type=\"limit\">{text}</failure>"
                )
            }
            Outcome::Error => {
                writeln!(out, "      <error message=\"{message}\" type=\"premise\">{text}</error>")
            }
        };
        out.push_str("    </testcase>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_documents::doctor::CheckEffect;

    fn gate(name: &str, passed: bool) -> GateReport {
        let unit = "ns".to_owned();
        GateReport {
            name: name.to_owned(),
            limit: 50e3,
            value: 179_637.0,
            unit,
            passed,
            confidence: None,
        }
    }

    fn document(gates: Vec<GateReport>, premises: Vec<Premise>) -> RunDocument {
        let mut document = RunDocument {
            schema: String::new(),
            manifest: Default::default(),
            result: Default::default(),
        };
        document.manifest.elapsed_ns = 2_500_000_000;
        document.manifest.epoch.realtime_ns = 1_575_388_617_900_000_000;
        document.manifest.command_line = vec!["a<b".to_owned()];
        (document.result.gates, document.result.premises) = (gates, premises);
        document
    }

    #[test]
    fn limits_are_test_cases() {
        let gates = vec![gate("max-latency", false), gate("percentile p99", true)];
        let text = junit_run("latency", &document(gates, Vec::new()));
        let counts = "tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"2.5\"";
        assert_eq!(text.matches(counts).count(), 2, "{text}");
        for part in [
            "timestamp=\"2019-12-03T15:56:57\"",
            "value=\"a&lt;b\"",
            "classname=\"hourglass.latency\" name=\"max-latency\"",
            "<failure message=\"max-latency: broken, ",
            "<system-out>percentile p99: kept, ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// Exit code 4: what was kept decides nothing, what was broken is.
    #[test]
    fn a_broken_premise_is_an_error() {
        let premise = Premise { id: "strayed".to_owned(), text: "it moved".to_owned(), at_ns: 1 };
        let gates = vec![gate("max-gap", true), gate("max-latency", false)];
        let text = junit_run("run", &document(gates, vec![premise]));
        assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{text}");
        assert!(text.contains("<skipped message=\"no verdict: it moved\"/>"), "{text}");
    }

    #[test]
    fn a_check_fails_by_the_worst_status_that_is_accepted() {
        let checks: Vec<CheckResult> = Status::ALL
            .into_iter()
            .map(|status| CheckResult {
                id: status.name().to_owned(),
                status,
                found: "1\u{1b}[31m".to_owned(),
                wanted: "0 & \"none\"".to_owned(),
                remedy: String::new(),
                effect: CheckEffect::default(),
            })
            .collect();
        let document = DoctorDocument {
            schema: String::new(),
            cpus: [2].into_iter().collect(),
            cpus_are: hourglass_documents::doctor::CpuSelection::Asked,
            counts: Default::default(),
            checks,
            differences: None,
        };
        for (accepted, failures) in [(Status::Warn, 1), (Status::Unknown, 2), (Status::Ok, 2)] {
            let text = junit_doctor(&document, accepted);
            let counts = format!("tests=\"4\" failures=\"{failures}\" errors=\"0\" skipped=\"1\"");
            assert!(text.contains(&counts), "{text}");
            assert!(
                text.contains("0 &amp; &quot;none&quot;") && !text.contains('\u{1b}'),
                "{text}"
            );
        }
    }
}
