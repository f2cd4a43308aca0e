//! Whether an engine may be precise, or is bound to its tick.
//!
//! *Hrtimers and Beyond*, section 8: high resolution begins when both layers have announced fit
//! hardware, a clock source and a clock event source; without either the engine works as before.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hourglass_clock::TrustReport;
use hourglass_sys::no_stop::NoStopGuard;

use super::registry::{EngineId, Registry, Subscription};

/// How an engine works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// Everything waits for the next tick.
    TickBound,
    /// The device is programmed for each expiry.
    High,
}

impl Resolution {
    /// Name of the resolution in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Resolution::TickBound => "tick_bound",
            Resolution::High => "high",
        }
    }
}

/// What is missing for high resolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowResReason {
    /// The engine has no one-shot device of its own.
    #[error("the engine has no one-shot device of its own")]
    NoDevice,
    /// It has one that was not tried out yet, or was late when it was.
    #[error("the engine's device was not validated")]
    DeviceUntried,
    /// No clock source was announced.
    #[error("no clock source was validated yet")]
    NoSource,
    /// The clock source was lost, or found wanting.
    #[error("the clock source is not fit: {0}")]
    SourceLost(String),
}

/// Is called with every change, in order, in the thread that caused it. It must not announce
/// anything to the [`HighRes`] that calls it; it may call [`HighRes::resolution`].
pub type ResolutionListener = Box<dyn Fn(Resolution) + Send + Sync>;

/// The decision for one engine, made anew with every announcement of either layer.
///
/// Tick-bound until a device of the engine's own that can be programmed is registered and found
/// valid *and* a clock source was announced; again when either is lost.
pub struct HighRes {
    engine: EngineId,
    registry: Arc<Registry>,
    subscription: Mutex<Option<Subscription>>,
    high: AtomicBool,
    state: Mutex<State>,
}

struct State {
    source: Result<(), LowResReason>,
    device: Result<(), LowResReason>,
    listeners: Vec<ResolutionListener>,
}

impl HighRes {
    /// Follows the devices of `registry` for `engine`.
    #[must_use]
    pub fn follow(registry: &Arc<Registry>, engine: EngineId) -> Arc<HighRes> {
        let this = Arc::new(HighRes {
            engine,
            registry: Arc::clone(registry),
            subscription: Mutex::new(None),
            high: AtomicBool::new(false),
            state: Mutex::new(State {
                source: Err(LowResReason::NoSource),
                device: Err(LowResReason::NoDevice),
                listeners: Vec::new(),
            }),
        });
        let weak: Weak<HighRes> = Arc::downgrade(&this);
        let subscription = registry.subscribe(Arc::new(move |_| {
            if let Some(this) = weak.upgrade() {
                this.update(|_| ());
            }
        }));
        *this.subscription.lock().unwrap_or_else(PoisonError::into_inner) = Some(subscription);
        // What was registered before.
        this.update(|_| ());
        this
    }

    /// How the engine works now; one load.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        match self.high.load(Ordering::Acquire) {
            true => Resolution::High,
            false => Resolution::TickBound,
        }
    }

    /// What is missing for high resolution. Both layers may lack something; the device's reason
    /// comes first.
    ///
    /// # Errors
    /// [`LowResReason`]: what it is.
    pub fn why(&self) -> Result<(), LowResReason> {
        let state = self.lock();
        state.device.clone().and(state.source.clone())
    }

    /// The clock layer announces a source that it validated ([`super::validate_source`]).
    pub fn source_valid(&self) {
        self.update(|state| state.source = Ok(()));
    }

    /// The clock layer lost its source for high resolution; `reason` is one clause.
    pub fn source_lost(&self, reason: &str) {
        self.update(|state| state.source = Err(LowResReason::SourceLost(reason.to_owned())));
    }

    /// The clock layer announces what a clock says of itself ([`hourglass_clock::Clock::trust`]).
    pub fn judge_source(&self, trust: &TrustReport) {
        if trust.trusted { self.source_valid() } else { self.source_lost(&trust.reason) }
    }

    /// Tells `listener` of every change from now on.
    pub fn subscribe(&self, listener: ResolutionListener) {
        self.lock().listeners.push(listener);
    }

    /// Takes up an announcement and looks at the devices, both under the lock, so that the last
    /// caller sees the newest state.
    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let devices = self.registry.distribution(self.engine);
        state.device = match (devices.next_event, devices.next_event_is_valid) {
            (None, _) => Err(LowResReason::NoDevice),
            (Some(_), false) => Err(LowResReason::DeviceUntried),
            (Some(_), true) => Ok(()),
        };
        let high = state.device.is_ok() && state.source.is_ok();
        if self.high.swap(high, Ordering::AcqRel) != high {
            let resolution = self.resolution();
            state.listeners.iter().for_each(|listener| listener(resolution));
        }
    }

    fn lock(&self) -> NoStopGuard<MutexGuard<'_, State>> {
        NoStopGuard::new(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for HighRes {
    fn drop(&mut self) {
        let subscription = self.subscription.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(subscription) = subscription.take() {
            self.registry.unsubscribe(subscription);
        }
    }
}

impl fmt::Debug for HighRes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HighRes")
            .field("engine", &self.engine)
            .field("resolution", &self.resolution())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests/high_res.rs"]
mod tests;
