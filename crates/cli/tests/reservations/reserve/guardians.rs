//! `hourglass reserve` whose guardian is killed: before it, together with it, and what `--clean` undoes then.

use serde_json::Value;

use super::killed::{Ending, files_left, gone, groups_left};
use super::*;

/// Children of `maker` that put back what it leaves.
fn guards(maker: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let is_guard = |pid: &u32| name_of(*pid) == "hourglass-guard\n";
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter(is_guard).filter(|pid| parent(*pid) == Some(maker)).collect()
}

/// The states of hourglass and of the processes with the mark, for the message of a failure.
fn states(maker: u32, mark: &str) -> String {
    let of = |pid: u32| {
        let read = |what| fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
        format!("{pid}: {}{}{}\n", read("stat"), read("wchan"), read("stack"))
    };
    [maker].into_iter().chain(marked(mark)).map(of).collect()
}

/// A reservation for two processes that use up whatever they get, in force, and its guardians. Both on one CPU, and
/// for 5 s of it at most: processes without an enforced budget must not take this machine.
fn started(backend: &str, mark: &str) -> (Running, Vec<u32>) {
    let begun = Instant::now();
    loop {
        match start(backend, mark) {
            Ok(started) => return started,
            // What ended just now may still have the bandwidth.
            Err(text) if text.contains("together are more") && begun.elapsed().as_secs() < 30 => {
                std::thread::sleep(Duration::from_millis(300));
            }
            Err(text) => panic!("{backend}: not begun, {text}"),
        }
    }
}

/// The same, once.
///
/// # Errors
/// What the command said before it ended.
fn start(backend: &str, mark: &str) -> Result<(Running, Vec<u32>), String> {
    let script = "ulimit -t 5; (while :; do :; done) & while :; do :; done";
    // The deadline class does not pin.
    let pinned: &[&str] = if backend == "user" { &["--cpu", "0"] } else { &[] };
    let begin: &[&str] = &["reserve", AMOUNT, "--backend", backend];
    let words = [begin, pinned, &["--", "sh", "-c", script]].concat();
    let mut running = Running::start(Command::new(HOURGLASS).args(words).env(MARK, mark));
    let mut found = Vec::new();
    // The shell has begun: then it is under its reservation.
    let begun = Instant::now();
    while !(found.len() == 2 && marked(mark).into_iter().any(|pid| name_of(pid) == "sh\n")) {
        if let Some(status) = running.child().try_wait().unwrap() {
            let mut text = String::new();
            running.child().stderr.take().unwrap().read_to_string(&mut text).unwrap();
            return Err(format!("{status}: {text}"));
        }
        let late = begun.elapsed() > Duration::from_secs(30);
        assert!(!late, "{backend}: {found:?} {}", states(running.pid(), mark));
        std::thread::sleep(Duration::from_millis(5));
        found = guards(running.pid());
    }
    Ok((running, found))
}

/// Ends processes in one go, one right after the other.
fn kill_at_once(pids: &[u32]) {
    signal_at_once("-KILL", pids);
}

fn signal_at_once(signal: &str, pids: &[u32]) {
    for pid in pids {
        kill(signal, *pid).unwrap();
    }
}

/// The bug: the guardian killed first, and then hourglass, left real-time threads and frozen groups for good in 15 of
/// 25 cases.
#[test]
fn a_killed_guardian_is_made_up_for() {
    let _alone = alone();
    const ROUNDS: u32 = 6;
    for backend in ["deadline", "user", "quota"] {
        if !granted(backend) {
            continue;
        }
        for round in 0..ROUNDS {
            let mark = format!("{}-guard-{backend}-{round}", std::process::id());
            let _ended = Ending(mark.clone());
            let (mut running, found) = started(backend, &mark);
            let maker = running.pid();
            match round % 3 {
                0 => kill_at_once(&[found[0], maker]),
                1 => kill_at_once(&[found[1], maker]),
                // Both; the others are there a little later.
                _ => {
                    kill_at_once(&found);
                    soon("both are replaced", || {
                        let now = guards(maker);
                        now.len() == 2 && now.iter().all(|pid| !found.contains(pid))
                    });
                    kill_at_once(&[maker]);
                }
            }
            running.child().wait().unwrap();
            soon(&format!("{backend}, {round}: {:?}", left_behind(&mark)), || {
                left_behind(&mark).is_empty()
            });
            soon("all are gone", || gone(&mark));
            assert_eq!(groups_left(maker), [] as [std::path::PathBuf; 0], "{backend}, {round}");
        }
    }
}

fn cleaned() -> (i32, Value) {
    let output = reserve(&["--clean", "--json"]);
    let document = serde_json::from_slice(&output.stdout);
    (code(&output), document.unwrap_or_else(|_| panic!("{}", stderr(&output))))
}

/// The entries of a process in the registry of reservations.
fn claims_of(maker: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/hourglass/claims").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("claim-{maker}-"))).collect()
}

