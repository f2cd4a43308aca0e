//! The document `hourglass.reserve-clean/1`: what reservations that were killed had left, and what was undone of it.

use serde::{Deserialize, Serialize};

/// Name and version of the document.
pub const RESERVE_CLEAN_SCHEMA: &str = "hourglass.reserve-clean/1";

/// What was found, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanDocument {
    /// Always [`RESERVE_CLEAN_SCHEMA`].
    pub schema: String,
    /// What was found, one entry for each record, for each control group without one, and for each entry of
    /// `/run/hourglass/claims` whose process is gone.
    pub found: Vec<CleanFound>,
    /// How many of them could not be undone, or not in full; unreadable records of the calling user count.
    pub left: u64,
}

/// One record of changes, one control group whose name is that of a reservation's, or one entry of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanFound {
    /// The file of the record or the entry, or the folder of the group.
    pub path: String,
    /// The user to whom it belongs, by number.
    pub user: u32,
    /// The process that made it, by number; 0 if that is not known.
    pub maker: u32,
    /// The name of that process; empty if that is not known.
    pub name: String,
    /// `undone`; `alive` (its reservation is in force, or its guardian is undoing it: it was left alone); `left`
    /// (something could not be undone); or `unreadable` (no record of this version of hourglass: it was left alone).
    pub state: String,
    /// What was done, in this order.
    pub steps: Vec<CleanStep>,
}

/// One change, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanStep {
    /// What undoes it, in words.
    pub what: String,
    /// `undone`; `gone` (the thread, process or file is no longer there); `elsewhere` (its process has that number in
    /// another PID namespace); or `refused`.
    pub outcome: String,
    /// Why it was refused; null otherwise.
    pub cause: Option<String>,
}
