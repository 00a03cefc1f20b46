//! `cargo xtask capi`: the C library as users get it: the header, C++ of two standards, CMake, Zig, Go.

use crate::{debian, tools::target_folder};
use anyhow::{Context, bail, ensure};
use clap::Args;
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use xshell::{Cmd, Shell, cmd};

/// Options of the checks.
#[derive(Args)]
pub(crate) struct Options {
    /// Only writes the header anew
    #[arg(long)]
    header: bool,
    /// Also installs what is missing: g++, CMake, Go (Debian's), Zig (PyPI's)
    #[arg(long, conflicts_with = "header")]
    install: bool,
}

const FOLDER: &str = "crates/tilewise-capi";

/// Runs every check; those whose compiler is missing are skipped, and listed.
pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    if options.header {
        return header(shell, &shell.current_dir().join(FOLDER).join("include/tilewise.h"));
    }
    check(shell, options.install)
}

/// The checks of `cargo xtask test --all`.
pub(crate) fn check(shell: &Shell, install: bool) -> anyhow::Result<()> {
    let build = target_folder(shell).join("capi");
    // Old files there may be from another tree.
    if build.exists() {
        fs::remove_dir_all(&build).context("target/capi")?;
    }
    fs::create_dir_all(&build).context("target/capi")?;
    let made = build.join("tilewise.h");
    header(shell, &made)?;
    let current = fs::read_to_string(shell.current_dir().join(FOLDER).join("include/tilewise.h"))?;
    ensure!(fs::read_to_string(&made)? == current, "the header is not that of the sources: cargo xtask capi --header");
    if install && !is_there(shell, &["g++", "cmake", "go", "valgrind"]) {
        debian::install(shell, &["g++", "cmake", "make", "golang-go", "valgrind"])?;
    }
    cmd!(shell, "cargo build --package tilewise-capi").run()?;
    let users = Users { shell, build, library: target_folder(shell).join("debug") };
    let mut skipped = Vec::new();
    let checks: [(&str, &[&str], Check); 4] = [
        ("C++", &["g++"], |users| users.cpp()),
        ("CMake", &["cmake", "g++"], |users| users.cmake()),
        ("valgrind", &["valgrind", "cc"], |users| users.valgrind()),
        ("Go", &["go", "cc"], |users| users.go()),
    ];
    for (name, programs, check) in checks {
        if is_there(shell, programs) {
            check(&users).with_context(|| format!("the C library from {name}"))?;
        } else {
            skipped.push(name);
        }
    }
    match zig(shell, install)? {
        Some(zig) => users.zig(&zig).context("the C library from Zig")?,
        None => skipped.push("Zig"),
    }
    match skipped.is_empty() {
        true => eprintln!("the C library: header, C++17, C++20, CMake, valgrind, Zig and Go pass"),
        false => eprintln!("the C library passes; skipped, for want of their programs: {}", skipped.join(", ")),
    }
    Ok(())
}

fn header(shell: &Shell, to: &Path) -> anyhow::Result<()> {
    if cmd!(shell, "cbindgen --version").quiet().ignore_stdout().ignore_stderr().run().is_err() {
        cmd!(shell, "cargo install cbindgen").run()?;
    }
    cmd!(shell, "cbindgen --quiet --config {FOLDER}/cbindgen.toml --crate tilewise-capi --output {to} {FOLDER}")
        .run()?;
    Ok(())
}

fn is_there(shell: &Shell, programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        // Go has a verb instead of an option.
        let version = if *program == "go" { "version" } else { "--version" };
        cmd!(shell, "{program} {version}").quiet().ignore_stdout().ignore_stderr().run().is_ok()
    })
}

/// The command of Zig: its name, or PyPI's `ziglang`.
fn zig(shell: &Shell, install: bool) -> anyhow::Result<Option<Vec<PathBuf>>> {
    if cmd!(shell, "zig version").quiet().ignore_stdout().ignore_stderr().run().is_ok() {
        return Ok(Some(vec!["zig".into()]));
    }
    let environment = target_folder(shell).join("zig");
    let python = environment.join("bin/python");
    if !python.exists() && install {
        cmd!(shell, "python3 -m venv {environment}").run()?;
        cmd!(shell, "{python} -m pip install --quiet ziglang").run()?;
    }
    Ok(python.exists().then(|| vec![python, "-m".into(), "ziglang".into()]))
}

type Check = fn(&Users<'_>) -> anyhow::Result<()>;

struct Users<'a> {
    shell: &'a Shell,
    build: PathBuf,
    /// Where cargo has put the library.
    library: PathBuf,
}

