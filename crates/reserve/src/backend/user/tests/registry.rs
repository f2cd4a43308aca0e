//! The registry in a folder of the tests.

use hourglass_sys::fork::child_says;
use hourglass_sys::guardian::TaskIdentity;
use tempfile::TempDir;

use super::super::claims::priority_for;
use super::super::written::parse;
use super::*;

const LIMIT_MS: u32 = 10_000;

fn registry() -> (TempDir, Registry) {
    let folder = TempDir::new().unwrap();
    let at = Registry {
        folder: folder.path().join("run/claims"),
        owner: credentials::real(),
        apart: None,
        looks: false,
        own: Arc::default(),
    };
    (folder, at)
}

fn share(cpus: &str, budget_ns: u64) -> ReservationClaim {
    let (deadline_ns, period_ns) = (9, 10);
    let priority = u32::from(priority_for(deadline_ns));
    ReservationClaim { cpus: cpus.parse().unwrap(), budget_ns, deadline_ns, period_ns, priority }
}

fn names(registry: &Registry) -> Vec<OsString> {
    fs::read_dir(&registry.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn an_entry_is_seen_until_it_ends() {
    let (_folder, registry) = registry();
    let first = registry.enter(None, &share("0", 1));
    let second = registry.enter(None, &share("0-1,3", 2));
    assert_eq!((first.doubt(), second.doubt()), (None, None));
    let seen = |held: Vec<RegisteredReservation>| -> Vec<ReservationClaim> {
        held.into_iter().map(|held| held.share).collect()
    };
    assert_eq!(seen(first.others()), [share("0-1,3", 2)]);
    assert_eq!(seen(second.others()), [share("0", 1)]);
    // Another process sees both, and their holders.
    let own = process::id();
    let said = child_says(LIMIT_MS, || {
        let mut others = registry.all();
        others.sort_by_key(|held| held.share.budget_ns);
        let by = |held: &RegisteredReservation| {
            matches!(&held.holder, Holder::Process { pid, command, uid }
            if *pid == Some(own) && !command.is_empty() && *uid == credentials::real())
        };
        others.iter().all(by) && seen(others) == [share("0", 1), share("0-1,3", 2)]
    });
    assert!(said.unwrap());
    drop(first);
    assert_eq!((seen(second.others()), names(&registry).len()), (vec![], 1));
    drop(second);
    assert_eq!((registry.all(), names(&registry)), (vec![], vec![]));
}

/// `reserve --list` of another process says how it goes.
#[test]
fn the_course_of_a_reservation_is_seen() {
    let (_folder, registry) = registry();
    let mut entry = registry.enter(None, &share("0", 1));
    for course in [None, Some((40, 0)), Some((41, 3)), Some((u64::MAX, 3))] {
        course.into_iter().for_each(|(periods, missed)| entry.tell(periods, missed));
        let said =
            child_says(LIMIT_MS, || registry.all().iter().map(|held| held.course).eq([course]));
        assert!(said.unwrap(), "{course:?}");
    }
}

/// The entry of a process that was killed is not counted, and the next reader removes it.
#[test]
fn an_entry_ends_with_its_process() {
    let (_folder, registry) = registry();
    let made = || {
        let entry = registry.enter(None, &share("0", 1));
        let alone = entry.others().is_empty() && entry.doubt().is_none();
        forget(entry);
        alone
    };
    let leave = || assert!(child_says(LIMIT_MS, made).unwrap());
    leave();
    assert_eq!(names(&registry).len(), 1);
    assert_eq!(registry.all(), []);
    assert_eq!(names(&registry), Vec::<OsString>::new());
    // A cleaning process gets it in its list; an entry in force, and its own entry, stay.
    leave();
    let own = registry.enter(None, &share("0", 2));
    let stale = registry.remove_stale();
    assert_eq!((stale.len(), stale[0].uid), (1, credentials::real()));
    assert!(stale[0].removed.is_ok() && !stale[0].path.exists(), "{stale:?}");
    assert!(child_says(LIMIT_MS, || registry.remove_stale().is_empty()).unwrap());
    assert_eq!(names(&registry).len(), 1);
    drop(own);
}

/// The bug: a name with a reservation in it was believed, whatever process had bound it.
#[test]
fn an_entry_without_a_holder_or_of_another_maker_is_not_believed() {
    let (_folder, registry) = registry();
    let _own = registry.enter(None, &share("0", 1));
    let at = |name: &str| registry.folder.join(name);
    let good = text(&share("0", 7), process::id()).unwrap();
    assert!(parse(&good).is_some());
    // Without a lock.
    fs::write(at("claim-1-0"), &good).unwrap();
    // A link, a folder.
    fs::write(at("elsewhere"), &good).unwrap();
    std::os::unix::fs::symlink(at("elsewhere"), at("claim-1-1")).unwrap();
    fs::create_dir(at("claim-1-2")).unwrap();
    let hold = |name: &str, text: &str| {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create_new(true).open(at(name)).unwrap();
        assert!(lock::try_for_process(&file).unwrap());
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    // Held, and not of its holder: he began at another time.
    let started = TaskIdentity::of_task(process::id()).unwrap().started;
    let another = good.replace(&format!("started {started}"), &format!("started {}", started + 1));
    let _another = hold("claim-1-3", &another);
    // Held, and something else; of a second name; and too long.
    let _words = hold("claim-1-4", "hourglass-claim/2\nstarted 1\n");
    let _zero = hold("claim-1-5", &good.replace("budget_ns 7", "budget_ns 0"));
    let _linked = hold("claim-1-6", &good);
    fs::hard_link(at("claim-1-6"), at("second")).unwrap();
    let _long = hold("claim-1-7", &"x".repeat(100_000));
    let _empty = hold("claim-1-8", "");
    // One entry is right, so that the others are refused for their faults.
    let _right = hold("claim-1-9", &good);
    let said = child_says(LIMIT_MS, || {
        let found: Vec<ReservationClaim> =
            registry.all().into_iter().map(|held| held.share).collect();
        found.len() == 2 && found.contains(&share("0", 1)) && found.contains(&share("0", 7))
    });
    assert!(said.unwrap());
    assert!(!at("claim-1-0").exists() && at("claim-1-4").exists());
}

#[test]
fn a_folder_that_others_may_write_to_is_not_trusted() {
    let (_folder, registry) = registry();
    let entry = registry.enter(None, &share("0", 1));
    fs::set_permissions(&registry.folder, Permissions::from_mode(0o1777)).unwrap();
    let doubt = registry.enter(None, &share("0", 2)).doubt().unwrap();
    assert_eq!(doubt.id, "reservations-unseen");
    assert!(doubt.text.contains("all users may write to it (mode 1777)"), "{}", doubt.text);
    let said = child_says(LIMIT_MS, || registry.all().is_empty());
    assert!(said.unwrap(), "nothing in it is believed");
    drop(entry);
    let stranger = Registry { owner: credentials::real() + 1, ..registry.clone() };
    let doubt = stranger.doubt().unwrap();
    assert!(doubt.text.contains("it belongs to user"), "{}", doubt.text);
    // In a container of its own there is a warning, and the entry is written all the same.
    fs::set_permissions(&registry.folder, Permissions::from_mode(0o755)).unwrap();
    let inside = Registry { apart: Some(Gap::Container(registry.folder.clone())), ..registry };
    let entry = inside.enter(None, &share("0", 3));
    assert!(entry.doubt().unwrap().text.contains("container"));
    assert_eq!(inside.all().len(), 1);
}

/// Where the folder cannot be made, a process still knows its own.
#[test]
fn without_a_folder_it_is_said() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("run"), "").unwrap();
    let registry =
        Registry { folder: folder.path().join("run/hourglass/claims"), ..self::registry().1 };
    let entry = registry.enter(None, &share("0", 1));
    let text = entry.doubt().unwrap().text;
    assert!(text.starts_with("others do not see this reservation"), "{text}");
    assert!(registry.doubt().is_some());
    assert_eq!((entry.others().len(), registry.all().len()), (0, 1));
}

#[test]
fn the_machine_is_read_as_it_is() {
    assert_eq!(group_of("root:x:0:\nhourglass:x:998:a,b\n", "hourglass"), Some(998));
    assert_eq!(group_of("hourglasses:x:1:\n", "hourglass"), None);
    let mounts = "22 1 0:20 / /run rw - tmpfs none rw\n23 22 0:20 /hourglass /run/hourglass rw - tmpfs none rw\n";
    assert!(is_mounted(mounts, Path::new("/run/hourglass")));
    assert!(!is_mounted("22 1 0:20 / /run rw - tmpfs none rw\n", Path::new("/run/hourglass")));
    let holder = |pid| Holder::Process { pid, command: "a b".to_owned(), uid: 7 };
    assert_eq!(holder(Some(4)).to_string(), "process 4 (a b) of user 7");
    assert_eq!(holder(None).to_string(), "a process of user 7 in another PID namespace");
}

/// Several processes make entries and look at the same time: each entry that exists for the whole time is found by all.
#[test]
fn an_entry_that_is_held_is_not_removed() {
    let (_folder, registry) = registry();
    let stays = registry.enter(None, &share("0", 77));
    let said = child_says(LIMIT_MS, || {
        let steps = |_| {
            for _ in 0..200 {
                let entry = registry.enter(None, &share("1", 1));
                if !entry.others().iter().any(|held| held.share.budget_ns == 77) {
                    return false;
                }
            }
            true
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|n| scope.spawn(move || steps(n))).collect();
            threads.into_iter().all(|thread| thread.join().unwrap())
        })
    });
    assert!(said.unwrap());
    assert_eq!(stays.others().len(), 0);
}

