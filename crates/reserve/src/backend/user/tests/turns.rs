//! Members on one CPU of a simulated machine that runs threads of one FIFO priority as Linux does (sched(7)): the head
//! of the queue runs until it sleeps or is put behind the others.

use std::collections::VecDeque;

use super::*;

const MS: u64 = 1_000_000;

/// A queue of one priority, whose members are ordered anew after each slice.
struct Cpu {
    queue: VecDeque<u32>,
    /// Of all members: number, processor time, weight.
    members: Vec<MemberUsage>,
    turns: TurnScheduler,
    now: u64,
}

impl Cpu {
    fn busy(weights: &[u64]) -> Cpu {
        let members: Vec<MemberUsage> = (1..)
            .zip(weights)
            .map(|(tid, weight)| MemberUsage { tid, run_ns: 0, weight: *weight })
            .collect();
        let queue = members.iter().map(|member| member.tid).collect();
        let mut turns = TurnScheduler::default();
        turns.account(&members, false);
        Cpu { queue, members, turns, now: 0 }
    }

    fn run_of(&self, tid: u32) -> u64 {
        self.members.iter().find(|member| member.tid == tid).unwrap().run_ns
    }

    fn wake(&mut self, tid: u32) {
        self.queue.push_back(tid);
    }

    fn sleep(&mut self, tid: u32) {
        self.queue.retain(|other| *other != tid);
    }

    fn slice(&mut self) -> Option<u32> {
        let head = self.queue.front().copied();
        if let Some(member) = self.members.iter_mut().find(|member| Some(member.tid) == head) {
            member.run_ns += SLICE_NS;
        }
        self.now += SLICE_NS;
        self.turns.account(&self.members, true);
        let order = self.turns.order();
        assert_eq!(order.len(), self.members.len());
        let place = |tid: &u32| order.iter().position(|other| other == tid).unwrap();
        self.queue.make_contiguous().sort_by_key(place);
        head
    }
}

/// The bug: two threads that hand over by spinning made 1 round instead of 202, since the second ran only when the
/// first had ended. With turns there is a hand-over at each slice, as in the fair class.
#[test]
fn who_waits_by_spinning_hands_over_at_each_slice() {
    let mut cpu = Cpu::busy(&[1_024; 2]);
    let mut handed_over = 0;
    let mut last = None;
    for _ in 0..200 {
        let head = cpu.slice();
        handed_over += u32::from(last.replace(head) != Some(head));
    }
    assert_eq!(handed_over, 200);
}

/// The bug: the second busy child began when the first had ended. However many there are, none is ever more than a
/// slice ahead.
#[test]
fn busy_members_are_never_more_than_a_slice_apart() {
    for count in [2, 3, 10] {
        let mut cpu = Cpu::busy(&vec![1_024; count]);
        for _ in 0..1_000 {
            cpu.slice();
            let run = || cpu.members.iter().map(|member| member.run_ns);
            let apart = run().max().unwrap() - run().min().unwrap();
            assert!(apart <= SLICE_NS, "{count} members: {apart} ns apart");
        }
    }
}

/// `sched(7)`: each step of the nice value is worth a factor of 1.25.
#[test]
fn nice_values_share_as_the_fair_class_does() {
    assert_eq!((weight(0), weight(-1), weight(1)), (1_024, 1_280, 819));
    // `sched_prio_to_weight`: 15 and 88,761.
    assert!((13..=16).contains(&weight(19)), "{}", weight(19));
    assert!((86_000..=90_000).contains(&weight(-20)), "{}", weight(-20));
    let mut cpu = Cpu::busy(&[weight(0), weight(5), weight(10)]);
    while cpu.now < 60_000 * MS {
        cpu.slice();
    }
    let total: u64 = cpu.members.iter().map(|member| member.weight).sum();
    for member in &cpu.members {
        let wanted = cpu.now * member.weight / total;
        let off = member.run_ns.abs_diff(wanted);
        assert!(off < cpu.now / 50, "weight {}: {} of {wanted}", member.weight, member.run_ns);
    }
}

