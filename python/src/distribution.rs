//! Distributions of times, for Python.

use hourglass_timer::periodic::Distribution;
use pyo3::prelude::*;

use crate::errors::PyFailure;
use crate::values::repr;

/// Times of jobs. Least and greatest are exact, quantiles at most 1/32 too high and never too low.
#[pyclass(frozen, name = "Distribution", module = "hourglass.loops")]
pub(crate) struct PyDistribution(pub(crate) Distribution);

#[pymethods]
impl PyDistribution {
    /// How many.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    /// The least, ns; None without any.
    #[getter]
    fn min_ns(&self) -> Option<u64> {
        self.0.min_ns()
    }

    /// The mean, ns; None without any.
    #[getter]
    fn mean_ns(&self) -> Option<u64> {
        self.0.mean_ns()
    }

    /// Half of them are not longer, ns; None without any.
    #[getter]
    fn p50_ns(&self) -> Option<u64> {
        self.0.quantile_ns(500_000)
    }

    /// 99 % of them are not longer, ns; None without any.
    #[getter]
    fn p99_ns(&self) -> Option<u64> {
        self.0.quantile_ns(990_000)
    }

    /// 99.9 % of them are not longer, ns; None without any.
    #[getter]
    fn p999_ns(&self) -> Option<u64> {
        self.0.quantile_ns(999_000)
    }

    /// The greatest, ns; None without any.
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

    /// The buckets that are not empty, ascending: the greatest value of each, ns, and how many are in it.
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
