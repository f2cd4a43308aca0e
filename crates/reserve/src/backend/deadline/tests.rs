//! The class on the machine at hand.

use super::*;
use hourglass_time::Span;

/// EBUSY while bandwidth given back by others is still charged.
const EBUSY: i32 = 16;
const EPERM: i32 = 1;

/// In a thread of its own, since the class stays with the thread. Where the machine refuses
/// the class, it must be for a reason that the documentation names.
#[test]
fn a_thread_enters_and_leaves_the_class() {
    let entered = std::thread::spawn(|| {
        let budget = Span::from_micros(100);
        let period = Span::from_millis(10);
        let reservation = Reservation::new(budget, period, Strength::Hard)
            .map_err(|e| io::Error::other(e.to_string()))?;
        enter(&reservation)?;
        let inside = sched::policy_number()?;
        leave()?;
        Ok::<_, io::Error>((inside, sched::policy_number()?))
    });
    match entered.join().unwrap() {
        Ok(numbers) => assert_eq!(numbers, (6, 0)),
        Err(error) => assert!(
            matches!(error.raw_os_error(), Some(EPERM | EBUSY)),
            "refused for an undocumented reason: {error}"
        ),
    }
}

#[test]
fn times_that_the_class_does_not_take_are_refused_by_the_kernel() {
    let reservation =
        Reservation::new(Span::from_nanos(500), Span::from_micros(1), Strength::Hard).unwrap();
    let refused = std::thread::spawn(move || enter(&reservation)).join().unwrap();
    assert!(refused.is_err());
}
