//! Pages of a column, with their claims checked before a decoder believes them.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// A page reader that refuses dictionaries which claim more values than they have bytes for: the
/// decoder would make room for the claim, and a failed allocation ends the program.
pub(crate) struct CheckedPages<P> {
    pages: P,
    value_bytes: usize,
}

impl<P: PageReader> CheckedPages<P> {
    /// The same pages, of values of `value_bytes` bytes.
    pub(crate) fn new(pages: P, value_bytes: usize) -> CheckedPages<P> {
        CheckedPages { pages, value_bytes }
    }
}

impl<P: PageReader> Iterator for CheckedPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for CheckedPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page
            && (*num_values as usize).saturating_mul(self.value_bytes) > buf.len()
        {
            return Err(ParquetError::General(format!(
                "a dictionary claims {num_values} values and has {} bytes",
                buf.len()
            )));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}
