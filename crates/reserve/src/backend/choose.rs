//! Which backend serves best, and why.
//!
//! Owns: the order of preference. The deadline class is enforced by the kernel, but for one thread that stays
//! alone and unpinned, and where it ends budgets at the tick it keeps only those that are long beside it; a user-space reserve has one budget for all that a program makes; a quota
//! only caps, and is never chosen where something was promised. Must not: ask the kernel.

use super::BackendKind;
use crate::admission::Refusal;

/// The target for which a backend is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendSubject {
    /// A program that is yet to be started: it may fork and make threads.
    Program,
    /// A process that runs.
    Process {
        /// Number of its threads.
        threads: usize,
        /// Number of its children.
        children: usize,
    },
    /// One thread.
    Thread,
}

/// The result of [`choose`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The backend; `None` if each of them refuses.
    pub kind: Option<BackendKind>,
    /// Why, in one sentence.
    pub reason: String,
    /// Obstacles to backends that would have been better, or to all.
    pub refusals: Vec<Refusal>,
}

/// Chooses for `whom`, which is to stay on one CPU if `pinned`; `coarse` says what is wrong with the deadline class if
/// the budget is of the order of the tick at which it ends budgets. `refused` returns what a backend would refuse, and
/// is called only for those that are considered.
#[must_use]
pub fn choose(
    whom: BackendSubject,
    pinned: bool,
    coarse: Option<&str>,
    mut refused: impl FnMut(BackendKind) -> Vec<Refusal>,
) -> Choice {
    let (order, because) = preference(whom, pinned, coarse);
    let mut refusals = Vec::new();
    for (place, kind) in order.into_iter().enumerate() {
        let against = refused(kind);
        if against.is_empty() {
            let reason = if place == 0 { because } else { refusals_text(&refusals, kind) };
            return Choice { kind: Some(kind), reason, refusals };
        }
        refusals.extend(against);
    }
    let reason = refusals.first().map_or_else(String::new, |first: &Refusal| {
        format!("no backend takes it; {}: {}", phrase(first.backend), first.cause)
    });
    Choice { kind: None, reason, refusals }
}

/// The choice of a backend that was named, by the user or with what was proposed.
#[must_use]
pub fn chosen(kind: BackendKind, refusals: Vec<Refusal>) -> Choice {
    let kept = refusals.is_empty().then_some(kind);
    let reason = match refusals.first() {
        None => format!("{} was named for it", phrase(kind)),
        Some(first) => {
            format!("{} was named for it, and is refused: {}", phrase(kind), first.cause)
        }
    };
    Choice { kind: kept, reason, refusals }
}

fn preference(
    whom: BackendSubject,
    pinned: bool,
    coarse: Option<&str>,
) -> ([BackendKind; 2], String) {
    const GROUP: [BackendKind; 2] = [BackendKind::User, BackendKind::Deadline];
    const THREAD: [BackendKind; 2] = [BackendKind::Deadline, BackendKind::User];
    let (order, because) = match whom {
        BackendSubject::Program => (
            GROUP,
            "a program may fork and make threads: one budget for all of them takes a user-space reserve",
        ),
        BackendSubject::Process { threads, .. } if threads > 1 => (
            GROUP,
            "the process has several threads: one budget for all takes a user-space reserve",
        ),
        BackendSubject::Process { children, .. } if children > 0 => {
            (GROUP, "the process has children: one budget for all takes a user-space reserve")
        }
        _ if pinned => (
            GROUP,
            "the deadline class does not keep a thread on one CPU; a user-space reserve does",
        ),
        _ if coarse.is_some() => (GROUP, coarse.unwrap_or_default()),
        BackendSubject::Process { .. } => {
            (THREAD, "the process has a single thread, which the kernel's deadline class serves")
        }
        BackendSubject::Thread => (THREAD, "the kernel's deadline class serves a single thread"),
    };
    (order, because.to_owned())
}

