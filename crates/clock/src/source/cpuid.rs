//! Statements of an x86 processor, or of a hypervisor in its place, about its counter.

use super::{Frequency, FrequencyOrigin};

/// Statements of an x86 processor about itself, or of a hypervisor in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpuid {
    /// The manufacturer, such as `GenuineIntel`.
    pub vendor: [u8; 12],
    /// Family, with the extended family added (thesis, section 2.1.3).
    pub family: u32,
    /// Model, with the extended model in front.
    pub model: u32,
    /// Whether `rdtscp` exists.
    pub rdtscp: bool,
    /// Whether the TSC keeps one rate in all power states (8000_0007h, EDX bit 8).
    pub invariant_tsc: bool,
    /// Whether the register `IA32_TSC_ADJUST` exists (7, EBX bit 1).
    pub tsc_adjust: bool,
    /// Leaf 15h: the crystal's frequency times the ratio, as ticks in nanoseconds.
    pub frequency15: Option<Frequency>,
    /// Leaf 16h: base frequency.
    pub frequency16: Option<Frequency>,
    /// The hypervisor, if CPUID states one.
    pub hypervisor: Option<Hypervisor>,
}

/// Statements of a hypervisor about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hypervisor {
    /// The signature, such as `KVMKVMKVM`, filled up with zeros.
    pub signature: [u8; 12],
    /// For KVM: whether its clock, and so the TSC below it, is stable (4000_0001h, EAX bit 24).
    pub kvm_stable: Option<bool>,
    /// The guest's TSC frequency (4000_0010h).
    pub frequency: Option<Frequency>,
}

/// KVM's signature.
const KVM: [u8; 12] = *b"KVMKVMKVM\0\0\0";

impl Cpuid {
    /// Asks the processor; `None` on other than x86.
    #[must_use]
    pub fn of_this_processor() -> Option<Cpuid> {
        #[cfg(target_arch = "x86_64")]
        return Some(Cpuid::decode(|leaf| {
            let found = hourglass_sys::cpuid::leaf(leaf, 0)?;
            Some([found.eax, found.ebx, found.ecx, found.edx])
        }));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Decodes what `ask` answers for subleaf 0 of a leaf: EAX, EBX, ECX, EDX, or nothing where
    /// the leaf does not exist.
    #[must_use]
    pub fn decode(ask: impl Fn(u32) -> Option<[u32; 4]>) -> Cpuid {
        let bit = |leaf: u32, register: usize, bit: u32| {
            ask(leaf).is_some_and(|registers| registers[register] & (1 << bit) != 0)
        };
        const EBX: usize = 1;
        const ECX: usize = 2;
        const EDX: usize = 3;
        let [_, b, c, d] = ask(0).unwrap_or_default();
        let [signature, ..] = ask(1).unwrap_or_default();
        let field = |low: u32, mask: u32| (signature >> low) & mask;
        Cpuid {
            vendor: text([b, d, c]),
            family: field(8, 0xf) + field(20, 0xff),
            model: (field(16, 0xf) << 4) | field(4, 0xf),
            rdtscp: bit(0x8000_0001, EDX, 27),
            invariant_tsc: bit(0x8000_0007, EDX, 8),
            tsc_adjust: bit(7, EBX, 1),
            frequency15: ask(0x15).and_then(frequency15),
            frequency16: ask(0x16).and_then(|[mhz, ..]| {
                in_hertz(u64::from(mhz & 0xffff) * 1_000_000, FrequencyOrigin::Cpuid16)
            }),
            hypervisor: bit(1, ECX, 31).then(|| Hypervisor::decode(&ask)),
        }
    }

    /// The best statement of the TSC's frequency: the hypervisor's, since a guest's TSC may be
    /// scaled, then leaf 15h, then 16h.
    #[must_use]
    pub fn tsc_frequency(&self) -> Option<Frequency> {
        let hypervisor = self.hypervisor.and_then(|h| h.frequency);
        hypervisor.or(self.frequency15).or(self.frequency16)
    }
}

impl Hypervisor {
    fn decode(ask: &impl Fn(u32) -> Option<[u32; 4]>) -> Hypervisor {
        let [_, b, c, d] = ask(0x4000_0000).unwrap_or_default();
        let signature = text([b, c, d]);
        let is_kvm = signature == KVM;
        let features = ask(0x4000_0001).filter(|_| is_kvm);
        Hypervisor {
            signature,
            kvm_stable: features.map(|[a, ..]| a & (1 << 24) != 0),
            // VMware's leaf, which KVM and others have taken over.
            frequency: ask(0x4000_0010).and_then(|[khz, ..]| {
                in_hertz(u64::from(khz) * 1_000, FrequencyOrigin::Hypervisor)
            }),
        }
    }

