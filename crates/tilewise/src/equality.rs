//! Equality that ignores chosen parts: XLA's `Shape::Equal` and its variants.

use crate::{ArrayShape, ElementKind, ElementType, Layout, Shape, shape::Node};
use alloc::{collections::BTreeSet, vec::Vec};

/// Compares shapes, ignoring chosen parts; the rest is compared as by `==`. XLA's `Shape::Equal`.
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
    /// One bit per ignored part.
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
    /// Ignores layouts, and whether there are any.
    ignore_layout = LAYOUT 0;
    /// Ignores tiles.
    ignore_tiles_in_layout = TILES 1;
    /// Ignores `E(n)`.
    ignore_element_size_in_layout = ELEMENT_SIZE 2;
    /// Ignores `S(n)`.
    ignore_memory_space_in_layout = MEMORY_SPACE 3;
    /// Ignores element types.
    ignore_element_type = ELEMENT_TYPE 4;
    /// Treats all floating-point types as equal.
    ignore_fp_precision = PRECISION 5;
    /// Ignores whether dimensions are dynamic; an unbounded one then equals any other.
    ignore_dynamic_dimension = DYNAMIC 6;
    /// Ignores the sizes of dimensions, not their number.
    ignore_dimensions = DIMENSIONS 7;
    /// Ignores `L(n)`.
    ignore_tail_padding_alignment_in_elements = TAIL_PADDING 8;
    /// Ignores `SC(…)`.
    ignore_split_config_in_layout = SPLITS 9;
    /// Treats a buffer as its array.
    ignore_buffer = BUFFER 10;
}

impl ShapeEqual {
    /// The strictest comparison, without ignored parts.
    #[must_use]
    pub const fn new() -> Self {
        Self { ignored: 0 }
    }

    /// Ignores all of a layout but its order, `#(t)` and `*(t)`: tiles, `L(n)`, `E(n)`, `S(n)`, `SC(…)`.
    #[must_use]
    pub const fn minor_to_major_only_in_layout(self) -> Self {
        Self { ignored: self.ignored | TILES | ELEMENT_SIZE | MEMORY_SPACE | TAIL_PADDING | SPLITS }
    }

    /// Whether the two are equal but for the ignored parts.
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

    /// Whether two layouts are equal but for the ignored parts.
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
    /// Whether the two have the same element types and dimensions, in the same tuples. Ignores layouts, and whether
    /// dimensions are dynamic.
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

    /// As [`compatible`](Self::compatible), but ignores element types.
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

    /// As [`compatible`](Self::compatible), but treats all floating-point types as equal.
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

    /// Whether the two are the same tuples, with leaves of the same kinds and ranks.
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

    /// `==`, but treats all floating-point types as equal.
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

    /// Whether two arrays have the same dimensions, of any element types; an unbounded one equals any other. False
    /// unless both are arrays.
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
