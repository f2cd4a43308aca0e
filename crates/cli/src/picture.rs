//! The format of a picture, by the ending of its file's name.
//!
//! Hourglass draws SVG. PNG and PDF are made of it by rsvg-convert of librsvg: what draws text and curves as they do
//! would be half of this program, and a distribution has it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::exit::Stop;

const CONVERTER: &str = "rsvg-convert";
/// Pixels of a PNG for one of the picture, so that it is sharp on a page.
const ZOOM: &str = "2";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Svg,
    Png,
    Pdf,
}

impl PictureFormat {
    /// The format that the file of `option` is to have. Other endings, or none, promise nothing and get SVG.
    ///
    /// # Errors
    /// The ending is that of a format that is not written, or of one that this machine cannot make.
    pub(crate) fn of(option: &str, path: &Path) -> Result<PictureFormat, Stop> {
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let format = match ending.to_ascii_lowercase().as_str() {
            "png" => PictureFormat::Png,
            "pdf" => PictureFormat::Pdf,
            "html" | "jpg" | "jpeg" | "eps" | "ps" | "webp" => {
                return Err(Stop::usage(format!(
                    "{option}: {} would not hold what its name says; end it with .svg, .png or .pdf",
                    path.display()
                )));
            }
            _ => return Ok(PictureFormat::Svg),
        };
        let version = Command::new(CONVERTER).arg("--version").output();
        if version.is_ok_and(|output| output.status.success()) {
            return Ok(format);
        }
        Err(Stop::machine(vec![format!(
            "{option}: {} needs {CONVERTER}; sudo apt install librsvg2-bin, or end it with .svg",
            path.display()
        )]))
    }

    /// The content of the file.
    ///
    /// # Errors
    /// The converter fails.
    pub(crate) fn encode(self, svg: String) -> Result<Vec<u8>, Stop> {
        let arguments: &[&str] = match self {
            PictureFormat::Svg => return Ok(svg.into_bytes()),
            PictureFormat::Png => &["--format", "png", "--zoom", ZOOM],
            PictureFormat::Pdf => &["--format", "pdf"],
        };
        convert(arguments, svg.as_bytes())
            .map_err(|error| Stop::machine(vec![format!("{CONVERTER}: {error}")]))
    }
}

/// The converter reads all of the picture before it writes, so that neither waits for the other.
fn convert(arguments: &[&str], svg: &[u8]) -> io::Result<Vec<u8>> {
    let mut command = Command::new(CONVERTER);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut converter = command.spawn()?;
    let written = converter.stdin.take().map_or(Ok(()), |mut input| input.write_all(svg));
    let output = converter.wait_with_output()?;
    match output.status.success() && !output.stdout.is_empty() {
        true => written.map(|()| output.stdout),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().next().unwrap_or("it wrote nothing");
            Err(io::Error::other(line.to_owned()))
        }
    }
}
