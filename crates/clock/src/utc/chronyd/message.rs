//! Messages of chronyd's command protocol, version 6: what a question and its reply look like, and the numbers in them.

pub(super) const VERSION: u8 = 6;
pub(super) const REQUEST: u8 = 1;
pub(super) const REPLY: u8 = 2;
/// A command, its reply, and the length of that, to which a request is padded.
pub(super) type Command = (u16, u16, usize);
pub(super) const TRACKING: Command = (33, 5, LENGTH);
pub(super) const SOURCE_COUNT: Command = (14, 2, 32);
pub(super) const SOURCE: Command = (15, 3, 76);
/// Of the longest reply.
pub(super) const LENGTH: usize = 104;
/// Of its addresses.
pub(super) const NO_FAMILY: u16 = 0;
pub(super) const IPV4: u16 = 1;

pub(super) fn request((command, _, length): Command, index: u32, sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..2].copy_from_slice(&[VERSION, REQUEST]);
    bytes[4..6].copy_from_slice(&command.to_be_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
    bytes[20..24].copy_from_slice(&index.to_be_bytes());
    bytes
}

/// Refuses what is no whole reply to a command.
pub(super) fn checked(
    bytes: &[u8],
    (command, reply, length): Command,
    sequence: u32,
) -> Result<(), String> {
    if bytes.len() != length {
        return Err(format!("an answer of {} bytes", bytes.len()));
    }
    if bytes[0] != VERSION {
        return Err(format!("version {} of its protocol is not known", bytes[0]));
    }
    let head =
        (bytes[0], bytes[1], word(bytes, 4), word(bytes, 6), word(bytes, 8), long(bytes, 16));
    if head != (VERSION, REPLY, command, reply, 0, sequence) {
        return Err("an answer to another question, or a refusal".to_owned());
    }
    Ok(())
}

/// 0 beyond the end.
pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.copied().map_or(0, u16::from_be_bytes)
}

pub(super) fn long(bytes: &[u8], at: usize) -> u32 {
    (u32::from(word(bytes, at)) << 16) | u32::from(word(bytes, at + 2))
}

/// Without its sign.
pub(super) fn amount(bytes: &[u8], at: usize, unit: u64) -> Result<u64, &'static str> {
    match scaled(long(bytes, at), unit) {
        (_, u64::MAX) => Err("an amount out of range"),
        (_, amount) => Ok(amount),
    }
}

pub(super) fn signed(bytes: &[u8], at: usize, unit: u64) -> Result<i64, &'static str> {
    let (negative, _) = scaled(long(bytes, at), unit);
    let amount = i64::try_from(amount(bytes, at, unit)?).map_err(|_| "an amount out of range")?;
    Ok(if negative { -amount } else { amount })
}

pub(super) fn positive(bytes: &[u8], at: usize, unit: u64) -> Result<u64, &'static str> {
    match scaled(long(bytes, at), unit) {
        (true, 1..) => Err("a negative length"),
        _ => amount(bytes, at, unit),
    }
}

/// An address and its family.
pub(super) fn address(bytes: &[u8], at: usize) -> ([u8; 16], u16) {
    let family = word(bytes, at + 16);
    let mut address: [u8; 16] =
        bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    if family == IPV4 {
        address[4..].fill(0);
    }
    (address, family)
}

/// The sign and the amount times `unit`, rounded up, of chronyd's number: an exponent of 7 bits and a coefficient of
/// 25, both signed; the point stands before the coefficient's 25 bits.
pub(super) fn scaled(bits: u32, unit: u64) -> (bool, u64) {
    let exponent = bits.cast_signed() >> 25;
    let coefficient = (bits << 7).cast_signed() >> 7;
    let product = u128::from(coefficient.unsigned_abs()) * u128::from(unit);
    let shift = exponent - 25;
    let by = shift.unsigned_abs();
    let amount = if shift >= 0 { product << by } else { product.div_ceil(1 << by) };
    (coefficient < 0, u64::try_from(amount).unwrap_or(u64::MAX))
}
