//! Execution times that are upper bounds alone.

use hourglass_dice::{Dice, seed};
use hourglass_documents::check::{CheckDocument, Verdict};
use hourglass_report::text::Style;
use hourglass_tasks::TaskSet;
use hourglass_theory::check::{ANALYSES, CheckRequest, FitHeuristic, PlacementOrder, check};
use hourglass_time::Span;

use super::check::{answer, task};

/// Worked by hand: with 6 of 5 it is late, with 3 it is not, and with 5.5 it is late whatever is true. Nothing but the first is
/// unknown, nor is what holds with the upper bound.
#[test]
fn an_upper_bound_makes_nothing_late() {
    let of = |wcet: &str, least: &str| {
        let text = format!("wcet = \"{wcet}\"\nwcet_at_least = \"{least}\"\nperiod = \"5ms\"");
        answer(&task("a", &text))
    };
    let unknown = of("6ms", "3ms");
    assert_eq!((unknown.verdict, unknown.tasks[0].verdict), (Verdict::Unknown, Verdict::Unknown));
    assert!(unknown.witness.is_none() && unknown.reason.is_some_and(|why| why.contains("'a'")));
    assert!(of("6ms", "5.5ms").verdict > Verdict::Unknown);
    assert_eq!(of("4ms", "3ms").verdict, Verdict::Feasible);
}

fn read(text: &str) -> TaskSet {
    TaskSet::from_toml(&format!("unit = \"1us\"\n{text}")).unwrap()
}

/// Up to six tasks for two or three CPUs, some of which have an upper bound alone, some too long for their deadline.
fn drawn(dice: &mut Dice) -> TaskSet {
    let scheduler = ["fixed-priority", "edf"][dice.below(2) as usize];
    let switch = dice.below(2) * 200;
    let mut text = format!(
        "scheduler = \"{scheduler}\"\n[machine]\ncpus = \"0-{}\"\noverheads = {{ context_switch = \"{switch}us\" }}\n",
        dice.between(1, 2)
    );
    for at in 0..dice.between(2, 6) {
        let period = dice.between(4, 20) * 1_000;
        let wcet = (period * dice.between(5, 70) / 100).max(2);
        let wcet = if dice.one_in(12) { period + 500 } else { wcet };
        let mut rest = format!("wcet = {wcet}\nperiod = {period}\npriority = {}\n", at + 1);
        if dice.one_in(2) {
            rest.push_str(&format!("wcet_at_least = {}\n", dice.between(1, wcet - 1)));
        }
        if dice.one_in(4) {
            rest.push_str(&format!("jitter = {}\n", dice.between(1, period / 4)));
        }
        if dice.one_in(4) {
            rest.push_str("preemptive = false\n");
        }
        text.push_str(&task(&format!("t{at}"), &rest));
    }
    read(&text)
}

/// A "no" was held against the answer with the lower figures by position, and for another placement. With the lower figures on
/// the CPUs that the answer names, each task and processor that is late in it is late.
#[test]
fn what_is_late_where_tasks_were_placed_is_late_there_with_the_lower_figures() {
    use FitHeuristic::{Best, First, Worst};
    use PlacementOrder::{Given, Period, Utilisation};
    let mut dice = Dice::new(seed());
    let (mut late, mut unknown) = (0, 0);
    for _ in 0..400 {
        let set = drawn(&mut dice);
        let names = ANALYSES.iter().map(|entry| Some(entry.name.to_owned()));
        for analysis in [None].into_iter().chain(names) {
            let fit = [First, Best, Worst][dice.below(3) as usize];
            let order = [Given, Period, Utilisation][dice.below(3) as usize];
            let partition = Some((fit, order));
            let request =
                CheckRequest { analysis: analysis.clone(), partition, ..CheckRequest::default() };
            let Ok(found) = check(&set, &request) else { continue };
            unknown += u32::from(found.verdict == Verdict::Unknown);
            let mut least = set.at_least().unwrap_or_else(|| set.clone());
            for (task, facts) in least.tasks.iter_mut().zip(&found.tasks) {
                task.cpus = Some(facts.cpus.parse().unwrap());
            }
            let Ok(there) = check(&least, &CheckRequest { analysis, ..CheckRequest::default() })
            else {
                continue;
            };
            for (task, there) in found.tasks.iter().zip(&there.tasks) {
                let is_late = task.verdict > Verdict::Unknown;
                late += u32::from(is_late);
                assert!(
                    !is_late || there.verdict > Verdict::Unknown,
                    "{set:?} {found:?} {there:?}"
                );
            }
            for on in found.processors.iter().filter(|on| on.verdict > Verdict::Unknown) {
                let there = there.processors.iter().find(|there| there.cpus == on.cpus);
                let is_late = there.is_some_and(|there| there.verdict > Verdict::Unknown);
                assert!(is_late, "{set:?} {found:?} {there:?}");
            }
        }
    }
    assert!(late >= 20 && unknown >= 20, "{late}, {unknown}");
}

