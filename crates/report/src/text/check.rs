//! What theory says about a set of tasks, for people: a table, a sentence, and the proof.

use std::collections::BTreeSet;
use std::fmt::Write;

use hourglass_documents::check::{
    BreakdownFacts, CaseStatus, CheckCorpusDocument, CheckDocument, FixedPoint, ProcessorFacts,
    TaskFacts, Verdict,
};
use hourglass_documents::explanation::{Explanation, FactOrigin};
use hourglass_time::Span;

use super::Style;
use super::table::{
    ColumnFormat, NARROW as PAGE, NOTHING, TextCell, TextStyle, TextTable, paint, paint_line,
    wrapped_within,
};
use crate::clean;

/// Columns to which a name in a table is cut.
const NAME: usize = 22;

/// Points of a proof that are shown for each task or processor.
const SHOWN: usize = 12;

/// The verdict, a table of the tasks with their bounds, and why. With what was understood and the
/// proof if the document has them and `proof` is asked for.
#[must_use]
pub fn check(document: &CheckDocument, proof: bool, style: Style) -> String {
    let mut out = String::new();
    if let Some(understood) = &document.understood {
        explanation(&mut out, understood, style);
    }
    table(document).write(&mut out, style);
    sentence(&mut out, document, style);
    sensitivity(&mut out, document, style);
    breakdown(&mut out, document);
    for assumption in &document.assumptions {
        bullet(&mut out, "assumed: ", assumption);
    }
    if let Some(design) = &document.server {
        let period = time(design.period_ns);
        let line = match design.budget_ns {
            Some(budget) => format!(
                "Reserve {} every {period}: {}.",
                time(budget),
                clean::for_terminal(&design.reason)
            ),
            None => {
                format!("No reservation every {period}: {}.", clean::for_terminal(&design.reason))
            }
        };
        line_of(&mut out, &line);
    }
    if proof {
        proofs(&mut out, document, style);
    }
    out
}

/// The names of the analyses, what they answer and whose they are.
#[must_use]
pub fn analyses(entries: &[hourglass_documents::check::AnalysisFacts], style: Style) -> String {
    let mut out = String::new();
    for entry in entries {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", paint(&entry.name, TextStyle::Heading, style));
        let _ = writeln!(out, "  {}", wrapped_within(PAGE, &entry.about, 2, 2));
        let source = wrapped_within(PAGE, &entry.source, 2, 2);
        let _ = writeln!(out, "  {}", paint(&source, TextStyle::Faint, style));
    }
    out
}

fn time(ns: u64) -> String {
    i64::try_from(ns).map_or_else(|_| format!("{ns}ns"), |ns| Span::from_nanos(ns).to_string())
}

/// A unit for all times of a table, and how many decimals show them.
struct Unit {
    name: &'static str,
    ns: u64,
    decimals: u32,
}

impl Unit {
    fn of(document: &CheckDocument) -> Unit {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let mut costs: Vec<u64> = document.tasks.iter().map(|task| task.wcet_ns).collect();
        costs.sort_unstable();
        let middle = costs.get(costs.len() / 2).copied().unwrap_or(0);
        let (name, ns) = units.into_iter().find(|(_, ns)| middle >= *ns).unwrap_or(("ns", 1));
        let all = document.tasks.iter().flat_map(|task| {
            [
                Some(task.wcet_ns),
                Some(task.period_ns),
                Some(task.deadline_ns),
                task.response_time_ns,
            ]
        });
        let needs =
            |value: u64, decimals: u32| !(value % ns * 10u64.pow(decimals)).is_multiple_of(ns);
        let most = if ns == 1 { 0 } else { 3 };
        let mut decimals = 0;
        for value in all.flatten() {
            while decimals < most && needs(value, decimals) {
                decimals += 1;
            }
        }
        Unit { name, ns, decimals }
    }

    /// Rounded up, so that a bound stays one.
    fn text(&self, value: u64) -> String {
        let power = 10u128.pow(self.decimals);
        let scaled = (u128::from(value) * power).div_ceil(self.ns.into());
        match self.decimals as usize {
            0 => scaled.to_string(),
            decimals => format!("{}.{:0decimals$}", scaled / power, scaled % power),
        }
    }

    /// With its sign; the magnitude rounded down for a slack, up for a lack of it.
    fn signed(&self, value: i64) -> String {
        if value < 0 {
            return format!("-{}", self.text(value.unsigned_abs()));
        }
        let step = self.ns / 10u64.pow(self.decimals);
        self.text(value.unsigned_abs() / step.max(1) * step.max(1))
    }
}

