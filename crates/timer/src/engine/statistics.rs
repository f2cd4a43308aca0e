//! What an engine did, and which callbacks delayed others.

use super::TimerId;

/// What an engine did so far. Numbers only: reading and keeping them allocates nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Waits that returned.
    pub wakes: u64,
    /// Polls of the timers.
    pub looks: u64,
    /// Ticks of a tick-bound engine at which nothing was due, so that it slept on (*Hrtimers and
    /// Beyond*, section 9: dynamic tick). 0 in high resolution, which has no tick.
    pub ticks_skipped: u64,
    /// Timers and timeouts that expired.
    pub fired: u64,
    /// The most that one began to be handled after its latest time, ns of device time. One that was
    /// due before the last look that left nothing behind was armed after it, and counts from
    /// there; one that its clock jumped over (set, or the machine suspended) counts from when that
    /// was seen.
    pub worst_late_ns: u64,
    /// Times that the device was lost or exchanged.
    pub device_changes: u64,
    /// Times that the clocks could not be watched for being set, for want of file descriptors or
    /// threads: until it succeeds the engine looks at them each tick, and does not know of a
    /// setting that is over ([`ClockSetPolicy::Expire`](super::ClockSetPolicy::Expire)).
    pub watch_failures: u64,
    /// The longest callback, ns.
    pub longest_callback_ns: u64,
    /// Timer of the longest callback.
    pub longest_callback: Option<TimerId>,
    /// Callbacks longer than [`Settings::long_callback`](super::EngineConfig::long_callback).
    pub long_callbacks: u64,
    /// Timers and timeouts that were due by the end of a long callback, and expired after it.
    pub delayed: u64,
    /// The most that one of those waited for the callback, ns.
    pub worst_delay_ns: u64,
}

/// The last long callback.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongCallback {
    begin_ns: u64,
    end_ns: u64,
}

impl EngineStatistics {
    /// A callback of `id` took from `begin_ns` to `end_ns`.
    pub(super) fn callback(
        &mut self,
        id: TimerId,
        (begin_ns, end_ns): (u64, u64),
        long_ns: u64,
        last: &mut LongCallback,
    ) {
        let took_ns = end_ns.saturating_sub(begin_ns);
        if took_ns > self.longest_callback_ns {
            self.longest_callback_ns = took_ns;
            self.longest_callback = Some(id);
        }
        if took_ns > long_ns {
            self.long_callbacks += 1;
            // One after another they delay as one.
            let begin_ns = if begin_ns == last.end_ns { last.begin_ns } else { begin_ns };
            *last = LongCallback { begin_ns, end_ns };
        }
    }

    /// A timer that was to expire by `due_ns`, device time, is handled from `begin_ns` on.
    pub(super) fn fired(&mut self, due_ns: u64, begin_ns: u64, last: &LongCallback) {
        self.fired += 1;
        self.worst_late_ns = self.worst_late_ns.max(begin_ns.saturating_sub(due_ns));
        if due_ns < last.end_ns {
            self.delayed += 1;
            let waited_ns = last.end_ns - due_ns.max(last.begin_ns);
            self.worst_delay_ns = self.worst_delay_ns.max(waited_ns);
        }
    }
}
