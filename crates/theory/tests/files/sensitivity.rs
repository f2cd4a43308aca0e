//! How far tasks may change, against `check` of the set with each value.

use hourglass_dice::{Dice, seed};
use hourglass_documents::check::{CheckDocument, SensitivityFacts, Verdict};
use hourglass_tasks::{Preemption, Task, TaskSet};
use hourglass_theory::check::{CheckRequest, check};
use hourglass_time::Span;

use super::check::task;

fn ns(number: u64) -> Span {
    Span::from_nanos(i64::try_from(number).unwrap())
}

fn read(unit: &str, text: &str) -> Option<TaskSet> {
    TaskSet::from_toml(&format!("unit = \"{unit}\"\n{text}")).ok()
}

fn varied(set: &TaskSet) -> CheckDocument {
    check(set, &CheckRequest { sensitivity: true, ..CheckRequest::default() }).unwrap()
}

/// What `check` says of a set with one value changed; nothing of a set that cannot be meant.
fn holds(set: &TaskSet, at: usize, change: impl Fn(&mut Task)) -> Option<bool> {
    let mut set = set.clone();
    change(&mut set.tasks[at]);
    set.check().ok()?;
    is_feasible(&set)
}

fn is_feasible(set: &TaskSet) -> Option<bool> {
    let found = check(set, &CheckRequest::default()).ok()?;
    // That a simulation of the file contradicts the analysis.
    let is_defect = found.reason.as_ref().is_some_and(|reason| reason.contains("defect"));
    assert!(!is_defect, "{:?}\n{}", found.reason, set.to_toml());
    Some(found.verdict == Verdict::Feasible)
}

/// One to three tasks of few units, preempted in all ways, with and without what a kernel costs.
fn drawn(dice: &mut Dice, unit: &str) -> Option<TaskSet> {
    let scheduler = ["fixed-priority", "edf"][dice.below(2) as usize];
    let mut costs = format!("context_switch = {}", u64::from(dice.one_in(3)));
    if dice.one_in(3) {
        costs.push_str(&format!(", tick_period = {}, tick_cost = 1", dice.between(4, 9)));
    }
    let mut text = format!("scheduler = \"{scheduler}\"\nmachine.overheads = {{ {costs} }}\n");
    if dice.one_in(4) {
        text.push_str("[[resource]]\nname = \"r\"\nprotocol = \"ceiling\"\n");
    }
    let locks = text.contains("resource");
    for at in 0..dice.between(1, 3) {
        let period = dice.between(6, 40);
        let wcet = dice.between(2, 2.max(period / 3));
        let mut rest =
            format!("wcet = {wcet}\nperiod = {period}\npriority = {}\n", dice.between(1, 4));
        let section = dice.between(1, wcet);
        rest.push_str(&match dice.below(6) {
            0 | 1 => "preemptive = false\n".to_owned(),
            2 => format!(
                "longest_section = {section}\nlast_section = {}\n",
                dice.between(1, section)
            ),
            3 => format!("floating_section = {section}\n"),
            4 => "preemption_threshold = 4\n".to_owned(),
            _ => String::new(),
        });
        if dice.one_in(3) {
            rest.push_str(&format!("jitter = {}\n", dice.between(1, period / 4)));
        }
        if dice.one_in(3) {
            rest.push_str(&format!("deadline = {}\n", dice.between(wcet, period + 5)));
        }
        if locks && dice.one_in(2) {
            let length = dice.between(1, wcet);
            rest.push_str(&format!(
                "critical_sections = [{{ resource = \"r\", length = {length} }}]\n"
            ));
        }
        text.push_str(&task(&format!("t{at}"), &rest));
    }
    read(unit, &text)
}

