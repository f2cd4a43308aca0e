//! Stands in for pages shared between processes on systems without them.

use std::sync::atomic::AtomicU64;

/// A page that others read: never made here.
#[derive(Debug)]
pub(super) enum SharedPage {}

#[derive(Debug)]
pub(super) enum SharedWords {}

impl SharedPage {
    pub(super) fn words(&self) -> Option<&SharedWords> {
        match *self {}
    }
}

impl SharedWords {
    pub(super) fn words(&self) -> &[AtomicU64] {
        match *self {}
    }
}
