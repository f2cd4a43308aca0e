//! Decoders of others, kept from taking the program down.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a decoder on input that may be damaged and turns its panics into errors.
///
/// The Parquet and HDR decoders return errors for most damage, but index and assert in places on
/// what they have just read. A user who opens a damaged file must get a message, not a backtrace.
/// The caller must not use anything again that `decode` could have left in pieces. The panic hook
/// still runs first; it is the program's, so whether it prints is not decided here.
pub(crate) fn guarded<T, E>(
    decode: impl FnOnce() -> Result<T, E>,
    on_panic: impl FnOnce(String) -> E,
) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        let reason = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (None, Some(text)) => text.clone(),
            (None, None) => "unknown".to_owned(),
        };
        Err(on_panic(format!("the decoder gave up ({reason})")))
    })
}
