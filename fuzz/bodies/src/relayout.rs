//! Buffers converted between layouts, compared with a naive relayout.

use std::hint::black_box;
use tilewise::{ElementType, Layout, Shape, Tile, TileDimension, Tiled};
use tilewise_relayout::{Cpu, Padding, Plan};
use tilewise_testing::{Guarded, NaiveRelayout, Random, Tight};

/// The largest buffer that is converted, in bytes.
const LARGEST: u64 = 128 << 10;

/// The most elements of an array. Most arrays are small: large ones, for vectors, lines and blocks, are slow to check.
const ELEMENTS: [u64; 16] = [100, 24_000, 4000, 1000, 500, 300, 200, 200, 100, 100, 60, 60, 60, 20, 20, 20];

/// Bounds of dimensions: around the widths of vectors, lines and tiles.
const BOUNDS: [u64; 48] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 20, 24, 30, 31, 32, 33, 40, 47, 48, 63, 64, 65, 66, 70, 96, 100,
    120, 127, 128, 129, 130, 140, 192, 200, 255, 256, 257, 300, 333, 384, 512, 1000, 4097, 0,
];

/// Tiles that TPUs and GPUs use.
const TILES: [&[&[u64]]; 20] = [
    &[],
    &[&[8, 128]],
    &[&[8, 128], &[2, 1]],
    &[&[8, 128], &[4, 1]],
    &[&[8, 128], &[8, 1]],
    &[&[16, 128]],
    &[&[16, 128], &[2, 1]],
    &[&[16, 128], &[16, 1]],
    &[&[32, 128], &[4, 1]],
    &[&[32, 128], &[32, 1]],
    &[&[2, 128]],
    &[&[2, 128], &[2, 1]],
    &[&[4, 128]],
    &[&[1, 128]],
    &[&[128]],
    &[&[1024]],
    &[&[1024], &[128], &[2, 1]],
    &[&[2, 2]],
    &[&[2, 1]],
    &[&[8, 16], &[4, 4]],
];

/// Sizes of unusual tiles; 0 is `*`.
const TILE_SIZES: [u64; 16] = [0, 1, 2, 3, 4, 5, 7, 8, 10, 16, 17, 32, 33, 64, 100, 128];

/// An array and two layouts made from the bytes: its buffer is converted from one to the other and back. Every byte of
/// both results, padding included, is as defined; nothing outside is written; and every element is restored.
pub fn relayout_vs_naive(data: &[u8]) {
    let mut choices = Choices(data);
    // First, so that short inputs choose among them too.
    let (way, way_back) = (Way::from_choices(&mut choices), Way::from_choices(&mut choices));
    let padding = choices.of(&[Padding::Zero, Padding::Zero, Padding::Leave]);
    let Some((from, to)) = shapes(&mut choices) else { return };
    if Tiled::new(&from).is_err() || Tiled::new(&to).is_err() {
        return;
    }
    let plan = Plan::new(&from, &to).expect("layouts of one array have a plan").with_padding(padding);
    let back = Plan::new(&to, &from).expect("and a plan back");
    black_box((plan.to_string(), back.to_string()));
    if plan.source_bytes().max(plan.destination_bytes()) > LARGEST {
        return;
    }
    let mut random = Random::new(choices.seed());
    let source = random.bytes(plan.source_bytes());
    let before = random.bytes(plan.destination_bytes());

    let naive = NaiveRelayout::new(&from, &to);
    let mut wanted = if padding == Padding::Zero { vec![0; before.len()] } else { before.clone() };
    naive.run(&source, &mut wanted);
    let got = way.run(&plan, &source, &before);
    assert_same(&got, &wanted, &plan, &way);

    let naive = naive.reversed();
    let mut wanted = vec![0; source.len()];
    naive.run(&got, &mut wanted);
    let again = way_back.run(&back, &got, &source);
    assert_same(&again, &wanted, &back, &way_back);
    if let Some(offset) = naive.difference(&source, &again) {
        panic!("{from} -> {to} and back changes what lies at {offset}");
    }
}

fn assert_same(got: &[u8], wanted: &[u8], plan: &Plan, way: &Way) {
    if got != wanted {
        let at = (0..wanted.len()).find(|&at| got[at] != wanted[at]).expect("as long");
        let (from, to) = (plan.from(), plan.to());
        panic!("{from} -> {to}, {way:?}: byte {at} is {:#04x}, wanted {:#04x}\n{plan}", got[at], wanted[at]);
    }
}

