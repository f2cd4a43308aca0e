//! Makes the kernel end a guardian last when memory runs out.

use super::acts::{self, digits};

/// The least value: the process is never chosen.
const NEVER: i32 = -1000;
const MOST: i32 = 1000;

/// Gives the calling process the lowest `oom_score_adj` that it may have: -1000 with `CAP_SYS_RESOURCE`, otherwise the
/// value that an administrator allowed its ancestors. System calls alone.
pub(super) fn end_last() {
    if write(NEVER) {
        return;
    }
    // Refused is whatever lies below some limit, which is between these two.
    let (mut refused, mut allowed) = (NEVER, MOST);
    while allowed - refused > 1 {
        let middle = refused + (allowed - refused) / 2;
        if write(middle) {
            allowed = middle;
        } else {
            refused = middle;
        }
    }
    // The last try may have been refused, and another one raised it before.
    write(allowed);
}

fn write(value: i32) -> bool {
    let mut text = [b'-'; 11];
    let mut room = [0; 10];
    let number = digits(value.unsigned_abs(), &mut room);
    let first = usize::from(value < 0);
    let Some(place) = text.get_mut(first..first + number.len()) else { return false };
    place.copy_from_slice(number);
    let whole = text.get(..first + number.len()).unwrap_or(&[]);
    acts::write(c"/proc/self/oom_score_adj", whole).is_ok()
}
