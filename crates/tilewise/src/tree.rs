//! Tuples as trees: a part found, visited or replaced by its path, XLA's `ShapeIndex`.

use crate::{Error, ErrorKind, Shape, shape::Node};
use alloc::{format, string::String, vec::Vec};
use core::ops::Range;

impl Shape {
    /// The part of the shape at this path through its tuples; `None` if the path doesn't exist. The empty path is the
    /// shape itself.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// assert_eq!(shape.subshape(&[1, 1]), Some("s8[]".parse()?));
    /// assert_eq!(shape.subshape(&[1]), Some("(token[], s8[])".parse()?));
    /// assert_eq!(shape.subshape(&[0, 0]), None);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "GetSubshape")]
    #[doc(alias = "TryGetSubshape")]
    #[doc(alias = "IndexIsValid")]
    #[doc(alias = "GetTupleElementShape")]
    #[must_use]
    pub fn subshape(&self, index: &[usize]) -> Option<Self> {
        self.part(self.place(index)?.start)
    }

    /// The shape with another part at this path through its tuples.
    ///
    /// # Errors
    /// [`ErrorKind::IndexOutOfBounds`] if the path doesn't exist.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// let replaced = shape.replace_subshape(&[1, 0], &"(u8[4], u8[5])".parse()?)?;
    /// assert_eq!(replaced.to_string(), "(f32[2]{0}, ((u8[4]{0}, u8[5]{0}), s8[]))");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "GetMutableSubshape")]
    #[doc(alias = "UpdateTupleShape")]
    pub fn replace_subshape(&self, index: &[usize], part: &Self) -> Result<Self, Error> {
        let place = self.place(index).ok_or_else(|| no_part(index))?;
        let mut nodes = self.nodes().to_vec();
        let (taken, added) = (place.len(), part.nodes().len());
        // Every tuple on the path grows by the same number of nodes.
        let mut at = 0;
        for &element in index {
            if let Node::Tuple(descendants) = &mut nodes[at] {
                *descendants = *descendants + added - taken;
            }
            at = element_at(self.nodes(), at, element).ok_or_else(|| no_part(index))?;
        }
        nodes.splice(place, part.nodes().iter().cloned());
        Ok(Self::of_nodes(nodes))
    }

