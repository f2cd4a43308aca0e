//! Servers and reservations, against the library's own constant bandwidth server and by hand.

use hourglass_dice::Dice;
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, ServerKind, ServerRank, SimServer, SimSettings,
    System, Thread, run_with,
};

use hourglass_sched::{Task, TaskSet, Verdict, cbs, checker, servers};

use crate::simulated::support::{Record, deadlines, system};

pub(super) fn traced(system: &System, horizon: u64) -> Record {
    let mut record = Record::default();
    run_with(system, SimSettings::until(horizon), &mut record, &mut sim::NullMonitor).unwrap();
    record
}

/// Jobs of given arrivals and costs in a server.
pub(super) fn served(jobs: &[(u64, u64)], server: usize) -> Thread {
    let arrivals = ArrivalPattern::Listed(jobs.iter().map(|(at, _)| *at).collect());
    let costs = CostModel::Listed(jobs.iter().map(|(_, cost)| *cost).collect());
    Thread::new(Class::Edf, arrivals, costs, 1_000).in_server(server)
}

/// The same for [`cbs`] and for the simulator: periodic tasks first, then servers.
fn soft(tasks: &[(u64, u64)], servers: &[cbs::CbsServer]) -> System {
    let mut threads: Vec<Thread> =
        tasks.iter().map(|(c, t)| Thread::periodic(*c, *t).with_class(Class::Edf)).collect();
    threads.extend(servers.iter().enumerate().map(|(at, server)| served(&server.jobs, at)));
    let mut machine = system(1, threads);
    let kind = ServerKind::CbsSoft;
    machine.servers = servers.iter().map(|s| SimServer::new(kind, s.budget, s.period)).collect();
    machine
}

fn agree(tasks: &[(u64, u64)], servers: &[cbs::CbsServer], horizon: u64, about: &str) -> Record {
    let analysed: Vec<Task> = tasks.iter().map(|(c, t)| Task::new(*c, *t, *t).unwrap()).collect();
    let expected = cbs::run(&analysed, servers, horizon, StepLimit::default()).unwrap();
    let record = traced(&soft(tasks, servers), horizon);
    for (at, finish) in expected.task_finish.iter().chain(&expected.server_finish).enumerate() {
        assert_eq!(&record.completions(at), finish, "{about}: thread {at}");
    }
    for (at, expected) in expected.deadlines.iter().enumerate() {
        assert_eq!(&deadlines(&record, at), expected, "{about}: server {at}");
    }
    record
}

/// PARTSim old/test/test_CBS.cpp: "Original", "Task with suspension", "period ratio" (`cbs.json`).
#[test]
fn soft_servers_run_as_in_partsim() {
    let server = |budget, period, jobs: &[(u64, u64)]| cbs::CbsServer {
        budget,
        period,
        jobs: jobs.to_vec(),
    };
    let original = agree(&[(2, 8)], &[server(5, 15, &[(0, 3), (10, 3)])], 11, "original");
    assert_eq!(original.completions(1), [5]);
    assert_eq!(deadlines(&original, 0).last(), Some(&(10, 25)));
    let suspension = agree(&[(5, 15)], &[server(4, 8, &[(0, 2), (5, 2)])], 6, "suspension");
    assert_eq!(deadlines(&suspension, 0).last().map(|(_, due)| *due), Some(13));
    let two = [server(3, 6, &[(0, 5)]), server(4, 9, &[(0, 7)])];
    let ratio = agree(&[], &two, 13, "period ratio");
    assert_eq!((ratio.completions(0), ratio.completions(1)), (vec![9], vec![12]));
}

#[test]
fn soft_servers_agree_with_the_short_traces() {
    for seed in 0..1_000 {
        let mut dice = Dice::new(seed);
        let tasks: Vec<(u64, u64)> =
            (0..dice.between(0, 2)).map(|_| (dice.between(1, 3), dice.between(4, 12))).collect();
        let servers: Vec<cbs::CbsServer> = (0..dice.between(1, 3))
            .map(|_| {
                let period = dice.between(3, 12);
                let mut at = 0;
                let jobs = (0..dice.between(1, 5)).map(|_| {
                    at += dice.between(0, 10);
                    (at, dice.between(1, 6))
                });
                let jobs = jobs.collect();
                cbs::CbsServer { budget: dice.between(1, period), period, jobs }
            })
            .collect();
        agree(&tasks, &servers, 80, &format!("seed {seed}"));
    }
}

