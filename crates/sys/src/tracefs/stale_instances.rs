//! Names of instances, and the removal of those whose makers are dead.

use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The names of our instances begin with this.
const PREFIX: &str = "hourglass-";

/// A name that no other run has: the process, when that began (numbers of processes come again),
/// and which of its instances it is.
pub(super) fn new_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let pid = process::id();
    let began = began(pid).unwrap_or(0);
    format!("{PREFIX}{pid}-{began}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Removes the instances in the folder `instances` whose makers do not live any more. One that is
/// in use after all, as of a container with numbers of its own, the kernel refuses to remove.
pub(super) fn remove(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let Some((pid, maker_began)) = entry.file_name().to_str().and_then(maker) else { continue };
        if began(pid) != Some(maker_began) {
            // Refused if it is in use; then it is not stale.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Number and beginning of the process that made the instance of this name.
fn maker(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// When a process began, in ticks since the machine's start; `None` if it does not exist.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let (_, behind) = stat.rsplit_once(')')?;
    /// Field 22 of proc(5); the first behind the name is field 3.
    const START_TIME: usize = 22 - 3;
    behind.split_ascii_whitespace().nth(START_TIME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_the_dead_are_removed() {
        let home = std::env::temp_dir().join(format!("hourglass-stale-{}", process::id()));
        let ours = new_name();
        let began = began(process::id()).unwrap();
        // The first process of the machine began at another time than this one.
        let reused = format!("hourglass-{}-{}-0", process::id(), began + 1);
        let dead = "hourglass-4194305-7-0".to_owned(); // above the highest number there is
        let foreign = ["hourglass-x-1", "rtla", "hourglass-"].map(str::to_owned);
        for name in foreign.iter().chain([&ours, &reused, &dead]) {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        remove(&home);
        let mut left: Vec<String> = fs::read_dir(&home)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected: Vec<String> = foreign.into_iter().chain([ours]).collect();
        expected.sort();
        assert_eq!(left, expected);
        fs::remove_dir_all(home).unwrap();
    }
}
