//! `spans.parquet`: spans of a program one by one, in order of their starts.

use hourglass_documents::Cause;
use hourglass_documents::sites::{RecordedLoss, RecordedSpan};

use crate::store::error::RowFault;
use crate::store::table::read::DecodeRows;
use crate::store::table::write::EncodeRows;
use crate::store::table::{Column, ColumnType, Layout, NULL, Table, from_int32, to_int32};

const START_NS: Column = Column::required("start_ns", ColumnType::Int64);

const LAYOUT: Layout = Layout {
    name: "spans",
    columns: &[
        Column::required("thread", ColumnType::Int32),
        Column::required("site", ColumnType::Int32),
        START_NS,
        Column::required("end_ns", ColumnType::Int64),
        Column::required("cpu_before", ColumnType::Int32),
        Column::required("cpu_after", ColumnType::Int32),
        Column::nullable("lost_least_ns", ColumnType::Int64),
        Column::nullable("lost_most_ns", ColumnType::Int64),
        // Place of the cause in the list of the documents; null where nothing was lost.
        Column::nullable("cause", ColumnType::Int32),
    ],
    sorted_by: START_NS,
};

pub(crate) struct Spans {
    last_ns: i64,
}

impl Default for Spans {
    fn default() -> Spans {
        Spans { last_ns: i64::MIN }
    }
}

impl Spans {
    /// Checks a span's times against those of the one above it.
    fn admit(&mut self, start_ns: i64, end_ns: i64) -> Result<(), RowFault> {
        if end_ns < start_ns {
            return Err(RowFault::Reversed);
        }
        if start_ns < self.last_ns {
            return Err(RowFault::OutOfOrder);
        }
        self.last_ns = start_ns;
        Ok(())
    }
}

impl Table for Spans {
    type Row = RecordedSpan;
    const LAYOUT: &'static Layout = &LAYOUT;
}

impl EncodeRows<9> for Spans {
    fn encode(&mut self, span: &RecordedSpan) -> Result<[i64; 9], RowFault> {
        let thread = to_int32(span.thread, RowFault::Thread)?;
        let site = to_int32(span.site, RowFault::Thread)?;
        let before = to_int32(span.cpu_before, RowFault::Cpu)?;
        let after = to_int32(span.cpu_after, RowFault::Cpu)?;
        self.admit(span.start_ns, span.end_ns)?;
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let code = |cause: Cause| Cause::ALL.iter().position(|one| *one == cause);
        let [least, most, cause] = span.lost.map_or([NULL; 3], |lost| {
            let cause = code(lost.cause).map_or(NULL, |place| place as i64);
            [ns(lost.least_ns), ns(lost.most_ns), cause]
        });
        Ok([thread, site, span.start_ns, span.end_ns, before, after, least, most, cause])
    }
}

impl DecodeRows<9> for Spans {
    fn decode(&mut self, numbers: [i64; 9]) -> Result<Option<RecordedSpan>, RowFault> {
        let [thread, site, start_ns, end_ns, before, after, least, most, cause] = numbers;
        self.admit(start_ns, end_ns)?;
        // A code of a later version is a cause not known here.
        let cause = usize::try_from(cause).ok();
        let cause = cause.map(|at| Cause::ALL.get(at).copied().unwrap_or(Cause::Unknown));
        let lost = u64::try_from(least).ok().zip(u64::try_from(most).ok()).zip(cause);
        Ok(Some(RecordedSpan {
            thread: from_int32(thread, RowFault::Thread)?,
            site: from_int32(site, RowFault::Thread)?,
            start_ns,
            end_ns,
            cpu_before: from_int32(before, RowFault::Cpu)?,
            cpu_after: from_int32(after, RowFault::Cpu)?,
            lost: lost.map(|((least_ns, most_ns), cause)| RecordedLoss {
                least_ns,
                most_ns,
                cause,
            }),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::partial::PartialFile;
    use crate::store::table::read::Rows;
    use crate::store::table::write::write_rows;

    fn span(start_ns: i64, lost: Option<RecordedLoss>) -> RecordedSpan {
        let (thread, site, cpu_before) = (start_ns as u32 % 3, 7, 1);
        RecordedSpan {
            thread,
            site,
            start_ns,
            end_ns: start_ns + 5,
            cpu_before,
            cpu_after: 0,
            lost,
        }
    }

    #[test]
    fn spans_come_back_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::SPANS_FILE).unwrap();
        let losses = Cause::ALL.map(|cause| RecordedLoss { least_ns: 0, most_ns: 9, cause });
        let lost = losses.map(Some).into_iter().chain([None]);
        let all: Vec<_> = (0..).zip(lost).map(|(at, lost)| span(at / 2, lost)).collect();
        write_rows::<Spans, 9>(&partial, all.iter().copied()).unwrap();
        let path = home.path().join(crate::store::SPANS_FILE);
        let rows = Rows::<Spans, 9>::open(path).unwrap();
        let found: Vec<RecordedSpan> = rows.map(Result::unwrap).collect();
        assert_eq!(found, all);
    }

    #[test]
    fn spans_out_of_order_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::SPANS_FILE).unwrap();
        assert!(write_rows::<Spans, 9>(&partial, [span(2, None), span(1, None)]).is_err());
        let reversed = RecordedSpan { end_ns: 0, ..span(2, None) };
        assert!(write_rows::<Spans, 9>(&partial, [reversed]).is_err());
    }
}
