//! One line that says how the run went, from what the run document already states.

use std::collections::BTreeMap;

use hourglass_documents::Cause;
use hourglass_documents::document::{Deadlines, Premise, RunResult, ThreadReport};

use super::occupants::who;
use super::table::TextStyle;
use crate::clean::for_terminal;
use crate::units::rounded;

/// The verdict, and whether it is good news. Deadlines speak first, then wake-ups, then gaps:
/// finishing in time is what an application cares about (section 5.4).
///
/// Where gaps have causes, the one that took the most time is named too.
///
/// A run whose premises did not hold has no verdict.
pub(crate) fn verdict(result: &RunResult) -> (String, TextStyle) {
    if let Some(premise) = broken(result).next() {
        return (format!("none: {}", premise.text), TextStyle::Caution);
    }
    let (mut text, tone) = outcome(result);
    if let Some(worst) = worst_of_sites(result).or_else(|| worst_cause(result)) {
        text.push_str("; ");
        text.push_str(&worst);
    }
    (text, tone)
}

/// What a run, or what was watched, rests on and did not hold.
pub fn broken(result: &RunResult) -> impl Iterator<Item = &Premise> {
    let watched = result.watched.iter().flat_map(|report| &report.premises);
    result.premises.iter().chain(watched)
}

/// `most time in gaps went to timer ticks: 49.2 ms in 2500, confidence 95 %`.
fn worst_cause(result: &RunResult) -> Option<String> {
    let worst = result.causes.iter().max_by_key(|cause| cause.total_ns)?;
    let name = match Cause::from_name(&worst.cause) {
        Some(cause) => cause.words(),
        None => &worst.cause,
    };
    let mut text =
        format!("most time in gaps went to {name}: {} in {}", rounded(worst.total_ns), worst.count);
    if worst.confidence < CERTAIN {
        text.push_str(&format!(", confidence {:.0} %", worst.confidence * 100.0));
    }
    let switch = Cause::from_name(&worst.cause).is_some_and(Cause::is_switch);
    let ran: Vec<String> = worst.ran.iter().filter(|_| switch).take(NAMED).map(who).collect();
    if !ran.is_empty() {
        text.push_str(&format!("; ran meanwhile: {}", ran.join(", ")));
    }
    Some(text)
}

/// `most time off the CPU within spans went to voluntary context switches: 2.45 to 63.3 ms in 30`. What spans lost is known to
/// lie between bounds, and the trace's gaps are as long as the greater of them.
fn worst_of_sites(result: &RunResult) -> Option<String> {
    let mut causes: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for cause in result.sites.iter().flat_map(|site| &site.causes) {
        let sum = causes.entry(&cause.cause).or_default();
        sum.0 = sum.0.saturating_add(cause.lost_least_ns);
        sum.1 = sum.1.saturating_add(cause.lost_most_ns);
        sum.2 = sum.2.saturating_add(cause.count);
    }
    let (name, (least, most, count)) = causes.into_iter().max_by_key(|(_, sum)| sum.1)?;
    let name = match Cause::from_name(name) {
        Some(cause) => cause.words(),
        None => name,
    };
    let lost = super::between(least, most);
    Some(format!("most time off the CPU within spans went to {name}: {lost} in {count}"))
}

/// How many are named of those that had the CPU.
const NAMED: usize = 3;

/// A confidence that would be written as 100 %.
const CERTAIN: f64 = 0.995;

fn outcome(result: &RunResult) -> (String, TextStyle) {
    if let Some(reservation) = &result.reservation {
        return super::reserve::verdict(reservation);
    }
    // An idle control is there to be compared with, and has no deadlines of its own.
    let control = result.control.as_ref().and_then(|control| control.thread);
    let load: Vec<&ThreadReport> =
        result.threads.iter().filter(|thread| Some(thread.id) != control).collect();
    let periodic: Vec<(&ThreadReport, Deadlines)> =
        load.iter().filter_map(|thread| Some((*thread, thread.deadlines?))).collect();
    if periodic.is_empty() {
        return (wake_ups_or_gaps(&load), TextStyle::Normal);
    }
    let all = periodic.iter().fold(Deadlines::default(), |sum, (_, d)| Deadlines {
        hit: sum.hit.saturating_add(d.hit),
        missed: sum.missed.saturating_add(d.missed),
        lost: sum.lost.saturating_add(d.lost),
        completed: 0,
    });
    if periods(&all) == 0 {
        return ("no period ended during the run".to_owned(), TextStyle::Caution);
    }
    let late: Vec<_> = periodic.iter().filter(|(_, d)| failed(d) > 0).collect();
    let worst = late.iter().max_by_key(|(_, d)| failed(d));
    match (worst, late.len()) {
        (None, _) => (format!("all {} periods on time", all.hit), TextStyle::Good),
        (Some((thread, deadlines)), 1) => {
            let text = format!("{} {}", called(thread), how_many(deadlines));
            (text, TextStyle::Bad)
        }
        (Some((thread, deadlines)), count) => {
            let text = format!(
                "{count} of {} periodic threads {}, {} the most: {} of {}",
                periodic.len(),
                how_many(&all),
                called(thread),
                failed(deadlines),
                periods(deadlines),
            );
            (text, TextStyle::Bad)
        }
    }
}