/// Hourglass paper, section 5.6: a hard reservation of exactly what a job needs is missed if the
/// job needs a little more. Here 3 of 8 for jobs of 4.
#[test]
fn a_hard_server_throttles_until_its_next_period() {
    let mut machine = system(1, vec![Thread::periodic(4, 8).in_server(0)]);
    machine.servers = vec![SimServer::new(ServerKind::CbsHard, 3, 8)];
    let record = traced(&machine, 30);
    assert_eq!(
        record.on(0),
        [(0, 0, 3), (0, 8, 9), (0, 9, 11), (0, 16, 18), (0, 18, 19), (0, 24, 27)]
    );
    assert_eq!(record.completions(0), [9, 18, 27]);
    machine.servers[0].budget = 4;
    let outcome = sim::run(&machine, SimSettings::until(8_000)).unwrap();
    assert_eq!((outcome.threads[0].missed, outcome.servers[0].exhausted), (0, 0));
}

/// A wake-up after the deadline begins a new period then (`enqueue_dl_entity`).
#[test]
fn a_hard_server_wakes_with_a_new_deadline() {
    let mut machine = system(1, vec![served(&[(0, 2), (3, 1), (20, 3), (22, 1)], 0)]);
    machine.servers = vec![SimServer::new(ServerKind::CbsHard, 3, 10)];
    let record = traced(&machine, 40);
    // At 3 one is left until 10, which is no more than 3 of 10. At 23 the budget is spent.
    assert_eq!(deadlines(&record, 0), [(0, 10), (10, 20), (20, 30), (30, 40)]);
    assert_eq!(record.completions(0), [2, 4, 23, 31]);
}

fn against_fifo(kind: ServerKind) -> Vec<(usize, u64, u64)> {
    let threads =
        vec![Thread::periodic(5, 20).in_server(0), Thread::periodic(4, 20).with_priority(50)];
    let mut machine = system(1, threads);
    machine.servers = vec![SimServer::new(kind, 3, 10)];
    traced(&machine, 20).on(0)
}

/// Rajkumar et al. 1998: a hard reserve waits for its next period, a soft one goes on among the
/// others.
#[test]
fn reserves_are_hard_or_soft() {
    assert_eq!(against_fifo(ServerKind::ReserveHard), [(0, 0, 3), (1, 3, 7), (0, 10, 12)]);
    assert_eq!(against_fifo(ServerKind::ReserveSoft), [(0, 0, 3), (1, 3, 7), (0, 7, 9)]);
}

fn late_job(kind: ServerKind, jobs: &[(u64, u64)]) -> Vec<u64> {
    let mut machine = system(1, vec![served(jobs, 0)]);
    machine.servers = vec![SimServer::new(kind, 2, 5).with_rank(ServerRank::Priority(9))];
    traced(&machine, 40).completions(0)
}

/// Strosnider, Lehoczky and Sha 1995: a polling server loses at its period what no thread wants, a
/// deferrable one keeps it; Sprunt, Sha and Lehoczky 1989: what a sporadic one uses from 1 on comes
/// back at 6.
#[test]
fn aperiodic_servers_differ_in_what_they_keep() {
    assert_eq!(late_job(ServerKind::Polling, &[(1, 1)]), [6]);
    assert_eq!(late_job(ServerKind::Polling, &[(5, 1), (7, 1)]), [6, 11]);
    assert_eq!(late_job(ServerKind::Deferrable, &[(1, 1)]), [2]);
    assert_eq!(late_job(ServerKind::Deferrable, &[(4, 4)]), [11]);
    assert_eq!(late_job(ServerKind::Sporadic, &[(1, 2), (4, 1)]), [3, 7]);
}

/// A sporadic server of 4 every 10 between an urgent job of 9 and a low one of 3.
fn delayed_server(jobs: &[(u64, u64)], urgent: u64) -> System {
    let first = Thread::new(
        Class::Fifo(9),
        ArrivalPattern::Listed(vec![urgent]),
        CostModel::Listed(vec![9]),
        1_000,
    );
    let low = Thread::periodic(3, 1_000).with_priority(1);
    let mut machine = system(1, vec![first, served(jobs, 0), low]);
    let sporadic = SimServer::new(ServerKind::Sporadic, 4, 10);
    machine.servers = vec![sporadic.with_rank(ServerRank::Priority(5))];
    machine
}

