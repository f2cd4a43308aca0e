//! What ends a comparison with a code other than 0.

use std::process::ExitCode;

use clap::ValueEnum;
use hourglass_documents::diff::{DiffDocument, DiffVerdict};
use hourglass_documents::premise::PREMISE_BROKEN;

use crate::exit::{NO, UNDECIDED, YES};

/// When the answer is not yes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Something got worse (1)
    Worse,
    /// Something got worse (1), or there is no overall verdict (4)
    #[default]
    Unknown,
    /// Something got worse (1), or at least one metric is undecided (4)
    Doubt,
}

impl FailOn {
    /// The exit code of a comparison.
    pub(crate) fn code(self, document: &DiffDocument) -> ExitCode {
        ExitCode::from(self.number(document))
    }

    fn number(self, document: &DiffDocument) -> u8 {
        let unknown = |verdict: DiffVerdict| verdict == DiffVerdict::Unknown;
        let undecided = unknown(document.verdict);
        let doubt = document.metrics.iter().any(|metric| unknown(metric.verdict));
        if broke(document) {
            return UNDECIDED;
        }
        let is_open = match self {
            FailOn::Worse => false,
            FailOn::Unknown => undecided,
            FailOn::Doubt => undecided || doubt,
        };
        match document.verdict {
            DiffVerdict::Worse => NO,
            _ if is_open => UNDECIDED,
            _ => YES,
        }
    }
}

/// Whether a premise of a run broke.
pub(crate) fn broke(document: &DiffDocument) -> bool {
    document.warnings.iter().any(|warning| warning.id == PREMISE_BROKEN)
}

#[cfg(test)]
mod tests {
    use hourglass_documents::diff::DiffMetric;
    use hourglass_documents::document::Warning;

    use super::*;

    /// What a test in CI expects: a code of its own for what cannot be decided, or none if it says so. A
    /// against A ended with 1 in 22 of 23, as if B were worse.
    #[test]
    fn exit_codes_by_what_is_asked() {
        let of = |verdict, metric| DiffDocument {
            verdict,
            metrics: vec![DiffMetric { verdict: metric, ..DiffMetric::default() }],
            ..DiffDocument::default()
        };
        use DiffVerdict::{Better, Same, Unknown, Worse};
        for (verdict, metric, wanted) in [
            (Worse, Worse, [1, 1, 1]),
            (Worse, Unknown, [1, 1, 1]),
            (Unknown, Unknown, [0, 4, 4]),
            (Same, Unknown, [0, 0, 4]),
            (Better, Better, [0, 0, 0]),
        ] {
            let document = of(verdict, metric);
            let found =
                [FailOn::Worse, FailOn::Unknown, FailOn::Doubt].map(|f| f.number(&document));
            assert_eq!(found, wanted, "{verdict:?}");
            let id = PREMISE_BROKEN.to_owned();
            let broken = Warning { id, text: String::new(), remedy: String::new() };
            let document = DiffDocument { warnings: vec![broken], ..document };
            assert_eq!(FailOn::Worse.number(&document), 4, "of runs without a verdict");
        }
    }
}
