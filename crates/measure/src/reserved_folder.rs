//! What came of a reservation, as a run folder: `show` and `report` read it.

use std::path::{Path, PathBuf};

use hourglass_clock::timekeeping::{Native, ReferenceClock, Timebase};
use hourglass_documents::document::RunResult;
use hourglass_documents::manifest::Manifest;
use hourglass_documents::reserve::ReserveDocument;
use hourglass_machine::facts::HostReader;
use hourglass_reserve::session::warnings_of;
use hourglass_runs::store::{CreateError, NewRunFolder, RunFolder, WriteError};

use crate::outside;

/// A folder for a reservation that is about to be made; nothing is left of it without [`ReservedFolder::keep`].
#[derive(Debug)]
pub struct ReservedFolder {
    folder: NewRunFolder,
    command_line: Vec<String>,
    begin_ns: u64,
}

impl ReservedFolder {
    /// Makes the folder, which must not exist. The command line is for the manifest, word by word.
    ///
    /// # Errors
    /// It cannot be made; nothing is left behind.
    pub fn create(path: &Path, command_line: Vec<String>) -> Result<ReservedFolder, CreateError> {
        let folder = RunFolder::create(path)?;
        Ok(ReservedFolder {
            folder,
            command_line,
            begin_ns: Native.reference_ns(ReferenceClock::Monotonic),
        })
    }

    /// Writes what came of it. Returns where.
    ///
    /// # Errors
    /// A file refuses.
    pub fn keep(mut self, document: &ReserveDocument) -> Result<PathBuf, WriteError> {
        let path = self.folder.path().to_path_buf();
        self.folder.trace()?.finish()?;
        let now_ns = Native.reference_ns(ReferenceClock::Monotonic);
        let elapsed_ns = document.wall_ns.unwrap_or(now_ns.saturating_sub(self.begin_ns));
        let host = HostReader::new(Path::new("/")).read();
        let further = document.also.iter().flat_map(warnings_of);
        let result = RunResult {
            warnings: document.warnings.iter().cloned().chain(further).collect(),
            interrupted: document.interrupted,
            reservation: Some(document.clone()),
            ..RunResult::default()
        };
        let manifest = outside::manifest(self.command_line, host, self.begin_ns, elapsed_ns);
        self.folder.finish(&Manifest { result: Some(result), ..manifest })?;
        Ok(path)
    }
}