fn refusals_text(refusals: &[Refusal], kind: BackendKind) -> String {
    let first = refusals.first().map_or_else(String::new, |first| {
        format!("{} is refused: {}", phrase(first.backend), first.cause)
    });
    let alone = match kind {
        BackendKind::Deadline => "; the deadline class serves the first thread alone",
        BackendKind::User | BackendKind::Quota => "",
    };
    format!("{first}{alone}")
}

fn phrase(kind: BackendKind) -> &'static str {
    match kind {
        BackendKind::Deadline => "the deadline class",
        BackendKind::User => "a user-space reserve",
        BackendKind::Quota => "a quota",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Obstacle;

    fn refusal(backend: BackendKind) -> Refusal {
        let (cause, remedy) = ("it is so".to_owned(), "change it".to_owned());
        Refusal { backend, id: Obstacle::Bandwidth, errno: None, cause, remedy }
    }

    fn with(whom: BackendSubject, pinned: bool, refusing: &[BackendKind]) -> Choice {
        let refused =
            |kind| if refusing.contains(&kind) { vec![refusal(kind)] } else { Vec::new() };
        choose(whom, pinned, None, refused)
    }

    /// The issue: the deadline class is per thread, without fork, pinning or a shared budget.
    #[test]
    fn the_deadline_class_is_for_one_unpinned_thread() {
        let process = |threads, children| BackendSubject::Process { threads, children };
        for (whom, pinned, kind) in [
            (BackendSubject::Thread, false, BackendKind::Deadline),
            (BackendSubject::Thread, true, BackendKind::User),
            (process(1, 0), false, BackendKind::Deadline),
            (process(1, 0), true, BackendKind::User),
            (process(2, 0), false, BackendKind::User),
            (process(1, 1), false, BackendKind::User),
            (BackendSubject::Program, false, BackendKind::User),
        ] {
            let choice = with(whom, pinned, &[]);
            assert_eq!(choice.kind, Some(kind), "{whom:?} {pinned}");
            assert!(!choice.reason.is_empty() && choice.refusals.is_empty());
        }
    }

    /// The bug: 3 ms of 10 were given to the deadline class, which ends budgets at a tick of 4 ms: 0.54 to 6.60 ms.
    #[test]
    fn a_budget_of_the_order_of_the_tick_takes_a_user_space_reserve() {
        for whom in [BackendSubject::Thread, BackendSubject::Process { threads: 1, children: 0 }] {
            let choice = choose(whom, false, Some("the tick is coarse"), |_| Vec::new());
            assert_eq!(
                (choice.kind, choice.reason.as_str()),
                (Some(BackendKind::User), "the tick is coarse")
            );
            // Where that one is refused, the class is better than nothing.
            let refused =
                |kind| if kind == BackendKind::User { vec![refusal(kind)] } else { Vec::new() };
            let choice = choose(whom, false, Some("the tick is coarse"), refused);
            assert_eq!(choice.kind, Some(BackendKind::Deadline));
        }
    }

    #[test]
    fn what_is_refused_is_replaced_and_says_why() {
        let choice = with(BackendSubject::Thread, false, &[BackendKind::Deadline]);
        assert_eq!(choice.kind, Some(BackendKind::User));
        assert_eq!(choice.reason, "the deadline class is refused: it is so");
        let choice = with(BackendSubject::Program, false, &[BackendKind::User]);
        assert_eq!(choice.kind, Some(BackendKind::Deadline));
        assert!(choice.reason.contains("first thread alone"), "{}", choice.reason);
    }

    /// A cap is no reservation: it is used only on request.
    #[test]
    fn a_quota_is_never_chosen_for_a_promise() {
        let choice =
            with(BackendSubject::Program, false, &[BackendKind::User, BackendKind::Deadline]);
        assert_eq!((choice.kind, choice.refusals.len()), (None, 2));
        assert!(choice.reason.starts_with("no backend takes it; a user-space reserve: it is so"));
        assert_eq!(chosen(BackendKind::Quota, Vec::new()).kind, Some(BackendKind::Quota));
        assert_eq!(chosen(BackendKind::Quota, vec![refusal(BackendKind::Quota)]).kind, None);
    }
}
