//! Whatever Hourglass reads, changed at random; and pairs of programs that must agree.
//!
//! Owns: the targets, the changes, the loop of a worker. Must not: be part of the product.
//!
//! A target is a function of bytes that panics where the product is wrong. It works on a stable compiler, without
//! coverage: what a target answers (mostly the words of an error, without numbers and quotes) stands for it, and
//! an input with a new answer is changed further. `coverage.rs` gives the same functions to libFuzzer.
//!
//! To add a target: its function in a file of `targets/`, its line in [`TARGETS`], words in `words.json`,
//! and a few small inputs in `corpus/NAME/`.

#![forbid(unsafe_code)]

mod change;
mod targets;
pub mod worker;

use std::hash::{DefaultHasher, Hash, Hasher};

pub use change::Mutator;
pub use targets::TARGETS;

/// What stands for an answer: equal answers are equal numbers.
pub type Answer = u64;

pub type Body = Box<dyn FnMut(&[u8]) -> Answer>;

#[derive(Debug)]
pub struct Target {
    pub name: &'static str,
    pub purpose: &'static str,
    /// Inputs besides those of `corpus/NAME/`.
    pub examples: fn() -> Vec<Vec<u8>>,
    /// Makes what all inputs share.
    pub start: fn() -> Body,
}

#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The answer that a text is: its letters outside of quotes, so that it is the same for other values.
#[must_use]
pub fn answer(kind: u64, text: &str) -> Answer {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    for (at, part) in text.split(['\'', '`', '"']).enumerate() {
        if at % 2 == 0 {
            part.bytes().filter(u8::is_ascii_alphabetic).for_each(|byte| byte.hash(&mut hasher));
        }
    }
    hasher.finish()
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
