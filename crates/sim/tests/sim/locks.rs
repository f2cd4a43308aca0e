//! Locks and suspensions, by hand.

use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, Mark, MarkAction, ServerKind, ServerRank,
    SimLockProtocol, SimServer, SimSettings, Thread, run_with,
};

use crate::support::{Record, system};

fn once(priority: u32, at: u64, cost: u64, marks: &[(u64, MarkAction)]) -> Thread {
    let arrivals = ArrivalPattern::Listed(vec![at]);
    let mut thread = Thread::new(Class::Fifo(priority), arrivals, CostModel::Worst(cost), 100);
    thread.marks = marks.iter().map(|(at, action)| Mark { at: *at, action: *action }).collect();
    thread
}

/// The lowest locks from 1 to 3, the highest comes at 2 and wants the lock after 1; between them a
/// thread without a lock comes at 3.
fn inversion(protocol: SimLockProtocol) -> Vec<(usize, u64, u64)> {
    inversion_in(protocol, &[])
}

/// The same three in this server, if there is one.
fn inversion_in(protocol: SimLockProtocol, servers: &[SimServer]) -> Vec<(usize, u64, u64)> {
    let mut threads = vec![
        once(1, 0, 4, &[(1, MarkAction::Lock(0)), (3, MarkAction::Unlock(0))]),
        once(2, 3, 3, &[]),
        once(3, 2, 2, &[(1, MarkAction::Lock(0))]),
    ];
    threads.iter_mut().for_each(|thread| thread.server = (!servers.is_empty()).then_some(0));
    let mut machine = system(1, threads);
    machine.servers = servers.to_vec();
    machine.resources = vec![protocol];
    let mut record = Record::default();
    run_with(&machine, SimSettings::until(50), &mut record, &mut sim::NullMonitor).unwrap();
    record.on(0)
}

/// Sha, Rajkumar and Lehoczky 1990: a plain lock lets the middle one prolong the blocking;
/// inheritance and ceilings do not; under a ceiling the highest does not even begin.
#[test]
fn priority_inversion_is_bounded_by_the_protocols() {
    let plain = [(0, 0, 2), (2, 2, 3), (1, 3, 6), (0, 6, 7), (2, 7, 8), (0, 8, 9)];
    assert_eq!(inversion(SimLockProtocol::Plain), plain);
    let inherited = [(0, 0, 2), (2, 2, 3), (0, 3, 4), (2, 4, 5), (1, 5, 8), (0, 8, 9)];
    assert_eq!(inversion(SimLockProtocol::Inheritance), inherited);
    let ceiling = [(0, 0, 3), (2, 3, 5), (1, 5, 8), (0, 8, 9)];
    assert_eq!(inversion(SimLockProtocol::Ceiling(3)), ceiling);
}

/// Found beside a bound of `check`: a lock in a server raised its holder among all threads but those of the server, so that the
/// middle one prolonged the blocking whatever the protocol.
#[test]
fn protocols_hold_among_the_threads_of_a_server() {
    let ranks = [ServerRank::Deadline, ServerRank::Priority(9)];
    for (kind, rank) in KINDS.iter().flat_map(|kind| ranks.map(|rank| (*kind, rank))) {
        let whole = [SimServer::new(kind, 50, 50).with_rank(rank)];
        for protocol in [
            SimLockProtocol::Plain,
            SimLockProtocol::Inheritance,
            SimLockProtocol::Ceiling(3),
            SimLockProtocol::Spin,
        ] {
            assert_eq!(inversion_in(protocol, &whole), inversion(protocol), "{kind:?} {rank:?}");
        }
    }
}

const KINDS: [ServerKind; 5] = [
    ServerKind::CbsHard,
    ServerKind::CbsSoft,
    ServerKind::Deferrable,
    ServerKind::Sporadic,
    ServerKind::ReserveHard,
];

