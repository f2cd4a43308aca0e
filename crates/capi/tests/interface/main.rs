//! The header, the libraries and the packages, by the compilers that are there.

mod abi;
mod manual;
mod packages;
mod programs;
mod progress;
mod support;
