//! The rule by which libtpu lays an array out; the module above has the evidence for it, and its limits.
//!
//! Written from observations of PJRT's `get_default_layout`, libtpu 0.0.51, seven generations; the layouts quoted are among them. "Old" is
//! v2 and v3, "new" everything since; inside each group all layouts agreed.

use super::{Generation, LANES, SUBLANES};
use crate::{ElementType, Error, ErrorKind, Layout, Shape, Tile, inline::InlineVec};
use alloc::format;
use core::num::NonZeroU64;

/// A shape with a TPU's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prediction {
    /// The shape, layout included.
    pub shape: Shape,
    /// The part of the layout that the compiler chose.
    pub policy: Policy,
}

/// The part of a layout that the compiler chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Everything: the order of dimensions and the tiles.
    Default,
    /// The tiles; the order of dimensions was given.
    FixedOrder,
}

impl Policy {
    /// The policy's name: `default` or `fixed_order`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::FixedOrder => "fixed_order",
        }
    }
}

/// The shape with the layout a TPU of this generation gives it, as far as the shape leaves that open.
///
/// A shape without a layout gets the [default](default_layout), and so does a scalar. One with a layout keeps its order
/// of dimensions and its memory space, and gets the [tiles for that order](layout_for_order): tiles, element size and
/// everything else in the layout are replaced. Read texts with [`Shape::parse_as_written`], since `parse` fills in a
/// row-major order for a missing layout. Dynamic dimensions count with their bounds and stay dynamic; a buffer stays a
/// buffer.
///
/// # Errors
/// [`ErrorKind::NotAnArray`], [`ErrorKind::UnboundedDimension`], and [`ErrorKind::Overflow`] where the size without padding is above
/// 2^63 − 1 bytes.
///
/// ```
/// use tilewise::{Shape, tpu::{self, Generation, Policy}};
///
/// let open = tpu::predict(&Shape::parse_as_written("bf16[8,64]")?, Generation::V5e)?;
/// assert_eq!((open.shape.to_string().as_str(), open.policy), ("bf16[8,64]{1,0:T(8,128)(2,1)}", Policy::Default));
///
/// let fixed = tpu::predict(&Shape::parse_as_written("bf16[8,64]{0,1}")?, Generation::V5e)?;
/// assert_eq!((fixed.shape.to_string().as_str(), fixed.policy), ("bf16[8,64]{0,1:T(8,128)(2,1)}", Policy::FixedOrder));
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn predict(shape: &Shape, generation: Generation) -> Result<Prediction, Error> {
    let array = shape.array_or_error()?;
    let rule = Rule::new(array.element_type, generation);
    let mut bounds = InlineVec::<u64, 6>::new();
    for (number, dimension) in array.dimensions.iter().enumerate() {
        bounds.push(dimension.bound().ok_or_else(|| unbounded(number))?);
    }
    let (order, policy) = match &array.layout {
        // A scalar has no order to give: it is read with the empty layout.
        Some(layout) if !bounds.is_empty() => (layout.minor_to_major.clone(), Policy::FixedOrder),
        _ => (rule.order(&bounds), Policy::Default),
    };
    let mut layout = rule.layout(order, &bounds)?;
    layout.memory_space = array.memory_space();
    Ok(Prediction { shape: shape.with_layout(layout)?, policy })
}

/// An array with the layout a TPU of this generation picks by default: PJRT's `get_default_layout`. Bounds are in elements.
///
/// # Errors
/// [`ErrorKind::Overflow`] if a bound, the element count or the byte count without padding is above 2^63 − 1.
///
/// ```
/// use tilewise::{ElementType, tpu::{self, Generation}};
///
/// let of = |bounds: &[u64], generation| tpu::default_layout(ElementType::S4, bounds, generation).map(|s| s.to_string());
/// assert_eq!(of(&[64, 256], Generation::V6e)?, "s4[64,256]{1,0:T(64,128)(8,1)E(4)}");
/// assert_eq!(of(&[64, 256], Generation::V3)?, "s4[64,256]{1,0:T(8,128)(4,1)}"); // a byte each
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn default_layout(element_type: ElementType, bounds: &[u64], generation: Generation) -> Result<Shape, Error> {
    let rule = Rule::new(element_type, generation);
    let shape = Shape::array(element_type, bounds.iter().copied())?;
    shape.with_layout(rule.layout(rule.order(bounds), bounds)?)
}

