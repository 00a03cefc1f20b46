//! Shapes: arrays, tuples of shapes, and the kinds that hold no elements.

use crate::{ArrayShape, Dimension, ElementType, Error, ErrorKind, Layout, inline::InlineVec};
use alloc::{format, string::ToString, sync::Arc, vec::Vec};
use core::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::Range,
};

/// The deepest nesting of tuples in a text or a proto: enough for every program, and small enough for every stack.
///
/// XLA's own text parser exhausts the stack at about 7,300.
pub const MAX_NESTING: usize = 1024;

/// An XLA shape: an array, a tuple, a token, an opaque value or a buffer.
///
/// Parse one with [`str::parse`], which fills in XLA's default layout where none is written, or with
/// [`parse_as_written`](Shape::parse_as_written), which leaves it out. `Display` prints XLA's text, byte for byte.
/// Cloning costs no allocation for the shapes found in programs. Equality, order and hash are XLA's.
///
/// ```
/// use tilewise::Shape;
///
/// let shape: Shape = "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}".parse()?;
/// assert_eq!(shape.to_string(), "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}");
/// assert_eq!("f32[2, 3]".parse::<Shape>()?.to_string(), "f32[2,3]{1,0}");
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone)]
pub struct Shape(Repr);

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "arrays are the common case, and parse without touching the heap")]
enum Repr {
    Leaf(Node),
    /// A tuple's nodes are a range of its root's, so that taking an element out shares them.
    Tuple(Arc<[Node]>, Range<usize>),
}

/// A shape tree in pre-order: flat, so that no depth of nesting can exhaust a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Node {
    Token,
    Opaque,
    /// The number of nodes that follow and belong to the tuple.
    Tuple(usize),
    Array(ArrayShape),
    Buffer(ArrayShape),
}

impl Node {
    /// Makes the node an array of that type, without dimensions and layout for now.
    pub(crate) fn insert_array(&mut self, element_type: ElementType) -> &mut ArrayShape {
        *self = Self::Array(ArrayShape { element_type, dimensions: InlineVec::new(), layout: None });
        match self {
            Self::Array(array) => array,
            _ => unreachable!("it was inserted"),
        }
    }

    /// The number of nodes of the shape that starts here.
    pub(crate) fn extent(&self) -> usize {
        if let Self::Tuple(descendants) = self { descendants + 1 } else { 1 }
    }
}

/// The kind of a [`Shape`], for matching.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ShapeKind<'a> {
    /// An array.
    Array(&'a ArrayShape),
    /// A tuple; [`Shape::elements`] gives its parts.
    Tuple,
    /// `token[]`: an ordering between operations, without data.
    Token,
    /// `opaque[]`: a value only a custom call understands.
    Opaque,
    /// `b(array)`: a reference to memory that holds the array.
    Buffer(&'a ArrayShape),
}

impl ShapeKind<'_> {
    /// The kind in one word: `array`, `tuple`, `token`, `opaque` or `buffer`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Array(_) => "array",
            Self::Tuple => "tuple",
            Self::Token => "token",
            Self::Opaque => "opaque",
            Self::Buffer(_) => "buffer",
        }
    }
}

impl Shape {
    /// An array with static bounds, in elements, and XLA's default layout, major to minor.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] if a bound, the element count or the byte count is above 2^63 − 1.
    ///
    /// ```
    /// use tilewise::{ElementType, Shape};
    ///
    /// assert_eq!(Shape::array(ElementType::F32, [3, 5])?.to_string(), "f32[3,5]{1,0}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MakeShape")]
    pub fn array(element_type: ElementType, bounds: impl IntoIterator<Item = u64>) -> Result<Self, Error> {
        let mut dimensions = InlineVec::new();
        for bound in bounds {
            dimensions.push(Dimension::fixed(bound)?);
        }
        Self::of_dimensions(element_type, dimensions)
    }

    /// An array with dimensions of any kind and XLA's default layout, major to minor.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] if the element count or the byte count is above 2^63 − 1.
    pub fn dynamic_array(
        element_type: ElementType,
        dimensions: impl IntoIterator<Item = Dimension>,
    ) -> Result<Self, Error> {
        Self::of_dimensions(element_type, dimensions.into_iter().collect())
    }

    fn of_dimensions(element_type: ElementType, dimensions: InlineVec<Dimension, 6>) -> Result<Self, Error> {
        let layout = Layout::row_major(dimensions.len());
        Ok(Self(Repr::Leaf(Node::Array(ArrayShape::new(element_type, dimensions, Some(layout))?))))
    }

    /// A tuple of these shapes.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let element: Shape = "f32[2]".parse()?;
    /// assert_eq!(Shape::tuple([element.clone(), element]).to_string(), "(f32[2]{0}, f32[2]{0})");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MakeTupleShape")]
    #[must_use]
    pub fn tuple(elements: impl IntoIterator<Item = Self>) -> Self {
        let mut nodes = alloc::vec![Node::Tuple(0)];
        for element in elements {
            nodes.extend_from_slice(element.nodes());
        }
        nodes[0] = Node::Tuple(nodes.len() - 1);
        Self::of_nodes(nodes)
    }