/// Stanovich, Baker, Wang and Gonzalez Harbour 2010, "premature replenishments", by hand. From 2 on
/// a first half of the budget is in use, and delayed until 11. The second comes back at 10, so that
/// what is used of it comes back at 20, and not with the first half at 12.
#[test]
fn a_sporadic_server_gets_nothing_back_too_soon() {
    let record = traced(&delayed_server(&[(0, 2), (2, 20)], 2), 30);
    let expected = [(1, 0, 2), (0, 2, 11), (1, 11, 17), (2, 17, 20), (1, 20, 22), (1, 25, 27)];
    assert_eq!(record.on(0), expected);
}

/// Sprunt, Sha and Lehoczky 1989: to those below, a sporadic server is a periodic task.
#[test]
fn a_sporadic_server_delays_as_a_periodic_task() {
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed);
        let (mut at, mut jobs) = (0, Vec::new());
        for _ in 0..8 {
            jobs.push((at, dice.between(1, 9)));
            at += dice.between(1, 12);
        }
        let machine = delayed_server(&jobs, dice.between(0, 40));
        // 3 + 9 + 2 times 4.
        let outcome = sim::run(&machine, SimSettings::until(900)).unwrap();
        assert!(outcome.threads[2].max_response <= Some(20), "seed {seed}: {jobs:?}");
    }
}

/// The bound of a task of 3 below a server.
fn below(server: Option<Task>) -> Option<u64> {
    let low = Task::new(3, 1_000, 1_000).unwrap();
    let set = TaskSet::new(vec![server?.with_priority(2), low.with_priority(1)]);
    let found = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
    found.from_arrival()[1]
}

/// A hard server of 4 every 8, whose jobs come at these times, above a task of 3: its longest response.
fn simulated_below(jobs: &[(u64, u64)], late: u64) -> Option<u64> {
    let low = Thread::new(
        Class::Fifo(1),
        ArrivalPattern::Listed(vec![late]),
        CostModel::Listed(vec![3]),
        1_000,
    );
    let mut machine = system(1, vec![served(jobs, 0), low]);
    machine.servers = vec![SimServer::new(ServerKind::CbsHard, 4, 8)];
    sim::run(&machine, SimSettings::until(500)).unwrap().threads[1].max_response
}

/// A constant-bandwidth server that has used a little gets a new budget when it wakes: 1 at 0 and 4 at 3,
/// where a periodic task takes 4 in 8. One of two copies of the analysis had that task.
#[test]
fn a_constant_server_takes_more_than_a_periodic_task() {
    let server = servers::Server::new(servers::ServerPolicy::HardBandwidth, 8, 4).unwrap();
    let simulated = simulated_below(&[(0, 1), (3, 9)], 0);
    assert_eq!((simulated, below(Task::new(4, 8, 8).ok())), (Some(8), Some(7)));
    let bound = below(server.above_priorities());
    assert!(bound >= simulated, "{bound:?}");
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed);
        let (mut at, mut jobs) = (0, Vec::new());
        for _ in 0..8 {
            jobs.push((at, dice.between(1, 5)));
            at += dice.between(1, 9);
        }
        let simulated = simulated_below(&jobs, dice.between(0, 40));
        assert!(bound >= simulated, "seed {seed}: {simulated:?}: {jobs:?}");
    }
}

/// Tasks in a server of constant bandwidth, by priorities or by deadlines.
fn inside(dice: &mut Dice, period: u64, budget: u64) -> (TaskSet, Class) {
    let count = dice.between(1, 3);
    let tasks = (1..=count).map(|priority| {
        let own = dice.between(period, period * 6);
        let cost = (own * budget / period / (count + dice.between(0, 2))).max(1);
        Task::new(cost, own, own).unwrap().with_priority(priority as u32)
    });
    (TaskSet::new(tasks.collect()), [Class::Edf, Class::Fifo(1)][dice.between(0, 1) as usize])
}

