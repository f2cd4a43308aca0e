//! Names of threads, which may be any bytes.

/// A thread's name as it stands in documents, in files of tasks and in lists: without blanks around it, and with `?` for each
/// control character. Empty if the thread has no other.
#[must_use]
pub fn thread_name(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
