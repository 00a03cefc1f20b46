//! The PNG format: a signature and three chunks, <https://www.w3.org/TR/png-3/>.

use flate2::{Compression, Crc, write::ZlibEncoder};
use std::io::{self, Write as _};

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// Encodes rows of pixels, each red, green, blue and alpha in a byte.
pub(super) struct Encoder {
    image: Vec<u8>,
    rows: ZlibEncoder<Vec<u8>>,
}

impl Encoder {
    /// An image of that many pixels.
    pub(super) fn new(width: u32, height: u32) -> Self {
        const EIGHT_BITS: u8 = 8;
        const RGBA: u8 = 6;
        let mut image = SIGNATURE.to_vec();
        let [width, height] = [width, height].map(u32::to_be_bytes);
        // The rest: deflate, the standard filters, not interlaced.
        let header = [&width[..], &height, &[EIGHT_BITS, RGBA, 0, 0, 0]].concat();
        chunk(&mut image, b"IHDR", &header);
        // Flat colours compress well at once; more effort takes several times longer.
        Self { image, rows: ZlibEncoder::new(Vec::new(), Compression::fast()) }
    }

    /// The next row, from top to bottom.
    pub(super) fn row(&mut self, pixels: &[u8]) -> io::Result<()> {
        const NO_FILTER: u8 = 0;
        self.rows.write_all(&[NO_FILTER])?;
        self.rows.write_all(pixels)
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<u8>> {
        // The limit of pixels keeps this far below the 2^31 bytes of a chunk.
        chunk(&mut self.image, b"IDAT", &self.rows.finish()?);
        chunk(&mut self.image, b"IEND", &[]);
        Ok(self.image)
    }
}

/// Appends a chunk: length, type, data, checksum of type and data.
fn chunk(image: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let mut sum = Crc::new();
    sum.update(kind);
    sum.update(data);
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    for part in [&length.to_be_bytes()[..], kind, data, &sum.sum().to_be_bytes()] {
        image.extend_from_slice(part);
    }
}