/// By hand: three of 3 in 5 do not fit on two CPUs, and with 1 do, nor two in a reservation. It was not said that only
/// the upper bound was in the way.
#[test]
fn what_only_an_upper_bound_hinders_is_said() {
    let several = |number: usize, keys: &str| -> String {
        let each = ["a", "b", "c"].into_iter().take(number);
        each.map(|name| task(name, &format!("wcet = 3000\nperiod = 5000\n{keys}"))).collect()
    };
    let least = "wcet_at_least = 1000\n";
    let set = read(&format!("[machine]\ncpus = \"0-1\"\n{}", several(3, least)));
    let partition = Some((FitHeuristic::First, PlacementOrder::Given));
    let found = check(&set, &CheckRequest { partition, ..CheckRequest::default() }).unwrap();
    let reason = found.reason.unwrap();
    assert_eq!(found.verdict, Verdict::Unknown);
    assert!(reason.contains("finds no CPU") && reason.contains("'a', 'b', 'c'"), "{reason}");
    let request = CheckRequest { server: vec![Span::from_millis(2)], ..CheckRequest::default() };
    for (keys, is_said) in [(least, true), ("", false), ("wcet_at_least = 2900\n", false)] {
        let found = check(&read(&several(2, keys)), &request).unwrap().server.unwrap();
        assert!(found.budget_ns.is_none(), "{found:?}");
        assert_eq!(found.reason.contains("'a', 'b' is an upper bound"), is_said, "{found:?}");
    }
}

/// By hand: 2, 2 and 4 in 5 fit on two CPUs, but worst-fit finds no place for the third. "Infeasible" was said of it, by a
/// simulation in which tasks migrate, though a job longer than its deadline is late wherever it runs.
#[test]
fn what_a_heuristic_does_not_place_is_not_known_to_be_late() {
    let of = |last: &str, fit, order| {
        let each = [("a", "2000"), ("b", "2000"), ("c", last)];
        let each = each.map(|(name, wcet)| task(name, &format!("wcet = {wcet}\nperiod = 5000\n")));
        let set = read(&format!("[machine]\ncpus = \"0-1\"\n{}", each.concat()));
        let partition = Some((fit, order));
        check(&set, &CheckRequest { partition, ..CheckRequest::default() }).unwrap()
    };
    let first = of("4000", FitHeuristic::First, PlacementOrder::Given);
    assert_eq!(first.verdict, Verdict::Feasible, "{first:?}");
    let worst = of("4000", FitHeuristic::Worst, PlacementOrder::Given);
    assert_eq!(worst.verdict, Verdict::Unknown, "{worst:?}");
    assert!(worst.reason.is_some_and(|why| why.contains("finds no CPU")));
    let late = of("5500", FitHeuristic::Worst, PlacementOrder::Given);
    assert_eq!(late.verdict, Verdict::Infeasible, "{late:?}");
    let of_each: Vec<Verdict> = late.tasks.iter().map(|task| task.verdict).collect();
    assert_eq!(of_each, [Verdict::Unknown, Verdict::Unknown, Verdict::Infeasible]);
}

fn varied(set: &TaskSet) -> CheckDocument {
    check(set, &CheckRequest { sensitivity: true, ..CheckRequest::default() }).unwrap()
}

