//! Sizes of working sets as they are written.

use thiserror::Error;

/// Smallest and largest size, bytes. Below a cache line there is nothing to scan.
const LEAST: u64 = 1 << 10;
const MOST: u64 = 64 << 30;

/// Sizes that one experiment takes at most.
const MOST_SIZES: usize = 64;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SizesError {
    #[error(
        "'{0}' is not a size; write for example 64K, 4M, 4K..4M (doubled each time) or 32K,100K"
    )]
    Word(String),
    #[error("'{0}' is out of range; sizes are from 1K to 64G")]
    Range(String),
    #[error("'{0}' goes down; write the smaller size first")]
    Down(String),
    #[error("{0} sizes are too many; give at most {MOST_SIZES}")]
    TooMany(usize),
}

/// Reads sizes: `64K`, a range that is doubled each time (`4K..4M`), or several with commas. A range ends
/// with its upper end, also where that is no doubling of the lower.
///
/// # Errors
/// Names the word that cannot be meant.
pub fn sizes(text: &str) -> Result<Vec<u64>, SizesError> {
    let mut all = Vec::new();
    for word in text.split(',') {
        match word.split_once("..") {
            None => all.push(size(word)?),
            Some((from, to)) => {
                let (mut next, last) = (size(from)?, size(to)?);
                if last < next {
                    return Err(SizesError::Down(word.to_owned()));
                }
                while next < last {
                    all.push(next);
                    next *= 2;
                }
                all.push(last);
            }
        }
    }
    if all.len() > MOST_SIZES { Err(SizesError::TooMany(all.len())) } else { Ok(all) }
}

fn size(word: &str) -> Result<u64, SizesError> {
    let word = word.trim();
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = word.get(..word.len() - letters.len()).unwrap_or_default();
    let shift = match letters {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return Err(SizesError::Word(word.to_owned())),
    };
    let number: u64 = digits.parse().map_err(|_| SizesError::Word(word.to_owned()))?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| (LEAST..=MOST).contains(bytes));
    bytes.ok_or_else(|| SizesError::Range(word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_they_are_written() {
        let k = |numbers: &[u64]| numbers.iter().map(|n| n << 10).collect::<Vec<_>>();
        assert_eq!(sizes("4K..64K").unwrap(), k(&[4, 8, 16, 32, 64]));
        assert_eq!(sizes("32k, 100K,1M").unwrap(), k(&[32, 100, 1024]));
        assert_eq!(sizes("48K..100K,2048").unwrap(), k(&[48, 96, 100, 2]));
        assert_eq!(sizes("4K..4K").unwrap(), k(&[4]));
    }

    #[test]
    fn what_cannot_be_meant() {
        for (text, error) in [
            ("", SizesError::Word(String::new())),
            ("4K..", SizesError::Word(String::new())),
            ("-4K", SizesError::Word("-4K".into())),
            ("4KB", SizesError::Word("4KB".into())),
            ("1000", SizesError::Range("1000".into())),
            ("99999999999999999999", SizesError::Word("99999999999999999999".into())),
            ("9999999999999G", SizesError::Range("9999999999999G".into())),
            ("4M..4K", SizesError::Down("4M..4K".into())),
        ] {
            assert_eq!(sizes(text), Err(error), "{text}");
        }
        assert_eq!(sizes(&["4K"; 65].join(",")), Err(SizesError::TooMany(65)));
    }
}
