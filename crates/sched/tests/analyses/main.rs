//! Analyses against worked examples, other tools, each other and the simulator.

mod corpus;
mod peer_defects;
mod peers;
mod properties;
mod scale;
mod simulated;
mod soak;
