//! What a call that failed says: a kind, the operating system's number, a sentence.
//!
//! Owns: `hg_error`, the kinds, the border that no panic crosses ([`guard`], [`answer`]), and behind which
//! the caller's `errno` is kept and its thread not cancelled.
//! Must not: allocate in a call that did not fail.

use std::borrow::Cow;
use std::ffi::c_char;
use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hourglass_clock::timekeeping::{MixedTicks, OpenPageError, SetSourceError};
use hourglass_measure::own_loop::LoopFailure;
use hourglass_queue::QueueError;
use hourglass_runs::store::CreateError;
use hourglass_sys::caller_state;
use hourglass_timer::clock_device::{ArmError, OpenError};
use hourglass_timer::errno_class::ErrnoClass;
use hourglass_timer::event::{DeviceError, ResolutionError};
use hourglass_timer::fault::FaultError;
use hourglass_timer::periodic::{JoinError, SpawnError};
use hourglass_timer::service::ServiceError;
use hourglass_workload::LoopError;

/// Bytes of a sentence with its end.
pub const TEXT: usize = 256;

/// What a function answers: `HG_OK` or a kind of failure.
pub type hg_status = i32;

macro_rules! kinds {
    ($($name:ident = $number:literal, $word:literal;)*) => {
        $(#[doc = concat!("`", stringify!($name), "` of the header.")]
        pub const $name: hg_status = $number;)*

        /// Every kind with its number and its word; what the header is compared with.
        pub const KINDS: &[(&str, hg_status, &str)] =
            &[$((stringify!($name), $number, $word)),*];

        /// A kind's word, with the terminating zero.
        fn word(kind: hg_status) -> &'static str {
            match kind {
                $($number => concat!($word, "\0"),)*
                _ => "unknown\0",
            }
        }
    };
}

kinds! {
    HG_OK = 0, "ok";
    HG_INTERRUPTED = 1, "interrupted";
    HG_TIMEOUT = 2, "timeout";
    HG_EMPTY = 3, "empty";
    HG_ENDED = 4, "ended";
    HG_NULL = 10, "null";
    HG_STALE = 11, "stale";
    HG_INVALID = 12, "invalid";
    HG_BUSY = 13, "busy";
    HG_WRONG_THREAD = 14, "wrong_thread";
    HG_OTHER_VERSION = 15, "other_version";
    HG_PERMISSION = 20, "permission";
    HG_EXHAUSTED = 21, "exhausted";
    HG_UNSUPPORTED = 22, "unsupported";
    HG_OS = 23, "os";
    HG_FORKED = 30, "forked";
    HG_CANCELLED = 31, "cancelled";
    HG_TERMINATED = 32, "terminated";
    HG_CLOCK_SET = 33, "clock_set";
    HG_START_FAILED = 34, "start_failed";
    HG_PAGE = 40, "page";
    HG_MIXED_TICKS = 41, "mixed_ticks";
    HG_PANIC = 50, "panic";
}

/// Why a call failed. The caller's own memory; nothing of it is to be freed.
#[repr(C)]
pub struct hg_error {
    /// A kind.
    pub kind: hg_status,
    /// The operating system's number (`errno(3)`), or 0.
    pub os_errno: i32,
    /// A sentence with what to do, terminated.
    pub text: [c_char; TEXT],
}

/// A failure on its way to the border.
#[derive(Debug)]
pub(crate) struct CapiError {
    pub(crate) kind: hg_status,
    pub(crate) os_errno: i32,
    /// A constant text allocates nothing: a signal handler may meet it.
    pub(crate) text: Cow<'static, str>,
}

impl CapiError {
    pub(crate) fn new(kind: hg_status, text: impl Into<Cow<'static, str>>) -> CapiError {
        CapiError { kind, os_errno: 0, text: text.into() }
    }

    pub(crate) fn null(what: &str) -> CapiError {
        CapiError::new(HG_NULL, format!("`{what}` is NULL: give an address"))
    }

    pub(crate) fn invalid(text: impl Into<Cow<'static, str>>) -> CapiError {
        CapiError::new(HG_INVALID, text)
    }

    pub(crate) fn os(error: &std::io::Error) -> CapiError {
        let os_errno = error.raw_os_error().unwrap_or(0);
        CapiError { kind: of_errno(os_errno), os_errno, text: error.to_string().into() }
    }

    fn of(kind: hg_status, os_errno: i32, error: &impl fmt::Display) -> CapiError {
        let text = { IN_C }
            .iter()
            .fold(error.to_string(), |text, (rust, c)| text.replace(&format!("`{rust}`"), c));
        CapiError { kind, os_errno, text: text.into() }
    }
}

