//! Keeping those who share a processor with reserved work from taking what was reserved
//! (Inoue et al., CPU Resource Reservation for SMT, 2006).

pub mod stopper;
