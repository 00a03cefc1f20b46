//! What of the machine's files the tools read: an agent may be led to ask for any.

use crate::{commands::audit::Limits, values::parse_size};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tilewise_audit::Failure;
use tilewise_report::style::bytes;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder whose files the tools may read, with all below it; may be given several times [default: the working folder]
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<PathBuf>,
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

/// The files that the tools may read.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Absolute, without links.
    roots: Vec<PathBuf>,
    limits: Limits,
    compile_limit: Duration,
}

impl Access {
    /// # Errors
    /// If a folder isn't there.
    pub(super) fn new(args: &Args) -> io::Result<Self> {
        let given = if args.roots.is_empty() { vec![env::current_dir()?] } else { args.roots.clone() };
        let roots = given.iter().map(|root| match fs::canonicalize(root) {
            Ok(folder) if folder.is_dir() => Ok(folder),
            Ok(_) => Err(io::Error::other(format!("{}: no folder", root.display()))),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", root.display()))),
        });
        let limits = Limits { file_bytes: args.file_limit, files: args.folder_limit };
        let compile_limit = Duration::from_secs(args.compile_limit);
        Ok(Self { roots: roots.collect::<io::Result<_>>()?, limits, compile_limit })
    }

    /// How much is read of what may be read.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// How long a tool may take that runs the compiler.
    pub(super) fn compile_limit(&self) -> Duration {
        self.compile_limit
    }

    /// Refuses what isn't a regular file or a folder below a root, and a file that is too large.
    pub(super) fn check(&self, path: &Path) -> Result<(), Failure> {
        let unreadable = |error: io::Error| Failure::new("io", format!("can't be read: {error}")).in_file(path);
        let found = fs::canonicalize(path).map_err(unreadable)?;
        if !self.roots.iter().any(|root| found.starts_with(root)) {
            let roots: Vec<String> = self.roots.iter().map(|root| format!("`{}`", root.display())).collect();
            let message = format!("outside of what this server reads, which is {}", roots.join(" and "));
            let help = "start it in the folder, or with `tilewise mcp --root FOLDER`";
            return Err(Failure::new("outside_root", message).in_file(path).with_help(help));
        }
        let metadata = fs::metadata(&found).map_err(unreadable)?;
        if metadata.is_dir() {
            return Ok(());
        }
        if !metadata.is_file() {
            return Err(
                Failure::new("not_a_file", "neither a file nor a folder, but a device, pipe or socket").in_file(path)
            );
        }
        if metadata.len() > self.limits.file_bytes {
            return Err(self.too_large(metadata.len()).in_file(path));
        }
        Ok(())
    }

    fn too_large(&self, length: u64) -> Failure {
        let (length, limit) = (bytes(length), bytes(self.limits.file_bytes));
        let message = format!("the file has {length}, and this server reads up to {limit}");
        Failure::new("too_large", message)
            .with_help("start it with a larger `--file-limit`, or run `tilewise` on the file")
    }

    /// Refuses a program of Python, `FILE.py:FUNCTION`, or a file, that isn't below a root. What doesn't exist is another
    /// error.
    pub(super) fn check_program(&self, program: &str) -> Result<(), Failure> {
        let file = program.rsplit_once(':').map_or(program, |(file, _)| file);
        let path = [program, file].map(Path::new).into_iter().find(|path| path.exists());
        path.map_or(Ok(()), |path| self.check(path))
    }
}
