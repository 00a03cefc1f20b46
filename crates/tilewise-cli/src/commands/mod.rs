//! One module for each verb: its arguments and its answer. A new verb is a module, and its lines here.

pub(crate) mod audit;
mod bitcast;
mod completions;
mod diff;
mod draw;
mod edit;
mod explain;
mod index;
mod kernel;
mod man;
mod predict;
pub(crate) mod python;
mod relayout;
mod show;
mod steps;
mod tiles;

use crate::output::{Output, Status};
use clap::Subcommand;
use std::io;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Explain a shape and its layout
    Show(show::Args),
    /// Find the offset of an element, or the element at an offset
    Index(index::Args),
    /// Decide whether the bytes of one array can be read as another
    Bitcast(bitcast::Args),
    /// Describe how two shapes and their layouts differ
    Diff(diff::Args),
    /// Change a shape, its layout kept as XLA keeps it: permute, delete, insert, append, another type
    Edit(edit::Args),
    /// Show how the buffer is made from the logical array: pad, reshape, transpose
    Steps(steps::Args),
    /// Draw a layout, in the terminal or as SVG or PNG
    Draw(draw::Args),
    /// Predict the layout a TPU generation picks for an array, and its physical size
    Predict(predict::Args),
    /// Convert a real buffer from one layout to another
    Relayout(relayout::Args),
    /// Report what a compiled program holds in memory at its peak, and what to change
    Audit(Box<audit::Args>),
    /// Explain an out-of-memory message: the cause, what fills the memory, what to change
    Explain(explain::Args),
    /// Compute the VMEM and SMEM that a Pallas kernel needs, before it is compiled
    Kernel(kernel::Args),
    /// Find the largest sizes of a program that fit a TPU, no TPU needed (Python package)
    Fit(Box<python::Fit>),
    /// Write a program's memory plan to a file to commit, or report changes (Python package)
    Lock(Box<python::Lock>),
    /// Serve these commands as tools for AI agents: the Model Context Protocol on standard input and output
    #[cfg(feature = "mcp")]
    Mcp(crate::mcp::Args),
    /// Serve these commands as tools for AI agents: in the Python package, and where this is built with --features mcp
    #[cfg(not(feature = "mcp"))]
    #[command(
        after_help = "This binary is built without it: `pip install tilewise` has it, as does `cargo install tilewise-cli --features mcp`."
    )]
    Mcp(python::Elsewhere),
    /// List the tile formats that SHAPE@NAME accepts, of TPUs and other machines
    Tiles(tiles::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the manual page
    Man,
}

impl Command {
    /// Runs the verb on the process's standard streams; `all` is the whole command line.
    pub(crate) fn run(&self, all: impl Fn() -> clap::Command) -> io::Result<Status> {
        match self {
            Self::Show(args) => Output::run(args.format.into(), |output| show::run(args, output)),
            Self::Index(args) => Output::run(args.format.format, |output| index::run(args, output)),
            Self::Bitcast(args) => Output::run(args.format.format, |output| bitcast::run(args, output)),
            Self::Diff(args) => Output::run(args.format.format, |output| diff::run(args, output)),
            Self::Edit(args) => Output::run(args.format.format, |output| edit::run(args, output)),
            Self::Steps(args) => Output::run(args.format.format, |output| steps::run(args, output)),
            Self::Draw(args) => Output::run(args.format.format, |output| draw::run(args, output)),
            Self::Predict(args) => Output::run(args.format.format, |output| predict::run(args, output)),
            Self::Relayout(args) => Output::run(args.format.format, |output| relayout::run(args, output)),
            Self::Audit(args) => Output::run(args.format.into(), |output| audit::run(args, output)),
            Self::Explain(args) => Output::run(args.format.format, |output| explain::run(args, output)),
            Self::Kernel(args) => Output::run(args.format.format, |output| kernel::run(args, output)),
            Self::Tiles(args) => Output::run(args.format.format, tiles::run),
            #[cfg(feature = "mcp")]
            Self::Mcp(args) => crate::mcp::serve(args).map(|()| Status::Fine),
            Self::Completions(args) => completions::run(args, all()),
            Self::Man => man::run(all()),
            #[cfg(not(feature = "mcp"))]
            Self::Mcp(_) => Ok(python::without_mcp()),
            // `tilewise_cli::run` hands these on before they are parsed.
            Self::Fit(_) | Self::Lock(_) => Ok(Status::BadInput),
        }
    }
}
