//! The maker of a change and its two guardians (`crates/sys/src/guardian`), one change, and kills.
//!
//! The page is memory that all share, and lives as long as one of them; the record is a file, and lives on.

use stateright::{Model, Property};

/// An earlier defect, or an order that will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardianDefect {
    None,
    /// The record had its name before there were guardians: a kill of the maker alone left a file.
    NamedFirst,
    /// The change was made before it was written down.
    ChangedFirst,
    /// There was one guardian, and nobody to replace it in time.
    OneGuardian,
    /// The record alone was written: it is no help while nobody calls `--clean`.
    NotInThePage,
    /// The slot in the record was freed before the change was undone.
    FreedFirst,
    /// `--clean` found guardians by their record alone, and missed one that stood after the other had removed it.
    CleanedByRecord,
}

/// What is killed or stopped at most.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub maker: bool,
    pub guardians: u8,
    pub stops: u8,
}

#[derive(Clone, Copy, Debug)]
pub struct GuardianModel {
    pub defect: GuardianDefect,
    pub faults: Faults,
}

/// The next step of the maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MakerStep {
    StartFirst,
    StartSecond,
    Name,
    FillPage,
    FillRecord,
    Change,
    /// It uses the change for as long as it likes.
    Use,
    Undo,
    ClearRecord,
    ClearPage,
    /// Says to this guardian that all is over, and lets it go on.
    Dismiss(usize),
    /// Waits until this guardian has ended.
    Await(usize),
    Remove,
    Ended,
    Killed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardianStep {
    /// Started; it has no lock on the record yet.
    Hold,
    Wait,
    /// The five steps of `put_all_back`.
    Look,
    Undo,
    ClearRecord,
    ClearPage,
    Remove,
    Ended,
    Killed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guardian {
    step: GuardianStep,
    /// The guardian that works as long as it lives.
    partner: Option<usize>,
    dismissed: bool,
    stopped: bool,
}

impl Guardian {
    fn lives(&self) -> bool {
        !matches!(self.step, GuardianStep::Ended | GuardianStep::Killed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GuardianState {
    maker: MakerStep,
    guardians: Vec<Guardian>,
    /// Which of them are the two that the maker knows.
    posts: [Option<usize>; 2],
    /// The change is made, and not undone.
    changed: bool,
    in_page: bool,
    in_record: bool,
    named: bool,
    finished: bool,
    kills: u8,
    stops: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardianAction {
    Maker,
    /// The maker's thread starts a guardian for one that was killed.
    Replace(usize),
    Guardian(usize),
    /// A guardian has waited long enough for one that stands.
    GiveUpWaiting(usize),
    KillMaker,
    Kill(usize),
    Stop(usize),
}

impl GuardianState {
    fn maker_lives(&self) -> bool {
        !matches!(self.maker, MakerStep::Ended | MakerStep::Killed)
    }

    fn start(&mut self, post: usize) {
        let partner = self.posts.iter().flatten().copied().next();
        self.posts[post] = Some(self.guardians.len());
        self.guardians.push(Guardian {
            step: GuardianStep::Hold,
            partner,
            dismissed: false,
            stopped: false,
        });
    }

    /// The thread that replaces guardians runs between these.
    fn is_watching(&self) -> bool {
        use MakerStep::{Change, ClearPage, ClearRecord, FillPage, FillRecord, Undo, Use};
        matches!(self.maker, FillPage | FillRecord | Change | Use | Undo | ClearRecord | ClearPage)
    }

    fn maker_step(&self, defect: GuardianDefect) -> Option<MakerStep> {
        use MakerStep as M;
        Some(match self.maker {
            M::StartFirst if defect == GuardianDefect::OneGuardian => M::Name,
            M::StartFirst => M::StartSecond,
            M::StartSecond if defect == GuardianDefect::NamedFirst => M::FillPage,
            M::StartSecond => M::Name,
            M::Name if defect == GuardianDefect::NamedFirst => M::StartFirst,
            M::Name if defect == GuardianDefect::ChangedFirst => M::Change,
            M::Name => M::FillPage,
            M::FillPage => M::FillRecord,
            M::FillRecord if defect == GuardianDefect::ChangedFirst => M::Use,
            M::FillRecord => M::Change,
            M::Change if defect == GuardianDefect::ChangedFirst => M::FillPage,
            M::Change => M::Use,
            M::Use if defect == GuardianDefect::FreedFirst => M::ClearRecord,
            M::Use => M::Undo,
            M::Undo if defect == GuardianDefect::FreedFirst => M::Dismiss(0),
            M::Undo => M::ClearRecord,
            M::ClearRecord => M::ClearPage,
            M::ClearPage if defect == GuardianDefect::FreedFirst => M::Undo,
            M::ClearPage => M::Dismiss(0),
            M::Dismiss(0) => M::Dismiss(1),
            M::Dismiss(_) => M::Await(0),
            M::Await(post) => {
                let ended = |guardian: usize| !self.guardians[guardian].lives();
                if !self.posts[post].is_none_or(ended) {
                    return None;
                }
                if post == 0 { M::Await(1) } else { M::Remove }
            }
            M::Remove => M::Ended,
            M::Ended | M::Killed => return None,
        })
    }

    fn run_maker(&mut self, defect: GuardianDefect) -> Option<()> {
        let next = self.maker_step(defect)?;
        match self.maker {
            MakerStep::StartFirst => self.start(0),
            MakerStep::StartSecond => self.start(1),
            MakerStep::Name => self.named = true,
            MakerStep::FillPage => self.in_page = defect != GuardianDefect::NotInThePage,
            MakerStep::FillRecord => self.in_record = true,
            MakerStep::Change => self.changed = true,
            MakerStep::Undo => self.changed = false,
            MakerStep::ClearRecord => self.in_record = false,
            MakerStep::ClearPage => self.in_page = false,
            MakerStep::Dismiss(post) => {
                if let Some(guardian) = self.posts[post] {
                    self.guardians[guardian].dismissed = true;
                    self.guardians[guardian].stopped = false;
                }
            }
            MakerStep::Remove => self.named = false,
            MakerStep::Use | MakerStep::Await(_) | MakerStep::Ended | MakerStep::Killed => {}
        }
        self.maker = next;
        Some(())
    }

    fn partner_lives(&self, guardian: usize) -> bool {
        self.guardians[guardian].partner.is_some_and(|partner| self.guardians[partner].lives())
    }

    fn run_guardian(&mut self, index: usize, gives_up: bool) -> Option<()> {
        use GuardianStep as G;
        let guardian = self.guardians[index];
        let next = match guardian.step {
            _ if guardian.stopped => return None,
            G::Hold => G::Wait,
            G::Wait => {
                let is_over = !self.maker_lives() || guardian.dismissed;
                let waits = self.partner_lives(index) && !gives_up;
                if !is_over || waits {
                    return None;
                }
                G::Look
            }
            G::Look if self.finished => G::Ended,
            G::Look if self.in_page => G::Undo,
            G::Look => G::Remove,
            G::Undo => {
                self.changed = false;
                G::ClearRecord
            }
            G::ClearRecord => {
                self.in_record = false;
                G::ClearPage
            }
            G::ClearPage => {
                self.in_page = false;
                G::Remove
            }
            G::Remove => {
                self.named = false;
                self.finished = true;
                G::Ended
            }
            G::Ended | G::Killed => return None,
        };
        self.guardians[index].step = next;
        Some(())
    }

    /// Whether nothing happens any more unless something is killed, stopped, let go on or cleaned.
    fn is_quiet(&self, model: &GuardianModel) -> bool {
        let mut actions = Vec::new();
        model.steps(self, &mut actions);
        !actions.into_iter().any(|action| model.next_state(self, action).is_some())
    }

    /// As `reserve --clean` leaves it: guardians without their maker go on, and what no process holds is undone.
    fn cleaned(&self, model: &GuardianModel) -> GuardianState {
        let mut state = self.clone();
        if state.maker_lives() || (model.defect == GuardianDefect::CleanedByRecord && !state.named)
        {
            return state;
        }
        state.guardians.iter_mut().for_each(|guardian| guardian.stopped = false);
        while !state.is_quiet(model) {
            let mut actions = Vec::new();
            model.steps(&state, &mut actions);
            let next = actions.into_iter().find_map(|action| model.next_state(&state, action));
            state = next.unwrap_or(state);
        }
        if state.named {
            state.changed &= !state.in_record;
            state.in_record = false;
            state.named = false;
        }
        state
    }

    fn is_whole(&self) -> bool {
        !self.changed && !self.named
    }
}

impl GuardianModel {
    fn steps(&self, state: &GuardianState, actions: &mut Vec<GuardianAction>) {
        actions.push(GuardianAction::Maker);
        if state.is_watching() && self.defect != GuardianDefect::OneGuardian {
            actions.extend((0..2).map(GuardianAction::Replace));
        }
        for guardian in 0..state.guardians.len() {
            actions.extend([
                GuardianAction::Guardian(guardian),
                GuardianAction::GiveUpWaiting(guardian),
            ]);
        }
    }
}

impl Model for GuardianModel {
    type State = GuardianState;
    type Action = GuardianAction;

    fn init_states(&self) -> Vec<GuardianState> {
        let first = if self.defect == GuardianDefect::NamedFirst {
            MakerStep::Name
        } else {
            MakerStep::StartFirst
        };
        vec![GuardianState {
            maker: first,
            guardians: Vec::new(),
            posts: [None; 2],
            changed: false,
            in_page: false,
            in_record: false,
            named: false,
            finished: false,
            kills: 0,
            stops: 0,
        }]
    }

    fn actions(&self, state: &GuardianState, actions: &mut Vec<GuardianAction>) {
        self.steps(state, actions);
        if self.faults.maker && state.maker_lives() {
            actions.push(GuardianAction::KillMaker);
        }
        for (index, guardian) in state.guardians.iter().enumerate() {
            if guardian.lives() && state.kills < self.faults.guardians {
                actions.push(GuardianAction::Kill(index));
            }
            if guardian.lives() && !guardian.stopped && state.stops < self.faults.stops {
                actions.push(GuardianAction::Stop(index));
            }
        }
    }

    fn next_state(&self, last: &GuardianState, action: GuardianAction) -> Option<GuardianState> {
        let mut state = last.clone();
        match action {
            GuardianAction::Maker => state.run_maker(self.defect)?,
            GuardianAction::Replace(post) => {
                let killed = state.posts[post].is_some_and(|one| !state.guardians[one].lives());
                if !killed {
                    return None;
                }
                state.posts[post] = None;
                state.start(post);
            }
            GuardianAction::Guardian(index) => state.run_guardian(index, false)?,
            GuardianAction::GiveUpWaiting(index) => {
                let partner = state.guardians[index].partner?;
                let stands = state.guardians[partner].stopped;
                if !stands || state.guardians[index].step != GuardianStep::Wait {
                    return None;
                }
                state.run_guardian(index, true)?;
            }
            GuardianAction::KillMaker => state.maker = MakerStep::Killed,
            GuardianAction::Kill(index) => {
                state.guardians[index].step = GuardianStep::Killed;
                state.kills += 1;
            }
            GuardianAction::Stop(index) => {
                state.guardians[index].stopped = true;
                state.stops += 1;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "a change that stands is known to a process or to the record",
                |_, state: &GuardianState| {
                    let a_guardian = state.in_page && state.guardians.iter().any(Guardian::lives);
                    !state.changed
                        || state.maker_lives()
                        || a_guardian
                        || (state.named && state.in_record)
                },
            ),
            Property::always(
                "nothing is put back while its maker uses it",
                |_, state: &GuardianState| state.maker != MakerStep::Use || state.changed,
            ),
            Property::always(
                "the maker and one guardian may be killed: nothing stays",
                |model: &Self, state: &GuardianState| {
                    let counts = state.kills <= 1 && state.stops == 0;
                    !counts || !state.is_quiet(model) || state.is_whole()
                },
            ),
            Property::always(
                "whatever is killed or stopped, --clean mends",
                |model: &Self, state: &GuardianState| {
                    !state.is_quiet(model) || state.maker_lives() || state.cleaned(model).is_whole()
                },
            ),
            Property::always("no guardian stays", |model: &Self, state: &GuardianState| {
                !state.is_quiet(model)
                    || state.maker_lives()
                    || !state.cleaned(model).guardians.iter().any(Guardian::lives)
            }),
            Property::sometimes("all ends without a kill", |_, state: &GuardianState| {
                state.maker == MakerStep::Ended && state.kills == 0
            }),
            Property::sometimes("a guardian puts back", |_, state: &GuardianState| {
                state.maker == MakerStep::Killed && state.finished && state.is_whole()
            }),
        ]
    }
}

#[cfg(test)]
mod tests {
    use stateright::Checker;

    use super::*;

    const ALL: Faults = Faults { maker: true, guardians: 3, stops: 2 };

    #[test]
    fn every_order_of_kills_is_mended() {
        let checker = GuardianModel { defect: GuardianDefect::None, faults: ALL }
            .checker()
            .spawn_bfs()
            .join();
        println!("{} states", checker.unique_state_count());
        checker.assert_properties();
    }

    #[test]
    fn earlier_defects_are_found() {
        for (defect, broken) in [
            (GuardianDefect::NamedFirst, "the maker and one guardian may be killed: nothing stays"),
            (
                GuardianDefect::ChangedFirst,
                "a change that stands is known to a process or to the record",
            ),
            (
                GuardianDefect::OneGuardian,
                "the maker and one guardian may be killed: nothing stays",
            ),
            (
                GuardianDefect::NotInThePage,
                "the maker and one guardian may be killed: nothing stays",
            ),
            (GuardianDefect::CleanedByRecord, "no guardian stays"),
            (
                GuardianDefect::FreedFirst,
                "a change that stands is known to a process or to the record",
            ),
        ] {
            let checker = GuardianModel { defect, faults: ALL }.checker().spawn_bfs().join();
            let found = checker.discovery(broken);
            assert!(found.is_some(), "{defect:?} is not found");
            println!("{defect:?}: {:?}", found.map(stateright::Path::into_actions));
        }
    }
}
