//! Tests that need hardware threads; skipped elsewhere, unless `HOURGLASS_TEST_SIBLINGS_REQUIRED` is set.

use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::smt::stopper::StopperKind;
use hourglass_reserve::smt::topology::{SharingLevel, Topology};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::core_sched;
use hourglass_sys::sched::Attributes;

use super::victims::{self, Role, opened, reserved, runs, stands, until};

/// A CPU, its sibling, and one of another core, as far as there are such.
fn siblings() -> Option<(u32, u32, Option<u32>)> {
    let topology = Topology::default();
    let found = topology.online().iter().find_map(|cpu| {
        let shares = topology.shares(cpu, &SharingLevel::Siblings).ok()?;
        let sibling = shares.cpus.iter().next()?;
        let elsewhere = topology.online().difference(&topology.core(cpu));
        Some((cpu, sibling, elsewhere.iter().next()))
    });
    if found.is_none() {
        assert!(std::env::var_os("HOURGLASS_TEST_SIBLINGS_REQUIRED").is_none(), "no siblings");
        skip(Requirement::SIBLINGS, "no core of this machine has siblings that are online");
    }
    found
}

#[test]
fn siblings_share_with_each_other() {
    let Some((cpu, sibling, elsewhere)) = siblings() else { return };
    let topology = Topology::default();
    let back = topology.shares(sibling, &SharingLevel::Siblings).unwrap();
    assert!(back.is_shared() && back.cpus.contains(cpu));
    assert_eq!(topology.core(cpu), topology.core(sibling));
    println!("siblings of CPU {cpu}: {} by {}", topology.core(cpu), back.source);
    if let Some(other) = elsewhere {
        assert!(!topology.core(other).contains(cpu));
    }
}

/// `HOURGLASS_TEST_ALONE` names a CPU whose siblings have been taken offline.
#[test]
fn a_cpu_whose_siblings_are_offline_is_alone() {
    let Ok(cpu) = std::env::var("HOURGLASS_TEST_ALONE") else { return };
    let shares = Topology::default().shares(cpu.parse().unwrap(), &SharingLevel::Siblings);
    let shares = shares.unwrap();
    assert!(!shares.is_shared(), "{shares:?}");
}

/// While the reserved work has a cookie, no other thread runs on its siblings, and others elsewhere do.
#[test]
fn a_cookie_idles_the_siblings_alone() {
    let Some((cpu, sibling, elsewhere)) = siblings() else { return };
    let guardian = Guardian::start().unwrap();
    let work = victims::on(cpu, Attributes::Fifo(1));
    let co_runner = victims::on(sibling, Attributes::Other(0));
    let other = elsewhere.map(|cpu| victims::on(cpu, Attributes::Other(0)));
    let mut wanted = reserved(work.pid());
    wanted.shares = [sibling].into_iter().collect();
    let Some(mut stopper) = opened(StopperKind::CoreCookie, &wanted, &guardian) else { return };
    for _ in 0..2 {
        stopper.stop().unwrap();
        stopper.stop().unwrap();
        assert!(stands(&co_runner));
        runs(&work);
        other.iter().for_each(runs);
        stopper.resume().unwrap();
        stopper.resume().unwrap();
        runs(&co_runner);
    }
    stopper.stop().unwrap();
    drop(stopper);
    assert_eq!(core_sched::cookie(work.pid()).unwrap(), 0);
    runs(&co_runner);
    if let Some(cpu) = elsewhere {
        wanted.shares = [cpu, sibling].into_iter().collect();
        let refused =
            hourglass_reserve::smt::stopper::open(StopperKind::CoreCookie, &wanted, &guardian);
        let refused = refused.map(drop).unwrap_err().to_string();
        assert!(refused.contains("not the siblings of one core"), "{refused}");
    }
}

/// A cookie of a monitor that was killed is taken away.
#[test]
fn a_cookie_does_not_outlive_its_monitor() {
    let Some((cpu, sibling, _)) = siblings() else { return };
    let work = victims::on(cpu, Attributes::Fifo(1));
    let co_runner = victims::on(sibling, Attributes::Other(0));
    for pause_ms in [2, 5, 11] {
        let Some(monitor) = Role::start(StopperKind::CoreCookie, work.pid()) else { return };
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        monitor.kill();
        until("the cookie is left", || core_sched::cookie(work.pid()).unwrap() == 0);
        runs(&co_runner);
    }
}
