//! Which bounds of proposed reservations are said.
//!
//! Owns: what a bound relies on. Must not: bound anything itself.

use hourglass_documents::reserve::ReserveDocument;
use hourglass_tasks::TaskSet;

/// The warning by which a budget may come after its deadline.
const LATE: &str = "budget-may-be-late";

/// Whether nothing promises the budget in time: a bound on what it serves is none.
fn is_denied(one: &ReserveDocument) -> bool {
    one.backend.as_deref() == Some("quota") || one.warnings.iter().any(|warning| warning.id == LATE)
}

/// The answers for the tasks of a set without the bounds that nothing promises, or that are of jobs after such ones.
pub(super) fn that_hold(set: &TaskSet, mut all: Vec<ReserveDocument>) -> Vec<ReserveDocument> {
    all.iter_mut().filter(|one| is_denied(one)).for_each(|one| one.bound_ns = None);
    // A chain is not longer than there are tasks.
    for _ in &set.tasks {
        let is_unbounded = |one: &&ReserveDocument| one.bound_ns.is_none();
        let unbounded = all.iter().filter(is_unbounded).map(|one| one.target.clone());
        let unbounded: Vec<String> = unbounded.collect();
        let after =
            set.tasks.iter().filter(|task| task.after.iter().any(|name| unbounded.contains(name)));
        let after: Vec<&str> = after.map(|task| task.name.as_str()).collect();
        let late = all.iter_mut().filter(|one| after.contains(&one.target.as_str()));
        late.for_each(|one| one.bound_ns = None);
    }
    all
}

#[cfg(test)]
mod tests {
    use hourglass_documents::document::Warning;

    use super::*;

    /// The bug: a bound of 13.1 ms beside the warning that the budget may be late; `check` of the reservations had 13.762 ms. Nor
    /// does one hold that counts from the deadline of such a job, or of a quota, which promises nothing.
    #[test]
    fn no_bound_is_said_that_a_warning_denies() {
        let task = |name: &str, after: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\nwcet = \"1ms\"\nperiod = \"9ms\"\ndeadline = \"9ms\"\n{after}\n"
            )
        };
        let text = task("a", "")
            + &task("b", "after = [\"a\"]").replace("period = \"9ms\"\n", "")
            + &task("c", "after = [\"b\"]").replace("period = \"9ms\"\n", "")
            + &task("d", "");
        let set = TaskSet::from_toml(&text).unwrap();
        let bounded = |backend: &str, id: &str| {
            let all = set.tasks.iter().map(|task| {
                let id = if task.name == "a" { id } else { "budget-at-tick" };
                let (text, remedy) = (String::new(), String::new());
                ReserveDocument {
                    target: task.name.clone(),
                    backend: Some(if task.name == "a" { backend } else { "user" }.to_owned()),
                    bound_ns: Some(9),
                    warnings: vec![Warning { id: id.to_owned(), text, remedy }],
                    ..ReserveDocument::default()
                }
            });
            let all = that_hold(&set, all.collect());
            all.iter().map(|one| one.bound_ns.is_some()).collect::<Vec<bool>>()
        };
        assert_eq!(bounded("deadline", "budget-may-be-late"), [false, false, false, true]);
        assert_eq!(bounded("quota", "budget-at-tick"), [false, false, false, true]);
        assert_eq!(bounded("deadline", "budget-at-tick"), [true; 4]);
    }
}