fn table(document: &CheckDocument) -> TextTable {
    let unit = Unit::of(document);
    let several = document.processors.len() > 1;
    let has_priorities = document.tasks.iter().any(|task| task.priority.is_some());
    let name = if document.set.is_empty() { "Tasks" } else { document.set.as_str() };
    let title = format!("{}, times in {}", clean::for_terminal(name), unit.name);
    let toned = |task: &TaskFacts, text: Option<String>| TextCell::toned(text, verdict(task).1);
    TextTable::of(title, &document.tasks)
        .text("task", |task| short(&task.name))
        .number_if(has_priorities, "prio", |task| task.priority.map(|p| p.to_string()))
        .column_if(several, ColumnFormat::Text, "CPU", place)
        .number("C", |task| unit.text(task.wcet_ns))
        .number("T", |task| unit.text(task.period_ns))
        .number("D", |task| unit.text(task.deadline_ns))
        .number("R", |task| toned(task, task.response_time_ns.map(|ns| unit.text(ns))))
        .number("slack", |task| task.slack_ns.map(|ns| unit.signed(ns)))
        .text("verdict", |task| toned(task, Some(verdict(task).0.to_owned())))
        .table()
}

fn verdict(task: &TaskFacts) -> (&'static str, TextStyle) {
    match task.verdict {
        Verdict::Feasible => ("holds", TextStyle::Good),
        Verdict::Infeasible => ("misses", TextStyle::Bad),
        Verdict::NoBound => ("no bound", TextStyle::Bad),
        Verdict::Unknown => ("unknown", TextStyle::Caution),
    }
}

/// A name as it stands in a table.
fn short(name: &str) -> String {
    clean::shortened(&clean::for_terminal(name), NAME)
}

fn place(task: &TaskFacts) -> String {
    let place = match &task.server {
        Some(server) => format!("{} in {server}", task.cpus),
        None => task.cpus.clone(),
    };
    clean::shortened(&clean::for_terminal(&place), NAME / 2)
}

/// How far each task may change while the others stay as they are.
fn sensitivity(out: &mut String, document: &CheckDocument, style: Style) {
    let Some(all) = &document.sensitivity else { return };
    TextTable::of("\nWhile all others stay as they are", all)
        .text("task", |facts| short(&facts.name))
        .number("C up to", |facts| facts.largest_wcet_ns.map(time))
        .number("T down to", |facts| facts.smallest_period_ns.map(time))
        .number("jitter up to", |facts| facts.largest_jitter_ns.map(time))
        .table()
        .write(out, style);
    let without = all.iter().filter_map(|facts| facts.reason.as_deref());
    let reasons: BTreeSet<&str> = without.clone().collect();
    for reason in reasons {
        let number = without.clone().filter(|other| *other == reason).count();
        line_of(out, &format!("{number} of {} tasks: {}.", all.len(), clean::for_terminal(reason)));
    }
}

/// How far all execution times of a processor may grow together.
fn breakdown(out: &mut String, document: &CheckDocument) {
    for facts in document.breakdown.iter().flatten() {
        let place = match &facts.server {
            Some(server) => format!("CPU {} in {server}", facts.cpus),
            None => format!("CPU {}", facts.cpus),
        };
        let total = facts.utilisation.map_or(String::new(), |u| format!(" (utilisation {u:.3})"));
        let first = facts.first_to_miss.as_ref();
        let first = first.map_or(String::new(), |name| {
            format!(", beyond which '{name}' is the first that may miss")
        });
        let why = facts.reason.as_ref().map_or(String::new(), |why| format!("; {why}"));
        let said = format!("{place}: {} what they are{total}{first}{why}.", change(facts));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", wrapped_within(PAGE, &clean::for_terminal(&said), 0, 2));
    }
}

/// By which factor all execution times may or must change, as far as that is known.
fn change(facts: &BreakdownFacts) -> String {
    let all = "all execution times together";
    let (least, most) = (facts.factor, facts.factor_at_most);
    match (&facts.reason, most) {
        (None, _) if least < 1.0 => format!("{all} must shrink to {least:.3} times"),
        (None, _) => format!("{all} may grow to {least:.3} times"),
        (Some(_), _) if least >= 1.0 => format!("{all} may grow to at least {least:.3} times"),
        (Some(_), Some(most)) if most < 1.0 => {
            format!("{all} must shrink to between {least:.3} and {most:.3} times")
        }
        (Some(_), _) => {
            let range = most.map_or(format!("at least {least:.3}"), |most| {
                format!("between {least:.3} and {most:.3}")
            });
            format!("whether {all} must shrink is unknown: they may be {range} times")
        }
    }
}

