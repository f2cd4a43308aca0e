//! Jobs that are not preempted, explored: the longest response is the one that running every case finds.

use hourglass_documents::check::Verdict;
use hourglass_documents::random::Stream;
use hourglass_tasks::TaskSet;
use hourglass_theory::check::{self, CheckRequest};

/// A task in ns.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    offset: u64,
    period: u64,
    jitter: u64,
    cost: (u64, u64),
    /// The larger is more urgent.
    priority: u64,
}

/// A job whose release and cost are still open, in halves of a nanosecond: a job may begin any time before another one.
struct Job {
    task: usize,
    arrival: u64,
    due: u64,
    release: (u64, u64),
    cost: (u64, u64),
}

fn jobs(tasks: &[Numbers], end: u64) -> Vec<Job> {
    let of = |(task, t): (usize, &Numbers)| {
        let Numbers { offset, period, jitter, cost, .. } = *t;
        let arrivals = (0..).map(move |k| offset + k * period).take_while(move |at| *at < end);
        arrivals.map(move |at| Job {
            task,
            arrival: 2 * at,
            due: 2 * (at + period),
            release: (2 * at, 2 * (at + jitter)),
            cost: (2 * cost.0, 2 * cost.1),
        })
    };
    tasks.iter().enumerate().flat_map(of).collect()
}

/// Runs the jobs with these releases and costs; of two that are as urgent, the one that is released first goes first.
fn run(tasks: &[Numbers], jobs: &[Job], chosen: &[u64], edf: bool, longest: &mut [u64]) {
    let mut left: Vec<usize> = (0..jobs.len()).collect();
    let mut now = 0;
    while !left.is_empty() {
        let ready = left.iter().filter(|at| chosen[**at * 2] <= now);
        let urgency = |at: &usize| {
            let rank = if edf { jobs[*at].due } else { u64::MAX - tasks[jobs[*at].task].priority };
            (rank, chosen[*at * 2])
        };
        let Some(at) = ready.copied().min_by_key(urgency) else {
            now = left.iter().map(|at| chosen[*at * 2]).min().unwrap();
            continue;
        };
        now += chosen[at * 2 + 1];
        let job = &jobs[at];
        longest[job.task] = longest[job.task].max((now - job.arrival).div_ceil(2));
        left.retain(|other| *other != at);
    }
}

/// The longest responses of all cases; of some of them if they are many. Whether they were all.
fn by_force(tasks: &[Numbers], end: u64, edf: bool, random: &mut Stream) -> (Vec<u64>, bool) {
    const MOST: u64 = 10_000;
    let jobs = jobs(tasks, end);
    let ranges: Vec<(u64, u64)> = jobs.iter().flat_map(|job| [job.release, job.cost]).collect();
    let cases = ranges.iter().fold(1_u64, |n, (from, to)| n.saturating_mul(to - from + 1));
    let mut longest = vec![0; tasks.len()];
    for case in 0..cases.min(MOST) {
        let mut case = case;
        let chosen: Vec<u64> = ranges
            .iter()
            .map(|(from, to)| {
                let digit = case % (to - from + 1);
                case /= to - from + 1;
                if cases > MOST { random.between(*from, *to) } else { from + digit }
            })
            .collect();
        run(tasks, &jobs, &chosen, edf, &mut longest);
    }
    (longest, cases <= MOST)
}

fn file(tasks: &[Numbers], edf: bool) -> String {
    let scheduler = if edf { "scheduler = \"edf\"\n" } else { "priorities = \"given\"\n" };
    let task = |(at, t): (usize, &Numbers)| {
        format!(
            "[[task]]\nname = \"t{at}\"\nperiod = \"{}ns\"\nwcet = \"{}ns\"\nbcet = \"{}ns\"\njitter = \"{}ns\"\n\
             offset = \"{}ns\"\npriority = {}\npreemptive = false\n",
            t.period, t.cost.1, t.cost.0, t.jitter, t.offset, t.priority
        )
    };
    let tasks: String = tasks.iter().enumerate().map(task).collect();
    format!("{scheduler}[machine]\ncpus = \"0\"\n{tasks}")
}

fn random_tasks(random: &mut Stream) -> Vec<Numbers> {
    let count = random.between(2, 3);
    let mut number = |from, to| random.between(from, to);
    let task = |_| {
        let period = [6, 12][number(0, 1) as usize];
        let shortest = number(1, 3);
        let cost = (shortest, shortest + number(0, 1));
        let (offset, jitter) = (number(0, 7), number(0, 2));
        Numbers { offset, period, jitter, cost, priority: number(1, 3) }
    };
    (0..count).map(task).collect()
}

/// No case responds later than the bound; where all cases of a hyperperiod were run and no urgencies are equal, one
/// responds so late. Source: Nasri and Brandenburg, RTSS 2017: exact on one processor.
#[test]
fn the_longest_response_of_all_orders_is_found() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = Stream::from_seeds(&[seed]);
    let (mut answered, mut exact) = (0, 0);
    for _ in 0..200 {
        let tasks = random_tasks(&mut random);
        let edf = random.below(2) == 0;
        let text = file(&tasks, edf);
        let set = TaskSet::from_toml(&text).unwrap();
        let request =
            CheckRequest { analysis: Some("np-jobset".to_owned()), ..CheckRequest::default() };
        let found = check::check(&set, &request).unwrap();
        let bounds: Option<Vec<u64>> = found.tasks.iter().map(|t| t.response_time_ns).collect();
        let Some(bounds) = bounds else {
            assert_ne!(found.verdict, Verdict::Feasible, "{text}");
            continue;
        };
        answered += 1;
        let (longest, all) = by_force(&tasks, 24, edf, &mut random);
        let within = longest.iter().zip(&bounds).all(|(found, bound)| found <= bound);
        assert!(within, "seed {seed}: {longest:?} over {bounds:?}\n{text}");
        let differ = |of: &dyn Fn(&Numbers) -> u64| {
            tasks.iter().enumerate().all(|(at, t)| tasks[..at].iter().all(|o| of(o) != of(t)))
        };
        let no_ties = match edf {
            true => differ(&|t| t.offset % 6),
            false => differ(&|t| t.priority),
        };
        let from_the_start = tasks.iter().all(|task| task.offset < task.period);
        if all && no_ties && from_the_start {
            exact += 1;
            assert_eq!(longest, bounds, "seed {seed}\n{text}");
        }
    }
    assert!(answered > 50 && exact > 5, "seed {seed}: {answered} answered, {exact} exact");
}
