//! `Layout`.

use crate::{
    builtins::{str_of, tuple_repr},
    element_type::{PyElementType, element_type},
    errors::{Error, Result},
    few::{self, Few},
    travel::{Reduced, native},
    typed::Tuple,
    whole::whole,
};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBytes, PyString},
};
use tilewise::{Layout, SplitConfig, Tile, TileDimension};

/// How an array lies in memory: the order of its dimensions, its tiles, and everything else XLA writes between braces.
///
/// Args:
///     minor_to_major: a permutation of 0 … N−1: dimension numbers from the fastest-varying to the slowest; or the whole
///         layout as XLA writes it, `"{1,0:T(8,128)}"`.
///     tiles: the sizes of each tile in elements, major to minor; each tile is applied to the result of the one before.
///         `None`, or −1 as in the documents, is XLA's `*`, which merges a dimension into the next. Or the tile's text, `"(8,128)"`.
///     tail_padding_alignment: the element count is padded to a multiple of this, XLA's `L(n)`.
///     element_size_in_bits: bits of one stored element, XLA's `E(n)`; `None` for the element type's whole bytes.
///     memory_space: 0 … 127, XLA's `S(n)`; 0 is the device's default memory.
///     split_configs: (dimension, indices) pairs, XLA's `SC(…)`: the physical dimensions that are split between
///         memories, and the indices before which they are split.
///     dynamic_shape_metadata_prefix_bytes: bytes of run-time sizes in front of the data, XLA's `M(n)`; not compared.
///     index_primitive_type: the type of a sparse array's indices, XLA's `#(t)`: u8, u16, u32 or u64.
///     pointer_primitive_type: the type of its pointers, XLA's `*(t)`.
///
/// Raises:
///     ParseError: the string is not a layout.
///     ShapeError: `minor_to_major` is not a permutation, a tile is empty, or a number is out of range.
///
/// Examples:
///     >>> layout = Layout((1, 0), tiles=[(8, 128), (2, 1)])
///     >>> str(layout)
///     '{1,0:T(8,128)(2,1)}'
///     >>> Layout("{1,0:T(8,128)(2,1)}") == layout
///     True
///     >>> str(Shape.array("bf16", (16, 256), layout))
///     'bf16[16,256]{1,0:T(8,128)(2,1)}'
#[pyclass(frozen, eq, hash, module = "tilewise", name = "Layout")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyLayout(pub(crate) Layout);

type Split = (usize, Few<u64>);

