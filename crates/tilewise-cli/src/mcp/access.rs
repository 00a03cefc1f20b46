//! Limits on the files that the tools read and the code that they run: an agent may be led to ask for anything.

use crate::{commands::audit::Limits, values::parse_size};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tilewise_audit::Failure;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder whose files the tools may read, with all below it; may be given several times [default: the working folder]
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<PathBuf>,
    /// Let `fit` and `check_change` run FILE.py:FUNCTION of files below a root: Python, which may do whatever you may
    #[arg(long)]
    allow_code: bool,
    /// Let them run MODULE:FUNCTION of this installed Python module, too; may be given several times
    #[arg(long = "allow-module", value_name = "MODULE")]
    allowed_modules: Vec<String>,
    /// Largest file that the tools read, decompressed
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    file_limit: u64,
    /// Most files of a folder that the tools look at
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    folder_limit: usize,
    /// Seconds that a tool which runs the compiler may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    compile_limit: u64,
}

/// The files that the tools may read, and the code that they may run.
#[derive(Clone, Debug)]
pub(super) struct Access {
    limits: Limits,
    allows_code: bool,
    allowed_modules: Vec<String>,
    compile_limit: Duration,
}

impl Access {
    /// # Errors
    /// If a root isn't an existing folder.
    pub(super) fn new(args: &Args) -> io::Result<Self> {
        let given = if args.roots.is_empty() { vec![env::current_dir()?] } else { args.roots.clone() };
        let roots = given.iter().map(|root| match fs::canonicalize(root) {
            Ok(folder) if folder.is_dir() => Ok(folder),
            Ok(_) => Err(io::Error::other(format!("{}: no folder", root.display()))),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", root.display()))),
        });
        let roots = roots.collect::<io::Result<_>>()?;
        Ok(Self {
            limits: Limits { file_bytes: args.file_limit, files: args.folder_limit, roots: Some(roots) },
            allows_code: args.allow_code,
            allowed_modules: args.allowed_modules.clone(),
            compile_limit: Duration::from_secs(args.compile_limit),
        })
    }

    /// The root folders, and limits on the number and size of files.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Time limit of a tool that runs the compiler.
    pub(super) fn compile_limit(&self) -> Duration {
        self.compile_limit
    }

    /// Installed modules whose functions may be programs, besides files.
    pub(super) fn allowed_modules(&self) -> &[String] {
        &self.allowed_modules
    }

    /// The file or folder at a path, which must be below a root. Every tool reads only paths returned here.
    pub(super) fn resolve(&self, path: &Path) -> Result<PathBuf, Failure> {
        self.limits.resolve(path)
    }

    /// A program in the Python package's notation: `FILE.py:FUNCTION` or a file of HLO, with links resolved, or
    /// `MODULE:FUNCTION` of an allowed module.
    ///
    /// # Errors
    /// Anything else, and code that the server wasn't started to run.
    pub(super) fn program(&self, program: &str) -> Result<String, Failure> {
        // Like the package: a file's name may contain a colon.
        let is_file = Path::new(program).exists();
        let Some((place, function)) = program.rsplit_once(':').filter(|_| !is_file) else {
            let file = self.resolve(Path::new(program))?;
            if !file.is_file() {
                return Err(
                    Failure::new("not_a_file", "a program is FILE.py:FUNCTION, or one file of HLO").in_file(&file)
                );
            }
            return in_unicode(&file).map(str::to_owned);
        };
        if !is_identifier(function) {
            let message = format!("`{function}` isn't a function's name: a program is FILE.py:FUNCTION");
            return Err(Failure::new("not_a_program", message));
        }
        if Path::new(place).extension().is_some_and(|extension| extension == "py") {
            if !self.allows_code {
                let message = "this server runs no code: it was started without `--allow-code`";
                let help = "`tilewise mcp --allow-code` runs FILE.py:FUNCTION of files below its folders; compare files of HLO \
                            without it, by `diff_programs`";
                return Err(Failure::new("code_not_allowed", message).with_help(help));
            }
            let file = self.resolve(Path::new(place))?;
            return Ok(format!("{}:{function}", in_unicode(&file)?));
        }
        if self.allowed_modules.iter().any(|module| module == place) {
            return Ok(program.to_owned());
        }
        let message = format!("`{place}` isn't a file FILE.py, and no module that this server runs programs of");
        let help = format!("a program is FILE.py:FUNCTION; `tilewise mcp --allow-module {place}` allows this module's");
        let kind = if is_module(place) { "module_not_allowed" } else { "not_a_program" };
        let failure = Failure::new(kind, message);
        Err(if is_module(place) { failure.with_help(help) } else { failure })
    }
}

fn in_unicode(file: &Path) -> Result<&str, Failure> {
    file.to_str().ok_or_else(|| Failure::new("not_utf8", "the file's name isn't Unicode").in_file(file))
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

fn is_module(text: &str) -> bool {
    text.split('.').all(is_identifier)
}