/// Bytes of the input, one for each choice; 0 when there are no more.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[usize::from(self.byte()) % items.len()]
    }

    fn below(&mut self, count: u8) -> u8 {
        self.byte() % count
    }

    /// The remaining bytes, as one number.
    fn seed(&self) -> u64 {
        self.0.iter().fold(0x9E37_79B9_7F4A_7C15, |seed, &byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }
}

fn shapes(choices: &mut Choices<'_>) -> Option<(Shape, Shape)> {
    let element = choices.of(ElementType::ALL);
    let rank = usize::from(choices.below(6));
    let mut room = choices.of(&ELEMENTS);
    let mut bounds = Vec::new();
    for _ in 0..rank {
        let bound = choices.of(&BOUNDS).min(room);
        room /= bound.max(1);
        bounds.push(bound);
    }
    let array = Shape::array(element, bounds).ok()?;
    let from = array.with_layout(layout(choices, rank, element)?).ok()?;
    let to = array.with_layout(layout(choices, rank, element)?).ok()?;
    Some((from, to))
}

/// Any order of the dimensions, tiles that are used or some that are not, perhaps a tail and an element size.
fn layout(choices: &mut Choices<'_>, rank: usize, element: ElementType) -> Option<Layout> {
    let mut left: Vec<usize> = (0..rank).rev().collect();
    let order: Vec<usize> = (0..rank).map(|_| left.remove(usize::from(choices.byte()) % left.len())).collect();
    let mut layout = Layout::new(order).ok()?;
    let preset = usize::from(choices.byte()) % (TILES.len() + 12);
    let tiles: Result<Vec<Tile>, _> = match TILES.get(preset) {
        Some(tiles) => tiles.iter().map(|tile| Tile::new(tile.iter().copied())).collect(),
        None => (0..choices.below(4)).map(|_| any_tile(choices, rank)).collect(),
    };
    layout = layout.with_tiles(tiles.ok()?).ok()?;
    layout = layout.with_tail_padding_alignment(choices.of(&[1, 1, 1, 1, 2, 3, 7, 16, 100, 1024])).ok()?;
    let bits = u64::from(element.bits());
    let size = choices.of(&[0, 0, 0, 0, bits, bits, bits + 1, bits + 3, bits * 2, bits + 24, bits + 61, 8, 16, 32]);
    if size < bits { Some(layout) } else { layout.with_element_size_in_bits(size).ok() }
}

/// Up to one dimension longer than the array; the last isn't `*`, which would have nothing to merge into.
fn any_tile(choices: &mut Choices<'_>, rank: usize) -> Result<Tile, tilewise::Error> {
    let length = 1 + usize::from(choices.byte()) % (rank + 1);
    let dimension = |number: usize, size: u64| match std::num::NonZeroU64::new(size) {
        Some(size) => TileDimension::Size(size),
        None if number + 1 < length => TileDimension::Combined,
        None => TileDimension::Size(std::num::NonZeroU64::MIN),
    };
    Tile::from_dimensions((0..length).map(|number| dimension(number, choices.of(&TILE_SIZES))))
}

/// How a plan is run, and the places of its buffers.
#[derive(Debug)]
struct Way {
    cpu: Cpu,
    is_non_temporal: bool,
    threads: usize,
    source_at: usize,
    destination_at: usize,
}

impl Way {
    fn from_choices(choices: &mut Choices<'_>) -> Self {
        let mut cpus = Cpu::available();
        // The best first: it is what users run, and what inputs that end early get.
        cpus.reverse();
        Self {
            cpu: choices.of(&cpus),
            is_non_temporal: choices.of(&[false, true]),
            threads: choices.of(&[1, 1, 1, 1, 1, 2, 3, 5]),
            source_at: choices.below(64).into(),
            destination_at: choices.below(64).into(),
        }
    }

    /// The result of the plan for the source, in a destination that held `before`.
    fn run(&self, plan: &Plan, source: &[u8], before: &[u8]) -> Vec<u8> {
        let source = Tight::new(source, self.source_at);
        let source = source.content();
        let mut destination = Guarded::new(before, self.destination_at);
        let content = destination.content();
        if let Some((_, short)) = source.split_first() {
            assert!(plan.run(short, content).is_err() && content == before, "a short source");
        }
        let plan = plan.clone().with_cpu(self.cpu);
        plan.run_loops(self.is_non_temporal, source, content, self.threads, None).expect("both lengths are right");
        assert!(destination.guards_hold(), "written outside: {self:?}\n{plan}");
        destination.content().to_vec()
    }
}
