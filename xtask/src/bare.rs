//! The second command where little is there: an ordinary user, no procps, no kernel's trace, no network.
//!
//! Owns: what is hidden, in namespaces that end with the run. Must not: change what the command does, or anything outside
//! of those namespaces.

use std::env;
use std::fs;
use std::process::{Command, Stdio};

use hourglass_skip::Requirement;

use crate::failure::{StepFailure, succeed};
use crate::skips;
use crate::test::StepOutcome;
use crate::workspace::Workspace;

/// The user is this one under another number and without capabilities, so that files stay its own. Programs are hidden by
/// whiteouts in an overlay: one that cannot be executed would be found all the same.
const HIDE: &str = r#"
mount --make-rprivate /
for place in /sys/kernel/tracing /sys/kernel/debug; do umount -l $place 2>/dev/null || true; done
hidden=$1
shift
mount -t tmpfs none "$hidden"
for folder in /usr/bin /usr/sbin; do
    changes="$hidden$folder"
    mkdir -p "$changes" "$changes.work"
    for program in free kill pgrep pidwait pkill pmap ps pwdx skill slabtop snice sysctl tload top uptime vmstat w watch; do
        if [ -e $folder/$program ]; then mknod "$changes/$program" c 0 0; fi
    done
    mount -t overlay none -o "lowerdir=$folder,upperdir=$changes,workdir=$changes.work" $folder
done
ip link set lo up
exec unshare --user --map-user=1000 --map-group=1000 "$@"
"#;

/// # Errors
/// `Unable` where such namespaces cannot be made; else as the command.
pub(crate) fn run(workspace: &Workspace) -> Result<StepOutcome, StepFailure> {
    let program = env::current_exe().map_err(|e| StepFailure::Broken(e.to_string()))?;
    let folder = workspace.target.join("bare");
    fs::create_dir_all(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    let hidden = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "sh", "-ec", HIDE, "sh"]).arg(&folder).args(words);
        command.current_dir(&workspace.root).stdin(Stdio::null());
        command
    };
    let attempt = hidden(&["true"]).stderr(Stdio::null()).status();
    if !attempt.is_ok_and(|status| status.success()) {
        let need = Requirement::runs(
            "namespaces",
            "unshare --mount --net --user --map-user=1000 true && grep -qw overlay /proc/filesystems && ip link",
        );
        return Ok(StepOutcome::Skipped(need, "namespaces and overlays need root".into()));
    }
    let program = program.to_string_lossy();
    let words = [&program, "test", "--no-beds"];
    println!(
        "    as an ordinary user without procps, tracefs and network: cargo xtask test --no-beds"
    );
    let mut command = hidden(&words);
    command.env("CI", "true");
    // What is skipped there is judged there, and is not this run's.
    let (file, before) = (skips::file(workspace), skips::all(&skips::file(workspace)));
    let result = succeed(&mut command, "cargo xtask test --no-beds");
    if let Ok(before) = before {
        skips::keep(&file, &before)?;
    }
    result.map(|()| StepOutcome::Passed)
}
