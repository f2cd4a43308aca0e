//! Files of tasks: read, refused, written, imported.
//!
//! One program for all of it, which takes less time to link than four.

mod task_files;
mod task_files_refused;
mod task_foreign;
mod task_imports;
mod task_properties;
mod task_schema;