/// The verdict on the set, and why.
fn sentence(out: &mut String, document: &CheckDocument, style: Style) {
    let witness = document.witness.as_ref().map(|witness| witness.text.as_str());
    let reason = document.reason.as_deref();
    let because = witness.or(reason).or_else(|| {
        let said = document.tasks.iter().find(|task| task.verdict == document.verdict);
        said.map(|task| task.reason.as_str()).filter(|reason| !reason.is_empty())
    });
    let (word, tone) = match document.verdict {
        Verdict::Feasible => ("Feasible", TextStyle::Good),
        Verdict::Infeasible => ("Infeasible", TextStyle::Bad),
        Verdict::NoBound => ("No bound", TextStyle::Bad),
        Verdict::Unknown => ("Unknown", TextStyle::Caution),
    };
    let rest = match (document.verdict, because) {
        (Verdict::Feasible, _) => {
            let tight = document.tasks.iter().filter_map(|task| Some((task.slack_ns?, task)));
            match tight.min_by_key(|(slack, _)| *slack) {
                Some((slack, task)) => format!(
                    ": every deadline holds; the tightest is that of '{}', with {} to spare",
                    task.name,
                    time(slack.unsigned_abs())
                ),
                None => ": every deadline holds".to_owned(),
            }
        }
        (Verdict::Unknown, Some(why)) => format!(": {why}"),
        (_, Some(why)) => format!(", because {why}"),
        (_, None) => String::new(),
    };
    let used = used(&document.processors);
    let by = match document.analysis.as_str() {
        "none" => "By no analysis",
        analysis => &format!("By {analysis}"),
    };
    let text = format!("{word}{}. {by}{used}.", clean::for_terminal(&rest));
    let wrapped = wrapped_within(PAGE, &text, 0, 0);
    let rest = wrapped.strip_prefix(word).unwrap_or_default();
    let _ = writeln!(out, "{}{rest}", paint(word, tone, style));
}

/// How much of each processor is used.
fn used(processors: &[ProcessorFacts]) -> String {
    let each = processors.iter().take(8).filter_map(|processor| {
        // Tenths of a percent, rounded up like the parts that they come from.
        let tenths = processor.utilisation_ppm?.div_ceil(1_000);
        let name = match &processor.server {
            Some(server) => format!("server '{server}'"),
            None => format!("CPU {}", processor.cpus),
        };
        Some(format!("; {} needs {}.{} %", clean::for_terminal(&name), tenths / 10, tenths % 10))
    });
    each.collect()
}

fn line_of(out: &mut String, text: &str) {
    let _ = writeln!(out, "{}", wrapped_within(PAGE, text, 0, 0));
}

/// A sentence under a word.
fn bullet(out: &mut String, word: &str, text: &str) {
    let text = wrapped_within(PAGE, &clean::for_terminal(text), word.len(), word.len());
    let _ = writeln!(out, "{word}{text}");
}

fn explanation(out: &mut String, understood: &Explanation, style: Style) {
    paint_line(out, "Understood", TextStyle::Heading, style);
    for subject in &understood.subjects {
        let name = match subject.name.as_str() {
            "" => subject.kind.to_owned(),
            name => format!("{} '{}'", subject.kind, clean::for_terminal(name)),
        };
        let _ = writeln!(out, "  {name}");
        let widest = subject.facts.iter().map(|fact| fact.key.len()).max().unwrap_or(0);
        for fact in &subject.facts {
            let origin = match fact.origin {
                FactOrigin::Given => "",
                FactOrigin::Default => "  (not said)",
                FactOrigin::Derived => "  (follows)",
            };
            let value = format!("{}{origin}", clean::for_terminal(&fact.value));
            let indent = 4 + widest + 2;
            let value = wrapped_within(PAGE, &value, indent, indent);
            let tone = if fact.origin == FactOrigin::Default {
                TextStyle::Faint
            } else {
                TextStyle::Normal
            };
            let _ = writeln!(out, "    {:<widest$}  {}", fact.key, paint(&value, tone, style));
        }
    }
    for warning in &understood.warnings {
        bullet(out, "warning: ", warning);
    }
    out.push('\n');
}

fn proofs(out: &mut String, document: &CheckDocument, style: Style) {
    out.push('\n');
    paint_line(out, "Proof", TextStyle::Heading, style);
    for entry in &document.sources {
        bullet(out, &format!("  {}: ", entry.name), &format!("{} ({})", entry.about, entry.source));
    }
    for task in &document.tasks {
        task_proof(out, task);
    }
    for processor in &document.processors {
        if !processor.demand_points.is_empty() {
            demand_proof(out, processor);
        }
        if let Some(by) = &processor.verified_by {
            let what = match processor.verified_points {
                0 => "bound".to_owned(),
                1 => "1 point".to_owned(),
                points => format!("{points} points"),
            };
            bullet(out, "  ", &format!("CPU {}: {what} verified by {by}", processor.cpus));
        }
    }
}

