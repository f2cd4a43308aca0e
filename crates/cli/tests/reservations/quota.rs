//! A control group's quota as a script sees it: a gap is laid to it only where the kernel counted that it
//! stopped the group. Needs root and a cpu controller; where they are missing the test says so and passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::MutexGuard;
use std::time::Duration;

use hourglass_skip::{Requirement, skip};
use serde_json::Value;

use crate::processes::last_allowed_cpu;
use crate::{HOURGLASS, alone, document, ends, warning};

/// A control group that is removed when it is dropped. One at a time: threads of one would take the CPU of the other.
struct Group(PathBuf, #[expect(dead_code)] MutexGuard<'static, ()>);

impl Group {
    /// A group with a quota of `us` microseconds in 100 ms, in version 1 or 2.
    fn with_quota(us: u64) -> Result<Group, String> {
        let alone = alone();
        let (root, files) = controller().ok_or("no cpu controller is mounted")?;
        let path = root.join(format!("hourglass-test-{}-{us}", std::process::id()));
        let refused = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir(&path).map_err(refused)?;
        let group = Group(path.clone(), alone);
        for (file, text) in files(us) {
            fs::write(path.join(file), text).map_err(refused)?;
        }
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

type Files = fn(u64) -> Vec<(&'static str, String)>;

fn controller() -> Option<(PathBuf, Files)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let of = |line: &str, kind: &str| {
        let (place, rest) = line.split_once(" - ")?;
        let point = place.split(' ').nth(4)?;
        let options = rest.strip_prefix(kind)?.rsplit(' ').next()?.to_owned();
        Some((PathBuf::from(point), options))
    };
    let v1 = mounts.lines().filter_map(|line| of(line, "cgroup "));
    let mut v1 = v1.filter(|(_, options)| options.split(',').any(|option| option == "cpu"));
    if let Some((root, _)) = v1.next() {
        return Some((root, |us| {
            vec![("cpu.cfs_period_us", "100000".to_owned()), ("cpu.cfs_quota_us", us.to_string())]
        }));
    }
    let (root, _) = mounts.lines().find_map(|line| of(line, "cgroup2 "))?;
    let given = fs::read_to_string(root.join("cgroup.subtree_control")).ok()?;
    given.split_whitespace().any(|name| name == "cpu").then_some(())?;
    Some((root, |us| vec![("cpu.max", format!("{us} 100000"))]))
}

const RUN: [&str; 8] = ["run", "-n", "1", "-d", "2s", "-q", "--json", "--cpu"];

/// A thread that never waits, in the group.
fn run_in(group: &Path) -> Value {
    let enter = "echo $$ > \"$1/cgroup.procs\" && shift && exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", enter, "sh"])
        .arg(group)
        .arg(HOURGLASS)
        .args(RUN)
        .arg(last_allowed_cpu().to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    document(ends(&output, 0, "in a group"))
}

/// Gaps laid to the quota: how many, and their sum.
fn laid_to_the_quota(run: &Value) -> (u64, u64) {
    let causes = run["causes"].as_array().unwrap();
    let of_quota = causes.iter().find(|cause| cause["cause"] == "cgroup_quota");
    of_quota.map_or((0, 0), |cause| {
        (cause["count"].as_u64().unwrap(), cause["total_ns"].as_u64().unwrap())
    })
}

/// A group with a quota of `us` in 100 ms; `None` after a skip that says why it cannot be made.
fn group(us: u64) -> Option<Group> {
    let group = Group::with_quota(us);
    let named = |why| {
        skip(Requirement::CONTROL_GROUP, format_args!("{why}; be root where groups have quotas"))
    };
    group.map_err(named).ok()
}

/// Issue 6, part 2, with the quota's own counts (`cpu.stat`) as the evidence. Threads of others make a stop
/// longer, and then it does not end with the quota's period: the best of some runs counts.
#[test]
fn a_stop_by_the_quota_is_named() {
    const RUNS: u32 = 4;
    let mut seen = Vec::new();
    for _ in 0..RUNS {
        let Some(group) = group(5_000) else { return };
        let run = run_in(&group.0);
        let change = &run["manifest"]["host"]["change"];
        let periods = change["quota_throttled"].as_u64().unwrap();
        let stopped_ns = change["quota_throttled_ns"].as_u64().unwrap();
        assert_eq!(periods > 0, stopped_ns > 0, "{change}");
        let (count, total_ns) = laid_to_the_quota(&run);
        // No gap is longer than the stop and what others took behind it, a period at most.
        assert!(total_ns <= stopped_ns + count * 100_000_000, "{total_ns} ns of {stopped_ns}");
        if count >= 5 {
            return;
        }
        seen.push((periods, count, run["causes"].to_string()));
    }
    panic!("stopped, named, causes: {seen:?}");
}

/// A quota that is never used up is not the cause of anything.
#[test]
fn a_quota_that_stopped_no_thread_is_no_cause() {
    let Some(group) = group(1_000_000) else { return };
    let run = run_in(&group.0);
    assert_eq!(run["manifest"]["host"]["change"]["quota_throttled"], 0);
    assert_eq!(laid_to_the_quota(&run), (0, 0), "{}", run["causes"]);
}

/// A run that comes into the group while it measures: its counts are not taken from those of the group it was in.
#[test]
fn a_run_that_is_moved_says_so() {
    let Some(group) = group(5_000) else { return };
    let run = Command::new(HOURGLASS)
        .args(RUN)
        .arg(last_allowed_cpu().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(800));
    fs::write(group.0.join("cgroup.procs"), run.id().to_string()).unwrap();
    let output = run.wait_with_output().unwrap();
    let run = document(ends(&output, 0, "moved"));
    let change = &run["manifest"]["host"]["change"];
    assert!(change["quota_throttled"].is_null() && change["quotas"].is_array(), "{change}");
    warning(&run, "quota-changed");
    // A stop of 95 ms is laid to the quota, or the switch is not certain.
    let causes = run["causes"].as_array().unwrap().iter();
    let certain = causes.filter(|cause| cause["cause"] == "context_switch_involuntary");
    let certain = certain.filter(|cause| cause["max_ns"].as_u64() >= Some(90_000_000));
    let mut certain = certain.map(|cause| cause["confidence"].as_f64());
    assert!(certain.all(|confidence| confidence < Some(1.0)), "{}", run["causes"]);
}
