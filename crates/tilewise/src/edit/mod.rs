//! Edits of shapes, as in XLA's `ShapeUtil`.
//!
//! Layouts change as in XLA: most edits keep tiles and everything else, which then apply to the new dimensions;
//! inserting a dimension and moving one to major keep the order alone. Each edit documents it. The result is checked
//! like any shape.

mod layout;

use crate::{
    ArrayShape, Dimension, ElementKind, ElementType, Error, ErrorKind, Layout, Shape,
    inline::InlineVec,
    layout::{first_not_in_permutation, not_a_permutation},
    shape::Node,
};
use alloc::{format, vec, vec::Vec};

impl Shape {
    /// The shape with this element type; of a tuple, every leaf. The layout stays as it is, but for its element size:
    /// `E(n)` stays if the new type has fewer than 8 bits (`pred` is stored in 8), and is dropped otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`] for a token or an opaque value, also in a tuple; [`ErrorKind::Overflow`].
    ///
    /// ```
    /// use tilewise::{ElementType, Shape};
    ///
    /// let shape: Shape = "f32[3,5]{1,0:T(2,2)E(32)}".parse()?;
    /// assert_eq!(shape.change_element_type(ElementType::S8)?.to_string(), "s8[3,5]{1,0:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ChangeElementType")]
    pub fn change_element_type(&self, element_type: ElementType) -> Result<Self, Error> {
        self.each_array(|array| {
            let mut layout = array.layout.clone();
            if let Some(layout) = layout.as_mut().filter(|_| !is_packed(element_type)) {
                layout.element_size_in_bits = None;
            }
            ArrayShape::new(element_type, array.dimensions.clone(), layout)
        })
    }

    /// The shape of the real or the imaginary parts of complex numbers.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], and [`ErrorKind::UnsupportedElementType`] unless the elements are complex.
    ///
    /// ```
    /// let shape: tilewise::Shape = "c64[3]{0:S(1)}".parse()?;
    /// assert_eq!(shape.complex_component_shape()?.to_string(), "f32[3]{0:S(1)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ComplexComponentShape")]
    pub fn complex_component_shape(&self) -> Result<Self, Error> {
        match self.array_to_edit()?.element_type {
            ElementType::C64 => self.change_element_type(ElementType::F32),
            ElementType::C128 => self.change_element_type(ElementType::F64),
            other => Err(Error::new(ErrorKind::UnsupportedElementType, format!("{other} isn't a complex type"))),
        }
    }

    /// The array with another dimension of this size behind its own, the most major in memory. The layout stays as it is otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::Overflow`]; [`ErrorKind::InvalidSplitConfig`] where a split, which numbers dimensions of memory,
    /// does not fit the new ones.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]{1,0:T(2,2)}".parse()?;
    /// assert_eq!(shape.append_major_dimension(7)?.to_string(), "f32[3,5,7]{1,0,2:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "AppendMajorDimension")]
    pub fn append_major_dimension(&self, bound: u64) -> Result<Self, Error> {
        self.appended(bound, |order, new| order.push(new))
    }

