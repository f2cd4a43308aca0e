//! What the registers of an HPET mean (IA-PC HPET Specification 1.0a, section 2.3).
//!
//! Pure logic over [`Registers`], so that it is tested without the device. The code published
//! with the thesis got three things wrong here (its listings 2.4 and 2.5): the width bit was not masked, the counter was read as 32 bits and sign-extended, and
//! so was the lower half of a 64-bit counter. All of its defects: `tests/clocks/thesis_defects.rs`.

use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::hpet::{Mapping, Register};

use super::Unavailable;

/// Something that has an HPET's registers.
pub trait Registers: std::fmt::Debug + Send + Sync {
    /// The lower half of a register, by one load.
    fn low(&self, register: Register) -> u32;
    /// The upper half of a register, by one load.
    fn high(&self, register: Register) -> u32;
    /// The whole of a register, by one load that is not torn.
    #[cfg(target_pointer_width = "64")]
    fn whole(&self, register: Register) -> u64;
}

impl Registers for Mapping {
    #[inline]
    fn low(&self, register: Register) -> u32 {
        self.low(register)
    }

    #[inline]
    fn high(&self, register: Register) -> u32 {
        self.high(register)
    }

    #[cfg(target_pointer_width = "64")]
    #[inline]
    fn whole(&self, register: Register) -> u64 {
        self.whole(register)
    }
}

/// Bits of the capabilities register's lower half.
const COUNT_SIZE_CAP: u32 = 1 << 13;
const NUM_TIM_CAP_SHIFT: u32 = 8;
const NUM_TIM_CAP_MASK: u32 = 0x1f;
/// The bit of the configuration register that lets the counter run.
const ENABLE_CNF: u32 = 1;
/// The longest period that the specification allows: 100 ns.
const LONGEST_PERIOD_FS: u32 = 100_000_000;

/// The capabilities that an HPET states in its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Length of a tick, femtoseconds; at most 100 ns.
    pub period_fs: u32,
    /// Whether the main counter has 64 bits, not 32.
    pub counter_is_64_bits: bool,
    /// Number of comparators.
    pub comparators: u32,
}

impl Capabilities {
    /// Decodes the registers.
    ///
    /// # Errors
    /// `BadRegisters` if the specification does not allow the period (absent hardware reads as all
    /// zeros or all ones), `Stopped` if the counter is not enabled.
    pub fn decode(registers: &impl Registers) -> Result<Capabilities, Unavailable> {
        let low = registers.low(Register::Capabilities);
        let period_fs = registers.high(Register::Capabilities);
        if period_fs == 0 || period_fs > LONGEST_PERIOD_FS {
            return Err(Unavailable::BadRegisters {
                what: "the period is not between 1 fs and 100 ns",
            });
        }
        if registers.low(Register::Configuration) & ENABLE_CNF == 0 {
            return Err(Unavailable::Stopped);
        }
        Ok(Capabilities {
            period_fs,
            counter_is_64_bits: low & COUNT_SIZE_CAP != 0,
            comparators: ((low >> NUM_TIM_CAP_SHIFT) & NUM_TIM_CAP_MASK) + 1,
        })
    }

    /// Nanoseconds until a counter of 32 bits wraps, rounded down.
    #[must_use]
    pub fn wraps_after_ns(&self) -> u64 {
        const FS_PER_NS: u64 = 1_000_000;
        // The product is at most 2^32 x 10^8, below 2^59.
        (u64::from(self.period_fs) << 32) / FS_PER_NS
    }
}

/// A counter of 64 bits, by one load where the processor can.
#[inline]
pub fn counter64(registers: &impl Registers) -> u64 {
    #[cfg(target_pointer_width = "64")]
    return registers.whole(Register::Counter);
    #[cfg(not(target_pointer_width = "64"))]
    counter64_by_halves(registers)
}

/// A counter of 64 bits by loads of 32: upper, lower, upper again, until the upper half stays
/// (thesis, listing 2.5, with halves that are not sign-extended and a retry that it lacks).
#[inline]
pub fn counter64_by_halves(registers: &impl Registers) -> u64 {
    // The upper half changes every 43 s at best; twice in a row means a thread that was held up
    // for as long each time.
    const TRIES: u32 = 8;
    let mut high = registers.high(Register::Counter);
    let mut low = registers.low(Register::Counter);
    for _ in 0..TRIES {
        let again = registers.high(Register::Counter);
        if again == high {
            break;
        }
        high = again;
        low = registers.low(Register::Counter);
    }
    (u64::from(high) << 32) | u64::from(low)
}

/// A 32-bit counter carried on to 64 bits by software.
///
/// It must be read at least once in every wrap (43 to 430 s; [`Capabilities::wraps_after_ns`]),
/// or whole wraps are lost. Any thread may read at any time; no read blocks.
#[derive(Debug)]
pub struct ExtendedCounter {
    /// The highest count given so far.
    last: AtomicU64,
}

impl ExtendedCounter {
    /// Starts at the counter as it stands.
    #[must_use]
    pub fn starting_at(low: u32) -> ExtendedCounter {
        ExtendedCounter { last: AtomicU64::new(u64::from(low)) }
    }

