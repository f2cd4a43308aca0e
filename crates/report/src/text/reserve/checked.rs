//! Whether reservations would be granted.

use hourglass_documents::reserve::{ReserveDocument, ReserveRefusal};

use super::took::{amount, exact};
use super::{PAGE, Style, TextStyle, heading, line, named, suggestion};
use crate::clean;
use crate::text::table::{paint_line, wrapped_within};

/// Whether a reservation would be granted, by what, and what is in the way of the others.
#[must_use]
pub fn reserve_check(document: &ReserveDocument, style: Style) -> String {
    let mut out = String::new();
    heading(&mut out, document, style);
    if !document.refusals.is_empty() {
        out.push('\n');
    }
    document.refusals.iter().for_each(|refusal| refused(&mut out, refusal, style));
    suggestion(&mut out, document, style);
    let (verdict, tone) = verdict(document);
    paint_line(&mut out, &verdict, tone, style);
    out
}

/// Whether it would be granted, in words.
fn verdict(document: &ReserveDocument) -> (String, TextStyle) {
    if let Some(why) = &document.unknown_because {
        return (format!("unknown: {why}"), TextStyle::Caution);
    }
    match &document.backend {
        Some(backend) if document.guarantee => {
            (format!("yes: {} would give it", named(backend)), TextStyle::Good)
        }
        Some(backend) if backend == "quota" => {
            (format!("as a limit only, by {}", named(backend)), TextStyle::Caution)
        }
        Some(backend) => (
            format!("not guaranteed (see the warnings): {} would take it", named(backend)),
            TextStyle::Caution,
        ),
        None if document.refusals.iter().any(|refusal| refusal.backend == "smt") => {
            ("no: what --smt asks for cannot be had".to_owned(), TextStyle::Bad)
        }
        None if document.refusals.iter().any(|refusal| refusal.id == "no-proposal") => {
            ("no: no budget of one job a period is proposed".to_owned(), TextStyle::Bad)
        }
        None => ("no: no backend would grant it".to_owned(), TextStyle::Bad),
    }
}

/// What to reserve for each of several tasks, and whether it would be granted.
#[must_use]
pub fn reserve_proposals(document: &ReserveDocument, style: Style) -> String {
    let mut out = String::new();
    for one in std::iter::once(document).chain(&document.also) {
        let (verdict, tone) = verdict(one);
        let times = amount((one.budget_ns, one.period_ns));
        let deadline = match one.deadline_ns == one.period_ns {
            true => String::new(),
            false => format!(" --deadline {}", exact(one.deadline_ns)),
        };
        let head = format!("{}: reserve {times}{deadline}", clean::for_terminal(&one.target));
        paint_line(&mut out, &head, TextStyle::Heading, style);
        line(&mut out, "granted", &verdict, tone, style);
        if let Some(bound) = one.bound_ns {
            // The class keeps the deadline of what was used before.
            let premise = match one.backend.as_deref() {
                Some("deadline") => ", where the reservation begins while the thread sleeps",
                _ => "",
            };
            let held = format!("each job within {} of its arrival{premise}", exact(bound));
            line(&mut out, "bound", &held, TextStyle::Normal, style);
        }
        if let Some(least) = one.wcet_at_least_ns {
            let held = format!(
                "an upper bound alone, and {} at least: the budget may be far too large",
                exact(least)
            );
            line(&mut out, "wcet", &held, TextStyle::Caution, style);
        }
        if one.backend.is_none() {
            one.refusals.iter().for_each(|refusal| refused(&mut out, refusal, style));
        }
    }
    out
}

fn refused(out: &mut String, refusal: &ReserveRefusal, style: Style) {
    let head = match &refusal.errno {
        Some(errno) => format!("{}: {} ({errno})", refusal.backend, refusal.id),
        None => format!("{}: {}", refusal.backend, refusal.id),
    };
    paint_line(out, &clean::for_terminal(&head), TextStyle::Bad, style);
    let cause = wrapped_within(PAGE, &clean::for_terminal(&refusal.cause), 2, 2);
    // The remedy stays on one line, to be copied.
    let remedy = clean::for_terminal(&refusal.remedy);
    out.push_str(&format!("  {cause}\n  remedy: {remedy}\n"));
}
