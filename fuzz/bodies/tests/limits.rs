//! Malicious inputs: each gets its named error, or its answer, within a stated amount of memory.
//!
//! The limit is on what is allocated at once beside the input. Those of the command line are in
//! `crates/tilewise-cli/tests/it/limits.rs`.
//!
//! A program of its own: its allocator counts the whole process, so nothing else may run in it.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tilewise::{Shape, Tiled};
use tilewise_hlo::{ErrorKind, Module, WarningKind};

/// Counts allocated bytes and their maximum.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises, the pointer is of `alloc` above with the same layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// All threads share the counter, so tests run one after the other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result, and the most bytes that were allocated for it at once.
fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = work();
    (result, MOST.load(Relaxed) - before)
}

const MEGABYTE: usize = 1 << 20;

/// Reading one array takes at most this many bytes for each byte of its text.
const PER_BYTE_OF_ARRAY: usize = 32;
/// Reading tuples: an empty one has three bytes of text, and takes the memory of an array.
const PER_BYTE_OF_TUPLE: usize = 512;

/// A megabyte of one repeated text.
fn megabyte(text: &str) -> String {
    text.repeat(MEGABYTE / text.len())
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

/// `1,1,1…` and `0,1,2…`: the bounds and the order of an array of that rank.
fn rank(count: usize) -> (String, String) {
    (list(count, |_| "1".into()), list(count, |number| number.to_string()))
}

#[test]
fn texts_of_a_megabyte_are_refused_by_name() {
    let _turn = turn();
    let (ones, numbers) = rank(100_000);
    let cases = [
        ("nesting_too_deep", megabyte("(")),
        ("nesting_too_deep", "(".repeat(20_000) + &")".repeat(20_000)),
        ("nesting_too_deep", megabyte("b(")),
        ("nesting_too_deep", megabyte("(b(")),
        ("invalid_buffer", "b(b(f32[1]))".into()),
        ("syntax", megabyte("9")),
        ("overflow", format!("f32[{}]", megabyte("9"))),
        ("overflow", format!("f32[{}]", list(MEGABYTE / 2, |_| "9".into()))),
        ("overflow", format!("(f32[2],f32[{}1])", megabyte("1048576,"))),
        ("syntax", format!("f32[{}", megabyte("1,"))),
        ("syntax", format!("f32[{}]", megabyte(","))),
        ("unknown_element_type", megabyte("x")),
        ("unknown_element_type", megabyte("b")),
        ("unknown_element_type", megabyte("f8e4m3")),
        ("empty_input", megabyte(" ")),
        ("empty_input", megabyte("/**/")),
        ("empty_input", megabyte("//\n")),
        ("syntax", megabyte("/*")),
        ("syntax", megabyte("\0")),
        ("syntax", megabyte("\u{feff}")),
        ("syntax", "\u{feff}f32[2]".into()),
        ("trailing_input", "f32[2]\0".into()),
        ("trailing_input", format!("f32[2]{}", megabyte("f32[2]"))),
        ("layout_rank_mismatch", format!("f32[{ones}]{{0}}")),
        ("not_a_permutation", format!("f32[{ones}]{{{}}}", list(100_000, |_| "0".into()))),
        ("not_a_permutation", format!("f32[{ones}]{{{},0}}", list(99_999, |number| number.to_string()))),
        ("invalid_tile", format!("f32[{ones}]{{{numbers}:T({})}}", list(100_000, |_| "*".into()))),
        ("invalid_tile", format!("f32[]{{:T{}()}}", megabyte("(1)"))),
        ("attribute_order", format!("f32[2]{{0:{}}}", megabyte("L(2)"))),
        ("invalid_split_config", format!("f32[2]{{0:SC{}}}", megabyte("(0:1)"))),
    ];
    for (name, text) in cases {
        let (result, memory) = measured(|| text.parse::<Shape>());
        let start: String = text.chars().take(20).collect();
        let error = result.err().unwrap_or_else(|| panic!("{start}… was accepted"));
        assert_eq!(error.kind().as_str(), name, "{start}…: {error}");
        assert!(text.get(error.span().unwrap()).is_some(), "{start}…");
        assert!(error.to_string().len() < 200, "{start}…: the message repeats the text");
        let factor = if start.starts_with(['(', 'b']) { PER_BYTE_OF_TUPLE } else { PER_BYTE_OF_ARRAY };
        assert!(memory <= factor * text.len() + MEGABYTE, "{start}… took {memory} bytes for {}", text.len());
    }
}

#[test]
fn large_shapes_are_read_and_printed() {
    let _turn = turn();
    let (ones, numbers) = rank(100_000);
    let cases = [
        (PER_BYTE_OF_ARRAY, format!("f32[{}]", list(1_000_000, |_| "1".into()))),
        (PER_BYTE_OF_ARRAY, format!("f32[{}]", list(1_000_000, |_| "?".into()))),
        (PER_BYTE_OF_ARRAY, format!("f32[{ones}]{{{numbers}}}")),
        (PER_BYTE_OF_ARRAY, format!("f32[{ones}]{{{numbers}:T({ones})}}")),
        (PER_BYTE_OF_ARRAY, format!("f32[{ones}]{{{numbers}:T({},1)}}", list(99_999, |_| "*".into()))),
        (PER_BYTE_OF_ARRAY, format!("f32[2]{{0:T({ones})}}")),
        (PER_BYTE_OF_ARRAY, format!("f32[2]{{0:T{}}}", "(1)".repeat(100_000))),
        (PER_BYTE_OF_ARRAY, format!("f32[1000000]{{0:SC(0:{})}}", list(100_000, |index| (index + 1).to_string()))),
        (PER_BYTE_OF_TUPLE, format!("({})", list(100_000, |_| "()".into()))),
        (PER_BYTE_OF_TUPLE, format!("({})", list(100_000, |_| "s8[]".into()))),
        (PER_BYTE_OF_TUPLE, "(".repeat(1024) + &")".repeat(1024)),
        (PER_BYTE_OF_TUPLE, format!("({})", list(50, |_| "(".repeat(1023) + &")".repeat(1023)))),
    ];
    for (factor, text) in cases {
        let start = &text[..20];
        let (shape, memory) = measured(|| Shape::parse_as_written(&text).unwrap());
        assert!(memory <= factor * text.len() + MEGABYTE, "{start}… took {memory} bytes for {}", text.len());
        let printed = Shape::parse_as_written(&shape.to_string()).unwrap();
        assert!(printed.identical(&shape), "{start}…");
        let (again, memory) = measured(|| Shape::decode_proto(&shape.encode_proto()).unwrap());
        assert!(memory <= 2 * factor * text.len() + MEGABYTE, "{start}… took {memory} bytes as a proto");
        assert!(again.identical(&shape), "{start}…");
    }
}

/// Working a layout out takes at most this many bytes for each byte of its text: the axes of every tile.
const PER_BYTE_OF_LAYOUT: usize = 1024;

#[test]
fn large_layouts_are_worked_out() {
    let _turn = turn();
    let (ones, numbers) = rank(50_000);
    for text in [
        format!("f32[{ones}]{{{numbers}}}"),
        format!("f32[{ones}]{{{numbers}:T({ones})}}"),
        format!("f32[{ones}]{{{numbers}:T({},1)}}", list(49_999, |_| "*".into())),
        format!("f32[2]{{0:T({})}}", list(50_000, |_| "1".into())),
        format!("f32[]{{:T({},1)}}", list(50_000, |_| "*".into())),
        format!("f32[2]{{0:T{}}}", "(1)".repeat(50_000)),
        format!("f32[2,3]{{1,0:T{}}}", "(*,1)".repeat(50_000)),
        format!("f32[100]{{0:T(2){}}}", "(*,2)(*,3)".repeat(10_000)),
        format!("f32[1000]{{0:T(2){}}}", "(*,7)(*,3)(*,5)".repeat(10_000)),
        format!("f32[2]{{0:T{}}}", format!("({})", list(200, |_| "1".into())).repeat(200)),
    ] {
        let start = &text[..20];
        let shape: Shape = text.parse().unwrap();
        let (tiled, memory) = measured(|| Tiled::new(&shape).unwrap());
        assert!(memory <= PER_BYTE_OF_LAYOUT * text.len(), "{start}… took {memory} bytes for {}", text.len());
        let index = vec![0; shape.dimensions().len()];
        assert_eq!(tiled.offset_of(&index).unwrap(), 0, "{start}…");
        assert_eq!(tiled.index_of(0).unwrap(), Some(index), "{start}…");
    }
    let grows = format!("f32[2]{{0:T{}}}", "(3)(2)".repeat(50_000));
    assert_eq!(Tiled::new(&grows.parse().unwrap()).unwrap_err().kind().as_str(), "overflow");
}

#[test]
fn long_bounds_are_rendered() {
    let _turn = turn();
    let (ones, numbers) = rank(20_000);
    let tiled = Tiled::new(&format!("f32[{ones}]{{{numbers}:T(2)}}").parse().unwrap()).unwrap();
    let derivation = tiled.derivation();
    let lengths = [derivation.to_string(), derivation.numpy().to_string(), derivation.einops().to_string()];
    assert!(lengths.iter().all(|text| text.len() > 65_536));
}

#[test]
fn protos_that_lie_about_their_length() {
    let _turn = turn();
    let shape: Shape = "(f32[3,5]{1,0:T(2,2)}, token[])".parse().unwrap();
    let bytes = shape.encode_proto();
    for end in 0..bytes.len() {
        // A field more or less is a shape as well; half a field is not.
        let _ = Shape::decode_proto(&bytes[..end]);
    }
    // Fields that claim 2^31, 2^35 and 2^63 bytes, and have none.
    for length in ["ff ff ff ff 07", "80 80 80 80 80 01", "ff ff ff ff ff ff ff ff 7f", "ff ff ff ff ff ff ff ff ff ff"]
    {
        for field in [0x1a, 0x22, 0x2a, 0x32, 0x7a] {
            let mut bomb = vec![0x10, 0x0b, field];
            bomb.extend(length.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()));
            let (result, memory) = measured(|| Shape::decode_proto(&bomb));
            assert_eq!(result.unwrap_err().kind().as_str(), "invalid_proto", "{bomb:x?}");
            assert!(memory < 4096, "{bomb:x?} took {memory} bytes");
        }
    }
    // Tuples in tuples, from the inside out: the length of each is known by then.
    let mut nested = vec![0x10, 13];
    for _ in 0..2000 {
        let mut outer = vec![0x10, 13, 0x22];
        let mut length = nested.len();
        while length >= 0x80 {
            outer.push(u8::try_from(length % 0x80).unwrap() | 0x80);
            length /= 0x80;
        }
        outer.push(u8::try_from(length).unwrap());
        outer.append(&mut nested);
        nested = outer;
    }
    let (result, memory) = measured(|| Shape::decode_proto(&nested));
    assert_eq!(result.unwrap_err().kind().as_str(), "nesting_too_deep");
    assert!(memory < PER_BYTE_OF_TUPLE * nested.len(), "{memory} bytes");
}

