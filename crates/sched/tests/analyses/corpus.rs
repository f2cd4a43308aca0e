//! Worked examples with known answers: every case of a supported kind is answered as expected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hourglass_sched::catalogue::answer;
use hourglass_sched::catalogue::kinds;
use hourglass_sched::corpus::{BadCase, agrees, disagreements};
use hourglass_tasks::corpus::{self, Case, ResultValue};

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let read = |file: &std::path::PathBuf| -> Vec<Case> {
        let text = std::fs::read_to_string(file).unwrap();
        let cases = corpus::read(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        cases.into_iter().map(Result::unwrap).collect()
    };
    files.iter().flat_map(read).collect()
}

#[test]
fn every_supported_case_is_answered_as_expected() {
    let mut wrong = Vec::new();
    let mut answered = 0;
    for case in cases() {
        match answer(&case) {
            Ok(got) => {
                answered += 1;
                for (name, expected) in &case.expect {
                    if !got.get(name).is_some_and(|got| agrees(name, expected, got)) {
                        let got = got.get(name);
                        wrong.push(format!("{}: {name}: {expected:?}, got {got:?}", case.id));
                    }
                }
            }
            Err(why) => wrong.push(format!("{}: {why}", case.id)),
        }
    }
    assert!(wrong.is_empty(), "{} of {answered}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(answered, 158);
}

/// No kind disappears silently: what is listed is answered, and what is answered is listed.
#[test]
fn kinds_are_listed() {
    let found: BTreeSet<String> = cases().iter().map(|case| case.kind.clone()).collect();
    let listed: BTreeSet<String> = kinds().map(str::to_owned).collect();
    assert_eq!(found, listed);
}

/// As the README of the corpus says: decimals to six places, `_near` to 0.02, the rest exactly.
#[test]
fn answers_are_compared() {
    let value = |json: &str| serde_json::from_str::<ResultValue>(json).unwrap();
    let same = |name: &str, a: &str, b: &str| agrees(name, &value(a), &value(b));
    assert!(!same("r", "[3, 39]", "[3, 38]"));
    assert!(!same("r", "[3, 39]", "[3]"));
    assert!(!same("r", "[4, null]", "[4, 4]"));
    assert!(!same("schedulable", "false", "null"));
    assert!(same("ll", r#"{"1": 1.0, "2": 0.828427}"#, r#"{"1": 1, "2": 0.8284271247}"#));
    assert!(!same("ll", r#"{"1": 1.0, "2": 0.828427}"#, r#"{"1": 1.0, "2": 0.828428}"#));
    assert!(same("preempt_near", "\"37.48\"", "\"37.47\""));
    assert!(same("preempt_near", "\"37.48\"", "37.47"));
    assert!(!same("preempt_near", "\"37.48\"", "\"37.5001\""));
    assert!(!same("u", "\"3/8\"", "\"6/16\""));
    for case in cases() {
        assert_eq!(disagreements(&case, &case.expect), [""; 0], "{}", case.id);
        assert_eq!(disagreements(&case, &BTreeMap::new()).len(), case.expect.len());
    }
}

/// A key that may change the question is not ignored; a text is a remark.
#[test]
fn an_unknown_key_is_not_ignored() {
    let mut case = cases().into_iter().find(|case| case.kind == "fp-preemptive").unwrap();
    case.other.insert("remark".to_owned(), ResultValue::Text("a remark".to_owned()));
    assert!(answer(&case).is_ok());
    let on_two = Case { m: Some(2), ..case.clone() };
    assert_eq!(answer(&on_two), Err(BadCase::UnknownKey("m".to_owned())));
    case.tasks[0].other.insert("offset".to_owned(), ResultValue::Whole(3));
    assert_eq!(answer(&case), Err(BadCase::UnknownKey("offset".to_owned())));
}
