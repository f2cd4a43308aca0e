//! Each Debian package unpacked into a folder of its own and used from there: programs in C and C++ are compiled,
//! linked and run, the command measures, pages and pictures are where they belong.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hourglass_skip::Requirement;

use super::{builders_folders, cargo_home, debian, handbook, run_command};
use crate::failure::StepFailure;
use crate::workspace::{Workspace, has_program};

/// What a user of the library has.
const TOOLS: [&str; 5] = ["cc", "c++", "pkg-config", "cmake", "make"];

/// Unpacks and tries the packages that were built last.
///
/// # Errors
/// `Broken` if something of them does not work, `Unable` without packages or a compiler.
pub(super) fn run(workspace: &Workspace) -> Result<(), StepFailure> {
    let packages = debian::built(workspace)?;
    for tool in TOOLS {
        if !has_program(tool) {
            let what = format!("{tool} is missing, so that the packages are not tried");
            return Err(StepFailure::Unable(Requirement::program(tool), what));
        }
    }
    let root = workspace.target.join("package-trial");
    if root.exists() {
        fs::remove_dir_all(&root).map_err(|e| StepFailure::file(&root, &e))?;
    }
    for package in packages {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The library's packages are of one use: the second wants the first.
        let own = if name.starts_with("lib") { "library" } else { "command" };
        let own = root.join(own);
        fs::create_dir_all(&own).map_err(|e| StepFailure::file(&own, &e))?;
        run_command(Command::new("dpkg-deb").arg("-x").arg(package).arg(own))?;
    }
    names_no_builder(workspace, &root)?;
    command(&root.join("command"))?;
    library(&root.join("library"), &root.join("programs"))?;
    println!("the Debian packages work: {}", root.display());
    fs::remove_dir_all(&root).map_err(|e| StepFailure::file(&root, &e))
}

fn command(root: &Path) -> Result<(), StepFailure> {
    let documents = root.join("usr/share/doc/hourglass");
    for file in [
        "usr/share/man/man1/hourglass.1.gz",
        "usr/share/man/man5/hourglass-tasks.5.gz",
        "usr/share/bash-completion/completions/hourglass",
        "usr/share/zsh/vendor-completions/_hourglass",
        "usr/share/fish/vendor_completions.d/hourglass.fish",
        "usr/lib/tmpfiles.d/hourglass.conf",
        "usr/share/doc/hourglass/docs/src/reference/tasks.md",
    ] {
        exists(&root.join(file))?;
    }
    sections_hold(&root.join("usr/share/man"))?;
    if let Some(dead) = handbook::dead_links(&documents)?.first() {
        return Err(StepFailure::Broken(format!("a link without a target: {dead}")));
    }
    let bin = root.join("usr/bin");
    let hourglass = || Command::new(bin.join("hourglass"));
    run_command(hourglass().arg("--version"))?;
    let kept = root.join("run");
    run_command(hourglass().args(["-n", "1", "-d", "100ms", "-q", "-o"]).arg(&kept))?;
    run_command(hourglass().arg("show").arg(&kept).stdout(Stdio::null()))?;
    run_command(
        hourglass().args(["check", "-q"]).arg(documents.join("examples/audio-video.toml")),
    )?;
    // The other program, found in the command's own folder.
    run_command(hourglass().args(["paper", "--list"]).stdout(Stdio::null()))
}

/// A page lies in the folder of its own section.
fn sections_hold(man: &Path) -> Result<(), StepFailure> {
    for section in files(man)? {
        let folder = section.parent().and_then(Path::file_name).unwrap_or_default();
        let name = section.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = folder.to_string_lossy().replace("man", "");
        if number.is_empty() || !name.ends_with(&format!(".{number}.gz")) {
            let what = format!("{} is in the folder of another section", section.display());
            return Err(StepFailure::Broken(what));
        }
    }
    Ok(())
}

