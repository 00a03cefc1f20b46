//! `tilewise tiles`: tile formats of TPUs, other machines and libraries, by name.

use crate::output::{FormatArgs, Output};
use std::io;
use tilewise_report::TileFormatRow;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise show 'bf16[100,300]@tt-tile'
  tilewise relayout w.npy w.bin --to 'f32[64,32,3,3]@onednn-OIhw4i16o4i'")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(output: &mut Output) -> io::Result<()> {
    for row in TileFormatRow::all() {
        let name = row.name().to_owned();
        output.item(&name, Ok(row))?;
    }
    output.text("\nSHAPE@NAME gives a shape the format: tilewise show 'bf16[100,300]@tt-tile'\n")
}
