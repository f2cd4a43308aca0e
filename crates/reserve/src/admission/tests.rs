//! The rules against machines of files.
