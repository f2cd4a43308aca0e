//! The present use of a terminal.

use std::os::fd::{AsFd, AsRawFd};

/// Whether this is a terminal on which lines are printed and typed: one whose program reads single keys, as editors do,
/// draws all of the screen by itself.
#[must_use]
pub fn shows_lines(terminal: impl AsFd) -> bool {
    // SAFETY: all zero is a valid one to fill.
    let mut mode: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: fills a live local; the descriptor is open while it is borrowed.
    let code = unsafe { libc::tcgetattr(terminal.as_fd().as_raw_fd(), &raw mut mode) };
    code == 0 && mode.c_lflag & libc::ICANON != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_terminal() {
        assert!(!shows_lines(std::fs::File::open("/dev/null").unwrap()));
    }
}