#[pymethods]
impl PyLayout {
    #[new]
    #[pyo3(signature = (minor_to_major: "Sequence[int] | str", *,
                        tiles: "Sequence[Sequence[int | None] | str]" = Few(Vec::new()),
                        tail_padding_alignment: "int" = 1, element_size_in_bits: "int | None" = None,
                        memory_space: "int" = 0, split_configs: "Sequence[tuple[int, Sequence[int]]]" = Few(Vec::new()),
                        dynamic_shape_metadata_prefix_bytes: "int" = 0,
                        index_primitive_type: "ElementType | DtypeLike | None" = None,
                        pointer_primitive_type: "ElementType | DtypeLike | None" = None),
           text_signature = "(minor_to_major, *, tiles=(), tail_padding_alignment=1, element_size_in_bits=None, \
                             memory_space=0, split_configs=(), dynamic_shape_metadata_prefix_bytes=0, \
                             index_primitive_type=None, pointer_primitive_type=None)")]
    #[expect(clippy::too_many_arguments, reason = "those of a layout, by name")]
    fn new(
        minor_to_major: &Bound<'_, PyAny>,
        tiles: Few<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = whole)] tail_padding_alignment: u64,
        #[pyo3(from_py_with = whole)] element_size_in_bits: Option<u64>,
        #[pyo3(from_py_with = whole)] memory_space: u8,
        split_configs: Few<Split>,
        #[pyo3(from_py_with = whole)] dynamic_shape_metadata_prefix_bytes: u64,
        index_primitive_type: Option<&Bound<'_, PyAny>>,
        pointer_primitive_type: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let types = [index_primitive_type, pointer_primitive_type];
        if let Ok(text) = minor_to_major.cast::<PyString>() {
            let is_alone = tiles.is_empty()
                && split_configs.is_empty()
                && element_size_in_bits.is_none()
                && types.iter().all(Option::is_none);
            let numbers = (tail_padding_alignment, memory_space, dynamic_shape_metadata_prefix_bytes);
            if !is_alone || numbers != (1, 0, 0) {
                let message = "a layout's text has all of its parts: give either the text or the parts";
                return Err(PyTypeError::new_err(message).into());
            }
            return Ok(Self(parsed(str_of(text)?)?));
        }
        let [index_type, pointer_type] =
            types.map(|given| given.filter(|given| !given.is_none()).map(element_type).transpose());
        let minor_to_major: Few<usize> = minor_to_major.extract()?;
        let tiles: Vec<Tile> = tiles.iter().map(tile_of).collect::<Result<_, _>>()?;
        let splits =
            split_configs.into_iter().map(|(dimension, indices)| SplitConfig { dimension, split_indices: indices.0 });
        let layout = Layout::new(minor_to_major.0)?
            .with_tiles(tiles)?
            .with_tail_padding_alignment(tail_padding_alignment)?
            .with_element_size_in_bits(element_size_in_bits.unwrap_or(0))?
            .with_memory_space(memory_space)?
            .with_split_configs(splits)
            .with_dynamic_shape_metadata_prefix_bytes(dynamic_shape_metadata_prefix_bytes)
            .with_index_primitive_type(index_type?)?
            .with_pointer_primitive_type(pointer_type?)?;
        Ok(Self(layout))
    }

    /// XLA's default layout for that rank: the last dimension varies fastest.
    ///
    /// Examples:
    ///     >>> Layout.row_major(3)
    ///     Layout((2, 1, 0))
    #[staticmethod]
    #[pyo3(signature = (rank: "int", /), text_signature = "(rank, /)")]
    fn row_major(#[pyo3(from_py_with = whole)] rank: usize) -> Result<Self> {
        few::check(rank)?;
        Ok(Self(Layout::row_major(rank)))
    }

    /// The layout of that rank whose dimensions ascend from minor to major, `{0,…,N-1}`: the first dimension varies fastest.
    ///
    /// Examples:
    ///     >>> Layout.ascending(3)
    ///     Layout((0, 1, 2))
    #[staticmethod]
    #[pyo3(signature = (rank: "int", /), text_signature = "(rank, /)")]
    fn ascending(#[pyo3(from_py_with = whole)] rank: usize) -> Result<Self> {
        few::check(rank)?;
        Ok(Self(Layout::ascending(rank)))
    }

    /// The layout of that rank whose dimensions descend from minor to major: `row_major` under XLA's other name.
    ///
    /// Examples:
    ///     >>> Layout.descending(3)
    ///     Layout((2, 1, 0))
    #[staticmethod]
    #[pyo3(signature = (rank: "int", /), text_signature = "(rank, /)")]
    fn descending(#[pyo3(from_py_with = whole)] rank: usize) -> Result<Self> {
        few::check(rank)?;
        Ok(Self(Layout::descending(rank)))
    }

    /// A layout with this order of dimensions, the slowest-varying first, and nothing else.
    ///
    /// Raises:
    ///     ShapeError: not a permutation of 0 … N−1.
    ///
    /// Examples:
    ///     >>> Layout.from_major_to_minor((1, 0, 2))
    ///     Layout((2, 0, 1))
    #[staticmethod]
    #[pyo3(signature = (major_to_minor, /), text_signature = "(major_to_minor, /)")]
    fn from_major_to_minor(major_to_minor: Few<usize>) -> Result<Self> {
        Ok(Self(Layout::from_major_to_minor(major_to_minor)?))
    }

    /// The layout in a serialised `xla.LayoutProto` message.
    ///
    /// Raises:
    ///     ShapeError: the bytes are not such a message.
    ///
    /// Examples:
    ///     >>> Layout.from_proto(bytes.fromhex("0a020001"))
    ///     Layout((0, 1))
    #[staticmethod]
    #[pyo3(signature = (message, /), text_signature = "(message, /)")]
    fn from_proto(message: &[u8]) -> Result<Self> {
        Ok(Self(Layout::decode_proto(message)?))
    }

    /// The layout as a serialised `xla.LayoutProto` message, byte for byte as XLA writes it.
    ///
    /// Examples:
    ///     >>> Layout((0, 1)).to_proto().hex()
    ///     '0a020001800101'
    fn to_proto<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode_proto())
    }

    /// The layout with this dimension the most major; everything else stays.
    ///
    /// Raises:
    ///     OutOfRangeError: there is no such dimension.
    ///
    /// Examples:
    ///     >>> str(Layout("{2,1,0:T(2,2)}").move_dim_to_major(2))
    ///     '{1,0,2:T(2,2)}'
    #[pyo3(signature = (dimension: "int", /), text_signature = "($self, dimension, /)")]
    fn move_dim_to_major(&self, #[pyo3(from_py_with = whole)] dimension: usize) -> Result<Self> {
        Ok(Self(self.0.move_dim_to_major(dimension)?))
    }

    /// The layout with this dimension the most minor; everything else stays.
    ///
    /// Raises:
    ///     OutOfRangeError: there is no such dimension.
    ///
    /// Examples:
    ///     >>> str(Layout("{2,1,0:T(2,2)}").move_dim_to_minor(0))
    ///     '{0,2,1:T(2,2)}'
    #[pyo3(signature = (dimension: "int", /), text_signature = "($self, dimension, /)")]
    fn move_dim_to_minor(&self, #[pyo3(from_py_with = whole)] dimension: usize) -> Result<Self> {
        Ok(Self(self.0.move_dim_to_minor(dimension)?))
    }

    /// For each dimension its place in memory, 0 the most major.
    ///
    /// Examples:
    ///     >>> Layout((0, 2, 1)).logical_to_physical()
    ///     (2, 0, 1)
    fn logical_to_physical(&self) -> Tuple<usize> {
        Tuple(self.0.logical_to_physical())
    }

    /// Whether these dimensions are neighbours in memory, in any order.
    ///
    /// Examples:
    ///     >>> Layout((0, 2, 1)).are_dimensions_consecutive((0, 2))
    ///     True
    #[pyo3(signature = (dimensions, /), text_signature = "($self, dimensions, /)")]
    fn are_dimensions_consecutive(&self, dimensions: Few<usize>) -> bool {
        self.0.are_dimensions_consecutive(&dimensions)
    }

    /// Dimension numbers from the fastest-varying to the slowest.
    #[getter]
    fn minor_to_major(&self) -> Tuple<usize> {
        self.0.minor_to_major().into()
    }

    /// The tiles in the order of their application, each a tuple of sizes in elements; `None` is XLA's `*`.
    #[getter]
    fn tiles(&self) -> Tuple<Tuple<Option<u64>>> {
        self.0.tiles().iter().map(|tile| tile.dimensions().iter().map(|d| d.size()).collect()).collect()
    }

    /// The element count is padded to a multiple of this; 1 means no padding at the end.
    #[getter]
    fn tail_padding_alignment(&self) -> u64 {
        self.0.tail_padding_alignment()
    }

    /// Bits of one stored element; `None` for the element type's whole bytes.
    #[getter]
    fn element_size_in_bits(&self) -> Option<u64> {
        self.0.element_size_in_bits()
    }

    /// The memory space, 0 … 127.
    #[getter]
    fn memory_space(&self) -> u8 {
        self.0.memory_space()
    }

    /// The memory space's name on a TPU, such as `'hbm'`.
    #[getter]
    fn memory_space_name(&self) -> String {
        tilewise::tpu::memory_space_name(self.0.memory_space()).into_owned()
    }

    /// The physical dimensions that are split between memories: (dimension, indices) pairs.
    #[getter]
    fn split_configs(&self) -> Tuple<(usize, Tuple<u64>)> {
        let pair = |split: &SplitConfig| (split.dimension, split.split_indices.as_slice().into());
        self.0.split_configs().iter().map(pair).collect()
    }

    /// The index type of a sparse array, which XLA still reads but no longer validates.
    #[getter]
    fn index_primitive_type(&self) -> Option<PyElementType> {
        self.0.index_primitive_type().map(PyElementType)
    }

    /// The pointer type of a sparse array, which XLA still reads but no longer validates.
    #[getter]
    fn pointer_primitive_type(&self) -> Option<PyElementType> {
        self.0.pointer_primitive_type().map(PyElementType)
    }

    /// Bytes of run-time sizes in front of the data; ignored by `==`, and included in no size.
    #[getter]
    fn dynamic_shape_metadata_prefix_bytes(&self) -> u64 {
        self.0.dynamic_shape_metadata_prefix_bytes()
    }

    /// The name of the dimension order, where it has one: `'row-major'` ("dim 0 is major"), `'column-major'` ("dim 0 is minor").
    #[getter]
    fn order_name(&self) -> Option<&'static str> {
        self.0.order_name()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let layout = &self.0;
        let mut parts = vec![tuple_repr(layout.minor_to_major().iter().map(ToString::to_string))];
        let size = |d: &TileDimension| d.size().map_or("None".to_owned(), |size| size.to_string());
        if !layout.tiles().is_empty() {
            let tiles = layout.tiles().iter().map(|tile| tuple_repr(tile.dimensions().iter().map(size)));
            parts.push(format!("tiles={}", tuple_repr(tiles)));
        }
        let mut number = |name: &str, value: u64, default: u64| {
            if value != default {
                parts.push(format!("{name}={value}"));
            }
        };
        number("tail_padding_alignment", layout.tail_padding_alignment(), 1);
        number("element_size_in_bits", layout.element_size_in_bits().unwrap_or(0), 0);
        number("memory_space", layout.memory_space().into(), 0);
        number("dynamic_shape_metadata_prefix_bytes", layout.dynamic_shape_metadata_prefix_bytes(), 0);
        for (name, named) in [
            ("index_primitive_type", layout.index_primitive_type()),
            ("pointer_primitive_type", layout.pointer_primitive_type()),
        ] {
            parts.extend(named.map(|named| format!("{name}='{named}'")));
        }
        if !layout.split_configs().is_empty() {
            let splits = layout.split_configs().iter().map(|split| {
                let indices = tuple_repr(split.split_indices.iter().map(ToString::to_string));
                format!("({}, {indices})", split.dimension)
            });
            parts.push(format!("split_configs={}", tuple_repr(splits)));
        }
        format!("Layout({})", parts.join(", "))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, (String,)>> {
        let layout = &slf.get().0;
        let order = layout.minor_to_major();
        // The smallest array that the layout fits: the text of a shape carries every part of a layout.
        let mut bounds = vec![1; order.len()];
        for split in layout.split_configs() {
            if let (Some(&axis), Some(last)) = (order.iter().rev().nth(split.dimension), split.split_indices.last()) {
                bounds[axis] = last.saturating_add(1);
            }
        }
        let bounds: Vec<String> = bounds.iter().map(u64::to_string).collect();
        Ok((native(slf.py(), "layout_in")?, (format!("pred[{}]{layout}", bounds.join(",")),)))
    }
}

