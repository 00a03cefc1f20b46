//! Files, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::document::{Document, is_proto};
use crate::error::{Error, ErrorKind};
use crate::module::Module;
use crate::profile::is_profile;

/// Maximum decompressed bytes of a file for [`read`] and [`read_text`]: the limit of [`Module::parse`], 4 GiB − 1.
pub const DECOMPRESSION_LIMIT: u64 = u32::MAX as u64;

/// Reads a file of HLO, text or proto, plain or gzip, whatever its name.
///
/// # Errors
///
/// Those of [`read_text`] and [`Module::parse`].
///
/// ```
/// let path = std::env::temp_dir().join("tilewise-hlo-read.hlo");
/// std::fs::write(&path, "x = f32[2] parameter(0)").unwrap();
/// assert_eq!(tilewise_hlo::read(&path)?.instructions().len(), 1);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<Module, Error> {
    let path = path.as_ref();
    Module::parse(read_text(path)?).map_err(|error| error.in_file(path))
}

/// Reads a file as text, of any content. See [`decode`] for the formats.
///
/// # Errors
///
/// [`Io`](ErrorKind::Io), and those of [`decode`] for more than [`DECOMPRESSION_LIMIT`] bytes. The message names the
/// file first.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = path.as_ref();
    let read = File::open(path).map_err(unreadable).and_then(|file| read_bytes(file, DECOMPRESSION_LIMIT));
    read.and_then(|bytes| decode(bytes, DECOMPRESSION_LIMIT)).map_err(|error| error.in_file(path))
}

/// Bytes that show whether an input may hold a program: of any other no more is read.
const TELLING: usize = 16 << 20;

/// The bytes of a file, a pipe or a device for [`decode`]: at most `limit`. An input that can't be a program, and may
/// be endless, is read up to 16 MiB, whose lines or bytes [`decode`] and [`Module::parse`] then refuse.
///
/// # Errors
///
/// [`Io`](ErrorKind::Io), and [`TooLarge`](ErrorKind::TooLarge) for more than `limit` bytes.
///
/// ```
/// use tilewise_hlo::{ErrorKind, read_bytes};
///
/// assert_eq!(read_bytes(&b"HloModule m"[..], 11)?, b"HloModule m");
/// assert_eq!(read_bytes(&b"HloModule m"[..], 10).unwrap_err().kind(), ErrorKind::TooLarge);
/// assert!(read_bytes(std::io::repeat(0), u64::MAX)?.len() <= 16 << 20);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
pub fn read_bytes(mut input: impl Read, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    // One byte above the limit shows that there are more.
    let most = limit.saturating_add(1);
    input.by_ref().take(most.min(TELLING as u64)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() == TELLING {
        if may_be_program(&bytes) {
            input.take(most - TELLING as u64).read_to_end(&mut bytes).map_err(unreadable)?;
        } else if let Some(end) = memchr::memrchr(b'\n', &bytes) {
            bytes.truncate(end + 1);
        }
    }
    if bytes.len() as u64 > limit {
        let message = format!("more than {limit} bytes, the most that are read");
        return Err(Error::new(ErrorKind::TooLarge, None, message));
    }
    Ok(bytes)
}

/// Whether bytes begin as something that [`decode`] reads, or are a text with a program or a plan.
fn may_be_program(head: &[u8]) -> bool {
    let begins = |start: &&[u8]| head.starts_with(start);
    if [&[0x1f, 0x8b][..], &[0xff, 0xfe], &[0xfe, 0xff]].iter().any(begins) || is_profile(head) || is_proto(head) {
        return true;
    }
    // The last letter may be cut.
    let is_text = str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    let words: [&[u8]; 4] = [b"HloModule", b"ENTRY", b"BufferAssignment", b"allocation "];
    is_text && words.iter().any(|word| memchr::memmem::find(head, word).is_some())
}

fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, None, format!("can't be read: {error}")).caused_by(error)
}