impl Users<'_> {
    fn include(&self) -> PathBuf {
        self.shell.current_dir().join(FOLDER).join("include")
    }

    /// The example as C++17 and as C++20, under sanitizers.
    fn cpp(&self) -> anyhow::Result<()> {
        let (shell, include, library) = (self.shell, self.include(), &self.library);
        for standard in ["c++17", "c++20"] {
            let program = self.build.join(standard);
            let compile =
                cmd!(shell, "g++ -std={standard} -O1 -g -Wall -Wextra -Werror -pedantic -fsanitize=address,undefined");
            let source = format!("{FOLDER}/examples/cpp/plugin.cpp");
            let compile = compile.arg("-I").arg(&include).arg(source).arg("-o").arg(&program);
            self.linked(compile, library).run()?;
            cmd!(shell, "{program}").run()?;
        }
        Ok(())
    }

    fn linked<'c>(&self, compile: Cmd<'c>, library: &Path) -> Cmd<'c> {
        compile.arg("-L").arg(library).args(["-ltilewise_capi", "-Wl,-rpath"]).arg(library)
    }

    /// A program beside the library, then the library installed and found by `find_package` and pkg-config.
    fn cmake(&self) -> anyhow::Result<()> {
        let (shell, build) = (self.shell, &self.build);
        let target = target_folder(shell);
        let (inside, prefix) = (build.join("inside"), build.join("prefix"));
        let settings = [
            "-DTILEWISE_PROFILE=dev".to_owned(),
            format!("-DTILEWISE_TARGET_DIR={}", target.display()),
            format!("-DCMAKE_INSTALL_PREFIX={}", prefix.display()),
        ];
        cmd!(shell, "cmake -S {FOLDER}/examples/cpp -B {inside}").args(&settings).run()?;
        cmd!(shell, "cmake --build {inside}").run()?;
        cmd!(shell, "{inside}/plugin").run()?;
        let alone = build.join("alone");
        cmd!(shell, "cmake -S {FOLDER} -B {alone}").args(&settings).run()?;
        cmd!(shell, "cmake --build {alone}").run()?;
        cmd!(shell, "cmake --install {alone}").run()?;
        // The steps of docs/c.md, in an empty folder.
        let project = build.join("project");
        fs::create_dir_all(&project)?;
        fs::copy(shell.current_dir().join(FOLDER).join("examples/cpp/plugin.cpp"), project.join("main.cpp"))?;
        fs::write(
            project.join("CMakeLists.txt"),
            "cmake_minimum_required(VERSION 3.16)\nproject(mine LANGUAGES C CXX)\nset(CMAKE_CXX_STANDARD 17)\n\
             find_package(tilewise REQUIRED)\nforeach(kind tilewise static)\n  add_executable(${kind} main.cpp)\n  \
             target_link_libraries(${kind} PRIVATE tilewise::${kind})\nendforeach()\n",
        )?;
        let built = build.join("built");
        cmd!(shell, "cmake -S {project} -B {built} -DCMAKE_PREFIX_PATH={prefix}").run()?;
        cmd!(shell, "cmake --build {built}").run()?;
        cmd!(shell, "{built}/tilewise").run()?;
        cmd!(shell, "{built}/static").run()?;
        if is_there(shell, &["pkg-config"]) {
            let folders = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"]
                .map(|folder| prefix.join(folder).join("pkgconfig"));
            let flags = cmd!(shell, "pkg-config --cflags --libs tilewise")
                .env("PKG_CONFIG_PATH", env::join_paths(folders)?)
                .read()?;
            ensure!(flags.contains("-ltilewise_capi"), "pkg-config says {flags}");
        }
        Ok(())
    }

    /// The C test once more, without sanitizers: no leaks, and no reads of uninitialised memory.
    fn valgrind(&self) -> anyhow::Result<()> {
        let (shell, include) = (self.shell, self.include());
        let program = self.build.join("check");
        let compile =
            cmd!(shell, "cc -std=c11 -g -pthread {FOLDER}/tests/c/check.c -o {program}").arg("-I").arg(include);
        self.linked(compile, &self.library).run()?;
        cmd!(shell, "valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=definite {program}")
            .run()?;
        Ok(())
    }

    fn go(&self) -> anyhow::Result<()> {
        let (shell, library) = (self.shell, self.library.display().to_string());
        let _folder = shell.push_dir(shell.current_dir().join(FOLDER).join("examples/go"));
        let go = cmd!(shell, "go run .")
            .env("CGO_CFLAGS", format!("-I{}", shell.current_dir().join("../../include").display()));
        go.env("CGO_LDFLAGS", format!("-L{library} -Wl,-rpath,{library}"))
            .env("GOCACHE", self.build.join("go"))
            .run()?;
        Ok(())
    }

    /// Zig itself translates the header.
    fn zig(&self, zig: &[PathBuf]) -> anyhow::Result<()> {
        let Some((program, before)) = zig.split_first() else { bail!("Zig has no name") };
        let (shell, library, build) = (self.shell, &self.library, &self.build);
        let header = self.include().join("tilewise.h");
        let translated = cmd!(shell, "{program} {before...} translate-c {header}").read()?;
        let (module, binary, cache) = (build.join("tilewise.zig"), build.join("kv_blocks"), build.join("zig"));
        fs::write(&module, translated)?;
        let (root, names) = (
            format!("-Mroot={FOLDER}/examples/zig/kv_blocks.zig"),
            [format!("-Mtilewise={}", module.display()), format!("-femit-bin={}", binary.display())],
        );
        cmd!(
            shell,
            "{program} {before...} build-exe --dep tilewise {root} {names...} -lc -ltilewise_capi --cache-dir {cache}"
        )
        .arg(format!("-L{}", library.display()))
        .arg("-rpath")
        .arg(library)
        .run()?;
        cmd!(shell, "{binary}").run()?;
        Ok(())
    }
}
