//! What killed reservations had left, and what was undone of it.

use hourglass_documents::reserve_clean::{CleanDocument, CleanFound};

use super::Style;
use super::table::{TextStyle, paint_line};
use crate::clean::for_terminal;

/// What was found and done, one block for each record or group, and a last line that says whether anything is left.
/// What was gone already is left out.
#[must_use]
pub fn reserve_clean(document: &CleanDocument, style: Style) -> String {
    let mut out = String::new();
    document.found.iter().for_each(|found| block(&mut out, found, style));
    let alive = document.found.iter().filter(|found| found.state == "alive").count();
    let undone = document.found.iter().filter(|found| found.state == "undone").count();
    let (verdict, tone) = match (document.left, undone) {
        (0, 0) if alive == 0 => ("nothing to undo".to_owned(), TextStyle::Good),
        (0, 0) => (format!("nothing to undo; {alive} in force were not touched"), TextStyle::Good),
        (0, undone) if alive > 0 => (
            format!("{undone} undone, nothing remains; {alive} in force were not touched"),
            TextStyle::Good,
        ),
        (0, undone) => (format!("{undone} undone, nothing remains"), TextStyle::Good),
        (left, undone) => {
            let text = format!("{undone} undone, {left} not, for the causes above");
            (text, TextStyle::Bad)
        }
    };
    paint_line(&mut out, &verdict, tone, style);
    out
}

fn block(out: &mut String, found: &CleanFound, style: Style) {
    let path = for_terminal(&found.path);
    let maker = match (&*found.name, found.maker) {
        (_, 0) => format!("user {}", found.user),
        ("", maker) => format!("process {maker} of user {}", found.user),
        (name, maker) => format!("{} {maker} of user {}", for_terminal(name), found.user),
    };
    let title = match &*found.state {
        "alive" => format!("{maker}: in force, or being undone by its guardian"),
        "unreadable" => format!("{path}: not a record of this version of hourglass"),
        "undone" => format!("{maker}: undone"),
        _ => format!("{maker}: not undone in full ({path})"),
    };
    paint_line(out, &title, TextStyle::Heading, style);
    for step in found.steps.iter().filter(|step| step.outcome != "gone") {
        let what = for_terminal(&step.what);
        let (text, tone) = match (&*step.outcome, &step.cause) {
            ("undone", _) => (format!("  {what}"), TextStyle::Normal),
            ("elsewhere", _) => {
                (format!("  not: {what}, a number of another PID namespace"), TextStyle::Caution)
            }
            (_, cause) => {
                let cause = cause.as_deref().map(for_terminal).unwrap_or_default();
                (format!("  refused: {what}: {cause}"), TextStyle::Bad)
            }
        };
        paint_line(out, &text, tone, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_documents::reserve_clean::{CleanStep, RESERVE_CLEAN_SCHEMA};

    fn found(state: &str, steps: &[(&str, &str, Option<&str>)]) -> CleanFound {
        let step = |(what, outcome, cause): &(&str, &str, Option<&str>)| CleanStep {
            what: (*what).to_owned(),
            outcome: (*outcome).to_owned(),
            cause: cause.map(str::to_owned),
        };
        CleanFound {
            path: "/run/hourglass/undo/4711-1-0".to_owned(),
            user: 0,
            maker: 4711,
            name: "hourglass".to_owned(),
            state: state.to_owned(),
            steps: steps.iter().map(step).collect(),
        }
    }

    fn document(found: Vec<CleanFound>, left: u64) -> CleanDocument {
        CleanDocument { schema: RESERVE_CLEAN_SCHEMA.to_owned(), found, left }
    }

    #[test]
    fn each_record_is_a_block_and_the_last_line_says_what_is_left() {
        let undone = found(
            "undone",
            &[
                ("resume process 12", "undone", None),
                ("remove /sys/fs/cgroup/hourglass-4711-0", "gone", None),
            ],
        );
        let left = found("left", &[("remove /a\u{1b}[2J", "refused", Some("Permission denied"))]);
        let text = reserve_clean(&document(vec![undone, left], 1), Style::Plain);
        insta::assert_snapshot!(text, @r"
        hourglass 4711 of user 0: undone
          resume process 12
        hourglass 4711 of user 0: not undone in full (/run/hourglass/undo/4711-1-0)
          refused: remove /a[2J: Permission denied
        1 undone, 1 not, for the causes above
        ");
        let none = reserve_clean(&document(Vec::new(), 0), Style::Plain);
        assert_eq!(none, "nothing to undo\n");
        let alive = reserve_clean(&document(vec![found("alive", &[])], 0), Style::Plain);
        assert!(alive.ends_with("nothing to undo; 1 in force were not touched\n"), "{alive}");
    }
}
