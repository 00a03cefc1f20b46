//! The marks of a laid-out picture: shapes, lines, curves, text.

use super::class::{Class, Style};
use crate::grid::CellContent;

/// Coordinates: across from the left, and down from the top.
pub(crate) type Point = (f64, f64);

/// Marks that are placed together, in the order in which they cover each other.
pub(crate) struct Group<'a> {
    /// The panel's name in the SVG, if the group is a panel.
    pub(crate) panel: Option<&'static str>,
    pub(crate) corner: Point,
    pub(crate) marks: Vec<Mark<'a>>,
}

/// A shape or a text, at its place from the group's corner.
pub(crate) enum Mark<'a> {
    Rect(Rect<'a>),
    /// Filled polygons.
    Areas(Class, Vec<Vec<Point>>),
    /// Lines across or down.
    Lines(Class, Vec<Line>),
    /// Cubic curves: a start, two control points, an end.
    Curves(Class, Vec<[Point; 4]>),
    /// A right triangle in an upper right corner, with legs of this length.
    Corner(Class, Point, f64),
    Text(Text),
}

pub(crate) struct Rect<'a> {
    pub(crate) class: Class,
    pub(crate) corner: Point,
    pub(crate) size: Point,
    /// The radius of its corners.
    pub(crate) radius: f64,
    /// The content of a cell.
    pub(crate) content: Option<&'a CellContent>,
    /// The text that a viewer shows on hovering.
    pub(crate) hint: Option<String>,
}

/// A line to the right or downwards.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) from: Point,
    pub(crate) length: f64,
    pub(crate) down: bool,
}

pub(crate) struct Text {
    pub(crate) style: Style,
    /// Whether it is muted, in addition to its style.
    pub(crate) muted: bool,
    pub(crate) size: f64,
    /// A point of the baseline.
    pub(crate) at: Point,
    /// The part of the text at that point.
    pub(crate) anchor: Anchor,
    /// Whether it runs from the bottom to the top.
    pub(crate) upward: bool,
    pub(crate) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Mark<'_> {
    /// The class of a shape.
    pub(crate) fn class(&self) -> Option<Class> {
        match self {
            Self::Rect(rect) => Some(rect.class),
            Self::Areas(class, _) | Self::Lines(class, _) | Self::Curves(class, _) | Self::Corner(class, ..) => {
                Some(*class)
            }
            Self::Text(_) => None,
        }
    }
}

impl<'a> Group<'a> {
    pub(crate) fn new(panel: Option<&'static str>, corner: Point) -> Self {
        Self { panel, corner, marks: Vec::new() }
    }

    pub(crate) fn rect(&mut self, class: Class, corner: Point, size: Point) {
        self.round_rect(class, corner, size, 0.0);
    }

    pub(crate) fn round_rect(&mut self, class: Class, corner: Point, size: Point, radius: f64) {
        self.marks.push(Mark::Rect(Rect { class, corner, size, radius, content: None, hint: None }));
    }

    pub(crate) fn cell(&mut self, tile: Option<usize>, corner: Point, size: Point, content: &'a CellContent) {
        self.marks.push(Mark::Rect(Rect {
            class: Class::Cell(tile),
            corner,
            size,
            radius: 0.0,
            content: Some(content),
            hint: None,
        }));
    }

    pub(crate) fn areas(&mut self, class: Class, areas: Vec<Vec<Point>>) {
        if !areas.is_empty() {
            self.marks.push(Mark::Areas(class, areas));
        }
    }

    pub(crate) fn lines(&mut self, class: Class, lines: Vec<Line>) {
        if !lines.is_empty() {
            self.marks.push(Mark::Lines(class, lines));
        }
    }

    pub(crate) fn curves(&mut self, class: Class, curves: Vec<[Point; 4]>) {
        if !curves.is_empty() {
            self.marks.push(Mark::Curves(class, curves));
        }
    }

    pub(crate) fn corner(&mut self, class: Class, at: Point, side: f64) {
        self.marks.push(Mark::Corner(class, at, side));
    }

    pub(crate) fn text(&mut self, text: Text) {
        self.marks.push(Mark::Text(text));
    }
}

impl Line {
    pub(crate) fn across(from: Point, length: f64) -> Self {
        Self { from, length, down: false }
    }

    pub(crate) fn down(from: Point, length: f64) -> Self {
        Self { from, length, down: true }
    }
}

impl Text {
    /// Text of its style's size, in the middle of cells and to the right of a point elsewhere.
    pub(crate) fn new(style: Style, at: Point, text: impl Into<String>) -> Self {
        let anchor =
            if matches!(style, Style::Cell | Style::Note | Style::Byte) { Anchor::Middle } else { Anchor::Start };
        Self { style, muted: false, size: style.size(), at, anchor, upward: false, text: text.into() }
    }

    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// Text that runs upwards, its middle at the point.
    pub(crate) fn upward(self) -> Self {
        Self { upward: true, anchor: Anchor::Middle, ..self }
    }
}
