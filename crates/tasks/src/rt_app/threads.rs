//! The threads that run: instances of thread objects, and those that others start.
//!
//! Owns: how many there are of each, what they are called, and what they wait for before their first step. Must not:
//! say which of them are tasks.

use std::collections::{BTreeMap, VecDeque};

use super::jobs::JobTotals;
use super::read::File;
use super::task_conversion::Instance;
use super::{Import, ImportNote, Thread};
use crate::error::{Location, TaskSetError};
use crate::keys::remedy;
use crate::{JobTrigger, Phase, Program, ProgramStep};

/// Threads that one `fork` starts at most; rt-app itself gives up after 1024.
const MOST_FORKS: u64 = 256;

/// Threads of a file, with all that are forked.
const MOST_THREADS: usize = 4_000;

/// The threads one by one. Names that come again get a number, as `workgen` gives it.
pub(super) fn instances<'a>(
    file: &'a File,
    notes: &mut Vec<ImportNote>,
) -> Import<Vec<Instance<'a>>> {
    let mut names = Names::default();
    let mut all = Vec::new();
    for thread in &file.threads {
        for number in 0..thread.instances {
            let wanted = match thread.instances {
                1 => thread.name.clone(),
                _ => format!("{}-{number}", thread.name),
            };
            let program = with_delay(thread);
            let jobs = JobTotals::of(&program);
            all.push(Instance { name: names.unique(&wanted), thread, program, jobs });
        }
    }
    forked(file, &mut names, &mut all, notes)?;
    for thread in &file.threads {
        if thread.instances == 0 && !all.iter().any(|one| std::ptr::eq(one.thread, thread)) {
            let text = "instance is 0 and no other thread forks it; it is omitted".to_owned();
            notes.push(ImportNote { thread: thread.name.clone(), text });
        }
    }
    Ok(all)
}

/// Adds the threads that others start, and those that these start. Each waits for its own start.
fn forked<'a>(
    file: &'a File,
    names: &mut Names,
    all: &mut Vec<Instance<'a>>,
    notes: &mut Vec<ImportNote>,
) -> Import<()> {
    let mut starts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut makers: VecDeque<&Thread> = all.iter().map(|instance| instance.thread).collect();
    while let Some(maker) = makers.pop_front() {
        for (name, times) in forks(maker) {
            let started = file.threads.iter().find(|thread| thread.name == name);
            let started = started.ok_or_else(|| unknown(maker, name, file))?;
            if times > MOST_FORKS {
                let text = format!(
                    "fork {name} starts {MOST_FORKS} threads at most; rt-app ends with an error \
                     after 1024"
                );
                notes.push(ImportNote { thread: maker.name.clone(), text });
            }
            if started.delay.is_positive() {
                let text = "its delay is passed over where it is forked".to_owned();
                notes.push(ImportNote { thread: started.name.clone(), text });
            }
            for _ in 0..times.min(MOST_FORKS) {
                if all.len() >= MOST_THREADS {
                    return Err(too_many(maker, name));
                }
                let number = starts.entry(name).or_default();
                let program =
                    after(ProgramStep::Forked { name: name.to_owned(), number: *number }, started);
                let unique = names.unique(&format!("{name}-fork{number}"));
                *number += 1;
                let jobs = JobTotals::of(&program);
                all.push(Instance { name: unique, thread: started, program, jobs });
                makers.push_back(started);
            }
        }
    }
    Ok(())
}

/// The threads that a thread forks, and how often in all its life.
fn forks(thread: &Thread) -> Vec<(&str, u64)> {
    let mut found = Vec::new();
    let rounds = thread.program.loops.unwrap_or(u64::MAX);
    for phase in &thread.program.phases {
        let times = rounds.saturating_mul(phase.loops.unwrap_or(u64::MAX));
        let names = phase.steps.iter().filter_map(|step| match step {
            ProgramStep::Fork(name) => Some(name.as_str()),
            _ => None,
        });
        found.extend(names.map(|name| (name, times)));
    }
    found
}

/// The program of a thread that starts by itself, after its delay. Where a timer releases its jobs, the delay is the
/// task's offset.
fn with_delay(thread: &Thread) -> Program {
    if thread.delay.is_positive() && thread.program.beginning() != JobTrigger::Timer {
        return after(ProgramStep::StartAfter(thread.delay), thread);
    }
    thread.program.clone()
}

/// The program behind a step that is waited for once.
fn after(step: ProgramStep, thread: &Thread) -> Program {
    let mut program = thread.program.clone();
    let start =
        Phase { name: String::new(), loops: Some(1), policy: None, cpus: None, steps: vec![step] };
    program.phases.insert(0, start);
    program
}

fn unknown(maker: &Thread, name: &str, file: &File) -> TaskSetError {
    TaskSetError::UnknownName {
        place: Location::named("thread", &maker.name),
        key: "fork",
        name: name.escape_debug().to_string(),
        kind: "thread",
        remedy: remedy(name, file.threads.iter().map(|thread| thread.name.as_str())),
    }
}

fn too_many(maker: &Thread, name: &str) -> TaskSetError {
    Location::named("thread", &maker.name).contradiction(format!(
        "fork {}: over {MOST_THREADS} threads are started in all; let fewer loops fork",
        name.escape_debug()
    ))
}

/// Names that were given, and how often each came again.
#[derive(Default)]
struct Names(BTreeMap<String, u32>);

impl Names {
    fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while let Some(again) = self.0.get_mut(&name) {
            *again += 1;
            name = format!("{wanted}{again}");
        }
        self.0.insert(name.clone(), 0);
        name
    }
}
