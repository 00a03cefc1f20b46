//! Text → shape. One pass, no recursion, and no allocation for an array of up to six dimensions and three tiles.

use super::lexer::Lexer;
use crate::{
    ArrayShape, Dimension, ElementType, Error, ErrorKind, Layout, Shape, SplitConfig, Tile, TileDimension,
    array::{check_split, rank_mismatch},
    dimension::bound_of_signed,
    element_type::sparse_type_error,
    inline::InlineVec,
    layout::{self, first_not_in_permutation, not_a_permutation, physical_shape_not_allowed},
    shape::{MAX_NESTING, Node, invalid_buffer, nesting_too_deep},
};
use alloc::{collections::BTreeSet, format, string::ToString, vec, vec::Vec};
use core::{ops::Range, str::FromStr};

impl FromStr for Shape {
    type Err = Error;

    /// Reads XLA's text of a shape. A missing layout becomes the default, major to minor, as in XLA.
    ///
    /// # Errors
    /// The first error, with its bytes. Texts that XLA accepts by accident, or crashes on, are refused with a named
    /// error.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut shape = Shape::token();
        Parser::new(text, Missing::Default).whole(&mut shape)?;
        Ok(shape)
    }
}

impl Shape {
    /// Reads XLA's text of a shape and leaves a missing layout missing.
    ///
    /// Memory reports and messages print shapes such as `f32[20000,12]` without tiles; asking the size of such a shape
    /// is an error, never the row-major answer.
    ///
    /// # Errors
    /// As for [`str::parse`].
    ///
    /// ```
    /// use tilewise::{ErrorKind, Shape, Tiled};
    ///
    /// let shape = Shape::parse_as_written("f32[20000,12]")?;
    /// assert_eq!(shape.to_string(), "f32[20000,12]");
    /// assert_eq!(Tiled::new(&shape).unwrap_err().kind(), ErrorKind::MissingLayout);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn parse_as_written(text: &str) -> Result<Self, Error> {
        let mut shape = Self::token();
        Parser::new(text, Missing::Leave).whole(&mut shape)?;
        Ok(shape)
    }

    /// Reads the shape that the text begins with, as written, and returns the number of bytes read, too.
    ///
    /// For readers of HLO text, where `f32[42] {` opens a computation: `{` starts a layout only in front of a number or `:`,
    /// as in XLA's lexer.
    ///
    /// # Errors
    /// As for [`str::parse`], but for trailing text.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let (shape, length) = Shape::parse_prefix("f32[2]{0} add(a, b)")?;
    /// assert_eq!((shape.to_string().as_str(), length), ("f32[2]{0}", 9));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn parse_prefix(text: &str) -> Result<(Self, usize), Error> {
        let mut parser = Parser { prefix: true, ..Parser::new(text, Missing::Leave) };
        let mut shape = Self::token();
        parser.shape(&mut shape)?;
        Ok((shape, parser.lexer.position()))
    }
}

impl FromStr for Layout {
    type Err = Error;

    /// Reads a layout alone, `{1,0:T(8,128)}`, with its braces or without, for an array of the rank that it orders.
    ///
    /// # Errors
    /// As for a shape's text; the span is in this one.
    ///
    /// ```
    /// let layout: tilewise::Layout = "3,2,0,1:T(8,128)(2,1)".parse()?;
    /// assert_eq!(layout.to_string(), "{3,2,0,1:T(8,128)(2,1)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, Error> {
        let inner = text.trim_start_matches([' ', '\t', '\n', '\r']);
        let missing = || Error::new(ErrorKind::EmptyInput, "there is no layout here").at(0..text.len());
        if inner.is_empty() {
            return Err(missing());
        }
        let is_braced = inner.starts_with('{');
        let order = inner.trim_start_matches('{').split([':', '}']).next().unwrap_or_default();
        let rank = if order.trim().is_empty() { 0 } else { order.split(',').count() };
        // A layout's text depends on bounds only where it splits dimensions.
        let in_array = |bound: u64| -> Result<Shape, Error> {
            let before =
                format!("pred[{}]{}", vec![bound.to_string(); rank].join(","), if is_braced { "" } else { "{" });
            let whole = format!("{before}{text}{}", if is_braced { "" } else { "}" });
            whole.parse().map_err(|error: Error| error.unshifted(before.len(), text.len()))
        };
        let large = 60_u32.checked_div(u32::try_from(rank).unwrap_or(u32::MAX)).map_or(1, |bits| 1 << bits);
        let shape = in_array(1).or_else(|refused| in_array(large).map_err(|_| refused))?;
        shape.layout().cloned().ok_or_else(missing)
    }
}