/// One to three servers of constant bandwidth on a CPU, each with its tasks and their class.
fn constant_servers(dice: &mut Dice) -> (System, Vec<(servers::Server, TaskSet, Class)>) {
    let (mut machine, mut all) = (system(1, Vec::new()), Vec::new());
    for at in 0..dice.between(1, 3) as usize {
        let period = dice.between(3, 12);
        let budget = dice.between(1, period / 2 + 1);
        let (kind, simulated) = match dice.between(0, 3) {
            0 => (servers::ServerPolicy::HardBandwidth, ServerKind::CbsHard),
            1 => (servers::ServerPolicy::Reclaiming, ServerKind::CbsHard),
            _ => (servers::ServerPolicy::SoftBandwidth, ServerKind::CbsSoft),
        };
        let own = SimServer::new(simulated, budget, period);
        let reclaims = kind == servers::ServerPolicy::Reclaiming;
        machine.servers.push(if reclaims { own.reclaiming() } else { own });
        let (set, class) = inside(dice, period, budget);
        for task in set.tasks() {
            let own = if class == Class::Edf { class } else { Class::Fifo(task.priority()) };
            let mut thread = Thread::periodic(task.cost(), task.period()).with_class(own);
            if dice.between(0, 1) == 1 {
                let (period, extra) = (task.period(), dice.between(1, 9));
                thread.arrivals = ArrivalPattern::Sporadic { offset: 0, period, extra };
            }
            thread.arrivals.set_offset(dice.between(0, 20));
            machine.threads.push(thread.in_server(at));
        }
        all.push((servers::Server::new(kind, period, budget).unwrap(), set, class));
    }
    (machine, all)
}

/// Abeni and Buttazzo 1998: what a server of constant bandwidth gives among others of its kind, soft or
/// hard. No response is over its bound; in a soft server, whatever its tasks are ordered by.
#[test]
fn bounds_inside_constant_servers_hold() {
    let (mut bounded, mut reached) = (0, 0);
    for seed in 0..600 {
        let mut dice = Dice::new(seed);
        let (machine, all) = constant_servers(&mut dice);
        let placed = all
            .iter()
            .map(|(server, ..)| servers::PlacedServer { server: *server, priority: None });
        let placed: Vec<servers::PlacedServer> = placed.collect();
        let Ok(hosts) = servers::among_deadlines(&placed, false) else { continue };
        let hosts = TaskSet::new(hosts);
        if !servers::is_delivered_by_deadline(&hosts) {
            continue;
        }
        let outcome = sim::run(&machine, SimSettings::until(3_000).with_seed(seed)).unwrap();
        let mut longest = outcome.threads.iter().map(|thread| thread.max_response.unwrap_or(0));
        for (server, set, class) in &all {
            let analysis = server.response_times(set).unwrap();
            assert!(server.holds(set, &analysis), "seed {seed}");
            let by_deadline = *class == Class::Edf && !server.is_soft();
            let verdict = server.verdict(set, servers::LocalScheduler::Edf);
            for (task, bound) in set.tasks().iter().zip(analysis.from_arrival()) {
                let longest = longest.next().unwrap();
                let due = (verdict == Verdict::Feasible).then_some(task.deadline());
                let Some(bound) = (if by_deadline { due } else { bound }) else { continue };
                assert!(longest <= bound, "seed {seed}: {longest} over {bound}: {machine:?}");
                bounded += u64::from(server.is_soft());
                reached += u64::from(server.is_soft() && longest == bound);
            }
        }
    }
    assert!(bounded > 500 && reached > 0, "{bounded} {reached}");
}

/// A task with jitter whose jobs take one to three budgets, and the jobs themselves, from their arrivals.
fn of_whole_budgets(dice: &mut Dice, server: &servers::Server) -> (Task, Vec<(u64, u64, u64)>) {
    let budgets = dice.between(1, 3);
    let cost = server.budget() * (budgets - 1) + dice.between(1, server.budget());
    let period = server.period() * budgets + dice.between(0, 3);
    let jitter = dice.between(0, period - 1);
    let task = Task::new(cost, period, period * 2).unwrap().with_jitter(jitter);
    let jobs = some_jobs(dice, &task);
    (task, jobs)
}

/// Jobs of a task: arrival, release, execution time.
pub(super) fn some_jobs(dice: &mut Dice, task: &Task) -> Vec<(u64, u64, u64)> {
    let (mut arrival, mut jobs) = (dice.between(0, 20), Vec::new());
    for _ in 0..30 {
        // Releases of one task come in their order.
        let before = jobs.last().map_or(0, |(_, release, _)| *release);
        let release = before.max(arrival + dice.between(0, task.jitter()));
        jobs.push((arrival, release, dice.between(1, task.cost())));
        arrival += task.period() + dice.between(0, 1) * dice.between(0, 5);
    }
    jobs
}

