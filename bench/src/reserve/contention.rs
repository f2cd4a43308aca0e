//! What the paper compares: reserved work beside an integer product under the three policies (Inoue et
//! al., sections 5.2.1 and 5.2.2), on hardware threads of one core, or with contention emulated.

use hourglass_papers::{Headline, PolicyFigures, headline};

use crate::document::Row;

const PERIODS: usize = 10;

/// The least gain in throughput over disabled SMT that is wanted, and the most that a monitor may use for so
/// many looks in a job of 70 ms.
const GAIN: f64 = 1.5;
const MONITOR: f64 = 1.0;
const LOOKS: f64 = 10.0;

/// Throughput relative to disabled SMT, missed periods, the CPU use of the monitor and its number of checks.
/// `monitor_cpu_of_10` is its use for ten checks in a job. Empty where the machine cannot do it: the reason is printed.
pub(super) fn measure(rounds: u32) -> Vec<Row> {
    let turns = usize::try_from(rounds).unwrap_or(usize::MAX);
    match headline(turns, PERIODS) {
        Ok(found) => {
            tell_late(&found);
            rows(&found)
        }
        Err(why) => {
            eprintln!("throughput_ratio: {why}");
            Vec::new()
        }
    }
}

fn tell_late(found: &Headline) {
    for policy in found.policies.iter().filter(|policy| policy.policy != "ignore") {
        let PolicyFigures { policy: name, latest_look_ns, margin_ns, late, .. } = policy;
        late.iter().for_each(|line| eprintln!("late/{name}: {line}"));
        if !late.is_empty() {
            let [look, margin] = [latest_look_ns, margin_ns].map(|ns| *ns as f64 / 1e6);
            eprintln!("late/{name}: looks up to {look:.3} ms late, margin up to {margin:.3} ms");
        }
    }
}

fn rows(found: &Headline) -> Vec<Row> {
    let subject = if found.emulated { "emulated" } else { "siblings" };
    let mut rows = vec![Row::alone("margin", subject, found.margin_ns as f64 / 1e3, "us")];
    if let Some(ratio) = found.ratio {
        rows.push(Row::alone("throughput_ratio", subject, ratio, "times").at_least(GAIN));
    }
    for policy in &found.policies {
        let PolicyFigures {
            policy: name, periods, missed, overran, excused, monitor, looks, ..
        } = policy;
        let case = |what: &str| format!("{what}/{name}");
        let count =
            |what: &str, count: u64| Row::alone(&case(what), subject, count as f64, "count");
        rows.push(count("periods", *periods));
        let row = count("missed", *missed);
        rows.push(if *name == "ignore" { row } else { row.at_most(0.0) });
        rows.push(count("late_by_overrun", *overran));
        rows.push(count("late_by_host", *excused));
        if *name != "ignore" {
            rows.push(Row::alone(&case("contention_monitor_cpu"), subject, 100.0 * monitor, "%"));
            rows.push(Row::alone(&case("contention_looks"), subject, *looks, "per job"));
            let of_ten = 100.0 * monitor * LOOKS / looks.max(LOOKS);
            rows.push(
                Row::alone(&case("monitor_cpu_of_10"), subject, of_ten, "%").at_most(MONITOR),
            );
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_belong_to_who_promises() {
        let policy = |policy, missed| PolicyFigures {
            policy,
            periods: 10,
            missed,
            overran: 0,
            excused: 0,
            best_effort: 0.5,
            monitor: 0.002,
            looks: 9.0,
            ..PolicyFigures::default()
        };
        let policies = vec![policy("ignore", 10), policy("monitor, word", 1)];
        let found = Headline { emulated: true, margin_ns: 80_000, ratio: Some(1.7), policies };
        let rows = rows(&found);
        let goals = |case: &str| {
            let row = rows.iter().find(|row| row.case == case).unwrap();
            row.goals.iter().map(|goal| goal.met).collect::<Vec<_>>()
        };
        assert_eq!(goals("throughput_ratio"), [true]);
        assert_eq!((goals("missed/ignore"), goals("missed/monitor, word")), (vec![], vec![false]));
        assert_eq!(goals("monitor_cpu_of_10/monitor, word"), [true]);
    }
}
