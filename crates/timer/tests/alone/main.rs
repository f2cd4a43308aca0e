//! Tests that need a process for themselves: they fork it, take its signals away, set its handlers,
//! count its threads and files, or keep a CPU from all other threads.
//!
//! Each starts this program once more with that test alone, one after the other.

#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod faults_of_the_process;
mod leaves_nothing;
mod process;
mod service_alone;
mod signals;
mod starved;
mod stuck_locks;

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use hourglass_sys::allocation::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ALONE: &str = "HOURGLASS_TEST_ALONE";

/// Runs `test`, whose name is `name`, in a process of its own.
fn in_own_process(name: &str, test: impl FnOnce()) {
    in_own_process_with(name, &[], test);
}

fn in_own_process_with(name: &str, variables: &[(&str, &str)], test: impl FnOnce()) {
    static ONE: Mutex<()> = Mutex::new(());
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Where the processor is emulated these words start a program.
    let runner = std::env::var("HOURGLASS_TEST_RUNNER").unwrap_or_default();
    let own = std::env::current_exe().unwrap().into_os_string();
    let mut words = runner.split_whitespace().map(Into::into).chain([own]);
    let mut again = Command::new(words.next().unwrap());
    again.args(words).args(["--exact", name, "--nocapture"]);
    let output = again.env(ALONE, "1").envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    // A name that selects no test would pass, too.
    assert!(output.status.success() && said.contains("1 passed"), "{name}: {}", output.status);
}