/// The text of bytes, as [`Document::decode`] reads them.
///
/// # Errors
///
/// [`NotUtf8`](ErrorKind::NotUtf8), [`Truncated`](ErrorKind::Truncated) for gzip or a proto that ends too early,
/// [`InvalidProto`](ErrorKind::InvalidProto) for a proto that makes no program, [`TooLarge`](ErrorKind::TooLarge) for
/// one whose text would be unreasonably long, [`GzipTooLarge`](ErrorKind::GzipTooLarge) for more than `limit` bytes, or
/// for more than 16 MiB and a hundred times the compressed data, [`GzipUnsupported`](ErrorKind::GzipUnsupported) without the `gzip` feature, [`NotHlo`](ErrorKind::NotHlo) for a
/// memory-usage report's proto, [`SeveralPrograms`](ErrorKind::SeveralPrograms) for a profile of more than one, [`Io`](ErrorKind::Io) for gzip that is damaged.
///
/// ```
/// assert_eq!(tilewise_hlo::decode(b"HloModule m".to_vec(), 100)?, "HloModule m");
/// assert_eq!(tilewise_hlo::decode(b"\xff\xfeH\0l\0o\0".to_vec(), 100)?, "Hlo");
/// let error = tilewise_hlo::decode(b"\x0a\xff\x00".to_vec(), 100).unwrap_err();
/// assert_eq!(error.kind(), tilewise_hlo::ErrorKind::NotUtf8);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
pub fn decode(bytes: Vec<u8>, limit: u64) -> Result<String, Error> {
    Ok(Document::decode(bytes, limit)?.text)
}

/// The first bytes of a file, at most `limit`, without their compression: enough to recognise its contents.
///
/// # Errors
///
/// If the file can't be read. Data that can't be decompressed is left out.
///
/// ```
/// let path = std::env::temp_dir().join("tilewise-hlo-head.hlo");
/// std::fs::write(&path, "HloModule m").unwrap();
/// assert_eq!(tilewise_hlo::read_head(&path, 9)?, b"HloModule");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_head(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut head)?;
    #[cfg(feature = "gzip")]
    if head.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        // The data ends with the head, so it may fail at the end; the bytes decompressed until then are wanted.
        let _ = flate2::read::MultiGzDecoder::new(head.as_slice()).take(limit).read_to_end(&mut plain);
        return Ok(plain);
    }
    Ok(head)
}

#[cfg(test)]
#[cfg(feature = "gzip")]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_known_by_its_bytes_and_limited() {
        let bytes = gzip(&[b'a'; 1000]);
        assert_eq!(decode(bytes.clone(), 1000).unwrap().len(), 1000);
        assert_eq!(decode(bytes.clone(), 999).unwrap_err().kind(), ErrorKind::GzipTooLarge);
        let two = [bytes.clone(), bytes.clone()].concat();
        assert_eq!(decode(two, u64::MAX).unwrap().len(), 2000, "members are concatenated");
        assert_eq!(decode(bytes[..bytes.len() / 2].to_vec(), 1000).unwrap_err().kind(), ErrorKind::Truncated);
        assert_eq!(decode(gzip(b"\xff"), 10).unwrap_err().kind(), ErrorKind::NotUtf8);
    }

    #[test]
    fn gzip_out_of_proportion_is_refused() {
        let mut text = vec![b' '; 16 << 20];
        assert!(decode(gzip(&text), u64::MAX).is_ok(), "16 MiB may come of anything");
        text.push(b' ');
        let error = decode(gzip(&text), u64::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::GzipTooLarge);
        assert!(error.to_string().contains("100 times its length"), "{error}");
        // Data that shrinks to a 60th, as no program does, is read.
        let line: Vec<u8> = (0..24_u8).map(|at| b'a' + at).collect();
        let lines: Vec<u8> =
            (0..700_000_u32).flat_map(|at| [&line[..], &(at / 64).to_le_bytes()[..3]].concat()).collect();
        let small = gzip(&lines.iter().map(|byte| byte % 128).collect::<Vec<_>>());
        assert!((30..90).contains(&(lines.len() / small.len())), "{}", lines.len() / small.len());
        assert!(decode(small, u64::MAX).is_ok());
    }

    #[test]
    fn texts_that_are_none_say_so() {
        let message = |bytes: &[u8]| decode(bytes.to_vec(), 1000).unwrap_err().to_string();
        assert!(message(b"a = f32[] b()\nx\xffy").starts_with("not UTF-8 text: a byte in line 2 "));
        assert!(message(b"\x0a\x05jit_f\x12\xff").starts_with("neither text nor"));
        assert!(message(b"PK\x03\x04\x14\0\xff").starts_with("this is a ZIP archive"));
        assert!(message(b"\x28\xb5\x2f\xfd\0").starts_with("this is data that zstd compressed"));
        assert!(message(b"\xff\xfea\0b").starts_with("the UTF-16 text is damaged"));
        assert!(message(&gzip(b"a")[..15]).starts_with("the gzip data ends too early"));
        assert_eq!(decode(b"\xfe\xff\0a\x20\x17".to_vec(), 10).unwrap(), "a\u{2017}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read("no/such/file.hlo").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().starts_with("no/such/file.hlo: can't be read: "));
        assert!(std::error::Error::source(&error).is_some());
    }
}