/// A thread's name, else its number.
fn called(thread: &ThreadReport) -> String {
    match &thread.name {
        Some(name) => for_terminal(name),
        None => format!("thread {}", thread.id),
    }
}

fn wake_ups_or_gaps(threads: &[&ThreadReport]) -> String {
    let latencies = || threads.iter().filter_map(|t| Some((t.id, t.latency?)));
    if let Some((id, latest)) = latencies().max_by_key(|(_, l)| l.max_ns)
        && latest.count > 0
    {
        return format!("latest wake-up {} late (thread {id})", rounded(latest.max_ns));
    }
    match threads.iter().max_by_key(|t| t.gaps.max_ns) {
        Some(thread) if thread.gaps.count > 0 => {
            let longest = rounded(thread.gaps.max_ns);
            format!("longest gap {longest} (thread {})", thread.id)
        }
        Some(_) => {
            let unseen = threads.iter().find(|t| t.cpu_time_ns == 0 && t.latency.is_none());
            unseen.map_or("no gaps".to_owned(), |t| format!("thread {} did not run", t.id))
        }
        None => "no threads".to_owned(),
    }
}

/// `missed 142 of 303 periods`, `missed 2 and lost 1 of 303 periods`.
fn how_many(deadlines: &Deadlines) -> String {
    let Deadlines { missed, lost, .. } = *deadlines;
    let what = match (missed, lost) {
        (_, 0) => format!("missed {missed}"),
        (0, _) => format!("lost {lost}"),
        _ => format!("missed {missed} and lost {lost}"),
    };
    format!("{what} of {} periods", periods(deadlines))
}

fn failed(deadlines: &Deadlines) -> u64 {
    deadlines.missed.saturating_add(deadlines.lost)
}

fn periods(deadlines: &Deadlines) -> u64 {
    failed(deadlines).saturating_add(deadlines.hit)
}

#[cfg(test)]
mod tests {
    use hourglass_documents::document::{CauseReport, OccupantReport};
    use hourglass_documents::watched::WatchedReport;

    use super::*;

    /// "CPU share 0.0 %, no gaps".
    #[test]
    fn a_thread_that_did_not_run_has_not_no_gaps() {
        for (cpu_time_ns, said) in [(0, "thread 0 did not run"), (1, "no gaps")] {
            let threads = vec![ThreadReport { cpu_time_ns, ..ThreadReport::default() }];
            let (text, _) = verdict(&RunResult { threads, ..RunResult::default() });
            assert_eq!(text, said);
        }
    }

    /// "all 40 periods on time" of a thread that had lost its CPU.
    #[test]
    fn there_is_none_where_a_premise_broke() {
        let premises =
            || vec![Premise { id: "pinning-lost".to_owned(), text: "moved".to_owned(), at_ns: 1 }];
        let watched = WatchedReport { premises: premises(), ..WatchedReport::default() };
        for result in [
            RunResult { premises: premises(), ..RunResult::default() },
            RunResult { watched: Some(watched), ..RunResult::default() },
        ] {
            assert_eq!(verdict(&result).0, "none: moved");
        }
    }

    /// "thread 1 missed 12 of 20 periods", where the file says "video".
    #[test]
    fn the_task_that_missed_is_named() {
        let deadlines = |missed| Some(Deadlines { hit: 8, missed, ..Deadlines::default() });
        let thread = |id, name: Option<&str>, missed| ThreadReport {
            id,
            name: name.map(str::to_owned),
            deadlines: deadlines(missed),
            ..ThreadReport::default()
        };
        let said = |threads| outcome(&RunResult { threads, ..RunResult::default() }).0;
        let [video, other] = [thread(1, Some("video"), 12), thread(0, None, 3)];
        assert_eq!(said(vec![video.clone()]), "video missed 12 of 20 periods");
        assert_eq!(said(vec![other.clone()]), "thread 0 missed 3 of 11 periods");
        let both = "2 of 2 periodic threads missed 15 of 31 periods, video the most: 12 of 20";
        assert_eq!(said(vec![other, video]), both);
    }

    /// "2.48 s in 472" without a name, while the line `Ran` had three.
    #[test]
    fn who_took_the_cpu_is_named() {
        for (cause, named) in [("context_switch_involuntary", true), ("timer_tick", false)] {
            let ran = |tid| OccupantReport {
                thread: None,
                tid: Some(tid),
                name: Some("loop".to_owned()),
                total_ns: 1_000_000,
            };
            let worst = CauseReport {
                cause: cause.to_owned(),
                count: 472,
                total_ns: 2_480_000_000,
                confidence: 1.0,
                ran: vec![ran(812), ran(813)],
                p50_ns: 5_000_000,
                max_ns: 37_100_000,
            };
            let result = RunResult { causes: vec![worst], ..RunResult::default() };
            let text = worst_cause(&result).unwrap();
            assert_eq!(text.ends_with("; ran meanwhile: loop (812), loop (813)"), named, "{text}");
        }
    }
}