/// An array with its dimensions in this order, the fastest-varying first, and the tiles a TPU of this generation then gives it. Bounds
/// are in elements.
///
/// This holds for an order that a program fixes itself: jax's `Layout(major_to_minor=…)`, a custom call's operands. 950
/// of 950 compiled programs agreed.
///
/// # Errors
/// As for [`default_layout`]; [`ErrorKind::NotAPermutation`] and [`ErrorKind::LayoutRankMismatch`] unless the order is
/// one of these dimensions.
///
/// ```
/// use tilewise::{ElementType, tpu::{self, Generation}};
///
/// let shape = tpu::layout_for_order(ElementType::F32, &[1_000_000, 12], &[1, 0], Generation::V5e)?;
/// assert_eq!(shape.to_string(), "f32[1000000,12]{1,0:T(8,128)}");
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn layout_for_order(
    element_type: ElementType,
    bounds: &[u64],
    minor_to_major: &[usize],
    generation: Generation,
) -> Result<Shape, Error> {
    let layout = Layout::new(minor_to_major.iter().copied())?;
    let ordered = Shape::array(element_type, bounds.iter().copied())?.with_layout(layout)?;
    Ok(predict(&ordered, generation)?.shape)
}

fn unbounded(number: usize) -> Error {
    Error::new(ErrorKind::UnboundedDimension, format!("dimension {number} is `?`: its layout depends on its bound"))
        .with_help("write a bound, such as `<=1024`")
}

/// The rule for one element type and generation.
struct Rule {
    old: bool,
    /// Bits of an element, at most 32.
    bits: u64,
    /// Bits an element is stored in.
    stored: u64,
    /// Elements in a granule, the unit of buffers.
    granule: u64,
}

impl Rule {
    fn new(element_type: ElementType, generation: Generation) -> Self {
        let bits = match element_type {
            // Six bits in a byte each, and the layouts of bytes, as libtpu 0.0.52 answers.
            ElementType::Pred | ElementType::F6e2m3fn | ElementType::F6e3m2fn => 8,
            // 64-bit types and c64 live as two 32-bit planes, c128 as four; each plane is laid out as one 32-bit array.
            other => u64::from(other.bits().min(32)),
        };
        let old = generation.is_old();
        // v2 and v3 give a byte to every smaller element: `s4[8,8]{1,0:T(8,128)(4,1)}`, new `{1,0:T(8,128)(8,1)E(4)}`.
        let stored = if old { bits.max(8) } else { bits };
        Self { old, bits, stored, granule: 8 * generation.granule_bytes() / stored }
    }

    /// Elements of a 32-bit word, which the last tile, `(pack,1)`, gathers from `pack` rows.
    const fn pack(&self) -> u64 {
        32 / self.stored
    }

    /// `pack` for the type's own bits: on v2 and v3, which store them as bytes, 1- and 2-bit types keep the heights of
    /// their own size.
    const fn want(&self) -> u64 {
        32 / self.bits
    }

    /// The tile of a single dimension: a granule, doubled up to the bound, or to 1024 (for 1- and 2-bit types 4096 and 2048).
    ///
    /// `u1[1023]{0:T(1024)(128)(4,1)}`, `u1[4097]{0:T(4096)(128)(4,1)}` old.
    fn line(&self, bound: u64) -> u64 {
        let most = (LANES * self.want()).max(LANES * SUBLANES);
        doubled(self.granule, bound.min(most))
    }

    /// The tile's height on the second-minor dimension: rows that fill at least a granule and a word, doubled up to the bound or 8.
    ///
    /// `f32[1,127]{1,0:T(1,128)}`, `f32[3,5]{1,0:T(4,128)}`, `f32[9,128]{1,0:T(8,128)}` new; `u1[2,2]{1,0:T(32,128)(4,1)}` old.
    fn height(&self, bound: u64) -> u64 {
        // A whole register of small elements, where the bound is a multiple of its rows; never on v2 and v3.
        // `s8[64,64,64]{2,1,0:T(32,128)(4,1)}`, but `s8[17,33,65]{2,1,0:T(8,128)(4,1)}`.
        let register = SUBLANES * self.pack();
        if !self.old && self.bits <= 8 && bound % register == 0 {
            return register;
        }
        doubled((self.granule / LANES).max(self.want()), bound.min(SUBLANES))
    }

