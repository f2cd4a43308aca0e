//! The suite `reserve`: what keeping a promise costs.
//!
//! Owns: the rows of the contract. Must not: decide whether a promise was kept; that is for tests.

mod contention;
mod monitor;
mod progress;
mod startup;
mod stop;

use anyhow::Result;

use crate::document::Row;

pub(crate) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let mut rows = vec![progress::measure(rounds)?];
    rows.extend(monitor::measure(rounds)?);
    rows.extend(contention::measure(rounds));
    rows.extend(stop::measure(rounds)?);
    rows.extend(startup::measure(rounds)?);
    Ok(rows)
}
