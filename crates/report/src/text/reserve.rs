//! What a reservation gave, or whether it would be granted, in columns of 80.

use hourglass_documents::reserve::{ReserveDocument, SupplyStep};

use super::Style;
use super::table::{NARROW as PAGE, TextStyle, paint, paint_line, wrapped_within};
use crate::clean;
use crate::units::{UnitScale, rounded};

mod checked;
mod siblings;
mod took;

pub use checked::{reserve_check, reserve_proposals};
use took::amount;
pub use took::reserve_moment;

/// Rows of the histogram at most; neighbours are joined.
const ROWS: usize = 12;

/// Width of the longest bar.
const BAR: u64 = 40;

/// What was delivered, period by period, and what was done about siblings; the same of further reservations. Warnings
/// are left out.
#[must_use]
pub fn reserve(document: &ReserveDocument, style: Style) -> String {
    let mut out = String::new();
    heading(&mut out, document, style);
    if is_limit(document) {
        limited(&mut out, document, style);
    } else if document.periods > 0 {
        out.push('\n');
        histogram(&mut out, document, style);
        out.push('\n');
        delivered(&mut out, document, style);
    } else {
        line(&mut out, "supply", "no whole period was watched", TextStyle::Faint, style);
    }
    took::took(&mut out, document, style);
    if let Some(smt) = &document.smt {
        siblings::write_monitor(&mut out, smt, style);
    }
    suggestion(&mut out, document, style);
    for also in &document.also {
        out.push('\n');
        out.push_str(&reserve(also, style));
    }
    out
}

/// What is reserved, for whom, by what, and why by that.
fn heading(out: &mut String, document: &ReserveDocument, style: Style) {
    let deadline = match document.deadline_ns == document.period_ns {
        true => String::new(),
        false => format!(" by {}", rounded(document.deadline_ns)),
    };
    let title = format!(
        "{} every {}{deadline} for {}",
        rounded(document.budget_ns),
        rounded(document.period_ns),
        clean::shortened(&clean::for_terminal(&document.target), PAGE / 2)
    );
    paint_line(out, &title, TextStyle::Heading, style);
    let strength = if document.soft { "soft" } else { "hard" };
    let promise = match (document.guarantee, document.backend.as_deref()) {
        (true, _) => "guaranteed",
        (false, Some("quota")) => "a limit, no guarantee",
        (false, _) => "not guaranteed (see the warnings)",
    };
    let cpus = match &document.cpus[..] {
        [] => String::new(),
        [cpu] => format!(", on CPU {cpu}"),
        cpus => format!(", on CPUs {}", list(cpus)),
    };
    if let Some(backend) = &document.backend {
        let text = match broken(document) {
            Some(broken) => {
                format!("{}, {strength}{cpus}; {promise}, and {broken}", named(backend))
            }
            None => format!("{}, {promise}, {strength}{cpus}", named(backend)),
        };
        line(out, "backend", &text, TextStyle::Normal, style);
    }
    line(out, "because", &document.reason, TextStyle::Faint, style);
}

/// That the budget was not there in all periods, and why.
fn broken(document: &ReserveDocument) -> Option<String> {
    let missed = document.missed.filter(|_| document.kept == Some(false))?;
    let why = match &document.broken_by[..] {
        [] => "the occupant of the CPU is not known".to_owned(),
        some => format!("because of {}", some.join(", ")),
    };
    Some(format!("not kept in {missed} of {}, {why}", periods(document.periods)))
}

/// Whether the budget was there in every period, in a line.
pub(super) fn verdict(document: &ReserveDocument) -> (String, TextStyle) {
    match (document.kept, broken(document)) {
        (Some(true), _) => (
            format!("the budget was kept in all of {}", periods(document.periods)),
            TextStyle::Good,
        ),
        (_, Some(broken)) => (format!("the budget was {broken}"), TextStyle::Bad),
        _ if is_limit(document) => {
            ("a quota is a limit: nothing was promised".to_owned(), TextStyle::Normal)
        }
        _ => (
            "whether the budget was kept in every period is not known".to_owned(),
            TextStyle::Caution,
        ),
    }
}

