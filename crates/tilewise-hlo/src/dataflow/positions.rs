//! The places of values: the nodes of instructions' shapes.

use tilewise::{Shape, ShapeKind};

use super::{Dataflow, Id, NodeId, OpId, Position, Table};

/// The marker of a [`Position`].
#[derive(Debug)]
pub enum Slot {}

/// A node of a shape, in pre-order: a tuple, or a leaf. Instructions of the same shape share its nodes.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The number of its nodes, itself included.
    extent: u32,
    /// Nodes back to the tuple that it is an element of; 0 at the top of the shape.
    back: u32,
    /// Its number among that tuple's elements.
    element: u32,
    /// The number of the shape's leaves before it.
    leaves_before: u32,
    /// The start of a tuple's own in `Shapes::elements`, and their number.
    elements: (u32, u32),
    is_tuple: bool,
}

impl Node {
    /// Whether it is a tuple.
    #[must_use]
    pub fn is_tuple(&self) -> bool {
        self.is_tuple
    }

    /// The number of a tuple's elements; 0 for a leaf.
    #[must_use]
    pub fn element_count(&self) -> usize {
        self.elements.1 as usize
    }

    pub(super) fn extent(&self) -> usize {
        self.extent as usize
    }
}

/// The distinct shapes of a module: programs repeat a few.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) nodes: Table<Node, Node>,
    /// The distance of each element from its tuple, in nodes.
    elements: Vec<u32>,
    /// Each with its first node.
    pub(super) shapes: Vec<(NodeId, Shape)>,
}

impl Shapes {
    /// Adds a shape and returns its first node.
    pub(super) fn add(&mut self, shape: Shape) -> NodeId {
        let first = self.nodes.next_id();
        let mut leaves = 0;
        // Each shape with the node of its tuple, and its number among that tuple's elements.
        let mut waiting = vec![(shape.clone(), first, 0_u32)];
        while let Some((shape, parent, element)) = waiting.pop() {
            let at = self.nodes.next_id();
            let back = number(at.since(parent));
            if at != first {
                let (elements, _) = self.nodes[parent].elements;
                self.elements[elements as usize + element as usize] = back;
            }
            let is_tuple = matches!(shape.kind(), ShapeKind::Tuple);
            let mut elements = (0, 0);
            if is_tuple {
                let next = waiting.len();
                waiting.extend(shape.elements().zip(0..).map(|(shape, element)| (shape, at, element)));
                waiting[next..].reverse();
                elements = (number(self.elements.len()), number(waiting.len() - next));
                self.elements.resize(self.elements.len() + waiting.len() - next, 0);
            }
            self.nodes.push(Node { extent: 1, back, element, leaves_before: leaves, elements, is_tuple });
            leaves += u32::from(!is_tuple);
        }
        for at in (first.index() + 1..self.nodes.len()).rev().map(Id::new) {
            let Node { extent, back, .. } = self.nodes[at];
            self.nodes[Id::new(at.index() - back as usize)].extent += extent;
        }
        self.shapes.push((first, shape));
        first
    }

    /// Adds a leaf of unknown shape.
    pub(super) fn add_unknown(&mut self) -> NodeId {
        self.nodes.push(Node { extent: 1, back: 0, element: 0, leaves_before: 0, elements: (0, 0), is_tuple: false })
    }

    /// The distance of each element from its tuple, in nodes.
    pub(super) fn elements(&self, tuple: NodeId) -> &[u32] {
        let (first, count) = self.nodes[tuple].elements;
        &self.elements[first as usize..first as usize + count as usize]
    }
}

/// A shape has no more nodes than bytes of text, which are fewer than 2^32.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Positions within shapes.
impl Dataflow {
    /// Every distinct shape, with its first node. Positions of instructions of one shape have the same
    /// [nodes](Self::node), so results that depend only on the shape can be computed once for each.
    pub fn shapes(&self) -> impl Iterator<Item = (NodeId, &Shape)> {
        self.graph().shapes.shapes.iter().map(|(first, shape)| (*first, shape))
    }

    /// All nodes of the distinct shapes.
    #[must_use]
    pub fn nodes(&self) -> &Table<Node, Node> {
        &self.graph().shapes.nodes
    }

