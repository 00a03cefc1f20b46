//! Shape → text, byte for byte as XLA prints it.

use super::join;
use crate::{ArrayShape, Layout, Shape, shape::Node};
use core::fmt::{self, Display, Write};

impl fmt::Display for Shape {
    /// XLA's `ToString(print_layout = true)`, the form of HLO text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.nodes(), true, f)
    }
}

impl Shape {
    /// The shape printed without layouts: XLA's `HumanString`.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[2]{0:S(1)}, token[])".parse()?;
    /// assert_eq!(shape.without_layout().to_string(), "(f32[2], token[])");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn without_layout(&self) -> WithoutLayout<'_> {
        WithoutLayout(self)
    }
}

/// Prints a shape without its layouts; made by [`Shape::without_layout`].
#[derive(Clone, Copy, Debug)]
pub struct WithoutLayout<'a>(&'a Shape);

impl fmt::Display for WithoutLayout<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0.nodes(), false, f)
    }
}

fn print(nodes: &[Node], with_layout: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // For each open tuple, its end, and the number of its elements that are printed.
    let mut open = alloc::vec::Vec::<(usize, usize)>::new();
    for (at, node) in nodes.iter().enumerate() {
        close(&mut open, at, f)?;
        if let Some((_, printed)) = open.last_mut() {
            match *printed {
                0 => {}
                n if n % 5 == 0 => write!(f, ", /*index={n}*/")?,
                _ => f.write_str(", ")?,
            }
            *printed += 1;
        }
        match node {
            Node::Token => f.write_str("token[]")?,
            Node::Opaque => f.write_str("opaque[]")?,
            Node::Array(array) => print_array(array, with_layout, f)?,
            Node::Buffer(array) => {
                f.write_str("b(")?;
                print_array(array, with_layout, f)?;
                f.write_char(')')?;
            }
            Node::Tuple(_) => {
                f.write_char('(')?;
                open.push((at + node.extent(), 0));
            }
        }
    }
    close(&mut open, nodes.len(), f)
}

fn close(open: &mut alloc::vec::Vec<(usize, usize)>, at: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    while open.last().is_some_and(|&(end, _)| end == at) {
        open.pop();
        f.write_char(')')?;
    }
    Ok(())
}

fn print_array(array: &ArrayShape, with_layout: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}[", array.element_type)?;
    join(f, &array.dimensions)?;
    f.write_char(']')?;
    match &array.layout {
        // XLA never prints `{}`: a scalar's layout is printed only if it has more than an order.
        Some(layout) if with_layout && (array.rank() > 0 || layout.says_more_than_order()) => layout.fmt(f),
        _ => Ok(()),
    }
}

impl Layout {
    fn says_more_than_order(&self) -> bool {
        !self.tiles.is_empty()
            || self.tail_padding_alignment.get() != 1
            || self.index_primitive_type.is_some()
            || self.pointer_primitive_type.is_some()
            || self.element_size_in_bits.is_some()
            || self.memory_space != 0
            || !self.split_configs.is_empty()
            || self.dynamic_shape_metadata_prefix_bytes != 0
    }
}

impl fmt::Display for Layout {
    /// The layout with its braces, `{1,0:T(8,128)}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        join(f, &self.minor_to_major)?;
        if self.says_more_than_order() {
            f.write_char(':')?;
        }
        if !self.tiles.is_empty() {
            f.write_char('T')?;
        }
        for tile in &*self.tiles {
            tile.fmt(f)?;
        }
        if self.tail_padding_alignment.get() != 1 {
            write!(f, "L({})", self.tail_padding_alignment)?;
        }
        if let Some(index) = self.index_primitive_type {
            write!(f, "#({index})")?;
        }
        if let Some(pointer) = self.pointer_primitive_type {
            write!(f, "*({pointer})")?;
        }
        if let Some(bits) = self.element_size_in_bits {
            write!(f, "E({bits})")?;
        }
        if self.memory_space != 0 {
            write!(f, "S({})", self.memory_space)?;
        }
        if !self.split_configs.is_empty() {
            f.write_str("SC")?;
        }
        for config in &self.split_configs {
            write!(f, "({}:", config.dimension)?;
            join(f, &config.split_indices)?;
            f.write_char(')')?;
        }
        if self.dynamic_shape_metadata_prefix_bytes != 0 {
            write!(f, "M({})", self.dynamic_shape_metadata_prefix_bytes)?;
        }
        f.write_char('}')
    }
}
