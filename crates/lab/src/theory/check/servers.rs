//! Servers: a task for the processor that they run on, and a processor for the tasks in them.
//!
//! Owns: what each kind takes from others at most, what it gives its tasks at least, and when it is
//! known to get its budget. Must not: design servers.
//!
//! What a server gives is the supply of a periodic resource (Shin and Lee 2003; Easwaran, Anand and
//! Lee 2007), if it gets its budget in every period (Davis and Burns 2005); a polling server may have
//! let go a budget just before, which counts as one more budget of work.

use hourglass_model::tasks::{Assignment, Scheduler, Server, ServerKind, TaskSet};
use hourglass_sched as sched;
use hourglass_sched::edf::qpa;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::supply::Supply;
use hourglass_sched::{TaskSet as Numbers, Verdict};
use hourglass_time::Span;

use super::host;
use super::processor::{Member, Notes, Processor, Rule};

/// Why a bound inside a server need not be reached. A demand over its rate has no bound for all that.
pub(super) const LEAST_SUPPLY: &str = "the supply of a server need not be the least every time";

/// The processor `cpu` with the tasks here that are in no server, and the inside of each server.
pub(super) fn processors(
    set: &TaskSet,
    cpu: u32,
    tasks: &[usize],
    rule: Rule,
    notes: &mut Notes,
) -> Vec<Processor> {
    let is_here = |server: &&Server| {
        let cpus = server.cpus.clone().unwrap_or_else(|| set.cpus());
        let runs = |position: &usize| server.tasks.contains(&set.tasks[*position].name);
        cpus.contains(cpu) && (server.tasks.is_empty() || tasks.iter().any(runs))
    };
    let servers: Vec<&Server> = set.servers.iter().filter(is_here).collect();
    let outside = |position: &&usize| set.server_of(&set.tasks[**position].name).is_none();
    let outside: Vec<usize> = tasks.iter().filter(outside).copied().collect();
    let mut host = host::processor(set, cpu.to_string(), &outside, rule, notes);
    let mut found = Vec::new();
    if host.refused.is_none()
        && let Err(why) = add_servers(set, &servers, &mut host)
    {
        host.refused = Some(why);
    }
    for server in servers.iter().filter(|server| !server.tasks.is_empty()) {
        let inside = |position: &&usize| server.tasks.contains(&set.tasks[**position].name);
        let inside: Vec<usize> = tasks.iter().filter(inside).copied().collect();
        found.push(within(set, server, &inside, &host, notes));
    }
    if !outside.is_empty() {
        found.insert(0, host);
    }
    found
}

/// The deadline class, which comes before every fixed priority.
fn is_first(server: &Server) -> bool {
    matches!(server.kind, ServerKind::CbsHard | ServerKind::CbsSoft) || server.priority.is_none()
}

fn add_servers(set: &TaskSet, servers: &[&Server], host: &mut Processor) -> Result<(), String> {
    if servers.is_empty() {
        return Ok(());
    }
    if host.finds_priorities {
        return Err("priorities are to be found beside servers; give priorities".to_owned());
    }
    costs(set, servers, host.rule)?;
    by_deadlines(servers, host)?;
    let whole = |server: &&&Server| server.cpus.as_ref().unwrap_or(&set.cpus()).len() != 1;
    if let Some(server) = servers.iter().find(whole) {
        return Err(format!("server '{}' may run on several CPUs; pin it to one", server.name));
    }
    let beside = host.members.iter().any(|member| member.position.is_some());
    let assigned = beside
        && set.assignment() != Assignment::Given
        && servers.iter().any(|server| server.priority.is_some());
    if host.rule == Rule::FixedPriority && assigned {
        return Err("servers have priorities, and those of the tasks are assigned; give them too"
            .to_owned());
    }
    let known = host::known_priorities(set);
    for server in servers {
        let (budget, period) = (server.budget.nanos_or_zero(), server.period.nanos_or_zero());
        let made = sched::Task::new(budget, period, server.deadline().nanos_or_zero());
        let made = made.map_err(|why| format!("server '{}': {why}", server.name))?;
        let room = period - budget;
        let (jitter, rank) = match (host.rule, server.kind) {
            (Rule::Fifo, _) => {
                return Err("no analysis here has servers beside first in, first out".to_owned());
            }
            (Rule::Edf, ServerKind::Polling | ServerKind::Deferrable | ServerKind::Sporadic) => {
                return Err(format!(
                    "server '{}' is of a kind for fixed priorities, but the scheduler is edf",
                    server.name
                ));
            }
            (Rule::Edf, _) => (0, 1),
            (Rule::FixedPriority, _) if is_first(server) => {
                (first_class(server, host)?, host::DEADLINE_CLASS)
            }
            (Rule::FixedPriority, ServerKind::Polling | ServerKind::Sporadic) => {
                (0, host::rank_among(&known, server.priority.unwrap_or(0)))
            }
            (Rule::FixedPriority, _) => {
                (room, host::rank_among(&known, server.priority.unwrap_or(0)))
            }
        };
        host.counts("servers need not use all of their budget");
        host.members.push(Member {
            position: None,
            name: format!("server '{}'", server.name),
            task: made.with_jitter(jitter).with_priority(rank),
            jitter,
            arrivals: Vec::new(),
            offset: None,
            threshold: rank,
            unknown: None,
        });
    }
    Ok(())
}

