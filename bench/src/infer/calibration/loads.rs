//! What works on the measured CPU beside the measured thread.

use std::fs::File;
use std::io::{Seek, Write};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread::set_affinity;

use crate::load::{BackgroundThreads, work_and_rest};

/// What real-time competitors are called, for who looks at the kernel's record.
pub(super) const RIVAL: &str = "rival";

const NOBODY: u32 = 65_534;

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Load {
        Idle => "idle",
        /// A thread that works 2 ms and rests 7 ms.
        Busy => "busy",
        /// Writes to a file that reach the disk, and datagrams to itself.
        DiskAndNetwork => "disk-and-network",
        /// A thread of a higher real-time priority with turns of 45 ms.
        Fifo => "fifo",
        /// A process of another user in a session of its own, which never rests.
        OtherUser => "other-user",
    }
}

impl Load {
    pub(super) fn begin(self, cpu: u32) -> Result<RunningLoad> {
        let (mut threads, mut child) = (BackgroundThreads::default(), None);
        let ms = Duration::from_millis;
        match self {
            Load::Idle => {}
            Load::Busy => threads.start("busy", cpu, move || work_and_rest(ms(2), ms(7)))?,
            Load::DiskAndNetwork => {
                let mut file = tempfile::tempfile_in(".").context("no file can be made here")?;
                threads.start("disk", cpu, move || write(&mut file))?;
                let socket = UdpSocket::bind("127.0.0.1:0").context("no socket")?;
                socket.connect(socket.local_addr()?)?;
                threads.start("network", cpu, move || send(&socket))?;
            }
            Load::Fifo => threads.start(RIVAL, cpu, move || {
                if sched::set(Attributes::Fifo(60)).is_ok() {
                    work_and_rest(ms(45), ms(100));
                }
            })?,
            Load::OtherUser => child = Some(other_user(cpu)?),
        }
        Ok(RunningLoad { _threads: threads, child })
    }
}

#[derive(Debug)]
pub(super) struct RunningLoad {
    _threads: BackgroundThreads,
    child: Option<Child>,
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn write(file: &mut File) {
    let written = file.rewind().and_then(|()| file.write_all(&[7; 1 << 20]));
    if written.and_then(|()| file.sync_data()).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(socket: &UdpSocket) {
    let mut room = [0; 1_024];
    for _ in 0..20 {
        if socket.send(&[7; 1_000]).and_then(|_| socket.recv(&mut room)).is_err() {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(1));
}

/// Children begin on the CPU of the thread that makes them.
fn other_user(cpu: u32) -> Result<Child> {
    let make = move || -> Result<Child> {
        set_affinity([cpu])?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        shell.uid(NOBODY).gid(NOBODY).process_group(0);
        shell.spawn().context("no process of another user can be made; run as root")
    };
    let maker = std::thread::spawn(make);
    maker.join().unwrap_or_else(|_| anyhow::bail!("the maker of a process panicked"))
}