    /// `token[]`.
    #[must_use]
    pub const fn token() -> Self {
        Self(Repr::Leaf(Node::Token))
    }

    /// `opaque[]`.
    #[must_use]
    pub const fn opaque() -> Self {
        Self(Repr::Leaf(Node::Opaque))
    }

    /// `b(array)`: a reference to memory that holds the array.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidBuffer`] unless the shape is an array.
    pub fn buffer(array: Self) -> Result<Self, Error> {
        match array.0 {
            Repr::Leaf(Node::Array(array)) => Ok(Self(Repr::Leaf(Node::Buffer(array)))),
            _ => Err(invalid_buffer()),
        }
    }

    pub(crate) fn of_nodes(mut nodes: Vec<Node>) -> Self {
        match nodes.pop() {
            Some(leaf) if nodes.is_empty() && !matches!(leaf, Node::Tuple(_)) => Self::of_leaf(leaf),
            last => {
                nodes.extend(last);
                let all = 0..nodes.len();
                Self(Repr::Tuple(nodes.into(), all))
            }
        }
    }

    /// The node of a leaf; a tuple is replaced with a leaf first.
    pub(crate) fn as_leaf_mut(&mut self) -> &mut Node {
        if let Repr::Tuple(..) = self.0 {
            self.0 = Repr::Leaf(Node::Token);
        }
        match &mut self.0 {
            Repr::Leaf(node) => node,
            Repr::Tuple(..) => unreachable!("it was replaced"),
        }
    }

    pub(crate) const fn of_leaf(leaf: Node) -> Self {
        Self(Repr::Leaf(leaf))
    }

    /// The shape's nodes in pre-order, the first its own.
    pub(crate) fn nodes(&self) -> &[Node] {
        match &self.0 {
            Repr::Leaf(node) => core::slice::from_ref(node),
            Repr::Tuple(nodes, range) => &nodes[range.clone()],
        }
    }

    /// The shape with this layout in place of its own.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::LayoutRankMismatch`], or [`ErrorKind::InvalidSplitConfig`] where a split does not
    /// fit the bounds.
    #[doc(alias = "MakeShapeWithDenseLayout")]
    pub fn with_layout(&self, layout: Layout) -> Result<Self, Error> {
        let rebuild =
            |array: &ArrayShape| ArrayShape::new(array.element_type, array.dimensions.clone(), Some(layout.clone()));
        match &self.0 {
            Repr::Leaf(Node::Array(array)) => Ok(Self(Repr::Leaf(Node::Array(rebuild(array)?)))),
            Repr::Leaf(Node::Buffer(array)) => Ok(Self(Repr::Leaf(Node::Buffer(rebuild(array)?)))),
            _ => Err(self.not_an_array()),
        }
    }

