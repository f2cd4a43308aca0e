//! Servers: a task for the processor that they run on, and a processor for the tasks in them.
//!
//! Owns: which server of a file is which one of `sched::servers`, and in words what it refuses. Must not:
//! bound what a server takes or gives, design servers.

use std::collections::HashSet;

use hourglass_documents::check::{CheckDocument, ProcessorFacts};
use hourglass_documents::{CpuSet, Policy};
use hourglass_sched::Task as Numbers;
use hourglass_sched::catalogue::Rule;
use hourglass_sched::overheads::KernelOverheads;
use hourglass_sched::servers::{self, Delivery, PlacedServer, ServerPolicy, UnsupportedServer};
use hourglass_tasks::{
    Assignment, CriticalSection, Preemption, Protocol, Scheduler, Server, ServerKind, Task, TaskSet,
};

use super::parameters;
use super::priorities;
use super::processor::TaskGroup;
use super::processor_builder::ProcessorTasks;

/// Why a bound inside a server need not be reached. A demand over its rate has no bound for all that.
pub(super) const LEAST_SUPPLY: &str = "the supply of a server need not be the least every time";

/// The reason why a demand over the rate of a soft server may have a bound.
pub(super) const GOES_ON: &str = "a soft server goes on when its budget is spent";

/// A server as the analyses know it.
///
/// # Errors
/// Its budget cannot be meant, in a sentence.
pub(super) fn known(server: &Server) -> Result<servers::Server, String> {
    let kind = match server.kind {
        ServerKind::Polling => ServerPolicy::Polling,
        ServerKind::Deferrable => ServerPolicy::Deferrable,
        ServerKind::Sporadic => ServerPolicy::Sporadic,
        ServerKind::CbsHard => ServerPolicy::HardBandwidth,
        ServerKind::CbsSoft => ServerPolicy::SoftBandwidth,
        ServerKind::CbsReclaim => ServerPolicy::Reclaiming,
        ServerKind::PeriodicResource | ServerKind::ExplicitDeadline => ServerPolicy::Periodic,
    };
    let (budget, period) = (server.budget.nanos_or_zero(), server.period.nanos_or_zero());
    let made =
        servers::Server::with_deadline(kind, period, budget, server.deadline().nanos_or_zero());
    made.map_err(|why| format!("server '{}': {why}", server.name))
}

/// The deadline class, which comes before every fixed priority.
fn is_first(server: &Server) -> bool {
    server.kind.is_constant_bandwidth() || server.priority.is_none()
}

/// That no server has the priority of a task beside it or of another server: its budget is no job that came at some
/// time, so that first come, first served does not say who is first.
fn ranks_differ(set: &TaskSet, servers: &[&Server], tasks: &[usize]) -> Result<(), String> {
    let priorities = set.priorities();
    let ranked = servers.iter().filter(|server| !is_first(server));
    for (at, server) in ranked.clone().enumerate() {
        let same = |position: &&usize| priorities[**position] == server.priority;
        let other = ranked.clone().take(at).find(|other| other.priority == server.priority);
        let other = other.map(|other| label(other));
        let task = || Some(format!("task '{}'", set.tasks[*tasks.iter().find(same)?].name));
        if let Some(other) = other.or_else(task) {
            return Err(format!(
                "{} and {other} have the same priority, and which of them is first is not known; make the \
                 priorities different",
                label(server)
            ));
        }
    }
    Ok(())
}

/// That what runs in a server can be preempted by what is more urgent beside it: what it holds up is not its budget alone,
/// and a section may outlast that. A lock raises its holder among all tasks, not only among those of the server.
fn lets_preempt(set: &TaskSet, server: &Server) -> Result<(), String> {
    let is_raised =
        |section: &CriticalSection| protocol(set, section).is_some_and(|of| of != Protocol::Plain);
    let holds_up = |task: &&Task| {
        task.preemption != Preemption::Full || task.critical_sections.iter().any(is_raised)
    };
    let mut inside = set.tasks.iter().filter(|task| server.tasks.contains(&task.name));
    inside.find(holds_up).map_or(Ok(()), |task| {
        Err(format!(
            "task '{}' in {} has sections that more urgent tasks may not preempt, and for how long they hold up \
             what runs beside the server is not known",
            task.name,
            label(server)
        ))
    })
}

