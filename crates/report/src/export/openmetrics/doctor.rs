//! The metrics of the doctor.

use hourglass_documents::doctor::{DoctorDocument, Status};

use super::{Metric, MetricText};

/// The text of an examination of the machine.
#[must_use]
pub fn openmetrics_doctor(document: &DoctorDocument) -> String {
    let mut text = MetricText::new(None);
    for check in &document.checks {
        for status in Status::ALL {
            let labels = [("check", check.id.as_str()), ("status", status.name())];
            text.add_flag(Metric::DoctorCheck, &labels, check.status == status);
        }
    }
    let counts = document.counts;
    for (status, count) in [
        (Status::Fail, counts.fail),
        (Status::Warn, counts.warn),
        (Status::Unknown, counts.unknown),
        (Status::Ok, counts.ok),
    ] {
        text.add(Metric::DoctorChecks, &[("status", status.name())], count);
    }
    text.finish()
}