/// By hand: alone in 5, 4 may grow to 5 / 4, or 5 / 2 if it is 2; 6 must shrink to 5 / 6, or may grow to 5 / 3 if it is 3; 8 must
/// shrink to 5 / 8 and as 6 to 5 / 6. These were said of the upper figures as if they were true.
#[test]
fn how_far_upper_bounds_may_grow_is_a_range() {
    for (wcet, least, factors, words, is_row, reason) in [
        (4, 2, (1.25, Some(2.5)), "may grow to at least 1.250 times", true, None),
        (
            6,
            3,
            (0.833, Some(1.666)),
            "unknown: they may be between 0.833 and 1.666",
            false,
            Some("only with"),
        ),
        (
            8,
            6,
            (0.625, Some(0.833)),
            "must shrink to between 0.625 and 0.833 times",
            false,
            Some("as it is"),
        ),
        (4, 4, (1.25, None), "may grow to 1.250 times what they are", true, None),
    ] {
        let text = |name, cpu, least: String| {
            task(name, &format!("cpu = {cpu}\nwcet = {wcet}000\n{least}period = 5000\n"))
        };
        let bound = text("a", 0, format!("wcet_at_least = {least}000\n"));
        let set =
            read(&format!("[machine]\ncpus = \"0-1\"\n{bound}{}", text("b", 1, String::new())));
        let found = varied(&set);
        let said = hourglass_report::text::check(&found, false, Style::Plain);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{said}");
        assert_eq!(said.contains("found by upper figures"), least < wcet, "{said}");
        let (factors_found, rows) = (found.breakdown.unwrap(), found.sensitivity.unwrap());
        assert_eq!((factors_found[0].factor, factors_found[0].factor_at_most), factors);
        assert_eq!(factors_found[0].reason.is_some(), least < wcet, "{factors_found:?}");
        // The other processor has no upper bound.
        assert!(factors_found[1].reason.is_none() && factors_found[1].factor_at_most.is_none());
        assert!(rows[1].reason.as_ref().is_none_or(|why| why.contains("as it is")), "{rows:?}");
        assert_eq!(rows[0].largest_wcet_ns.is_some(), is_row, "{rows:?}");
        let why = rows[0].reason.as_deref();
        assert_eq!(why.is_some(), reason.is_some(), "{rows:?}");
        assert!(why.is_none_or(|why| reason.is_some_and(|part| why.contains(part))), "{rows:?}");
    }
}

/// Whatever the execution times are between the two figures, the factor is between the two.
#[test]
fn the_true_factor_is_in_the_range() {
    let mut dice = Dice::new(seed());
    let mut ranges = 0;
    let partition = Some((FitHeuristic::First, PlacementOrder::Given));
    for _ in 0..200 {
        let set = drawn(&mut dice);
        let placed = check(&set, &CheckRequest { partition, ..CheckRequest::default() }).unwrap();
        let mut set = set;
        for (task, facts) in set.tasks.iter_mut().zip(&placed.tasks) {
            task.cpus = Some(facts.cpus.parse().unwrap());
        }
        let found = varied(&set);
        let mut truth = set.clone();
        for task in &mut truth.tasks {
            if let Some(least) = task.wcet_at_least.take() {
                let span = task.wcet.nanos_or_zero() - least.nanos_or_zero();
                let ns = least.nanos_or_zero() + dice.below(span + 1);
                task.wcet = Span::from_nanos(i64::try_from(ns).unwrap());
            }
        }
        let there = varied(&truth);
        let pairs = found.breakdown.iter().flatten().zip(there.breakdown.iter().flatten());
        for (found, there) in pairs {
            assert!(found.factor <= there.factor, "{set:?} {found:?} {there:?}");
            let most = match &found.reason {
                None => Some(found.factor),
                // Bounds that need not be reached show no factor that is too large.
                Some(_) => found.factor_at_most,
            };
            assert!(most.is_none_or(|most| there.factor <= most), "{set:?} {found:?} {there:?}");
            ranges += u32::from(found.factor_at_most.is_some());
        }
    }
    assert!(ranges >= 20, "{ranges}");
}
