//! What the values that Rust hands to Python have in common.

use std::fmt::Write as _;

use pyo3::prelude::*;

/// How a value shows itself: its class and the attributes of these names.
pub(crate) fn repr(value: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<String> {
    let mut shown = format!("{}(", value.get_type().name()?);
    for (at, name) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let attribute = value.getattr(*name)?.repr()?;
        // Writing to a text does not fail.
        let _ = write!(shown, "{comma}{name}={attribute}");
    }
    shown.push(')');
    Ok(shown)
}