/// Up to three hard servers that fill a processor, or have one each, each with a task of its own that needs several
/// budgets a job: none is later than its jitter and that many periods, or the part of the last budget that it takes, and
/// some come close to both.
#[test]
fn a_task_of_whole_budgets_keeps_its_bound() {
    let (mut bounded, mut reached) = (0, [[0; 2]; 2]);
    for seed in 0..4_000 {
        let mut dice = Dice::new(seed);
        let delivery = match dice.one_in(2) {
            true => servers::Delivery::AtOnce,
            false => servers::Delivery::ByDeadline,
        };
        let is_at_once = delivery == servers::Delivery::AtOnce;
        let cpus = if is_at_once { 3 } else { 1 };
        let (mut machine, mut all) = (system(cpus, Vec::new()), Vec::new());
        let (period, mut free) = (dice.between(3, 12), 1_000_000);
        for at in 0..3 {
            let budget = (period * free / 1_000_000).min(dice.between(1, period));
            if budget == 0 {
                break;
            }
            free -= if is_at_once { 0 } else { budget * 1_000_000 / period };
            let reclaims = dice.one_in(3);
            let kind = match reclaims {
                true => servers::ServerPolicy::Reclaiming,
                false => servers::ServerPolicy::HardBandwidth,
            };
            let server = servers::Server::new(kind, period, budget);
            let server = server.map(|server| server.with_delivery(delivery));
            let (task, jobs) = of_whole_budgets(&mut dice, &server.unwrap());
            let releases: Vec<_> = jobs.iter().map(|(_, at, cost)| (*at, *cost)).collect();
            machine.threads.push(served(&releases, at));
            let own = SimServer::new(ServerKind::CbsHard, budget, period);
            machine.servers.push(if reclaims { own.reclaiming() } else { own });
            all.push((server.unwrap(), task, jobs));
        }
        let placed = |(server, ..): &(servers::Server, _, _)| servers::PlacedServer {
            server: *server,
            priority: None,
        };
        let placed: Vec<_> = all.iter().map(placed).collect();
        if !is_at_once && servers::among_deadlines(&placed, false).is_err() {
            continue;
        }
        let record = traced(&machine, 20_000);
        for (at, (server, task, jobs)) in all.into_iter().enumerate() {
            let set = TaskSet::in_order(vec![task.clone()]);
            let Some(found) = server.whole_budgets(&set) else { continue };
            assert_eq!(checker::whole_budgets(&set, &server, &found), Ok(()), "seed {seed}");
            let bound = found.from_arrival()[0].unwrap();
            let ends = record.completions(at);
            assert_eq!(ends.len(), jobs.len(), "seed {seed}");
            let longest = jobs.iter().zip(&ends).map(|((at, ..), end)| end - at).max().unwrap();
            assert!(longest <= bound, "seed {seed}: {longest} over {bound}: {server:?} {task:?}");
            bounded += 1;
            let reached = &mut reached[usize::from(is_at_once)][usize::from(task.jitter() > 0)];
            *reached += u64::from(longest == bound);
        }
    }
    let all_reached = reached.iter().flatten().all(|count| *count > 0);
    assert!(bounded > 1_000 && all_reached, "{bounded} {reached:?}");
}

