//! The events of a thread or phase.
//!
//! Owns: their keys and operands. Must not: know in which order they make sense.

use super::Import;
use super::read::{micros, table};
use crate::error::{Location, TaskSetError};
use crate::node::Node;
use crate::{LEAST_STRIDE, MOST_BUFFER, ProgramStep};

/// Keys of events. One that begins with another stands before it.
pub(super) const EVENTS: [&str; 20] = [
    "runtime", "run", "sleep", "memrun", "mem", "iorun", "timer", "lock", "unlock", "wait",
    "signal", "broad", "sync", "barrier", "suspend", "resume", "yield", "fork", "sem_post",
    "sem_wait",
];

/// The event that a key stands for: its name, perhaps with something behind it that is no letter,
/// as in `run1` or `timer_a`.
pub(super) fn name_of(key: &str) -> Option<&'static str> {
    EVENTS.into_iter().find(|event| {
        let rest = key.strip_prefix(event);
        rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
    })
}

/// The steps of one event: one, but four for `sync`.
pub(super) fn read(
    place: &Location,
    thread: &str,
    event: &str,
    key: &str,
    node: &Node,
) -> Import<Vec<ProgramStep>> {
    let name = || word(place, key, node);
    let step = match event {
        "run" => ProgramStep::Run(micros(place, key, node)?),
        "runtime" => ProgramStep::RunFor(micros(place, key, node)?),
        "sleep" => ProgramStep::Sleep(micros(place, key, node)?),
        "mem" => ProgramStep::Memory(bytes(place, key, node)?),
        "iorun" => ProgramStep::Io(bytes(place, key, node)?),
        "timer" => timer(place, key, node)?,
        "lock" => ProgramStep::Lock(name()?),
        "unlock" => ProgramStep::Unlock(name()?),
        "signal" => ProgramStep::Signal(name()?),
        "broad" => ProgramStep::Broadcast(name()?),
        "barrier" => ProgramStep::Barrier(name()?),
        "resume" => ProgramStep::Resume(name()?),
        "fork" => ProgramStep::Fork(name()?),
        "sem_post" => ProgramStep::Post(name()?),
        "sem_wait" => ProgramStep::Take(name()?),
        "memrun" => accesses(place, key, node)?,
        "yield" => ProgramStep::Yield,
        "suspend" => match node {
            Node::Text(text) if text.is_empty() => ProgramStep::Suspend(thread.to_owned()),
            _ => ProgramStep::Suspend(name()?),
        },
        "wait" => {
            let (condition, mutex) = condition(place, key, node)?;
            ProgramStep::Wait { condition, mutex }
        }
        // `sync` stands for these four.
        _ => {
            let (condition, mutex) = condition(place, key, node)?;
            return Ok(vec![
                ProgramStep::Lock(mutex.clone()),
                ProgramStep::Signal(condition.clone()),
                ProgramStep::Wait { condition, mutex: mutex.clone() },
                ProgramStep::Unlock(mutex),
            ]);
        }
    };
    Ok(vec![step])
}

/// A name without blanks, so that steps can be written as words.
fn word(place: &Location, key: &str, node: &Node) -> Import<String> {
    match node {
        Node::Text(text) if text.is_empty() => Err(place.bad(key, node, "give a name")),
        Node::Text(text) if text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Err(place.bad(key, node, "a name with blanks; write it without"))
        }
        Node::Text(text) => Ok(text.clone()),
        _ => Err(place.bad(key, node, "give a name as a text")),
    }
}

fn bytes(place: &Location, key: &str, node: &Node) -> Import<u64> {
    let number = if let Node::Whole(number) = node { u64::try_from(*number).ok() } else { None };
    number.ok_or_else(|| place.bad(key, node, "give a number of bytes"))
}

/// The values of these keys in the object of an event; no other may stand there.
fn members<'a, const N: usize>(
    place: &Location,
    key: &str,
    node: &'a Node,
    names: [&'static str; N],
) -> Import<[Option<&'a Node>; N]> {
    let place = place.within(key.escape_debug());
    let entries = table(&place, node)?;
    let is_unknown = |name: &str| !names.contains(&name);
    if let Some((key, _)) = entries.iter().find(|(name, _)| is_unknown(name)) {
        return Err(place.unknown_key(key, names.into_iter()));
    }
    Ok(names.map(|name| entries.iter().rev().find(|(k, _)| k == name).map(|(_, node)| node)))
}