fn histogram(out: &mut String, document: &ReserveDocument, style: Style) {
    let rows = joined(&document.supply);
    let most = rows.iter().map(|row| row.periods).max().unwrap_or(0).max(1);
    let ends: Vec<u64> = rows.iter().map(|row| row.up_to_ns).collect();
    let of_block = ends.iter().copied().chain([document.budget_ns]);
    let scale = UnitScale::for_block(of_block).telling_apart(&ends);
    let title = format!("Supply of {}, {}", periods(document.periods), scale.name());
    paint_line(out, &title, TextStyle::Heading, style);
    for row in rows {
        let length = (u128::from(row.periods) * u128::from(BAR)).div_ceil(u128::from(most));
        let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
        let end = scale.text(row.up_to_ns);
        let text = format!("  up to {end:>9} {:>9}  {bar}", row.periods);
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

/// Whether nothing was reserved, but a limit set.
fn is_limit(document: &ReserveDocument) -> bool {
    document.backend.as_deref() == Some("quota")
}

/// What the kernel tells of a quota: in how many periods it held the work back, and for how long.
fn limited(out: &mut String, document: &ReserveDocument, style: Style) {
    let text = "unknown: the kernel does not report what a quota gave in each period";
    line(out, "delivered", text, TextStyle::Faint, style);
    let text = "unknown: a quota promises nothing that could be missed";
    line(out, "missed", text, TextStyle::Faint, style);
    let text = match (document.overruns, document.periods) {
        (_, 0) => "it ran in no whole period".to_owned(),
        (held, all) => format!("{held} of the {} in which it ran", periods(all)),
    };
    line(out, "held back", &text, TextStyle::Normal, style);
    let text = document
        .throttled_ns
        .map_or("unknown".to_owned(), |ns| format!("{} with the quota used up", rounded(ns)));
    line(out, "throttled", &text, TextStyle::Normal, style);
}

/// At most [`ROWS`] steps: neighbours are joined, as many in each.
fn joined(steps: &[SupplyStep]) -> Vec<SupplyStep> {
    let each = steps.len().div_ceil(ROWS).max(1);
    let join = |some: &[SupplyStep]| SupplyStep {
        up_to_ns: some.last().map_or(0, |step| step.up_to_ns),
        periods: some.iter().map(|step| step.periods).sum(),
    };
    steps.chunks(each).map(join).collect()
}

fn delivered(out: &mut String, document: &ReserveDocument, style: Style) {
    let text = match (document.delivered_p50_ns, document.delivered_min_ns) {
        (Some(p50), Some(least)) => format!(
            "{} in the median and {} at least, where the work needed all of the budget",
            rounded(p50),
            rounded(least)
        ),
        _ if document.missed.is_none() => {
            "unknown: several reservations share the core; see jobs".to_owned()
        }
        _ => "no period needed all of the budget".to_owned(),
    };
    line(out, "delivered", &text, TextStyle::Normal, style);
    let (text, tone) = match document.missed {
        None => {
            ("unknown: several reservations share the core; see jobs".to_owned(), TextStyle::Faint)
        }
        Some(0) => ("no period".to_owned(), TextStyle::Good),
        Some(missed) => (format!("{} had less by the deadline", periods(missed)), TextStyle::Bad),
    };
    line(out, "missed", &text, tone, style);
    // Beside co-runners more than the budget is kept, and supply is of that.
    let kept = match document.kept_ns.filter(|kept| *kept > document.budget_ns) {
        Some(kept) => format!("the {} that are reserved for it", rounded(kept)),
        None => "the budget".to_owned(),
    };
    let text = match document.overruns {
        0 => format!("no period needed more than {kept}"),
        overruns if overruns >= document.periods => {
            "it used all available time in every period: no larger budget ends the overruns"
                .to_owned()
        }
        overruns => format!("{} needed more than {kept}", periods(overruns)),
    };
    line(out, "overruns", &text, TextStyle::Normal, style);
    let text = match document.throttled_ns {
        Some(ns) => format!("{} with {kept} used up", rounded(ns)),
        None => "unknown".to_owned(),
    };
    line(out, "throttled", &text, TextStyle::Normal, style);
}

fn suggestion(out: &mut String, document: &ReserveDocument, style: Style) {
    let Some(budget) = document.suggested_budget_ns else { return };
    let asked = amount((budget, document.period_ns));
    let text = match document.periods {
        0 => format!("{asked}, if jobs need all of {}", rounded(document.budget_ns)),
        _ => format!("{asked}, by the overruns of this run"),
    };
    line(out, "reserve", &text, TextStyle::Caution, style);
}

fn named(backend: &str) -> &str {
    match backend {
        "deadline" => "the deadline class",
        "user" => "the user-space reserve",
        "quota" => "a quota of the control group",
        other => other,
    }
}

fn periods(count: u64) -> String {
    if count == 1 { "1 period".to_owned() } else { format!("{count} periods") }
}

fn list(cpus: &[u32]) -> String {
    cpus.iter().copied().collect::<hourglass_documents::CpuSet>().to_string()
}

/// Width of the heads of lines.
const HEAD: usize = 10;

fn line(out: &mut String, head: &str, text: &str, tone: TextStyle, style: Style) {
    let text = wrapped_within(PAGE, &clean::for_terminal(text), HEAD + 1, HEAD + 1);
    out.push_str(&format!("{head:<HEAD$} {}\n", paint(&text, tone, style)));
}

#[cfg(test)]
mod tests {
    use hourglass_documents::reserve::{ReserveRefusal, SmtReport};

    use super::*;

    const MS: u64 = 1_000_000;

    /// The bug: "guaranteed" stood alone above "missed 7 periods".
    #[test]
    fn a_promise_that_was_not_kept_says_so() {
        let rendered = |missed, broken_by: &[&str]| {
            let document = ReserveDocument {
                missed: Some(missed),
                kept: Some(missed == 0),
                periods: 30,
                guarantee: true,
                broken_by: broken_by.iter().map(|by| (*by).to_owned()).collect(),
                ..document()
            };
            reserve(&document, Style::default()).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(!rendered(0, &[]).contains("not kept"));
        let unknown = rendered(7, &[]);
        let wanted =
            "; guaranteed, and not kept in 7 of 30 periods, the occupant of the CPU is not known";
        assert!(unknown.contains(wanted), "{unknown}");
        let known = rendered(7, &["member-moved"]);
        assert!(known.contains("not kept in 7 of 30 periods, because of member-moved"), "{known}");
    }

    /// The bug: a larger budget was suggested to work that wants all there is.
    #[test]
    fn overruns_of_every_period_are_reported_as_such() {
        let overrun = |overruns| {
            let text = reserve(&ReserveDocument { overruns, ..document() }, Style::Plain);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(overrun(999).contains("overruns 999 periods needed more than the budget"));
        assert!(
            overrun(1_000)
                .contains("overruns it used all available time in every period: no larger budget")
        );
    }

    pub(super) fn document() -> ReserveDocument {
        ReserveDocument {
            bound_ns: None,
            wcet_at_least_ns: None,
            unknown_because: None,
            schema: hourglass_documents::reserve::RESERVE_SCHEMA.to_owned(),
            target: "encoder --fast".to_owned(),
            backend: Some("user".to_owned()),
            reason: "the command may fork, which the deadline class does not take".to_owned(),
            guarantee: true,
            budget_ns: 3_100_000,
            period_ns: 8 * MS,
            deadline_ns: 8 * MS,
            soft: false,
            cpus: vec![0, 1],
            periods: 1000,
            delivered_p50_ns: Some(3_098_000),
            delivered_min_ns: Some(3_070_000),
            delivered_max_ns: Some(3_130_000),
            missed: Some(1),
            overruns: 12,
            throttled_ns: Some(40 * MS),
            supply: (1..=20).map(|n| SupplyStep { up_to_ns: n * 160_000, periods: n }).collect(),
            smt: None,
            refusals: Vec::new(),
            suggested_budget_ns: Some(3_200_000),
            warnings: Vec::new(),
            exit_code: Some(0),
            interrupted: false,
            yield_ends_period: Some(false),
            kept: Some(true),
            broken_by: Vec::new(),
            cpu_time_ns: None,
            wall_ns: None,
            keeper_ns: None,
            others_waited_max_ns: None,
            changes: Vec::new(),
            kept_ns: None,
            also: Vec::new(),
        }
    }

    #[test]
    fn a_reservation_in_80_columns() {
        let mut document = document();
        document.smt = Some(SmtReport {
            policy: "monitor".to_owned(),
            interval_ns: None,
            protected: true,
            against: vec!["4711".to_owned(), "session:99".to_owned()],
            broken: 0,
            shares: vec![2, 3],
            progress: "word".to_owned(),
            stopper: Some("cgroup2_freeze".to_owned()),
            margin_ns: 71_000,
            margin_first_ns: 64_000,
            stop_trial_ns: Some(31_000),
            stop_max_ns: 40_000,
            jobs: 114,
            missed: 0,
            idle: 3,
            stops: 98,
            stopped_ns: 1234 * MS,
            checks: 1404,
            backwards: 1,
            unmoved: 0,
            page: None,
        });
        document.kept_ns = Some(7_200_000);
        let text = reserve(&document, Style::Plain);
        insta::assert_snapshot!("reserve", text);
        assert!(text.lines().all(|line| line.chars().count() <= PAGE));
        // Joined rows hold the same periods.
        let sum = |steps: &[SupplyStep]| steps.iter().map(|step| step.periods).sum::<u64>();
        let rows = joined(&document.supply);
        assert!(rows.len() <= ROWS && sum(&rows) == sum(&document.supply));
    }

    /// Found with steps of 20 us in a budget of 3.1 ms: rows that differ are not called by one name.
    #[test]
    fn rows_of_supply_differ_in_their_names() {
        let mut document = document();
        let steps = [3_170_000, 3_190_000, 3_210_000, 3_230_000];
        document.supply = steps.map(|up_to_ns| SupplyStep { up_to_ns, periods: 5 }).to_vec();
        let text = reserve(&document, Style::Plain);
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.trim().strip_prefix("up to")).collect();
        assert_eq!(names.len(), 4, "{text}");
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{text}");
        assert!(names[0].trim_start().starts_with("3.17 "), "{text}");
    }

    /// What was kept off is not called a limit, nor not kept off, because a warning takes the promise away.
    #[test]
    fn what_is_not_promised_is_reported_as_what_it_is() {
        let smt = SmtReport {
            policy: "monitor".to_owned(),
            interval_ns: None,
            protected: false,
            against: vec!["4711".to_owned()],
            broken: 0,
            shares: vec![1],
            progress: "cpu_time".to_owned(),
            stopper: Some("sigstop".to_owned()),
            margin_ns: 1,
            margin_first_ns: 1,
            stop_trial_ns: None,
            stop_max_ns: 1,
            jobs: 9,
            missed: 1,
            idle: 0,
            stops: 9,
            stopped_ns: MS,
            checks: 9,
            backwards: 0,
            unmoved: 9,
            page: None,
        };
        let document = ReserveDocument { guarantee: false, smt: Some(smt.clone()), ..document() };
        let text = reserve(&document, Style::Plain);
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "the user-space reserve, not guaranteed (see the warnings), hard",
            "siblings monitor on CPU 1, against 4711 only; no protection is claimed (see the warnings)",
            "jobs 9 watched, 1 missed; progress by processor time",
            "progress was not reported in 9 of the jobs",
        ] {
            assert!(joined.contains(part), "{part}: {text}");
        }
        assert!(!joined.contains("backwards"), "{text}");
        let watched = SmtReport { policy: "ignore".to_owned(), stopper: None, ..smt };
        let text = reserve(&ReserveDocument { smt: Some(watched), ..document }, Style::Plain);
        assert!(text.contains("ignore: co-runners on CPU 1 are not stopped"), "{text}");
    }

    /// Without co-runners there is no monitor, and no report of it.
    #[test]
    fn without_co_runners_there_is_no_monitor() {
        let mut document = document();
        let mut smt: SmtReport = serde_json::from_value(serde_json::json!({
            "policy": "monitor", "protected": false, "against": [], "broken": 0, "shares": [], "progress": "none",
            "stopper": null, "margin_ns": 0, "margin_first_ns": 0, "stop_trial_ns": null, "stop_max_ns": 0, "jobs": 0,
            "missed": 0, "idle": 0, "stops": 0, "stopped_ns": 0, "checks": 0, "backwards": 0, "unmoved": 0,
        }))
        .unwrap();
        document.smt = Some(smt.clone());
        let text = reserve(&document, Style::Plain);
        assert!(
            text.contains("no CPU shares: nothing is claimed") && !text.contains("watched"),
            "{text}"
        );
        smt.shares = vec![1];
        document.smt = Some(smt);
        assert!(reserve(&document, Style::Plain).contains("0 watched"));
    }

    /// The bug: a quota's report said that no period needed all of the budget, that 41 of 44 needed more, and that
    /// none was missed, which was not measured.
    #[test]
    fn what_a_quota_does_not_tell_is_unknown() {
        let quota = ReserveDocument {
            backend: Some("quota".to_owned()),
            guarantee: false,
            periods: 44,
            delivered_p50_ns: None,
            delivered_min_ns: None,
            delivered_max_ns: None,
            missed: None,
            overruns: 41,
            throttled_ns: Some(198 * MS),
            supply: Vec::new(),
            suggested_budget_ns: None,
            ..document()
        };
        insta::assert_snapshot!("reserve-quota", reserve(&quota, Style::Plain));
        let nothing = ReserveDocument { periods: 0, overruns: 0, throttled_ns: None, ..quota };
        let text = reserve(&nothing, Style::Plain);
        assert!(text.contains("it ran in no whole period") && !text.contains("0 ns"), "{text}");
    }

    #[test]
    fn a_check_says_what_is_in_the_way() {
        let mut document = ReserveDocument { periods: 0, ..document() };
        document.refusals = vec![ReserveRefusal {
            backend: "deadline".to_owned(),
            id: "affinity".to_owned(),
            errno: Some("EPERM".to_owned()),
            cause: "the thread may run on CPU 1 only, and its root domain has CPUs 0-1".to_owned(),
            remedy: "taskset -a -p 3 4711".to_owned(),
        }];
        insta::assert_snapshot!("reserve-check", reserve_check(&document, Style::Plain));
        document.backend = None;
        let text = reserve_check(&document, Style::Plain);
        assert!(text.ends_with("no: no backend would grant it\n"), "{text}");
    }
}
