//! Distributions of times, for Python.

use hourglass_timer::periodic::Distribution;
use pyo3::prelude::*;

use crate::errors::PyFailure;
use crate::values::repr;

/// Times of jobs. Minimum and maximum are exact, quantiles at most 1/32 too high and never too low.
#[pyclass(frozen, name = "Distribution", module = "hourglass.loops")]
pub(crate) struct PyDistribution(pub(crate) Distribution);

#[pymethods]
impl PyDistribution {
    /// Number of values.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    /// The minimum, ns; None without a value.
    #[getter]
    fn min_ns(&self) -> Option<u64> {
        self.0.min_ns()
    }

    /// The mean, ns; None without a value.
    #[getter]
    fn mean_ns(&self) -> Option<u64> {
        self.0.mean_ns()
    }

    /// The median, ns; None without a value.
    #[getter]
    fn p50_ns(&self) -> Option<u64> {
        self.0.quantile_ns(500_000)
    }

    /// The 99th percentile, ns; None without a value.
    #[getter]
    fn p99_ns(&self) -> Option<u64> {
        self.0.quantile_ns(990_000)
    }

    /// The 99.9th percentile, ns; None without a value.
    #[getter]
    fn p999_ns(&self) -> Option<u64> {
        self.0.quantile_ns(999_000)
    }

    /// The maximum, ns; None without a value.
    #[getter]
    fn max_ns(&self) -> Option<u64> {
        self.0.max_ns()
    }

    /// A time that `ppm` of a million values do not exceed, ns; None without a value.
    fn quantile_ns(&self, ppm: u32) -> PyResult<Option<u64>> {
        if ppm > 1_000_000 {
            return Err(PyFailure::argument("ppm", format_args!("{ppm} is above 1000000")))?;
        }
        Ok(self.0.quantile_ns(ppm))
    }

    /// The buckets that are not empty, ascending: the greatest value of each, ns, and its number of values.
    fn buckets(&self) -> Vec<(u64, u64)> {
        self.0.buckets().collect()
    }

    fn __repr__(slf: &Bound<'_, PyDistribution>) -> PyResult<String> {
        repr(slf, &["count", "min_ns", "p50_ns", "p99_ns", "max_ns"])
    }
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDistribution>()
}
