//! Operands of another element type than the array that they are made of: rows packed into words, or words read as rows.

use crate::RemedyWords;
use tilewise::{ElementKind, ElementType, Rearrangement, Shape, tpu::Generation};
use tilewise_kernel::{View, ViewAccess};

/// The way from an array to a kernel's operand: transposes and reshapes, and packing between types of other widths.
///
/// A TPU keeps a narrow element in one word with those of the rows below it. Such words are what `ref.bitcast` reads inside a kernel
/// (`jax/_src/state/utils.py`), for nothing; in front of a kernel XLA computes them, by shifts or products, whatever the layout.
pub(crate) struct Reading {
    rearrangement: Rearrangement,
    /// The operand, in the array's own type.
    operand: Shape,
    packing: Option<Packing>,
}

/// The type that a kernel reads, of another width than the array's.
struct Packing {
    element_type: ElementType,
    rows: Rows,
}

#[derive(Clone, Copy)]
enum Rows {
    /// This number of the array's rows is one row of the operand.
    Packed(u64),
    /// One row of the array is this number of the operand's rows.
    Unpacked(u64),
}

impl Reading {
    /// The likeliest way from an array to an operand of this type and these bounds; `None` without any.
    pub(crate) fn likeliest(array: &Shape, element_type: ElementType, bounds: &[u64]) -> Option<Self> {
        let own: Vec<u64> = array.bounds()?;
        let own_type = array.element_type()?;
        let mut bounds = bounds.to_vec();
        let mut packing = None;
        if own_type != element_type {
            let rows = Rows::between(own_type, element_type)?;
            let at = bounds.len().checked_sub(2)?;
            bounds[at] = rows.of_array(bounds[at])?;
            packing = Some(Packing { element_type, rows });
        }
        let rearrangement = Rearrangement::likeliest(&own, &bounds)?;
        Some(Self { rearrangement, operand: Shape::array(own_type, bounds).ok()?, packing })
    }

    /// Whether the kernel can read the array as it is.
    pub(crate) fn is_free(&self, array: &Shape, generation: Generation) -> bool {
        let is_itself =
            |view: &View| view.access == ViewAccess::IndexMap && view.shape.dimensions() == self.operand.dimensions();
        self.packing.is_none() && View::of(array, &self.rearrangement, generation).iter().any(is_itself)
    }

    /// Views that avoid a copy of the array, the least change of the kernel first.
    pub(crate) fn views(&self, array: &Shape, generation: Generation) -> Vec<RemedyWords> {
        let mut views = View::of(array, &self.rearrangement, generation);
        // Only rows of one block are packed.
        let last = if self.packing.is_some() { ViewAccess::Lanes } else { ViewAccess::Split };
        views.retain(|view| view.access <= last);
        // The least folded one of each kind.
        views.dedup_by_key(|view| view.access);
        let words = |view: &View| {
            let words = RemedyWords::of_view(view, &self.operand);
            let is_same = view.shape.dimensions() == self.operand.dimensions() && view.keeps_order();
            self.packing.as_ref().map_or(words.clone(), |packing| packing.read(words, is_same))
        };
        views.iter().map(words).collect()
    }
}

impl Packing {
    /// Adds the kernel's bitcast of the packed words to a view's words.
    fn read(&self, words: RemedyWords, is_same: bool) -> RemedyWords {
        let name = jax_name(self.element_type);
        let read = format!("x_ref[...] is x_ref.bitcast(jnp.{name})[...]");
        let (rows, inside) = match self.rows {
            Rows::Packed(1) => (String::new(), format!("# {read}")),
            Rows::Packed(count) => (
                format!(": {count} rows of a block are one"),
                format!("# blocks of b rows become blocks of {count} * b, and {read}"),
            ),
            Rows::Unpacked(count) => (
                format!(": a row of a block is {count}"),
                format!("# blocks of b rows become blocks of b // {count}, and {read}"),
            ),
        };
        let code = words.code.filter(|_| !is_same).map_or(inside.clone(), |code| format!("{code}\n{inside}"));
        RemedyWords { sentence: format!("{}, read as {name} inside{rows}", words.sentence), code: Some(code), ..words }
    }
}

impl Rows {
    fn between(array: ElementType, operand: ElementType) -> Option<Self> {
        let [array, operand] = [array.bits(), operand.bits()].map(u64::from);
        let is_whole = |of: u64, by: u64| by > 0 && of.is_multiple_of(by);
        if is_whole(operand, array) {
            Some(Self::Packed(operand / array))
        } else {
            is_whole(array, operand).then(|| Self::Unpacked(array / operand))
        }
    }

    /// The number of the array's rows for this number of the operand's.
    fn of_array(self, rows: u64) -> Option<u64> {
        match self {
            Self::Packed(count) => rows.checked_mul(count),
            Self::Unpacked(count) => rows.is_multiple_of(count).then(|| rows / count),
        }
    }
}

/// JAX's name of a type: `bfloat16`, `uint32`, `float8_e4m3fn`.
pub(crate) fn jax_name(element_type: ElementType) -> String {
    let (name, bits) = (element_type.name(), element_type.bits());
    match element_type.kind() {
        ElementKind::Signed => format!("int{bits}"),
        ElementKind::Unsigned => format!("uint{bits}"),
        _ => match name.split_at_checked(2) {
            Some((float, format)) if format.starts_with('e') => format!("float{}_{format}", &float[1..]),
            _ => name.replacen('f', "float", 1),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(array: &str, element_type: ElementType, bounds: &[u64]) -> Option<[String; 2]> {
        let array: Shape = array.parse().expect("a shape");
        let views = Reading::likeliest(&array, element_type, bounds)?.views(&array, Generation::V6e);
        let view = views.into_iter().next()?;
        Some([view.shape?, view.code?])
    }

    #[test]
    fn rows_are_packed_into_words_inside() {
        let [shape, code] = first("bf16[8192,128]{1,0:T(8,128)(2,1)}", ElementType::U32, &[4096, 128]).expect("a view");
        assert_eq!(shape, "bf16[8192,128]{1,0:T(8,128)(2,1)}");
        assert_eq!(code, "# blocks of b rows become blocks of 2 * b, and x_ref[...] is x_ref.bitcast(jnp.uint32)[...]");
    }

    #[test]
    fn words_are_read_as_rows_inside() {
        let [shape, code] = first("s32[1024,128]{1,0:T(8,128)}", ElementType::S8, &[4096, 128]).expect("a view");
        assert_eq!(shape, "s32[1024,128]{1,0:T(8,128)}");
        assert!(code.ends_with("blocks of b // 4, and x_ref[...] is x_ref.bitcast(jnp.int8)[...]"), "{code}");
    }

    #[test]
    fn lanes_are_not_packed() {
        // Words of neighbours in a row: 256 columns can't be 128 words without moving elements.
        assert!(first("bf16[4096,256]{1,0:T(8,128)(2,1)}", ElementType::U32, &[4096, 128]).is_none());
        assert!(first("bf16[3,128]{1,0:T(4,128)(2,1)}", ElementType::U32, &[2, 128]).is_none());
    }

    #[test]
    fn types_have_their_names() {
        let names = [ElementType::Bf16, ElementType::F32, ElementType::U8, ElementType::F8e4m3fn].map(jax_name);
        assert_eq!(names, ["bfloat16", "float32", "uint8", "float8_e4m3fn"]);
    }
}
