//! Messages of a grandmaster as Ethernet frames (IEEE 1588-2008, clause 13 and annex F).

use super::super::scale::Scale;

const MULTICAST: [u8; 6] = [0x01, 0x1b, 0x19, 0, 0, 0];
const ETHERTYPE: [u8; 2] = [0x88, 0xf7];
const ETHERNET: usize = 14;
const HEADER: usize = 34;

const SYNC: u8 = 0;
const DELAY_REQUEST: u8 = 1;
const DELAY_RESPONSE: u8 = 9;
const ANNOUNCE: u8 = 0xb;

const NO_INTERVAL: u8 = 0x7f;

/// What a grandmaster says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Announced {
    pub(super) master: u8,
    pub(super) accuracy: u8,
    pub(super) traceable: bool,
    pub(super) knows_utc: bool,
    pub(super) utc_offset_s: i16,
    /// NTP's indicator: 1 for a second more, 2 for one less.
    pub(super) leap: u8,
}

impl Announced {
    pub(super) const WITHIN_2_5_MS: u8 = 0x2a;
    pub(super) const WITHIN_25_MS: u8 = 0x2c;
    const WITHIN_1_MS: u8 = 0x29;

    /// Of a good one, at a time of this machine.
    pub(super) fn of(scale: &Scale, here_ns: i64) -> Announced {
        Announced {
            master: 1,
            accuracy: Announced::WITHIN_1_MS,
            traceable: true,
            knows_utc: true,
            utc_offset_s: scale.utc_offset_s(here_ns),
            leap: scale.indicator(here_ns),
        }
    }

    fn flags(&self) -> u8 {
        const PTP_TIMESCALE: u8 = 1 << 3;
        let traceable = u8::from(self.traceable) * 0x30;
        u8::from(self.leap == 1)
            | u8::from(self.leap == 2) << 1
            | u8::from(self.knows_utc) << 2
            | PTP_TIMESCALE
            | traceable
    }

    fn identity(&self) -> [u8; 8] {
        [0x02, 0, 0, 0xff, 0xfe, 0, 0, self.master]
    }
}

#[derive(Debug, Default)]
pub(super) struct Grandmaster {
    syncs: u16,
    announces: u16,
}

impl Grandmaster {
    /// It is stamped here, and sent later: no Sync takes less than nothing.
    pub(super) fn sync(&mut self, of: Announced, tai_ns: i64) -> Vec<u8> {
        self.syncs = self.syncs.wrapping_add(1);
        message(SYNC, of, self.syncs, (-2i8).cast_unsigned(), &stamp(tai_ns))
    }

    pub(super) fn announce(&mut self, of: Announced) -> Vec<u8> {
        self.announces = self.announces.wrapping_add(1);
        let mut body = stamp(0).to_vec();
        body.extend(of.utc_offset_s.to_be_bytes());
        // Reserved, priority, class, accuracy, variance, priority.
        body.extend([0, 128, 6, of.accuracy, 0x4e, 0x5d, 128]);
        body.extend(of.identity());
        // No step removed; by GNSS.
        body.extend([0, 0, 0x20]);
        message(ANNOUNCE, of, self.announces, 0, &body)
    }

    /// The answer, if the frame asks.
    pub(super) fn delay_response(
        &self,
        frame: &[u8],
        of: Announced,
        tai_ns: i64,
    ) -> Option<Vec<u8>> {
        let asked = frame.get(ETHERNET..ETHERNET + HEADER)?;
        if frame[12..14] != ETHERTYPE || asked[0] & 0xf != DELAY_REQUEST {
            return None;
        }
        let sequence = u16::from_be_bytes([asked[30], asked[31]]);
        let mut body = stamp(tai_ns).to_vec();
        body.extend(&asked[20..30]);
        Some(message(DELAY_RESPONSE, of, sequence, (-2i8).cast_unsigned(), &body))
    }
}

fn message(kind: u8, of: Announced, sequence: u16, log_interval: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = MULTICAST.to_vec();
    frame.extend([0x02, 0, 0, 0, 0, of.master]);
    frame.extend(ETHERTYPE);
    let length = (HEADER + body.len()) as u16;
    frame.extend([kind, 2]);
    frame.extend(length.to_be_bytes());
    let flags = if kind == ANNOUNCE { of.flags() } else { 0 };
    // Domain, reserved, flags, correction, reserved.
    frame.extend([0, 0, 0, flags]);
    frame.extend([0; 12]);
    frame.extend(of.identity());
    frame.extend([0, 1]);
    frame.extend(sequence.to_be_bytes());
    let control = match kind {
        SYNC => 0,
        DELAY_RESPONSE => 3,
        _ => 5,
    };
    frame.extend([control, if kind == DELAY_REQUEST { NO_INTERVAL } else { log_interval }]);
    frame.extend(body);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// 48 bits of seconds and 32 of nanoseconds.
fn stamp(ns: i64) -> [u8; 10] {
    let ns = ns.unsigned_abs();
    let mut bytes = [0; 10];
    bytes[..6].copy_from_slice(&(ns / 1_000_000_000).to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&((ns % 1_000_000_000) as u32).to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_they_say() {
        let of = Announced::of(&Scale::default(), 0);
        let mut master = Grandmaster::default();
        for (frame, body) in [(master.sync(of, 7), 10), (master.announce(of), 30)] {
            let length = u16::from_be_bytes([frame[16], frame[17]]);
            assert_eq!(usize::from(length), HEADER + body);
            assert_eq!(frame.len(), (ETHERNET + HEADER + body).max(60));
        }
        assert_eq!(stamp(3_000_000_007), [0, 0, 0, 0, 0, 3, 0, 0, 0, 7]);
    }

    #[test]
    fn the_flags_are_those_of_the_standard() {
        let good = Announced::of(&Scale::default(), 0);
        assert_eq!((good.flags(), good.utc_offset_s), (0x3c, 37));
        assert_eq!(Announced { traceable: false, knows_utc: false, leap: 1, ..good }.flags(), 0x09);
    }

    #[test]
    fn who_asks_is_answered_with_his_number() {
        let of = Announced::of(&Scale::default(), 0);
        let master = Grandmaster::default();
        let mut asked = message(DELAY_REQUEST, of, 515, 0, &stamp(0));
        asked[ETHERNET + 20..ETHERNET + 30].copy_from_slice(&[9; 10]);
        let answer = master.delay_response(&asked, of, 5).unwrap();
        assert_eq!(answer[ETHERNET + 30..ETHERNET + 32], [2, 3]);
        assert_eq!(answer[ETHERNET + HEADER + 10..ETHERNET + HEADER + 20], [9; 10]);
        assert_eq!(master.delay_response(&master_sync(of), of, 5), None);
        assert_eq!(master.delay_response(&asked[..40], of, 5), None);
    }

    fn master_sync(of: Announced) -> Vec<u8> {
        Grandmaster::default().sync(of, 0)
    }
}
