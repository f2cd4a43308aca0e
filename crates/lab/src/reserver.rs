//! The reservations that a run makes: the kernel's deadline class, for each thread by itself.
//!
//! Owns: what a thread of a run is told when it is refused one. Must not: enforce anything (`reserve` does).

use hourglass_model::{Reservation, Strength};
use hourglass_reserve::admission::{self, Facts, Refusal};
use hourglass_reserve::backend::{Request, deadline};
use hourglass_workload::reserving::{Denied, Reserver};

/// The reservations of this machine.
pub(crate) struct Kernel;

impl Reserver for Kernel {
    fn reserve(&self, reservation: &Reservation) -> Result<(), Denied> {
        deadline::enter_or_say_why(reservation)
            .map_err(|refusal| denied(refusal, reservation, &Facts::here(None)))
    }
}

/// The refusal, and the other means if that one would do.
fn denied(refusal: Refusal, reservation: &Reservation, facts: &Facts) -> Denied {
    let request = Request { reservation: *reservation, cpu: None };
    let mut remedy = refusal.remedy;
    if admission::user(&request, facts).is_empty() {
        let soft = if reservation.strength() == Strength::Soft { " --soft" } else { "" };
        remedy.push_str(&format!(
            "; or a reserve in user space: hourglass reserve {}/{}{soft} --backend user -- COMMAND",
            reservation.budget(),
            reservation.period()
        ));
    }
    Denied { errno: refusal.errno.unwrap_or_default(), cause: refusal.cause, remedy }
}

#[cfg(test)]
mod tests {
    use hourglass_reserve::admission::Obstacle;
    use hourglass_reserve::backend::Kind;
    use hourglass_time::Span;

    use super::*;

    fn told(facts: &Facts) -> String {
        let (budget, period) = (Span::from_micros(3_100), Span::from_millis(8));
        let reservation = Reservation::new(budget, period, Strength::Soft).unwrap();
        let refusal = Refusal {
            backend: Kind::Deadline,
            id: Obstacle::Bandwidth,
            errno: Some(16),
            cause: "the bandwidth is gone".to_owned(),
            remedy: "reserve less".to_owned(),
        };
        denied(refusal, &reservation, facts).remedy
    }

    /// The other means is named only to those who may use it.
    #[test]
    fn a_reserve_in_user_space_is_named_where_it_would_do() {
        let root = Facts { sys_nice: Some(true), ..Facts::default() };
        let line = "reserve less; or a reserve in user space: hourglass reserve 3.1ms/8ms --soft --backend \
                    user -- COMMAND";
        assert_eq!(told(&root), line);
        let user = Facts { sys_nice: Some(false), ..Facts::default() };
        assert_eq!(told(&user), "reserve less");
    }
}
