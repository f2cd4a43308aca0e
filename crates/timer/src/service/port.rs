//! Ports: where messages of timers arrive.
//!
//! Owns: a bounded queue of messages and the descriptor that says that there are some.
//! Must not: allocate or wait when a message is sent; what does not fit is counted.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::eventfd::{EventFd, either_readable};
use hourglass_sys::memory::has_room;
use hourglass_time::Span;

use super::action::Expiration;
use super::remote::Ring;

/// ENOMEM on Linux.
const NO_MEMORY: i32 = 12;

/// What a timer sends when it expires (RT-Mach, section 3: "an asynchronous message containing the
/// current time").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number that the timer's action was given.
    pub tag: u64,
    /// The expiry, with the time of the timer's clock.
    pub expiration: Expiration,
}

/// A bounded queue of messages for any number of timers and readers. Clones are the same port.
///
/// As a channel: [`Port::receive`], [`Port::try_receive`]. In a loop over `epoll` or `io_uring`:
/// its descriptor ([`AsFd`]) is readable while there are messages; read them by `try_receive` until
/// it returns none, which makes it unreadable again. Only the port reads the descriptor.
///
/// A timer that finds it full drops its message, which [`Port::lost`] counts.
///
/// ```
/// use hourglass_timer::service::Port;
///
/// let port = Port::new(16)?;
/// assert_eq!(port.try_receive(), None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Port(Arc<PortShared>);

struct PortShared {
    messages: Ring<5>,
    /// Whether the descriptor is readable, or is about to be.
    notified: AtomicBool,
    event: EventFd,
    lost: AtomicU64,
}

impl Port {
    /// A port with room for `room` messages, rounded up to a power of two; [`MOST_ROOM`] at most.
    ///
    /// # Errors
    /// No descriptors are left (`ulimit -n`); ENOMEM for more room than there is memory.
    ///
    /// [`MOST_ROOM`]: super::MOST_ROOM
    pub fn new(room: usize) -> io::Result<Port> {
        if !has_room(Ring::<5>::bytes(room)) {
            return Err(io::Error::from_raw_os_error(NO_MEMORY));
        }
        Ok(Port(Arc::new(PortShared {
            messages: Ring::new(room),
            notified: AtomicBool::new(false),
            event: EventFd::new()?,
            lost: AtomicU64::new(0),
        })))
    }

    /// The oldest message, if there is any.
    #[must_use]
    pub fn try_receive(&self) -> Option<Message> {
        if let Some(words) = self.0.messages.pop() {
            return Some(message(words));
        }
        // First the descriptor, then the flag, then the queue once more: a later sender makes the
        // descriptor readable again.
        self.0.event.drain();
        self.0.notified.swap(false, Ordering::AcqRel);
        let words = self.0.messages.pop()?;
        self.tell();
        Some(message(words))
    }

    /// The oldest message; waits for one, `limit` at most (for ever without). `None` when the limit
    /// is past. Signals do not end it.
    ///
    /// # Errors
    /// What the kernel answers; does not happen for a live port.
    pub fn receive(&self, limit: Option<Span>) -> io::Result<Option<Message>> {
        let now = || now_ns(ClockId::Monotonic);
        let until = limit.map(|limit| now().saturating_add(limit.nanos_or_zero()));
        loop {
            if let Some(message) = self.try_receive() {
                return Ok(Some(message));
            }
            let left = until.map(|until| until.saturating_sub(now()));
            if left == Some(0) {
                return Ok(None);
            }
            let fd = self.0.event.as_fd();
            match either_readable(fd, fd, left) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
    }

    /// Messages that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Messages that there is room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.messages.room()
    }

    /// Sends; false if there is no room. A system call only if no notification is pending.
    pub(super) fn send(&self, message: &Message) -> bool {
        let [expiry, now, overruns, kind] = message.expiration.words();
        let sent = self.0.messages.push([message.tag, expiry, now, overruns, kind]);
        if sent {
            self.tell();
        } else {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    fn tell(&self) {
        if !self.0.notified.swap(true, Ordering::AcqRel) {
            self.0.event.post();
        }
    }
}

fn message(words: [u64; 5]) -> Message {
    let [tag, expiry, now, overruns, kind] = words;
    Message { tag, expiration: Expiration::from_words([expiry, now, overruns, kind]) }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Cause, ClockBase};

    fn sent(tag: u64) -> Message {
        let expiration = Expiration {
            base: ClockBase::Tai,
            expiry_ns: -3,
            now_ns: 7,
            overruns: 2,
            cause: Cause::ClockSet,
        };
        Message { tag, expiration }
    }

    #[test]
    fn readable_while_there_is_something_and_counted_when_full() {
        let port = Port::new(2).unwrap();
        let readable = || either_readable(port.as_fd(), port.as_fd(), Some(0)).unwrap().0;
        assert!(!readable());
        assert!(port.send(&sent(1)) && port.send(&sent(2)) && !port.send(&sent(3)));
        assert!(readable());
        assert_eq!(port.try_receive(), Some(sent(1)));
        assert!(readable());
        assert_eq!(port.try_receive(), Some(sent(2)));
        assert_eq!(port.try_receive(), None);
        assert!(!readable());
        assert_eq!((port.lost(), port.room()), (1, 2));
        assert_eq!(port.receive(Some(Span::MILLISECOND)).unwrap(), None);
    }

    /// No message is left behind unseen: the reader waits on the descriptor alone.
    #[test]
    fn every_message_is_received() {
        const MESSAGES: u64 = 20_000;
        let port = Port::new(8).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for tag in 0..MESSAGES {
                    while !port.send(&sent(tag)) {
                        std::thread::yield_now();
                    }
                }
            });
            for tag in 0..MESSAGES {
                let limit = Some(Span::from_nanos(20_000_000_000));
                assert_eq!(port.receive(limit).unwrap(), Some(sent(tag)));
            }
        });
    }
}
