//! Which users see a reservation, and whose reservations are believed.

use std::io::{BufRead, BufReader};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Command, Output, Stdio};

use hourglass_skip::{Requirement, skip};

use super::{Capable, last_cpu};
use crate::{HOURGLASS, OWN, alone, code, document, stderr, warning};

/// More than half: two do not fit.
const MOST: &str = "600us/1ms";

/// A command that holds a reservation of most of the last CPU, until this is dropped.
struct Holding(Child);

impl Holding {
    /// Begun by the words in front; skips the test where that is refused.
    fn begin(front: &[&str]) -> Option<Holding> {
        let cpu = last_cpu();
        let words = [MOST, "--cpu", &cpu, "--backend", "user", "--", "sh", "-c", "echo; exec cat"];
        let mut line = front.iter().chain(&[HOURGLASS, "reserve"]).chain(&words);
        let mut command = Command::new(line.next().unwrap());
        command.args(line).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command begins when the reservation is made.
        let mut begun = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut begun).unwrap();
        if begun.is_empty() {
            let output = child.wait_with_output().unwrap();
            skip(Requirement::REAL_TIME, format!("{front:?}: {}", stderr(&output).trim()));
            return None;
        }
        Some(Holding(child))
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        // The command lives on without it, and ends now; then no process has the pipe.
        drop(self.0.stdin.take());
        let _ = std::io::read_to_string(self.0.stderr.take().unwrap());
    }
}

fn second(front: &[&str]) -> Output {
    let cpu = last_cpu();
    let words = [MOST, "--cpu", &cpu, "--backend", "user", "--", "true"];
    let mut line = front.iter().chain(&[HOURGLASS, "reserve"]).chain(&words);
    Command::new(line.next().unwrap()).args(line).output().unwrap()
}

/// The bug: each network namespace had reservations of its own, so that a CPU was promised twice at 60 %; and a
/// refusal did not name who has the time.
#[test]
fn a_cpu_is_promised_once_in_all_namespaces_and_the_holder_is_named() {
    let _alone = alone();
    let unshare = |what: &[&str]| Command::new("unshare").args(what).arg("true").status();
    for front in [&[][..], &["unshare", "-n"], &["unshare", "-m"], &["unshare", "-i", "-u", "-C"]] {
        if let [_, what @ ..] = front
            && !unshare(what).is_ok_and(|status| status.success())
        {
            let need = Requirement::runs("namespaces", format!("unshare {} true", what.join(" ")));
            skip(need, format!("no namespaces: {front:?}"));
            continue;
        }
        let Some(first) = Holding::begin(front) else { return };
        let pid = first.0.id();
        for other in [&[][..], front] {
            let refused = second(other);
            let text = stderr(&refused);
            assert_eq!(code(&refused), OWN, "{front:?}, {other:?}: {text}");
            let holder = format!("process {pid} ({HOURGLASS} reserve");
            assert!(text.contains(&holder[..holder.len().min(40)]), "{text}");
            assert!(text.contains("of user 0 has 600us every 1ms"), "{text}");
        }
        // Killed, it counts no more.
        drop(first);
        let granted = second(&[]);
        assert_eq!(code(&granted), 0, "{}", stderr(&granted));
    }
}

/// The bug: a socket that anybody bound, with a reservation in its name, was believed, and blocked root.
#[test]
fn a_name_that_another_user_bound_blocks_no_one() {
    let _alone = alone();
    if code(&second(&[])) == OWN {
        return skip(Requirement::REAL_TIME, stderr(&second(&[])).trim());
    }
    let name = format!("hourglass-reserve/1/1-0/{}/950000/1000000/1000000", last_cpu());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let _bound = UnixDatagram::bind_addr(&address).unwrap();
    let granted = second(&[]);
    assert_eq!(code(&granted), 0, "{}", stderr(&granted));
}

/// A user who may not write to the registry still reads it; a warning says that others do not see the reservation.
#[test]
fn a_reservation_that_others_do_not_see_is_not_guaranteed() {
    let Some(capable) = Capable::new() else { return };
    let Some(first) = Holding::begin(&[]) else { return };
    let cpu = last_cpu();
    let words = [MOST, "--cpu", &cpu, "--backend", "user", "--", "true"];
    let refused = capable.reserve(&words);
    let text = stderr(&refused);
    assert_eq!(code(&refused), OWN, "{text}");
    assert!(text.contains(&format!("process {} (", first.0.id())), "{text}");
    drop(first);
    let small = ["1ms/20ms", "--cpu", &cpu, "--backend", "user", "--json"];
    for rest in [&["--", "true"][..], &["--check"]] {
        let output = capable.reserve(&[&small[..], rest].concat());
        let document = document(&output);
        assert_eq!((code(&output), &document["guarantee"]), (0, &false.into()), "{document}");
        warning(&document, "reservations-unseen");
    }
}
