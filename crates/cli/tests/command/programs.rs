//! The program that `hourglass paper` runs, for tests of both together.

use std::path::Path;
use std::process::Command;
use std::sync::Once;

/// Makes sure that `hourglass-paper` is beside `hourglass`. `cargo test --workspace` has built both; where only this
/// package is tested, the other one may be missing.
pub(crate) fn with_paper() {
    static THERE: Once = Once::new();
    let hourglass = Path::new(env!("CARGO_BIN_EXE_hourglass"));
    let beside = hourglass.with_file_name("hourglass-paper");
    THERE.call_once(|| {
        if beside.is_file() {
            return;
        }
        let profile = hourglass.parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", "hourglass-papers", "--bin", "hourglass-paper"]);
        cargo.arg("--target-dir").arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
        assert!(beside.is_file(), "{} is not there", beside.display());
    });
}