/// That of the lock which the section needs.
fn protocol(set: &TaskSet, section: &CriticalSection) -> Option<Protocol> {
    let mut named = set.resources.iter().filter(|resource| resource.name == section.resource);
    named.next().map(|resource| resource.protocol)
}

/// The servers of a processor, each as a task of it, and why nothing bounds the tasks beside them, if so.
pub(super) type AsTasks = (Vec<Numbers>, Option<String>);

/// The servers of a processor, each as a task of it, beside these tasks.
///
/// # Errors
/// No analysis has them there, in a sentence.
pub(super) fn as_tasks(of: &ProcessorTasks) -> Result<AsTasks, String> {
    let ProcessorTasks { set, rule, tasks: beside, .. } = *of;
    let servers = of.place.servers();
    if servers.is_empty() {
        return Ok((Vec::new(), None));
    }
    let tasks = !beside.is_empty();
    let assignment = set.assignment();
    if rule == Rule::FixedPriority && assignment == Assignment::Optimal && tasks {
        return Err("optimal priorities cannot be found with servers; give priorities".to_owned());
    }
    let whole = |server: &&&Server| server.cpus.as_ref().unwrap_or(&set.cpus()).len() != 1;
    match of.place {
        TaskGroup::Cpu { shared: Some(shared), .. } | TaskGroup::Shared(_, shared) => {
            shared.delivery.clone().map(drop)?;
        }
        _ => servers.iter().find(whole).map_or(Ok(()), |server| {
            Err(format!("server '{}' may run on several CPUs; pin it to one", server.name))
        })?,
    }
    let among = servers.iter().find(|server| !server.kind.is_constant_bandwidth());
    if let Some(server) = among.filter(|_| rule == Rule::FixedPriority && tasks)
        && assignment != Assignment::Given
    {
        return Err(format!(
            "{} is among tasks whose priorities are assigned; give the tasks and the server theirs",
            label(server)
        ));
    }
    if tasks || servers.len() > 1 {
        servers.iter().try_for_each(|server| lets_preempt(set, server))?;
    }
    if rule == Rule::FixedPriority {
        ranks_differ(set, servers, beside)?;
    }
    let priorities = priorities::known_priorities(set);
    let placed = |server: &&Server| {
        let rank = server.priority.filter(|_| !is_first(server));
        let priority = rank.map(|priority| priorities::rank_among(&priorities, priority));
        Ok(PlacedServer { server: known(server)?, priority })
    };
    let placed = servers.iter().map(placed).collect::<Result<Vec<_>, String>>()?;
    match rule {
        Rule::FixedPriority => match servers::among_priorities(&placed, tasks) {
            // What is below the class takes nothing from it.
            Err(why) if is_about_below(why) && placed.iter().all(|one| one.priority.is_none()) => {
                servers::among_priorities(&placed, false)
                    .map(|alone| (alone, Some(unfit(why, servers))))
            }
            found => found.map(|found| (found, None)),
        },
        Rule::Edf => servers::among_deadlines(&placed, tasks).map(|found| (found, None)),
        Rule::Fifo => {
            return Err("no analysis covers servers with first in, first out".to_owned());
        }
    }
    .map_err(|why| unfit(why, servers))
}

/// Whether only what is below the servers has no bound.
fn is_about_below(why: UnsupportedServer) -> bool {
    use UnsupportedServer::{GoesOn, Reclaims, ShortDeadline};
    matches!(why, GoesOn(_) | Reclaims(_) | ShortDeadline(_))
}

/// Reservations of the deadline class that share several CPUs.
pub(super) struct SharedReservations<'a> {
    pub(super) servers: Vec<&'a Server>,
    pub(super) delivery: Result<Delivery, String>,
}

