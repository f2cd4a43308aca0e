//! The version of the interface.

use std::ffi::{CStr, c_char};

use crate::error::{CapiError, HG_OTHER_VERSION, guard, hg_error, hg_status};

/// `HG_ABI_VERSION` of the header that belongs to this library.
pub const HG_ABI_VERSION: u32 = 1;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The version of the interface that this library has.
#[unsafe(no_mangle)]
pub extern "C" fn hg_abi_version() -> u32 {
    HG_ABI_VERSION
}

/// The library's own version, as a text that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn hg_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Whether a program that was compiled with a header of that version may use this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_check_abi_of(header: u32, error: *mut hg_error) -> hg_status {
    let check = || {
        if header == HG_ABI_VERSION {
            return Ok(());
        }
        let text = format!(
            "the program was compiled with a hourglass.h of interface {header}, the library has \
             {HG_ABI_VERSION}: compile it with the header of the library that it finds when it starts"
        );
        Err(CapiError::new(HG_OTHER_VERSION, text))
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, check) }
}
