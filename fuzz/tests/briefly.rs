//! Every target for a moment, with another seed each time, which is printed: `cargo xtask fuzz` takes longer.

use std::process::Command;

#[test]
fn no_target_finds_anything_in_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut fuzz = Command::new(env!("CARGO_BIN_EXE_hourglass-fuzz"));
    let output = fuzz
        .args(["--seconds", "1", "--seed", &hourglass_dice::seed().to_string(), "--folder"])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", output.status);
    // Not one of them stood still: each tried its corpus, and more.
    let tried: Vec<u64> = said
        .lines()
        .filter(|line| line.contains(" a second, "))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse().ok())
        .collect();
    assert_eq!(tried.len(), hourglass_fuzz::TARGETS.len());
    assert!(tried.iter().all(|tried| *tried > 5), "{tried:?}");
}

#[test]
fn a_wrong_use_is_refused() {
    let fuzz = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_hourglass-fuzz")).args(words).output().unwrap()
    };
    for words in [&["no-such-target"][..], &["--seconds", "x"], &["--try", "span", "/no/such/file"]]
    {
        assert_eq!(fuzz(words).status.code(), Some(2), "{words:?}");
    }
    assert!(fuzz(&["--list"]).status.success());
}
