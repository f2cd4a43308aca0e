//! What can be chosen about an engine.

use hourglass_time::Span;

use crate::event::Period;

/// How an engine works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The tick that it is bound to without high resolution; a finer one where a service wants
    /// that, the longest that is not above it where the device has only some.
    pub tick: Period,
    /// Granules of the wheel of timeouts, at least 2 ns; taken down to a power of two.
    pub timeouts: Span,
    /// A callback that takes longer is counted as a long one.
    pub long_callback: Span,
}

impl EngineConfig {
    /// 250 ticks a second, as most kernels; timeouts in granules of 65.5 us; callbacks are long
    /// above 100 us, which is more than a wake-up costs.
    pub const DEFAULT: EngineConfig = EngineConfig {
        tick: TICK,
        timeouts: Span::from_micros(100),
        long_callback: Span::from_micros(100),
    };
}

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig::DEFAULT
    }
}

/// 4 ms.
const TICK: Period = match Period::new(4_000_000, 1) {
    Ok(period) => period,
    Err(_) => Period::NANOSECOND,
};
