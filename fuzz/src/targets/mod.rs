//! The targets.

#[cfg(feature = "c")]
mod c_programs;
mod folders;
mod pages;
mod pairs;
mod pictures;
mod texts;

use crate::{Answer, Body, Target, answer, text};

pub const TARGETS: &[Target] = &[
    texts::SPAN,
    texts::WORDS,
    texts::TOML,
    texts::JSON,
    texts::RT_APP,
    texts::SCHEDCAT,
    texts::SIMSO,
    texts::MAST,
    texts::AMALTHEA,
    texts::SAG,
    texts::CORPUS,
    texts::WORKLOAD,
    folders::MANIFEST,
    folders::TRACE,
    folders::SAMPLES,
    folders::KERNEL,
    folders::HDR_LOG,
    pages::RING,
    pages::EVENT_FORMAT,
    pages::CLOCK,
    pages::PROGRESS,
    pages::CLOCK_BOUND,
    pages::CHRONYD,
    pages::PTP4L,
    pictures::PICTURES,
    pairs::QUEUE,
    pairs::WHEEL,
    pairs::ANALYSIS,
    pairs::SIMULATION,
    #[cfg(feature = "c")]
    c_programs::CALLS,
    #[cfg(feature = "c")]
    c_programs::PAGE,
];

fn no_examples() -> Vec<Vec<u8>> {
    Vec::new()
}

/// A target that takes texts; all bytes that are no UTF-8 have one answer.
fn of_text(take: impl Fn(&str) -> Answer + 'static) -> Body {
    Box::new(move |bytes| text(bytes).map_or(0, &take))
}

/// The answer to what was read, or to what was refused: a single line without control characters, and not an
/// endless one.
fn of_result<T>(kind: u64, result: Result<T, impl std::fmt::Display>) -> Answer {
    match result {
        Ok(_) => kind,
        Err(error) => {
            let said = error.to_string();
            assert!(
                !said.is_empty() && said.len() < LONGEST_MESSAGE,
                "a message of {} bytes",
                said.len()
            );
            answer(kind, &said)
        }
    }
}

/// A message with parts of the input in it; a name may be as long as the input.
const LONGEST_MESSAGE: usize = 1 << 18;