/// The bug: the budget ended in a section under a spin lock, the next one went to a more urgent thread of the server, and that
/// spun away every budget from then on. A section goes on first.
#[test]
fn a_section_outlasts_the_budget() {
    for kind in KINDS.into_iter().filter(|kind| *kind != ServerKind::CbsSoft) {
        let section = |length| [(0, MarkAction::Lock(0)), (length, MarkAction::Unlock(0))];
        let mut threads = vec![once(1, 0, 4, &section(3)), once(2, 5, 2, &section(1))];
        threads.iter_mut().for_each(|thread| thread.server = Some(0));
        let mut machine = system(1, threads);
        machine.servers = vec![SimServer::new(kind, 2, 10)];
        machine.resources = vec![SimLockProtocol::Spin];
        let mut record = Record::default();
        run_with(&machine, SimSettings::until(60), &mut record, &mut sim::NullMonitor).unwrap();
        let wanted = [(0, 0, 2), (0, 10, 11), (1, 11, 12), (1, 20, 21), (0, 21, 22)];
        assert_eq!(record.on(0), wanted, "{kind:?}");
    }
}

/// The bug: a lock that was given back went to a waiter that had not run, so that the highest, which asks
/// twice, waited for two sections; Linux lets the running thread take it back (`rt_mutex_steal`).
#[test]
fn a_running_thread_takes_an_inherited_lock_back() {
    let whole =
        |from, length| [(from, MarkAction::Lock(0)), (from + length, MarkAction::Unlock(0))];
    let twice = [whole(2, 1), whole(6, 1)].concat();
    let threads = vec![
        once(1, 0, 40, &whole(1, 38)),
        once(2, 10, 40, &whole(1, 38)),
        once(3, 20, 10, &twice),
    ];
    let mut machine = system(1, threads);
    machine.resources = vec![SimLockProtocol::Inheritance];
    let mut record = Record::default();
    let outcome =
        run_with(&machine, SimSettings::until(200), &mut record, &mut sim::NullMonitor).unwrap();
    // It waits for what is left of the lowest one's section, 28 of 38, which lost 3 to the other two.
    let last = record.on(0).into_iter().rfind(|(thread, ..)| *thread == 2).unwrap();
    assert_eq!(outcome.threads[2].max_response, Some(last.2 - 20));
    assert!(last.2 - 20 <= 10 + 38, "{:?}", record.on(0));
    assert!(outcome.threads.iter().all(|thread| thread.jobs == 1));
}

/// Gai, Lipari and Di Natale 2001: who waits on another CPU spins, and is not preempted until it has
/// given the lock back.
#[test]
fn spin_locks_hold_the_cpu() {
    let threads = vec![
        once(1, 0, 4, &[(0, MarkAction::Lock(0)), (3, MarkAction::Unlock(0))]).on(&[0]),
        once(1, 1, 2, &[(0, MarkAction::Lock(0)), (1, MarkAction::Unlock(0))]).on(&[1]),
        once(2, 2, 1, &[]).on(&[1]),
    ];
    let mut machine = system(2, threads);
    machine.resources = vec![SimLockProtocol::Spin];
    let mut record = Record::default();
    let outcome =
        run_with(&machine, SimSettings::until(50), &mut record, &mut sim::NullMonitor).unwrap();
    assert_eq!(record.on(0), [(0, 0, 4)]);
    assert_eq!(record.on(1), [(1, 1, 4), (2, 4, 5), (1, 5, 6)]);
    assert_eq!((outcome.threads[1].received, outcome.threads[1].progress), (4, 2));
}

#[test]
fn who_suspends_itself_leaves_the_cpu() {
    let threads = vec![once(2, 0, 4, &[(2, MarkAction::Suspend(3))]), once(1, 0, 5, &[])];
    let mut record = Record::default();
    let machine = system(1, threads);
    run_with(&machine, SimSettings::until(50), &mut record, &mut sim::NullMonitor).unwrap();
    assert_eq!(record.on(0), [(0, 0, 2), (1, 2, 5), (0, 5, 7), (1, 7, 9)]);
}