/// What sentences of the crates below name, and how it is called here.
const IN_C: &[(&str, &str)] = &[
    ("Clock::share", "hg_clock_share"),
    ("Clock::now", "hg_now"),
    ("Clock::new", "hg_now"),
    ("Clock::set_source", "hg_clock_set_source"),
    ("ControlFlow::Break", "false"),
];

/// What a number of the operating system means to a caller.
fn of_errno(errno: i32) -> hg_status {
    match ErrnoClass::of_errno(errno) {
        ErrnoClass::Permission => HG_PERMISSION,
        ErrnoClass::Exhausted => HG_EXHAUSTED,
        ErrnoClass::Busy => HG_BUSY,
        ErrnoClass::Invalid => HG_INVALID,
        ErrnoClass::Unsupported => HG_UNSUPPORTED,
        _ => HG_OS,
    }
}

impl From<SetSourceError> for CapiError {
    fn from(error: SetSourceError) -> CapiError {
        CapiError::of(HG_UNSUPPORTED, 0, &error)
    }
}

impl From<MixedTicks> for CapiError {
    fn from(error: MixedTicks) -> CapiError {
        CapiError::of(HG_MIXED_TICKS, 0, &error)
    }
}

impl From<OpenPageError> for CapiError {
    fn from(error: OpenPageError) -> CapiError {
        match &error {
            OpenPageError::NotMapped(os) => {
                let os_errno = os.raw_os_error().unwrap_or(0);
                let text = format!(
                    "the file cannot be mapped ({error}): give a descriptor that hg_clock_share gave, \
                     and that is open"
                );
                CapiError { kind: of_errno(os_errno), os_errno, text: text.into() }
            }
            OpenPageError::OtherVersion { .. } => CapiError::of(HG_OTHER_VERSION, 0, &error),
            OpenPageError::OtherCounter { .. } | OpenPageError::OtherArchitecture { .. } => {
                CapiError::of(HG_UNSUPPORTED, 0, &error)
            }
            _ => CapiError::of(HG_PAGE, 0, &error),
        }
    }
}

impl From<ServiceError> for CapiError {
    fn from(error: ServiceError) -> CapiError {
        let (kind, errno) = match &error {
            ServiceError::Cancelled => (HG_CANCELLED, 0),
            ServiceError::Terminated => (HG_TERMINATED, 0),
            ServiceError::ClockSet => (HG_CLOCK_SET, 0),
            ServiceError::Contended | ServiceError::AnotherSleeps => (HG_BUSY, 0),
            ServiceError::Forked => (HG_FORKED, 0),
            ServiceError::TooManyTimers { .. }
            | ServiceError::TooManyClasses { .. }
            | ServiceError::NoRoom { .. } => (HG_EXHAUSTED, 0),
            ServiceError::Thread { errno, .. } => (of_errno(*errno), *errno),
            ServiceError::Panicked { .. } => (HG_PANIC, 0),
            ServiceError::Engine(_) => (HG_OS, 0),
            _ => (HG_INVALID, 0),
        };
        CapiError::of(kind, errno, &error)
    }
}

impl From<DeviceError> for CapiError {
    fn from(error: DeviceError) -> CapiError {
        let (kind, errno) = match &error {
            DeviceError::SignalsExhausted | DeviceError::TooManyFiles => (HG_EXHAUSTED, 0),
            DeviceError::Missing { .. } | DeviceError::Unsupported(_) => (HG_UNSUPPORTED, 0),
            DeviceError::Denied { .. } => (HG_PERMISSION, 0),
            DeviceError::Busy { .. } => (HG_BUSY, 0),
            DeviceError::NotAttached(_) => (HG_WRONG_THREAD, 0),
            DeviceError::Os { errno, .. } => (of_errno(*errno), *errno),
            _ => (HG_INVALID, 0),
        };
        CapiError::of(kind, errno, &error)
    }
}

impl From<OpenError> for CapiError {
    fn from(error: OpenError) -> CapiError {
        let text = error.to_string();
        match error {
            OpenError::Device { error, .. } => {
                CapiError { text: text.into(), ..CapiError::from(error) }
            }
            OpenError::Unknown { .. } => CapiError::invalid(text),
            _ => CapiError::new(HG_UNSUPPORTED, text),
        }
    }
}

impl From<ResolutionError> for CapiError {
    fn from(error: ResolutionError) -> CapiError {
        CapiError::of(HG_INVALID, 0, &error)
    }
}

impl From<QueueError> for CapiError {
    fn from(error: QueueError) -> CapiError {
        let kind = match &error {
            QueueError::StaleHandle { .. } => HG_STALE,
            QueueError::Full { .. } | QueueError::OutOfMemory { .. } => HG_EXHAUSTED,
            _ => HG_INVALID,
        };
        CapiError::of(kind, 0, &error)
    }
}

