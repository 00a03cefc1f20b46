//! Equality that leaves parts out, XLA's `Shape::Equal` and what is derived from it.

use crate::{ArrayShape, ElementKind, ElementType, Layout, Shape, shape::Node};
use alloc::{collections::BTreeSet, vec::Vec};

/// Compares shapes and leaves parts out; what is left is compared as `==` does. XLA's `Shape::Equal`.
///
/// ```
/// use tilewise::{Shape, ShapeEqual};
///
/// let (one, other): (Shape, Shape) = ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}".parse()?, "bf16[8,128]".parse()?);
/// assert!(!ShapeEqual::new().ignore_tiles_in_layout().holds(&one, &other));
/// assert!(ShapeEqual::new().ignore_tiles_in_layout().ignore_memory_space_in_layout().holds(&one, &other));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShapeEqual {
    /// A bit for each part that is left out.
    ignored: u16,
}

macro_rules! ignored {
    ($($(#[$doc:meta])* $name:ident = $part:ident $bit:literal;)+) => {
        $(const $part: u16 = 1 << $bit;)+

        impl ShapeEqual {
            $($(#[$doc])*
            #[must_use]
            pub const fn $name(self) -> Self {
                Self { ignored: self.ignored | $part }
            })+
        }
    };
}

ignored! {
    /// Leaves out layouts, also whether there are any.
    ignore_layout = LAYOUT 0;
    /// Leaves out tiles.
    ignore_tiles_in_layout = TILES 1;
    /// Leaves out `E(n)`.
    ignore_element_size_in_layout = ELEMENT_SIZE 2;
    /// Leaves out `S(n)`.
    ignore_memory_space_in_layout = MEMORY_SPACE 3;
    /// Leaves out element types.
    ignore_element_type = ELEMENT_TYPE 4;
    /// Leaves out which of the floating-point types one is.
    ignore_fp_precision = PRECISION 5;
    /// Leaves out whether dimensions are dynamic; an unbounded one is then like any other.
    ignore_dynamic_dimension = DYNAMIC 6;
    /// Leaves out the sizes of dimensions, not how many there are.
    ignore_dimensions = DIMENSIONS 7;
    /// Leaves out `L(n)`.
    ignore_tail_padding_alignment_in_elements = TAIL_PADDING 8;
    /// Leaves out `SC(…)`.
    ignore_split_config_in_layout = SPLITS 9;
    /// Takes a buffer as its array.
    ignore_buffer = BUFFER 10;
}

impl ShapeEqual {
    /// A comparison that leaves nothing out.
    #[must_use]
    pub const fn new() -> Self {
        Self { ignored: 0 }
    }

    /// Leaves out all of a layout that XLA's text writes behind the order but `#(t)` and `*(t)`: tiles, `L(n)`, `E(n)`, `S(n)`, `SC(…)`.
    #[must_use]
    pub const fn minor_to_major_only_in_layout(self) -> Self {
        Self { ignored: self.ignored | TILES | ELEMENT_SIZE | MEMORY_SPACE | TAIL_PADDING | SPLITS }
    }

    /// Whether the two are equal but for what is left out.
    #[must_use]
    pub fn holds(self, one: &Shape, other: &Shape) -> bool {
        let (one, other) = (one.nodes(), other.nodes());
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.nodes(one, other))
    }

    const fn ignores(self, part: u16) -> bool {
        self.ignored & part != 0
    }

    fn nodes(self, one: &Node, other: &Node) -> bool {
        match (one, other) {
            (Node::Tuple(one), Node::Tuple(other)) => one == other,
            (Node::Token, Node::Token) | (Node::Opaque, Node::Opaque) => true,
            (Node::Array(one), Node::Array(other)) | (Node::Buffer(one), Node::Buffer(other)) => {
                self.arrays(one, other)
            }
            (Node::Array(one), Node::Buffer(other)) | (Node::Buffer(one), Node::Array(other)) => {
                self.ignores(BUFFER) && self.arrays(one, other)
            }
            _ => false,
        }
    }

    fn arrays(self, one: &ArrayShape, other: &ArrayShape) -> bool {
        let same_type = one.element_type == other.element_type
            || self.ignores(ELEMENT_TYPE)
            || (self.ignores(PRECISION) && is_float(one.element_type) && is_float(other.element_type));
        let same_dimensions = one.rank() == other.rank()
            && one.dimensions.iter().zip(&*other.dimensions).all(|(one, other)| {
                let is_any = self.ignores(DYNAMIC) && (one.is_unbounded() || other.is_unbounded());
                (self.ignores(DIMENSIONS) || is_any || one.bound() == other.bound())
                    && (self.ignores(DYNAMIC) || one.is_dynamic() == other.is_dynamic())
            });
        let same_layout = self.ignores(LAYOUT)
            || match (&one.layout, &other.layout) {
                (Some(one), Some(other)) => self.layouts(one, other),
                (one, other) => one.is_none() && other.is_none(),
            };
        same_type && same_dimensions && same_layout
    }

    /// Whether two layouts are equal but for what is left out.
    #[must_use]
    pub fn layouts(self, one: &Layout, other: &Layout) -> bool {
        one.minor_to_major == other.minor_to_major
            && (self.ignores(TILES) || one.tiles == other.tiles)
            && (self.ignores(TAIL_PADDING) || one.tail_padding_alignment == other.tail_padding_alignment)
            && one.index_primitive_type == other.index_primitive_type
            && one.pointer_primitive_type == other.pointer_primitive_type
            && (self.ignores(ELEMENT_SIZE) || one.element_size_in_bits == other.element_size_in_bits)
            && (self.ignores(MEMORY_SPACE) || one.memory_space == other.memory_space)
            && (self.ignores(SPLITS) || one.split_configs == other.split_configs)
    }
}

impl Shape {
    /// Whether the two have the same element types and dimensions, in the same tuples: layouts and what is dynamic are left out.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let (one, other): (Shape, Shape) = ("(f32[2,3]{0,1}, s8[<=4])".parse()?, "(f32[2,3]{1,0}, s8[4])".parse()?);
    /// assert!(one.compatible(&other) && one != other);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "Compatible")]
    #[must_use]
    pub fn compatible(&self, other: &Self) -> bool {
        ShapeEqual::new().ignore_dynamic_dimension().ignore_layout().holds(self, other)
    }

    /// As [`compatible`](Self::compatible), and leaves out element types.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// assert!("f32[2,3]".parse::<Shape>()?.compatible_ignoring_element_type(&"s8[2,3]".parse()?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "CompatibleIgnoringElementType")]
    #[must_use]
    pub fn compatible_ignoring_element_type(&self, other: &Self) -> bool {
        ShapeEqual::new().ignore_dynamic_dimension().ignore_element_type().ignore_layout().holds(self, other)
    }

    /// As [`compatible`](Self::compatible), and takes all floating-point types as one.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape: Shape = "f32[2,3]".parse()?;
    /// assert!(shape.compatible_ignoring_fp_precision(&"bf16[2,3]".parse()?));
    /// assert!(!shape.compatible_ignoring_fp_precision(&"s32[2,3]".parse()?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "CompatibleIgnoringFpPrecision")]
    #[must_use]
    pub fn compatible_ignoring_fp_precision(&self, other: &Self) -> bool {
        ShapeEqual::new().ignore_dynamic_dimension().ignore_fp_precision().ignore_layout().holds(self, other)
    }

    /// Whether the two are the same tuples of leaves of the same kinds and ranks.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// assert!("(f32[2,3], token[])".parse::<Shape>()?.compatible_kind(&"(s8[4,5], token[])".parse()?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "CompatibleKind")]
    #[must_use]
    pub fn compatible_kind(&self, other: &Self) -> bool {
        let equal = ShapeEqual::new().ignore_element_type().ignore_layout().ignore_dimensions();
        equal.ignore_dynamic_dimension().holds(self, other)
    }

    /// `==` without the element types.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// assert!("f32[2]{0:S(1)}".parse::<Shape>()?.equal_ignoring_element_type(&"s8[2]{0:S(1)}".parse()?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "EqualIgnoringElementType")]
    #[must_use]
    pub fn equal_ignoring_element_type(&self, other: &Self) -> bool {
        ShapeEqual::new().ignore_element_type().holds(self, other)
    }

    /// `==` with all floating-point types as one.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// assert!("f32[2]".parse::<Shape>()?.equal_ignoring_fp_precision(&"bf16[2]".parse()?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "EqualIgnoringFpPrecision")]
    #[must_use]
    pub fn equal_ignoring_fp_precision(&self, other: &Self) -> bool {
        ShapeEqual::new().ignore_fp_precision().holds(self, other)
    }

    /// Whether the two have parts at the same paths through their tuples, whatever their leaves are.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape: Shape = "(f32[2], (s8[], token[]))".parse()?;
    /// assert!(shape.equal_structure(&"(u8[], (u8[], u8[]))".parse()?));
    /// assert!(!shape.equal_structure(&"((u8[], u8[]), u8[])".parse()?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "EqualStructure")]
    #[must_use]
    pub fn equal_structure(&self, other: &Self) -> bool {
        let paths = |shape: &Self| shape.subshapes().map(|(path, _)| path).collect::<BTreeSet<Vec<usize>>>();
        self.nodes().len() == other.nodes().len() && paths(self) == paths(other)
    }

    /// Whether two arrays have the same dimensions, of any element types; an unbounded one is like any other. False of what is no array.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape: Shape = "f32[2,?]".parse()?;
    /// assert!(shape.same_dimensions(&"s8[2,3]{0,1}".parse()?) && !shape.same_dimensions(&"s8[2]".parse()?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "SameDimensions")]
    #[doc(alias = "SameRank")]
    #[must_use]
    pub fn same_dimensions(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (self.as_array(), other.as_array()) else { return false };
        one.rank() == other.rank()
            && one
                .dimensions
                .iter()
                .zip(&*other.dimensions)
                .all(|(one, other)| one.is_unbounded() || other.is_unbounded() || one.bound() == other.bound())
    }
}

fn is_float(element_type: ElementType) -> bool {
    element_type.kind() == ElementKind::Float
}