    /// The array with another dimension of this size behind its own, the most minor in memory. The layout stays as it is otherwise.
    ///
    /// # Errors
    /// As for [`append_major_dimension`](Self::append_major_dimension).
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]{1,0:T(2,2)}".parse()?;
    /// assert_eq!(shape.append_minor_dimension(7)?.to_string(), "f32[3,5,7]{2,1,0:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "AppendMinorDimension")]
    pub fn append_minor_dimension(&self, bound: u64) -> Result<Self, Error> {
        self.appended(bound, |order, new| order.insert(0, new))
    }

    fn appended(&self, bound: u64, place: impl Fn(&mut Vec<usize>, usize)) -> Result<Self, Error> {
        self.array_edited(|array| {
            let mut dimensions = array.dimensions.clone();
            let new = dimensions.len();
            dimensions.push(Dimension::fixed(bound)?);
            let layout = array.layout.as_ref().map(|layout| {
                let mut order = layout.minor_to_major.to_vec();
                place(&mut order, new);
                Layout { minor_to_major: order.into_iter().collect(), ..layout.clone() }
            });
            ArrayShape::new(array.element_type, dimensions, layout)
        })
    }

    /// The array with a dimension of this size in front of dimension `index`; at the end it is the most minor in
    /// memory, elsewhere the next more major than the one behind it.
    ///
    /// As in XLA, only the order of dimensions stays of the layout, bounded dimensions become static, and a buffer
    /// becomes an array.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::IndexOutOfBounds`], [`ErrorKind::Overflow`];
    /// [`ErrorKind::UnboundedDimension`] for a dimension `?`, which can't be static.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]{0,1:T(2,2)}".parse()?;
    /// assert_eq!(shape.insert_dimension_at_index(1, 7)?.to_string(), "f32[3,7,5]{0,2,1}");
    /// assert_eq!(shape.insert_dimension_at_index(2, 7)?.to_string(), "f32[3,5,7]{2,0,1}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "InsertDimensionAtIndex")]
    pub fn insert_dimension_at_index(&self, index: usize, bound: u64) -> Result<Self, Error> {
        self.insert_dimensions_at_index(index, &[bound])
    }

    /// As [`insert_dimension_at_index`](Self::insert_dimension_at_index), for several consecutive dimensions.
    ///
    /// # Errors
    /// As for [`insert_dimension_at_index`](Self::insert_dimension_at_index).
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]".parse()?;
    /// assert_eq!(shape.insert_dimensions_at_index(0, &[1, 2])?.to_string(), "f32[1,2,3,5]{3,2,1,0}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "InsertDimensionsAtIndex")]
    pub fn insert_dimensions_at_index(&self, index: usize, bounds: &[u64]) -> Result<Self, Error> {
        let array = self.array_to_edit()?;
        let rank = array.rank();
        if index > rank {
            let message = format!("there is no place {index} between the dimensions of an array of rank {rank}");
            return Err(Error::new(ErrorKind::IndexOutOfBounds, message));
        }
        let mut sizes: Vec<u64> = array.static_bounds()?;
        sizes.splice(index..index, bounds.iter().copied());
        let layout = array.layout.as_ref().map(|layout| {
            let inserted = || (index..index + bounds.len()).rev();
            let mut order: Vec<usize> = if index == rank { inserted().collect() } else { Vec::new() };
            for &dimension in &*layout.minor_to_major {
                order.push(if dimension >= index { dimension + bounds.len() } else { dimension });
                if dimension == index {
                    order.extend(inserted());
                }
            }
            Layout::of_order(order.into_iter().collect())
        });
        let dimensions = sizes.into_iter().map(Dimension::fixed).collect::<Result<_, _>>()?;
        Ok(ArrayShape::new(array.element_type, dimensions, layout)?.into())
    }

    /// The array without the dimension of that number. The layout keeps its tiles, which then apply to the remaining
    /// dimensions; a split of the dimension is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::IndexOutOfBounds`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,4,5]{0,2,1:T(2,2)}".parse()?;
    /// assert_eq!(shape.delete_dimension(0)?.to_string(), "f32[4,5]{1,0:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "DeleteDimension")]
    pub fn delete_dimension(&self, dimension: usize) -> Result<Self, Error> {
        self.delete_dimensions(&[dimension])
    }

    /// The array without the dimensions of these numbers, which may stand in any order.
    ///
    /// # Errors
    /// As for [`delete_dimension`](Self::delete_dimension), also where one is named twice.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,4,5]{0,2,1:T(2,2)}".parse()?;
    /// assert_eq!(shape.delete_dimensions(&[0, 1])?.to_string(), "f32[5]{0:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "DeleteDimensions")]
    pub fn delete_dimensions(&self, dimensions: &[usize]) -> Result<Self, Error> {
        let rank = self.array_to_edit()?.rank();
        let mut is_deleted = vec![false; rank];
        for &dimension in dimensions {
            match is_deleted.get_mut(dimension) {
                Some(place) if !*place => *place = true,
                Some(_) => {
                    let message = format!("dimension {dimension} is named twice");
                    return Err(Error::new(ErrorKind::IndexOutOfBounds, message));
                }
                None => return Err(no_dimension(dimension, rank)),
            }
        }
        self.filter_dimensions(|dimension| !is_deleted[dimension])
    }

    /// The array with only the dimensions whose number satisfies the predicate; otherwise as
    /// [`delete_dimension`](Self::delete_dimension).
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,4,5]".parse()?;
    /// assert_eq!(shape.filter_dimensions(|dimension| dimension != 1)?.to_string(), "f32[3,5]{1,0}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "FilterDimensions")]
    pub fn filter_dimensions(&self, mut is_kept: impl FnMut(usize) -> bool) -> Result<Self, Error> {
        self.array_edited(|array| {
            // The new number of each dimension that is kept.
            let mut numbers = Vec::with_capacity(array.rank());
            let mut dimensions = InlineVec::new();
            for (number, &dimension) in array.dimensions.iter().enumerate() {
                let is_kept = is_kept(number);
                numbers.push(is_kept.then_some(dimensions.len()));
                if is_kept {
                    dimensions.push(dimension);
                }
            }
            let layout = array.layout.as_ref().map(|layout| layout.renumbered(&numbers));
            ArrayShape::new(array.element_type, dimensions, layout)
        })
    }

    /// The array without its dimensions of size 1; otherwise as [`delete_dimension`](Self::delete_dimension).
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "bf16[8,1,1280]{2,0,1:T(8,128)(2,1)}".parse()?;
    /// assert_eq!(shape.drop_degenerate_dimensions()?.to_string(), "bf16[8,1280]{1,0:T(8,128)(2,1)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "DropDegenerateDimensions")]
    pub fn drop_degenerate_dimensions(&self) -> Result<Self, Error> {
        let bounds: Vec<Option<u64>> = self.array_to_edit()?.dimensions.iter().map(|d| d.bound()).collect();
        self.filter_dimensions(|dimension| bounds[dimension] != Some(1))
    }

    /// The array with its dimensions in another order: dimension i is the old dimension `permutation[i]`. Its layout
    /// changes with them, so that no byte moves: the two are bitcasts of each other, tiles included.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::NotAPermutation`].
    ///
    /// ```
    /// use tilewise::{BitcastAs, Shape};
    ///
    /// let shape: Shape = "f32[3,4,5]{0,2,1:T(2,2)}".parse()?;
    /// let permuted = shape.permute_dimensions(&[2, 0, 1])?;
    /// assert_eq!(permuted.to_string(), "f32[5,3,4]{1,0,2:T(2,2)}");
    /// assert!(shape.bitcast(&permuted, BitcastAs::Transpose)?.is_bitcast());
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "PermuteDimensions")]
    #[doc(alias = "ReorderLogicalDimensions")]
    pub fn permute_dimensions(&self, permutation: &[usize]) -> Result<Self, Error> {
        self.array_edited(|array| {
            check_permutation(permutation, array.rank())?;
            let dimensions = permutation.iter().map(|&from| array.dimensions[from]).collect();
            let mut numbers = vec![None; permutation.len()];
            for (to, &from) in permutation.iter().enumerate() {
                numbers[from] = Some(to);
            }
            let layout = array.layout.as_ref().map(|layout| layout.renumbered(&numbers));
            ArrayShape::new(array.element_type, dimensions, layout)
        })
    }

    /// The array with this dimension the most major in memory; of a tuple, every leaf. As in XLA, only the order of
    /// dimensions stays of the layout; [`Layout::move_dim_to_major`] keeps the rest. A missing layout counts as the
    /// default one.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`] for a token or an opaque value, also in a tuple; [`ErrorKind::IndexOutOfBounds`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,4,5]{2,1,0:T(2,2)}".parse()?;
    /// assert_eq!(shape.move_dim_to_major(2)?.to_string(), "f32[3,4,5]{1,0,2}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MoveDimToMajor")]
    pub fn move_dim_to_major(&self, dimension: usize) -> Result<Self, Error> {
        self.each_array(|array| {
            let layout = array.layout.clone().unwrap_or_else(|| Layout::row_major(array.rank()));
            let order = layout.move_dim_to_major(dimension)?.minor_to_major;
            ArrayShape::new(array.element_type, array.dimensions.clone(), Some(Layout::of_order(order)))
        })
    }

    /// The array with its dimensions in the order of memory, major to minor, and the layout `{N-1,…,0}`: the same
    /// bytes, tiles included. Index and pointer types, splits and the metadata prefix are dropped.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], and [`ErrorKind::MissingLayout`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,4,5]{0,2,1:T(2,2)S(1)}".parse()?;
    /// let descending = shape.with_descending_layout_and_same_physical_layout()?;
    /// assert_eq!(descending.to_string(), "f32[4,5,3]{2,1,0:T(2,2)S(1)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MakeShapeWithDescendingLayoutAndSamePhysicalLayout")]
    pub fn with_descending_layout_and_same_physical_layout(&self) -> Result<Self, Error> {
        self.array_edited(|array| {
            let Some(own) = &array.layout else {
                return Err(Error::new(ErrorKind::MissingLayout, "the shape has no layout whose order could be taken"));
            };
            let dimensions = array.major_to_minor().map(|dimension| array.dimensions[dimension]).collect();
            let layout = Layout {
                tiles: own.tiles.clone(),
                element_size_in_bits: own.element_size_in_bits,
                tail_padding_alignment: own.tail_padding_alignment,
                memory_space: own.memory_space,
                ..Layout::row_major(array.rank())
            };
            ArrayShape::new(array.element_type, dimensions, Some(layout))
        })
    }

    /// The shape with every bounded dimension static, leaves of tuples included. The metadata prefix of an array is
    /// dropped; in a tuple, as in XLA, only that of dynamic arrays.
    ///
    /// # Errors
    /// [`ErrorKind::UnboundedDimension`] for a dimension `?`: XLA then makes an invalid shape.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[<=3,5]{1,0:M(8)}".parse()?;
    /// assert_eq!(shape.static_shape()?.to_string(), "f32[3,5]{1,0}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MakeStaticShape")]
    #[doc(alias = "MakeShapeWithStaticDimensions")]
    pub fn static_shape(&self) -> Result<Self, Error> {
        let is_alone = self.as_array().is_some();
        let nodes = self.nodes().iter().map(|node| {
            let mut node = node.clone();
            if let Node::Array(array) | Node::Buffer(array) = &mut node {
                let is_dynamic = array.dimensions.iter().any(|dimension| dimension.is_dynamic());
                array.dimensions =
                    array.static_bounds()?.into_iter().map(Dimension::fixed).collect::<Result<_, _>>()?;
                if let Some(layout) = array.layout.as_mut().filter(|_| is_alone || is_dynamic) {
                    layout.dynamic_shape_metadata_prefix_bytes = 0;
                }
            }
            Ok(node)
        });
        Ok(Self::of_nodes(nodes.collect::<Result<_, Error>>()?))
    }

    /// The array with this dimension dynamic, bounded by its size, or static. The layout stays as it is.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::IndexOutOfBounds`]; [`ErrorKind::UnboundedDimension`] if a `?` is made
    /// static.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[8,5]{0,1:T(2,2)}".parse()?;
    /// assert_eq!(shape.update_dynamic_dimension(0, true)?.to_string(), "f32[<=8,5]{0,1:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "UpdateDynamicDimension")]
    pub fn update_dynamic_dimension(&self, dimension: usize, is_dynamic: bool) -> Result<Self, Error> {
        self.array_edited(|array| {
            let mut dimensions = array.dimensions.clone();
            let rank = dimensions.len();
            let place = dimensions.get_mut(dimension).ok_or_else(|| no_dimension(dimension, rank))?;
            *place = match (place.bound(), is_dynamic) {
                (Some(bound), true) => Dimension::bounded(bound)?,
                (Some(size), false) => Dimension::fixed(size)?,
                (None, true) => *place,
                (None, false) => {
                    return Err(Error::new(
                        ErrorKind::UnboundedDimension,
                        "a dimension `?` has no size to be static with",
                    ));
                }
            };
            ArrayShape::new(array.element_type, dimensions, array.layout.clone())
        })
    }

    fn array_to_edit(&self) -> Result<&ArrayShape, Error> {
        self.as_array().ok_or_else(|| no_array(self.kind().name()))
    }

    /// Edits the array, or the buffer's array.
    fn array_edited(&self, edit: impl FnOnce(&ArrayShape) -> Result<ArrayShape, Error>) -> Result<Self, Error> {
        match self.nodes() {
            [Node::Array(array)] => Ok(Self::of_leaf(Node::Array(edit(array)?))),
            [Node::Buffer(array)] => Ok(Self::of_leaf(Node::Buffer(edit(array)?))),
            _ => Err(no_array(self.kind().name())),
        }
    }

    /// Edits every array, also those in tuples and buffers; an error if there is another leaf.
    fn each_array(&self, edit: impl Fn(&ArrayShape) -> Result<ArrayShape, Error>) -> Result<Self, Error> {
        let edited = |node: &Node| {
            Ok(match node {
                Node::Tuple(descendants) => Node::Tuple(*descendants),
                Node::Array(array) => Node::Array(edit(array)?),
                Node::Buffer(array) => Node::Buffer(edit(array)?),
                Node::Token => return Err(no_array("token")),
                Node::Opaque => return Err(no_array("opaque")),
            })
        };
        Ok(Self::of_nodes(self.nodes().iter().map(edited).collect::<Result<_, Error>>()?))
    }

    /// Changes every array in a way that can't make it invalid.
    fn each_array_unchecked(&self, change: impl Fn(&mut ArrayShape)) -> Self {
        let mut nodes = self.nodes().to_vec();
        for node in &mut nodes {
            if let Node::Array(array) | Node::Buffer(array) = node {
                change(array);
            }
        }
        Self::of_nodes(nodes)
    }

    fn each_layout(&self, change: impl Fn(&mut Layout, ElementType)) -> Self {
        self.each_array_unchecked(|array| {
            let element_type = array.element_type;
            array.layout.iter_mut().for_each(|layout| change(layout, element_type));
        })
    }
}

