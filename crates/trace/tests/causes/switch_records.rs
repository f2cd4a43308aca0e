//! Gaps with records of the threads' own switches, which name no other thread and no interrupt.

use hourglass_dice::Dice;
use hourglass_documents::{Cause, Policy};
use hourglass_trace::cause::{CauseBasis, Indication, RunFacts, Successor, SwitchFacts};
use hourglass_trace::{Evidence, IntervalStart, KernelEvent, KernelEventKind as Kind};

use crate::generator::{MS, OURS, Planted, SECOND, US, event, interval, random, trace, woven};
use crate::support::{attributed, facts, of, score};

const UNTOLD: u32 = KernelEvent::UNTOLD;

/// What the kernel records of a thread's switches, each late by less than `error` or early.
fn records(dice: &mut Dice, planted: &[Planted], error: i64) -> Vec<KernelEvent> {
    let mut records = Vec::new();
    for gap in planted.iter().filter(|gap| gap.switches()) {
        let state = u64::from(gap.cause == Cause::ContextSwitchVoluntary);
        let mut at = |ns| ns + dice.within(-error, error + 1);
        records.push(event(at(gap.start + 300), 0, Kind::Switch, OURS, UNTOLD, state));
        records.push(event(at(gap.end() - 200), 0, Kind::Switch, UNTOLD, OURS, 0));
    }
    records.sort_by_key(|record| record.ns);
    records
}

fn with_records(policy: Policy, complete: bool) -> RunFacts {
    let mut facts = facts(&[policy]);
    let thread = facts.threads.get_mut(&0).unwrap();
    (thread.number, thread.never_waits) = (Some(OURS), false);
    RunFacts { switches: Some(SwitchFacts { complete, error_ns: 2_000 }), ..facts }
}

fn planted(dice: &mut Dice) -> Vec<Planted> {
    let until = 10 * SECOND;
    let mut all = random(dice, Cause::ContextSwitchInvoluntary, 20 * MS, [5 * US, 5 * MS], until);
    all.extend(random(dice, Cause::ContextSwitchVoluntary, 40 * MS, [5 * US, 2 * MS], until));
    all.extend(random(dice, Cause::BelowKernel, 3 * MS, [5 * US, 90 * US], until));
    woven(all)
}

/// Issue 6, part 1: without root and without the thread's own evidence, records alone tell switches from
/// the rest, and by whose will they were.
#[test]
fn switches_are_found_by_records_alone() {
    let mut dice = Dice::new(81);
    let planted = planted(&mut dice);
    let trace = trace(&mut dice, 0, 0, &planted, 10 * SECOND, false);
    let records = records(&mut dice, &planted, 300);
    let (found, _, remarks) = attributed(&with_records(Policy::Other(0), true), &trace, &records);
    assert!(!remarks.events_refused && remarks.events_inside == 0, "{remarks:?}");
    for cause in [Cause::ContextSwitchInvoluntary, Cause::ContextSwitchVoluntary] {
        let score = of(&found, &planted, cause);
        assert!(score.planted >= 100, "{score:?}");
        assert!(score.precision >= 0.99 && score.recall >= 0.99, "{cause}: {score:?}");
    }
    for gap in &found {
        assert_eq!(
            gap.evidence.contains(Indication::RecordedSwitch),
            gap.cause.is_switch(),
            "{gap:?}"
        );
        assert_eq!(gap.evidence.contains(Indication::NoRecordedSwitch), !gap.cause.is_switch());
        assert_eq!(gap.cause.is_switch(), gap.basis == CauseBasis::Seen);
        assert_eq!(gap.was_switched(), gap.cause.is_switch());
    }
}

