//! Whether a source of time can be relied on, why, and what was found about it, item by item.

/// Whether a source of time can be relied on, and what that rests on.
///
/// Of a source before it is used: [`crate::choice::SourceReport::trust`]. Of a clock while it
/// runs: [`crate::Clock::trust`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustReport {
    /// Whether it can.
    pub trusted: bool,
    /// The reason, one clause for people.
    pub reason: String,
    /// Item by item.
    pub evidence: Vec<Evidence>,
}

/// One finding, and its verdict about the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The name of the check; one word, constant between versions.
    pub id: &'static str,
    /// The finding, for people.
    pub found: String,
    /// The verdict of the finding.
    pub verdict: EvidenceVerdict,
}

/// The verdict of a piece of evidence about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceVerdict {
    /// The evidence speaks for trusting the source.
    Good,
    /// The evidence speaks against the source; one is enough.
    Bad,
    /// The evidence says nothing either way.
    Neutral,
    /// The check could not be made.
    Unknown,
}

impl EvidenceVerdict {
    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EvidenceVerdict::Good => "good",
            EvidenceVerdict::Bad => "bad",
            EvidenceVerdict::Neutral => "neutral",
            EvidenceVerdict::Unknown => "unknown",
        }
    }

    /// Good or bad.
    #[must_use]
    pub(crate) fn good_if(good: bool) -> EvidenceVerdict {
        if good { EvidenceVerdict::Good } else { EvidenceVerdict::Bad }
    }
}

impl Evidence {
    pub(crate) fn new(
        id: &'static str,
        verdict: EvidenceVerdict,
        found: impl Into<String>,
    ) -> Evidence {
        Evidence { id, found: found.into(), verdict }
    }
}

/// Whether nothing speaks against a source, and everything in `required` speaks for it.
#[must_use]
pub fn is_trusted(evidence: &[Evidence], required: &[&str]) -> bool {
    objection(evidence, required).is_none()
}

/// The first thing that speaks against a source, or that should speak for it and does not; a
/// missing item is not found out.
#[must_use]
pub fn objection(evidence: &[Evidence], required: &[&str]) -> Option<String> {
    let is_required = |e: &Evidence| required.contains(&e.id);
    let against = |e: &&Evidence| {
        e.verdict == EvidenceVerdict::Bad || (is_required(e) && e.verdict != EvidenceVerdict::Good)
    };
    if let Some(found) = evidence.iter().find(against) {
        return Some(format!("{}: {}", found.id, found.found));
    }
    let missing = required.iter().find(|id| evidence.iter().all(|e| e.id != **id))?;
    Some(format!("{missing}: not checked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_objection_is_enough_and_silence_is_not_consent() {
        let item = |id, verdict| Evidence::new(id, verdict, "x");
        let good = item("a", EvidenceVerdict::Good);
        assert!(is_trusted(&[good.clone(), item("b", EvidenceVerdict::Unknown)], &["a"]));
        assert!(!is_trusted(&[good.clone(), item("b", EvidenceVerdict::Unknown)], &["a", "b"]));
        assert!(!is_trusted(&[good.clone(), item("c", EvidenceVerdict::Bad)], &["a"]));
        assert_eq!(objection(&[good], &["a", "z"]).unwrap(), "z: not checked");
    }
}
