//! The document `hourglass.doctor/1`: what on this machine spoils real-time work, and the line
//! that changes it.

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;

/// Name and version of the document.
pub const DOCTOR_SCHEMA: &str = "hourglass.doctor/1";

/// The machine's settings as they affect real-time work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorDocument {
    /// Always [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// CPUs on which the work is assumed to run. Empty where the machine does not list its CPUs.
    pub cpus: CpuSet,
    /// Why these CPUs were chosen.
    pub cpus_are: CpuSelection,
    /// Number of checks by status.
    pub counts: StatusCounts,
    /// The checks, always in the same order.
    pub checks: Vec<CheckResult>,
    /// Where the checks differ from the expected values (`--profile`); absent if there are none to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differences: Option<Vec<CheckDifference>>,
}

/// A check that is not as a profile expects it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckDifference {
    /// Name of the check.
    pub id: String,
    /// The status that is expected; null if any will do.
    pub expected_status: Option<Status>,
    /// The state that is expected; null if any will do.
    pub expected: Option<String>,
    /// Its status here.
    pub status: Status,
    /// Its state here.
    pub found: String,
    /// The command that changes the state; empty where the check itself wants nothing.
    pub remedy: String,
}

/// Why these CPUs are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuSelection {
    /// They were asked for.
    Asked,
    /// They are isolated from the others.
    Isolated,
    /// They are all that are online.
    Online,
}

/// Number of checks by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCounts {
    /// [`Status::Ok`].
    pub ok: usize,
    /// [`Status::Warn`].
    pub warn: usize,
    /// [`Status::Fail`].
    pub fail: usize,
    /// [`Status::Unknown`].
    pub unknown: usize,
}

impl StatusCounts {
    /// Counts `checks`.
    #[must_use]
    pub fn count(checks: &[CheckResult]) -> StatusCounts {
        let count = |status| checks.iter().filter(|check| check.status == status).count();
        StatusCounts {
            ok: count(Status::Ok),
            warn: count(Status::Warn),
            fail: count(Status::Fail),
            unknown: count(Status::Unknown),
        }
    }
}

/// One condition of the machine, and its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Name of the check; constant between versions.
    pub id: String,
    /// Status of the condition.
    pub status: Status,
    /// Present state, one line.
    pub found: String,
    /// What real-time work wants, and why; one line.
    pub wanted: String,
    /// The command that changes the state, or that makes it readable; empty where nothing is to be done.
    pub remedy: String,
    /// How much it costs.
    #[serde(flatten)]
    pub effect: CheckEffect,
}

/// The effect of a condition on the worst latency; all absent where nothing is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckEffect {
    /// Its size in nanoseconds, the greatest that the source names; absent where none is known.
    #[serde(default, rename = "effect_ns", skip_serializing_if = "Option::is_none")]
    pub ns: Option<u64>,
    /// Its size in words and the source of the figure, or `not known`.
    #[serde(default, rename = "effect", skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Its place among the checks that fail or warn; 1 matters most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

crate::named_enum! {
    /// Status of a condition. Ordered from the worst.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub serde enum Status {
        /// Real-time work is refused, or is stopped or delayed for milliseconds whatever its priority.
        Fail => "fail",
        /// It costs latency or jitter, or will stop work that goes beyond a limit.
        Warn => "warn",
        /// It could not be found out.
        Unknown => "unknown",
        /// As it should be, or without effect on this machine.
        Ok => "ok",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys and words that scripts rely on.
    #[test]
    fn the_document_is_written_as_promised() {
        let check = CheckResult {
            id: "swap".to_owned(),
            status: Status::Warn,
            found: "8 GiB".to_owned(),
            wanted: "none".to_owned(),
            remedy: "sudo swapoff -a".to_owned(),
            effect: CheckEffect { ns: Some(50), words: "50ns".to_owned(), rank: Some(1) },
        };
        let document = DoctorDocument {
            schema: DOCTOR_SCHEMA.to_owned(),
            cpus: [2, 3].into_iter().collect(),
            cpus_are: CpuSelection::Isolated,
            counts: StatusCounts::count(std::slice::from_ref(&check)),
            checks: vec![check],
            differences: None,
        };
        let text = serde_json::to_string(&document).unwrap();
        assert_eq!(
            text,
            r#"{"schema":"hourglass.doctor/1","cpus":"2-3","cpus_are":"isolated","counts":{"ok":0,"warn":1,"fail":0,"unknown":0},"checks":[{"id":"swap","status":"warn","found":"8 GiB","wanted":"none","remedy":"sudo swapoff -a","effect_ns":50,"effect":"50ns","rank":1}]}"#
        );
        assert_eq!(serde_json::from_str::<DoctorDocument>(&text).unwrap(), document);
        let older = text.replace(r#","effect_ns":50,"effect":"50ns","rank":1"#, "");
        let read = serde_json::from_str::<DoctorDocument>(&older).unwrap();
        assert_eq!(read.checks[0].effect, CheckEffect::default());
        assert_eq!(serde_json::to_string(&read).unwrap(), older);
        for status in [Status::Ok, Status::Warn, Status::Fail, Status::Unknown] {
            let word = format!("\"{}\"", status.name());
            assert_eq!(serde_json::to_string(&status).unwrap(), word);
        }
        assert!(Status::Fail < Status::Warn && Status::Warn < Status::Unknown);
    }
}
