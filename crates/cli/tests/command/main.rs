//! The command as a script sees it. Tests here need no process of their own: they change neither the environment nor the
//! folder, signals or CPUs of this one, and reserve no CPU time beyond a moment. Those that do reserve are in
//! `reservations`.

mod bounds;
mod cache_cost;
#[path = "../calls/mod.rs"]
mod calls;
mod check;
mod clocks;
mod completions;
mod contract;
mod diff;
mod doctor;
mod documents;
mod example;
#[cfg(target_arch = "x86_64")]
mod faults;
mod kernel_trace;
mod keys;
mod limits;
mod load;
mod model;
mod paper;
mod peers;
mod predict;
mod premises;
#[path = "../processes/mod.rs"]
mod processes;
mod programs;
mod progress;
mod report;
mod reserve_from;
mod run;
mod signals;
mod simulate;
mod sweep;
mod watch;
