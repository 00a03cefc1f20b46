//! The command line: what all verbs share.

use crate::commands::Command;
use clap::Parser;

/// XLA's tiled layouts: explain a shape, find an element, audit a TPU program for padding.
#[derive(Parser)]
#[command(name = "tilewise", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) color: colorchoice_clap::Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}
