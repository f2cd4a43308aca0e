//! `completions`: what makes a shell complete this command.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::output;
use crate::settings::Settings;

/// Print a script that makes a shell complete hourglass
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  source <(hourglass completions bash)
  hourglass completions fish > ~/.config/fish/completions/hourglass.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Writing fails.
pub(crate) fn print(
    completions: &Completions,
    mut command: clap::Command,
    settings: Settings,
) -> Result<ExitCode> {
    super::no_json("completions", "a shell script", settings)?;
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut command, "hourglass", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
