//! Locks: blocking by hand, and what waiting for them costs.

use hourglass_documents::check::Verdict;
use hourglass_theory::simulate::{Releases, SimulationRequest, simulate};

use super::check::{answer, bounds, read, task};

/// One section of a less urgent task under the ceiling protocol; under inheritance one of each.
#[test]
fn locks() {
    let tasks = task(
        "high",
        "wcet = 2\nperiod = 20\npriority = 3\ncritical_sections = [{ resource = \"p\", length = 1 }, { resource = \"q\", length = 1 }]",
    ) + &task(
        "middle",
        "wcet = 4\nperiod = 40\npriority = 2\ncritical_sections = [{ resource = \"p\", length = 2 }]",
    ) + &task(
        "low",
        "wcet = 5\nperiod = 60\npriority = 1\ncritical_sections = [{ resource = \"q\", length = 3 }]",
    );
    let with = |protocol: &str| {
        let resource =
            |name: &str| format!("[[resource]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\n");
        answer(&format!("{tasks}{}{}", resource("p"), resource("q")))
    };
    // 2 + max(2, 3); 4 + 2 + 3, since low may hold q at the ceiling; 5 + 2 + 4.
    assert_eq!(bounds(&with("ceiling")), [5_000, 9_000, 11_000]);
    // 2 + 2 + 3.
    assert_eq!(bounds(&with("inheritance")), [7_000, 9_000, 11_000]);
    assert_eq!(bounds(&with("spin")), [5_000, 9_000, 11_000]);
    let plain = with("plain");
    assert_eq!(plain.verdict, Verdict::Unknown);
    assert!(plain.reason.unwrap().contains("plain lock"));
}

/// Who waits for two locks has two holders preempted and takes their CPU twice, so that caches are filled as often: by hand, as
/// the simulator has it.
#[test]
fn caches_of_those_who_hold_locks() {
    let section = |lock: &str, length| format!("{{ resource = \"{lock}\", length = {length} }}");
    let both = [section("a", 1), section("b", 1)].join(", ");
    let text = ["a", "b"]
        .map(|lock| format!("[[resource]]\nname = \"{lock}\"\nprotocol = \"inheritance\"\n"))
        .concat()
        + "[machine]\noverheads = { cache_delay = 5 }\n"
        + &task(
            "high",
            &format!(
                "wcet = 6\nperiod = 100\npriority = 3\noffset = 6\ncritical_sections = [{both}]"
            ),
        )
        + &task(
            "middle",
            &format!(
                "wcet = 5\nperiod = 100\npriority = 2\noffset = 3\ncritical_sections = [{}]",
                section("a", 3)
            ),
        )
        + &task(
            "low",
            &format!(
                "wcet = 5\nperiod = 100\npriority = 1\noffset = 0\ncritical_sections = [{}]",
                section("b", 3)
            ),
        );
    for deadline in [17, 18, 26, 27, 35, 36] {
        let text = text.replace("period", &format!("deadline = {deadline}\nperiod"));
        let found = answer(&text);
        // Simulated: high 18, middle 27, low 36.
        assert_eq!(
            found.verdict == Verdict::Infeasible,
            deadline < 36,
            "{deadline}: {:?}",
            found.reason
        );
        assert!(!found.reason.unwrap_or_default().contains("defect"), "{deadline}");
    }
    assert!(bounds(&answer(&text)).iter().zip([18, 27, 36]).all(|(bound, seen)| *bound >= seen));
}

/// Who fills its caches is preempted meanwhile, so that this keeps nobody waiting.
#[test]
fn filling_caches_is_preempted() {
    let text = "[machine]\noverheads = { cache_delay = 4 }\n".to_owned()
        + &task("high", "wcet = 1\nperiod = 40\ndeadline = 2\npriority = 3\noffset = 6")
        + &task("middle", "wcet = 2\nperiod = 40\npriority = 2\noffset = 3")
        + &task("low", "wcet = 8\nperiod = 40\npriority = 1");
    let found = answer(&text);
    assert_ne!(found.verdict, Verdict::Infeasible, "{:?}", found.reason);
}

