//! The value of a member of the documents' equations: all arithmetic on numbers is checked, and elementwise on lists.

use super::{
    expression::{Kind, Node, Operator},
    wrong::Wrong,
};
use tilewise::{ArrayShape, ElementType, Layout, Shape, Tile, TileDimension, Tiled};

/// The rule for the dimensions of an index.
pub(crate) const ONCE_EACH: &str = "each dimension must be named once";

/// The value of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(i64),
    List(Vec<i64>),
}

/// Why a member has no value.
pub(super) enum NoValue {
    /// It has a symbol in it: it holds in general.
    Symbol,
    Wrong(Wrong),
}

impl From<Wrong> for NoValue {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

/// Computes members, and keeps the element that the first function with a tile, or the first one, is about.
#[derive(Default)]
pub(super) struct Evaluation {
    /// The array of a function's bounds with its tiles, and the index of its element.
    pub(super) element: Option<(Shape, Vec<u64>)>,
    /// Names of other languages, read as the document's.
    pub(super) renamed: Vec<(String, &'static str)>,
}

impl Evaluation {
    pub(super) fn value(&mut self, node: &Node) -> Result<Value, NoValue> {
        let wrong = |kind, message: String| NoValue::Wrong(Wrong::new(kind, message, node.span.clone()));
        Ok(match &node.kind {
            Kind::Number(number) => Value::Number(*number),
            Kind::Symbol => return Err(NoValue::Symbol),
            Kind::Star => {
                return Err(wrong("syntax", "`*` stands in a tile: the dimension is merged into the next".into()));
            }
            Kind::Lettered(letter, _) => {
                return Err(wrong("syntax", format!("`{letter}=…` names a dimension of an element's index")));
            }
            Kind::List(items) => self.list_value(items)?,
            Kind::Adjacent(parts) => {
                let mut product = Value::Number(1);
                for part in parts {
                    let factor = self.value(part)?;
                    product = apply(Operator::Times, &product, &factor).map_err(|why| wrong(why.0, why.1))?;
                }
                product
            }
            Kind::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                apply(*operator, &left, &right).map_err(|why| wrong(why.0, why.1))?
            }
            Kind::Floor(inside) => self.rounded(inside, i64::div_euclid)?,
            Kind::Ceiling(inside) => {
                self.rounded(inside, |left, right| left.div_euclid(right) + i64::from(left.rem_euclid(right) != 0))?
            }
            Kind::Negative(inside) => {
                let inside = self.value(inside)?;
                apply(Operator::Minus, &zeros_like(&inside), &inside).map_err(|why| wrong(why.0, why.1))?
            }
            Kind::Call(name, arguments) => Value::Number(self.call(name, arguments, node)?),
        })
    }

    /// `(2,3)`; `(⌊e/t⌋, e mod t)` is the concatenation of both; `(1 · 3 + 1)` the number in it.
    fn list_value(&mut self, items: &[Node]) -> Result<Value, NoValue> {
        let mut list = Vec::new();
        for item in items {
            match (self.value(item)?, items.len()) {
                (value, 1) => return Ok(value),
                (Value::Number(number), _) => list.push(number),
                (Value::List(part), _) => list.extend(part),
            }
        }
        Ok(Value::List(list))
    }

    /// The quotient, rounded; the value of any other node.
    fn rounded(&mut self, inside: &Node, round: impl Fn(i64, i64) -> i64) -> Result<Value, NoValue> {
        let node = match &inside.kind {
            Kind::List(items) if items.len() == 1 => &items[0],
            _ => inside,
        };
        let Kind::Binary(Operator::Over, left, right) = &node.kind else { return self.value(node) };
        let (left, right) = (self.value(left)?, self.value(right)?);
        let rounded = elementwise(&left, &right, |left, right| match right {
            1.. => Ok(round(left, right)),
            _ => Err(("syntax", format!("{left} is divided by {right}"))),
        });
        Ok(rounded.map_err(|(kind, message)| Wrong::new(kind, message, node.span.clone()))?)
    }

