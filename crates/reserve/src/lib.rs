//! reserve
