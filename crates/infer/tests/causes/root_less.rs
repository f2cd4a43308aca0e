//! Gaps with the recorder's own evidence, without the kernel's events.

use hourglass_infer::cause::{Basis, Sign};
use hourglass_model::{Cause, Counted, Evidence, Onset, Policy};

use crate::generator::{Dice, MS, Planted, SECOND, US, interval, periodic, random, trace, woven};
use crate::support::{attributed, facts, of, score};

fn virtual_machine(dice: &mut Dice, until: i64, switch_every: i64) -> Vec<Planted> {
    let mut all =
        periodic(dice, Cause::TimerTick, [1_234_567, 4 * MS, 5 * US], [12 * US, 26 * US], until);
    all.extend(random(
        dice,
        Cause::ContextSwitchInvoluntary,
        switch_every,
        [5 * US, 5 * MS],
        until,
    ));
    // 30 parts per million: the host keeps its own time.
    all.extend(periodic(
        dice,
        Cause::BelowKernel,
        [777_000, 10 * MS + 300, 6 * US],
        [33 * US, 60 * US],
        until,
    ));
    all.extend(random(dice, Cause::BelowKernel, 3 * MS, [1_100, 9 * US], until));
    woven(all)
}

/// The issue's own measure: context switches from evidence that needs no privilege.
#[test]
fn switches_are_told_from_interrupts() {
    for (policy, every) in [(Policy::Other(0), 10 * MS), (Policy::Fifo(50), 80 * MS)] {
        let mut dice = Dice::new(41);
        let planted = virtual_machine(&mut dice, 10 * SECOND, every);
        let trace = trace(&mut dice, 0, 1, &planted, 10 * SECOND, true);
        let (found, _, remarks) = attributed(&facts(&[policy]), &trace, &[]);
        assert_eq!(found.len() as u64, remarks.gaps);
        assert_eq!(remarks.with_evidence, remarks.gaps);
        let switch = score(&found, &planted, Planted::switches, |gap| gap.cause.is_switch());
        assert!(switch.planted >= 100, "{switch:?}");
        assert!(switch.precision >= 0.99 && switch.recall >= 0.99, "{policy}: {switch:?}");
        let seen = |gap: &&hourglass_infer::cause::AttributedGap| gap.cause.is_switch();
        assert!(found.iter().filter(seen).all(|gap| gap.basis == Basis::Seen));
    }
}

#[test]
fn ticks_and_the_host_are_told_apart() {
    let mut dice = Dice::new(42);
    let planted = virtual_machine(&mut dice, 10 * SECOND, 20 * MS);
    let trace = trace(&mut dice, 0, 1, &planted, 10 * SECOND, true);
    for hz in [Some(250), None] {
        let facts = hourglass_infer::cause::Facts { tick_hz: hz, ..facts(&[Policy::Other(0)]) };
        let (found, patterns, _) = attributed(&facts, &trace, &[]);
        let tick = of(&found, &planted, Cause::TimerTick);
        assert!(tick.precision >= 0.95 && tick.recall >= 0.97, "{hz:?}: {tick:?}");
        let below = of(&found, &planted, Cause::BelowKernel);
        assert!(below.precision >= 0.97 && below.recall >= 0.95, "{hz:?}: {below:?}");
        let ticks: Vec<_> = patterns.ticks().collect();
        assert_eq!((ticks.len(), ticks[0].cpu, ticks[0].period_ns), (1, 1, 4_000_000));
        // A confidence is worth what it says: that many of them are right, within some per cent.
        let sure: Vec<f64> = found
            .iter()
            .filter(|gap| gap.cause == Cause::TimerTick)
            .map(|gap| gap.confidence())
            .collect();
        let mean = sure.iter().sum::<f64>() / sure.len() as f64;
        assert!((mean - tick.precision).abs() < 0.05, "{mean} for {}", tick.precision);
    }
}

