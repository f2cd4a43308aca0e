//! Properties of random sets of tasks. Each test prints its seed; `HOURGLASS_SEED` replays it.

use hourglass_tasks::{
    Activation, CriticalSection, Fraction, Interference, Preemption, Protocol, Resource, Server,
    ServerKind, Task, TaskSet,
};
use hourglass_time::Span;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The seed that was given, or a new one.
fn seeded() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(hourglass_dice::seed());
    ProptestConfig { rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// Times of every size, above zero.
fn times() -> impl Strategy<Value = Span> {
    (0_u32..62, 1_i64..1_000).prop_map(|(bits, more)| Span::from_nanos((1 << bits) + more))
}

fn preemptions() -> impl Strategy<Value = Preemption> {
    let one = Span::NANOSECOND;
    prop_oneof![
        Just(Preemption::Full),
        Just(Preemption::None),
        Just(Preemption::Limited { longest: one, last: one }),
        Just(Preemption::Floating { longest: one }),
    ]
}

prop_compose! {
    fn tasks()(
        wcet in times(),
        period in times(),
        deadline in proptest::option::of(times()),
        jitter in proptest::option::of(times()),
        suspension in proptest::option::of(times()),
        offset in proptest::option::of(times()),
        preemption in preemptions(),
        mut arrivals in proptest::collection::vec(times(), 0..4),
        cpu in proptest::option::of(0_u32..8),
        uses in any::<bool>(),
        is_sporadic in any::<bool>(),
    ) -> Task {
        arrivals.sort();
        let section = CriticalSection { resource: "r".into(), length: Span::NANOSECOND, count: 2 };
        Task {
            deadline,
            jitter: jitter.unwrap_or_default(),
            suspension: suspension.unwrap_or_default(),
            offset: offset.filter(|_| !is_sporadic),
            activation: if is_sporadic { Activation::Sporadic } else { Activation::Periodic },
            preemption,
            arrivals,
            cpus: cpu.map(|cpu| cpu.to_string().parse().unwrap()),
            critical_sections: if uses { vec![section] } else { Vec::new() },
            ..Task::new("", wcet, period)
        }
    }
}

prop_compose! {
    /// Sets in which every odd task is after the one before it, if they have one period.
    fn sets()(
        mut tasks in proptest::collection::vec(tasks(), 1..12),
        name in "\\PC{0,12}",
        odd_names in any::<bool>(),
        chains in any::<bool>(),
        share in 1_u64..100,
        budget in times(),
    ) -> TaskSet {
        for position in 0..tasks.len() {
            let letters = if odd_names { "T'\"\\ \u{e9}[x]#" } else { "task" };
            tasks[position].name = format!("{letters}{position}");
            if chains && position % 2 == 1 {
                tasks[position].period = tasks[position - 1].period;
                tasks[position].after = vec![tasks[position - 1].name.clone()];
            }
        }
        let server = Server {
            tasks: vec![tasks[0].name.clone()],
            ..Server::new("s", ServerKind::Sporadic, budget, budget)
        };
        let rate = Fraction::new(share, 100).unwrap();
        TaskSet {
            name,
            resources: vec![Resource { name: "r".into(), protocol: Protocol::Spin, ceiling: None }],
            servers: vec![server],
            interference: vec![Interference { task: None, beside: None, rate }],
            ..TaskSet::new(tasks)
        }
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn what_is_written_reads_back_the_same(set in sets()) {
        prop_assert_eq!(set.check(), Ok(()));
        let written = set.to_toml();
        prop_assert_eq!(TaskSet::from_toml(&written), Ok(set.clone()), "{}", written);
        let written = set.to_json();
        prop_assert_eq!(TaskSet::from_json(&written), Ok(set), "{}", written);
    }

    /// Assigned priorities are all different, and no less urgent for a shorter deadline.
    #[test]
    fn assigned_priorities_follow_deadlines(set in sets()) {
        let priorities = set.priorities();
        for (a, first) in set.tasks.iter().zip(&priorities) {
            for (b, second) in set.tasks.iter().zip(&priorities) {
                prop_assert!(first != second || a.name == b.name);
                prop_assert!(a.deadline() >= b.deadline() || first > second);
            }
        }
    }

    /// A chain closed to a circle is refused, and the message names tasks of it only.
    #[test]
    fn circles_are_found(length in 1_usize..20, tail in 0_usize..5) {
        let task = |position: usize| Task {
            after: vec![format!("t{}", if position == length - 1 { 0 } else { position + 1 })],
            ..Task::new(&format!("t{position}"), Span::MILLISECOND, Span::SECOND)
        };
        let mut set = TaskSet::new((0..length).map(task).collect());
        for position in 0..tail {
            let more = Task::new(&format!("tail{position}"), Span::MILLISECOND, Span::SECOND);
            set.tasks.push(Task { after: vec!["t0".into()], ..more });
        }
        let message = set.check().unwrap_err().to_string();
        prop_assert!(message.starts_with("tasks wait for each other: t0 after "), "{}", message);
        prop_assert_eq!(message.matches(" after ").count(), length, "{}", message);
    }

    /// Whatever a file says, it is read or refused in one line.
    #[test]
    fn no_text_is_too_much(text in "\\PC{0,80}") {
        let lines = ["name", "wcet", "period", "deadline", "cpus", "priority", "after", "phases"];
        for key in lines {
            let text = format!("[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"2ms\"\n{key} = {text}");
            if let Err(error) = TaskSet::from_toml(&text) {
                prop_assert!(!error.to_string().contains('\n'), "{:?}", error);
            }
        }
        for result in [TaskSet::from_json(&text), TaskSet::from_rt_app(&text).map(|i| i.set)] {
            prop_assert!(!result.unwrap_err().to_string().contains('\n'));
        }
    }
}
