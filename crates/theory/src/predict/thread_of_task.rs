//! Which thread of a record a task is.
//!
//! Owns: the names of both, and the numbers behind them. Must not: compare what they do.

use hourglass_documents::task_model::{ModelDocument, ThreadModel};
use hourglass_tasks::{Task, TaskSet};

/// The thread of a task: the one of its name, which may have its number behind it; else the only one with the same name
/// but for a number, as another record of a program gives other numbers. None is of two tasks.
pub(super) fn thread_of<'a>(
    task: &Task,
    set: &TaskSet,
    model: &'a ModelDocument,
) -> Result<&'a ThreadModel, String> {
    let named = only(model.threads.iter().filter(|thread| is_named(task, thread)))?;
    if let Some(thread) = named {
        return Ok(thread);
    }
    let is_free = |thread: &ThreadModel| !set.tasks.iter().any(|other| is_named(other, thread));
    let may_be = |thread: &&ThreadModel| {
        thread.unmodelled.is_none() && is_alike(task, thread) && is_free(thread)
    };
    let thread = only(model.threads.iter().filter(may_be))?
        .ok_or_else(|| "no thread of the record has its name".to_owned())?;
    let is_other = |other: &&Task| {
        other.name != task.name
            && is_alike(other, thread)
            && !model.threads.iter().any(|thread| is_named(other, thread))
    };
    match set.tasks.iter().find(is_other) {
        None => Ok(thread),
        Some(other) => Err(format!(
            "one thread of the record has its name but for a number, and '{}' may be that one as well",
            other.name
        )),
    }
}

fn only<'a>(
    mut threads: impl Iterator<Item = &'a ThreadModel>,
) -> Result<Option<&'a ThreadModel>, String> {
    match (threads.next(), threads.next()) {
        (_, Some(_)) => Err("several threads of the record have its name".to_owned()),
        (thread, None) => Ok(thread),
    }
}

fn is_named(task: &Task, thread: &ThreadModel) -> bool {
    let behind = task.name.strip_prefix(&*thread.name);
    behind == Some("") || thread.tid.is_some_and(|tid| behind == Some(format!("-{tid}").as_str()))
}

/// Whether a task and a thread have one name without the numbers behind it.
fn is_alike(task: &Task, thread: &ThreadModel) -> bool {
    let plain = thread.plain_name();
    task.name == plain || without_number(&task.name) == Some(plain)
}

/// A name as `NAME-TID` without its number.
fn without_number(name: &str) -> Option<&str> {
    let (plain, number) = name.rsplit_once('-')?;
    number.parse::<u32>().is_ok().then_some(plain)
}

#[cfg(test)]
mod tests {
    use hourglass_time::Span;

    use super::*;

    /// The bug: a second record of one program had another number behind the name of its thread, and no bound was held.
    #[test]
    fn a_thread_has_another_number_in_another_record() {
        let task = |name: &str| Task::new(name, Span::from_millis(1), Span::from_millis(20));
        let seen = |(name, tid, is_task): (&str, u32, bool)| ThreadModel {
            name: name.to_owned(),
            tid: Some(tid),
            unmodelled: (!is_task).then(|| "too few".to_owned()),
            ..ThreadModel::default()
        };
        let one = [("tfd", 9, true)];
        let two = [("tfd-8", 8, true), ("tfd-9", 9, true)];
        let helper = [("tfd-8", 8, false), ("tfd-9", 9, true)];
        type Row<'a> = (&'a [&'a str], &'a [(&'a str, u32, bool)], &'a [Option<u32>]);
        let rows: [Row; 12] = [
            (&["tfd"], &one, &[Some(9)]),
            (&["tfd-15748"], &one, &[Some(9)]),
            (&["tfd-15748"], &helper, &[Some(9)]),
            (&["tfd"], &helper, &[Some(9)]),
            (&["tfd"], &two, &[None]),
            (&["tfd-15748"], &two, &[None]),
            (&["tfd-9"], &two, &[Some(9)]),
            (&["tfd-5", "tfd-6"], &one, &[None, None]),
            (&["tfd", "tfd-6"], &one, &[Some(9), None]),
            (&["tfd-8", "tfd-6"], &two, &[Some(8), Some(9)]),
            (&["tfd-x", "tfd-"], &one, &[None, None]),
            (&["tfd-7"], &[("tfd", 9, false)], &[None]),
        ];
        for (tasks, threads, expected) in rows {
            let tasks_of_file = tasks.iter().map(|name| task(name)).collect();
            let set = TaskSet { tasks: tasks_of_file, ..TaskSet::default() };
            let threads = threads.iter().copied().map(seen).collect();
            let model = ModelDocument { threads, ..ModelDocument::default() };
            let of = |task| thread_of(task, &set, &model).ok().and_then(|thread| thread.tid);
            let found: Vec<Option<u32>> = set.tasks.iter().map(of).collect();
            assert_eq!(found, expected, "{tasks:?}: {:?}", model.threads);
        }
    }
}