    /// The kind of shape.
    #[must_use]
    pub fn kind(&self) -> ShapeKind<'_> {
        match &self.0 {
            Repr::Leaf(Node::Array(array)) => ShapeKind::Array(array),
            Repr::Leaf(Node::Buffer(array)) => ShapeKind::Buffer(array),
            Repr::Leaf(Node::Token) => ShapeKind::Token,
            Repr::Leaf(Node::Opaque) => ShapeKind::Opaque,
            Repr::Leaf(Node::Tuple(_)) | Repr::Tuple(..) => ShapeKind::Tuple,
        }
    }

    /// The array, also of a buffer; `None` for a tuple, token or opaque.
    #[must_use]
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self.kind() {
            ShapeKind::Array(array) | ShapeKind::Buffer(array) => Some(array),
            _ => None,
        }
    }

    pub(crate) fn array_or_error(&self) -> Result<&ArrayShape, Error> {
        self.as_array().ok_or_else(|| self.not_an_array())
    }

    fn not_an_array(&self) -> Error {
        let name = self.kind().name();
        let what = if name == "opaque" { "an opaque value" } else { &format!("a {name}") };
        let error = Error::new(ErrorKind::NotAnArray, format!("{what} has no elements of its own to index or count"));
        if name == "tuple" { error.with_help("ask each of its leaves") } else { error }
    }

    /// The array's element type; `None` unless the shape is an array or a buffer.
    #[must_use]
    pub fn element_type(&self) -> Option<ElementType> {
        self.as_array().map(ArrayShape::element_type)
    }

    /// The array's dimensions; empty unless the shape is an array or a buffer.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        self.as_array().map_or(&[], ArrayShape::dimensions)
    }

    /// The [bounds](ArrayShape::bounds) of the array's dimensions; empty unless the shape is an array or a buffer.
    #[must_use]
    pub fn bounds(&self) -> Option<Vec<u64>> {
        self.dimensions().iter().map(|dimension| dimension.bound()).collect()
    }

    /// The array's layout; `None` without one, and unless the shape is an array or a buffer.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.as_array().and_then(ArrayShape::layout)
    }

    /// The dimension of this number; negative ones count from the end, −1 being the last.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], or [`ErrorKind::IndexOutOfBounds`] outside −N … N−1 (XLA aborts there).
    ///
    /// ```
    /// # use tilewise::Shape;
    /// let shape: Shape = "f32[3,5,7]".parse()?;
    /// assert_eq!(shape.dimension(-2)?.bound(), Some(5));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "GetDimension")]
    pub fn dimension(&self, number: i64) -> Result<Dimension, Error> {
        let array = self.array_or_error()?;
        Ok(array.dimensions[array.dimension_number(number)?])
    }

    /// A tuple's elements, in order; none for anything else.
    ///
    /// ```
    /// # use tilewise::Shape;
    /// let shape: Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// let parts: Vec<_> = shape.elements().map(|e| e.to_string()).collect();
    /// assert_eq!(parts, ["f32[2]{0}", "(token[], s8[])"]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn elements(&self) -> impl Iterator<Item = Self> + '_ {
        let (nodes, mut rest) = match &self.0 {
            Repr::Leaf(_) => (None, 0..0),
            Repr::Tuple(nodes, range) => (Some(nodes), range.start + 1..range.end),
        };
        core::iter::from_fn(move || {
            let nodes = nodes.filter(|_| !rest.is_empty())?;
            let own = rest.start..rest.start + nodes[rest.start].extent();
            rest.start = own.end;
            Some(match &nodes[own.start] {
                Node::Tuple(_) => Self(Repr::Tuple(nodes.clone(), own)),
                leaf => Self(Repr::Leaf(leaf.clone())),
            })
        })
    }

    /// Every leaf of the shape in order, each with its path through the tuples (XLA's `ShapeIndex`); a shape that is no tuple
    /// is its own only leaf, at the empty path.
    ///
    /// ```
    /// # use tilewise::Shape;
    /// let shape: Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// let paths: Vec<_> = shape.leaves().map(|(path, _)| path).collect();
    /// assert_eq!(paths, [vec![0], vec![1, 0], vec![1, 1]]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn leaves(&self) -> impl Iterator<Item = (Vec<usize>, Self)> + '_ {
        let nodes = self.nodes();
        let mut at = 0;
        // `ends` holds the end of each open tuple, `path` the position in each.
        let (mut ends, mut path) = (Vec::new(), Vec::<usize>::new());
        core::iter::from_fn(move || {
            while at < nodes.len() {
                while ends.last() == Some(&at) {
                    ends.pop();
                    path.pop();
                }
                if let Some(position) = path.last_mut() {
                    *position = position.wrapping_add(1);
                }
                let here = at;
                at += 1;
                if let Node::Tuple(descendants) = nodes[here] {
                    ends.push(at + descendants);
                    path.push(usize::MAX);
                } else {
                    return Some((path.clone(), Self(Repr::Leaf(nodes[here].clone()))));
                }
            }
            None
        })
    }

    /// The part of the shape at a place in its pre-order, in which a tuple comes before its elements: 0 is all of it.
    ///
    /// ```
    /// # use tilewise::Shape;
    /// let shape: Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// let part = |place| shape.part(place).map(|part| part.to_string());
    /// assert_eq!((part(0), part(2)), (Some(shape.to_string()), Some("(token[], s8[])".into())));
    /// assert_eq!((part(4), part(5)), (Some("s8[]".into()), None));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn part(&self, place: usize) -> Option<Self> {
        let (nodes, range) = match &self.0 {
            Repr::Leaf(_) => return (place == 0).then(|| self.clone()),
            Repr::Tuple(nodes, range) => (nodes, range),
        };
        let at = range.start.checked_add(place).filter(|at| *at < range.end)?;
        Some(match &nodes[at] {
            Node::Tuple(descendants) => Self(Repr::Tuple(nodes.clone(), at..at + 1 + descendants)),
            leaf => Self(Repr::Leaf(leaf.clone())),
        })
    }

    /// Whether the two print alike: stricter than `==`, which ignores the dynamic shape metadata prefix.
    #[must_use]
    pub fn identical(&self, other: &Self) -> bool {
        self == other && self.to_string() == other.to_string()
    }
}

pub(crate) fn invalid_buffer() -> Error {
    Error::new(ErrorKind::InvalidBuffer, "a buffer `b(…)` holds exactly one array")
}

pub(crate) fn nesting_too_deep() -> Error {
    Error::new(ErrorKind::NestingTooDeep, format!("tuples may nest {MAX_NESTING} levels deep"))
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.nodes() == other.nodes()
    }
}

impl Eq for Shape {}

impl PartialOrd for Shape {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Shape {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nodes().cmp(other.nodes())
    }
}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nodes().hash(state);
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({self})")
    }
}

impl From<ArrayShape> for Shape {
    fn from(array: ArrayShape) -> Self {
        Self::of_leaf(Node::Array(array))
    }
}
