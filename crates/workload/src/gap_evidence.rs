//! What a thread can find out about a gap by itself, right after it and without a privilege.
//!
//! Owns: when the kernel's counters are asked, and that they are about one gap; what can be asked of this
//! machine. Must not: say what caused the gap; do anything between two gaps.
//!
//! # How a gap gets its evidence
//!
//! Nothing is added to the loop. Behind a gap the thread looks whether the kernel cleared the critical
//! section that it had armed (`sys::rseq`: a descriptor of data, so that no thread is ever inside), and only
//! then asks for its counters (`gap_evidence.rs`). What interrupts it while it asks belongs to the same gap;
//! behind a wait, which is no gap, to a gap of its own. Where
//! the section does not work, by a test at the start, the counters are asked after every gap.
//! Where it tells nothing of switches inside system calls (Linux 6.19 and later, [`ClearRule`]), they are also
//! asked behind each system call that the recorder makes (a wait, a yield, the question itself if that took as
//! long as a gap); of what became of the section nothing is said then. Loops that make system calls of their
//! own, and clocks that the kernel may have to be asked for, go without a section there.
//! `measure::switch_records` reads records of switches where any user may have them; `trace::cause::switch_evidence` puts
//! them into gaps where the kernel was not traced: by whose will a thread left its CPU, and to which thread of
//! the run. The manifest's `evidence` says what a run had and what would give the rest. Quotas and the kernel's
//! log are read before and after a run (`machine::facts`): what was not throttled is not blamed on a quota.
//!
//! A trace fills within seconds where short gaps are many. From then on `workload::long_gaps` keeps gaps above 131 us
//! in a table of fixed size in which the longest stay; in a ring it keeps what the ring will lose. For causes
//! `measure::records` puts an interval of no length before and behind each of them; nothing is learnt of ticks there.
//!
//! `runs::drift` compares the calibrations at both ends of a run. If they contradict each other, that is said, and
//! events of other clocks are left out where they could be off by more than they tell. A loop of the user's own (`own_loop.rs`) marks its
//! periods instead of polling: its gaps are as long as the thread's CPU clock says.

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::rseq::{self, ClearRule, RseqUnusable, Section, SectionState};
use hourglass_sys::thread::{Counters, SchedStatFile, counters};
use hourglass_trace::{CounterDeltas, Evidence};

/// What a thread can ask about itself.
///
/// Implementations MUST answer about the calling thread, MUST NOT allocate or block, and `look` and
/// `arm` MUST NOT enter the kernel.
pub trait EvidenceSource {
    /// Arms the critical section that the kernel clears when it takes the CPU from the thread.
    fn arm(&mut self);
    /// State of the critical section since it was armed; `None` without one.
    fn section_state(&self) -> Option<SectionState>;
    /// Whether a switch inside a system call clears it, too.
    fn sees_system_calls(&self) -> bool;
    fn counters(&self) -> Counters;
    /// Processor time that the thread received so far, ns.
    fn cpu_ns(&self) -> u64;
    /// For how long the thread was ready so far and waited for a CPU, ns; `None` where the kernel does not count that.
    fn waited_ns(&self) -> Option<u64>;
}

/// Asks a thread's [`EvidenceSource`] about its gaps. Without them it sees nothing.
#[derive(Debug)]
pub(crate) struct Witness<S> {
    source: Option<S>,
    last: Counters,
    /// Whether the thread made a system call since the section was armed, inside which a switch would not
    /// have cleared it.
    overlooks: bool,
    /// Where a marked stretch began: on the counter, and on the thread's CPU clock.
    stretch: (u64, u64),
    /// How long the thread had waited for a CPU when it last went to wait for its next period, ns.
    waited: Option<u64>,
}

impl<S> Default for Witness<S> {
    fn default() -> Witness<S> {
        Witness {
            source: None,
            last: Counters::default(),
            overlooks: false,
            stretch: (0, 0),
            waited: None,
        }
    }
}

impl<S: EvidenceSource> Witness<S> {
    /// Asks this source, from [`Witness::begin`] on.
    pub(crate) fn with(source: S) -> Witness<S> {
        Witness { source: Some(source), ..Witness::default() }
    }

    /// From here on everything belongs to the next gap.
    pub(crate) fn begin(&mut self) {
        if let Some(source) = &mut self.source {
            source.arm();
            self.last = source.counters();
            self.makes_system_calls();
        }
    }

    /// The thread makes system calls, or made them a moment ago.
    pub(crate) fn makes_system_calls(&mut self) {
        self.overlooks = self.source.as_ref().is_some_and(|source| !source.sees_system_calls());
    }

    /// Whether a switch inside a system call since the last question would not be seen by the section alone.
    pub(crate) fn overlooks(&self) -> bool {
        self.overlooks
    }

    /// The last question took so short a time that no switch can have been in it.
    pub(crate) fn was_not_switched(&mut self) {
        self.overlooks = false;
    }