impl ArrayShape {
    fn static_bounds(&self) -> Result<Vec<u64>, Error> {
        let bounds: Option<Vec<u64>> = self.dimensions.iter().map(|dimension| dimension.bound()).collect();
        bounds.ok_or_else(|| Error::new(ErrorKind::UnboundedDimension, "a dimension `?` has no size to be static with"))
    }
}

/// XLA's "sub-byte non-pred" types, whose elements can be packed.
fn is_packed(element_type: ElementType) -> bool {
    element_type.bits() < 8 && element_type.kind() != ElementKind::Predicate
}

fn check_permutation(permutation: &[usize], rank: usize) -> Result<(), Error> {
    if permutation.len() != rank {
        let message = format!("a permutation of {rank} dimensions has {rank} numbers, not {}", permutation.len());
        return Err(Error::new(ErrorKind::NotAPermutation, message));
    }
    match first_not_in_permutation(permutation) {
        None => Ok(()),
        Some(at) => Err(not_a_permutation(&format!("{}", permutation[at]), permutation[at] < rank, rank)),
    }
}

pub(crate) fn no_dimension(dimension: usize, rank: usize) -> Error {
    let message = format!("there is no dimension {dimension} in an array of rank {rank}");
    Error::new(ErrorKind::IndexOutOfBounds, message)
}

fn no_array(kind: &str) -> Error {
    let what = if kind == "opaque" { "an opaque value" } else { &format!("a {kind}") };
    Error::new(ErrorKind::NotAnArray, format!("{what} has no dimensions and no element type to change"))
}