impl From<ArmError> for CapiError {
    fn from(error: ArmError) -> CapiError {
        match error {
            ArmError::Timer(error) => error.into(),
            other => CapiError::of(HG_INVALID, 0, &other),
        }
    }
}

impl From<SpawnError> for CapiError {
    fn from(error: SpawnError) -> CapiError {
        let os = |error: &std::io::Error| error.raw_os_error().unwrap_or(0);
        let (kind, errno) = match &error {
            SpawnError::Refused { refusal, .. } => (of_errno(refusal.errno), refusal.errno),
            SpawnError::Affinity { error, .. } | SpawnError::NoThread { error, .. } => {
                (of_errno(os(error)), os(error))
            }
            SpawnError::Watch { error, .. } => match error.downcast_ref::<FaultError>() {
                Some(found) => (fault_kind(found), 0),
                None => (HG_OS, 0),
            },
            SpawnError::OnStart { .. } => (HG_START_FAILED, 0),
            SpawnError::Gone(_) => (HG_PANIC, 0),
            _ => (HG_INVALID, 0),
        };
        CapiError::of(kind, errno, &error)
    }
}

impl From<JoinError> for CapiError {
    fn from(error: JoinError) -> CapiError {
        let kind = match &error {
            JoinError::Panicked { .. } => HG_PANIC,
            JoinError::Forked { .. } => HG_FORKED,
            _ => HG_WRONG_THREAD,
        };
        CapiError::of(kind, 0, &error)
    }
}

fn fault_kind(error: &FaultError) -> hg_status {
    match error {
        FaultError::SignalsExhausted => HG_EXHAUSTED,
        FaultError::Watched | FaultError::Handled | FaultError::SignalTaken(_) => HG_BUSY,
        FaultError::Gone => HG_STALE,
        FaultError::Forked => HG_FORKED,
        FaultError::CannotRestore { errno }
        | FaultError::Scheduling { errno }
        | FaultError::Os { errno } => of_errno(*errno),
        FaultError::Ended(_) => HG_ENDED,
        _ => HG_INVALID,
    }
}

impl From<FaultError> for CapiError {
    fn from(error: FaultError) -> CapiError {
        let errno = match &error {
            FaultError::CannotRestore { errno }
            | FaultError::Scheduling { errno }
            | FaultError::Os { errno } => *errno,
            _ => 0,
        };
        CapiError::of(fault_kind(&error), errno, &error)
    }
}

impl From<LoopFailure> for CapiError {
    fn from(error: LoopFailure) -> CapiError {
        let kind = match &error {
            LoopFailure::Loop(LoopError::NotPositive(_)) => HG_INVALID,
            LoopFailure::Loop(LoopError::Counter(_)) => HG_UNSUPPORTED,
            LoopFailure::Loop(LoopError::Memory { .. }) | LoopFailure::Memory { .. } => {
                HG_EXHAUSTED
            }
            LoopFailure::Folder(error) => return of_folder(error),
        };
        CapiError::of(kind, 0, &error)
    }
}

/// Why a folder cannot be made: a place that cannot be meant, or what the system said.
fn of_folder(error: &CreateError) -> CapiError {
    match error {
        CreateError::NotWritable { source, .. } | CreateError::Io { source, .. } => {
            let os_errno = source.raw_os_error().unwrap_or(0);
            CapiError::of(of_errno(os_errno), os_errno, error)
        }
        _ => CapiError::of(HG_INVALID, 0, error),
    }
}

/// Writes into text that ends with a zero, cut at a character.
pub(crate) fn put_text<const N: usize>(into: &mut [c_char; N], text: &str) {
    let mut end = text.len().min(N.saturating_sub(1));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = text.as_bytes()[..end].iter().chain(std::iter::repeat(&0));
    // `c_char` has a sign on some processors.
    into.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from as c_char);
}

/// Writes a failure to `error`, unless that is NULL.
///
/// # Safety
/// `error` is NULL or the address of an `hg_error` that no other thread uses meanwhile.
unsafe fn tell(error: *mut hg_error, failure: &CapiError) {
    if error.is_null() {
        return;
    }
    // SAFETY: not NULL, and the caller promises the rest; what was in it needs not be initialised.
    unsafe {
        (&raw mut (*error).kind).write(failure.kind);
        (&raw mut (*error).os_errno).write(failure.os_errno);
        (&raw mut (*error).text).write([0; TEXT]);
        put_text(&mut (*error).text, &failure.text);
    }
}

