//! The PC's real-time clock, which interrupts at a power of two a second: 1024 Hz gives 976 us
//! of resolution (Hourglass paper, section 3.3).

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use hourglass_sys::rtc::Rtc;
use hourglass_timer::event::native::RtcEvent;

use super::nanosleep::{FINEST, set_slack};
use super::tick::tick_at_or_after;
use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUpMethod, bare};

pub(super) const ENTRY: MethodEntry = MethodEntry {
    name: "RTC",
    synopsis: "RTC",
    about: "interrupts of the real-time clock at 1024 Hz; one thread can have it",
    aliases: &[],
    parse: |parameter| {
        bare(ENTRY.synopsis, parameter)?;
        Ok(Arc::new(RtcWakeUp))
    },
};

const HERTZ: u32 = 1024;
const TICK_NS: u64 = 1_000_000_000 / HERTZ as u64;

#[derive(Clone, Copy, Debug)]
struct RtcWakeUp;

impl fmt::Display for RtcWakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ENTRY.name)
    }
}

impl WakeUpMethod for RtcWakeUp {
    fn open(&self, thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        let missing = match open_device() {
            Ok(rtc) => {
                // Blocks until the next interrupt; the caller comes back until its time has come.
                return Ok(OpenWakeUp::native(move |_| {
                    let _ = rtc.wait();
                }));
            }
            Err(missing) => missing,
        };
        if !thread.best_effort {
            return Err(missing);
        }
        set_slack(self, Some(FINEST))?;
        let emulated = format!("RTC at {HERTZ} Hz by clock_nanosleep ({})", missing.reason);
        // Sleeps to the interrupt that would have ended the wait.
        let wake_up = Box::new(|alarm| {
            let _ = hourglass_sys::wait::nanosleep_until(tick_at_or_after(alarm, TICK_NS));
        });
        Ok(OpenWakeUp { wake_up, emulated: Some(emulated) })
    }

    fn most_users(&self) -> Option<usize> {
        // The device can be opened once, and one reader takes an interrupt from the others.
        Some(1)
    }
}

fn open_device() -> Result<Rtc, Unavailable> {
    let mut refused = (ErrorKind::NotFound, "there is no /dev/rtc".to_owned());
    for device in RtcEvent::PATHS {
        match Rtc::open(Path::new(device), HERTZ) {
            Ok(rtc) => return Ok(rtc),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                refused = (error.kind(), format!("{device}: {error}"));
                break;
            }
        }
    }
    let (kind, reason) = refused;
    let remedy = match kind {
        ErrorKind::PermissionDenied => {
            "run as root, or: sudo sh -c 'chmod a+r /dev/rtc0; echo 1024 > /proc/sys/dev/rtc/max-user-freq'"
        }
        ErrorKind::ResourceBusy => "close the program that holds it (fuser -v /dev/rtc0)",
        _ => "use HR, or --best-effort to emulate it at 1024 Hz",
    };
    Err(Unavailable { method: ENTRY.name.to_owned(), reason, remedy: remedy.to_owned() })
}
