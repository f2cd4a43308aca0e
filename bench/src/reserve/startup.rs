//! What `hourglass reserve` adds to a command that does nothing.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::document::Row;
use crate::paired::median;

/// A reservation that any machine has left, and enough for starting a program: one that uses up its
/// budget waits for the next period, which is no cost of `hourglass`.
const RESERVATION: &str = "20ms/100ms";

/// Milliseconds that `hourglass reserve -- true` takes longer than `true`; no row where the machine
/// refuses the reservation, which is said.
pub(super) fn measure(rounds: u32) -> Result<Option<Row>> {
    let binary = crate::workload::binary()?;
    let mut values = Vec::new();
    for _ in 0..rounds {
        let plain = time(&mut Command::new("true"))?;
        let mut command = Command::new(&binary);
        match time(command.args(["reserve", RESERVATION, "--", "true"])) {
            Ok(reserved) => values.push(reserved - plain),
            Err(error) => {
                eprintln!("startup: left out: {error:#}");
                return Ok(None);
            }
        }
    }
    Ok(Some(Row::alone("startup", "hourglass", median(&mut values), "ms").at_most(20.0)))
}

fn time(command: &mut Command) -> Result<f64> {
    let begun = Instant::now();
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = silent.output().context("cannot run it")?;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, said.trim());
    Ok(ms)
}
