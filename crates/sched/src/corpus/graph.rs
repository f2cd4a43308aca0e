//! Cases about task graphs and event models.
//!
//! Owns: how a graph is written in a case, which is read leniently, and the answers' shapes. Must
//! not: compute a bound.
//!
//! Tasks are in `tasks`, or are the steps of `flows`, whose order then is the chain: maps, or lists
//! of [name] cost [shortest cost] [processor] parameter. Sources are `t`, `j` and `dmin` of a task or
//! chain, or in `sources` by task; links are `next` or `after` of a task, or pairs in `links`;
//! schedulers are in `resources` by name. The larger priority is the more urgent one, unless they are
//! called `scheduling_parameter`, as pyCPA does, or `smaller_wins` is true.

use std::collections::BTreeMap;

use hourglass_tasks::corpus::{Case, ResultValue};

use crate::cpa::events::{EventModel, Propagation};
use crate::cpa::{Activation, Cpa, CpaSystem, Node, Scheduler, analyse};

use super::{BadCase, bounds_of, optional};

type Map = BTreeMap<String, ResultValue>;

/// A graph as far as it is read.
#[derive(Default)]
struct Graph {
    names: Vec<String>,
    tasks: Vec<TaskNode>,
    processors: Vec<(String, Scheduler)>,
    paths: Vec<(String, Vec<usize>)>,
    smaller_wins: bool,
}

#[derive(Clone, Debug, Default)]
struct TaskNode {
    cost: u64,
    least: u64,
    processor: String,
    parameter: u64,
    source: Option<EventModel>,
    after: Option<String>,
    next: Option<String>,
}

const TASKS: &[&str] = &["tasks"];
const FLOWS: &[&str] = &["flows", "chains", "paths", "streams"];
const RESOURCES: &[&str] = &["resources", "processors", "schedulers"];
const SOURCES: &[&str] = &["sources", "inputs", "events", "event_models"];
const LINKS: &[&str] = &["links", "edges"];

pub(crate) fn event_models(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let graph = read(&case.other)?;
    let propagation = match case.variant.as_deref().unwrap_or_default() {
        "jitter" | "no dmin" | "no minimum distance" => Propagation::Jitter,
        "jitter_dmin" => Propagation::JitterAndDistance,
        _ => Propagation::BusyWindow,
    };
    let system = graph.system()?;
    answer(case, &graph, &analyse(&system, propagation), name)
}

fn answer(case: &Case, graph: &Graph, found: &Cpa, name: &str) -> Result<ResultValue, BadCase> {
    let bound = |at: usize| optional(found.tasks[at].response.ok());
    let busy = |at: usize| {
        let times = found.tasks[at].busy.iter().map(|time| ResultValue::Whole(*time));
        ResultValue::List(std::iter::once(ResultValue::Whole(0)).chain(times).collect())
    };
    let latency = |path: &[usize], pair: bool| {
        let (least, most) = found.latency(path);
        if pair {
            ResultValue::List(vec![ResultValue::Whole(least), optional(most)])
        } else {
            optional(most)
        }
    };
    let asked = case.expect.get(name);
    match name {
        "wcrt" | "r" | "r_from_release" => Ok(by_name(asked, &graph.names, bound)),
        "bcrt" => {
            Ok(by_name(asked, &graph.names, |at| ResultValue::Whole(found.tasks[at].best_response)))
        }
        "busy_times" | "busy" => Ok(by_name(asked, &graph.names, busy)),
        "end_to_end" | "e2e" | "latency" => {
            let names: Vec<String> = graph.paths.iter().map(|(name, _)| name.clone()).collect();
            let pair = match asked {
                Some(ResultValue::List(paths)) => {
                    matches!(paths.first(), Some(ResultValue::List(_)))
                }
                Some(ResultValue::Map(paths)) => {
                    matches!(paths.values().next(), Some(ResultValue::List(_)))
                }
                _ => false,
            };
            Ok(by_name(asked, &names, |at| latency(&graph.paths[at].1, pair)))
        }
        "schedulable" => {
            Ok(ResultValue::Bool(found.tasks.iter().all(|task| task.response.is_ok())))
        }
        _ => {
            let task = graph.names.iter().position(|known| known == name);
            let path = graph.paths.iter().find(|(known, _)| known == name);
            let pair = matches!(asked, Some(ResultValue::List(_)));
            match (task, path) {
                (Some(task), _) => Ok(bound(task)),
                (None, Some((_, path))) => Ok(latency(path, pair)),
                (None, None) => Err(BadCase::Asked(name.to_owned())),
            }
        }
    }
}