/// Where records were lost, silence proves nothing; where their clock is not the trace's, they say nothing.
#[test]
fn records_are_believed_as_far_as_they_go() {
    let mut dice = Dice::new(82);
    let planted = planted(&mut dice);
    let trace = trace(&mut dice, 0, 0, &planted, 10 * SECOND, false);
    let mut records = records(&mut dice, &planted, 300);
    let half = records.len() / 2;
    let facts = with_records(Policy::Other(0), false);
    let (found, _, _) = attributed(&facts, &trace, &records[..half]);
    assert!(found.iter().all(|gap| !gap.evidence.contains(Indication::NoRecordedSwitch)));
    let known = |gap: &&hourglass_trace::cause::AttributedGap| {
        gap.evidence.contains(Indication::RecordedSwitch)
    };
    assert_eq!(found.iter().filter(known).count() * 2, half);
    records.iter_mut().for_each(|record| record.ns += 20 * MS);
    let (found, _, remarks) = attributed(&with_records(Policy::Other(0), true), &trace, &records);
    assert!(remarks.events_refused, "{remarks:?}");
    let late = &found[found.len() / 2..];
    assert_eq!(late.iter().filter(known).count(), 0);
}

/// Two threads of the run take turns: each record of one that takes the CPU names who the other left it to,
/// also where the trace has only the long gaps of the one.
#[test]
fn the_thread_that_took_the_cpu_is_named_where_it_is_one_of_the_run() {
    let mut dice = Dice::new(83);
    let planted =
        woven(random(&mut dice, Cause::ContextSwitchInvoluntary, 20 * MS, [MS, 4 * MS], SECOND));
    let trace = trace(&mut dice, 0, 0, &planted, SECOND, true);
    let mut records = records(&mut dice, &planted, 0);
    for gap in &planted {
        records.push(event(gap.start + 300, 0, Kind::Switch, UNTOLD, OURS + 1, 0));
        records.push(event(gap.end() - 200, 0, Kind::Switch, OURS + 1, UNTOLD, 0));
    }
    records.sort_by_key(|record| record.ns);
    let mut facts = with_records(Policy::Other(0), true);
    let other = hourglass_trace::cause::ThreadFacts { number: Some(OURS + 1), ..facts.threads[&0] };
    facts.threads.insert(1, other);
    let (found, _, _) = attributed(&facts, &trace, &records);
    let switch = score(&found, &planted, Planted::switches, |gap| {
        gap.to_thread == Some(Successor::OfRun(1))
    });
    assert_eq!((switch.precision, switch.recall), (1.0, 1.0), "{switch:?}");
}

/// Issue 6, part 6: a loop that waits right after its period began leaves the CPU sooner than records are
/// exact. Its record belongs to that wait, and not to the one before the period.
#[test]
fn a_wait_right_behind_a_mark_keeps_its_record() {
    let mut dice = Dice::new(84);
    let mut facts = with_records(Policy::Other(0), true);
    facts.threads.get_mut(&0).unwrap().waits_unseen = true;
    let (mut trace, mut records) = (Vec::new(), Vec::new());
    let mut switched = |dice: &mut Dice, out: i64, back: i64| {
        let mut late = || dice.within(-900, 900);
        records.push(event(out + late(), 0, Kind::Switch, OURS, UNTOLD, 1));
        records.push(event(back + late(), 0, Kind::Switch, UNTOLD, OURS, 0));
    };
    for begun in (0..100).map(|period| period * 5 * MS) {
        let onset = if begun == 0 { IntervalStart::Start } else { IntervalStart::Wait };
        let (checked, ended) = (begun + 2 * MS, begun + 2 * MS + 40 * US);
        // It is not known when in this stretch the thread was away: the gap is put at its end.
        trace.push(interval(0, 0, begun, begun + 9 * US, onset, Evidence::NONE));
        trace.push(interval(0, 0, checked, ended, IntervalStart::Gap, Evidence::NONE));
        switched(&mut dice, begun + 1_000, checked - 8 * US);
        switched(&mut dice, ended + 1_000, begun + 5 * MS - US);
    }
    let (found, _, remarks) = attributed(&facts, &trace, &records);
    assert_eq!((found.len(), remarks.events_inside), (100, 0), "{remarks:?}");
    // Of the first nothing is known that was before.
    for gap in &found[1..] {
        assert!(gap.evidence.contains(Indication::RecordedSwitch), "{gap:?}");
        assert_eq!((gap.cause, gap.basis), (Cause::ContextSwitchVoluntary, CauseBasis::Seen));
    }
}