fn library(root: &Path, programs: &Path) -> Result<(), StepFailure> {
    let usr = root.join("usr");
    let lib = usr.join("lib").join(format!("{ARCH}-linux-gnu"));
    for name in ["libhourglass.so.1", "libhourglass.so", "libhourglass.a"] {
        exists(&lib.join(name))?;
    }
    exists(&usr.join("share/man/man3/hg_sleep_until.3.gz"))?;
    sections_hold(&usr.join("share/man"))?;
    let examples = usr.join("share/doc/libhourglass-dev/examples");
    fs::create_dir_all(programs).map_err(|e| StepFailure::file(programs, &e))?;
    // C by pkg-config, with the shared library and with the static one alone.
    let shared = programs.join("shared-c");
    let source = examples.join("clock.c");
    let mut words = flags(root, &lib, &["--cflags", "--libs"])?;
    run_command(Command::new("cc").arg(&source).arg("-o").arg(&shared).args(words))?;
    run_command(Command::new(&shared).env("LD_LIBRARY_PATH", &lib))?;
    needs_library(&shared, true)?;
    let alone = programs.join("static-c");
    words = flags(root, &lib, &["--static", "--cflags", "--libs"])?;
    for word in &mut words {
        if word == "-lhourglass" {
            "-l:libhourglass.a".clone_into(word);
        }
    }
    run_command(Command::new("cc").arg(&source).arg("-o").arg(&alone).args(words))?;
    needs_library(&alone, false)?;
    run_command(&mut Command::new(&alone))?;
    // C++ by CMake.
    let project = programs.join("project");
    fs::create_dir_all(&project).map_err(|e| StepFailure::file(&project, &e))?;
    let source = examples.join("timers.cpp").display().to_string();
    let text = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(example CXX)\nset(CMAKE_CXX_STANDARD 17)\n\
         find_package(hourglass {} REQUIRED)\n\
         add_executable(shared {source})\ntarget_link_libraries(shared hourglass::hourglass)\n\
         add_executable(static {source})\ntarget_link_libraries(static hourglass::static)\n",
        env!("CARGO_PKG_VERSION"),
    );
    let lists = project.join("CMakeLists.txt");
    fs::write(&lists, text).map_err(|e| StepFailure::file(&lists, &e))?;
    let build = programs.join("build");
    let mut cmake = Command::new("cmake");
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", usr.display())).arg("-S").arg(&project);
    run_command(cmake.arg("-B").arg(&build))?;
    run_command(Command::new("cmake").arg("--build").arg(&build))?;
    run_command(&mut Command::new(build.join("shared")))?;
    run_command(&mut Command::new(build.join("static")))
}

/// What pkg-config says of the package in this root, and of no other.
fn flags(root: &Path, lib: &Path, words: &[&str]) -> Result<Vec<String>, StepFailure> {
    let mut ask = Command::new("pkg-config");
    ask.env("PKG_CONFIG_LIBDIR", lib.join("pkgconfig")).env("PKG_CONFIG_SYSROOT_DIR", root);
    ask.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1").env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    let said = ask.args(words).arg("hourglass").output();
    let said = said.map_err(|e| StepFailure::start("pkg-config", &e))?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr);
        return Err(StepFailure::Broken(format!("pkg-config: {}", why.trim())));
    }
    let said = String::from_utf8_lossy(&said.stdout);
    Ok(said.split_whitespace().map(str::to_owned).collect())
}

/// Whether a program asks the loader for the library by its name.
fn needs_library(program: &Path, wanted: bool) -> Result<(), StepFailure> {
    let bytes = fs::read(program).map_err(|e| StepFailure::file(program, &e))?;
    if contains(&bytes, b"libhourglass.so.1\0") == wanted {
        return Ok(());
    }
    let which = if wanted { "the shared" } else { "the static" };
    Err(StepFailure::Broken(format!("{} is not linked with {which} library", program.display())))
}

fn exists(file: &Path) -> Result<(), StepFailure> {
    // Follows links, so that a dangling one is none.
    if file.exists() {
        return Ok(());
    }
    Err(StepFailure::Broken(format!("{} is missing", file.display())))
}

/// No file holds the path of a folder of this machine.
///
/// # Errors
/// `Broken`, with the file.
pub(super) fn names_no_builder(workspace: &Workspace, root: &Path) -> Result<(), StepFailure> {
    let folders = builders_folders(workspace, &cargo_home()).into_iter();
    let folders: Vec<String> =
        folders.map(|(folder, _)| format!("{}/", folder.display())).collect();
    for file in files(root)? {
        let bytes = fs::read(&file).map_err(|e| StepFailure::file(&file, &e))?;
        if let Some(folder) = folders.iter().find(|folder| contains(&bytes, folder.as_bytes())) {
            let what = format!("{} names {folder}, which is of this machine", file.display());
            return Err(StepFailure::Broken(what));
        }
    }
    Ok(())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Every file below a folder; links are not followed.
fn files(folder: &Path) -> Result<Vec<PathBuf>, StepFailure> {
    let entries = fs::read_dir(folder).map_err(|e| StepFailure::file(folder, &e))?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path)?),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    Ok(found)
}
