//! Decoders of others, kept from taking the program down.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Decoders that this thread is within.
    static WITHIN: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread runs a decoder whose panics become errors. For a program's panic hook, which
/// then has nothing to say.
pub fn is_decoding() -> bool {
    WITHIN.get() > 0
}

/// Runs a decoder on input that may be damaged and turns its panics into errors.
///
/// The Parquet and HDR decoders return errors for most damage, but index and assert in places on
/// what they have just read. A user who opens a damaged file must get a message, not a backtrace.
/// The caller must not use anything again that `decode` could have left in pieces. The panic hook
/// still runs first; it is the program's, which asks [`is_decoding`].
pub(crate) fn guarded<T, E>(
    decode: impl FnOnce() -> Result<T, E>,
    on_panic: impl FnOnce(String) -> E,
) -> Result<T, E> {
    WITHIN.set(WITHIN.get() + 1);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    WITHIN.set(WITHIN.get() - 1);
    decoded.unwrap_or_else(|panic| {
        let reason = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (None, Some(text)) => text.clone(),
            (None, None) => "unknown".to_owned(),
        };
        Err(on_panic(format!("the decoder gave up ({reason})")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program's panic hook asks while the decoder panics.
    #[test]
    fn a_decoder_is_known_as_one_while_it_runs() {
        let nested = || guarded(|| Ok::<_, String>(is_decoding()), |reason| reason);
        assert_eq!(guarded(nested, |reason| reason), Ok(true));
        assert!(!is_decoding());
        let failed = guarded(|| -> Result<(), String> { panic!("damaged") }, |reason| reason);
        assert_eq!(failed, Err("the decoder gave up (damaged)".to_owned()));
        assert!(!is_decoding());
    }
}
