//! Records as columns: bytes that Python sees as arrays.
//!
//! Owns: the way from rows to columns of eight bytes each. Must not: know what a column means.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Takes the value of a column from a row: eight bytes in the machine's order.
pub(crate) enum Cell<T> {
    /// A whole number.
    Whole(fn(&T) -> i64),
    /// A whole number that is never negative.
    Count(fn(&T) -> u64),
    /// A share or a measure.
    Real(fn(&T) -> f64),
}

/// The columns of a table, by name.
pub(crate) type Layout<T> = [(&'static str, Cell<T>)];

/// A table on its way to Python.
pub(crate) struct Table(Vec<(&'static str, char, Vec<u8>)>);

impl Table {
    /// The columns of `rows`.
    pub(crate) fn of<T>(rows: &[T], layout: &Layout<T>) -> Table {
        let column = |(name, cell): &(&'static str, Cell<T>)| {
            let (code, bytes) = match cell {
                Cell::Whole(take) => ('q', bytes(rows, |row| take(row).to_ne_bytes())),
                Cell::Count(take) => ('Q', bytes(rows, |row| take(row).to_ne_bytes())),
                Cell::Real(take) => ('d', bytes(rows, |row| take(row).to_ne_bytes())),
            };
            (*name, code, bytes)
        };
        Table(layout.iter().map(column).collect())
    }

    /// A dictionary: the name of a column, its format as `struct` writes it, its bytes.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let table = PyDict::new(py);
        for (name, code, bytes) in self.0 {
            table.set_item(name, (code, PyBytes::new(py, &bytes)))?;
        }
        Ok(table)
    }
}

fn bytes<T>(rows: &[T], take: impl Fn(&T) -> [u8; 8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<u64>().saturating_mul(rows.len()));
    rows.iter().for_each(|row| bytes.extend_from_slice(&take(row)));
    bytes
}