    /// Every part of the shape with its path, a tuple in front of its elements, the shape itself first.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// let paths: Vec<_> = shape.subshapes().map(|(path, _)| path).collect();
    /// assert_eq!(paths, [vec![], vec![0], vec![1], vec![1, 0], vec![1, 1]]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ForEachSubshape")]
    #[doc(alias = "SubshapeCount")]
    pub fn subshapes(&self) -> impl Iterator<Item = (Vec<usize>, Self)> + '_ {
        let nodes = self.nodes();
        // `ends` holds the end of each open tuple, `path` the position in each.
        let (mut ends, mut path) = (Vec::new(), Vec::<usize>::new());
        (0..nodes.len()).filter_map(move |at| {
            while ends.last() == Some(&at) {
                ends.pop();
                path.pop();
            }
            if let Some(position) = path.last_mut() {
                *position = position.wrapping_add(1);
            }
            let here = path.clone();
            if let Node::Tuple(descendants) = nodes[at] {
                ends.push(at + 1 + descendants);
                path.push(usize::MAX);
            }
            Some((here, self.part(at)?))
        })
    }

    /// The shape with each leaf, in order, replaced by the function's result for its path and the leaf: another array,
    /// or a tuple.
    ///
    /// # Errors
    /// The function's errors.
    ///
    /// ```
    /// use tilewise::{ElementType, Error, Shape};
    ///
    /// let shape: Shape = "(f32[2], (token[], f32[3]))".parse()?;
    /// let mapped = shape.map_leaves(|path, leaf| match path {
    ///     [1, 1] => leaf.change_element_type(ElementType::Bf16),
    ///     _ => Ok::<_, Error>(leaf.clone()),
    /// })?;
    /// assert_eq!(mapped.to_string(), "(f32[2]{0}, (token[], bf16[3]{0}))");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ForEachMutableSubshape")]
    pub fn map_leaves<E>(&self, mut map: impl FnMut(&[usize], &Self) -> Result<Self, E>) -> Result<Self, E> {
        let (old, mut nodes) = (self.nodes(), Vec::with_capacity(self.nodes().len()));
        // For each open tuple, its place among the new nodes, and its end among the old.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut leaves = self.leaves();
        for (at, node) in old.iter().enumerate() {
            close(&mut open, &mut nodes, at);
            if let Node::Tuple(descendants) = node {
                open.push((nodes.len(), at + 1 + descendants));
                nodes.push(Node::Tuple(0));
            } else if let Some((path, leaf)) = leaves.next() {
                nodes.extend_from_slice(map(&path, &leaf)?.nodes());
            }
        }
        close(&mut open, &mut nodes, old.len());
        Ok(Self::of_nodes(nodes))
    }

    /// Every part of the shape with its path, a tuple behind its elements, the shape itself last.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// let paths: Vec<_> = shape.subshapes_post_order().into_iter().map(|(path, _)| path).collect();
    /// assert_eq!(paths, [vec![0], vec![1, 0], vec![1, 1], vec![1], vec![]]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ForEachSubshapePostOrder")]
    #[must_use]
    pub fn subshapes_post_order(&self) -> Vec<(Vec<usize>, Self)> {
        let mut parts = Vec::new();
        // Tuples whose elements are still to come.
        let mut open: Vec<(Vec<usize>, Self)> = Vec::new();
        for (path, part) in self.subshapes() {
            while open.last().is_some_and(|(tuple, _)| !path.starts_with(tuple)) {
                parts.extend(open.pop());
            }
            let is_tuple = matches!(part.nodes(), [Node::Tuple(_), ..]);
            if is_tuple { open.push((path, part)) } else { parts.push((path, part)) }
        }
        parts.extend(open.into_iter().rev());
        parts
    }

    /// The shape with each part, a tuple behind its elements, replaced by the function's result for its path and the
    /// part; a tuple is passed with its new elements.
    ///
    /// # Errors
    /// The function's errors.
    ///
    /// ```
    /// use tilewise::{Error, Shape};
    ///
    /// let shape: Shape = "(f32[2], (token[], s8[]))".parse()?;
    /// let mapped = shape.map_subshapes_post_order(|path, part| match path {
    ///     [1] => part.slice_tuple(1..2),
    ///     _ => Ok::<_, Error>(part.clone()),
    /// })?;
    /// assert_eq!(mapped.to_string(), "(f32[2]{0}, (s8[]))");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ForEachMutableSubshapePostOrder")]
    pub fn map_subshapes_post_order<E>(
        &self,
        mut map: impl FnMut(&[usize], &Self) -> Result<Self, E>,
    ) -> Result<Self, E> {
        // Made parts that no tuple has taken yet; a tuple takes as many as it had elements.
        let mut made: Vec<Self> = Vec::new();
        for (path, part) in self.subshapes_post_order() {
            let part = match part.nodes() {
                [Node::Tuple(_), ..] => {
                    let count = part.elements().count();
                    Self::tuple(made.split_off(made.len() - count))
                }
                _ => part,
            };
            made.push(map(&path, &part)?);
        }
        Ok(made.pop().unwrap_or_else(|| self.clone()))
    }

    /// Whether each leaf of the shape equals the other's part at the same path: a tuple's elements are then the first
    /// of the other's. An empty tuple needs a part at its path, too.
    ///
    /// ```
    /// let shape = |text: &str| text.parse::<tilewise::Shape>();
    /// assert!(shape("(f32[2], s8[])")?.is_prefix_of(&shape("(f32[2], s8[], u8[])")?));
    /// assert!(!shape("(s8[])")?.is_prefix_of(&shape("(f32[2], s8[])")?));
    /// assert!(!shape("(())")?.is_prefix_of(&shape("f32[2]")?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "IsPrefix")]
    #[must_use]
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        let is_tuple = |part: &Self| matches!(part.nodes(), [Node::Tuple(_), ..]);
        let parts = self.subshapes_post_order();
        parts
            .iter()
            .all(|(path, part)| other.subshape(path).is_some_and(|of_other| is_tuple(part) || of_other == *part))
    }

    /// The tuple with another element behind its own.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`] unless the shape is a tuple.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[2])".parse()?;
    /// assert_eq!(shape.append_shape_to_tuple(&"s8[]".parse()?)?.to_string(), "(f32[2]{0}, s8[])");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "AppendShapeToTuple")]
    pub fn append_shape_to_tuple(&self, element: &Self) -> Result<Self, Error> {
        self.check_tuple()?;
        Ok(Self::tuple(self.elements().chain([element.clone()])))
    }

    /// The tuple of these elements of a tuple.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`] unless the shape is a tuple, [`ErrorKind::IndexOutOfBounds`] where it has no such elements.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[], s32[], u32[])".parse()?;
    /// assert_eq!(shape.slice_tuple(1..3)?.to_string(), "(s32[], u32[])");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "SliceTuple")]
    pub fn slice_tuple(&self, range: Range<usize>) -> Result<Self, Error> {
        self.check_tuple()?;
        let elements: Vec<Self> = self.elements().collect();
        match elements.get(range.clone()) {
            Some(slice) => Ok(Self::tuple(slice.iter().cloned())),
            None => {
                let message = format!("there are no elements {range:?} in a tuple of {}", elements.len());
                Err(Error::new(ErrorKind::IndexOutOfBounds, message))
            }
        }
    }

    fn check_tuple(&self) -> Result<(), Error> {
        match self.kind().name() {
            "tuple" => Ok(()),
            kind => Err(Error::new(ErrorKind::NotAnArray, format!("this isn't a tuple; its kind is {kind}"))),
        }
    }

    /// The range of the nodes at a path.
    fn place(&self, index: &[usize]) -> Option<Range<usize>> {
        let nodes = self.nodes();
        let at = index.iter().try_fold(0, |at, &element| element_at(nodes, at, element))?;
        Some(at..at + nodes[at].extent())
    }
}

/// The place of a tuple's element.
fn element_at(nodes: &[Node], tuple: usize, element: usize) -> Option<usize> {
    let end = tuple + nodes[tuple].extent();
    let mut at = tuple + 1;
    for _ in 0..element {
        at += nodes.get(at).filter(|_| at < end)?.extent();
    }
    (at < end).then_some(at)
}

/// Closes the tuples that end in front of a node.
fn close(open: &mut Vec<(usize, usize)>, nodes: &mut [Node], at: usize) {
    while let Some(&(tuple, _)) = open.last().filter(|(_, end)| *end == at) {
        open.pop();
        nodes[tuple] = Node::Tuple(nodes.len() - tuple - 1);
    }
}

fn no_part(index: &[usize]) -> Error {
    let mut path = String::new();
    // Writing to a string can't fail.
    let _ = crate::text::join(&mut path, index);
    Error::new(ErrorKind::IndexOutOfBounds, format!("there is nothing at the shape index {{{path}}}"))
}
