//! Worked examples with known answers: every case of a supported kind is answered as expected.

use std::collections::BTreeSet;
use std::path::Path;

use hourglass_model::corpus::Case;
use hourglass_sched::corpus::{BadCase, KINDS, agrees, answer};

/// Kinds that other parts of the theory answer. One that is answered must leave the list.
const NOT_YET: &[&str] =
    &["global-edf", "global-fp-bc", "global-fp-rta-lc", "holistic-fp", "mp-spinlock"];

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| -> Vec<Case> {
        let text = std::fs::read_to_string(file).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
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
            Err(BadCase::Unsupported(kind)) => {
                assert!(NOT_YET.contains(&kind.as_str()), "{}: {kind} is not supported", case.id);
            }
            Err(why) => wrong.push(format!("{}: {why}", case.id)),
        }
    }
    assert!(wrong.is_empty(), "{} of {answered}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(answered, 81);
}

/// No kind disappears silently: what is listed is answered, and what is answered is listed.
#[test]
fn kinds_are_listed() {
    let found: BTreeSet<String> = cases().iter().map(|case| case.kind.clone()).collect();
    let listed: BTreeSet<String> =
        KINDS.iter().chain(NOT_YET).map(|kind| (*kind).to_owned()).collect();
    assert_eq!(found, listed);
}
