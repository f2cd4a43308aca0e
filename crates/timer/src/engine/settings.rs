//! What can be chosen about an engine.

use hourglass_time::Span;

use crate::event::Period;

/// How an engine works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The tick that it is bound to without high resolution; where the device has only some
    /// periods, the longest that is not above it.
    pub tick: Period,
    /// Granules of the wheel of timeouts, at least 2 ns; taken down to a power of two.
    pub timeouts: Span,
}

impl EngineConfig {
    /// 250 ticks a second, as most kernels; timeouts in granules of 65.5 us.
    pub const DEFAULT: EngineConfig = EngineConfig { tick: TICK, timeouts: Span::from_micros(100) };
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
