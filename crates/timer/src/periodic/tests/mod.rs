//! Periodic tasks: hours of them on simulated machines, and threads of this one.
