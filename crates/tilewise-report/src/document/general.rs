//! The documents' equations with symbols, `linear_index((⌊e/t⌋, e mod t), (⌈d/t⌉, t))`: the meaning of each list in
//! them.
//!
//! The lists are those of "Linear index formulas for tiling given a shape and a tile" and "Tiling as pad-reshape-transpose".

use super::{
    evaluate::Function,
    expression::{Kind, Node, Operator},
    meaning::Meaning,
    terms,
    token::{Symbol, symbols},
};
use crate::{plain::Plain, style::listed};

/// The meaning of a list's item, elementwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// `e`
    Element,
    /// `d`
    Bounds,
    /// `t`
    Tile,
    /// `⌊e/t⌋`
    TileIndex,
    /// `e mod t`
    WithinTile,
    /// `⌈d/t⌉`
    Tiles,
    /// `⌈d/t⌉·t`
    Padded,
}

impl Item {
    /// Its numbers in the document's example, element (2,3) of F32[3,5]{1,0:T(2,2)}.
    const fn of_example(self) -> [u64; 2] {
        match self {
            Self::Element => [2, 3],
            Self::Bounds => [3, 5],
            Self::Tile => [2, 2],
            Self::TileIndex => [1, 1],
            Self::WithinTile => [0, 1],
            Self::Tiles => [2, 3],
            Self::Padded => [4, 6],
        }
    }
}

/// The letters of the document's formulas, terms of it.
const LETTERS: [(char, Item); 3] = [('e', Item::Element), ('d', Item::Bounds), ('t', Item::Tile)];

/// The meanings of the members' letters, lists and functions, each once.
pub(super) fn meanings(members: &[Node], plain: &Plain) -> Vec<Meaning> {
    let mut walk = Walk { plain, letters: Vec::new(), lists: Vec::new(), functions: Vec::new() };
    members.iter().for_each(|member| walk.node(member));
    let letters = LETTERS.iter().filter(|(letter, _)| walk.letters.contains(letter));
    let letters = letters.filter_map(|(letter, _)| of_term(&letter.to_string()));
    let mut all: Vec<Meaning> = letters.chain(walk.lists).chain(walk.functions).collect();
    all.push(Meaning::of("with numbers", "linear_index_with_tile((2,3), (3,5), (2,2)) = 17"));
    all
}