    /// Reads the counter and carries on from the highest count given so far.
    #[inline]
    pub fn read(&self, low: impl FnOnce() -> u32) -> u64 {
        // What was given before is loaded before the counter is read: the counter has since moved
        // forward, so an unsigned difference is right whatever other threads do meanwhile.
        let last = self.last.load(Ordering::Acquire);
        let passed = low().wrapping_sub(last as u32);
        let now = last.wrapping_add(u64::from(passed));
        self.last.fetch_max(now, Ordering::AcqRel);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Registers whose counter takes the next value from a list at every load, then stays.
    #[derive(Debug)]
    struct ScriptedRegisters {
        capabilities: u64,
        configuration: u32,
        counter: Mutex<Vec<u64>>,
    }

    impl ScriptedRegisters {
        fn new(capabilities: u64, counter: &[u64]) -> ScriptedRegisters {
            let counter = counter.iter().rev().copied().collect();
            ScriptedRegisters { capabilities, configuration: 1, counter: Mutex::new(counter) }
        }

        fn load(&self, register: Register) -> u64 {
            match register {
                Register::Capabilities => self.capabilities,
                Register::Configuration => u64::from(self.configuration),
                Register::Counter => {
                    let mut left = self.counter.lock().unwrap();
                    if left.len() > 1 { left.pop().unwrap() } else { left[0] }
                }
            }
        }
    }

    impl Registers for ScriptedRegisters {
        fn low(&self, register: Register) -> u32 {
            self.load(register) as u32
        }
        fn high(&self, register: Register) -> u32 {
            (self.load(register) >> 32) as u32
        }
        #[cfg(target_pointer_width = "64")]
        fn whole(&self, register: Register) -> u64 {
            self.load(register)
        }
    }

    /// An Intel HPET of 14.318 MHz with 8 comparators, with and without the width bit.
    const PERIOD: u64 = 69_841_279 << 32;
    const WIDE: u64 = PERIOD | 0x8086_a701 | (1 << 13);
    const NARROW: u64 = (PERIOD | 0x8086_a701) & !(1 << 13);

    /// Thesis, listing 2.4: `>> 13` without masking bit 0 is never zero,
    /// since the upper half holds the period; a 32-bit counter was never found.
    #[test]
    fn the_width_is_bit_13_and_nothing_else() {
        let narrow = Capabilities::decode(&ScriptedRegisters::new(NARROW, &[0])).unwrap();
        assert!(!narrow.counter_is_64_bits);
        assert_ne!(NARROW.cast_signed() >> 13, 0, "the thesis' test takes it for a wide one");
        let wide = Capabilities::decode(&ScriptedRegisters::new(WIDE, &[0])).unwrap();
        assert!(wide.counter_is_64_bits);
        assert_eq!((wide.period_fs, wide.comparators), (69_841_279, 8));
        // Neighbouring bits do not count.
        let neighbours = NARROW | (1 << 12) | (1 << 14) | (1 << 15);
        assert!(
            !Capabilities::decode(&ScriptedRegisters::new(neighbours, &[0]))
                .unwrap()
                .counter_is_64_bits
        );
    }

    /// Thesis 2.2.2: a counter of 10 MHz in 32-bit mode overflows every 7.16 minutes.
    #[test]
    fn the_thesis_example_of_a_wrap() {
        let capabilities = (100_000_000 << 32) | 0x0001;
        let slow = Capabilities::decode(&ScriptedRegisters::new(capabilities, &[0])).unwrap();
        assert_eq!(slow.wraps_after_ns() / 600_000_000, 715);
    }

    /// Thesis, listing 2.5: read as `int32_t`, a counter at 2^31 became negative, and one
    /// beyond 2^32 lost its upper half.
    #[test]
    fn a_wide_counter_is_read_whole_and_unsigned() {
        for value in [0x8000_0000, 0xffff_ffff, 0x1_0000_0000, 0xffff_ffff_8000_0001] {
            let registers = ScriptedRegisters::new(WIDE, &[value]);
            assert_eq!(counter64(&registers), value);
            assert_eq!(counter64_by_halves(&registers), value);
        }
    }

    /// Thesis listing 2.5: the upper half changes between the loads.
    #[test]
    fn a_rollover_between_the_halves_is_seen() {
        // high, low, high, low, high
        let loads = [0x0_ffff_ffff, 0x1_0000_0000, 0x1_0000_0001, 0x1_0000_0002, 0x1_0000_0003];
        let registers = ScriptedRegisters::new(WIDE, &loads);
        assert_eq!(counter64_by_halves(&registers), 0x1_0000_0002);
    }

    #[test]
    fn reading_by_halves_ends_even_on_mad_hardware() {
        let loads: Vec<u64> = (0..100).map(|n| n << 32).collect();
        let _ = counter64_by_halves(&ScriptedRegisters::new(WIDE, &loads));
    }

    /// Extended without sign, over any number of wraps.
    #[test]
    fn a_narrow_counter_goes_on_beyond_its_wraps() {
        let extended = ExtendedCounter::starting_at(0x7fff_fff0);
        let mut expected = 0x7fff_fff0_u64;
        for step in [0x20_u64, 0x7fff_fff0, 0xffff_ffff, 0, 0x8000_0000, 0xffff_fff0] {
            expected += step;
            assert_eq!(extended.read(|| expected as u32), expected);
        }
        assert!(expected > 3 << 32);
    }

    /// A thread that was held up between its two loads must not take another one's progress for
    /// a wrap.
    #[test]
    fn a_late_reader_of_a_narrow_counter_is_not_a_wrap_ahead() {
        let extended = ExtendedCounter::starting_at(100);
        let late = extended.read(|| {
            let _ = extended.read(|| 300);
            200
        });
        assert_eq!(late, 200);
        assert_eq!(extended.read(|| 301), 301);
    }

    #[test]
    fn absent_hardware_is_recognised() {
        for capabilities in [0, u64::MAX, 0x8086_a701] {
            let found = Capabilities::decode(&ScriptedRegisters::new(capabilities, &[0]));
            assert!(matches!(found, Err(Unavailable::BadRegisters { .. })), "{capabilities:#x}");
        }
        let off = ScriptedRegisters { configuration: 0, ..ScriptedRegisters::new(WIDE, &[0]) };
        assert_eq!(Capabilities::decode(&off), Err(Unavailable::Stopped));
    }
}
