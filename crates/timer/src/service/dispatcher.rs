//! What the engine's thread does about its timers.
//!
//! Owns: each timer's place in the queue, and what becomes of an expiry.
//! Must not: block, but for an action that does what it must not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::action::Expiration;
use super::remote::{ArmRequest, Context, ExpiryAction as Outcome, ExpiryEvent, SleeperState};
use super::run::{account, finish, run};
use super::service::Classes;
use super::statistics::{LEAST_DISTANCE_NS, count};
use super::table::{BLOCK, CHUNK, TimerEntry, TimerTable, of_kind};
use crate::engine::{Cause, EngineTimers, ExpiredTimer, TimerId};

#[derive(Clone, Copy)]
struct DispatchedTimer {
    id: Option<TimerId>,
    sequence: u64,
    arming: ArmRequest,
    /// Expiries before the one in the queue that are not looked at by themselves.
    passed_over: u64,
}

const UNSEEN: DispatchedTimer = DispatchedTimer {
    id: None,
    sequence: 0,
    arming: ArmRequest { expiry_ns: 0, period_ns: 0, slack_ns: 0, flags: 0, past: false },
    passed_over: 0,
};

pub(super) struct Dispatcher {
    table: Arc<TimerTable>,
    classes: Arc<Classes>,
    locals: Vec<DispatchedTimer>,
    /// Where the next look at what changed begins.
    cursor: u32,
}

/// How many words of changed timers are looked at before expired ones have their turn: 4096 timers.
const WORDS: usize = 64;

impl Dispatcher {
    pub(super) fn new(table: &Arc<TimerTable>, classes: &Arc<Classes>) -> Dispatcher {
        Dispatcher {
            table: Arc::clone(table),
            classes: Arc::clone(classes),
            locals: Vec::new(),
            cursor: 0,
        }
    }

    /// Takes up what threads said since the last look; whether that was all that they had said when
    /// this began. What they say meanwhile may be left for the next look.
    pub(super) fn take_changes(&mut self, timers: &mut EngineTimers<u32>) -> bool {
        let table = Arc::clone(&self.table);
        let mut is_all = true;
        count(&table.counters.turns, 1);
        for (number, chunk) in table.changed() {
            // In a circle: what is set now is reached, whatever is set again behind.
            for _ in 0..WORDS {
                let Some((word, mut bits)) = chunk.changed.take(self.cursor) else { break };
                self.cursor = (word as u32 + 1) % BLOCK as u32;
                while bits != 0 {
                    let bit = bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let index = number * CHUNK + word * BLOCK + bit;
                    if !self.load_arm_request(timers, index) {
                        chunk.changed.mark(index % CHUNK);
                        is_all = false;
                    }
                }
            }
        }
        is_all
    }

    /// Has a timer's arming in the queue; false if it changes too often to be read.
    fn load_arm_request(&mut self, timers: &mut EngineTimers<u32>, index: usize) -> bool {
        let Some(entry) = self.table.entry(index as u32) else { return true };
        let Some(standing) = entry.slot.standing() else { return false };
        if self.locals.len() <= index {
            self.locals.resize((index / BLOCK + 1) * BLOCK, UNSEEN);
        }
        let local = &mut self.locals[index];
        let id = match local.id {
            Some(id) => id,
            None => match create(timers, entry, index as u32) {
                Some(id) => *local.id.insert(id),
                None => {
                    let sequence = standing.map(|(sequence, _)| sequence);
                    return sequence.is_none_or(|own| refuse(&self.table, entry, own));
                }
            },
        };
        match standing {
            None => {
                let _ = timers.cancel(id);
            }
            Some((sequence, _)) if sequence == local.sequence => {}
            Some((sequence, arming)) => {
                (local.sequence, local.arming, local.passed_over) = (sequence, arming, 0);
                if !put(timers, entry, id, local) {
                    return refuse(&self.table, entry, sequence);
                }
            }
        }
        true
    }

    pub(super) fn expired(&mut self, timers: &mut EngineTimers<u32>, fired: &ExpiredTimer) {
        let Ok(&index) = timers.payload(fired.id) else { return };
        let table = Arc::clone(&self.table);
        let Some(entry) = table.entry(index) else { return };
        let Some(local) = self.locals.get_mut(index as usize) else { return };
        let arming = local.arming;
        let torn = (fired.cause == Cause::ClockSet).then_some(SleeperState::ClockSet);
        let (further, last_ns) = periods_past(&arming, fired.now_ns, torn.is_some());
        let has_fallen_behind = further > 0;
        let further = further.saturating_add(std::mem::take(&mut local.passed_over));
        let route = entry.route.load(Ordering::Acquire);
        let context = if route == 0 { Context::Immediate } else { Context::Deferred };
        let fire = ExpiryEvent { sequence: local.sequence, context, further, torn };
        let priority = u32::from(arming.flags);
        let mut prepared = None;
        let outcome = entry.slot.fire(fire, |skipped| {
            let published = &entry.published;
            published.expiry_ns.store(last_ns, Ordering::Relaxed);
            published.now_ns.store(fired.now_ns, Ordering::Relaxed);
            published.kind.store(priority << 1 | u32::from(torn.is_some()), Ordering::Relaxed);
            let overruns = further - u64::from(skipped).min(further);
            published.overruns.fetch_add(overruns, Ordering::Relaxed);
            prepared = Some(overruns);
        });
        if outcome == Outcome::Lost {
            // What stands there now was marked as changed.
            entry.published.overruns.fetch_sub(prepared.unwrap_or(0), Ordering::Relaxed);
            count(&table.counters.lost_races, 1);
            return;
        }
        if arming.period_ns > 0 && torn.is_none() {
            local.sequence += 1;
            let not_before_ns = if has_fallen_behind {
                fired.now_ns.saturating_add_unsigned(LEAST_DISTANCE_NS)
            } else {
                i64::MIN
            };
            self.rearm(timers, entry, index, last_ns, not_before_ns);
        }
        if !arming.past {
            table.counters.latest_ns.fetch_max(fired.late_ns(), Ordering::Relaxed);
        }
        let cause = fired.cause;
        let now_ns = fired.now_ns;
        let expiration =
            Expiration { base: fired.base, expiry_ns: last_ns, now_ns, overruns: further, cause };
        self.act(entry, index, outcome, expiration, route, priority);
    }

