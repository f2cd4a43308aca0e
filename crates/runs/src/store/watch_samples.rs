//! `looks.parquet`: what the kernel counted for watched threads, look by look, in order of time.

use hourglass_documents::watched::WatchedSample;

use crate::store::error::RowFault;
use crate::store::table::read::DecodeRows;
use crate::store::table::write::EncodeRows;
use crate::store::table::{Column, ColumnType, Layout, Table};
use crate::store::table::{from_int32, known, or_null, to_int32};

const NS: Column = Column::required("ns", ColumnType::Uint64);

const LAYOUT: Layout = Layout {
    name: "looks",
    columns: &[
        NS,
        Column::required("tid", ColumnType::Uint32),
        Column::required("state", ColumnType::Uint32),
        Column::nullable("cpu", ColumnType::Int32),
        Column::nullable("run_ns", ColumnType::Uint64),
        Column::nullable("wait_ns", ColumnType::Uint64),
        Column::nullable("voluntary_switches", ColumnType::Uint64),
        Column::nullable("involuntary_switches", ColumnType::Uint64),
    ],
    sorted_by: NS,
};

#[derive(Default)]
pub(crate) struct WatchSamples;

impl Table for WatchSamples {
    type Row = WatchedSample;
    const LAYOUT: &'static Layout = &LAYOUT;
}

impl EncodeRows<8> for WatchSamples {
    fn encode(&mut self, look: &WatchedSample) -> Result<[i64; 8], RowFault> {
        let cpu = look.cpu.map(|cpu| to_int32(cpu, RowFault::Cpu)).transpose()?;
        let count = |count: Option<u64>| or_null(count.map(u64::cast_signed));
        Ok([
            look.ns.cast_signed(),
            look.tid.into(),
            u32::from(look.state).into(),
            or_null(cpu),
            count(look.run_ns),
            count(look.wait_ns),
            count(look.voluntary_switches),
            count(look.involuntary_switches),
        ])
    }
}

impl DecodeRows<8> for WatchSamples {
    fn decode(&mut self, numbers: [i64; 8]) -> Result<Option<WatchedSample>, RowFault> {
        let [ns, tid, state, cpu, run_ns, wait_ns, voluntary, involuntary] = numbers;
        let count = |number: i64| known(number).map(i64::cast_unsigned);
        Ok(Some(WatchedSample {
            ns: ns.cast_unsigned(),
            // The columns are of `u32`.
            tid: tid as u32,
            state: char::from_u32(state as u32).unwrap_or('?'),
            cpu: known(cpu).map(|cpu| from_int32(cpu, RowFault::Cpu)).transpose()?,
            run_ns: count(run_ns),
            wait_ns: count(wait_ns),
            voluntary_switches: count(voluntary),
            involuntary_switches: count(involuntary),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::partial::PartialFile;
    use crate::store::table::read::Rows;
    use crate::store::table::write::write_rows;

    #[test]
    fn looks_come_back_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::LOOKS_FILE).unwrap();
        let look = |ns: u64, cpu, run_ns| WatchedSample {
            ns,
            tid: 7 + (ns % 2) as u32,
            state: 'R',
            cpu,
            run_ns,
            wait_ns: run_ns.map(|ns| ns / 2),
            voluntary_switches: Some(0),
            involuntary_switches: None,
        };
        let all = vec![look(0, Some(1), None), look(1, None, Some(5)), look(2, Some(0), Some(0))];
        write_rows::<WatchSamples, 8>(&partial, all.iter().copied()).unwrap();
        let path = home.path().join(crate::store::LOOKS_FILE);
        let rows = Rows::<WatchSamples, 8>::open(path).unwrap();
        let found: Vec<WatchedSample> = rows.map(Result::unwrap).collect();
        assert_eq!(found, all);
    }
}
