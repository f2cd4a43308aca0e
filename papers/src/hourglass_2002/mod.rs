//! J. Regehr, *Inferring Scheduling Behavior with Hourglass*, USENIX Annual Technical Conference,
//! FREENIX track, 2002: its Figures 3 to 6 and Tables 1 and 2, whether concurrent applications can meet
//! their deadlines (section 5.5), also in reservations (section 5.6).
//!
//! A figure is a table of its numbers here, called `figure-3`, and a picture. What has no number in the
//! paper has that of its section.

mod figure_3;
mod figure_4;
mod figure_5;
mod figure_6;
mod runs;
mod section_5_5;
mod section_5_6;
mod table_1;
mod table_2;

use super::printed::Measure;

pub(super) fn measure(id: &str) -> Option<Measure> {
    Some(match id {
        "figure-3" => figure_3::measure,
        "figure-4" => figure_4::measure,
        "figure-5" => figure_5::measure,
        "figure-6" => figure_6::measure,
        "1" => table_1::measure,
        "2" => table_2::measure,
        "5.5" => section_5_5::measure,
        "5.6" => section_5_6::measure,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    pub(super) fn table(id: &str) -> &'static crate::Table {
        crate::Paper::named("hourglass-2002").unwrap().table(id).unwrap()
    }
}
