//! The definition, index by index: read an element, convert it, write it. Slow, and short enough to be obviously right.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tilewise::{ElementKind, Shape, Tiled};
use tilewise_relayout::{Cpu, Padding, Plan};

/// A xorshift generator: tests name their seeds.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    pub(crate) fn bytes(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|_| self.below(256) as u8).collect()
    }

    pub(crate) fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

fn bit(buffer: &[u8], at: u64) -> bool {
    buffer[(at / 8) as usize] >> (at % 8) & 1 == 1
}

fn set_bit(buffer: &mut [u8], at: u64, value: bool) {
    let (byte, mask) = (&mut buffer[(at / 8) as usize], 1 << (at % 8));
    *byte = if value { *byte | mask } else { *byte & !mask };
}

/// What the destination must hold afterwards if it held `before`.
pub(crate) fn naive(from: &Shape, to: &Shape, source: &[u8], before: &[u8], padding: Padding) -> Vec<u8> {
    let (source_tiled, tiled) = (Tiled::new(from).expect("a layout"), Tiled::new(to).expect("a layout"));
    let element = from.element_type().expect("an array");
    let width = |shape: &Shape| {
        let given = shape.layout().and_then(|layout| layout.element_size_in_bits());
        given.unwrap_or(u64::from(element.natural_bits()))
    };
    let (from_width, to_width, bits) = (width(from), width(to), u64::from(element.bits()));
    let mut out = if padding == Padding::Zero { vec![0; before.len()] } else { before.to_vec() };
    let bounds = tiled.logical_dimensions().to_vec();
    let mut index = vec![0; bounds.len()];
    for flat in 0..bounds.iter().product::<u64>() {
        let mut rest = flat;
        for d in (0..bounds.len()).rev() {
            (index[d], rest) = (rest % bounds[d], rest / bounds[d]);
        }
        let start = source_tiled.offset_of(&index).expect("inside") * from_width;
        let target = tiled.offset_of(&index).expect("inside") * to_width;
        let kept = if from_width == to_width { from_width } else { bits };
        let sign = element.kind() == ElementKind::Signed && bit(source, start + bits - 1);
        for i in 0..to_width {
            set_bit(&mut out, target + i, if i < kept { bit(source, start + i) } else { sign });
        }
    }
    out
}

/// A buffer that starts a given number of bytes past a line, between guards.
pub(crate) struct Guarded {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

const GUARD: u8 = 0xE7;

impl Guarded {
    pub(crate) fn new(content: &[u8], past_line: usize) -> Self {
        let mut bytes = vec![GUARD; content.len() + 256];
        let start = bytes.as_ptr().align_offset(64) + 64 + past_line;
        bytes[start..start + content.len()].copy_from_slice(content);
        Self { bytes, start, length: content.len() }
    }

    pub(crate) fn content(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    pub(crate) fn guards_hold(&self) -> bool {
        let (before, rest) = self.bytes.split_at(self.start);
        before.iter().chain(&rest[self.length..]).all(|&byte| byte == GUARD)
    }
}

/// A copy that ends where its allocation ends, so that AddressSanitizer sees a read past it.
pub(crate) struct Tight {
    start: *mut u8,
    past_line: usize,
    length: usize,
}

impl Tight {
    fn layout(&self) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align((self.past_line + self.length).max(1), 64).expect("small")
    }

    pub(crate) fn new(content: &[u8], past_line: usize) -> Self {
        let mut tight = Self { start: std::ptr::null_mut(), past_line, length: content.len() };
        // SAFETY: the size is not zero.
        tight.start = unsafe { std::alloc::alloc_zeroed(tight.layout()) };
        assert!(!tight.start.is_null());
        tight.content().copy_from_slice(content);
        tight
    }

    fn content(&mut self) -> &mut [u8] {
        // SAFETY: inside the allocation.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(self.past_line), self.length) }
    }
}

impl Drop for Tight {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout.
        unsafe { std::alloc::dealloc(self.start, self.layout()) }
    }
}

/// One way to run a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) cpu: Cpu,
    pub(crate) past_caches: bool,
    pub(crate) threads: usize,
    pub(crate) source_at: usize,
    pub(crate) destination_at: usize,
}

/// What one run gets wrong, if anything.
pub(crate) fn fault(from: &Shape, to: &Shape, padding: Padding, random: &mut Random, ways: &[Way]) -> Option<String> {
    let plan = match Plan::with_padding(from, to, padding) {
        Ok(plan) => plan,
        Err(error) => return Some(format!("no plan: {error}")),
    };
    let source = random.bytes(plan.source_bytes());
    let before = random.bytes(plan.destination_bytes());
    let wanted = naive(from, to, &source, &before, padding);
    for way in ways {
        let mut source = Tight::new(&source, way.source_at);
        let mut destination = Guarded::new(&before, way.destination_at);
        let run = plan.run_as(way.cpu, way.past_caches, source.content(), destination.content(), way.threads);
        if let Err(error) = run {
            return Some(format!("{way:?}: {error}"));
        }
        if !destination.guards_hold() {
            return Some(format!("{way:?}: wrote outside the destination"));
        }
        let got = destination.content();
        if let Some(at) = (0..got.len()).find(|&at| got[at] != wanted[at]) {
            return Some(format!("{way:?}: byte {at} is {:#04x}, wanted {:#04x}\n{plan}", got[at], wanted[at]));
        }
    }
    for threads in 1..5 {
        let (least, past_caches) = (random.choose(&[1, 64, 1000]), random.below(2) == 0);
        let mut source = Tight::new(&source, random_place(random.0));
        let mut destination = Guarded::new(&before, random_place(random.0 >> 9));
        let written = AtomicU64::new(0);
        let run =
            plan.run_in_parts_of(least, past_caches, source.content(), destination.content(), threads, &|bytes| {
                written.fetch_add(bytes, Relaxed);
            });
        if let Err(error) = run {
            return Some(error.to_string());
        }
        let right = destination.content() == wanted && destination.guards_hold();
        if !right || written.into_inner() != plan.destination_bytes() {
            return Some(format!("differs in parts of {least}, past caches {past_caches}, on {threads}\n{plan}"));
        }
    }
    let mut got = before;
    if let Err(error) = plan.run(&source, &mut got) {
        return Some(error.to_string());
    }
    (got != wanted).then(|| format!("the public way differs\n{plan}"))
}

/// Every level, with and without stores past the caches, one thread and three.
pub(crate) fn all_ways(random: &mut Random) -> Vec<Way> {
    let mut ways = Vec::new();
    for cpu in Cpu::available() {
        for past_caches in [false, true] {
            for threads in [1, 3] {
                let source_at = random.choose(&[0, 16, random_place(random.0)]);
                let destination_at = random.choose(&[0, 16, random_place(random.0 >> 9)]);
                ways.push(Way { cpu, past_caches, threads, source_at, destination_at });
            }
        }
    }
    ways
}

fn random_place(seed: u64) -> usize {
    (seed >> 7) as usize % 64
}
