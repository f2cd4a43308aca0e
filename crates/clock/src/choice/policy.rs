//! The rules by which a source is chosen.

use std::fmt;
use std::str::FromStr;

use crate::source::{SourceName, UnknownSource};

/// The rules by which a source is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectionPolicy {
    /// The thesis' rule, exactly ([`super::thesis_rule`]).
    Thesis,
    /// The best source against which no evidence speaks.
    #[default]
    Strict,
    /// Takes the TSC if it is invariant, whatever the kernel uses; else as strict.
    Permissive,
    /// Takes this source, if it can be read.
    Forced(SourceName),
}

impl fmt::Display for SelectionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionPolicy::Thesis => f.pad("thesis"),
            SelectionPolicy::Strict => f.pad("strict"),
            SelectionPolicy::Permissive => f.pad("permissive"),
            SelectionPolicy::Forced(name) => f.pad(&format!("forced:{name}")),
        }
    }
}

/// A text that is no policy; says what would be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPolicy {
    /// The text names no known policy.
    #[error("no policy is called `{0}`; there is: thesis, strict, permissive, forced:CLOCK")]
    Word(String),
    /// The clock to be forced does not exist.
    #[error(transparent)]
    Source(#[from] UnknownSource),
}

impl FromStr for SelectionPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<SelectionPolicy, UnknownPolicy> {
        match (text, text.strip_prefix("forced:")) {
            ("thesis", _) => Ok(SelectionPolicy::Thesis),
            ("strict", _) => Ok(SelectionPolicy::Strict),
            ("permissive", _) => Ok(SelectionPolicy::Permissive),
            (_, Some(name)) => Ok(SelectionPolicy::Forced(name.parse()?)),
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
            assert_eq!(text.parse::<SelectionPolicy>().unwrap().to_string(), text);
        }
        assert_eq!(SelectionPolicy::default(), SelectionPolicy::Strict);
        assert!("loose".parse::<SelectionPolicy>().unwrap_err().to_string().contains("permissive"));
        assert!(
            "forced:sundial".parse::<SelectionPolicy>().unwrap_err().to_string().contains("hpet")
        );
    }
}
