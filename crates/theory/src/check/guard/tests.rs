//! The guard with answers that are wrong on purpose: no set is known for which analysis and simulation disagree.

use hourglass_documents::check::{CheckDocument, MissFacts, Verdict, WitnessFacts};
use hourglass_report::text::Style;
use hourglass_tasks::TaskSet;

use super::{admit, confirm};
use crate::check::{CheckRequest, check};

/// Two tasks, of which the second responds in 3 ms of 4, where the first runs for 1 ms.
fn set(first: &str, steps: &str) -> TaskSet {
    let text = format!(
        "[[resource]]\nname = \"m\"\nprotocol = \"inheritance\"\n\
         [[task]]\nname = \"a\"\nwcet = \"{first}\"\nperiod = \"4ms\"\npriority = 2\n\
         [[task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"4ms\"\npriority = 1\n\
         critical_sections = [{{ resource = \"m\", length = \"2ms\", count = 1 }}]\n\
         phases = [{{ steps = [{steps}, \"timer t 4ms absolute\"] }}]\n"
    );
    TaskSet::from_toml(&text).unwrap()
}

fn answer(set: &TaskSet) -> CheckDocument {
    check(set, &CheckRequest::default()).unwrap()
}

/// Text and JSON have the verdict, and these words as its reason.
fn says(document: &CheckDocument, wanted: &str) {
    assert_eq!(document.verdict, Verdict::Unknown);
    assert!(document.processors.iter().all(|on| on.verdict == Verdict::Unknown), "{document:?}");
    let text = hourglass_report::text::check(document, true, Style::Plain);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("Unknown: {wanted}")), "{text}");
    let json = serde_json::to_value(document).unwrap();
    assert_eq!(json["verdict"], "unknown");
    assert!(json["reason"].as_str().unwrap().starts_with(wanted), "{json}");
}

/// The bounds are those of a set whose first task runs for a third of the time.
#[test]
fn a_bound_that_is_too_small() {
    let cases = [
        // A lock is part of what the analysis bounds, and no excuse.
        (
            "\"lock m\", \"run 2ms\", \"unlock m\"",
            "the analysis says that every deadline holds, but",
        ),
        ("\"run 2ms\"", "the analysis says that every deadline holds, but"),
        (
            "\"run 2ms\", \"post c\", \"take c\"",
            "a simulation of the same file shows that job 1 of 'b'",
        ),
    ];
    for (steps, wanted) in cases {
        let mut document = answer(&set("1ms", "\"run 2ms\""));
        assert_eq!(document.verdict, Verdict::Feasible);
        confirm(&set("3ms", steps), &mut document);
        says(&document, wanted);
        let [a, b] = &document.tasks[..] else { panic!("{document:?}") };
        assert_eq!((a.verdict, b.verdict), (Verdict::Feasible, Verdict::Unknown), "{steps}");
        assert_eq!((b.response_time_ns, b.slack_ns), (None, None));
    }
}

/// The file of the witness is that of a set that meets its deadlines, or its miss is another.
#[test]
fn a_witness_without_its_miss() {
    let late = set("3ms", "\"run 2ms\"");
    let real = answer(&late).witness.unwrap();
    let mut document = answer(&late);
    admit(&mut document, real.clone(), "no simulation shows it");
    assert_eq!(document, answer(&late));
    let feasible = set("1ms", "\"run 2ms\"").to_toml();
    let of = |miss: &MissFacts| MissFacts { job: miss.job + 7, ..miss.clone() };
    let fakes = [
        WitnessFacts { scenario: Some(feasible), ..real.clone() },
        WitnessFacts { scenario: Some("nonsense".to_owned()), ..real.clone() },
        WitnessFacts { scenario: None, ..real.clone() },
        WitnessFacts { miss: real.miss.as_ref().map(of), ..real },
    ];
    for fake in fakes {
        let mut document = answer(&late);
        assert!(document.verdict > Verdict::Unknown);
        admit(&mut document, fake, "no simulation shows it");
        says(&document, "no simulation shows it");
        assert_eq!(document.witness, None);
        assert!(document.tasks.iter().all(|task| task.verdict <= Verdict::Unknown));
    }
}