    /// What happened since the last question. To be asked right after a gap: the critical section is
    /// looked at first, and armed again before the counters are read, so that what happens meanwhile
    /// belongs to the next gap.
    pub(crate) fn collect(&mut self) -> Evidence {
        let Some(source) = &mut self.source else { return Evidence::NONE };
        let cleared = match source.section_state() {
            Some(SectionState::Kept) if !self.overlooks => {
                return Evidence { cleared: Some(false), counted: None };
            }
            Some(SectionState::Cleared) => Some(true),
            Some(SectionState::Kept | SectionState::Foreign) | None => None,
        };
        source.arm();
        let now = source.counters();
        let counted = since(self.last, now);
        self.last = now;
        self.makes_system_calls();
        Evidence { cleared, counted: Some(counted) }
    }

    /// Whether the critical section says that something happened since the last question.
    #[inline]
    pub(crate) fn was_disturbed(&self) -> bool {
        let look = self.source.as_ref().and_then(EvidenceSource::section_state);
        look.is_some_and(|state| state != SectionState::Kept)
    }

    /// A marked stretch begins at `now`, on the counter.
    pub(crate) fn begin_stretch(&mut self, now: u64) {
        let received_ns = self.source.as_ref().map_or(0, EvidenceSource::cpu_ns);
        self.stretch = (now, received_ns);
    }

    /// When the stretch began, and the processor time since, ns; `None` without a source.
    pub(crate) fn stretch(&self) -> Option<(u64, u64)> {
        let (begun, before_ns) = self.stretch;
        Some((begun, self.source.as_ref()?.cpu_ns().saturating_sub(before_ns)))
    }

    /// For how long the thread waited for a CPU since the last question, ns; `None` where that is not counted.
    pub(crate) fn waited_since(&mut self) -> Option<u64> {
        let now = self.source.as_ref()?.waited_ns();
        let before = std::mem::replace(&mut self.waited, now);
        Some(now?.saturating_sub(before?))
    }

    /// Whether it can tell without asking that the kernel did not take the CPU since the last question.
    #[inline]
    pub(crate) fn saw_nothing(&self) -> bool {
        let kept =
            |source: &S| source.section_state() == Some(SectionState::Kept) && !self.overlooks;
        self.source.as_ref().is_none_or(kept)
    }
}

/// What came to the counts between two readings, up to 255 of each.
fn since(last: Counters, now: Counters) -> CounterDeltas {
    let up = |last: u64, now: u64| u8::try_from(now.saturating_sub(last)).unwrap_or(u8::MAX);
    CounterDeltas {
        involuntary: up(last.involuntary, now.involuntary),
        voluntary: up(last.voluntary, now.voluntary),
        faults: up(
            last.minor_faults.saturating_add(last.major_faults),
            now.minor_faults.saturating_add(now.major_faults),
        ),
    }
}

/// What a thread of this machine can ask. It belongs to the thread that opened it.
#[derive(Debug)]
pub struct ThreadEvidence {
    section: Option<Section>,
    sees_system_calls: bool,
    /// Of threads that say when they were due to run.
    schedstat: Option<SchedStatFile>,
}

impl ThreadEvidence {
    /// The calling thread's. Where the critical section does not work ([`rseq::self_test`]), or this
    /// thread can have none, the counters are asked after every gap. Allocates.
    pub fn open(tested: &Result<ClearRule, RseqUnusable>) -> ThreadEvidence {
        ThreadEvidence {
            section: tested.is_ok().then(|| Section::open().ok()).flatten(),
            sees_system_calls: *tested == Ok(ClearRule::EverySwitch),
            schedstat: None,
        }
    }

    /// The same, which also counts how long the thread waits for a CPU, where the kernel does.
    pub(crate) fn counting_waits(self) -> ThreadEvidence {
        ThreadEvidence { schedstat: SchedStatFile::open().ok(), ..self }
    }
}

impl EvidenceSource for ThreadEvidence {
    #[inline]
    fn arm(&mut self) {
        if let Some(section) = &self.section {
            section.arm();
        }
    }

    #[inline]
    fn section_state(&self) -> Option<SectionState> {
        self.section.as_ref().map(rseq::Section::state)
    }

    fn sees_system_calls(&self) -> bool {
        self.sees_system_calls
    }

    fn counters(&self) -> Counters {
        counters()
    }

    fn cpu_ns(&self) -> u64 {
        now_ns(ClockId::ThreadCpu)
    }