struct Walk<'a> {
    plain: &'a Plain,
    letters: Vec<char>,
    lists: Vec<Meaning>,
    functions: Vec<Meaning>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node) {
        if let Some(meaning) = self.of_list(node).or_else(|| self.of_product(node)).or_else(|| self.of_sum(node))
            && !self.lists.iter().any(|known| known.meaning == meaning.meaning)
        {
            self.lists.push(meaning);
        }
        match &node.kind {
            Kind::Symbol => self.letters.extend(self.symbol(node).map(|symbol| symbol.letter)),
            Kind::List(items) | Kind::Adjacent(items) => items.iter().for_each(|item| self.node(item)),
            Kind::Call(name, arguments) => {
                let term = match Function::named(name) {
                    Some(Function::LinearIndex) => LINEAR_INDEX,
                    Some(Function::WithTile) => WITH_TILE,
                    _ if arguments.len() == 3 => WITH_TILE,
                    _ => LINEAR_INDEX,
                };
                if !self.functions.iter().any(|known| known.label == term) {
                    self.functions.extend(of_term(term));
                }
                arguments.iter().for_each(|argument| self.node(argument));
            }
            // If an item has a meaning of its own, its parts aren't named again.
            _ if self.item(node).is_some() => self.letters_of(node),
            Kind::Binary(_, left, right) => {
                self.node(left);
                self.node(right);
            }
            Kind::Lettered(_, inside) | Kind::Floor(inside) | Kind::Ceiling(inside) | Kind::Negative(inside) => {
                self.node(inside);
            }
            Kind::Number(_) | Kind::Star => {}
        }
    }

    fn letters_of(&mut self, node: &Node) {
        match &node.kind {
            Kind::Symbol => self.letters.extend(self.symbol(node).map(|symbol| symbol.letter)),
            Kind::Binary(_, left, right) => {
                self.letters_of(left);
                self.letters_of(right);
            }
            Kind::Floor(inside) | Kind::Ceiling(inside) => self.letters_of(inside),
            Kind::List(items) => items.iter().for_each(|item| self.letters_of(item)),
            _ => {}
        }
    }

    fn text(&self, node: &Node) -> &str {
        self.plain.text().get(node.span.clone()).unwrap_or_default()
    }

    fn symbol(&self, node: &Node) -> Option<Symbol<'_>> {
        symbols(self.text(node)).filter(|symbols| symbols.len() == 1)?.pop()
    }

    fn is_letter(&self, node: &Node, item: Item) -> bool {
        self.item(node) == Some(item)
    }

    fn item(&self, node: &Node) -> Option<Item> {
        match &node.kind {
            Kind::Symbol => {
                let letter = self.symbol(node)?.letter;
                LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, item)| *item)
            }
            Kind::List(items) if items.len() == 1 => self.item(&items[0]),
            Kind::Floor(inside) => self.is_quotient(inside, Item::Element).then_some(Item::TileIndex),
            Kind::Ceiling(inside) => self.is_quotient(inside, Item::Bounds).then_some(Item::Tiles),
            Kind::Binary(Operator::Modulo, left, right) => {
                (self.is_letter(left, Item::Element) && self.is_letter(right, Item::Tile)).then_some(Item::WithinTile)
            }
            Kind::Binary(Operator::Times, left, right) => {
                (self.is_letter(left, Item::Tiles) && self.is_letter(right, Item::Tile)).then_some(Item::Padded)
            }
            _ => None,
        }
    }

    /// `e/t`, `d_i/t_i`
    fn is_quotient(&self, node: &Node, of: Item) -> bool {
        match &node.kind {
            Kind::List(items) if items.len() == 1 => self.is_quotient(&items[0], of),
            Kind::Binary(Operator::Over, left, right) => self.is_letter(left, of) && self.is_letter(right, Item::Tile),
            _ => false,
        }
    }

    /// A list, or an item alone that is more than a letter.
    fn of_list(&self, node: &Node) -> Option<Meaning> {
        let all = match &node.kind {
            Kind::List(items) => &items[..],
            Kind::Symbol => return None,
            _ => std::slice::from_ref(node),
        };
        let shown: Vec<&Node> = all.iter().filter(|item| !self.is_ellipsis(item)).collect();
        let items: Vec<Item> = shown.iter().map(|item| self.item(item)).collect::<Option<_>>()?;
        let has_rest = shown.len() < all.len();
        let mut runs = items.clone();
        runs.dedup();
        // For one dimension, `(⌈d_i/t_i⌉, t_i)`.
        let is_of_one = !has_rest && items.len() == 2 && shown.iter().all(|item| self.has_subscript(item));
        let meaning = match runs[..] {
            [Item::Element] => "an element's index",
            [Item::Bounds] => "bounds, the size of each dimension",
            [Item::Tile] => "a tile's sizes",
            [Item::TileIndex] => terms::definition("tile index")?,
            [Item::WithinTile] => terms::definition("within tile index")?,
            [Item::Tiles] => {
                "the number of tiles in each dimension: d/t rounded up, as the last may overrun the array, and padding is inserted"
            }
            [Item::Padded] => "step 1, pad: the bounds padded to whole tiles",
            [Item::TileIndex, Item::WithinTile] => terms::definition("combined coordinate")?,
            [Item::Tiles, Item::Tile] if is_of_one => {
                "step 2, reshape: a dimension is broken into the number of its tiles and the tile's size"
            }
            [Item::Tiles, Item::Tile] => {
                "step 3, transpose, and the bounds in memory: the number of tiles in each dimension, and behind them the tile's sizes"
            }
            [Item::Tiles, Item::Tile, Item::Tiles, Item::Tile] => {
                "step 2, reshape: each dimension is broken into the number of its tiles and the tile's size. No byte moves: it is a bitcast"
            }
            _ => return None,
        };
        let numbers: Vec<u64> = match runs[..] {
            [first, second, _, _] => (0..2).flat_map(|at| [first.of_example()[at], second.of_example()[at]]).collect(),
            _ if is_of_one => runs.iter().map(|item| item.of_example()[0]).collect(),
            _ => runs.iter().flat_map(|item| item.of_example()).collect(),
        };
        Some(Meaning::of(
            &self.label(node),
            format!("{meaning}; ({}) for (2,3) in F32[3,5]{{1,0:T(2,2)}}", listed(&numbers)),
        ))
    }

    /// `t_{n}t_{n-1}…t_{1}`, `d_{i}d_{i-1}`
    fn of_product(&self, node: &Node) -> Option<Meaning> {
        let mut factors = Vec::new();
        self.factors(node, &mut factors);
        let items: Vec<Item> = factors
            .iter()
            .filter(|factor| !self.is_ellipsis(factor))
            .map(|factor| self.item(factor))
            .collect::<Option<_>>()?;
        let meaning = match (&items[..], factors.len()) {
            ([Item::Tile, Item::Tile, ..], _) => "the number of elements in a tile",
            ([Item::Bounds, Item::Bounds], 2) => {
                "the bound of a dimension that took in the next more major one, by `*` in a tile"
            }
            ([Item::Bounds, Item::Bounds, ..], _) => "the number of elements in the array",
            ([Item::Element, Item::Bounds, ..], _) => TERM_OF_INDEX,
            _ => return None,
        };
        Some(Meaning::of(&self.label(node), meaning))
    }

    fn factors<'n>(&self, node: &'n Node, factors: &mut Vec<&'n Node>) {
        match &node.kind {
            Kind::Binary(Operator::Times, left, right) if self.item(node).is_none() => {
                self.factors(left, factors);
                self.factors(right, factors);
            }
            _ => factors.push(node),
        }
    }

    /// A sum with `e_{n}d_{n-1}…d_{1}` in front.
    fn of_sum(&self, node: &Node) -> Option<Meaning> {
        let Kind::Binary(Operator::Plus, left, _) = &node.kind else { return None };
        let mut first = left;
        while let Kind::Binary(Operator::Plus, left, _) = &first.kind {
            first = left;
        }
        let is_index = self.of_product(first).is_some_and(|first| first.meaning == TERM_OF_INDEX);
        is_index.then(|| of_term(LINEAR_INDEX))?
    }

    fn is_ellipsis(&self, node: &Node) -> bool {
        matches!(node.kind, Kind::Symbol) && self.text(node).starts_with(['.', '…'])
    }

    fn has_subscript(&self, node: &Node) -> bool {
        match &node.kind {
            Kind::Symbol => self.symbol(node).is_some_and(|symbol| !symbol.subscript.is_empty()),
            Kind::Binary(_, left, _) => self.has_subscript(left),
            Kind::Floor(inside) | Kind::Ceiling(inside) => self.has_subscript(inside),
            Kind::List(items) => items.iter().all(|item| self.has_subscript(item)),
            _ => false,
        }
    }

    /// The text of a part of the formula, on one line; the beginning of a long one.
    fn label(&self, node: &Node) -> String {
        /// No list of the documents without a remark is longer.
        const LONGEST: usize = 80;
        let text: Vec<&str> = self.text(node).split_whitespace().collect();
        let text = text.join(" ");
        match text.chars().count() {
            ..=LONGEST => text,
            _ => text.chars().take(LONGEST - 1).chain(['…']).collect(),
        }
    }
}

const LINEAR_INDEX: &str = "linear_index";
const WITH_TILE: &str = "linear_index_with_tile";
const TERM_OF_INDEX: &str = "an index times all more minor bounds: a term of linear_index";

/// A term of the documents with its definition.
fn of_term(term: &str) -> Option<Meaning> {
    terms::definition(term).map(|meaning| Meaning::of(term, meaning))
}
