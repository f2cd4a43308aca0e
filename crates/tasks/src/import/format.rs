//! Which of the formats a text has.
//!
//! Owns: telling them apart. Must not: read them.

use crate::keys::KeyResult;
use crate::node::Node;
use crate::{import, rt_app};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// [`TaskSet::from_toml`](crate::TaskSet::from_toml).
    Toml,
    /// [`TaskSet::from_json`](crate::TaskSet::from_json).
    Json,
    /// [`TaskSet::from_rt_app`](crate::TaskSet::from_rt_app).
    RtApp,
    /// [`corpus::read`](crate::corpus::read).
    Corpus,
    /// SchedCAT's XML; like those below, [`TaskSet::from_foreign`](crate::TaskSet::from_foreign).
    SchedCat,
    SimSo,
    Mast,
    /// AMALTHEA's `.amxmi`.
    Amalthea,
    /// A job set of a schedule-abstraction graph, CSV.
    Sag,
    /// Known, and not read: what it is, and what to do.
    Unread(&'static str),
}

impl Format {
    /// The format of `text`, by its beginning; of JSON objects, rt-app's is the one with `tasks`
    /// and without `task`, of XML the root element tells. Whatever looks like nothing else is TOML, whose reader then says what
    /// is wrong.
    #[must_use]
    pub fn of(text: &str) -> Format {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with('<') {
            return import::of_xml(start).unwrap_or(Format::Unread(
                "XML of a kind that it does not know; it reads that of SchedCAT, SimSo and AMALTHEA",
            ));
        }
        if import::looks_like_mast(start) {
            return Format::Mast;
        }
        if let Some(format) = import::sag_format(start) {
            return format;
        }
        if start.starts_with("/*") || start.starts_with("//") {
            return Format::RtApp;
        }
        let after_bracket = |bracket| start.strip_prefix(bracket).map(str::trim_start);
        match (after_bracket('{'), after_bracket('[')) {
            (Some(_), _) => of_object(text).unwrap_or_else(|_| of_broken_object(text)),
            // A table of TOML has its name there, or another bracket.
            (_, Some(rest)) if rest.starts_with(['{', ']']) => Format::Corpus,
            _ => by_first_line(start),
        }
    }
}

fn has_table(text: &str, name: &str) -> bool {
    let header = format!("[[{name}]]");
    text.lines().any(|line| line.trim_start().starts_with(&header))
}

/// The format of a text without brackets: TOML, unless its first line cannot be TOML.
fn by_first_line(text: &str) -> Format {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("");
    let is_toml = first.contains(['=', '[']) || first.starts_with(['"', '\'']);
    let words = first.split_whitespace().count();
    match () {
        // A file of the command `run`: its threads are no tasks.
        () if is_toml && has_table(text, "thread") && !has_table(text, "task") => Format::Unread(
            "a workload file, which hourglass run runs; a file of tasks has a table [[task]] for each",
        ),
        () if is_toml => Format::Toml,
        // As in `jobset:`.
        () if first.strip_suffix(':').is_some_and(|key| !key.is_empty()) => {
            Format::Unread("YAML; it reads job sets of SAG as CSV, and TOML or JSON of its own")
        }
        () if first.contains(',') => Format::Unread(
            "CSV that is no job set; one of SAG has the columns Task ID, Job ID, Arrival min, \
             Arrival max, Cost min, Cost max, Deadline, Priority",
        ),
        // A key of TOML is one word, or in quotes.
        () if words > 1 => Format::Unread(
            "no file of tasks; it reads TOML, in which each line is KEY = VALUE, JSON, and files of \
             rt-app, SchedCAT, SimSo, MAST, AMALTHEA and SAG",
        ),
        () => Format::Toml,
    }
}

/// The format of a text that is not a valid object, such as a truncated file: its reader then says
/// where it breaks, and rt-app's skips what is not JSON.
fn of_broken_object(text: &str) -> Format {
    let has = |key: &str| text.contains(key);
    let is_rt_app = has("\"tasks\"") || has("\"global\"") || has("\"resources\"");
    if is_rt_app && !has("\"task\"") { Format::RtApp } else { Format::Json }
}

fn of_object(text: &str) -> KeyResult<Format> {
    let node = crate::read::parse_json(&rt_app::plain(text)?)?;
    let has = |key: &str| match &node {
        Node::Table(entries) => entries.iter().any(|(name, _)| name == key),
        _ => false,
    };
    // Parts of rt-app's files are named by what they lack.
    let is_rt_app = has("tasks") || has("global") || has("resources");
    Ok(if is_rt_app && !has("task") { Format::RtApp } else { Format::Json })
}