    fn waited_ns(&self) -> Option<u64> {
        self.schedstat.as_ref()?.read().map(|stat| stat.wait_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evidence that answers by a script.
    #[derive(Default)]
    struct ScriptedEvidence {
        state: Option<SectionState>,
        counters: Counters,
        only_where_interrupted: bool,
    }

    impl EvidenceSource for ScriptedEvidence {
        fn arm(&mut self) {
            self.state = self.state.map(|_| SectionState::Kept);
        }
        fn section_state(&self) -> Option<SectionState> {
            self.state
        }
        fn sees_system_calls(&self) -> bool {
            !self.only_where_interrupted
        }
        fn counters(&self) -> Counters {
            self.counters
        }
        fn cpu_ns(&self) -> u64 {
            0
        }
        fn waited_ns(&self) -> Option<u64> {
            None
        }
    }

    fn witness(state: Option<SectionState>) -> Witness<ScriptedEvidence> {
        let mut witness = Witness::with(ScriptedEvidence { state, ..ScriptedEvidence::default() });
        witness.begin();
        witness
    }

    fn happen(
        witness: &mut Witness<ScriptedEvidence>,
        state: SectionState,
        involuntary: u64,
        faults: u64,
    ) {
        let source = witness.source.as_mut().unwrap();
        source.state = source.state.map(|_| state);
        source.counters.involuntary += involuntary;
        source.counters.minor_faults += faults;
    }

    fn counted(involuntary: u8, faults: u8) -> Option<CounterDeltas> {
        Some(CounterDeltas { involuntary, voluntary: 0, faults })
    }

    /// Issue 6, part 1: the counters are asked only where the critical section was cleared.
    #[test]
    fn a_kept_section_asks_no_counter() {
        let mut witness = witness(Some(SectionState::Cleared));
        assert_eq!(witness.collect(), Evidence { cleared: Some(false), counted: None });
        happen(&mut witness, SectionState::Cleared, 1, 2);
        assert_eq!(witness.collect(), Evidence { cleared: Some(true), counted: counted(1, 2) });
        assert_eq!(witness.collect(), Evidence { cleared: Some(false), counted: None });
        happen(&mut witness, SectionState::Cleared, 0, 0);
        assert_eq!(witness.collect(), Evidence { cleared: Some(true), counted: counted(0, 0) });
    }

    #[test]
    fn without_a_section_the_counters_are_asked_always() {
        for state in [None, Some(SectionState::Foreign)] {
            let mut witness = witness(state);
            for involuntary in [0, 3, 0] {
                happen(&mut witness, SectionState::Foreign, involuntary, 0);
                let counted = counted(involuntary as u8, 0);
                assert_eq!(witness.collect(), Evidence { cleared: None, counted });
            }
        }
    }

    #[test]
    fn more_than_fit_are_255() {
        let mut witness = witness(Some(SectionState::Kept));
        happen(&mut witness, SectionState::Cleared, 255, 256);
        assert_eq!(witness.collect().counted, counted(255, 255));
        happen(&mut witness, SectionState::Cleared, 1, 0);
        assert_eq!(witness.collect().counted, counted(1, 0));
    }

    /// What was too short for a gap is not taken for the next one's.
    #[test]
    fn what_was_passed_over_is_forgotten() {
        let mut witness = witness(Some(SectionState::Kept));
        happen(&mut witness, SectionState::Cleared, 1, 1);
        assert!(witness.was_disturbed());
        witness.begin();
        assert!(!witness.was_disturbed());
        assert_eq!(witness.collect(), Evidence { cleared: Some(false), counted: None });
        happen(&mut witness, SectionState::Cleared, 2, 0);
        assert_eq!(witness.collect().counted, counted(2, 0));
    }

    #[test]
    fn who_has_no_senses_sees_nothing() {
        let mut blind = Witness::<ScriptedEvidence>::default();
        blind.begin();
        assert!(!blind.was_disturbed());
        assert!(blind.collect().is_none());
    }

    /// Linux 6.19: a switch inside a system call keeps the section.
    #[test]
    fn behind_a_system_call_the_counters_are_asked() {
        let evidence = ScriptedEvidence {
            state: Some(SectionState::Kept),
            only_where_interrupted: true,
            ..ScriptedEvidence::default()
        };
        let mut witness = Witness::with(evidence);
        let cannot_tell =
            |involuntary| Evidence { cleared: None, counted: counted(involuntary, 0) };
        let kept = Evidence { cleared: Some(false), counted: None };
        witness.begin();
        assert!(!witness.saw_nothing(), "the question itself may have been switched");
        assert_eq!(witness.collect(), cannot_tell(0));
        witness.was_not_switched();
        assert!(witness.saw_nothing());
        assert_eq!(witness.collect(), kept);
        witness.makes_system_calls();
        happen(&mut witness, SectionState::Kept, 1, 0);
        assert_eq!(witness.collect(), cannot_tell(1));
        // Not cleared by a switch inside the question, which is of the next gap.
        happen(&mut witness, SectionState::Kept, 1, 0);
        assert_eq!(witness.collect(), cannot_tell(1));
        witness.was_not_switched();
        happen(&mut witness, SectionState::Cleared, 1, 0);
        assert_eq!(witness.collect(), Evidence { cleared: Some(true), counted: counted(1, 0) });
    }

    /// On this machine: a thread that slept counts it as its own wait, and was cleared where that clears.
    #[test]
    fn a_sleep_is_seen() {
        let look = || {
            let tested = rseq::self_test();
            let mut witness = Witness::with(ThreadEvidence::open(&tested));
            witness.begin();
            while counters().voluntary == witness.last.voluntary {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            let seen = witness.collect();
            if tested == Ok(ClearRule::EverySwitch) {
                assert_eq!(seen.cleared, Some(true));
            }
            assert!(seen.counted.unwrap().voluntary >= 1);
        };
        std::thread::spawn(look).join().unwrap();
    }
}