/// Reading a module takes its text, and at most this for each byte of it.
const PER_BYTE_OF_HLO: usize = 32;

#[test]
fn modules_of_a_megabyte_take_memory_by_their_length() {
    let _turn = turn();
    for (name, text) in [
        ("", megabyte("x=f32[]a()\n")),
        ("", megabyte("f{x=f32[]a()\n}\n")),
        ("", format!("x=f32[]a()\n{}", megabyte("{"))),
        ("", format!("x=f32[]a()\n{}", megabyte("(\n"))),
        ("", format!("x=f32[]a()\n{}", megabyte("?\n\n"))),
        ("", format!("FileNames\n{}\nx=f32[]a()", megabyte("1 \"\"\n"))),
        ("", format!("StackFrames\n{}\nx=f32[]a()", megabyte("1 {file_location_id=1 parent_frame_id=1}\n"))),
        ("not_hlo", format!("x={}a()", megabyte("("))),
        ("not_hlo", megabyte("HloModule ")),
        ("not_hlo", megabyte("\n")),
        ("not_hlo", megabyte("\0")),
        ("not_hlo", megabyte("/*")),
    ] {
        let (start, length) = (text[..10].to_owned(), text.len());
        let (result, memory) = measured(|| Module::parse(text));
        assert_eq!(result.err().map_or("", |error| error.kind().as_str()), name, "{start}…");
        assert!(memory <= PER_BYTE_OF_HLO * length + MEGABYTE, "{start}… took {memory} bytes for {length}");
    }
}

