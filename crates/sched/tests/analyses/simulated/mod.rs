//! Bounds of the analyses against the simulator.

mod blocking;
mod bounds;
mod designs;
mod servers;
mod several;
mod support;
