//! What `hourglass paper` does: a paper's tables and figures, measured on this machine.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hourglass_documents::paper::{PaperDocument, PaperFigure};
use hourglass_documents::spelling;
use hourglass_papers::{self as paper, MeasurementSize};
use hourglass_report::svg;
use hourglass_report::text;
use hourglass_terminal::exit::{self, Stop};
use hourglass_terminal::paper::PaperArgs;
use hourglass_terminal::settings::Settings;
use hourglass_terminal::{atomic_file, messages, output};

pub(crate) fn paper(paper: &PaperArgs, settings: Settings) -> Result<ExitCode> {
    let Some(name) = paper.name.as_deref().filter(|_| !paper.list) else {
        return list(settings);
    };
    let chosen = chosen(name)?;
    for id in &paper.tables {
        check_table(chosen, id)?;
    }
    let folder = paper.output.as_deref().map(Folder::make).transpose()?;
    let effort = if paper.quick { MeasurementSize::Quick } else { MeasurementSize::Full };
    let tell = io::stderr().is_terminal() && !settings.quiet;
    let measured = chosen.measure(
        effort,
        |table| paper.tables.is_empty() || paper.tables.contains(&table.id),
        |table| {
            if tell {
                messages::say(&format!("measuring {}: {}", table.id, table.title));
            }
        },
    );
    let mut document = measured.document;
    let kept = match folder {
        Some(folder) => folder.keep(&mut document, &measured.figures, settings),
        None => Ok(()),
    };
    show(&document, settings)?;
    kept?;
    Ok(measured.signal.map_or(ExitCode::SUCCESS, exit::ended_by))
}

fn list(settings: Settings) -> Result<ExitCode> {
    let list = paper::list();
    if settings.json {
        output::json(&list)?;
    } else {
        output::text(&text::papers(&list, output::style()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(document: &PaperDocument, settings: Settings) -> Result<()> {
    if settings.json {
        return output::json(document);
    }
    output::text(&text::paper(document, output::style()))?;
    Ok(())
}

fn chosen(name: &str) -> Result<&'static paper::Paper, Stop> {
    paper::Paper::named(name).ok_or_else(|| {
        Stop::usage(spelling::unknown(
            "paper",
            name,
            paper::papers().iter().map(|paper| paper.name.as_str()),
        ))
    })
}

fn check_table(paper: &paper::Paper, id: &str) -> Result<(), Stop> {
    if paper.table(id).is_some() {
        return Ok(());
    }
    // Numbers of tables are too like each other to guess.
    let ids: Vec<&str> = paper.tables.iter().map(|table| table.id.as_str()).collect();
    Err(Stop::usage(format!("--table: unknown table '{id}'; use one of {}", ids.join(", "))))
}

struct Folder<'a> {
    path: &'a Path,
    new: bool,
}

impl Folder<'_> {
    /// Made before the measurement, so that what was measured finds its place.
    fn make(path: &Path) -> Result<Folder<'_>, Stop> {
        let refused =
            |error: &dyn std::fmt::Display| Stop::usage(format!("-o: {}: {error}", path.display()));
        match fs::create_dir(path) {
            Ok(()) => Ok(Folder { path, new: true }),
            Err(_) if path.is_dir() => Ok(Folder { path, new: false }),
            Err(_) if path.exists() => Err(refused(&"is not a folder")),
            Err(error) => Err(refused(&error)),
        }
    }

    /// Draws every figure that shows something, and notes its name at its table. A folder in
    /// which nothing came to lie is removed again if it was made for it.
    fn keep(
        &self,
        document: &mut PaperDocument,
        figures: &[Option<PaperFigure>],
        settings: Settings,
    ) -> Result<()> {
        for (table, figure) in document.tables.iter_mut().zip(figures) {
            let Some(figure) = figure.as_ref().filter(|figure| !figure.is_empty()) else {
                continue;
            };
            let name = format!("figure-{}.svg", figure.id());
            let path = self.path.join(&name);
            atomic_file::keep("-o", &path, svg::figure(figure).as_bytes())?;
            if !settings.quiet {
                messages::say(&format!("wrote {}", path.display()));
            }
            table.figure = Some(name);
        }
        if self.new {
            // Fails where something lies in it, which is as it should be.
            let _ = fs::remove_dir(self.path);
        }
        Ok(())
    }
}