/// Under EDF a ceiling is that of the stack resource policy (Baker 1991): one section holds up a job, where it would be two with
/// inheritance; and the simulator has the same.
#[test]
fn ceilings_of_deadlines() {
    let section = |lock: &str, length| format!("{{ resource = \"{lock}\", length = {length} }}");
    let both = [section("a", 1), section("b", 1)].join(", ");
    let file = |protocol: &str| {
        ["a", "b"]
            .map(|lock| format!("[[resource]]\nname = \"{lock}\"\nprotocol = \"{protocol}\"\n"))
            .concat()
            + &task(
                "high",
                &format!(
                    "wcet = 2\nperiod = 100\ndeadline = 5\noffset = 2\ncritical_sections = [{both}]"
                ),
            )
            + &task(
                "middle",
                &format!(
                    "wcet = 3\nperiod = 100\ndeadline = 40\noffset = 1\ncritical_sections = [{}]",
                    section("a", 3)
                ),
            )
            + &task(
                "low",
                &format!(
                    "wcet = 3\nperiod = 100\noffset = 0\ncritical_sections = [{}]",
                    section("b", 3)
                ),
            )
    };
    let edf = |protocol: &str| answer(&format!("scheduler = \"edf\"\n{}", file(protocol)));
    assert_eq!(edf("ceiling").verdict, Verdict::Feasible);
    assert_eq!(edf("inheritance").verdict, Verdict::Infeasible);
    let stated = edf("ceiling\"\nceiling = 80 # \"");
    assert!(stated.assumptions.iter().any(|line| line.contains("its ceiling is a priority")));
}

/// What a task states comes on top of a section of 3, once, whatever the scheduler.
#[test]
fn stated_blocking_and_locks() {
    let text = task("high", "wcet = 2\nperiod = 20\nblocking = 1\npriority = 2")
        + &task(
            "low",
            "wcet = 5\nperiod = 60\npriority = 1\ncritical_sections = [{ resource = \"p\", length = 3 }]",
        )
        + "[[resource]]\nname = \"p\"\nprotocol = \"spin\"\n";
    assert_eq!(bounds(&answer(&text))[0], 6_000);
    let text = text.replace("priority = 2", "").replace("priority = 1", "");
    assert_eq!(bounds(&answer(&format!("scheduler = \"edf\"\n{text}")))[0], 6_000);
}

/// A lock shared across CPUs is waited for, first come, first served or not.
#[test]
fn locks_across_cpus() {
    let uses = "critical_sections = [{ resource = \"r\", length = 1 }]";
    let text = |cpu: u32| {
        String::from("scheduler = \"fifo\"\nmachine.cpus = \"0-1\"\n[[resource]]\nname = \"r\"\n")
            + &task("a", &format!("wcet = 2\nperiod = 10\ncpu = 0\n{uses}"))
            + &task("b", &format!("wcet = 2\nperiod = 10\ncpu = {cpu}\n{uses}"))
    };
    assert_eq!(bounds(&answer(&text(0))), [4_000, 4_000]);
    let across = answer(&text(1));
    assert_eq!(across.verdict, Verdict::Unknown);
    assert!(across.reason.unwrap().contains("other processors"));
}

/// Gai, Lipari and Di Natale, RTSS 2001: a request spins for the longest section of each other CPU, and
/// a job waits once for a less urgent one that spins and holds.
#[test]
fn spin_locks_between_cpus() {
    let section = |length: u32, count: u32| {
        format!("critical_sections = [{{ resource = \"r\", length = {length}, count = {count} }}]")
    };
    let text = "[machine]\ncpus = \"0-1\"\n[[resource]]\nname = \"r\"\nprotocol = \"spin\"\n"
        .to_owned()
        + &task("a", &format!("wcet = 5\nperiod = 30\npriority = 3\ncpu = 0\n{}", section(1, 2)))
        + &task("b", &format!("wcet = 6\nperiod = 60\npriority = 2\ncpu = 0\n{}", section(2, 1)))
        + &task("c", &format!("wcet = 8\nperiod = 60\npriority = 1\ncpu = 1\n{}", section(3, 1)));
    let found = answer(&text);
    // a: 5 + 2 * 3, and b's 3 + 2. b: 6 + 3 and one a. c: 8 + 2.
    assert_eq!(bounds(&found), [16_000, 20_000, 10_000]);
    assert_eq!(found.verdict, Verdict::Feasible);
    assert!(found.assumptions.iter().any(|line| line.contains("first come, first served")));
    // Over a deadline nothing is proven: the sections need not meet.
    let late =
        answer(&text.replace("wcet = 6\nperiod = 60", "wcet = 6\nperiod = 60\ndeadline = 19"));
    assert_eq!(late.verdict, Verdict::Unknown);
    let plain = answer(&text.replace("\"spin\"", "\"ceiling\""));
    assert!(plain.reason.unwrap().contains("shared with tasks on other processors"));
}

