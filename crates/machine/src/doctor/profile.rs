//! The values that a fleet expects of a machine, and where this machine differs.
//!
//! Owns: the file of expected values, which is a document of `doctor` or a part of one. Must not: judge a value.

use hourglass_documents::doctor::{CheckDifference, CheckResult, DOCTOR_SCHEMA, Status};
use hourglass_documents::spelling;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::check_ids;

/// Their words change from one look to the next; only their statuses are compared.
const VARYING: [&str; 3] = ["load", "steal-time", "thermal"];

/// A file of expected values: the checks of a `hourglass.doctor/1` document, as many as are to agree.
#[derive(Clone, Debug, Deserialize)]
pub struct Profile {
    checks: Vec<ExpectedCheck>,
}

/// What is left out of it is not compared.
#[derive(Clone, Debug, Deserialize)]
struct ExpectedCheck {
    id: String,
    status: Option<Status>,
    found: Option<String>,
}

#[derive(Debug, Error)]
pub enum ProfileError {
    #[error("{0}; `hourglass doctor --json` on a machine that is as it should be makes one")]
    Malformed(serde_json::Error),
    #[error("this is no JSON ({0}); make a profile with `hourglass doctor --json`")]
    NotJson(serde_json::Error),
    #[error("this is a {0} document, not {DOCTOR_SCHEMA}; make one with `hourglass doctor --json`")]
    OtherDocument(String),
    #[error("unknown check '{0}'{1}")]
    UnknownCheck(String, String),
}

impl Profile {
    /// # Errors
    /// No such document, or a check that there is not.
    pub fn read(text: &str) -> Result<Profile, ProfileError> {
        let value: Value = serde_json::from_str(text).map_err(ProfileError::NotJson)?;
        let schema = value.get("schema").and_then(Value::as_str);
        if let Some(other) = schema.filter(|schema| *schema != DOCTOR_SCHEMA) {
            return Err(ProfileError::OtherDocument(other.to_owned()));
        }
        let profile: Profile = serde_json::from_value(value).map_err(ProfileError::Malformed)?;
        for check in &profile.checks {
            if !check_ids().any(|known| known == check.id) {
                let advice = spelling::did_you_mean(&check.id, check_ids());
                let advice = advice.map_or(String::new(), |advice| format!("; {advice}"));
                return Err(ProfileError::UnknownCheck(check.id.clone(), advice));
            }
        }
        Ok(profile)
    }

    /// Names of the checks that it has.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().map(|check| &*check.id)
    }

    /// Where `checks` differ from it, in their order.
    #[must_use]
    pub fn differences(&self, checks: &[CheckResult]) -> Vec<CheckDifference> {
        let expected = |check: &CheckResult| self.checks.iter().find(|one| one.id == check.id);
        let pairs = checks.iter().filter_map(|check| Some((check, expected(check)?)));
        pairs
            .filter(|(check, expected)| !expected.agrees(check))
            .map(|(check, expected)| CheckDifference {
                id: check.id.clone(),
                expected_status: expected.status,
                expected: expected.found.clone(),
                status: check.status,
                found: check.found.clone(),
                remedy: check.remedy.clone(),
            })
            .collect()
    }
}

impl ExpectedCheck {
    fn agrees(&self, check: &CheckResult) -> bool {
        let compared = self.found.as_ref().filter(|_| !VARYING.contains(&&*self.id));
        self.status.is_none_or(|status| status == check.status)
            && compared.is_none_or(|found| *found == check.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_documents::doctor::CheckEffect;

    fn check(id: &str, status: Status, found: &str) -> CheckResult {
        let (id, found) = (id.to_owned(), found.to_owned());
        CheckResult {
            id,
            status,
            found,
            wanted: String::new(),
            remedy: "do it".to_owned(),
            effect: CheckEffect::default(),
        }
    }

    /// Issue 33, 4: expected values of a fleet; differences are the answer.
    #[test]
    fn what_differs_is_named_and_nothing_else() {
        let profile = r#"{"schema": "hourglass.doctor/1", "counts": {}, "checks": [
            {"id": "governor", "status": "ok", "found": "performance", "wanted": "x", "remedy": ""},
            {"id": "swap", "status": "ok"}, {"id": "ksm", "found": "off"},
            {"id": "load", "status": "ok", "found": "nothing else runs now (load average 0.10)"}]}"#;
        let profile = Profile::read(profile).unwrap();
        assert_eq!(profile.ids().collect::<Vec<_>>(), ["governor", "swap", "ksm", "load"]);
        let mut checks = [
            check("governor", Status::Ok, "performance"),
            check("swap", Status::Ok, "none"),
            check("ksm", Status::Ok, "off"),
            check("load", Status::Ok, "nothing else runs now (load average 5.06)"),
            check("timer-slack", Status::Warn, "not in the profile"),
        ];
        assert_eq!(profile.differences(&checks), []);
        checks[0] = check("governor", Status::Warn, "powersave");
        checks[2] = check("ksm", Status::Ok, "leaves everything alone");
        let found = profile.differences(&checks);
        let [governor, ksm] = &found[..] else { panic!("{found:?}") };
        assert_eq!((governor.expected_status, governor.status), (Some(Status::Ok), Status::Warn));
        assert_eq!(
            (governor.expected.as_deref(), &*governor.found),
            (Some("performance"), "powersave")
        );
        assert_eq!((&*ksm.id, ksm.expected_status), ("ksm", None));
    }

    #[test]
    fn a_profile_that_cannot_be_meant_is_refused() {
        for (text, says) in [
            ("", "this is no JSON (EOF while"),
            ("{}", "makes one"),
            (
                r#"{"schema": "hourglass.run/1"}"#,
                "a hourglass.run/1 document, not hourglass.doctor/1",
            ),
            (r#"{"checks": [{"status": "ok"}]}"#, "missing field `id`"),
            (r#"{"checks": [{"id": "swap", "status": "fine"}]}"#, "fine"),
            (r#"{"checks": [{"id": "swop"}]}"#, "unknown check 'swop'; did you mean 'swap'?"),
        ] {
            let said = Profile::read(text).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}
