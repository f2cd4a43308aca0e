//! Tests that said that this machine cannot run them.
//!
//! Owns: the file to which tests append (`hourglass_skip`), what is printed of it, and which of them CI
//! does not accept. Must not: run tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hourglass_skip::{FILE, Skipped};

use crate::failure::Failure;
use crate::workspace::Workspace;

/// The file of one run of all tests.
pub(crate) struct Skips(PathBuf);

impl Skips {
    /// Makes the file, empty.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn begin(workspace: &Workspace) -> Result<Skips, Failure> {
        let path = file(workspace);
        fs::create_dir_all(&workspace.target)
            .and_then(|()| fs::write(&path, ""))
            .map_err(|error| Failure::file(&path, &error))?;
        Ok(Skips(path))
    }

    /// Prints how many tests were skipped, which, and why.
    ///
    /// # Errors
    /// `Broken` in CI for a test that CI's machine could have run; `Unable` if the file is gone.
    pub(crate) fn end(self, in_ci: bool) -> Result<(), Failure> {
        let text = fs::read_to_string(&self.0).map_err(|error| Failure::file(&self.0, &error))?;
        let skipped = read(&text)?;
        print!("{}", summary(&skipped));
        let by_mistake = by_mistake(&skipped);
        if in_ci && !by_mistake.is_empty() {
            let names = by_mistake.join(", ");
            return Err(Failure::Broken(format!("skipped, though CI could run them: {names}")));
        }
        Ok(())
    }
}

/// Where tests append; cargo's tests get the path in the variable [`FILE`].
pub(crate) fn file(workspace: &Workspace) -> PathBuf {
    workspace.target.join("skipped-tests.txt")
}

/// The name of the variable.
pub(crate) const VARIABLE: &str = FILE;

/// One test may skip several parts for the same reason; that counts once.
fn read(text: &str) -> Result<Vec<Skipped>, Failure> {
    let parse = |line: &str| {
        let broken = || Failure::Broken(format!("not a line of a skipped test: '{line}'"));
        Skipped::parse(line).ok_or_else(broken)
    };
    let mut skipped: Vec<Skipped> = text.lines().map(parse).collect::<Result<_, _>>()?;
    skipped.sort();
    skipped.dedup();
    Ok(skipped)
}

fn summary(skipped: &[Skipped]) -> String {
    let mut tests: BTreeMap<&str, Vec<&Skipped>> = BTreeMap::new();
    for one in skipped {
        tests.entry(&one.test).or_default().push(one);
    }
    let mut text = format!("tests skipped, whole or in part: {}\n", tests.len());
    for (test, reasons) in tests {
        for Skipped { need, why, .. } in reasons {
            text += &format!("  {test}: {need}: {why}\n");
        }
    }
    text
}

/// What a reservation is refused with beside those of other tests: the machine has what the test needs.
const CONTENDED: [&str; 2] = ["together are more than", "would come too late"];

fn by_mistake(skipped: &[Skipped]) -> Vec<String> {
    let contended = |one: &&Skipped| CONTENDED.iter().any(|words| one.why.contains(words));
    let mistakes = skipped.iter().filter(|one| one.need.is_met_in_ci() && !contended(one));
    mistakes.map(|one| format!("{} ({}: {})", one.test, one.need, one.why)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tests that reserve at the same time.
    #[test]
    fn what_another_test_has_is_no_mistake() {
        let line =
            "real-time\ta\tthe reservations together are more than real-time threads may have\n";
        assert!(by_mistake(&read(line).unwrap()).is_empty());
        let line = "real-time\ta\tCAP_SYS_NICE is missing\n";
        assert_eq!(by_mistake(&read(line).unwrap()).len(), 1);
    }

    const LINES: &str = "counters\tb\tno PMU\ntool\ta::c\tno nm\ncounters\tb\tno PMU\n";

    #[test]
    fn each_test_is_counted_once_and_named_with_its_reason() {
        let skipped = read(LINES).unwrap();
        let text = summary(&skipped);
        assert_eq!(
            text,
            "tests skipped, whole or in part: 2\n  a::c: tool: no nm\n  b: counters: no PMU\n"
        );
    }

    #[test]
    fn ci_accepts_what_its_machine_lacks_and_nothing_else() {
        let skipped = read(LINES).unwrap();
        assert_eq!(by_mistake(&skipped), ["a::c (tool: no nm)"]);
        assert!(matches!(read("nonsense\n"), Err(Failure::Broken(_))));
    }
}
