//! Timers and timeouts in order of expiry.
//!
//! Owns: which timer is next, and the memory of timers. [`Queue`] is for **timers**, which usually
//! fire and want to be exact: ordered to the nanosecond, first in, first out. [`TimeoutWheel`] is for
//! **timeouts**, which are nearly always cancelled and may be late: constant time. (The paper's
//! two kinds: "Hrtimers and Beyond", 2006, section 4.2.)
//! Must not: read a clock or arm a device; time is passed in. Take a lock: a queue belongs to one
//! thread.
//!
//! A [`Queue`] has one of several orders behind the trait [`PriorityStructure`]: [`Heap`], the default, or
//! [`RedBlackTree`], the paper's. [`reference`](mod@reference) has a sorted list, the slow twin that
//! the others are tested against, and the paper's cascading wheel, which shows what they avoid.

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

mod arena;
mod error;
mod heap;
mod lists;
mod order;
mod red_black;
pub mod reference;
mod timers;
mod wheel;

pub use arena::Handle;
pub use error::QueueError;
pub use heap::Heap;
pub use order::{Key, MinEntry, PriorityStructure};
pub use red_black::RedBlackTree;
pub use timers::{ExpiredEntry, Queue};
pub use wheel::TimeoutWheel;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
