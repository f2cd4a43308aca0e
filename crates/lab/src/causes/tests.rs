use super::*;

/// As manifests write reservations and policies in force.
#[test]
fn reservations_are_read_back() {
    assert_eq!(budget_and_period("3.1ms/8ms"), Some((3_100_000, 8_000_000)));
    assert_eq!(budget_and_period("DEADLINE:3ms/8ms+"), Some((3_000_000, 8_000_000)));
    for text in ["", "3ms", "/", "3/8", "-3ms/8ms", "3ms/x"] {
        assert_eq!(budget_and_period(text), None, "{text}");
    }
    assert_eq!(policy("DEADLINE:3.1ms/8ms"), Some(Policy::Deadline));
    assert_eq!(policy("FIFO:80"), Some(Policy::Fifo(80)));
    assert_eq!(policy("EDF"), None);
}

/// What is missing is said, each thing once.
#[test]
fn what_is_missing_is_said() {
    let ids = |remarks: Remarks| -> Vec<String> {
        warnings(&remarks, &[]).into_iter().map(|warning| warning.id).collect()
    };
    let sound = Remarks { intervals: 9, gaps: 5, with_evidence: 5, ..Remarks::default() };
    assert!(ids(sound).is_empty());
    assert_eq!(ids(Remarks { with_evidence: 0, ..sound }), ["no-evidence"]);
    assert!(ids(Remarks { with_evidence: 0, with_events: 4, ..sound }).is_empty());
    let damaged = Remarks { events_refused: true, in_holes: 2, out_of_order: 1, ..sound };
    assert_eq!(ids(damaged), ["kernel-clock", "kernel-holes", "records-overlap"]);
}
