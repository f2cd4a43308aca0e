//! Tests that said that this machine cannot run them.
//!
//! Owns: the file to which tests append (`hourglass_skip`), the check of each condition, and what is printed. Must not:
//! run tests; believe Hourglass about what the machine lacks.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hourglass_skip::{FILE, Requirement, Skipped};

use crate::failure::StepFailure;
use crate::workspace::Workspace;

pub(crate) const VARIABLE: &str = FILE;

/// Tests that may be skipped for [`Requirement::CHANCE`], and why no command can tell whether they had to be.
const BY_CHANCE: [(&str, &str); 8] = [
    ("wake_ups_are_taken_apart", "kernels leave out switches from idle on a CPU that was offline"),
    ("the_kernels_line_is_found_and_true", "the vDSO of a new kernel may be laid out anew"),
    ("a_rate_that_changes_midway_is_found", "a busy host makes emulated reads slow"),
    ("a_rate_that_changes_is_found_where_reads_are_slow", "a busy host makes emulated reads slow"),
    ("nothing_is_stopped_without_a_guardian", "a race that the other side may win each time"),
    ("a_soft_budget_comes_again_and_again", "a busy host leaves few periods to be judged"),
    ("test_ticks_have_a_length", "the clock may change its source between two readings"),
    (
        "test_a_missing_privilege_names_the_line_that_grants_it",
        "a container may make a privilege impossible to give up",
    ),
];

pub(crate) struct Skips(PathBuf);

impl Skips {
    pub(crate) fn begin(workspace: &Workspace) -> Result<Skips, StepFailure> {
        let path = file(workspace);
        fs::create_dir_all(&workspace.target)
            .and_then(|()| fs::write(&path, ""))
            .map_err(|error| StepFailure::file(&path, &error))?;
        Ok(Skips(path))
    }

    pub(crate) fn end(self) -> Result<(), StepFailure> {
        let skipped = all(&self.0)?;
        let mut met = Checks::default();
        print!("{}", summary(&skipped, &mut met));
        let mistakes = by_mistake(&skipped, &mut met);
        if mistakes.is_empty() {
            return Ok(());
        }
        let names: Vec<String> =
            mistakes.iter().map(|one| format!("{} ({})", one.test, one.need)).collect();
        let names = names.join(", ");
        Err(StepFailure::Broken(format!("skipped, though this machine could run them: {names}")))
    }
}

pub(crate) fn file(workspace: &Workspace) -> PathBuf {
    workspace.target.join("skipped-tests.txt")
}

pub(crate) fn all(path: &PathBuf) -> Result<Vec<Skipped>, StepFailure> {
    read(&fs::read_to_string(path).map_err(|error| StepFailure::file(path, &error))?)
}

pub(crate) fn keep(path: &PathBuf, skipped: &[Skipped]) -> Result<(), StepFailure> {
    let text: String = skipped.iter().map(Skipped::line).collect();
    fs::write(path, text).map_err(|error| StepFailure::file(path, &error))
}

/// One test may skip several parts for the same reason; that counts once.
fn read(text: &str) -> Result<Vec<Skipped>, StepFailure> {
    let parse = |line: &str| {
        let broken = || StepFailure::Broken(format!("not a line of a skipped test: '{line}'"));
        Skipped::parse(line).ok_or_else(broken)
    };
    let mut skipped: Vec<Skipped> = text.lines().map(parse).collect::<Result<_, _>>()?;
    skipped.sort();
    skipped.dedup();
    Ok(skipped)
}

/// What this machine has, each asked once.
#[derive(Default)]
pub(crate) struct Checks(BTreeMap<Requirement, Option<bool>>);

impl Checks {
    fn is_met(&mut self, need: &Requirement) -> Option<bool> {
        *self.0.entry(need.clone()).or_insert_with(|| need.is_met())
    }
}

fn summary(skipped: &[Skipped], met: &mut Checks) -> String {
    let mut tests: BTreeMap<&str, Vec<&Skipped>> = BTreeMap::new();
    for one in skipped {
        tests.entry(&one.test).or_default().push(one);
    }
    let mut text = format!("tests skipped, whole or in part: {}\n", tests.len());
    for (test, reasons) in tests {
        for Skipped { need, why, .. } in reasons {
            let unsure = match (need.check.is_empty(), met.is_met(need)) {
                (false, None) => " (cannot be checked here)",
                _ => "",
            };
            text += &format!("  {test}: {need}{unsure}: {why}\n");
        }
    }
    text
}

/// Those that this machine could have run: what they need is there, or they have no condition that can be checked and are
/// not on the list of those.
pub(crate) fn by_mistake<'a>(skipped: &'a [Skipped], met: &mut Checks) -> Vec<&'a Skipped> {
    let listed =
        |test: &str| BY_CHANCE.iter().any(|(name, _)| test.rsplit("::").next() == Some(name));
    let mistake = |one: &&Skipped| match met.is_met(&one.need) {
        Some(met) => met,
        None => one.need.check.is_empty() && !listed(&one.test),
    };
    skipped.iter().filter(mistake).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(test: &str, need: Requirement) -> Skipped {
        let (program, folder) = (String::new(), String::new());
        Skipped { test: test.into(), need, why: "said so".into(), program, folder }
    }

    #[test]
    fn each_test_is_counted_once_and_named_with_its_reason() {
        let missing = skipped("b", Requirement::file("/no/such/device"));
        let odd = skipped("a::c", Requirement::runs("odd", "no-such-program-at-all"));
        let text: String = [&missing, &odd, &missing].map(Skipped::line).concat();
        assert_eq!(
            summary(&read(&text).unwrap(), &mut Checks::default()),
            "tests skipped, whole or in part: 2\n  a::c: odd (cannot be checked here): said so\n  \
             b: /no/such/device: said so\n"
        );
        assert!(matches!(read("nonsense\n"), Err(StepFailure::Broken(_))));
    }

    /// A command that answered 3 to everything passed: its word was taken for the machine's.
    #[test]
    fn what_the_machine_has_is_no_reason() {
        let all = [
            skipped("a", Requirement::program("sh")),
            skipped("b", Requirement::file("/no/such/device")),
            skipped("c", Requirement::CHANCE),
            skipped("x::wake_ups_are_taken_apart", Requirement::CHANCE),
            skipped("d", Requirement::runs("odd", "no-such-program-at-all")),
        ];
        let names = by_mistake(&all, &mut Checks::default());
        assert_eq!(names.iter().map(|one| &*one.test).collect::<Vec<_>>(), ["a", "c"]);
    }
}
