//! The questions of the corpus.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a case asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Utilisation bounds.
    Bounds,
    /// Constant-bandwidth servers: finish times, deadlines.
    Cbs,
    /// The event models and propagation of compositional performance analysis.
    CpaEndToEnd,
    /// Demand at points.
    Dbf,
    /// Admission to the deadline class.
    DlAdmission,
    /// EDF, preemptive: response times.
    EdfPreemptive,
    /// EDF, non-preemptive.
    EdfNonpreemptive,
    /// EDF with floating non-preemptive segments.
    EdfFloatingNp,
    /// EDF with fixed preemption points.
    EdfLimitedPreemptive,
    /// EDF: whether all deadlines hold.
    EdfFeasibility,
    /// An EDF schedule.
    EdfTrace,
    /// First in, first out.
    Fifo,
    /// Fixed priorities, preemptive.
    FpPreemptive,
    /// Fixed priorities with self-suspension.
    FpSuspension,
    /// Fixed priorities, non-preemptive.
    FpNonpreemptive,
    /// Fixed priorities with fixed preemption points.
    FpLimitedPreemptive,
    /// Fixed priorities with floating non-preemptive segments.
    FpFloatingNp,
    /// Global EDF.
    GlobalEdf,
    /// Global fixed priorities, limited carry-in.
    GlobalFpLc,
    /// Global fixed priorities, Bertogna and Cirinei.
    GlobalFpBc,
    /// Chains across processors.
    HolisticFp,
    /// Response times from nominal arrival and from release.
    JitterTwoReadings,
    /// Spin locks on several processors.
    MpSpinlock,
    /// Non-preemptive job sets.
    NpJobset,
    /// One slack monitor.
    SlackMonitor,
    /// The slack of several.
    SlackMulti,
    /// Supply of a periodic resource.
    SupplyPeriodic,
    /// Supply of an explicit-deadline periodic resource.
    SupplyEdp,
    /// Response times within a reservation.
    SupplyRta,
    /// Equal priorities.
    TrapEqualPriority,
    /// A kind that this version does not know.
    Other(String),
}

const NAMES: [(&str, Kind); 30] = [
    ("bounds", Kind::Bounds),
    ("cbs", Kind::Cbs),
    ("cpa-e2e", Kind::CpaEndToEnd),
    ("dbf", Kind::Dbf),
    ("dl-admission", Kind::DlAdmission),
    ("edf-preemptive", Kind::EdfPreemptive),
    ("edf-nonpreemptive", Kind::EdfNonpreemptive),
    ("edf-floating-np", Kind::EdfFloatingNp),
    ("edf-limited-preemptive", Kind::EdfLimitedPreemptive),
    ("edf-feasibility", Kind::EdfFeasibility),
    ("edf-trace", Kind::EdfTrace),
    ("fifo", Kind::Fifo),
    ("fp-preemptive", Kind::FpPreemptive),
    ("fp-suspension", Kind::FpSuspension),
    ("fp-nonpreemptive", Kind::FpNonpreemptive),
    ("fp-limited-preemptive", Kind::FpLimitedPreemptive),
    ("fp-floating-np", Kind::FpFloatingNp),
    ("global-edf", Kind::GlobalEdf),
    ("global-fp-rta-lc", Kind::GlobalFpLc),
    ("global-fp-bc", Kind::GlobalFpBc),
    ("holistic-fp", Kind::HolisticFp),
    ("jitter-two-readings", Kind::JitterTwoReadings),
    ("mp-spinlock", Kind::MpSpinlock),
    ("np-jobset", Kind::NpJobset),
    ("slack-monitor", Kind::SlackMonitor),
    ("slack-multi", Kind::SlackMulti),
    ("supply-periodic", Kind::SupplyPeriodic),
    ("supply-edp", Kind::SupplyEdp),
    ("supply-rta", Kind::SupplyRta),
    ("trap-equal-priority", Kind::TrapEqualPriority),
];

impl Kind {
    /// The kind as cases write it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Kind::Other(name) => name,
            known => NAMES.iter().find(|(_, kind)| kind == known).map_or("", |(name, _)| name),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = NAMES.iter().find(|(known, _)| *known == name);
        Ok(known.map_or(Kind::Other(name), |(_, kind)| kind.clone()))
    }
}
