//! The PC's real-time clock: a device that only ticks.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hourglass_sys::eventfd::either_readable;
use hourglass_sys::rtc::Rtc;

use super::{FdKick, now, until};
use crate::event::{
    ClockEvent, DeviceError, DeviceFeatures, DeviceWaitEnd, Kick, Mode, Period, Periods,
};

const NAME: &str = "rtc";

/// An RTC's periodic interrupt (`rtc(4)`), 2 Hz to 8192 Hz in powers of two; one for the system.
/// The chip is the MC146818 of *Time Services in RT-Mach*, section 2.2, or does as if.
///
/// The file is open only while it ticks: it can be opened once on a machine.
pub struct RtcEvent {
    path: PathBuf,
    ticking: Option<Rtc>,
    kick: Arc<FdKick>,
}

impl RtcEvent {
    /// Where the device is: a link that udev makes, and without udev the first one itself.
    pub const PATHS: [&str; 2] = ["/dev/rtc", "/dev/rtc0"];

    /// The machine's device, as [`RtcEvent::open`].
    ///
    /// # Errors
    /// [`DeviceError`] of the first path, unless only that is missing.
    pub fn find() -> Result<RtcEvent, DeviceError> {
        let [link, first] = RtcEvent::PATHS.map(Path::new);
        match RtcEvent::open(link) {
            Err(DeviceError::Missing { path }) => {
                let or_else = |error| match error {
                    DeviceError::Missing { .. } => DeviceError::Missing { path },
                    other => other,
                };
                RtcEvent::open(first).map_err(or_else)
            }
            found => found,
        }
    }

    /// A device that fires nothing yet. Opens the file once, to see whether it can.
    ///
    /// # Errors
    /// [`DeviceError::Missing`], [`DeviceError::Denied`], [`DeviceError::Busy`]: why it cannot.
    pub fn open(path: &Path) -> Result<RtcEvent, DeviceError> {
        Rtc::open(path, 2).map_err(|e| DeviceError::from_file(NAME, path, &e))?;
        Ok(RtcEvent { path: path.to_owned(), ticking: None, kick: FdKick::shared(NAME)? })
    }
}

impl ClockEvent for RtcEvent {
    fn facts(&self) -> DeviceFeatures {
        DeviceFeatures {
            name: NAME,
            per_cpu: false,
            one_shot: false,
            periods: Periods::MC146818,
            ..DeviceFeatures::KERNEL
        }
    }

    fn now_ns(&self) -> u64 {
        now()
    }

    fn detach(&mut self) {
        self.ticking = None;
    }

    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        // It can be opened once, so it is closed first.
        self.ticking = None;
        let Mode::Periodic(period) = mode else {
            return match mode {
                Mode::Shutdown => Ok(()),
                _ => Err(DeviceError::Unsupported(NAME)),
            };
        };
        let hertz = period.passed(Period::SECOND_NS);
        let hertz = u32::try_from(hertz).map_err(|_| DeviceError::Unsupported(NAME))?;
        let rtc = Rtc::open(&self.path, hertz);
        self.ticking = Some(rtc.map_err(|e| DeviceError::from_file(NAME, &self.path, &e))?);
        Ok(())
    }

    fn set_next_event(&mut self, _at_ns: u64) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported(NAME))
    }

    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        loop {
            if !self.kick.latch.begin_wait() {
                return Ok(DeviceWaitEnd::Kicked);
            }
            let event = self.kick.event.as_fd();
            let polled = match &self.ticking {
                Some(rtc) => either_readable(rtc.as_fd(), event, until(limit_ns)),
                None => either_readable(event, event, until(limit_ns)).map(|(_, b)| (false, b)),
            };
            let fired = || match &self.ticking {
                Some(rtc) => rtc.wait().map_err(|e| DeviceError::from_os(NAME, &e)),
                None => Ok(0),
            };
            if let Some(woken) = self.kick.came_back(NAME, polled, fired)? {
                return Ok(woken);
            }
        }
    }

    fn kick(&self) -> Kick {
        Kick::new(self.kick.clone())
    }
}