impl SharedReservations<'_> {
    /// Whether one of them has the task.
    pub(super) fn has(&self, task: &Task) -> bool {
        self.servers.iter().any(|server| server.tasks.contains(&task.name))
    }
}

/// The reservations of the deadline class on exactly these CPUs, each of one task that holds up no other; none unless all
/// servers that may run there are such ones.
pub(super) fn shared<'a>(set: &'a TaskSet, cpus: &CpuSet, rule: Rule) -> SharedReservations<'a> {
    let all = set.cpus();
    let cpus_of = |own: &Option<CpuSet>| own.clone().unwrap_or_else(|| all.clone());
    let is_here = |own: &Option<CpuSet>| !cpus_of(own).intersection(cpus).is_empty();
    let here: Vec<&Server> = set.servers.iter().filter(|server| is_here(&server.cpus)).collect();
    let is_plain = |name: &String| {
        let task = set.tasks.iter().find(|task| task.name == *name);
        let is_plain = |task: &Task| {
            task.preemption == Preemption::Full
                && task.critical_sections.is_empty()
                && task.cpus.as_ref().is_none_or(|own| own == cpus)
        };
        task.is_some_and(is_plain)
    };
    let is_alone = |server: &&Server| {
        server.kind == ServerKind::CbsHard
            && server.deadline() == server.period
            && cpus_of(&server.cpus) == *cpus
            && matches!(server.tasks.as_slice(), [name] if is_plain(name))
    };
    let are_shared = cpus.len() > 1 && rule != Rule::Fifo && here.iter().all(is_alone);
    let servers = if are_shared { here } else { Vec::new() };
    let reserved: HashSet<&String> = servers.iter().flat_map(|server| &server.tasks).collect();
    let beside = set.tasks.iter().filter(|task| !reserved.contains(&task.name));
    let mut beside = beside.filter(|task| !servers.is_empty() && is_here(&task.cpus));
    let delivery = beside.try_for_each(|task| lets_first(set, task, cpus, rule));
    let delivery = delivery.and_then(|()| delivered(&servers, cpus, &parameters::costs(set)));
    SharedReservations { servers, delivery }
}

/// That a task beside reservations that share CPUs is below them and never holds them up.
fn lets_first(set: &TaskSet, task: &Task, cpus: &CpuSet, rule: Rule) -> Result<(), String> {
    let spins = |section: &CriticalSection| protocol(set, section) == Some(Protocol::Spin);
    if rule != Rule::FixedPriority {
        return Err(unfit(UnsupportedServer::TasksByDeadline, &[]));
    }
    if task.policy == Some(Policy::Deadline) {
        return Err(priorities::without_reservation(&task.name));
    }
    if task.preemption != Preemption::Full || task.critical_sections.iter().any(spins) {
        return Err(format!(
            "task '{}' has sections that the servers on CPUs {cpus} may not preempt, and for how long they hold up \
             these is not known",
            task.name
        ));
    }
    Ok(())
}

/// How each of these reservations gets its budget on the CPUs that they share.
///
/// # Errors
/// It is not known, in a sentence.
fn delivered(
    servers: &[&Server],
    cpus: &CpuSet,
    costs: &KernelOverheads,
) -> Result<Delivery, String> {
    if !costs.switches_are_free() || costs.tick.is_some() {
        return Err(format!(
            "what switches and ticks take from servers that share CPUs {cpus} is not known"
        ));
    }
    let placed = |server: &&Server| Ok(PlacedServer { server: known(server)?, priority: None });
    let placed = servers.iter().map(placed).collect::<Result<Vec<_>, String>>()?;
    let all = servers::among_deadlines(&placed, false).map_err(|why| unfit(why, servers))?;
    servers::delivery_on_several(&all.into(), cpus.len() as u64).ok_or_else(|| {
        format!(
            "the budgets of the servers that share CPUs {cpus} are not known to come in time; the sum that \
             the kernel admits by does not prove it on several CPUs"
        )
    })
}

