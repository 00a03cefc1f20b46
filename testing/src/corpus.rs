//! The inputs of a fuzz target in one file.
//!
//! A pack is a gzip stream of the inputs, one after the other: the length in bytes as a little-endian `u32`, then the
//! bytes. Inputs are sorted by length, then by content, so that the same inputs make the same file.

use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    path::Path,
};

/// The inputs in a pack, the shortest first.
///
/// # Errors
///
/// If the file can't be read, or is not a pack.
pub fn read(pack: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut bytes = Vec::new();
    GzDecoder::new(BufReader::new(File::open(pack)?)).read_to_end(&mut bytes)?;
    let mut rest = &bytes[..];
    let mut inputs = Vec::new();
    while !rest.is_empty() {
        let (input, after) = first(rest).ok_or_else(|| io::Error::other("the pack ends inside an input"))?;
        inputs.push(input.to_vec());
        rest = after;
    }
    Ok(inputs)
}

fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Writes a pack of these inputs, each once.
///
/// # Errors
///
/// If the file can't be written, or an input has 4 GiB or more.
pub fn write(pack: &Path, mut inputs: Vec<Vec<u8>>) -> io::Result<()> {
    inputs.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    inputs.dedup();
    // Without a name or a time in its header.
    let mut file = GzEncoder::new(File::create(pack)?, Compression::best());
    for input in inputs {
        let length = u32::try_from(input.len()).map_err(io::Error::other)?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(&input)?;
    }
    file.finish()?;
    Ok(())
}
