//! The simulator against the analyses, against traces worked by hand, and against itself.

mod blocking;
mod bounds;
mod classes;
mod everything;
mod global;
mod locks;
mod machine;
mod scripts;
mod servers;
mod smt;
mod support;