fn missing(place: &Location, key: &str, name: &'static str, remedy: &str) -> TaskSetError {
    place.within(key.escape_debug()).missing(name, remedy)
}

/// What rt-app calls a timer without a name, so that all of these are one.
const UNNAMED: &str = "unknown";

fn timer(place: &Location, key: &str, node: &Node) -> Import<ProgramStep> {
    let [name, period, mode] = members(place, key, node, ["ref", "period", "mode"])?;
    let period = period.ok_or_else(|| missing(place, key, "period", "give it in microseconds"))?;
    let absolute = match mode {
        None => false,
        Some(Node::Text(mode)) if mode == "relative" => false,
        Some(Node::Text(mode)) if mode == "absolute" => true,
        Some(node) => {
            let place = place.within(key.escape_debug());
            return Err(place.bad("mode", node, "give \"relative\" or \"absolute\""));
        }
    };
    let place = place.within(key.escape_debug());
    Ok(ProgramStep::Timer {
        name: match name {
            Some(name) => word(&place, "ref", name)?,
            None => UNNAMED.to_owned(),
        },
        period: micros(&place, "period", period)?,
        absolute,
    })
}

/// Accesses to a buffer of the event's own: `memrun`. Threads share none, whatever its `ref`.
fn accesses(place: &Location, key: &str, node: &Node) -> Import<ProgramStep> {
    let names = ["type", "size", "count", "stride", "pattern", "ref"];
    let [kind, size, count, stride, pattern, _] = members(place, key, node, names)?;
    let kind = kind.ok_or_else(|| missing(place, key, "type", "give read, write or chase"))?;
    let size = size.ok_or_else(|| missing(place, key, "size", "give it in bytes"))?;
    let count = count.ok_or_else(|| missing(place, key, "count", "give a number"))?;
    let place = place.within(key.escape_debug());
    let buffer = bytes(&place, "size", size)?;
    if !(1..=MOST_BUFFER).contains(&buffer) {
        let reason = format!("give from 1 to {MOST_BUFFER} bytes");
        return Err(place.bad("size", size, &reason));
    }
    let amount = match count {
        Node::Whole(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let amount = amount.ok_or_else(|| place.bad("count", count, "give a number from 0"))?;
    match kind {
        Node::Text(kind) if kind == "read" => Ok(ProgramStep::Read { bytes: amount, buffer }),
        Node::Text(kind) if kind == "write" => Ok(ProgramStep::Write { bytes: amount, buffer }),
        Node::Text(kind) if kind == "chase" => {
            let given = stride.map(|node| bytes(&place, "stride", node)).transpose()?;
            let distance = given.unwrap_or(STRIDE);
            if distance < LEAST_STRIDE || distance > buffer / 2 {
                let reason = format!("give from {LEAST_STRIDE} to half the size, in bytes");
                let node = stride.cloned().unwrap_or(Node::Whole(STRIDE.into()));
                return Err(place.bad("stride", &node, &reason));
            }
            // Every other pattern is random to rt-app.
            let sequential = matches!(pattern, Some(Node::Text(name)) if name == "sequential");
            Ok(ProgramStep::Chase { hops: amount, buffer, stride: distance, sequential })
        }
        node => Err(place.bad("type", node, "give \"read\", \"write\" or \"chase\"")),
    }
}

/// Bytes between two pointers of a chase that says nothing.
const STRIDE: u64 = 64;

fn condition(place: &Location, key: &str, node: &Node) -> Import<(String, String)> {
    let [condition, mutex] = members(place, key, node, ["ref", "mutex"])?;
    let condition = condition.ok_or_else(|| missing(place, key, "ref", "name the condition"))?;
    let mutex = mutex.ok_or_else(|| missing(place, key, "mutex", "name the mutex"))?;
    let place = place.within(key.escape_debug());
    Ok((word(&place, "ref", condition)?, word(&place, "mutex", mutex)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_have_a_number_behind_them() {
        for (key, event) in [
            ("run", Some("run")),
            ("run12", Some("run")),
            ("runtime0", Some("runtime")),
            ("timer_a", Some("timer")),
            ("iorun-1", Some("iorun")),
            // As in rt-app, the beginning of a key decides.
            ("mem_read", Some("mem")),
            ("memrun_a", Some("memrun")),
            ("sem_post2", Some("sem_post")),
            ("runner", None),
            ("walk", None),
        ] {
            assert_eq!(name_of(key), event, "{key}");
        }
    }
}
