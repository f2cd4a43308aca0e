//! What a privilege of the command gives to its users, and which users see a reservation.
//!
//! Most of it needs root and `setcap`. Some reserve most of a CPU for a moment.

mod claims;
mod given_up;
mod owner;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;

use crate::processes::copy_program;
use crate::{
    HOURGLASS, Killed, OWN, alone, code, document, name_of, stderr, text, warning, within,
};
use hourglass_skip::{Requirement, skip};
use tempfile::TempDir;

/// Others take the first ones.
fn last_cpu() -> String {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    online.trim().rsplit([',', '-']).next().unwrap().to_owned()
}

const USER: u32 = 65_534;

/// A program that waits, and ends with the test.
struct Idle(Killed);

impl Idle {
    fn of_root() -> Idle {
        Idle::started(Command::new("sleep").arg("60"))
    }

    /// Of root, and with a name of its own, which is returned.
    fn of_root_with_a_name() -> (Idle, String) {
        let script = "printf hg$$ > /proc/$$/comm; while read line; do :; done";
        let idle = Idle::started(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()));
        let name = format!("hg{}", idle.pid());
        let has_name = || name_of(idle.0.pid()).trim() == name;
        within(std::time::Duration::from_secs(10), has_name);
        (idle, name)
    }

    /// Of [`USER`].
    fn of_user() -> Idle {
        Idle::started(Command::new("sleep").arg("60").uid(USER).gid(USER))
    }

    fn started(command: &mut Command) -> Idle {
        Idle(Killed(command.stdout(Stdio::null()).spawn().unwrap()))
    }

    fn pid(&self) -> String {
        self.0.pid().to_string()
    }

    /// Policy and CPUs.
    fn situation(&self) -> String {
        let text =
            |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.0.pid())).unwrap();
        let stat = text("stat");
        // Fields 40 and 41 of the line, behind the name: priority and policy (proc(5)).
        let fields: Vec<&str> =
            stat.rsplit_once(") ").unwrap().1.split(' ').skip(37).take(2).collect();
        let status = text("status");
        let cpus = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
        format!("{} {cpus}", fields.join(" "))
    }
}

/// The command with capabilities, where everybody may run it.
struct Capable {
    folder: TempDir,
    command: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Capable {
    /// Skips the test where the machine has no such files.
    fn new() -> Option<Capable> {
        let alone = alone();
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let command = folder.path().join("hourglass");
        copy_program(HOURGLASS, &command);
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
        // Where the condition looks for it, too: Debian's users do not have it on their path.
        let path = format!("{}:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default());
        let mut setcap = Command::new("setcap");
        let set =
            setcap.env("PATH", path).arg("cap_sys_nice,cap_ipc_lock+ep").arg(&command).output();
        match set {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                let why = format!("setcap is refused: {}", stderr(&output).trim());
                skip(Requirement::FILE_CAPABILITIES, why);
                return None;
            }
            Err(error) => {
                skip(Requirement::program("setcap"), format!("no setcap (libcap2-bin): {error}"));
                return None;
            }
        }
        let capable = Capable { folder, command, _alone: alone };
        let idle = Idle::of_user();
        let granted =
            capable.reserve(&["1ms/20ms", "--backend", "user", "--pid", &idle.pid(), "--check"]);
        if code(&granted) != 0 {
            let said = text(&granted.stdout);
            let why = format!("a user with the capability gets no reservation: {said}");
            skip(Requirement::REAL_TIME, why);
            return None;
        }
        Some(capable)
    }

    fn run(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.command);
        command.args(words).uid(USER).gid(USER).current_dir(self.folder.path());
        command
    }

    /// A reservation that ends by itself after a while, should it be granted.
    fn reserve(&self, words: &[&str]) -> Output {
        let mut timeout = Command::new("timeout");
        timeout.args(["-s", "TERM", "2"]).arg(&self.command).arg("reserve").args(words);
        timeout.uid(USER).gid(USER).current_dir(self.folder.path()).output().unwrap()
    }
}
