//! How many deadlines are missed (sections 5.4 to 5.6).

use crate::statistics::{Estimate, USUAL, share};

/// Periods that were not finished in time, of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissedShare {
    /// Missed of those that ran, as the paper counts: from 0 to 1, with the 95 % interval.
    pub missed: Estimate,
    /// Missed or lost of all: a period that an earlier one kept from beginning is late too.
    pub late: Estimate,
}

/// The shares of periods. `None` if none came to its end.
pub fn missed(hit: u64, missed: u64, lost: u64) -> Option<MissedShare> {
    let ran = hit.saturating_add(missed);
    let late = missed.saturating_add(lost);
    Some(MissedShare {
        missed: share(missed, ran, USUAL)?,
        late: share(late, ran.saturating_add(lost), USUAL)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 5.4: 53 of about 12,000 deadlines are 0.4 per cent. Section 5.6: 985 of 997.
    #[test]
    fn the_papers_shares() {
        let few = missed(12_000 - 53, 53, 0).unwrap();
        assert!((few.missed.value - 0.0044).abs() < 1e-4 && few.missed.hi < 0.006);
        let most = missed(12, 985, 3).unwrap();
        assert!((most.missed.value - 985.0 / 997.0).abs() < 1e-12);
        assert!((most.late.value - 0.988).abs() < 1e-12);
        assert_eq!(missed(0, 0, 5), None);
    }
}