    /// A node and those within it, in pre-order.
    pub fn nodes_of(&self, first: NodeId) -> impl Iterator<Item = (NodeId, &Node)> {
        let nodes = &self.graph().shapes.nodes;
        (0..nodes[first].extent()).map(move |k| (first.plus(k), &nodes[first.plus(k)]))
    }

    /// The node of a position in its instruction's shape.
    #[must_use]
    pub fn node(&self, position: Position) -> NodeId {
        self.graph().positions[position].1
    }

    fn node_at(&self, position: Position) -> &Node {
        &self.graph().shapes.nodes[self.node(position)]
    }

    /// The shape at a position; `None` if the instruction's shape can't be read.
    #[must_use]
    pub fn shape(&self, position: Position) -> Option<Shape> {
        let node = self.node(position);
        let shapes = &self.graph().shapes.shapes;
        let at = shapes.partition_point(|(first, _)| *first <= node).checked_sub(1)?;
        let (first, shape) = &shapes[at];
        shape.part(node.since(*first))
    }

    /// The instruction whose result it is in.
    #[must_use]
    pub fn op_at(&self, position: Position) -> OpId {
        self.graph().positions[position].0
    }

    /// Every position, with its instruction and its [node](Self::node).
    #[must_use]
    pub fn all_positions(&self) -> &Table<Slot, (OpId, NodeId)> {
        &self.graph().positions
    }

    /// All positions of an instruction's result, in pre-order.
    pub fn positions(&self, op: OpId) -> impl DoubleEndedIterator<Item = Position> + ExactSizeIterator + use<> {
        self.within(self[op].position)
    }

    /// A position and everything within it, in pre-order.
    pub fn within(&self, position: Position) -> impl DoubleEndedIterator<Item = Position> + ExactSizeIterator + use<> {
        (0..self.extent(position)).map(move |k| position.plus(k))
    }

    /// The number of positions within one, itself included.
    #[must_use]
    pub fn extent(&self, position: Position) -> usize {
        self.node_at(position).extent()
    }

    /// Whether it is a whole result.
    #[must_use]
    pub fn is_top(&self, position: Position) -> bool {
        self[self.op_at(position)].position == position
    }

    /// Whether it is a tuple.
    #[must_use]
    pub fn is_tuple(&self, position: Position) -> bool {
        self.node_at(position).is_tuple
    }

    /// The number of leaves of its instruction's result before a position.
    #[must_use]
    pub fn leaves_before(&self, position: Position) -> usize {
        let top = self[self.op_at(position)].position;
        (self.node_at(position).leaves_before - self.node_at(top).leaves_before) as usize
    }

    /// The elements of a tuple, in order.
    pub fn elements(&self, tuple: Position) -> impl Iterator<Item = Position> {
        self.graph().shapes.elements(self.node(tuple)).iter().map(move |nodes| tuple.plus(*nodes as usize))
    }

    /// One element of a tuple.
    #[must_use]
    pub fn element(&self, tuple: Position, number: usize) -> Option<Position> {
        let nodes = self.graph().shapes.elements(self.node(tuple)).get(number)?;
        Some(tuple.plus(*nodes as usize))
    }

    /// The element of a tuple that holds the position `offset` behind it, with its number.
    #[must_use]
    pub fn element_around(&self, tuple: Position, offset: usize) -> Option<(usize, Position)> {
        let elements = self.graph().shapes.elements(self.node(tuple));
        let number = elements.partition_point(|start| *start as usize <= offset).checked_sub(1)?;
        Some((number, tuple.plus(elements[number] as usize)))
    }

    /// The position at this path within another.
    #[must_use]
    pub fn at(&self, position: Position, path: &[usize]) -> Option<Position> {
        path.iter().try_fold(position, |position, element| self.element(position, *element))
    }

    /// The path to a position within its instruction's result: XLA's `ShapeIndex`.
    #[must_use]
    pub fn shape_index(&self, position: Position) -> Vec<usize> {
        let top = self[self.op_at(position)].position;
        let (mut path, mut at) = (Vec::new(), position);
        while at != top {
            let node = self.node_at(at);
            path.push(node.element as usize);
            at = Position::new(at.index() - node.back as usize);
        }
        path.reverse();
        path
    }
}
