//! Hourglass for C and C++.
//!
//! Owns: the functions behind `include/hourglass.h`, the handles by which C holds things of ours, the
//! border that no panic crosses. Must not: add behaviour to what it shows.
//!
//! Types are named as in the header, so that `tests/interface/abi.rs` can compare both without a table between
//! them. What a function does, from where it may be called, and who frees what is said in the header.
//!
//! # How a C program reads the clock
//!
//! `clock::process` has one clock, a static. `capi` exports where its page lies (`hg_clock_page_v1`, a symbol with the
//! layout's version in its name), and the header reads the page as `timekeeping::page::now` does: turn, slot, counter,
//! fence, turn. Whatever the page does not simply tell is a call, which goes on as Rust's reader does. Progress is
//! written in the same way. Everything else is a function over a handle: a kind, a generation and a place of a
//! table (`table.rs`), pinned while a call goes on, without a lock, so that a signal handler may interrupt a sleeper.
//! Each is behind one border (`error.rs`): no panic leaves it, `errno` is kept, and the thread is not cancelled
//! (`sys::caller`), since a forced unwind through frames of Rust would abort the process.
//!
//! `tests/interface/abi.rs` reads functions and structs out of the sources, writes them down as C, and has the compiler hold
//! them against the header; it wants each function behind the border, and its comment to say threads, signals, errors
//! and who frees what; `nm` says that nothing else is exported. `tests/programs` are compiled with every
//! compiler that is there, and run under the sanitizers.

#![allow(non_camel_case_types)]
#![warn(missing_docs, unreachable_pub)]
#![expect(
    clippy::missing_safety_doc,
    reason = "every function here asks for what the header says of its pointers"
)]

pub mod clock;
pub mod clock_device;
pub mod error;
pub mod fault;
pub mod hardware;
pub mod interrupt;
pub mod job;
pub mod page;
pub mod periodic;
mod pointers;
pub mod progress;
pub mod recorder;
pub mod reserve;
pub mod scheduling;
pub mod service;
pub mod sleep;
pub mod sleeper;
mod table;
pub mod threads;
pub mod timer;
pub mod utc;
pub mod version;
pub mod watch;
pub mod witness;
