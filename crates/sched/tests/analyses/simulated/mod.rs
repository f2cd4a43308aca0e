//! Bounds of the analyses against the simulator.

mod blocking;
mod bounds;
mod servers;
mod several;
mod support;
