//! The events of a thread or phase.
//!
//! Owns: their keys and operands. Must not: know in which order they make sense.

use super::Import;
use super::read::{bad, micros, table};
use crate::error::{Place, TaskSetError};
use crate::node::Node;
use crate::{LEAST_STRIDE, MOST_BUFFER, Step};

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
    place: &Place,
    thread: &str,
    event: &str,
    key: &str,
    node: &Node,
) -> Import<Vec<Step>> {
    let name = || word(place, key, node);
    let step = match event {
        "run" => Step::Run(micros(place, key, node)?),
        "runtime" => Step::RunFor(micros(place, key, node)?),
        "sleep" => Step::Sleep(micros(place, key, node)?),
        "mem" => Step::Memory(bytes(place, key, node)?),
        "iorun" => Step::Io(bytes(place, key, node)?),
        "timer" => timer(place, key, node)?,
        "lock" => Step::Lock(name()?),
        "unlock" => Step::Unlock(name()?),
        "signal" => Step::Signal(name()?),
        "broad" => Step::Broadcast(name()?),
        "barrier" => Step::Barrier(name()?),
        "resume" => Step::Resume(name()?),
        "fork" => Step::Fork(name()?),
        "sem_post" => Step::Post(name()?),
        "sem_wait" => Step::Take(name()?),
        "memrun" => accesses(place, key, node)?,
        "yield" => Step::Yield,
        "suspend" => match node {
            Node::Text(text) if text.is_empty() => Step::Suspend(thread.to_owned()),
            _ => Step::Suspend(name()?),
        },
        "wait" => {
            let (condition, mutex) = condition(place, key, node)?;
            Step::Wait { condition, mutex }
        }
        // `sync` stands for these four.
        _ => {
            let (condition, mutex) = condition(place, key, node)?;
            return Ok(vec![
                Step::Lock(mutex.clone()),
                Step::Signal(condition.clone()),
                Step::Wait { condition, mutex: mutex.clone() },
                Step::Unlock(mutex),
            ]);
        }
    };
    Ok(vec![step])
}

/// A name without blanks, so that steps can be written as words.
fn word(place: &Place, key: &str, node: &Node) -> Import<String> {
    match node {
        Node::Text(text) if text.is_empty() => Err(bad(place, key, node, "give a name")),
        Node::Text(text) if text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Err(bad(place, key, node, "a name with blanks; write it without"))
        }
        Node::Text(text) => Ok(text.clone()),
        _ => Err(bad(place, key, node, "give a name as a text")),
    }
}

fn bytes(place: &Place, key: &str, node: &Node) -> Import<u64> {
    let number = if let Node::Whole(number) = node { u64::try_from(*number).ok() } else { None };
    number.ok_or_else(|| bad(place, key, node, "give a number of bytes"))
}

/// The values of these keys in the object of an event; no other may stand there.
fn members<'a, const N: usize>(
    place: &Place,
    key: &str,
    node: &'a Node,
    names: [&'static str; N],
) -> Import<[Option<&'a Node>; N]> {
    let place = place.within(key.escape_debug());
    let entries = table(&place, node)?;
    let is_unknown = |name: &str| !names.contains(&name);
    if let Some((key, _)) = entries.iter().find(|(name, _)| is_unknown(name)) {
        let remedy = crate::keys::remedy(key, names.into_iter());
        let key = key.escape_debug().to_string();
        return Err(TaskSetError::UnknownKey { place, key, remedy });
    }
    Ok(names.map(|name| entries.iter().rev().find(|(k, _)| k == name).map(|(_, node)| node)))
}

fn missing(place: &Place, key: &str, name: &'static str, remedy: &str) -> TaskSetError {
    let place = place.within(key.escape_debug());
    TaskSetError::MissingKey { place, key: name, remedy: remedy.to_owned() }
}

/// What rt-app calls a timer without a name, so that all of these are one.
const UNNAMED: &str = "unknown";

fn timer(place: &Place, key: &str, node: &Node) -> Import<Step> {
    let [name, period, mode] = members(place, key, node, ["ref", "period", "mode"])?;
    let period = period.ok_or_else(|| missing(place, key, "period", "give it in microseconds"))?;
    let absolute = match mode {
        None => false,
        Some(Node::Text(mode)) if mode == "relative" => false,
        Some(Node::Text(mode)) if mode == "absolute" => true,
        Some(node) => {
            let place = place.within(key.escape_debug());
            return Err(bad(&place, "mode", node, "give \"relative\" or \"absolute\""));
        }
    };
    let place = place.within(key.escape_debug());
    Ok(Step::Timer {
        name: match name {
            Some(name) => word(&place, "ref", name)?,
            None => UNNAMED.to_owned(),
        },
        period: micros(&place, "period", period)?,
        absolute,
    })
}

/// Accesses to a buffer of the event's own: `memrun`. Threads share none, whatever its `ref`.
fn accesses(place: &Place, key: &str, node: &Node) -> Import<Step> {
    let names = ["type", "size", "count", "stride", "pattern", "ref"];
    let [kind, size, count, stride, pattern, _] = members(place, key, node, names)?;
    let kind = kind.ok_or_else(|| missing(place, key, "type", "give read, write or chase"))?;
    let size = size.ok_or_else(|| missing(place, key, "size", "give it in bytes"))?;
    let count = count.ok_or_else(|| missing(place, key, "count", "give a number"))?;
    let place = place.within(key.escape_debug());
    let buffer = bytes(&place, "size", size)?;
    if !(1..=MOST_BUFFER).contains(&buffer) {
        let reason = format!("give from 1 to {MOST_BUFFER} bytes");
        return Err(bad(&place, "size", size, &reason));
    }
    let amount = match count {
        Node::Whole(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let amount = amount.ok_or_else(|| bad(&place, "count", count, "give a number from 0"))?;
    match kind {
        Node::Text(kind) if kind == "read" => Ok(Step::Read { bytes: amount, buffer }),
        Node::Text(kind) if kind == "write" => Ok(Step::Write { bytes: amount, buffer }),
        Node::Text(kind) if kind == "chase" => {
            let given = stride.map(|node| bytes(&place, "stride", node)).transpose()?;
            let distance = given.unwrap_or(STRIDE);
            if distance < LEAST_STRIDE || distance > buffer / 2 {
                let reason = format!("give from {LEAST_STRIDE} to half the size, in bytes");
                let node = stride.cloned().unwrap_or(Node::Whole(STRIDE.into()));
                return Err(bad(&place, "stride", &node, &reason));
            }
            // Every other pattern is random to rt-app.
            let sequential = matches!(pattern, Some(Node::Text(name)) if name == "sequential");
            Ok(Step::Chase { hops: amount, buffer, stride: distance, sequential })
        }
        node => Err(bad(&place, "type", node, "give \"read\", \"write\" or \"chase\"")),
    }
}

/// Bytes between two pointers of a chase that says nothing.
const STRIDE: u64 = 64;

fn condition(place: &Place, key: &str, node: &Node) -> Import<(String, String)> {
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
            // As rt-app has it, which looks at how a key begins.
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
