//! `latency.parquet`: when single wake-ups were and how late, by thread and then in order of waking.

use std::path::PathBuf;

use crate::store::error::{RowFault, TraceError};
use crate::store::table::read::{DecodeRows, Rows};
use crate::store::table::write::EncodeRows;
use crate::store::table::{Column, ColumnType, Layout, Table};
use crate::store::table::{from_int32, known, or_null, to_int32};

const THREAD: Column = Column::required("thread", ColumnType::Int32);

const LAYOUT: Layout = Layout {
    name: "latency",
    columns: &[
        THREAD,
        Column::required("lateness_ps", ColumnType::Uint64),
        // Folders of earlier versions lack it.
        Column::nullable("woke_ns", ColumnType::Int64),
    ],
    sorted_by: THREAD,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredWakeUp {
    /// When the thread saw the time, ns from the run's start; `None` where that was not kept.
    pub woke_ns: Option<i64>,
    /// How late that was, in picoseconds.
    pub lateness_ps: u64,
}

/// The wake-ups of `thread` in the file `path`, decoded as they are asked for.
pub(crate) fn read(
    path: PathBuf,
    thread: u32,
) -> Result<impl Iterator<Item = Result<StoredWakeUp, TraceError>> + use<>, TraceError> {
    // The threads ascend. An error is passed on wherever it comes.
    Ok(Rows::<WakeUps, 3>::open(path)?
        .skip_while(move |row| row.as_ref().is_ok_and(|(found, _)| *found < thread))
        .take_while(move |row| row.as_ref().map_or(true, |(found, _)| *found == thread))
        .map(|row| row.map(|(_, wake_up)| wake_up)))
}

/// Wake-ups with the numbers of their threads.
#[derive(Default)]
pub(crate) struct WakeUps {
    last_thread: u32,
}

impl WakeUps {
    /// Checks that the rows of a thread are not below those of a later one.
    fn admit(&mut self, thread: u32) -> Result<(), RowFault> {
        if thread < self.last_thread {
            return Err(RowFault::ThreadOrder);
        }
        self.last_thread = thread;
        Ok(())
    }
}

impl Table for WakeUps {
    type Row = (u32, StoredWakeUp);
    const LAYOUT: &'static Layout = &LAYOUT;
}

impl EncodeRows<3> for WakeUps {
    fn encode(&mut self, (thread, wake_up): &Self::Row) -> Result<[i64; 3], RowFault> {
        let number = to_int32(*thread, RowFault::Thread)?;
        self.admit(*thread)?;
        Ok([number, wake_up.lateness_ps.cast_signed(), or_null(wake_up.woke_ns)])
    }
}

impl DecodeRows<3> for WakeUps {
    fn decode(&mut self, [thread, ps, woke_ns]: [i64; 3]) -> Result<Option<Self::Row>, RowFault> {
        let thread = from_int32(thread, RowFault::Thread)?;
        self.admit(thread)?;
        let wake_up = StoredWakeUp { woke_ns: known(woke_ns), lateness_ps: ps.cast_unsigned() };
        Ok(Some((thread, wake_up)))
    }
}
