//! How chronyd is asked: by datagrams to its port, or, where it listens on none (`cmdport 0`), through its socket in the file system,
//! which root may use.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why chronyd was not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unasked {
    /// Nobody listens there.
    Nobody,
    /// Whether it is there is not known.
    Away(String),
    /// It is, and its answer is none.
    Strange(String),
}

impl From<String> for Unasked {
    fn from(reason: String) -> Unasked {
        Unasked::Strange(reason)
    }
}

impl From<&str> for Unasked {
    fn from(reason: &str) -> Unasked {
        Unasked::Strange(reason.to_owned())
    }
}

/// Of one that runs; what it would say against the kernel's state is not known.
pub(super) const SILENT: &str = "no answer within 0.1 s";

/// A connection with one chronyd.
#[derive(Debug)]
pub(super) enum CommandSocket {
    Port(UdpSocket),
    File(FileSocket),
}

/// A socket with a name in the file system, to which chronyd answers; that is removed at the end.
#[derive(Debug)]
pub(super) struct FileSocket {
    socket: UnixDatagram,
    place: PathBuf,
}

impl Drop for FileSocket {
    fn drop(&mut self) {
        // Whoever removed it before did what is wanted.
        let _ = fs::remove_file(&self.place);
    }
}

impl CommandSocket {
    /// Of the port, whether anybody listens there or not.
    pub(super) fn port(port: u16) -> Result<CommandSocket, Unasked> {
        let connect = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect((Ipv4Addr::LOCALHOST, port))?;
            Ok(CommandSocket::Port(socket))
        };
        connect().map_err(|error: io::Error| Unasked::Away(format!("cannot be asked: {error}")))
    }

    /// Of the file; nobody listens there, too, or it may not be used.
    pub(super) fn file(place: &Path) -> Result<CommandSocket, Unasked> {
        CommandSocket::through(place).map_err(|reason| match reason {
            None => Unasked::Nobody,
            Some(error) => Unasked::Strange(format!(
                "it takes questions through {} alone (cmdport 0): {error}; ask as root, or have it listen on its port",
                place.display()
            )),
        })
    }

    /// `None` where nobody listens at `place` either.
    fn through(place: &Path) -> Result<CommandSocket, Option<io::Error>> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if !place.exists() {
            return Err(None);
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hourglass.{}.{count}.sock", std::process::id());
        let own = place.with_file_name(name);
        let connect = || {
            let found = FileSocket { socket: UnixDatagram::bind(&own)?, place: own };
            // chronyd, which answers there, is not root.
            fs::set_permissions(&found.place, fs::Permissions::from_mode(0o666))?;
            found.socket.connect(place)?;
            io::Result::Ok(CommandSocket::File(found))
        };
        connect().map_err(|error| match error.kind() {
            // One that was killed leaves its socket behind.
            ErrorKind::ConnectionRefused => None,
            _ => Some(error),
        })
    }

    /// Sends a request; the length of the reply to whatever was asked, if it comes in time.
    pub(super) fn exchange(
        &self,
        request: &[u8],
        reply: &mut [u8],
        within: Duration,
    ) -> Result<usize, Unasked> {
        let found = match self {
            CommandSocket::Port(socket) => socket
                .set_read_timeout(Some(within))
                .and_then(|()| socket.send(request))
                .and_then(|_| socket.recv(reply)),
            CommandSocket::File(FileSocket { socket, .. }) => socket
                .set_read_timeout(Some(within))
                .and_then(|()| socket.set_write_timeout(Some(within)))
                .and_then(|()| socket.send(request))
                .and_then(|_| socket.recv(reply)),
        };
        found.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => SILENT.into(),
            ErrorKind::ConnectionRefused => Unasked::Nobody,
            _ => Unasked::Away(format!("cannot be asked: {error}")),
        })
    }
}
