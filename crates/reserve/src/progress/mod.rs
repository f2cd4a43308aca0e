//! How far reserved work is, as time of a processor that is not shared.

/// Tells progress in one job (Inoue et al., section 3.2).
///
/// MUST: never say more than was done: what is not known counts as not done. MUST NOT block or
/// allocate. What goes backwards counts as no progress, and is counted.
pub trait ProgressSource: Send {
    /// A job begins with so much reserved, ns of single-thread time.
    fn begin(&mut self, reserved_ns: u64);
    /// What is done of it now, ns, 0 to what is reserved; the reserved amount means all is done.
    fn done_ns(&mut self) -> u64;
}
