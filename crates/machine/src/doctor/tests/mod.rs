//! The doctor on machines made of files.

mod checks;
mod machines;

use std::collections::BTreeSet;
use std::fmt::Write;

use hourglass_documents::doctor::{CpuSelection, DoctorDocument, Status};

use super::registry::CHECKS;
use super::{DoctorInput, ProbeResults, check_ids, diagnose};
use crate::facts::tuning::PROBED;
use machines::{GRANTED, REFUSED, container, cpus, evidence, laptop, mute, tuned};

fn all(e: &DoctorInput) -> DoctorDocument {
    diagnose(e, &[])
}

/// `id: found -> remedy` of the checks with this status.
fn with_status(document: &DoctorDocument, status: Status) -> Vec<String> {
    let found = document.checks.iter().filter(|check| check.status == status);
    found.map(|c| format!("{}: {} -> {}", c.id, c.found, c.remedy)).collect()
}

#[test]
fn nothing_is_wrong_with_a_tuned_machine() {
    let document = all(&evidence(&tuned(), "tsc", GRANTED));
    for status in [Status::Fail, Status::Warn, Status::Unknown] {
        assert_eq!(with_status(&document, status), Vec::<String>::new());
    }
    assert_eq!(document.counts.ok, document.checks.len());
    assert_eq!((document.cpus, document.cpus_are), (cpus("2-3"), CpuSelection::Isolated));
}

/// A machine as one buys it: each line is what its user would have to do.
#[test]
fn a_laptop_as_it_was_bought() {
    let document = all(&evidence(&laptop(), "tsc", REFUSED));
    let mut text = String::new();
    for check in &document.checks {
        writeln!(text, "{:<7} {}: {}", check.status.name(), check.id, check.found).unwrap();
        if !check.remedy.is_empty() {
            writeln!(text, "        {}", check.remedy).unwrap();
        }
    }
    insta::assert_snapshot!("laptop", text);
}

#[test]
fn a_container_in_a_virtual_machine() {
    let document = all(&evidence(&container(), "monotonic", REFUSED));
    let of = |id: &str| document.checks.iter().find(|check| check.id == id).unwrap();
    let quota = of("cgroup-quota");
    assert_eq!(quota.status, Status::Fail);
    assert!(quota.found.contains("/sys/fs/cgroup/cpu.max grants 50 % of a CPU"), "{}", quota.found);
    assert!(quota.remedy.starts_with("start the container without a CPU limit"));
    // Half a CPU is spent by four CPUs after an eighth of the period.
    assert!(quota.found.ends_with("for up to 87.5ms in every 100ms"), "{}", quota.found);

    assert_eq!(of("rtprio").status, Status::Fail);
    assert!(of("rtprio").remedy.contains("--cap-add SYS_NICE --ulimit rtprio=99"));
    assert_eq!(of("clock-source").status, Status::Warn);
    assert!(of("clock-source").remedy.starts_with("on the host: give the guest an invariant TSC"));
    // The settings of the kernel are the host's, whatever this user is called here.
    for id in ["timer-migration", "workqueues", "threaded-irqs"] {
        let remedy = &of(id).remedy;
        assert!(remedy.starts_with("on the container's host"), "{id}: {remedy}");
    }
    assert!(of("virtual-machine").remedy.contains("on the host"));
    assert_eq!(of("irqbalance").status, Status::Unknown);
}

/// No panic, and no guess: what cannot be read is unknown, and the check says how to make it readable.
#[test]
fn a_machine_that_tells_nothing() {
    let document = all(&mute());
    assert_eq!(document.counts.unknown, document.checks.len());
    for check in &document.checks {
        assert!(!check.remedy.is_empty(), "{}", check.id);
        // Every file that is named is one that was looked at.
        let path = check.found.split(':').next().unwrap();
        assert!(!path.starts_with('/') || PROBED.contains(&path), "{}: {path}", check.id);
    }
    assert!(document.cpus.is_empty());
}

/// Files may hold anything: no panic, and nothing that a terminal would obey.
#[test]
fn nonsense_in_every_file() {
    let contents = ["", "\n", "-1\n", "99999999999999999999\n", "0-8191\n", "\u{1b}[31m 1 :=(\n"];
    for content in contents {
        for machine in [tuned(), laptop(), container()] {
            machine.fill(content);
            for asked in [None, Some(cpus("1"))] {
                let mut e = evidence(&machine, "monotonic", REFUSED);
                e.asked = asked;
                let document = all(&e);
                complete(&document, false);
                assert!(!serde_json::to_string(&document).unwrap().contains("\\u001b"));
            }
        }
    }
}