/// The border: does `work`, tells what failed, and lets no panic out. `errno` is as it was, and the thread is
/// not cancelled in here: a forced unwind would abort the process.
///
/// # Safety
/// `error` is NULL or the address of an `hg_error` that no other thread uses meanwhile.
pub(crate) unsafe fn guard(
    error: *mut hg_error,
    work: impl FnOnce() -> Result<(), CapiError>,
) -> hg_status {
    let _kept = caller_state::keep();
    let done = catch_unwind(AssertUnwindSafe(work));
    let failure = match done {
        Ok(Ok(())) => return HG_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let mut text = String::from("a defect of Hourglass, please report it");
            if let Some(said) = panic.downcast_ref::<&str>() {
                let _ = write!(text, ": {said}");
            } else if let Some(said) = panic.downcast_ref::<String>() {
                let _ = write!(text, ": {said}");
            }
            std::mem::forget(panic);
            CapiError::new(HG_PANIC, text)
        }
    };
    // SAFETY: what the caller promises is what is asked for.
    unsafe { tell(error, &failure) };
    failure.kind
}

/// The border of calls that answer something else: `otherwise` for a panic. The rest as [`guard`].
pub(crate) fn answer<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    let _kept = caller_state::keep();
    reading(otherwise, work)
}

/// The border of reads of the clock, which are to cost nothing more than those of Rust: the clock itself keeps
/// `errno`, and the thread from being cancelled, where it calibrates.
pub(crate) fn reading<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        std::mem::forget(panic);
        otherwise
    })
}

/// A kind's word, for logs: never NULL, never to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn hg_status_name(status: hg_status) -> *const c_char {
    word(status).as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> hg_error {
        hg_error { kind: -1, os_errno: -1, text: [1; TEXT] }
    }

    fn text(error: &hg_error) -> String {
        error.text.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect()
    }

    #[test]
    fn a_panic_stays_inside() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let mut error = empty();
        // SAFETY: the address of a local that has no other reference.
        let status = unsafe { guard(&raw mut error, || panic!("in the {}", "test")) };
        let answered = answer(7, || panic!("again"));
        std::panic::set_hook(hook);
        assert_eq!((status, error.kind, answered), (HG_PANIC, HG_PANIC, 7));
        assert!(text(&error).ends_with("in the test"), "{}", text(&error));
    }

    #[test]
    fn a_failure_is_reported_or_not() {
        let fail = || Err(CapiError::os(&std::io::Error::from_raw_os_error(1)));
        let mut error = empty();
        // SAFETY: as above.
        let status = unsafe { guard(&raw mut error, fail) };
        assert_eq!((status, error.kind, error.os_errno), (HG_PERMISSION, HG_PERMISSION, 1));
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { guard(std::ptr::null_mut(), fail) }, HG_PERMISSION);
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let mut error = empty();
        put_text(&mut error.text, &"\u{00e9}".repeat(TEXT));
        assert_eq!(text(&error).len(), 2 * (TEXT / 2 - 1) + (TEXT / 2 - 1) * 2);
        assert_eq!(error.text[TEXT - 1], 0);
    }

    /// A page from elsewhere: another machine's, another version's, no page at all.
    #[test]
    fn pages_are_refused_by_kind() {
        use hourglass_clock::timekeeping::SourceId;
        let refused = [
            (OpenPageError::OtherArchitecture { found: 243 }, HG_UNSUPPORTED, "243"),
            (OpenPageError::OtherCounter { found: SourceId::HPET }, HG_UNSUPPORTED, "hpet"),
            (OpenPageError::OtherVersion { found: 9, bytes: 1 }, HG_OTHER_VERSION, "9"),
            (OpenPageError::OtherTimeline { apart_ns: 77 }, HG_PAGE, "77"),
            (OpenPageError::NotAPage { found: 5 }, HG_PAGE, "5"),
            (OpenPageError::NotSealed, HG_PAGE, "sealed"),
            (OpenPageError::Truncated { found: 3 }, HG_PAGE, "3"),
        ];
        for (error, kind, named) in refused {
            let failure = CapiError::from(error);
            assert_eq!(failure.kind, kind, "{failure:?}");
            assert!(failure.text.contains(named), "{failure:?}");
            // What it names is to be found in the header.
            assert!(!failure.text.contains("::"), "{failure:?}");
        }
        let os = std::io::Error::from_raw_os_error(13);
        let failure = CapiError::from(OpenPageError::NotMapped(os));
        assert_eq!((failure.kind, failure.os_errno), (HG_PERMISSION, 13));
    }

    #[test]
    fn kinds_have_numbers_and_words_of_their_own() {
        for (at, (_, number, said)) in KINDS.iter().enumerate() {
            assert!(KINDS[..at].iter().all(|(_, n, s)| n != number && s != said));
            assert_eq!(word(*number), format!("{said}\0"));
        }
    }
}