/// Issue 19: of ten stops beside a competitor all were called involuntary, for certain.
#[test]
fn a_stop_beside_a_competitor_is_a_stop() {
    let kept = Evidence { cleared: Some(true), counted: None };
    let counted = |involuntary, voluntary, faults| Evidence {
        counted: Some(Counted { involuntary, voluntary, faults }),
        ..kept
    };
    let cases = [
        (counted(1, 1, 0), Cause::Stopped),
        (counted(2, 1, 0), Cause::Stopped),
        (counted(0, 1, 0), Cause::Stopped),
        (counted(1, 1, 1), Cause::PageFault),
        (counted(2, 0, 0), Cause::ContextSwitchInvoluntary),
    ];
    let mut trace = vec![interval(0, 0, 0, MS, Onset::Start, Evidence::NONE)];
    for (at, (evidence, _)) in (1..).zip(cases) {
        trace.push(interval(0, 0, at * 100 * MS, at * 100 * MS + MS, Onset::Gap, evidence));
    }
    let (found, _, _) = attributed(&facts(&[Policy::Other(0)]), &trace, &[]);
    let named: Vec<Cause> = found.iter().map(|gap| gap.cause).collect();
    assert_eq!(named, cases.map(|(_, cause)| cause));
    assert!(found[0].confidence() < 1.0 && found[4].confidence() == 1.0);
    // Who may wait by itself did.
    let mut waits = facts(&[Policy::Other(0)]);
    waits.threads.get_mut(&0).unwrap().never_waits = false;
    let (found, _, _) = attributed(&waits, &trace, &[]);
    assert_eq!(found[2].cause, Cause::ContextSwitchVoluntary);
}

#[test]
fn the_hosts_tick_is_named_periodic() {
    let mut dice = Dice::new(43);
    let planted = virtual_machine(&mut dice, 10 * SECOND, 20 * MS);
    let trace = trace(&mut dice, 0, 1, &planted, 10 * SECOND, true);
    let (found, _, _) = attributed(&facts(&[Policy::Other(0)]), &trace, &[]);
    let periodic = score(
        &found,
        &planted,
        |p| p.cause == Cause::BelowKernel && p.length >= 33 * US,
        |gap| gap.evidence.contains(Sign::Periodic),
    );
    assert!(periodic.precision >= 0.9 && periodic.recall >= 0.9, "{periodic:?}");
}

#[test]
fn faults_and_stops_of_a_thread_that_never_waits() {
    let mut dice = Dice::new(44);
    let until = 5 * SECOND;
    let mut all = random(&mut dice, Cause::PageFault, 40 * MS, [2 * US, 40 * US], until);
    all.extend(random(&mut dice, Cause::Stopped, 300 * MS, [MS, 90 * MS], until));
    all.extend(random(&mut dice, Cause::ContextSwitchInvoluntary, 30 * MS, [MS, 5 * MS], until));
    let planted = woven(all);
    let trace = trace(&mut dice, 0, 0, &planted, until, true);
    let (found, _, _) = attributed(&facts(&[Policy::Other(0)]), &trace, &[]);
    for cause in [Cause::PageFault, Cause::Stopped, Cause::ContextSwitchInvoluntary] {
        let score = of(&found, &planted, cause);
        assert!(score.planted > 5 && score.precision == 1.0 && score.recall == 1.0, "{cause}");
    }
    let stop = found.iter().find(|gap| gap.cause == Cause::Stopped).unwrap();
    assert!(matches!(stop.basis, Basis::Inferred { .. }) && stop.was_switched());
}

/// On bare metal a gap that kept the critical section is an interrupt, not a hypervisor.
#[test]
fn without_a_hypervisor_nothing_is_below() {
    let mut dice = Dice::new(45);
    let until = 4 * SECOND;
    let mut all = random(&mut dice, Cause::Irq, 5 * MS, [3 * US, 30 * US], until);
    all.extend(periodic(&mut dice, Cause::TimerTick, [9, 4 * MS, US], [2 * US, 4 * US], until));
    let planted = woven(all);
    let trace = trace(&mut dice, 0, 0, &planted, until, true);
    let mut facts = facts(&[Policy::Fifo(50)]);
    facts.virtual_machine = Some(false);
    let (found, _, _) = attributed(&facts, &trace, &[]);
    let irq = of(&found, &planted, Cause::Irq);
    assert!(irq.precision >= 0.98 && irq.recall >= 0.97, "{irq:?}");
    assert!(found.iter().all(|gap| gap.cause != Cause::BelowKernel));
}