/// A hard server that begins with work before the first job, and whose deadline may be before its period, beside another that
/// takes the rest: no job is later than the least supply has it, and some are as late. As measured in the kernel, a deadline
/// before the period, or one of work before, is not what jobs keep.
#[test]
fn a_bound_by_supply_holds_wherever_a_server_began() {
    let (mut bounded, mut reached, mut later) = (0, [0; 2], [0; 2]);
    for seed in 0..6_000 {
        let mut dice = Dice::new(seed);
        let period = dice.between(3, 20);
        let budget = dice.between(2, period);
        let is_short = dice.one_in(2);
        let deadline = if is_short { dice.between(budget, period) } else { period };
        let kind = servers::ServerPolicy::HardBandwidth;
        let server = servers::Server::with_deadline(kind, period, budget, deadline).unwrap();
        let cost = dice.between(1, budget * 2);
        let apart = period * cost.div_ceil(budget) + dice.between(0, 1) * dice.between(0, 3);
        let task = Task::new(cost, apart, period * 9).unwrap();
        let used = dice.between(1, budget);
        let first = used + dice.between(0, period);
        let arrivals: Vec<u64> = (0..30).map(|job| first + job * apart).collect();
        let jobs = arrivals.iter().map(|at| (*at, cost));
        let jobs: Vec<(u64, u64)> = std::iter::once((0, used)).chain(jobs).collect();
        let mut machine = system(1, vec![served(&jobs, 0)]);
        let own = SimServer::new(ServerKind::CbsHard, budget, period).with_deadline(deadline);
        machine.servers.push(own);
        let other = dice.between(2, 15);
        let rest = other * (deadline - budget) / deadline;
        if rest > 0 {
            machine.servers.push(SimServer::new(ServerKind::CbsHard, rest, other));
            machine.threads.push(served(&[(dice.between(0, 9), 10_000)], 1));
        }
        let set = TaskSet::in_order(vec![task]);
        let analysis = server.response_times(&set).unwrap();
        let Some(bound) = analysis.from_arrival()[0] else { continue };
        let ends = traced(&machine, 20_000).completions(0);
        let longest = arrivals.iter().zip(&ends[1..]).map(|(at, end)| end - at).max().unwrap();
        assert!(longest <= bound, "seed {seed}: {longest} over {bound}: {server:?} {jobs:?}");
        bounded += 1;
        reached[usize::from(is_short)] += u64::from(longest == bound);
        let budgets = cost.div_ceil(budget) * period - (period - deadline);
        later[usize::from(is_short)] += u64::from(longest > budgets);
    }
    let all = reached.iter().chain(&later).all(|count| *count > 0);
    assert!(bounded > 3_000 && all, "{bounded} {reached:?} {later:?}");
}

/// Never more than the budget in any period, whatever the load: hard servers are isolated.
#[test]
fn servers_protect_one_another() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let hog = Thread::periodic(50, 50).in_server(0);
        let (budget, period) = (dice.between(1, 10), dice.between(20, 40));
        let mut machine = system(1, vec![hog, Thread::periodic(budget, period).in_server(1)]);
        let kind = [ServerKind::CbsHard, ServerKind::CbsSoft][dice.between(0, 1) as usize];
        machine.servers = vec![
            SimServer::new(kind, dice.between(1, 5), 10),
            SimServer::new(ServerKind::CbsHard, budget, period),
        ];
        let outcome = sim::run(&machine, SimSettings::until(4_000)).unwrap();
        assert_eq!(outcome.threads[1].missed, 0, "seed {seed}: {machine:?}");
    }
}

const MS: u64 = 1_000_000;

/// Lipari and Baruah 2000: a reclaiming server uses what is left, and others still get theirs.
#[test]
fn reclaiming_takes_only_what_is_left() {
    let greedy = Thread::periodic(94 * MS / 10, 10 * MS).in_server(0);
    let mut alone = system(1, vec![greedy.clone()]);
    alone.servers = vec![SimServer::new(ServerKind::CbsHard, 3 * MS, 10 * MS)];
    let without = sim::run(&alone, SimSettings::until(1_000 * MS)).unwrap();
    assert!(without.threads[0].missed > 90, "{:?}", without.threads[0]);
    alone.servers[0].reclaim = true;
    let with = sim::run(&alone, SimSettings::until(1_000 * MS)).unwrap();
    assert_eq!(with.threads[0].missed, 0);
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let (budget, period) = (dice.between(1, 13), dice.between(20, 40));
        let other = Thread::periodic(budget * MS, period * MS).in_server(1);
        let mut both = system(1, vec![greedy.clone(), other]);
        both.servers = vec![
            alone.servers[0],
            SimServer::new(ServerKind::CbsHard, budget * MS, period * MS).reclaiming(),
        ];
        let outcome = sim::run(&both, SimSettings::until(1_000 * MS)).unwrap();
        // Budgets in 2^-20 are rounded up by less than a millionth.
        let late = outcome.threads[1].max_response.unwrap_or(0);
        assert!(late <= period * MS + 1_000, "seed {seed}: {late}: {both:?}");
    }
}

/// Seen on a kernel with two CPUs: 36 servers of 5 % and the two of the fair class are 1.90, and there
/// is no room for more.
#[test]
fn admission_is_the_kernels_sum() {
    let mut machine = System::new(2);
    machine.servers = vec![SimServer::new(ServerKind::CbsHard, 5, 100); 38];
    assert!(machine.admits_deadlines());
    machine.servers.push(SimServer::new(ServerKind::CbsHard, 1, 1_000_000_000));
    assert!(!machine.admits_deadlines());
}
