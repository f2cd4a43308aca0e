//! By what rule a source is chosen.

use std::fmt;
use std::str::FromStr;

use crate::source::{SourceName, UnknownSource};

/// By what rule a source is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The thesis' rule, exactly ([`super::thesis`]).
    Thesis,
    /// The best source against which no evidence speaks.
    #[default]
    Strict,
    /// The TSC if it is invariant, whatever the kernel uses; else as strict.
    Permissive,
    /// This one, if it can be read at all.
    Forced(SourceName),
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Thesis => f.pad("thesis"),
            Policy::Strict => f.pad("strict"),
            Policy::Permissive => f.pad("permissive"),
            Policy::Forced(name) => f.pad(&format!("forced:{name}")),
        }
    }
}

/// A text that is no policy; says what would be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPolicy {
    /// The word is none of those known.
    #[error("no policy is called `{0}`; there is: thesis, strict, permissive, forced:CLOCK")]
    Word(String),
    /// The clock to be forced does not exist.
    #[error(transparent)]
    Source(#[from] UnknownSource),
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Policy, UnknownPolicy> {
        match (text, text.strip_prefix("forced:")) {
            ("thesis", _) => Ok(Policy::Thesis),
            ("strict", _) => Ok(Policy::Strict),
            ("permissive", _) => Ok(Policy::Permissive),
            (_, Some(name)) => Ok(Policy::Forced(name.parse()?)),
            _ => Err(UnknownPolicy::Word(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_written_and_read() {
        for text in ["thesis", "strict", "permissive", "forced:tsc", "forced:ptp3"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!(Policy::default(), Policy::Strict);
        assert!("loose".parse::<Policy>().unwrap_err().to_string().contains("permissive"));
        assert!("forced:sundial".parse::<Policy>().unwrap_err().to_string().contains("hpet"));
    }
}
