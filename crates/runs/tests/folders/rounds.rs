//! Folders of rounds: names, order, and what was cut short.

use std::fs;

use hourglass_documents::diff::DiffDocument;
use hourglass_runs::store::rounds::{DIFF_FILE, NewRounds, RoundFolders, find_rounds};
use hourglass_runs::store::{CreateError, OpenError};

#[test]
fn rounds_are_found_in_their_order() {
    let home = tempfile::tempdir().unwrap();
    let rounds = NewRounds::create(home.path().join("rounds")).unwrap();
    let names = [('a', 2), ('b', 2), ('a', 1), ('b', 1), ('a', 100), ('b', 100), ('a', 3)];
    for (side, round) in names {
        fs::create_dir(rounds.place(side, round)).unwrap();
    }
    for stray in ["c-01", "a-", "a-1x", "a", "ab-01", "b-99999999999", "notes"] {
        fs::create_dir(rounds.path().join(stray)).unwrap();
    }
    let found = find_rounds(rounds.path()).unwrap();
    let of = |side: char| [1, 2, 100].map(|round| rounds.place(side, round)).to_vec();
    let alone = vec![rounds.place('a', 3)];
    assert_eq!(found, RoundFolders { a: of('a'), b: of('b'), alone });
}

/// A round that was cut short is kept, but is no round.
#[test]
fn a_round_cut_short_is_set_aside() {
    let home = tempfile::tempdir().unwrap();
    let rounds = NewRounds::create(home.path().join("rounds")).unwrap();
    fs::create_dir(rounds.place('a', 1)).unwrap();
    rounds.set_aside(1).unwrap();
    rounds.set_aside(2).unwrap();
    assert_eq!(find_rounds(rounds.path()).unwrap(), RoundFolders::default());
    assert!(rounds.path().join("interrupted-a-01").is_dir());
    rounds.remove_empty();
    assert!(rounds.path().is_dir(), "something is in it");
    rounds.write(&DiffDocument::default()).unwrap();
    let text = fs::read_to_string(rounds.path().join(DIFF_FILE)).unwrap();
    assert!(text.contains("\"verdict\": \"unknown\""), "{text}");
}

#[test]
fn refusals_name_the_folder() {
    let home = tempfile::tempdir().unwrap();
    assert!(matches!(NewRounds::create(home.path()), Err(CreateError::Exists(_))));
    let empty = NewRounds::create(home.path().join("empty")).unwrap();
    empty.remove_empty();
    assert!(!empty.path().exists());
    assert!(matches!(find_rounds(empty.path()), Err(OpenError::NotFound(_))));
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(find_rounds(&file), Err(OpenError::NotAFolder(_))));
}