/// That no overheads come with the servers that nobody counts.
fn costs(set: &TaskSet, servers: &[&Server], rule: Rule) -> Result<(), String> {
    let overheads = &set.machine.overheads;
    let is_some = |span: Option<Span>| span.is_some_and(|span| span.is_positive());
    if is_some(overheads.context_switch) || is_some(overheads.cache_delay) {
        return Err(
            "how often a server is switched to is not known, and each time costs a switch \
                    and caches"
                .to_owned(),
        );
    }
    let ticks = is_some(overheads.tick_period) && is_some(overheads.tick_cost);
    if ticks && rule == Rule::FixedPriority && servers.iter().any(|server| is_first(server)) {
        return Err("a tick may make a server of the deadline class late, which no analysis here \
                    counts"
            .to_owned());
    }
    Ok(())
}

/// That servers which are served by deadlines take no more than the numbers say.
///
/// Work may come late to a budget, so that its deadline is near and more of it falls into a window
/// than of a task. With its rule for waking up, a constant-bandwidth server never demands more than
/// its rate (Abeni and Buttazzo 1998), which is enough among servers whose deadlines are their
/// periods, but not for the response times and shorter deadlines of tasks beside it.
fn by_deadlines(servers: &[&Server], host: &Processor) -> Result<(), String> {
    let edf = host.rule == Rule::Edf;
    let ordered: Vec<&&Server> = servers.iter().filter(|server| edf || is_first(server)).collect();
    if edf && host.members.iter().any(|member| member.position.is_some()) {
        return Err(
            "work may come to a server when its deadline is near, and no analysis here has \
                    tasks beside servers under edf; put the tasks into servers of their own, or \
                    give fixed-priority"
                .to_owned(),
        );
    }
    let is_constant = |server: &&&&Server| {
        matches!(server.kind, ServerKind::CbsHard | ServerKind::CbsSoft)
            && server.deadline() == server.period
    };
    match ordered.iter().find(|server| !is_constant(server)) {
        Some(server) if ordered.len() > 1 => Err(format!(
            "server '{}' shares its CPU by deadlines with other servers, which no analysis here has \
             but of constant-bandwidth servers; give it the kind cbs-hard, and a deadline of its \
             period",
            server.name
        )),
        _ => Ok(()),
    }
}

/// The jitter as others see it of a server above all fixed priorities. A CBS may take
/// up to two budgets and then go on at its rate, which 2 (P - Q) of jitter cover.
fn first_class(server: &Server, host: &Processor) -> Result<u64, String> {
    let (budget, period) = (server.budget.nanos_or_zero(), server.period.nanos_or_zero());
    let others = host.members.iter().any(|member| member.position.is_some());
    if server.kind == ServerKind::CbsSoft && others {
        return Err(format!(
            "server '{}' goes on when its budget is spent, before every fixed priority",
            server.name
        ));
    }
    if server.deadline() != server.period && others {
        return Err(format!(
            "server '{}' has a deadline before its period, which no analysis here has above fixed \
             priorities",
            server.name
        ));
    }
    Ok((period - budget).saturating_mul(2))
}