/// The help for a text without a shape where one is expected.
const SHAPE: &str = "a shape begins with its element type, such as `f32[2,3]{0,1:T(2,2)}`; a layout alone is `{0,1}`";

/// The treatment of a missing layout.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Default,
    Leave,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    missing: Missing,
    prefix: bool,
}

/// An open bracket around shapes.
struct Frame {
    /// The container's place among the nodes.
    node: usize,
    /// The byte of the first shape inside.
    start: usize,
    is_buffer: bool,
}

/// The layout properties in the order in which XLA prints them, and the only order it reads.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Property {
    DimLevelTypes,
    Tiles,
    TailPadding,
    IndexType,
    PointerType,
    ElementSize,
    MemorySpace,
    SplitConfigs,
    PhysicalShape,
    MetadataPrefix,
}

impl Property {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "D" => Self::DimLevelTypes,
            "T" => Self::Tiles,
            "L" => Self::TailPadding,
            "E" => Self::ElementSize,
            "S" => Self::MemorySpace,
            "SC" => Self::SplitConfigs,
            "P" => Self::PhysicalShape,
            "M" => Self::MetadataPrefix,
            _ => return None,
        })
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, missing: Missing) -> Self {
        Self { lexer: Lexer::new(text), missing, prefix: false }
    }

    fn whole(mut self, out: &mut Shape) -> Result<(), Error> {
        if self.lexer.peek()?.is_none() {
            return Err(self.lexer.error(ErrorKind::EmptyInput, 0..self.lexer.position(), "there is no shape here"));
        }
        self.shape(out)?;
        if self.lexer.peek()?.is_some() {
            let rest = self.lexer.position()..self.lexer.text().trim_end().len().max(self.lexer.position());
            return Err(Error::new(ErrorKind::TrailingInput, "the shape ends here, and more text follows").at(rest));
        }
        Ok(())
    }

    /// Reads one shape into its final place: moving a shape takes as long as reading it.
    fn shape(&mut self, out: &mut Shape) -> Result<(), Error> {
        let mut nodes = Vec::new();
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            match self.opening()? {
                Some(is_buffer) => {
                    if frames.len() == MAX_NESTING {
                        let at = self.lexer.position();
                        return Err(nesting_too_deep().at(at - 1..at));
                    }
                    let empty = !is_buffer && self.lexer.peek()? == Some(b')');
                    frames.push(Frame { node: nodes.len(), start: self.lexer.position(), is_buffer });
                    if !is_buffer {
                        nodes.push(Node::Tuple(0));
                    }
                    if !empty {
                        continue;
                    }
                }
                None => {
                    if frames.is_empty() {
                        return self.leaf(out.as_leaf_mut());
                    }
                    nodes.push(Node::Token);
                    if let Some(leaf) = nodes.last_mut() {
                        self.leaf(leaf)?;
                    }
                }
            }
            // A shape is complete: close the brackets that end here.
            loop {
                let Some(frame) = frames.last() else {
                    *out = Shape::of_nodes(nodes);
                    return Ok(());
                };
                let is_empty_tuple = !frame.is_buffer && nodes.len() == frame.node + 1;
                if !frame.is_buffer && !is_empty_tuple && self.lexer.eat(b',')? {
                    break;
                }
                let what =
                    if frame.is_buffer { "`)` after the buffer's array" } else { "`,` or `)` after a tuple's element" };
                self.lexer.expect(b')', what)?;
                self.close(frame, &mut nodes)?;
                frames.pop();
            }
        }
    }

    fn close(&self, frame: &Frame, nodes: &mut Vec<Node>) -> Result<(), Error> {
        if !frame.is_buffer {
            nodes[frame.node] = Node::Tuple(nodes.len() - frame.node - 1);
            return Ok(());
        }
        match nodes.pop() {
            Some(Node::Array(array)) if nodes.len() == frame.node => {
                nodes.push(Node::Buffer(array));
                Ok(())
            }
            _ => Err(invalid_buffer().at(frame.start..self.lexer.position() - 1)),
        }
    }

    /// Consumes `(` or `b(`, and returns whether it opens a buffer; `None` if neither is next.
    fn opening(&mut self) -> Result<Option<bool>, Error> {
        match self.lexer.peek()? {
            Some(b'(') => {
                self.lexer.eat(b'(')?;
                Ok(Some(false))
            }
            Some(b'b') => {
                let start = self.lexer.position();
                if matches!(self.lexer.identifier()?, Some("b")) && self.lexer.eat(b'(')? {
                    return Ok(Some(true));
                }
                self.lexer.rewind(start);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// An array, token or opaque.
    #[inline]
    fn leaf(&mut self, out: &mut Node) -> Result<(), Error> {
        let Some(name) = self.lexer.identifier()? else {
            return Err(self.lexer.expected("a shape").with_help(SHAPE));
        };
        let span = self.lexer.token();
        if let Some(element_type) = ElementType::from_name(name) {
            return self.array(out.insert_array(element_type), span.start);
        }
        *out = if name.eq_ignore_ascii_case("token") {
            Node::Token
        } else if name.eq_ignore_ascii_case("opaque") {
            Node::Opaque
        } else {
            return Err(super::unknown_element_type(name, span));
        };
        if !self.lexer.eat(b'[')? {
            return Err(self.lexer.expected(&format!("`[]` after `{name}`")));
        }
        if !self.lexer.eat(b']')? {
            let start = self.lexer.position();
            self.dimensions(&mut InlineVec::new())?;
            return Err(self
                .lexer
                .error(
                    ErrorKind::DimensionsNotAllowed,
                    start..self.lexer.position() - 1,
                    format!("`{name}` has no dimensions"),
                )
                .with_help(format!("write `{}[]`", name.to_ascii_lowercase())));
        }
        let after = self.lexer.position();
        if self.layout_follows()? {
            let start = self.lexer.position();
            return Err(self.lexer.error(
                ErrorKind::LayoutNotAllowed,
                start..start + 1,
                format!("`{name}` has no layout"),
            ));
        }
        self.lexer.rewind(after);
        Ok(())
    }

    #[inline]
    fn array(&mut self, array: &mut ArrayShape, start: usize) -> Result<(), Error> {
        if !self.lexer.eat(b'[')? {
            return Err(self.lexer.expected(&format!("`[` after `{}`", array.element_type)));
        }
        self.dimensions(&mut array.dimensions)?;
        let after = self.lexer.position();
        if self.layout_follows()? {
            self.lexer.eat(b'{')?;
            let layout = array.layout.insert(Layout::of_order(InlineVec::new()));
            self.layout(layout, &array.dimensions)?;
        } else {
            self.lexer.rewind(after);
            // XLA doesn't print a scalar's empty layout, so a scalar without one has it all the same.
            if self.missing == Missing::Default || array.dimensions.is_empty() {
                let layout = array.layout.insert(Layout::of_order(InlineVec::new()));
                layout.minor_to_major.extend((0..array.dimensions.len()).rev());
            }
        }
        array.check_size().map_err(|error| error.at(start..self.lexer.position()))
    }

    /// `dim { "," dim } "]"`, the opening bracket consumed.
    #[inline]
    fn dimensions(&mut self, dimensions: &mut InlineVec<Dimension, 6>) -> Result<(), Error> {
        if self.lexer.eat(b']')? {
            return Ok(());
        }
        loop {
            dimensions.push(self.dimension()?);
            if self.lexer.list_ends(b']', "`,` or `]` after a dimension")? {
                return Ok(());
            }
        }
    }

    #[inline]
    fn dimension(&mut self) -> Result<Dimension, Error> {
        let what = "a dimension";
        match self.lexer.peek()? {
            Some(b'?') => {
                self.lexer.eat(b'?')?;
                Ok(Dimension::UNBOUNDED)
            }
            Some(b'<') => {
                self.lexer.eat(b'<')?;
                // `<=` is one token.
                let glued = self.lexer.position();
                if self.lexer.peek()? != Some(b'=') || self.lexer.position() != glued {
                    self.lexer.rewind(glued - 1);
                    return Err(self.lexer.expected("a dimension such as `<=8`"));
                }
                self.lexer.eat(b'=')?;
                let bound = self.bound("a bound after `<=`")?;
                Dimension::bounded(bound)
            }
            _ => {
                let bound = self.bound(what)?;
                Dimension::fixed(bound)
            }
        }
    }

    #[inline]
    fn bound(&mut self, what: &str) -> Result<u64, Error> {
        let value = self.lexer.int(what)?;
        bound_of_signed(value).map_err(|error| error.at(self.lexer.token()))
    }

    /// Whether `{` comes next and starts a layout; the cursor stands on it then.
    fn layout_follows(&mut self) -> Result<bool, Error> {
        if self.lexer.peek()? != Some(b'{') {
            return Ok(false);
        }
        if !self.prefix {
            return Ok(true);
        }
        let start = self.lexer.position();
        self.lexer.eat(b'{')?;
        let next = self.lexer.peek()?;
        self.lexer.rewind(start);
        Ok(matches!(next, Some(b'0'..=b'9' | b'-' | b':')))
    }

    /// A layout up to its `}`, the `{` consumed.
    #[inline]
    fn layout(&mut self, layout: &mut Layout, dimensions: &[Dimension]) -> Result<(), Error> {
        let start = self.lexer.position();
        if !matches!(self.lexer.peek()?, Some(b':' | b'}')) {
            loop {
                let value = self.lexer.int("a dimension number").map_err(|error| match self.lexer.peek() {
                    Ok(Some(b'[')) => error.with_help("write the order of dimensions in braces alone, such as `{1,0}`"),
                    _ => error,
                })?;
                // A number that can't be a dimension's stays out of range, and is reported below.
                layout.minor_to_major.push(usize::try_from(value).unwrap_or(usize::MAX));
                if !self.lexer.eat(b',')? {
                    break;
                }
            }
            if !matches!(self.lexer.peek()?, Some(b':' | b'}')) {
                return Err(self.lexer.expected("`,`, `:` or `}` in a layout"));
            }
        }
        self.check_order(&layout.minor_to_major, dimensions.len(), start)?;
        if self.lexer.eat(b':')? {
            self.properties(layout, dimensions)?;
        }
        self.lexer.expect(b'}', "a layout property or `}`")
    }

    fn check_order(&mut self, order: &[usize], rank: usize, start: usize) -> Result<(), Error> {
        let end = self.lexer.position();
        if order.len() != rank {
            return Err(rank_mismatch(order.len(), rank).at(start..end));
        }
        let Some(at) = first_not_in_permutation(order) else { return Ok(()) };
        // Read the list again to find the number's own bytes: only errors pay for them.
        let mut again = Lexer::new(self.lexer.text());
        again.rewind(start);
        let mut found = again.int("a dimension number")?;
        for _ in 0..at {
            again.eat(b',')?;
            found = again.int("a dimension number")?;
        }
        Err(not_a_permutation(&format!("{found}"), order[at] < rank, rank).at(again.token()))
    }

    /// Everything between `:` and `}`.
    fn properties(&mut self, layout: &mut Layout, dimensions: &[Dimension]) -> Result<(), Error> {
        let mut last = None;
        loop {
            let next = self.lexer.peek()?;
            let start = self.lexer.position();
            let property = match next {
                Some(b'}') => return Ok(()),
                // An older edition of the tiled-layout document writes tiles without `T`.
                Some(b'(') if last.is_none() => Property::Tiles,
                Some(b'#') if self.lexer.eat(b'#')? => Property::IndexType,
                Some(b'*') if self.lexer.eat(b'*')? => Property::PointerType,
                _ => {
                    let Some(name) = self.lexer.identifier()? else {
                        return Err(self.lexer.expected("a layout property or `}`"));
                    };
                    Property::of_name(name).ok_or_else(|| self.unknown_property(name))?
                }
            };
            let span = start..self.lexer.position();
            if last.is_some_and(|last| property <= last) {
                return Err(self
                    .lexer
                    .error(ErrorKind::AttributeOrder, span, "this property is repeated or comes too late")
                    .with_help("the order is T L # * E S SC M, each at most once"));
            }
            last = Some(property);
            self.property(property, span, layout, dimensions)?;
        }
    }

    #[cold]
    fn unknown_property(&self, name: &str) -> Error {
        self.lexer
            .error(ErrorKind::Syntax, self.lexer.token(), format!("`{name}` is not a layout property"))
            .with_help("the properties are T L # * E S SC M, in this order")
    }

    fn property(
        &mut self,
        property: Property,
        span: Range<usize>,
        layout: &mut Layout,
        dimensions: &[Dimension],
    ) -> Result<(), Error> {
        match property {
            Property::Tiles => return self.tiles(layout),
            Property::TailPadding => layout.tail_padding_alignment = self.argument(layout::tail_padding_alignment)?,
            Property::IndexType => layout.index_primitive_type = Some(self.sparse_type(false)?),
            Property::PointerType => layout.pointer_primitive_type = Some(self.sparse_type(true)?),
            Property::ElementSize => layout.element_size_in_bits = self.argument(layout::element_size_in_bits)?,
            Property::MemorySpace => layout.memory_space = self.argument(layout::memory_space)?,
            Property::SplitConfigs => return self.split_configs(layout, dimensions),
            Property::MetadataPrefix => {
                layout.dynamic_shape_metadata_prefix_bytes = self.argument(layout::metadata_prefix_bytes)?;
            }
            Property::PhysicalShape => return Err(physical_shape_not_allowed().at(span)),
            Property::DimLevelTypes => {
                let message = "dimension level types of sparse arrays are not supported";
                let error = self.lexer.error(ErrorKind::SparseUnsupported, span, message);
                return Err(error.with_help("leave `D(…)` out: XLA drops it"));
            }
        }
        Ok(())
    }

    /// `"(" INT ")"`, the number checked.
    fn argument<T>(&mut self, check: impl FnOnce(i128) -> Result<T, Error>) -> Result<T, Error> {
        self.lexer.expect(b'(', "`(`")?;
        let value = self.lexer.int("an integer")?;
        self.lexer.expect(b')', "`)`")?;
        check(value.into()).map_err(|error| error.at(self.lexer.token()))
    }

    fn tiles(&mut self, layout: &mut Layout) -> Result<(), Error> {
        if self.lexer.peek()? != Some(b'(') {
            return Err(self.lexer.expected("`(` after `T`"));
        }
        while self.lexer.eat(b'(')? {
            let start = self.lexer.position() - 1;
            let mut dimensions = InlineVec::new();
            if !self.lexer.eat(b')')? {
                loop {
                    dimensions.push(self.tile_dimension()?);
                    if self.lexer.list_ends(b')', "`,` or `)` in a tile")? {
                        break;
                    }
                }
            }
            let tile = Tile::of(dimensions).map_err(|error| error.at(start..self.lexer.position()))?;
            layout.tiles.push(tile);
        }
        Ok(())
    }

    #[inline]
    fn tile_dimension(&mut self) -> Result<TileDimension, Error> {
        if self.lexer.eat_star()? {
            return Ok(TileDimension::Combined);
        }
        let value = self.lexer.int("a tile size or `*`")?;
        TileDimension::of_signed(value).map_err(|error| error.at(self.lexer.token()))
    }

    fn sparse_type(&mut self, pointer: bool) -> Result<ElementType, Error> {
        self.lexer.expect(b'(', "`(`")?;
        let Some(name) = self.lexer.identifier()? else {
            return Err(self.lexer.expected("u8, u16, u32 or u64"));
        };
        let span = self.lexer.token();
        let named = ElementType::from_name(name).ok_or_else(|| super::unknown_element_type(name, span.clone()))?;
        if !named.is_index_type() {
            return Err(sparse_type_error(pointer, named).at(span));
        }
        self.lexer.expect(b')', "`)`")?;
        Ok(named)
    }

    /// `split { split }`, a split being `"(" INT ":" [ INT { "," INT } ] ")"`.
    fn split_configs(&mut self, layout: &mut Layout, dimensions: &[Dimension]) -> Result<(), Error> {
        if self.lexer.peek()? != Some(b'(') {
            return Err(self.lexer.expected("`(` after `SC`"));
        }
        let mut split = BTreeSet::new();
        while self.lexer.eat(b'(')? {
            let start = self.lexer.position() - 1;
            let dimension = self.lexer.int("a physical dimension")?;
            self.lexer.expect(b':', "`:` after the physical dimension")?;
            let mut indices = Vec::new();
            if !self.lexer.eat(b')')? {
                loop {
                    indices.push(self.lexer.int("a split index")?);
                    if self.lexer.list_ends(b')', "`,` or `)` after a split index")? {
                        break;
                    }
                }
            }
            let config = SplitConfig::of_signed(dimension, &indices);
            check_split(&config, &mut split, &layout.minor_to_major, dimensions)
                .map_err(|error| error.at(start..self.lexer.position()))?;
            layout.split_configs.push(config);
        }
        Ok(())
    }
}