/// Maker and guardians killed at once, as the end of a session or the OOM killer does it: `--clean` finds what they
/// left, undoes it, and finds nothing the second time; a reservation in force is left alone.
#[test]
fn what_all_of_them_left_is_undone_by_clean() {
    let _alone = alone();
    const TRIES: u32 = 12;
    if !granted("user") {
        return;
    }
    let other_mark = format!("{}-in-force", std::process::id());
    let _other_ended = Ending(other_mark.clone());
    let (other, _) = started("user", &other_mark);
    let mut undone = 0;
    for round in 0..TRIES {
        let mark = format!("{}-clean-{round}", std::process::id());
        let _ended = Ending(mark.clone());
        let (mut running, found) = started("user", &mark);
        let maker = running.pid();
        // A remaining one would start another guardian: all are stopped before the first is killed.
        signal_at_once("-STOP", &[found[0], found[1], maker]);
        kill_at_once(&[found[0], found[1], maker]);
        running.child().wait().unwrap();
        // A guardian that was being started in that moment undoes everything itself.
        std::thread::sleep(Duration::from_millis(50));
        let (exit, document) = cleaned();
        let entry = document["found"].as_array().unwrap().iter();
        let own = entry.filter(|found| found["maker"] == maker).collect::<Vec<_>>();
        undone += own.iter().filter(|found| found["state"] == "undone").count();
        soon(&format!("{document}: {:?}", left_behind(&mark)), || left_behind(&mark).is_empty());
        assert_eq!((exit, &document["left"]), (0, &0.into()), "{document}");
        soon("all are gone", || gone(&mark));
        assert_eq!(groups_left(maker), [] as [std::path::PathBuf; 0], "{document}");
        assert_eq!(claims_of(maker), [] as [String; 0]);
        assert!(!claims_of(other.pid()).is_empty());
        let alive = document["found"].as_array().unwrap().iter();
        let alive = alive.filter(|found| found["state"] == "alive");
        assert!(alive.clone().any(|found| found["maker"] == other.pid()), "{document}");
        let (_, again) = cleaned();
        let mut again = again["found"].as_array().unwrap().iter();
        assert!(again.all(|found| found["maker"] != maker));
        if undone > 0 {
            break;
        }
    }
    assert!(undone > 0, "another guardian was always there in time");
    assert_eq!(guards(other.pid()).len(), 2);
}

/// The bug: of two guardians one stood, and the other put everything back and removed the record: nothing found the one that
/// stood.
#[test]
fn clean_ends_a_stopped_guardian_without_a_record() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    let mark = format!("{}-guard-alone", std::process::id());
    let _ended = Ending(mark.clone());
    let (mut running, found) = started("user", &mark);
    let (maker, stopped) = (running.pid(), *found.iter().max().unwrap());
    kill("-STOP", stopped).unwrap();
    // The reservation is in force: `--clean` leaves a stopped guardian alone.
    assert_eq!(entry_of(stopped), None);
    kill_at_once(&[maker]);
    running.child().wait().unwrap();
    soon("the other one has put everything back", || files_left(maker).is_empty());
    assert!(stands(stopped));
    let entry = entry_of(stopped).unwrap();
    assert_eq!(
        (&entry["state"], &entry["steps"][0]["outcome"]),
        (&"undone".into(), &"undone".into())
    );
    soon("it has ended", || !stands(stopped));
    assert_eq!(entry_of(stopped), None);
}

/// What `--clean` says of a guardian that no record names.
fn entry_of(guardian: u32) -> Option<Value> {
    let (code, document) = cleaned();
    assert_eq!(code, 0, "{document}");
    let path = format!("/proc/{guardian}");
    document["found"].as_array().unwrap().iter().find(|one| one["path"] == path).cloned()
}

/// The bug: hourglass killed while its guardians were stopped (SIGSTOP): `--clean` said that the reservation was in force.
#[test]
fn clean_lets_stopped_guardians_go_on() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    let mark = format!("{}-stopped", std::process::id());
    let _ended = Ending(mark.clone());
    let (mut running, found) = started("user", &mark);
    let maker = running.pid();
    signal_at_once("-STOP", &found);
    // No other ones are made for those that live.
    kill_at_once(&[maker]);
    running.child().wait().unwrap();
    let (code, document) = cleaned();
    assert_eq!(code, 0, "{document}");
    let mut found = document["found"].as_array().unwrap().iter();
    assert!(found.any(|one| one["maker"] == maker && one["state"] == "undone"), "{document}");
    assert!(left_behind(&mark).is_empty(), "{:?}", left_behind(&mark));
    soon("all are gone", || gone(&mark));
}

#[test]
fn clean_stands_alone() {
    for words in [&["--clean", "3ms/8ms"][..], &["--clean", "--check"], &["--clean", "--pid", "1"]]
    {
        let output = reserve(words);
        assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
    }
}