#[test]
fn truncated_modules_say_so() {
    let _turn = turn();
    let text = "HloModule m\n\nbody {\n  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8]{0} negate(x)\n}\n\nENTRY e {\n  \
                p = f32[8]{0} parameter(0)\n  ROOT w = f32[8]{0} call(p), to_apply=body\n}\n";
    for end in (0..text.trim_end().len()).filter(|&end| end > text.find("x =").unwrap()) {
        let Ok(module) = Module::parse(&text[..end]) else { continue };
        let kinds: Vec<WarningKind> = module.warnings().iter().map(|warning| warning.kind()).collect();
        // A module may end with its first computation.
        let whole = text[..end].trim_end().ends_with('}');
        assert!(whole || !kinds.is_empty(), "cut at {end} in silence: {}", &text[..end]);
        let _ = tilewise_audit::audit(&module);
    }
    let error = Module::parse("HloModule m\n\nENTRY e {\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotHlo);
}

#[test]
fn modules_that_go_in_circles_end() {
    let _turn = turn();
    let many = 10_000;
    let ring = (0..many).map(|i| {
        let next = (i + 1) % many;
        format!("f{i} {{\n x = f32[8]{{0}} call(x), to_apply=f{next}\n ROOT w = f32[8]{{0}} while(x), body=f{i}, condition=f{next}\n}}\n")
    });
    let text: String = ring.collect();
    let length = text.len();
    let (rows, memory) = measured(|| tilewise_audit::audit(&Module::parse(text).unwrap()).buffer_count());
    assert_eq!(rows, 0, "calls and loops make no buffers of their own");
    assert!(memory <= PER_BYTE_OF_HLO * length, "{memory} bytes for {length}");
    let module = Module::parse("x = f32[8]{0} copy(y)\ny = f32[8]{0:T(8)} copy(x)\nx = f32[8]{0} copy(x)").unwrap();
    assert_eq!(tilewise_audit::audit(&module).buffer_count(), 3);
}

#[test]
fn bytes_that_are_no_text() {
    let _turn = turn();
    let kind = |bytes: &[u8]| tilewise_hlo::decode(bytes.to_vec(), 1 << 20).unwrap_err().kind();
    for bytes in [&b"x = f32[2] add(\xff)"[..], b"\xff\xfe\0\xd8", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"caf\xe9"] {
        assert_eq!(kind(bytes), ErrorKind::NotUtf8);
    }
    for bytes in [&b"\x1f\x8b"[..], b"\x1f\x8b\x08"] {
        assert_eq!(kind(bytes), ErrorKind::Truncated);
    }
    assert_eq!(kind(b"\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ErrorKind::Io);
    // Still text: a byte order mark at the start, a NUL inside.
    let module = Module::parse("\u{feff}HloModule m\n\nENTRY e {\n  x = f32[8]{0} parameter(0)\n}\n").unwrap();
    assert_eq!((module.name(), module.instructions().len()), ("m", 1));
    let module = Module::parse("x = f32[2] add(a)\ny\0z = f32[2] add(a)\n").unwrap();
    assert_eq!((module.instructions().len(), module.warnings().len()), (1, 1));
}

#[test]
fn gzip_bombs_stop_at_the_limit() {
    let _turn = turn();
    let zeros = vec![b' '; 1 << 16];
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    (0..1024).for_each(|_| encoder.write_all(&zeros).unwrap());
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 128 << 10, "64 MiB in {} bytes", bomb.len());
    // A compressed bomb inside another is not text.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&bomb).unwrap();
    let nested = encoder.finish().unwrap();
    let limit = 1 << 20;
    for (bytes, kind) in [(bomb.repeat(16), ErrorKind::GzipTooLarge), (nested, ErrorKind::NotUtf8)] {
        let (result, memory) = measured(|| tilewise_hlo::decode(bytes, limit).unwrap_err());
        assert_eq!(result.kind(), kind);
        // A growing list holds the old copy beside the new.
        assert!(memory <= 4 * MEGABYTE, "{memory} bytes for a limit of {limit}");
    }
}