/// The layout in a shape's text. Pickled layouts call it.
#[pyfunction]
pub(crate) fn layout_in(shape: &str) -> Result<PyLayout> {
    let shape = tilewise::Shape::parse_as_written(shape).map_err(|error| Error::in_text(error, shape))?;
    Ok(PyLayout(shape.layout().cloned().unwrap_or_else(|| Layout::row_major(0))))
}

/// The layout of a `Layout` or of a `str`.
pub(crate) fn layout_of(value: &Bound<'_, PyAny>) -> Result<Layout> {
    if let Ok(layout) = value.cast::<PyLayout>() {
        return Ok(layout.get().0.clone());
    }
    let Ok(text) = value.cast::<PyString>() else {
        let message = format!("expected a Layout or a str, not {}", value.get_type().name()?);
        return Err(PyTypeError::new_err(message).into());
    };
    parsed(str_of(text)?)
}

fn parsed(text: &str) -> Result<Layout> {
    text.parse().map_err(|error| Error::in_text(error, text))
}

/// The tile of a `str`, or of its sizes.
fn tile_of(value: &Bound<'_, PyAny>) -> Result<Tile> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = str_of(text)?;
        return text.parse().map_err(|error| Error::in_text(error, text));
    }
    let sizes: Vec<Option<i64>> = value.extract()?;
    let dimension = |size: Option<i64>| size.map_or(Ok(TileDimension::Combined), TileDimension::try_from);
    let dimensions = sizes.into_iter().map(dimension).collect::<Result<Vec<_>, tilewise::Error>>()?;
    Ok(Tile::from_dimensions(dimensions)?)
}
