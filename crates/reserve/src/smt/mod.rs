//! Keeping those who share a processor with reserved work from taking what was reserved
//! (Inoue et al., CPU Resource Reservation for SMT, 2006).

pub mod dead_man;
pub mod driver;
pub mod enforcer;
pub mod jobs;
pub mod monitor;
mod order;
pub mod sharers;
pub mod sim;
pub mod stopper;
pub mod topology;