    /// The signature as text.
    #[must_use]
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.signature).trim_end_matches('\0').trim().to_owned()
    }
}

/// A frequency unless it is zero, which means that the leaf is absent.
fn in_hertz(hertz: u64, origin: FrequencyOrigin) -> Option<Frequency> {
    (hertz != 0).then(|| Frequency::from_hertz(hertz, origin))
}

/// Crystal frequency x numerator / denominator; any of them zero means that it is not stated.
fn frequency15([denominator, numerator, crystal, _]: [u32; 4]) -> Option<Frequency> {
    let ticks = u64::from(crystal) * u64::from(numerator);
    let ns = u64::from(denominator) * 1_000_000_000;
    (ticks != 0 && ns != 0).then_some(Frequency { ticks, ns, origin: FrequencyOrigin::Cpuid15 })
}

fn text(registers: [u32; 3]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for (place, register) in bytes.chunks_exact_mut(4).zip(registers) {
        place.copy_from_slice(&register.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(text: &[u8; 12]) -> [u32; 3] {
        let word = |i: usize| u32::from_le_bytes([text[i], text[i + 1], text[i + 2], text[i + 3]]);
        [word(0), word(4), word(8)]
    }

    /// A KVM guest on an Intel processor: leaves 15h and 16h zero, no 4000_0010h.
    fn base_machine(leaf: u32) -> Option<[u32; 4]> {
        let [b, d, c] = registers(b"GenuineIntel");
        let [kb, kc, kd] = registers(&KVM);
        match leaf {
            0 => Some([0x1c, b, c, d]),
            // Family 6, model 207 (0xcf), stepping 8; a hypervisor.
            1 => Some([0x000c_06f8, 0, 1 << 31, 1 << 4]),
            7 => Some([0, 1 << 1, 0, 0]),
            0x15 | 0x16 => Some([0; 4]),
            0x4000_0000 => Some([0x4000_0001, kb, kc, kd]),
            0x4000_0001 => Some([0x0100_7efb, 0, 0, 0]),
            0x8000_0001 => Some([0, 0, 0, 1 << 27]),
            0x8000_0007 => Some([0, 0, 0, 1 << 8]),
            _ => None,
        }
    }

    #[test]
    fn the_base_machine_is_decoded() {
        let found = Cpuid::decode(base_machine);
        assert_eq!(&found.vendor, b"GenuineIntel");
        assert_eq!((found.family, found.model), (6, 207));
        assert!(found.rdtscp && found.invariant_tsc && found.tsc_adjust);
        // Zero is absent, not a frequency of zero.
        assert_eq!(found.tsc_frequency(), None);
        let hypervisor = found.hypervisor.unwrap();
        assert_eq!((hypervisor.name(), hypervisor.kvm_stable), ("KVMKVMKVM".into(), Some(true)));
    }

    #[test]
    fn stated_frequencies_in_order_of_merit() {
        let leaf15 = |leaf| match leaf {
            // Skylake: 24 MHz x 216 / 2.
            0x15 => Some([2, 216, 24_000_000, 0]),
            0x16 => Some([2_600, 3_400, 100, 0]),
            _ => base_machine(leaf).filter(|_| leaf != 1),
        };
        let found = Cpuid::decode(leaf15);
        assert_eq!(found.tsc_frequency().unwrap().hertz(), 2_592e6);
        assert_eq!(found.frequency16.unwrap().hertz(), 2_600e6);
        assert_eq!(found.hypervisor, None);
        let guest = Cpuid::decode(|leaf| match leaf {
            0x4000_0010 => Some([2_300_001, 0, 0, 0]),
            1 => base_machine(1),
            _ => leaf15(leaf),
        });
        let stated = guest.tsc_frequency().unwrap();
        assert_eq!((stated.hertz(), stated.origin), (2_300_001e3, FrequencyOrigin::Hypervisor));
    }

    /// A crystal that is not stated (leaf 15h ECX zero) is no frequency.
    #[test]
    fn a_ratio_without_a_crystal_is_no_frequency() {
        assert_eq!(frequency15([2, 216, 0, 0]), None);
        assert_eq!(frequency15([0, 216, 24_000_000, 0]), None);
    }
}