/// Locks of tasks in a server bound as `simulate` has them, or unknown. The budget may end in a section under a spin lock, which was
/// called feasible: where a more urgent task came then, it spun away every budget, and 102 jobs were lost. Nor did `simulate`
/// raise the holder of a lock among the tasks of its server, so that one in between prolonged the wait.
#[test]
fn locks_in_servers() {
    let section = |length: &str| {
        format!("critical_sections = [{{ resource = \"r\", length = \"{length}\" }}]")
    };
    let set = |server: &str, protocol: &str, tasks: &str| {
        format!(
            "[[resource]]\nname = \"r\"\nprotocol = \"{protocol}\"\n[[server]]\nname = \"s\"\n{server}\n{tasks}"
        )
    };
    let high = "wcet = 1\nperiod = 200\npriority = 3\nactivation = \"sporadic\"\n";
    let low = "wcet = 2\nperiod = 200\npriority = 1\nactivation = \"sporadic\"\n";
    let both = task("a", &(low.to_owned() + &section("1ms")))
        + &task("b", &(high.to_owned() + &section("500us")));
    let middle = task("c", "wcet = 9\nperiod = 200\npriority = 2\noffset = 1");
    let kinds =
        ["cbs-hard", "polling", "deferrable", "sporadic", "periodic-resource", "explicit-deadline"];
    for (kind, rule) in
        kinds.iter().flat_map(|kind| ["fixed-priority", "edf"].map(|rule| (kind, rule)))
    {
        for (protocol, budget, more) in ["spin", "ceiling", "inheritance"]
            .iter()
            .flat_map(|protocol| [(*protocol, 1, ""), (*protocol, 10, middle.as_str())])
        {
            let names = if more.is_empty() { "" } else { ", \"c\"" };
            let server = format!(
                "kind = \"{kind}\"\nscheduler = \"{rule}\"\nbudget = {budget}\nperiod = 10\ntasks = [\"a\", \"b\"{names}]"
            );
            let text = set(&server, protocol, &(both.clone() + more));
            let found = answer(&text);
            let verdict = if protocol == "spin" { Verdict::Unknown } else { Verdict::Feasible };
            assert_eq!(found.verdict, verdict, "{text}{:?}", found.reason);
            for seed in 1..4 {
                let mut request = SimulationRequest::new(read(&text));
                (request.releases, request.seed) = (Releases::Random, seed);
                request.horizon = Some("4s".parse().unwrap());
                for (facts, seen) in
                    found.tasks.iter().zip(simulate(&request, &mut ()).unwrap().document.tasks)
                {
                    assert_eq!(seen.missed + seen.lost, 0, "'{}'\n{text}", facts.name);
                    let longest = seen.max_response_ns.unwrap_or(0);
                    assert!(
                        facts.response_time_ns.is_none_or(|bound| longest <= bound),
                        "'{}'\n{text}",
                        facts.name
                    );
                }
            }
        }
    }
    // One task alone waits for nobody.
    let server = "kind = \"cbs-hard\"\nbudget = 1\nperiod = 10\ntasks = [\"a\"]";
    let alone = set(server, "spin", &task("a", &(low.to_owned() + &section("1ms"))));
    assert_eq!(answer(&alone).verdict, Verdict::Feasible);
}

/// Found by simulation: which sections are of less urgent tasks depends on the priorities that are found, and 1 was called the bound
/// of a task that waits for a section of 1.
#[test]
fn priorities_are_not_found_beside_locks() {
    for protocol in ["spin", "ceiling", "inheritance"] {
        let uses = "wcet = 1\nperiod = 10\ncritical_sections = [{ resource = \"r\", length = 1 }]";
        let found = answer(&format!(
            "priorities = \"optimal\"\n{}{}[[resource]]\nname = \"r\"\nprotocol = \"{protocol}\"\n",
            task("a", uses),
            task("b", uses)
        ));
        assert_eq!((found.verdict, bounds(&found)), (Verdict::Unknown, vec![-1, -1]), "{protocol}");
        assert!(found.reason.unwrap().contains("locks"), "{protocol}");
    }
}
