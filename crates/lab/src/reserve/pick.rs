//! Which backends are asked, and in which order.

use hourglass_reserve::admission::Refusal;
use hourglass_reserve::backend::deadline::Deadline;
use hourglass_reserve::backend::{Backend as _, Request, Reserved};
use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::target::Target;

use super::Backend;

/// A backend that took the reservation, and why this one.
#[derive(Debug)]
pub(super) struct Picked {
    pub(super) reserved: Box<dyn Reserved>,
    pub(super) kind: Backend,
    pub(super) guarantee: bool,
    pub(super) reason: String,
    /// What those said that were asked before it.
    pub(super) refused: Vec<Refusal>,
}

/// Asks backends until one takes it.
pub(super) fn reserve(
    asked: Option<Backend>,
    target: &Target,
    request: &Request,
    guardian: &Guardian,
) -> Result<Picked, Vec<Refusal>> {
    let _ = guardian;
    let backend = Deadline;
    match backend.reserve(target, request) {
        Ok(reserved) => Ok(Picked {
            reserved,
            kind: backend.kind(),
            guarantee: backend.guarantee(),
            reason: asked.map_or("the kernel enforces it".to_owned(), |_| "asked for".to_owned()),
            refused: Vec::new(),
        }),
        Err(refusal) => Err(vec![refusal]),
    }
}
