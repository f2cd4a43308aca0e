//! The simulator against traces worked by hand, and against itself. Against the analyses: `crates/sched/tests/analyses`.

mod classes;
mod everything;
mod global;
mod locks;
mod machine;
mod scripts;
mod smt;
mod support;