/// The bug: the folder around the entries, made by another part with a mask of 077, stayed closed to all but root.
#[test]
fn root_opens_the_folder_around_the_entries() {
    let (_folder, registry) = registry();
    let outer = registry.folder.parent().unwrap();
    let mode = || fs::metadata(outer).unwrap().mode() & 0o7777;
    fs::create_dir(outer).unwrap();
    // The entries may be there already.
    for _ in 0..2 {
        fs::set_permissions(outer, Permissions::from_mode(0o700)).unwrap();
        drop(registry.enter(None, &share("0", 1)));
        assert_eq!(mode(), if credentials::real() == 0 { 0o755 } else { 0o700 });
    }
}

/// The bug: a mount namespace with a `/run` of its own promised the same time again, as did a process without a claim.
#[test]
fn a_process_that_sees_other_claims_is_warned() {
    let (_folder, registry) = registry();
    let apart = Gap::Private(registry.folder.clone(), 4711);
    let private = Registry { apart: Some(apart.clone()), ..registry };
    let entry = private.enter(None, &share("0", 1));
    for doubt in [entry.doubt(), private.doubt(), Some(Gap::Unclaimed(4711).into())] {
        let doubt = doubt.unwrap();
        assert_eq!(doubt.id, "reservations-unseen");
        assert!(doubt.text.contains("process 4711"), "{}", doubt.text);
    }
    assert_eq!(private.gap(), Some(apart));
}