/// A member that slept for long is served soon, and does not take the CPU for as long as it slept.
#[test]
fn sleep_is_not_paid_back() {
    let mut cpu = Cpu::busy(&[1_024; 3]);
    cpu.sleep(3);
    for _ in 0..1_000 {
        cpu.slice();
    }
    assert_eq!(cpu.run_of(3), 0);
    cpu.wake(3);
    // The running member has its slice, then the one that woke comes.
    cpu.slice();
    assert_eq!(cpu.slice(), Some(3));
    let before: Vec<u64> = (1..=3).map(|tid| cpu.run_of(tid)).collect();
    for _ in 0..30 {
        cpu.slice();
    }
    for (tid, before) in (1..).zip(before) {
        let share = (cpu.run_of(tid) - before) / SLICE_NS;
        assert!((9..=11).contains(&share), "member {tid}: {share} of 30 slices");
    }
}

/// New members begin beside those that have had least: neither far ahead nor behind all.
#[test]
fn who_comes_later_neither_waits_for_all_nor_takes_all() {
    let mut cpu = Cpu::busy(&[1_024; 2]);
    for _ in 0..500 {
        cpu.slice();
    }
    cpu.members.push(MemberUsage { tid: 9, run_ns: 0, weight: 1_024 });
    cpu.wake(9);
    for _ in 0..30 {
        cpu.slice();
    }
    let share = cpu.run_of(9) / SLICE_NS;
    assert!((9..=11).contains(&share), "{share} of 30 slices");
    // An ended member is forgotten.
    cpu.members.retain(|member| member.tid != 1);
    cpu.sleep(1);
    cpu.slice();
    assert!(!cpu.turns.order().contains(&1));
}

/// Time outside of turns does not count, and counts that go backwards do no harm.
#[test]
fn only_turns_are_charged() {
    let used = |tid, run_ns| MemberUsage { tid, run_ns, weight: 1_024 };
    let mut turns = TurnScheduler::default();
    turns.account(&[used(1, 0), used(2, 0)], false);
    turns.account(&[used(1, 5 * MS), used(2, 0)], true);
    assert_eq!(turns.order(), [2, 1]);
    // At timesharing priority the second had much.
    turns.account(&[used(1, 5 * MS), used(2, 900 * MS)], false);
    assert_eq!(turns.order(), [2, 1]);
    turns.account(&[used(1, 4 * MS), used(2, u64::MAX)], true);
    assert_eq!(turns.order(), [1, 2]);
    turns.account(&[MemberUsage { weight: 0, ..used(1, u64::MAX) }, used(2, 0)], true);
    assert_eq!(turns.order().len(), 2);
}

/// The bug: of a process in which one thread had used an hour and another a second when it was reserved for, the
/// second headed each order for an hour. Processor time before the first look, and before a member is met, is not
/// charged.
#[test]
fn a_new_member_is_not_charged_for_what_it_ran_before() {
    const S: u64 = 1_000 * MS;
    let mut cpu = Cpu::busy(&[1_024; 2]);
    (cpu.turns, cpu.members[0].run_ns, cpu.members[1].run_ns) =
        (TurnScheduler::default(), 3_600 * S, S);
    let shares = |cpu: &mut Cpu, count: usize| {
        let before: Vec<u64> = cpu.members.iter().map(|member| member.run_ns).collect();
        for _ in 0..30 {
            cpu.slice();
        }
        let members = cpu.members.iter().zip(before).take(count);
        members.map(|(member, before)| (member.run_ns - before) / SLICE_NS).collect::<Vec<_>>()
    };
    assert!(shares(&mut cpu, 2).iter().all(|share| (14..=16).contains(share)));
    // One more, which is older than the reserve.
    cpu.members.push(MemberUsage { tid: 3, run_ns: 600 * S, weight: 1_024 });
    cpu.wake(3);
    let shares = shares(&mut cpu, 3);
    assert!(shares.iter().all(|share| (9..=11).contains(share)), "{shares:?}");
}

/// A new member stands beside those that have had least once these are charged: not a whole stretch before them.
#[test]
fn who_is_new_comes_after_those_there_are_charged() {
    let used = |tid, run_ns| MemberUsage { tid, run_ns, weight: 1_024 };
    let mut turns = TurnScheduler::default();
    turns.account(&[used(1, 0), used(2, 0)], false);
    turns.account(&[used(1, 50 * MS), used(2, 50 * MS), used(3, 0)], true);
    turns.account(&[used(1, 50 * MS), used(2, 50 * MS), used(3, SLICE_NS)], true);
    assert_eq!(turns.order(), [1, 2, 3]);
}
