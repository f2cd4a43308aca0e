//! The kernel's deadline class (`SCHED_DEADLINE`, a constant bandwidth server).
//!
//! A hard reservation is the class as it is: the budget is also the limit. A soft one is the
//! class with reclaiming (`SCHED_FLAG_RECLAIM`), the kernel's approximation: the thread may use
//! the bandwidth that nobody reserved or used. Hourglass paper, section 5.6.

use std::io;
use std::time::{Duration, Instant};

use hourglass_model::{Reservation, Strength};
use hourglass_sys::sched::{self, Attributes};

/// How long a refusal for want of bandwidth is taken to be the echo of a reservation that has
/// just ended; about 180 ms were measured.
const ECHO: Duration = Duration::from_millis(300);
const RETRY: Duration = Duration::from_millis(10);

/// Puts the calling thread into the deadline class. It leaves
/// the class when it ends; the kernel may charge the bandwidth for up to 200 ms longer, so that
/// EBUSY is given that time to pass.
///
/// # Errors
/// What the kernel answers: EPERM without `CAP_SYS_NICE` or with an affinity that does not cover
/// the root domain, EBUSY where the bandwidth is given away, EINVAL for times outside 100 us to
/// 4.19 s or a budget under 1024 ns.
pub fn enter(reservation: &Reservation) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match enter_once(reservation) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < ECHO => {
                std::thread::sleep(RETRY);
            }
            answer => return answer,
        }
    }
}

fn enter_once(reservation: &Reservation) -> io::Result<()> {
    sched::set(Attributes::Deadline {
        runtime_ns: reservation.budget().nanos_or_zero(),
        deadline_ns: reservation.deadline().nanos_or_zero(),
        period_ns: reservation.period().nanos_or_zero(),
        reclaim: reservation.strength() == Strength::Soft,
        overrun_signal: false,
    })
}

/// Puts the calling thread back into the time-sharing class.
///
/// # Errors
/// What the kernel answers; does not happen.
pub fn leave() -> io::Result<()> {
    sched::set(Attributes::Other(0))
}

#[cfg(test)]
mod tests {
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
}
