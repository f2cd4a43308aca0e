//! Experiments: whatever the threads and interruptions, one result.
