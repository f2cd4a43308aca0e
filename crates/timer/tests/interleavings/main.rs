//! Every order in which threads can meet (loom).

mod faults;
mod service;