/// All values of one task up to the limit found are feasible by `check`, and the one after is not.
fn wrong(set: &TaskSet, at: usize, row: &SensitivityFacts) -> Vec<String> {
    let wcet = |w: u64| holds(set, at, |task| task.wcet = ns(w));
    let jitter = |j: u64| holds(set, at, |task| task.jitter = ns(j));
    // A deadline that is the period stays it.
    let is_implicit = set.tasks[at].deadline() == set.tasks[at].period;
    let period = |p: u64| {
        holds(set, at, |task| {
            task.period = ns(p);
            task.deadline = if is_implicit { None } else { task.deadline };
        })
    };
    let mut found = Vec::new();
    let mut compare = |what: &str,
                       limit: Option<u64>,
                       next: Option<u64>,
                       within: Vec<u64>,
                       is: &dyn Fn(u64) -> Option<bool>| {
        if let Some(bad) = within.into_iter().find(|value| is(*value) == Some(false)) {
            found.push(format!("{what} up to {limit:?}, but not {bad}"));
        }
        if let Some(next) = next.filter(|next| is(*next) == Some(true)) {
            found.push(format!("{what} no further than {limit:?}, but {next} is feasible"));
        }
    };
    let most = row.largest_wcet_ns;
    compare("wcet", most, most.map(|w| w + 1), (1..=most.unwrap_or(0)).collect(), &wcet);
    let most = row.largest_jitter_ns;
    compare(
        "jitter",
        most,
        most.map(|j| j + 1),
        most.map_or(Vec::new(), |j| (0..=j).collect()),
        &jitter,
    );
    let least = row.smallest_period_ns;
    let periods = least.map_or(Vec::new(), |p| (p..p + 60).collect());
    compare("period", least, least.and_then(|p| (p > 1).then_some(p - 1)), periods, &period);
    found
}

/// Source: `check` itself, asked of each value.
#[test]
fn each_value_up_to_the_limit_is_feasible_and_the_next_is_not() {
    let mut dice = Dice::new(seed());
    let (mut asked, mut all) = (0, Vec::new());
    for _ in 0..100 {
        let Some(set) = drawn(&mut dice, "1ns") else { continue };
        for (at, row) in varied(&set).sensitivity.unwrap().iter().enumerate() {
            asked += u32::from(row.largest_wcet_ns.is_some());
            all.extend(wrong(&set, at, row).into_iter().map(|why| (set.clone(), at, why)));
        }
    }
    all.sort_by_key(|(set, ..)| (set.tasks.len(), set.to_toml().len()));
    let first = all.first().map(|(set, at, why)| format!("t{at}: {why}\n{}", set.to_toml()));
    assert!(asked >= 30, "{asked}");
    assert!(first.is_none(), "{} wrong, the smallest: {}", all.len(), first.unwrap_or_default());
}

/// The set with execution times and sections times thousandths, what the kernel costs as it is.
fn grown(set: &TaskSet, thousandths: u64) -> TaskSet {
    let mut set = set.clone();
    let times = |span: &mut Span| *span = ns(span.nanos_or_zero() * thousandths / 1_000);
    for task in &mut set.tasks {
        times(&mut task.wcet);
        match &mut task.preemption {
            Preemption::Limited { longest, last } => [longest, last].into_iter().for_each(times),
            Preemption::Floating { longest } => times(longest),
            Preemption::Full | Preemption::None | Preemption::Threshold(_) => {}
        }
    }
    set
}

/// Source: `check` itself, asked of the factor and of a thousandth more.
#[test]
fn all_may_grow_by_the_factor_and_no_more() {
    let mut dice = Dice::new(seed());
    let mut asked = 0;
    for _ in 0..60 {
        let Some(set) = drawn(&mut dice, "1us") else { continue };
        let Some(found) = varied(&set).breakdown.and_then(|mut all| all.pop()) else { continue };
        let thousandths = (found.factor * 1_000.0).round() as u64;
        let holds = |thousandths: u64| {
            let set = grown(&set, thousandths);
            set.check().ok()?;
            is_feasible(&set)
        };
        asked += u32::from(holds(thousandths).is_some());
        assert_ne!(holds(thousandths), Some(false), "{found:?}\n{}", set.to_toml());
        // Close to full use, a test of the search may be given up that `check` sees through.
        let is_close = found.utilisation.is_none_or(|all| all > 0.95);
        let is_more = !is_close && holds(thousandths + 1) == Some(true);
        assert!(!is_more, "{found:?}\n{}", set.to_toml());
    }
    assert!(asked >= 15, "{asked}");
}

/// By hand: of a job of b that is not preempted, a waits for all; 2 + 10 are due within 12, and 2 + 11 are not. It was said that b may
/// take 30, by the section of the 9 that it takes.
#[test]
fn what_is_not_preempted_grows_as_a_whole() {
    let text = task("a", "wcet = 2\nperiod = 12\npriority = 2")
        + &task("b", "wcet = 9\nperiod = 36\npriority = 1\npreemptive = false");
    let found = varied(&read("1ns", &text).unwrap()).sensitivity.unwrap();
    assert_eq!(found[1].largest_wcet_ns, Some(10), "{found:?}");
}
