//! `tilewise tiles`: the tile formats of other machines, by name.

use crate::output::Output;
use std::io;
use tilewise_report::TileFormatRow;

pub(crate) fn run(output: &mut Output) -> io::Result<()> {
    for row in TileFormatRow::all() {
        let name = row.name().to_owned();
        output.item(&name, Ok(row))?;
    }
    output.text("\nSHAPE@NAME gives a shape the format: tilewise show 'bf16[100,300]@tt-tile'\n")
}
