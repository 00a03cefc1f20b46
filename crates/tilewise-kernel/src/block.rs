//! The tiles of a Pallas kernel's blocks; for those of arrays see [`default_layout`](tilewise::tpu::default_layout).

use alloc::{format, vec::Vec};
use tilewise::{
    ElementType, Error, ErrorKind, MAX_SIZE,
    tpu::{Generation, LANES, SUBLANES},
};

/// A block of an array in VMEM or SMEM, with the padding that its tiles bring.
///
/// The last two dimensions are cut into tiles of 128 lanes and of as many rows as fill a 32-bit word, doubled up to the
/// block's rows or 8 (16 for 2-bit types). An array's tiles reach 16, 32 and 64 rows for small element types; a block's don't:
/// 20 rows of `bf16` take 24. A block of rank 1 is rounded up to 128 words. `pred` is stored in 32 bits inside a kernel.
/// v2 and v3 begin with twice as many rows or words.
///
/// ```
/// use tilewise::{ElementType, tpu::Generation};
/// use tilewise_kernel::PaddedBlock;
///
/// let block = PaddedBlock::of(ElementType::Bf16, &[20, 100], Generation::V5e)?;
/// assert_eq!((block.tile(), block.dimensions(), block.window_bytes()), (&[8, 128][..], &[24, 128][..], 6144));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedBlock {
    tile: Vec<u64>,
    dimensions: Vec<u64>,
    elements: u64,
    /// Elements without padding.
    data_elements: u64,
    element_bits: u64,
}

impl PaddedBlock {
    /// The block of these bounds, in elements; a squeezed dimension counts 1.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedElementType`] for 1-, 6-, 64- and 128-bit types, whose blocks were never observed,
    /// [`ErrorKind::InvalidDimension`] for a bound of 0, [`ErrorKind::Overflow`] above 2^63 − 1 bytes.
    pub fn of(element_type: ElementType, bounds: &[u64], generation: Generation) -> Result<Self, Error> {
        let element_bits = element_bits(element_type)?;
        if bounds.contains(&0) {
            return Err(Error::new(
                ErrorKind::InvalidDimension,
                "a block has at least one element along each dimension",
            ));
        }
        let is_old = matches!(generation, Generation::V2 | Generation::V3);
        let least = if is_old { 2 } else { 1 } * 32 / element_bits;
        let tile = match *bounds {
            [] => Vec::new(),
            [_] => Vec::from([LANES * least]),
            [.., rows, _] => {
                let most = rows.min(SUBLANES.max(32 / element_bits));
                let mut height = least;
                while height < most {
                    height *= 2;
                }
                Vec::from([height, LANES])
            }
        };
        let mut dimensions = bounds.to_vec();
        let minor = bounds.len() - tile.len();
        for (bound, &tile) in dimensions[minor..].iter_mut().zip(&tile) {
            *bound = within_limit(bound.checked_next_multiple_of(tile))?;
        }
        let count = |bounds: &[u64]| bounds.iter().try_fold(1_u64, |product, &bound| product.checked_mul(bound));
        let elements = within_limit(count(&dimensions))?;
        within_limit(Some(bytes(elements, element_bits.max(8))))?;
        let data_elements = bounds.iter().product();
        Ok(Self { tile, dimensions, elements, data_elements, element_bits })
    }

    /// The tile of the last one or two dimensions, in elements; empty for a scalar.
    #[must_use]
    pub fn tile(&self) -> &[u64] {
        &self.tile
    }

    /// The bounds with padding, in elements.
    #[must_use]
    pub fn dimensions(&self) -> &[u64] {
        &self.dimensions
    }

    /// Bytes of the block's elements alone, packed.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        bytes(self.data_elements, self.element_bits)
    }

    /// Bytes of one buffer of a window, or of prefetched scalars: elements below a byte are packed.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        bytes(self.elements, self.element_bits)
    }

    /// Bytes of scratch memory: each element takes a byte at least.
    #[must_use]
    pub fn scratch_bytes(&self) -> u64 {
        bytes(self.elements, self.element_bits.max(8))
    }
}

/// Bytes of elements packed back to back; `u64::MAX` if they are more.
fn bytes(elements: u64, bits: u64) -> u64 {
    u64::try_from((u128::from(elements) * u128::from(bits)).div_ceil(8)).unwrap_or(u64::MAX)
}

/// A size that is at most 2^63 − 1, as all of XLA's; `None` is larger.
pub(crate) fn within_limit(size: Option<u64>) -> Result<u64, Error> {
    size.filter(|&size| size <= MAX_SIZE)
        .ok_or_else(|| Error::new(ErrorKind::Overflow, "with its padding the array is larger than 2^63 − 1"))
}

/// Bits of an element inside a kernel.
pub(crate) fn element_bits(element_type: ElementType) -> Result<u64, Error> {
    match (element_type, element_type.bits()) {
        (ElementType::Pred, _) => Ok(32),
        (_, bits @ (2 | 4 | 8 | 16 | 32)) => Ok(u64::from(bits)),
        _ => Err(Error::new(ErrorKind::UnsupportedElementType, format!("kernels have no blocks of {element_type}"))
            .with_help("pred and types of 2, 4, 8, 16 and 32 bits are known")),
    }
}