/// A value for each name, as a list or by name, as the case requests.
fn by_name(
    asked: Option<&ResultValue>,
    names: &[String],
    value: impl Fn(usize) -> ResultValue,
) -> ResultValue {
    match asked {
        Some(ResultValue::Map(map)) => {
            let known = |name: &&String| names.iter().position(|known| known == *name);
            let found = map.keys().filter_map(|name| Some((name.clone(), value(known(&name)?))));
            ResultValue::Map(found.collect())
        }
        Some(ResultValue::List(_)) => ResultValue::List((0..names.len()).map(value).collect()),
        _ if names.len() == 1 => value(0),
        _ => bounds_of(Vec::new()),
    }
}

fn bad(field: &'static str, value: &ResultValue) -> BadCase {
    BadCase::Field { field, value: format!("{value:?}"), wanted: "not understood" }
}

fn get<'a>(map: &'a Map, keys: &[&str]) -> Option<&'a ResultValue> {
    keys.iter().find_map(|key| map.get(*key))
}

fn number(map: &Map, keys: &[&str]) -> Option<u64> {
    match get(map, keys)? {
        ResultValue::Whole(number) => Some(*number),
        _ => None,
    }
}

fn text(map: &Map, keys: &[&str]) -> Option<String> {
    match get(map, keys)? {
        ResultValue::Text(text) => Some(text.clone()),
        ResultValue::Whole(number) => Some(number.to_string()),
        ResultValue::List(list) => match list.as_slice() {
            [ResultValue::Text(text)] => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The parts of a list, or of a map with their names.
fn parts(value: &ResultValue) -> Vec<(Option<String>, &ResultValue)> {
    match value {
        ResultValue::List(list) => list.iter().map(|value| (None, value)).collect(),
        ResultValue::Map(map) => {
            map.iter().map(|(name, value)| (Some(name.clone()), value)).collect()
        }
        _ => Vec::new(),
    }
}

fn scheduler(text: &str) -> Scheduler {
    let text = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["spnp", "non"]) {
        Scheduler::NonPreemptive
    } else if has(&["rr", "round"]) {
        Scheduler::RoundRobin
    } else if has(&["tdma", "slot"]) {
        Scheduler::TimeDivision
    } else {
        Scheduler::Preemptive
    }
}

fn arrivals(value: &ResultValue) -> Option<EventModel> {
    let (period, jitter, distance) = match value {
        ResultValue::Map(map) => (
            number(map, &["t", "period", "P", "p"])?,
            number(map, &["j", "J", "jitter"]),
            number(map, &["dmin", "d_min", "distance", "min_distance"]),
        ),
        ResultValue::List(list) => {
            let at = |at: usize| match list.get(at) {
                Some(ResultValue::Whole(number)) => Some(*number),
                _ => None,
            };
            (at(0)?, at(1), at(2))
        }
        _ => return None,
    };
    let (jitter, distance) = (jitter.unwrap_or(0), distance.unwrap_or(0));
    Some(EventModel { period, jitter, distance })
}

fn read(case: &Map) -> Result<Graph, BadCase> {
    let smaller_wins = case.get("smaller_wins") == Some(&ResultValue::Bool(true));
    let mut graph = Graph { smaller_wins, ..Graph::default() };
    for (name, of) in get(case, RESOURCES).map(parts).unwrap_or_default() {
        let (own, how, tasks) = match of {
            ResultValue::Map(map) => (
                text(map, &["name", "id"]),
                text(map, &["scheduler", "policy"]).unwrap_or_default(),
                map.get("tasks"),
            ),
            ResultValue::Text(how) => (None, how.clone(), None),
            _ => return Err(bad("resources", of)),
        };
        let name = name.or(own).ok_or_else(|| bad("resources", of))?;
        graph.processors.push((name.clone(), scheduler(&how)));
        for (task, of) in tasks.map(parts).unwrap_or_default() {
            graph.add_task(task, of, Some(&name))?;
        }
    }
    for (name, of) in get(case, TASKS).map(parts).unwrap_or_default() {
        graph.add_task(name, of, None)?;
    }
    for (name, of) in get(case, FLOWS).map(parts).unwrap_or_default() {
        graph.add_flow(name, of)?;
    }
    for (name, of) in get(case, SOURCES).map(parts).unwrap_or_default() {
        let task = name.as_deref().and_then(|name| graph.position(name));
        let found = arrivals(of).ok_or_else(|| bad("sources", of))?;
        graph.tasks[task.ok_or_else(|| bad("sources", of))?].source = Some(found);
    }
    for (from, to) in get(case, LINKS).map(parts).unwrap_or_default() {
        let ends = match (from, to) {
            (Some(from), ResultValue::Text(to)) => (from, to.clone()),
            (None, ResultValue::List(ends)) => match ends.as_slice() {
                [ResultValue::Text(from), ResultValue::Text(to)] => (from.clone(), to.clone()),
                _ => return Err(bad("links", to)),
            },
            _ => return Err(bad("links", to)),
        };
        let task = graph.position(&ends.1).ok_or_else(|| bad("links", to))?;
        graph.tasks[task].after = Some(ends.0);
    }
    Ok(graph)
}

impl Graph {
    fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Adds a task; gives its position.
    fn add_task(
        &mut self,
        name: Option<String>,
        of: &ResultValue,
        on: Option<&str>,
    ) -> Result<usize, BadCase> {
        let (own, mut node) = match of {
            ResultValue::Map(map) => self.node_of_map(map),
            ResultValue::List(list) => self.node_of_list(list),
            _ => None,
        }
        .ok_or_else(|| bad("tasks", of))?;
        if let Some(on) = on {
            on.clone_into(&mut node.processor);
        }
        let position = self.names.len();
        self.names.push(name.or(own).unwrap_or_else(|| format!("{}", position + 1)));
        self.tasks.push(node);
        Ok(position)
    }

    fn node_of_map(&mut self, map: &Map) -> Option<(Option<String>, TaskNode)> {
        self.smaller_wins |= get(map, &["scheduling_parameter", "sp"]).is_some();
        let priority = ["p", "prio", "priority", "scheduling_parameter", "sp", "slot"];
        let node = TaskNode {
            cost: number(map, &["c", "wcet", "cost", "cmax"])?,
            least: number(map, &["bcet", "b", "cmin", "least", "best"]).unwrap_or(0),
            processor: text(map, &["resource", "cpu", "processor", "r", "on"]).unwrap_or_default(),
            parameter: number(map, &priority).unwrap_or(0),
            source: get(map, &["event_model", "source", "in"])
                .and_then(arrivals)
                .or_else(|| arrivals_of_task(map)),
            after: text(map, &["after", "pred", "prev"]),
            next: text(map, &["next", "succ", "to"]),
        };
        Some((text(map, &["name", "id"]), node))
    }

    fn node_of_list(&mut self, list: &[ResultValue]) -> Option<(Option<String>, TaskNode)> {
        let whole = |value: &ResultValue| match value {
            ResultValue::Whole(number) => Some(*number),
            _ => None,
        };
        let word = |value: &ResultValue| match value {
            ResultValue::Text(text) => Some(text.clone()),
            _ => None,
        };
        let numbers: Vec<u64> = list.iter().filter_map(whole).collect();
        let words: Vec<String> = list.iter().filter_map(word).collect();
        let (cost, least, parameter) = match numbers.as_slice() {
            [cost, parameter] => (*cost, 0, *parameter),
            [a, b, parameter, ..] => (*a.max(b), *a.min(b), *parameter),
            _ => return None,
        };
        let (name, processor) = match words.as_slice() {
            [one] if self.processors.iter().any(|(known, _)| known == one) => (None, one.clone()),
            [name] if matches!(list.first(), Some(ResultValue::Text(_))) => {
                (Some(name.clone()), String::new())
            }
            [one] => (None, one.clone()),
            [name, on] => (Some(name.clone()), on.clone()),
            _ => (None, String::new()),
        };
        Some((name, TaskNode { cost, least, processor, parameter, ..TaskNode::default() }))
    }

    fn add_flow(&mut self, name: Option<String>, of: &ResultValue) -> Result<(), BadCase> {
        let (own, steps, source) = match of {
            ResultValue::Map(map) => (
                text(map, &["name", "id"]),
                get(map, &["steps", "tasks", "path"]).ok_or_else(|| bad("flows", of))?,
                arrivals(of),
            ),
            ResultValue::List(_) => (None, of, None),
            _ => return Err(bad("flows", of)),
        };
        let mut path: Vec<usize> = Vec::new();
        for (_, step) in parts(steps) {
            let (task, new) = match step {
                ResultValue::Text(name) => {
                    (self.position(name).ok_or_else(|| bad("steps", step))?, false)
                }
                _ => (self.add_task(None, step, None)?, true),
            };
            let before = path.last().map(|before| self.names[*before].clone());
            let node = &mut self.tasks[task];
            match before {
                Some(before) if new || node.after.is_none() && node.source.is_none() => {
                    node.after = Some(before);
                }
                None if source.is_some() => node.source = source,
                _ => {}
            }
            path.push(task);
        }
        let name = name.or(own).unwrap_or_else(|| format!("{}", self.paths.len() + 1));
        self.paths.push((name, path));
        Ok(())
    }

    fn system(&self) -> Result<CpaSystem, BadCase> {
        let mut processors = self.processors.clone();
        let mut tasks = Vec::new();
        for (at, node) in self.tasks.iter().enumerate() {
            let known = processors.iter().position(|(name, _)| *name == node.processor);
            let processor = known.unwrap_or(processors.len());
            if known.is_none() {
                processors.push((node.processor.clone(), Scheduler::Preemptive));
            }
            let named = node.after.as_deref().and_then(|name| self.position(name));
            let pointing =
                || self.tasks.iter().position(|t| t.next.as_deref() == Some(&self.names[at]));
            let activation = match (named.or_else(pointing), node.source) {
                (Some(before), _) => Activation::After(before),
                (None, Some(source)) => Activation::Source(source),
                (None, None) => return Err(BadCase::Missing("sources")),
            };
            let slots =
                matches!(processors[processor].1, Scheduler::RoundRobin | Scheduler::TimeDivision);
            let parameter = match (self.smaller_wins, slots) {
                (true, false) => u64::MAX - node.parameter,
                _ => node.parameter,
            };
            let (least, cost) = (node.least, node.cost);
            tasks.push(Node { bcet: least, cost, processor, parameter, activation });
        }
        let schedulers = processors.into_iter().map(|(_, scheduler)| scheduler).collect();
        CpaSystem::new(tasks, schedulers).map_err(|why| BadCase::NoAnswer(why.to_string()))
    }
}

/// A task's own source: here `p` is its priority, not its period.
fn arrivals_of_task(map: &Map) -> Option<EventModel> {
    Some(EventModel {
        period: number(map, &["t", "period", "P"])?,
        jitter: number(map, &["j", "J", "jitter"]).unwrap_or(0),
        distance: number(map, &["dmin", "d_min", "distance", "min_distance"]).unwrap_or(0),
    })
}
