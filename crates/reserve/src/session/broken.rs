//! Work above the reserved work when its budget was missed, looked up at that time.
//!
//! Owns: the names. Must not: look where no period was missed.

use super::document;
use crate::backend::ActiveReservation;

/// Whether a reservation gave its budget in each period until now, and else what may have had the CPU, or failed, as far
/// as can still be seen: [`hourglass_documents::reserve::ReserveDocument::kept`] and `broken_by`. To be asked before it is released.
pub fn kept_until_now(reserved: &mut dyn ActiveReservation) -> (Option<bool>, Vec<String>) {
    let mut broken = BreakerLog::default();
    broken.look(reserved);
    let supply = reserved.supply();
    document::kept(
        supply.periods,
        Some(supply.missed),
        &reserved.accuracy_warnings(),
        broken.names(),
    )
}

/// A warning names at most this many.
const NAMED: usize = 8;

#[derive(Debug, Default)]
pub(super) struct BreakerLog {
    missed: u64,
    names: Vec<String>,
}

impl BreakerLog {
    /// Looks up who stands above the work if a period was missed since the last look.
    pub(super) fn look(&mut self, reserved: &mut dyn ActiveReservation) {
        let missed = reserved.supply().missed;
        if missed <= self.missed {
            return;
        }
        self.missed = missed;
        for name in reserved.outranked_by() {
            if self.names.len() < NAMED && !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supply::Supply;

    #[derive(Debug)]
    struct TestReservation(u64, &'static [&'static str]);

    impl ActiveReservation for TestReservation {
        fn spent(&mut self) -> crate::supply::Spent {
            crate::supply::Spent::default()
        }

        fn supply(&mut self) -> Supply {
            Supply { missed: self.0, ..Supply::default() }
        }

        fn outranked_by(&self) -> Vec<String> {
            self.1.iter().map(|name| (*name).to_owned()).collect()
        }

        fn release(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The bug: who had the CPU was looked up at the end, when it was gone.
    #[test]
    fn who_is_gone_at_the_end_is_named() {
        let mut broken = BreakerLog::default();
        // Work that takes nothing is not named.
        broken.look(&mut TestReservation(0, &["process 1"]));
        broken.look(&mut TestReservation(2, &["process 2", "process 3"]));
        broken.look(&mut TestReservation(3, &["process 3"]));
        broken.look(&mut TestReservation(3, &["process 4"]));
        broken.look(&mut TestReservation(3, &[]));
        assert_eq!(broken.names(), ["process 2", "process 3"]);
    }
}
