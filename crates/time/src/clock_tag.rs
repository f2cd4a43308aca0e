//! Which clock a time point was read from, as a type.

/// A clock as a type: the tag of the instants read from it.
///
/// A tag has no values; it only keeps the instants of two clocks apart while compiling. The trait
/// is open, so that a clock not known here (a PTP hardware clock, another machine's) can have
/// instants of its own. An implementation MUST
/// - stand for exactly one timeline: instants with this tag may be subtracted from each other;
/// - name it in lower case without spaces, as the documents name sources (`monotonic`, `tai`).
///
/// ```
/// use hourglass_time::{ClockTag, Instant, Span};
///
/// /// The clock of the network card.
/// enum Ptp0 {}
///
/// impl ClockTag for Ptp0 {
///     const NAME: &'static str = "ptp0";
/// }
///
/// let seen = Instant::<Ptp0>::from_nanos(1_500);
/// assert_eq!(seen.to_string(), "ptp0+1.5us");
/// assert_eq!(seen.checked_since(Instant::ZERO), Some(Span::from_nanos(1_500)));
/// ```
pub trait ClockTag: 'static {
    /// The clock's name.
    const NAME: &'static str;
}

macro_rules! tags {
    ($($(#[$doc:meta])* $tag:ident = $name:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $tag {}

        impl ClockTag for $tag {
            const NAME: &'static str = $name;
        }
    )*};
}

tags! {
    /// `CLOCK_MONOTONIC`: since some moment before the machine's start, its rate steered to true
    /// seconds, standing still in suspend. The coarse clock is on the same timeline.
    Monotonic = "monotonic";

    /// `CLOCK_MONOTONIC_RAW`: as [`Monotonic`], but its rate is the hardware's own.
    MonotonicRaw = "monotonic_raw";

    /// `CLOCK_BOOTTIME`: as [`Monotonic`], but it runs on in suspend.
    Boottime = "boottime";

    /// `CLOCK_REALTIME`: since 1970-01-01T00:00:00 UTC in days of 86,400 s; can be set, and
    /// repeats or slows at a leap second. The coarse clock is on the same timeline.
    Realtime = "realtime";

    /// `CLOCK_TAI`: since 1970-01-01T00:00:00 TAI, without leap seconds; equal to [`Realtime`] on
    /// machines whose kernel was not given the difference.
    Tai = "tai";

    /// The CPU time that a thread has received.
    ThreadCpu = "thread_cpu";

    /// The CPU time that a process has received.
    ProcessCpu = "process_cpu";

    /// A processor's own counter (TSC, CNTVCT) or HPET: its ticks in nanoseconds since its zero,
    /// neither shifted nor steered.
    Counter = "counter";

    /// The simulated clock: since the simulation's beginning.
    Sim = "sim";
}