    /// The next expiry of a periodic timer: from the scheduled one, however late this was. With a
    /// short period the first that is at `not_before_ns` or later.
    fn rearm(
        &mut self,
        timers: &mut EngineTimers<u32>,
        entry: &TimerEntry,
        index: u32,
        last_ns: i64,
        not_before_ns: i64,
    ) {
        let Some(local) = self.locals.get_mut(index as usize) else { return };
        let period_ns = local.arming.period_ns;
        let is_short = period_ns < LEAST_DISTANCE_NS && not_before_ns > last_ns;
        let periods = match not_before_ns.abs_diff(last_ns).div_ceil(period_ns.max(1)) {
            periods if is_short && periods > 1 => periods,
            _ => 1,
        };
        let length = period_ns.checked_mul(periods).and_then(|ns| i64::try_from(ns).ok());
        let next = length.and_then(|length| last_ns.checked_add(length));
        let Some((next, id)) = next.zip(local.id) else {
            // At the end of the clock's range, in 292 years.
            entry.disarm(local.sequence);
            return;
        };
        (local.arming.expiry_ns, local.arming.past) = (next, false);
        local.passed_over = periods - 1;
        if !put(timers, entry, id, local) {
            refuse(&self.table, entry, local.sequence);
        }
    }

    fn act(
        &self,
        entry: &TimerEntry,
        index: u32,
        outcome: Outcome,
        mut expiration: Expiration,
        route: u32,
        priority: u32,
    ) {
        let counters = &self.table.counters;
        let overran = |skipped: bool| {
            let overruns = expiration.overruns - u64::from(skipped).min(expiration.overruns);
            entry.overruns.fetch_add(overruns, Ordering::Relaxed);
            count(&counters.overruns, overruns);
            overruns
        };
        match outcome {
            Outcome::Lost | Outcome::Skipped => return,
            Outcome::Woke => {
                entry.fired.fetch_add(1, Ordering::Relaxed);
                entry.open_gate();
            }
            Outcome::Run { skipped } => {
                expiration.overruns = overran(skipped);
                let table = &self.table;
                // An immediate action is never queued.
                run(table, index, entry, &expiration, |took_ns| account(table, took_ns));
            }
            Outcome::Queue { skipped } => {
                overran(skipped);
                if !self.classes.push(route, self.table.engine, index, priority) {
                    self.unqueue(entry, index);
                    return;
                }
            }
            Outcome::AfterRun { skipped } => {
                overran(skipped);
            }
            Outcome::Behind => {
                // All of them go with the one that waits.
                let overruns = expiration.overruns + 1;
                entry.published.overruns.fetch_add(overruns, Ordering::Relaxed);
                entry.overruns.fetch_add(overruns, Ordering::Relaxed);
                count(&counters.overruns, overruns);
                if entry.published.raise(priority) {
                    self.classes.raise(route, priority);
                }
            }
        }
        count(&counters.fired, 1);
    }

    /// The class has no room: as if the action had been run, but for the action.
    fn unqueue(&self, entry: &TimerEntry, index: u32) {
        count(&self.table.counters.without_room, 1);
        entry.published.overruns.fetch_add(1, Ordering::Relaxed);
        let ended = match entry.slot.begin() {
            Ok(()) => entry.slot.end(),
            Err(ended) => ended,
        };
        // Only this thread makes expiries, so none has come meanwhile.
        finish(&self.table, index, entry, ended);
    }
}

/// Further expiries of a periodic timer that are past as well, and the last of all, ns.
fn periods_past(arming: &ArmRequest, now_ns: i64, torn: bool) -> (u64, i64) {
    let late = i128::from(now_ns) - i128::from(arming.expiry_ns);
    if torn || arming.period_ns == 0 || late <= 0 {
        return (0, arming.expiry_ns);
    }
    let further = late / i128::from(arming.period_ns);
    let last = i128::from(arming.expiry_ns) + further * i128::from(arming.period_ns);
    // Between the expiry and now, so both fit.
    (u64::try_from(further).unwrap_or(u64::MAX), i64::try_from(last).unwrap_or(now_ns))
}

/// Gives a timer its place in the queue of its clock, for as long as the engine lives.
fn create(timers: &mut EngineTimers<u32>, entry: &TimerEntry, index: u32) -> Option<TimerId> {
    let (base, on_set) = of_kind(entry.kind.load(Ordering::Acquire) as usize);
    timers.create_with(base, on_set, index).ok()
}

fn put(
    timers: &mut EngineTimers<u32>,
    entry: &TimerEntry,
    id: TimerId,
    local: &DispatchedTimer,
) -> bool {
    let ArmRequest { expiry_ns, slack_ns, .. } = local.arming;
    entry.scheduled_ns.store(expiry_ns, Ordering::Relaxed);
    entry.scheduled_for.store(local.sequence, Ordering::Release);
    timers.arm(id, expiry_ns, slack_ns).is_ok()
}

/// The queue does not take it, for want of memory: it is disarmed and counted. It is looked at, so
/// always true.
fn refuse(table: &TimerTable, entry: &TimerEntry, sequence: u64) -> bool {
    count(&table.counters.refused, 1);
    entry.disarm(sequence);
    true
}
