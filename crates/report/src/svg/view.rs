//! The range of time that a picture shows, laid onto columns of pixels.

/// The part of the time line that is shown, and the pixels it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeRange {
    /// Left edge, ns from the run's start.
    pub(super) from_ns: i64,
    /// Right edge; behind `from_ns`.
    pub(super) to_ns: i64,
    /// Columns between them; at least one.
    pub(super) columns: u32,
}

impl TimeRange {
    fn range(&self) -> u64 {
        self.to_ns.abs_diff(self.from_ns).max(1)
    }

    /// Where `ns` lies, in columns from the left edge.
    pub(super) fn x(&self, ns: i64) -> f64 {
        let ns = ns.clamp(self.from_ns, self.to_ns);
        // Only for drawing: a picture has fewer than 2^53 pixels.
        ns.abs_diff(self.from_ns) as f64 / self.range() as f64 * f64::from(self.columns)
    }

    /// The column that holds the nanosecond that begins at `ns`.
    pub(super) fn column(&self, ns: i64) -> u32 {
        let ns = ns.clamp(self.from_ns, self.to_ns);
        let offset = ns.abs_diff(self.from_ns);
        let columns = u64::from(self.columns);
        let column = match offset.checked_mul(columns) {
            Some(product) => product / self.range(),
            None => {
                let wide = u128::from(offset) * u128::from(columns) / u128::from(self.range());
                u64::try_from(wide).unwrap_or(u64::MAX)
            }
        };
        u32::try_from(column).unwrap_or(u32::MAX).min(self.columns.saturating_sub(1))
    }

    /// The first nanosecond that begins in `column`.
    pub(super) fn start_of(&self, column: u32) -> i64 {
        let offset = (u128::from(column) * u128::from(self.range()))
            .div_ceil(u128::from(self.columns.max(1)));
        let at = i128::from(self.from_ns).saturating_add_unsigned(offset);
        i64::try_from(at).unwrap_or(i64::MAX).min(self.to_ns)
    }

    /// Whether a length is less than one column.
    pub(super) fn is_hidden(&self, length_ns: u64) -> bool {
        u128::from(length_ns) * u128::from(self.columns) < u128::from(self.range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_share_the_range_without_overlap() {
        for (from_ns, to_ns, columns) in [
            (0, 1_000, 10),
            (-5, 2, 3),
            (7, 10, 100),
            (i64::MIN + 1, i64::MAX, 8_192),
            (0, i64::MAX, 1),
        ] {
            let view = TimeRange { from_ns, to_ns, columns };
            assert_eq!(view.start_of(0), from_ns);
            assert_eq!(view.start_of(columns), to_ns);
            assert_eq!(view.column(from_ns), 0);
            assert_eq!(view.column(to_ns), columns - 1);
            for column in 1..columns {
                let start = view.start_of(column);
                assert!(view.column(start) >= column, "{column}");
                assert!(view.column(start.saturating_sub(1)) < column, "{column}");
            }
        }
    }
}