    /// The offset that a function of the document gives.
    fn call(&mut self, name: &str, arguments: &[Node], node: &Node) -> Result<i64, NoValue> {
        let has_tile = match Function::named(name) {
            Some(Function::LinearIndex) => false,
            Some(Function::WithTile) => true,
            Some(Function::Translated) if arguments.iter().all(is_list_or_symbol) => {
                let has_tile = arguments.len() == 3;
                let function = if has_tile { "linear_index_with_tile" } else { "linear_index" };
                if !self.renamed.iter().any(|(known, _)| known == name) {
                    self.renamed.push((name.to_owned(), function));
                }
                has_tile
            }
            _ => {
                let message = format!("`{name}` isn't a function of the document");
                return Err(Wrong::new("syntax", message, node.span.start..node.span.start + name.len()).into());
            }
        };
        let (element, bounds, tiles) = match (arguments, has_tile) {
            ([element, bounds], false) => (element, bounds, None),
            ([element, bounds, tiles], true) => (element, bounds, Some(tiles)),
            _ => return Err(wrong_count(name, arguments, has_tile, node).into()),
        };
        let bounds = self.numbers(bounds)?;
        let mut layout = Layout::row_major(bounds.len());
        let in_array = |error: tilewise::Error| {
            let help = error.help().map(str::to_owned);
            let wrong = Wrong::new(error.kind().as_str(), error.to_string(), node.span.clone());
            NoValue::Wrong(Wrong { help, ..wrong })
        };
        if let Some(tiles) = tiles {
            layout = layout.with_tiles(self.tiles(tiles)?).map_err(in_array)?;
        }
        // Any element type will do: offsets are in elements.
        let shape =
            Shape::array(ElementType::F32, bounds).and_then(|shape| shape.with_layout(layout)).map_err(in_array)?;
        let index = match (&element.kind, shape.as_array()) {
            (Kind::List(items), Some(array)) if items.iter().any(|item| matches!(item.kind, Kind::Lettered(..))) => {
                self.lettered(items, array, element)?
            }
            _ => self.numbers(element)?,
        };
        let offset = Tiled::new(&shape).and_then(|tiled| tiled.offset_of(&index)).map_err(in_array)?;
        let is_first = self
            .element
            .as_ref()
            .is_none_or(|(known, _)| tiles.is_some() && known.layout().is_some_and(|layout| layout.tiles().is_empty()));
        if is_first {
            self.element = Some((shape, index));
        }
        i64::try_from(offset).map_err(|_| Wrong::new("overflow", TOO_LARGE, node.span.clone()).into())
    }

    /// Numbers that can't be negative: bounds, sizes, an index.
    fn numbers(&mut self, node: &Node) -> Result<Vec<u64>, NoValue> {
        let list = match self.value(node)? {
            Value::List(list) => list,
            Value::Number(number) => vec![number],
        };
        let number = |number: i64| {
            u64::try_from(number).map_err(|_| {
                let message = format!("`{number}` is negative");
                let wrong = Wrong::new("index_out_of_bounds", message, node.span.clone());
                wrong.with_help("indices, bounds and tiles are not negative, and don't count from the end")
            })
        };
        Ok(list.into_iter().map(number).collect::<Result<_, _>>()?)
    }

    /// `(y=2, x=3)`
    fn lettered(&mut self, items: &[Node], array: &ArrayShape, element: &Node) -> Result<Vec<u64>, NoValue> {
        let mut index = vec![None; array.rank()];
        for item in items {
            let Kind::Lettered(letter, value) = &item.kind else {
                let message = "each number needs the letter of its dimension, or none does";
                return Err(Wrong::new("syntax", message, item.span.clone()).into());
            };
            let dimension = (0..array.rank()).find(|&dimension| {
                array.dimension_letter(dimension).is_some_and(|known| letter == known.encode_utf8(&mut [0; 4]))
            });
            let Some(place) = dimension.and_then(|dimension| index.get_mut(dimension)) else {
                let message = format!("`{letter}` is not the letter of a dimension here");
                let help = "arrays of 2, 3 and 4 dimensions have the letters yx, zyx, pzyx";
                return Err(Wrong::new("syntax", message, item.span.clone()).with_help(help).into());
            };
            *place = self.numbers(value)?.first().copied();
        }
        let index: Option<Vec<u64>> = index.into_iter().collect();
        index
            .filter(|index| index.len() == items.len())
            .ok_or_else(|| Wrong::new("index_rank_mismatch", ONCE_EACH, element.span.clone()).into())
    }

    /// `(2,2)`, `(∗,∗,2,∗,3)`, `(2,4)(2,1)`, `((2,4), (2,1))`
    fn tiles(&mut self, node: &Node) -> Result<Vec<Tile>, NoValue> {
        let is_list = |node: &Node| matches!(node.kind, Kind::List(_));
        match &node.kind {
            Kind::Adjacent(tiles) => tiles.iter().map(|tile| self.tile(tile)).collect(),
            Kind::List(tiles) if tiles.len() > 1 && tiles.iter().all(is_list) => {
                tiles.iter().map(|tile| self.tile(tile)).collect()
            }
            _ => Ok(vec![self.tile(node)?]),
        }
    }