fn unfit(why: UnsupportedServer, servers: &[&Server]) -> String {
    let name = |at: usize| servers.get(at).map_or("", |server| server.name.as_str());
    match why {
        UnsupportedServer::TasksByDeadline => {
            "work may come to a server when its deadline is near, and no analysis of Hourglass covers tasks \
             beside servers under edf; put the tasks into servers of their own, or give \
             fixed-priority"
                .to_owned()
        }
        UnsupportedServer::NotConstant(at) => format!(
            "server '{}' shares its CPU by deadlines with other servers, which no analysis of Hourglass covers \
             but of constant-bandwidth servers; give it the kind cbs-hard, and a deadline of its \
             period",
            name(at)
        ),
        UnsupportedServer::ForPriorities(at) => format!(
            "server '{}' is of a kind for fixed priorities, but the scheduler is edf",
            name(at)
        ),
        UnsupportedServer::GoesOn(at) => format!(
            "server '{}' goes on when its budget is spent, before every fixed priority",
            name(at)
        ),
        UnsupportedServer::Reclaims(at) => format!(
            "server '{}' may take all that other reservations leave, before every fixed priority",
            name(at)
        ),
        UnsupportedServer::NotAdmitted => {
            "servers that reclaim share a CPU of which reservations have more than 95 %, which the kernel does not \
             admit"
                .to_owned()
        }
        UnsupportedServer::ShortDeadline(at) => format!(
            "server '{}' has a deadline before its period, which no analysis of Hourglass covers above fixed \
             priorities",
            name(at)
        ),
        UnsupportedServer::NoTask(at) => {
            format!("server '{}' needs a budget, a period and a deadline above 0", name(at))
        }
    }
}

/// That the analysis of a supply has everything that the tasks inside need.
///
/// # Errors
/// What it has not, in a sentence.
pub(super) fn is_plain(
    set: &TaskSet,
    server: &Server,
    preemptive: bool,
    finds: bool,
) -> Result<(), String> {
    let name = &server.name;
    if matches!(server.scheduler, Scheduler::RoundRobin | Scheduler::Fair) {
        return Err(format!(
            "no analysis of Hourglass bounds the scheduler inside server '{name}'"
        ));
    }
    if server.scheduler == Scheduler::Fifo || finds {
        return Err(format!(
            "inside server '{name}', only given or assigned fixed priorities and edf are analysed"
        ));
    }
    if !preemptive {
        return Err(format!(
            "a task in server '{name}' has non-preemptive sections, and the budget may end in one"
        ));
    }
    // Sections of one task alone hold up no other.
    let spins = |task: &&Task| {
        let mut sections = task.critical_sections.iter();
        sections.any(|section| protocol(set, section) == Some(Protocol::Spin))
    };
    let mut inside = set.tasks.iter().filter(|task| server.tasks.contains(&task.name));
    if server.tasks.len() > 1
        && let Some(task) = inside.find(spins)
    {
        return Err(format!(
            "task '{}' in server '{name}' has sections under a spin lock, and the budget may end in one",
            task.name
        ));
    }
    Ok(())
}

/// What bounds of tasks alone in constant-bandwidth servers rest on (`Server::whole_budgets`): the class keeps the deadline
/// of what was used before, and jobs that come as often as budgets never catch up with it.
pub(super) fn say_premise(document: &mut CheckDocument) {
    let is_by_first_job = |facts: &ProcessorFacts| {
        facts.server.is_some() && facts.verified_by.as_deref() == Some("conditions")
    };
    if document.processors.iter().any(is_by_first_job) {
        let text = "a thread alone in its server of the deadline class uses nothing of it before its first job; after a \
                    start in the middle of a job, or with work before it, jobs may take up to a period of the server more";
        document.assumptions.push(text.to_owned());
    }
}

/// The name of a server as a member.
pub(super) fn label(server: &Server) -> String {
    format!("server '{}'", server.name)
}
