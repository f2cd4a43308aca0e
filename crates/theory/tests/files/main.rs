//! Files as they are read, checked and simulated.

mod answers;
mod changes;
mod check;
mod locks;
mod orders;
mod sensitivity;
mod servers;
mod upper_bounds;