    fn tile(&mut self, node: &Node) -> Result<Tile, NoValue> {
        let items = match &node.kind {
            Kind::List(items) => &items[..],
            _ => std::slice::from_ref(node),
        };
        let mut sizes = Vec::new();
        let in_tile = |error: tilewise::Error| Wrong::new(error.kind().as_str(), error.to_string(), node.span.clone());
        for item in items {
            match &item.kind {
                Kind::Star => sizes.push(TileDimension::Combined),
                _ => match self.value(item)? {
                    Value::Number(size) => sizes.push(TileDimension::try_from(size).map_err(in_tile)?),
                    Value::List(part) => {
                        for size in part {
                            sizes.push(TileDimension::try_from(size).map_err(in_tile)?);
                        }
                    }
                },
            }
        }
        Ok(Tile::from_dimensions(sizes).map_err(in_tile)?)
    }
}

/// The document's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    LinearIndex,
    WithTile,
    /// Under a name of another language: with a tile if there are three arguments.
    Translated,
}

impl Function {
    /// The function of a name: `linear_index`, `LinearIndexWithTile`, `линейный_индекс`. The document's translations translate it, so a name
    /// in another script is taken for it.
    pub(super) fn named(name: &str) -> Option<Self> {
        let letters: String = name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect();
        match letters.as_str() {
            "linearindex" => Some(Self::LinearIndex),
            "linearindexwithtile" => Some(Self::WithTile),
            _ if !name.is_ascii() => Some(Self::Translated),
            _ if ["indexlineaire", "indicelineaire"].iter().any(|french| letters.starts_with(french)) => {
                Some(Self::Translated)
            }
            _ => None,
        }
    }
}

/// Whether an argument is written as the document's are.
fn is_list_or_symbol(node: &Node) -> bool {
    matches!(node.kind, Kind::List(_) | Kind::Adjacent(_) | Kind::Symbol)
}

fn wrong_count(name: &str, arguments: &[Node], has_tile: bool, node: &Node) -> Wrong {
    let wanted =
        if has_tile { "three lists: the element, the bounds, the tile" } else { "two lists: the element, the bounds" };
    // The excess arguments, or the place of the missing list.
    let count = if has_tile { 3 } else { 2 };
    let span = match arguments.get(count) {
        Some(extra) => extra.span.start..node.span.end.saturating_sub(1),
        None => node.span.end.saturating_sub(1)..node.span.end,
    };
    Wrong::new("syntax", format!("`{name}` takes {wanted}"), span)
}

const TOO_LARGE: &str = "this does not fit in a signed 64-bit integer";

type Why = (&'static str, String);

fn zeros_like(value: &Value) -> Value {
    match value {
        Value::Number(_) => Value::Number(0),
        Value::List(list) => Value::List(vec![0; list.len()]),
    }
}

fn apply(operator: Operator, left: &Value, right: &Value) -> Result<Value, Why> {
    elementwise(left, right, |left, right| {
        let result = match operator {
            Operator::Plus => left.checked_add(right),
            Operator::Minus => left.checked_sub(right),
            Operator::Times => left.checked_mul(right),
            Operator::Over | Operator::Modulo if right <= 0 => {
                return Err(("syntax", format!("{left} is divided by {right}")));
            }
            Operator::Modulo => Some(left.rem_euclid(right)),
            Operator::Over if left % right == 0 => Some(left / right),
            Operator::Over => {
                let message =
                    format!("{left}/{right} isn't a whole number: write `⌊{left}/{right}⌋` or `⌈{left}/{right}⌉`");
                return Err(("syntax", message));
            }
        };
        result.ok_or_else(|| ("overflow", TOO_LARGE.to_owned()))
    })
}

fn elementwise(left: &Value, right: &Value, operation: impl Fn(i64, i64) -> Result<i64, Why>) -> Result<Value, Why> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Number(operation(*left, *right)?)),
        (Value::List(left), Value::List(right)) if left.len() == right.len() => {
            let each = left.iter().zip(right).map(|(left, right)| operation(*left, *right));
            Ok(Value::List(each.collect::<Result<_, _>>()?))
        }
        (Value::List(left), Value::List(right)) => {
            let message = format!("a list of {} and one of {} can't be combined", left.len(), right.len());
            Err(("index_rank_mismatch", message))
        }
        _ => Err(("syntax", "a list and a number can't be combined".to_owned())),
    }
}