fn task_proof(out: &mut String, task: &TaskFacts) {
    let name = clean::for_terminal(&task.name);
    let Some(worst) = task.fixed_points.iter().rev().max_by_key(|point| point.response_time_ns)
    else {
        let why = match (&task.server, task.response_time_ns) {
            _ if !task.reason.is_empty() => task.reason.clone(),
            (Some(server), Some(bound)) => {
                format!(
                    "done within {}, by what '{}' supplies",
                    time(bound),
                    clean::for_terminal(server)
                )
            }
            _ => "no fixed point".to_owned(),
        };
        bullet(out, &format!("  {name}: "), &why);
        return;
    };
    let count = task.fixed_point_count;
    let window = match count {
        1 => "one case in its busy window".to_owned(),
        count => format!("the worst of {count} cases in its busy window is job {}", worst.job),
    };
    bullet(out, &format!("  {name}: "), &format!("{window}. {}.", sum(worst)));
    for point in task.fixed_points.iter().filter(|_| count > 1).take(SHOWN) {
        let (release, finish) = (time(point.offset_ns), time(point.finish_ns));
        let case = if point.finish_ns <= point.offset_ns && point.response_time_ns == 0 {
            format!("released at {release}, after the busy window, which ends at {finish}")
        } else {
            let response = time(point.response_time_ns);
            format!("released at {release}, done at {finish}: response time {response}")
        };
        bullet(out, "    ", &format!("job {}, {case}", point.job));
    }
    if count > SHOWN as u64 {
        bullet(out, "    ", &format!("and {} more; --json has them", count - SHOWN as u64));
    }
}

/// The fixed point as a sum, and the response time that follows.
fn sum(point: &FixedPoint) -> String {
    let term = |term: &hourglass_documents::check::Term| {
        let (of, each) = (clean::for_terminal(&term.of), time(term.each_ns));
        match term.jobs {
            1 => format!("{each} ({of})"),
            jobs => format!("{jobs} x {each} ({of})"),
        }
    };
    let terms: Vec<String> = point.terms.iter().map(term).collect();
    let finish = time(point.finish_ns);
    let done = match terms.as_slice() {
        [] => format!("Done {finish} after the window begins"),
        terms => format!("Done after {finish} = {}", terms.join(" + ")),
    };
    format!("{done}; response time {}", time(point.response_time_ns))
}

fn demand_proof(out: &mut String, processor: &ProcessorFacts) {
    let length = processor.demand_length_ns.map_or(NOTHING.to_owned(), time);
    let points = &processor.demand_points;
    bullet(
        out,
        "  ",
        &format!(
            "CPU {}: demand in intervals below {length}, from the longest down",
            processor.cpus
        ),
    );
    for point in points.iter().take(SHOWN) {
        let (due, long) = (time(point.demand_ns), time(point.interval_ns));
        let fits = if point.demand_ns > point.interval_ns { "too much" } else { "fits" };
        bullet(out, "    ", &format!("{due} due within {long}: {fits}"));
    }
    if points.len() > SHOWN {
        bullet(out, "    ", &format!("and {} more; --json has them", points.len() - SHOWN));
    }
}

/// How worked examples were answered: a line for each kind, then every case that failed or is not
/// supported.
#[must_use]
pub fn examples(document: &CheckCorpusDocument, style: Style) -> String {
    let mut out = String::new();
    let mut kinds: Vec<&str> = document.cases.iter().map(|case| case.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let count = |kind: &str, status, tone| {
        let of = document.cases.iter().filter(|case| case.kind == kind && case.status == status);
        match of.count() {
            0 => TextCell::toned(NOTHING, TextStyle::Faint),
            count => TextCell::toned(count.to_string(), tone),
        }
    };
    TextTable::of("Worked examples", &kinds)
        .text("kind", |kind| *kind)
        .number("pass", |kind| count(kind, CaseStatus::Pass, TextStyle::Good))
        .number("fail", |kind| count(kind, CaseStatus::Fail, TextStyle::Bad))
        .number("unsupported", |kind| count(kind, CaseStatus::Unsupported, TextStyle::Caution))
        .table()
        .write(&mut out, style);
    for case in document.cases.iter().filter(|case| case.status != CaseStatus::Pass) {
        let (word, tone) = match case.status {
            CaseStatus::Fail => ("fail", TextStyle::Bad),
            _ => ("unsupported", TextStyle::Caution),
        };
        let id = clean::for_terminal(&format!("{}, {}", case.id, case.file));
        let _ = writeln!(out, "{} {id}", paint(word, tone, style));
        if !case.reason.is_empty() {
            bullet(&mut out, "  ", &case.reason);
        }
        for (name, expected) in &case.expected {
            let got = case.got.get(name).map_or(NOTHING.to_owned(), ToString::to_string);
            bullet(&mut out, "  ", &format!("{name}: expected {expected}, got {got}"));
        }
    }
    let _ = writeln!(
        out,
        "{} passed, {} failed, {} unsupported",
        document.passed, document.failed, document.unsupported
    );
    out
}
