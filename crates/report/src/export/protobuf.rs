//! The wire format of Protocol Buffers, as far as a trace needs it: integers of variable length,
//! doubles, and fields with a length before them.

/// A field is a number.
const VARINT: u64 = 0;
/// A field is eight bytes.
const FIXED64: u64 = 1;
/// A field is a length and that number of bytes.
const LENGTH: u64 = 2;

/// A message that is being written. Fields may come in any order, and more than once.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Without a field.
    pub(super) fn new() -> Message {
        Message::default()
    }

    /// A number that is not negative, an enumeration, or a boolean.
    pub(super) fn uint(mut self, field: u64, value: u64) -> Message {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// A number of the types `int32` and `int64`.
    pub(super) fn int(self, field: u64, value: i64) -> Message {
        self.uint(field, value.cast_unsigned())
    }

    /// A number of the type `double`.
    pub(super) fn double(mut self, field: u64, value: f64) -> Message {
        self.key(field, FIXED64);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    pub(super) fn text(self, field: u64, value: &str) -> Message {
        self.with_length(field, value.as_bytes())
    }

    /// A message within this one.
    pub(super) fn message(self, field: u64, value: &Message) -> Message {
        self.with_length(field, &value.bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn with_length(mut self, field: u64, value: &[u8]) -> Message {
        self.key(field, LENGTH);
        self.varint(value.len() as u64);
        self.bytes.extend(value);
        self
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's documentation.
    #[test]
    fn the_examples_of_the_documentation() {
        assert_eq!(Message::new().uint(1, 150).bytes(), [0x08, 0x96, 0x01]);
        let text = [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67];
        assert_eq!(Message::new().text(2, "testing").bytes(), text);
        let within = Message::new().message(3, &Message::new().uint(1, 150));
        assert_eq!(within.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let negative = [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Message::new().int(1, -2).bytes(), negative);
    }
}
