//! Two reservations that want one CPU each for itself, and the files in which they say so
//! (`crates/reserve/src/backend/user/registry.rs`).
//!
//! A file is known by its name and by what the name stands for at the time: a process may have one open whose name is gone,
//! or is another file's. Locks are of processes, and end with them.

use stateright::{Model, Property};

/// An order that will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimDefect {
    None,
    /// A reservation looked for others before it wrote itself down.
    LookedFirst,
    /// An entry was believed without its lock: what a killed process left refused all others.
    BelievedWithoutLock,
    /// An entry was removed as stale without a lock on it.
    RemovedUnlocked,
    /// A maker did not look whether its new file had been removed before it had the lock.
    LinkUnchecked,
}

#[derive(Clone, Copy, Debug)]
pub struct ClaimsModel {
    pub defect: ClaimDefect,
    pub kills: u8,
}

/// How often a maker begins anew with another file.
const TRIES: u8 = 3;

const MAKERS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Create,
    Lock,
    CheckLink,
    Write,
    /// Opens the other's entry.
    OpenOther,
    /// Asks who holds it.
    AskHolder,
    /// What is not held is locked, to remove it.
    LockStale,
    RemoveStale,
    ReadOther,
    Admit,
    Admitted,
    Refused,
    /// Has no more names to try.
    Exhausted,
    Killed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct File {
    maker: usize,
    /// Its name stands for it.
    linked: bool,
    written: bool,
    lock: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Maker {
    step: Step,
    /// Its own file, and the other's that it has open; by their places.
    own: Option<usize>,
    other: Option<usize>,
    sees_other: bool,
    /// The other's process was gone when this one asked who holds its entry.
    saw_a_dead_one: bool,
    tries: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimsState {
    makers: [Maker; MAKERS],
    files: Vec<File>,
    kills: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimsAction {
    Run(usize),
    Kill(usize),
}

impl ClaimsState {
    fn is_killed(&self, maker: usize) -> bool {
        self.makers[maker].step == Step::Killed
    }

    fn is_admitted(&self, maker: usize) -> bool {
        self.makers[maker].step == Step::Admitted
    }

    /// The file that the other's name stands for.
    fn linked_of(&self, maker: usize) -> Option<usize> {
        self.files.iter().position(|file| file.maker == maker && file.linked)
    }

    fn take(&mut self, file: usize, maker: usize) -> bool {
        let is_free = self.files[file].lock.is_none_or(|holder| holder == maker);
        if is_free {
            self.files[file].lock = Some(maker);
        }
        is_free
    }

    /// Ends a look at the other's file. Closing it lets go of a lock on it.
    fn close_other(&mut self, maker: usize) {
        if let Some(file) = self.makers[maker].other.take()
            && self.files[file].lock == Some(maker)
        {
            self.files[file].lock = None;
        }
    }

    fn run(&mut self, maker: usize, defect: ClaimDefect) -> Option<()> {
        let other = 1 - maker;
        let own = self.makers[maker].own;
        let seen = self.makers[maker].other;
        let looks_first = defect == ClaimDefect::LookedFirst;
        let step = self.makers[maker].step;
        let next = match step {
            Step::Create => {
                if self.makers[maker].tries == TRIES {
                    self.makers[maker].step = Step::Exhausted;
                    return Some(());
                }
                self.makers[maker].tries += 1;
                self.makers[maker].own = Some(self.files.len());
                self.files.push(File { maker, linked: true, written: false, lock: None });
                Step::Lock
            }
            Step::Lock if self.take(own?, maker) => {
                if defect == ClaimDefect::LinkUnchecked {
                    Step::Write
                } else {
                    Step::CheckLink
                }
            }
            Step::Lock => self.tried_in_vain(maker),
            Step::CheckLink if self.files[own?].linked => Step::Write,
            Step::CheckLink => self.tried_in_vain(maker),
            Step::Write => {
                self.files[own?].written = true;
                if looks_first { Step::Admit } else { Step::OpenOther }
            }
            Step::OpenOther => {
                self.makers[maker].other = self.linked_of(other);
                match self.makers[maker].other {
                    Some(_) => Step::AskHolder,
                    None if looks_first => Step::Create,
                    None => Step::Admit,
                }
            }
            Step::AskHolder => {
                let is_held = self.files[seen?].lock.is_some_and(|holder| holder != maker);
                self.makers[maker].saw_a_dead_one = self.is_killed(other);
                match defect {
                    ClaimDefect::BelievedWithoutLock => Step::ReadOther,
                    _ if is_held => Step::ReadOther,
                    ClaimDefect::RemovedUnlocked => Step::RemoveStale,
                    _ => Step::LockStale,
                }
            }
            Step::LockStale if self.take(seen?, maker) && self.files[seen?].linked => {
                Step::RemoveStale
            }
            Step::LockStale => self.looked(maker, looks_first),
            Step::RemoveStale => {
                // By its name, whatever that stands for now.
                if let Some(file) = self.linked_of(other) {
                    self.files[file].linked = false;
                }
                self.looked(maker, looks_first)
            }
            Step::ReadOther => {
                let file = self.files[seen?];
                self.makers[maker].sees_other = file.written && file.linked;
                self.looked(maker, looks_first)
            }
            Step::Admit if self.makers[maker].sees_other => {
                self.files[own?].linked = false;
                self.files[own?].lock = None;
                Step::Refused
            }
            Step::Admit => Step::Admitted,
            Step::Admitted | Step::Refused | Step::Exhausted | Step::Killed => return None,
        };
        self.makers[maker].step = next;
        Some(())
    }

    fn looked(&mut self, maker: usize, looks_first: bool) -> Step {
        self.close_other(maker);
        if looks_first { Step::Create } else { Step::Admit }
    }

    /// What is there is removed, unless another process has it.
    fn tried_in_vain(&mut self, maker: usize) -> Step {
        if let Some(file) = self.makers[maker].own.take()
            && self.take(file, maker)
        {
            self.files[file].linked = false;
            self.files[file].lock = None;
        }
        Step::Create
    }
}

impl Model for ClaimsModel {
    type State = ClaimsState;
    type Action = ClaimsAction;

    fn init_states(&self) -> Vec<ClaimsState> {
        let step =
            if self.defect == ClaimDefect::LookedFirst { Step::OpenOther } else { Step::Create };
        let maker = Maker {
            step,
            own: None,
            other: None,
            sees_other: false,
            saw_a_dead_one: false,
            tries: 0,
        };
        vec![ClaimsState { makers: [maker; MAKERS], files: Vec::new(), kills: 0 }]
    }

    fn actions(&self, state: &ClaimsState, actions: &mut Vec<ClaimsAction>) {
        actions.extend((0..MAKERS).map(ClaimsAction::Run));
        if state.kills < self.kills {
            actions.extend(
                (0..MAKERS).filter(|maker| !state.is_killed(*maker)).map(ClaimsAction::Kill),
            );
        }
    }

    fn next_state(&self, last: &ClaimsState, action: ClaimsAction) -> Option<ClaimsState> {
        let mut state = last.clone();
        match action {
            ClaimsAction::Run(maker) => state.run(maker, self.defect)?,
            ClaimsAction::Kill(maker) => {
                state.makers[maker].step = Step::Killed;
                state.kills += 1;
                let locks = state.files.iter_mut().filter(|file| file.lock == Some(maker));
                locks.for_each(|file| file.lock = None);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "two that do not fit together are never both admitted",
                |_, state: &ClaimsState| !(state.is_admitted(0) && state.is_admitted(1)),
            ),
            Property::always("what was admitted is seen by others", |_, state: &ClaimsState| {
                (0..MAKERS).all(|maker| {
                    let file = state.makers[maker].own.map(|own| state.files[own]);
                    let is_seen = file.is_some_and(|file| file.linked && file.lock == Some(maker));
                    !state.is_admitted(maker) || is_seen
                })
            }),
            Property::always(
                "what a killed process left refuses nobody",
                |_, state: &ClaimsState| {
                    state
                        .makers
                        .iter()
                        .all(|maker| maker.step != Step::Refused || !maker.saw_a_dead_one)
                },
            ),
            Property::always("a maker finds a name", |_, state: &ClaimsState| {
                state.makers.iter().all(|maker| maker.step != Step::Exhausted)
            }),
            Property::sometimes(
                "one is admitted beside the other's refusal",
                |_, state: &ClaimsState| {
                    state.is_admitted(0) && state.makers[1].step == Step::Refused
                },
            ),
            Property::sometimes(
                "one is admitted after the other was killed",
                |_, state: &ClaimsState| {
                    state.is_admitted(0)
                        && state.is_killed(1)
                        && state.files.iter().any(|file| file.maker == 1)
                },
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use stateright::Checker;

    use super::*;

    #[test]
    fn two_at_once_never_exceed_a_cpu() {
        let checker =
            ClaimsModel { defect: ClaimDefect::None, kills: 2 }.checker().spawn_bfs().join();
        println!("{} states", checker.unique_state_count());
        checker.assert_properties();
    }

    #[test]
    fn other_orders_are_found_wanting() {
        let both = "two that do not fit together are never both admitted";
        for (defect, broken) in [
            (ClaimDefect::LookedFirst, both),
            (ClaimDefect::BelievedWithoutLock, "what a killed process left refuses nobody"),
            (ClaimDefect::RemovedUnlocked, "what was admitted is seen by others"),
            (ClaimDefect::LinkUnchecked, "what was admitted is seen by others"),
        ] {
            let checker = ClaimsModel { defect, kills: 2 }.checker().spawn_bfs().join();
            let found = checker.discovery(broken);
            assert!(found.is_some(), "{defect:?} is not found");
            println!("{defect:?}: {:?}", found.map(stateright::Path::into_actions));
        }
    }
}