/// On every machine, for every user and all CPUs: one line each, and a remedy exactly
/// where something is to be done.
#[test]
fn every_verdict_is_complete() {
    let machines = [tuned(), laptop(), container()];
    let trials = [
        GRANTED,
        REFUSED,
        ProbeResults { real_time: Some(Err(22)), deadline: Some(Err(16)), ..REFUSED },
        ProbeResults::default(),
    ];
    for machine in &machines {
        for trial in trials {
            for asked in [None, Some("0"), Some("2-3"), Some("0-3"), Some("3")] {
                for root in [false, true] {
                    let mut e = evidence(machine, "monotonic", trial);
                    e.asked = asked.map(cpus);
                    e.tuning.user.id = Some(if root { 0 } else { 1000 });
                    complete(&all(&e), root && e.host.container.is_none());
                    e.host.cpu.online = None;
                    e.host.cpu.allowed = None;
                    complete(&all(&e), root && e.host.container.is_none());
                }
            }
        }
    }
}

fn complete(document: &DoctorDocument, is_root: bool) {
    for check in &document.checks {
        let id = &check.id;
        assert_eq!(check.remedy.is_empty(), check.status == Status::Ok, "{id}: {}", check.found);
        for line in [&check.found, &check.wanted, &check.remedy] {
            assert!(!line.contains('\n') && !line.contains("  "), "{id}: {line}");
            assert!(!line.ends_with([' ', '.']), "{id}: {line}");
        }
        assert!(!check.found.is_empty() && !check.wanted.is_empty(), "{id}");
        assert!(!(is_root && check.remedy.contains("sudo ")), "{id}: {}", check.remedy);
    }
}

/// Words carry their source; a size has a place among the units; nothing has a size alone.
#[test]
fn every_effect_names_its_source() {
    for check in &CHECKS {
        let Some((ns, words)) = check.effect else { continue };
        assert!(ns > 0 && words.contains("; "), "{}: {words}", check.id);
        assert!(words.contains("measured ") || words.contains("known from "), "{}", check.id);
    }
    for check in all(&evidence(&laptop(), "tsc", REFUSED)).checks {
        assert_eq!(check.effect.words.is_empty(), check.status == Status::Ok, "{}", check.id);
        let bad = matches!(check.status, Status::Fail | Status::Warn);
        assert_eq!(check.effect.rank.is_some(), bad, "{}", check.id);
    }
}

#[test]
fn the_greatest_effect_is_ranked_first() {
    let document = all(&evidence(&laptop(), "tsc", REFUSED));
    let mut ranked: Vec<_> = document.checks.iter().filter(|c| c.effect.rank.is_some()).collect();
    ranked.sort_by_key(|check| check.effect.rank);
    let ranks: Vec<_> = ranked.iter().filter_map(|check| check.effect.rank).collect();
    assert_eq!(ranks, (1..=ranked.len()).collect::<Vec<_>>());
    let place = |id: &str| ranked.iter().position(|check| check.id == id).unwrap();
    assert_eq!(place("rtprio"), 0, "it fails");
    // Milliseconds, then tens of microseconds, then what has no figure.
    assert!(place("rt-throttling") < place("tick"));
    let first_unknown =
        ranked.iter().position(|c| c.status == Status::Warn && c.effect.ns.is_none());
    assert!(place("tick") < first_unknown.unwrap());
}

#[test]
fn names_are_unique_and_chosen_ones_are_made_alone() {
    let ids: Vec<&str> = check_ids().collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    let plain = |id: &&str| id.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
    assert!(ids.iter().all(plain), "{ids:?}");
    let document = diagnose(&mute(), &["swap".to_owned(), "governor".to_owned()]);
    let made: Vec<&str> = document.checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(made, ["governor", "swap"]);
    assert_eq!(document.counts.unknown, 2);
}

/// The warnings before a run and the doctor call the same thing by the same name.
#[test]
fn names_are_those_of_the_warnings_before_a_run() {
    let shared = [
        "rt-throttling",
        "rt-time-limit",
        "cgroup-quota",
        "clock-source",
        "governor",
        "idle-states",
        "load",
        "virtual-machine",
    ];
    for id in shared {
        assert!(check_ids().any(|known| known == id), "{id}");
    }
}
