//! Why a claim is not visible to the whole machine, and the warning about it.

use std::path::PathBuf;

use crate::backend::AccuracyWarning;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// No entry can be made there.
    Closed(PathBuf, String),
    /// Others than root may replace the folder's entries.
    Untrusted(PathBuf, String),
    /// It is the folder of a container.
    Container(PathBuf),
    /// It is another one for a process of the machine.
    Private(PathBuf, u32),
    /// A process keeps a reservation and has no entry here.
    Unclaimed(u32),
}

impl From<Gap> for AccuracyWarning {
    fn from(gap: Gap) -> AccuracyWarning {
        let (text, remedy) = match gap {
            Gap::Closed(folder, why) => (
                format!(
                    "others do not see this reservation, and may be promised the same time: {}: {why}",
                    folder.display()
                ),
                "let a group write down its reservations: sudo install -d -o root -g hourglass -m 1775 /run/hourglass/claims \
                 (the Debian package does), and be a member of that group",
            ),
            Gap::Untrusted(folder, why) => (
                format!(
                    "what reservations there are is not known: {} is not to be trusted, {why}",
                    folder.display()
                ),
                "sudo rm -r /run/hourglass/claims && sudo install -d -o root -g hourglass -m 1775 /run/hourglass/claims",
            ),
            Gap::Container(folder) => (
                format!(
                    "reservations outside of this container are not seen, and do not see this one: {} is its own",
                    folder.display()
                ),
                "share the folder of the machine with the container: --volume /run/hourglass/claims:/run/hourglass/claims",
            ),
            Gap::Private(folder, pid) => (
                format!(
                    "reservations outside of this mount namespace are not seen, and do not see this one: {} is another \
                     folder for process {pid}",
                    folder.display()
                ),
                "share the folder of the machine: mount --bind, BindPaths=/run/hourglass/claims, --bind /run/hourglass/claims",
            ),
            Gap::Unclaimed(pid) => (
                format!(
                    "process {pid} keeps a reservation that is not written down where this process reads: both may have \
                     been promised the same time"
                ),
                "let both see one /run/hourglass/claims, and be root or in the group hourglass",
            ),
        };
        AccuracyWarning { id: "reservations-unseen", text, remedy }
    }
}
