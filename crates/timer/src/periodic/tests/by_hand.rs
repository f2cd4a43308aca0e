//! Jobs that run in the caller's own code, as an iterator has them.

use super::*;
use crate::periodic::{CompletedJob, LoopStep};

#[test]
fn jobs_by_hand_are_those_of_a_body() {
    let seed = seed();
    let parameters = every_ms(2).with_budget(Span::from_millis(1)).check().unwrap();
    let lengths = |number: u64| (number % 7) * MS / 2;

    let mut task = task_of(seed, &parameters);
    let mut in_body = Vec::new();
    for _ in 0..500 {
        let step = task.step(&mut |job: &mut SimJob<'_>| {
            let length_ns = lengths(job.number());
            job.sleeper().mechanism().work(length_ns);
        });
        let LoopStep::Ran { job, .. } = step else { panic!("seed {seed}: the loop was stopped") };
        in_body.push(job);
    }
    let counts = task.statistics().read();

    let mut task = task_of(seed, &parameters);
    let mut by_hand: Vec<CompletedJob> = Vec::new();
    for number in 0..500 {
        let due = task.wait_for_release().expect("the loop was stopped");
        let running = task.start(due);
        assert_eq!(running.number(), number, "seed {seed}");
        assert!(running.started_ns() >= running.release_ns(), "seed {seed}");
        task.sleeper().mechanism().work(lengths(number));
        by_hand.push(task.complete(running));
    }
    assert_eq!(by_hand, in_body, "seed {seed}");
    assert_eq!(task.statistics().read(), counts, "seed {seed}");
    assert!(counts.misses > 0 && counts.lost > 0 && counts.cost_overruns > 0, "seed {seed}");
}

fn task_of(seed: u64, parameters: &ValidParameters) -> SimLoop {
    super::task(seed, Load::busy(), parameters)
}

#[test]
fn a_stop_ends_the_wait_by_hand() {
    let mut task = task_of(seed(), &every_ms(1).check().unwrap());
    let due = task.wait_for_release().expect("the loop was stopped");
    let running = task.start(due);
    task.stopper().stop();
    assert_eq!(task.complete(running).number, 0);
    assert!(task.wait_for_release().is_none());
    assert_eq!(task.statistics().read().jobs, 1);
}
