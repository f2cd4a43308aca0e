use std::thread;

use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread as os;
use hourglass_time::Span;

use super::super::Parameters;
use super::*;

fn every_ms() -> ValidParameters {
    Parameters::every(Span::from_millis(1)).check().unwrap()
}

/// In a thread of its own, since a nice value is not lowered again without a privilege.
#[test]
fn what_was_taken_is_given_back() {
    let here = || (sched::read(0).unwrap(), os::affinity().unwrap());
    thread::spawn(move || {
        let (policy, cpus) = here();
        let one = [cpus[0]];
        let taken =
            SchedulingChange::by_this_thread(Scheduling::Inherited, Some(&one), &every_ms())
                .unwrap();
        assert_eq!(here(), (policy, one.to_vec()));
        taken.restore().unwrap();
        assert_eq!(here(), (policy, cpus.clone()));

        match SchedulingChange::by_this_thread(Scheduling::Fifo(2), Some(&one), &every_ms()) {
            Ok(taken) => {
                assert_eq!(here(), (Some(Attributes::Fifo(2)), one.to_vec()));
                // From elsewhere, as a handle does that is dropped there.
                thread::spawn(|| taken.restore().unwrap()).join().unwrap();
            }
            Err(refused) => println!("not privileged: {refused}"),
        }
        assert_eq!(here(), (policy, cpus));
    })
    .join()
    .unwrap();
}

#[test]
fn what_cannot_be_had_changes_nothing() {
    let cpus = os::affinity().unwrap();
    let nowhere = [4_000];
    let refused =
        SchedulingChange::by_this_thread(Scheduling::Inherited, Some(&nowhere), &every_ms());
    assert!(matches!(refused, Err(TakeError::Affinity { .. })), "{refused:?}");
    let refused =
        SchedulingChange::by_this_thread(Scheduling::Fifo(100), Some(&cpus[..1]), &every_ms());
    assert!(matches!(refused, Err(TakeError::Scheduling(_))), "{refused:?}");
    assert_eq!(os::affinity().unwrap(), cpus);
}

#[test]
fn a_thread_that_is_over_needs_nothing() {
    let taken = thread::spawn(|| {
        SchedulingChange::by_this_thread(Scheduling::Other(1), None, &every_ms()).unwrap()
    });
    taken.join().unwrap().restore().unwrap();
}
