//! Background work that takes a CPU from what is measured there: network receive processing, and a search
//! through files, as in sections 5.3 and 5.4 of the Hourglass paper.
//!
//! Owns: the work, where it runs, and that nothing of it is left when it is dropped. Must not: know what
//! is measured. All of it is of the time-sharing class, so that no thread of it can hold a CPU.
//!
//! # How a load is made
//!
//! `papers::load` makes the background work of the paper's sections 5.3 and 5.4. For the network two threads enter
//! namespaces of their own; `ip` lays a pair of virtual Ethernet devices between them, and the receiving end hands its
//! packets to the measured CPU, which takes them in an interrupt as from a card. Nothing is to be undone: the kernel
//! removes devices and namespaces with the threads, however these end. The search makes its own tree and removes it; it
//! holds a lock on the tree, by which the next one knows the tree of a killed process and removes that, too.

mod network;
mod search;
mod veth_link;

pub use network::{NetworkLoad, Path};
pub use search::SearchLoad;