/// The inside of a server.
fn within(
    set: &TaskSet,
    server: &Server,
    tasks: &[usize],
    host: &Processor,
    notes: &mut Notes,
) -> Processor {
    let rule = match server.scheduler {
        Scheduler::Edf => Rule::Edf,
        Scheduler::Fifo => Rule::Fifo,
        _ => Rule::FixedPriority,
    };
    let mut inside = host::processor(set, host.cpus.clone(), tasks, rule, notes);
    let (budget, period) = (server.budget.nanos_or_zero(), server.period.nanos_or_zero());
    let supply = Supply::with_deadline(period, budget, server.deadline().nanos_or_zero());
    match supply {
        Ok(supply) => inside.supply = Some((server.name.clone(), supply)),
        Err(why) => inside.refused = Some(format!("server '{}': {why}", server.name)),
    }
    let usable = || -> Result<(), String> {
        if let Some(why) = &host.refused {
            return Err(format!("what server '{}' gets is not known: {why}", server.name));
        }
        inside_is_plain(&inside, server)?;
        guaranteed(set, server, host)
    };
    if let Err(why) = usable() {
        inside.refused.get_or_insert(why);
    }
    if server.kind == ServerKind::Polling {
        for member in &mut inside.members {
            let blocking = member.task.blocking().saturating_add(budget);
            member.task = member.task.with_blocking(blocking);
        }
    }
    inside.counts(LEAST_SUPPLY);
    inside
}

/// That the analysis of a supply has everything that the tasks inside need.
fn inside_is_plain(inside: &Processor, server: &Server) -> Result<(), String> {
    let name = &server.name;
    if matches!(server.scheduler, Scheduler::RoundRobin | Scheduler::Fair) {
        return Err(format!("no analysis here bounds the scheduler inside server '{name}'"));
    }
    if inside.rule == Rule::Fifo || inside.finds_priorities {
        return Err(format!(
            "inside server '{name}', only given or assigned fixed priorities and edf are analysed"
        ));
    }
    if inside.sections != Sections::Preemptive {
        return Err(format!(
            "a task in server '{name}' has non-preemptive sections, and the budget may end in one"
        ));
    }
    if server.kind == ServerKind::CbsSoft {
        return Err(format!(
            "server '{name}' goes on with a later deadline when its budget is spent, so that what \
             it gives in a window depends on what came before; use cbs-hard"
        ));
    }
    Ok(())
}

/// That the server gets its budget within each period, or by its deadline.
fn guaranteed(set: &TaskSet, server: &Server, host: &Processor) -> Result<(), String> {
    let label = format!("server '{}'", server.name);
    let none = || format!("{label} is not known to get its budget in time");
    let own = host.members.iter().position(|m| m.name == label).ok_or_else(none)?;
    let all = || host.members.iter().map(|member| member.task);
    let holds = match host.rule {
        Rule::Fifo => false,
        Rule::Edf => demand_holds(&Numbers::new(all().collect()), host.sections),
        Rule::FixedPriority if is_first(server) => {
            // Among themselves they are served by deadlines.
            let plain = |other: &&Server| {
                is_first(other)
                    && host.members.iter().any(|m| m.name == format!("server '{}'", other.name))
            };
            let first = set.servers.iter().filter(plain).filter_map(|other| {
                let (q, p) = (other.budget.nanos_or_zero(), other.period.nanos_or_zero());
                sched::Task::new(q, p, other.deadline().nanos_or_zero()).ok()
            });
            demand_holds(&Numbers::new(first.collect()), Sections::Preemptive)
        }
        Rule::FixedPriority => {
            let mut tasks: Vec<sched::Task> = all().collect();
            // While it has work, a server is a task without jitter.
            tasks[own] = tasks[own].with_jitter(0);
            let time = TimeModel::Continuous;
            let found = fixed_priority::analyse(&Numbers::new(tasks), host.sections, time);
            found.tasks[own].verdict == Verdict::Feasible
        }
    };
    if holds { Ok(()) } else { Err(none()) }
}

fn demand_holds(set: &Numbers, sections: Sections) -> bool {
    qpa::feasible(set, sections, TimeModel::Continuous).verdict == Verdict::Feasible
}