    /// The default order of dimensions, minor to major: the two that pad the array least on lanes and rows, the others row-major
    /// above them. `f32[300,5]{0,1:T(8,128)}`, `s8[8,1,128]{2,0,1:T(8,128)(4,1)}`.
    ///
    /// The bounds' product is an element count, below 2^63: costs fit 128 bits, and at most 62 bounds are above 1.
    fn order(&self, bounds: &[u64]) -> InlineVec<usize, 6> {
        let row_major = (0..bounds.len()).rev();
        if bounds.contains(&0) {
            return row_major.collect();
        }
        let elements: u128 = bounds.iter().map(|&bound| u128::from(bound)).product();
        // Of many bounds of 1 only the last two can win: the others cost the same and are met later. Pairs stay few at any rank.
        let mut ones = 0;
        let candidates: InlineVec<usize, 6> = row_major
            .clone()
            .filter(|&dimension| {
                ones += u32::from(bounds[dimension] == 1);
                bounds[dimension] > 1 || ones <= 2
            })
            .collect();
        let pairs = candidates.iter().flat_map(|&minor| {
            candidates.iter().filter(move |&&second| second != minor).map(move |&second| (minor, second))
        });
        // Of equals the pair met first wins, from the last dimension on: row-major wherever it costs nothing.
        let best = pairs.min_by_key(|&(minor, second)| {
            let (columns, rows) = (bounds[minor], bounds[second]);
            let height = self.height(rows);
            let others = elements / (u128::from(columns) * u128::from(rows));
            // Taller tiles are charged as if they had 8 rows: `s1[20,2]{0,1:T(32,128)(4,1)}` old, where 32 would make it {1,0}.
            let cost = padded(columns, LANES) * padded(rows, height.min(SUBLANES)) * others;
            // Among equal costs, only 1- and 2-bit types prefer whole tiles: `s1[64,128,128,8]{2,1,3,0:T(32,128)(4,1)}` old.
            let ragged = self.bits < 4 && (columns % LANES != 0 || rows % height != 0);
            (cost, ragged)
        });
        let Some((minor, second)) = best else { return row_major.collect() };
        let others = row_major.filter(|&dimension| dimension != minor && dimension != second);
        [minor, second].into_iter().chain(others).collect()
    }

    /// The layout in this order, a permutation of the bounds: tiles and element size.
    fn layout(&self, minor_to_major: InlineVec<usize, 6>, bounds: &[u64]) -> Result<Layout, Error> {
        let mut layout = Layout::of_order(minor_to_major);
        if self.stored < 8 {
            // Printed even where there are no tiles: `s4[0,4]{1,0:E(4)}`.
            layout.element_size_in_bits = NonZeroU64::new(self.stored);
        }
        if bounds.contains(&0) {
            return Ok(layout);
        }
        let packed = self.pack() > 1;
        let tiles = &mut layout.tiles;
        match layout.minor_to_major[..] {
            // A scalar takes a granule, and is never packed.
            [] => tiles.push(Tile::new([self.granule])?),
            [only] => {
                tiles.push(Tile::new([self.line(bounds[only])])?);
                if packed {
                    tiles.push(Tile::new([LANES])?);
                    tiles.push(Tile::new([self.pack(), 1])?);
                }
            }
            [_, second, ..] => {
                tiles.push(Tile::new([self.height(bounds[second]), LANES])?);
                if packed {
                    tiles.push(Tile::new([self.pack(), 1])?);
                }
            }
        }
        Ok(layout)
    }
}

/// The tile doubled until it reaches the bound.
fn doubled(mut tile: u64, bound: u64) -> u64 {
    while tile < bound {
        tile *= 2;
    }
    tile
}

fn padded(bound: u64, tile: u64) -> u128 {
    u128::from(bound).next_multiple_of(u128::from(tile))
}
