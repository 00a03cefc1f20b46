//! The offset of one element, worked out step by step as the tiled-layout document does it.

use crate::{
    Error, Tile, Tiled,
    text::join,
    tiled::{Axis, Step},
};
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::fmt;

/// The offset of an element with the numbers of the document's formula, linear_index((⌊e/t⌋, e mod t), (⌈d/t⌉, t)), for each tile.
///
/// Made by [`Tiled::worked_offset`]. `Display` writes it out, a line a step. Every index is along axes of memory, major → minor, each
/// with its bound. A tile names all axes, so the memory this takes grows with tiles × axes.
///
/// ```
/// use tilewise::Tiled;
///
/// let worked = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?.worked_offset(&[2, 3])?;
/// assert_eq!(
///     worked.to_string(),
///     "(2,3) in (3,5)\n\
///      T(2,2)  tile index ⌊e/t⌋ = (1,1) in ⌈d/t⌉ = (2,3), within the tile e mod t = (0,1) in (2,2)\n        \
///              combined (1,1,0,1) in (2,3,2,2)\n\
///      linear_index = (1·3 + 1)·2·2 + (0·2 + 1) = 17",
/// );
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkedOffset {
    /// The logical index, by dimension number, each with its bound.
    pub index: AxisIndex,
    /// The index in physical order, each with its bound.
    pub physical_order: AxisIndex,
    /// Each tile, the first tile first.
    pub tiles: Vec<WorkedTile>,
    /// The offset, in elements.
    pub offset: u64,
}

/// The index in front of and behind one tile; part of a [`WorkedOffset`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkedTile {
    /// The tile.
    pub tile: Tile,
    /// The axes that the tile leaves alone.
    pub untouched: AxisIndex,
    /// The axes the tile is applied to, one list for each size: e and d of the formula. `*` makes one of several axes.
    pub covered: Vec<AxisIndex>,
    /// ⌊e/t⌋ and ⌈d/t⌉.
    pub tile_index: AxisIndex,
    /// e mod t and t.
    pub within: AxisIndex,
}

/// An index along axes of memory, major → minor, each with its axis' bound.
pub type AxisIndex = Vec<(u64, u64)>;

impl Tiled {
    /// The offset of a logical index with the numbers that lead to it.
    ///
    /// # Errors
    /// As for [`Tiled::offset_of`].
    pub fn worked_offset(&self, index: &[u64]) -> Result<WorkedOffset, Error> {
        let offset = self.offset_of(index)?;
        let mut values = vec![0; self.bounds.len()];
        values[..index.len()].copy_from_slice(index);
        let mut axes: Vec<Axis> = self.array.major_to_minor().collect();
        let at = |values: &[u64], axis: Axis| (values[axis], self.bounds[axis]);
        let all = |values: &[u64], axes: &[Axis]| -> AxisIndex { axes.iter().map(|&axis| at(values, axis)).collect() };
        let physical_order = all(&values, &axes);
        let mut tiles = Vec::new();
        let mut start = 0;
        let layout_tiles = self.array.layout().map_or(&[][..], |layout| layout.tiles());
        for (tile, &end) in layout_tiles.iter().zip(&self.tile_ends) {
            let mut merging: &[Axis] = &[];
            let (mut prepended, mut covered, mut outers, mut inners) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for step in &self.steps[start..end] {
                match step {
                    Step::Prepend { axis } => prepended.push(*axis),
                    Step::Merge { parts, merged } => {
                        merging = parts;
                        values[*merged] = parts.iter().fold(0, |value, &part| value * self.bounds[part] + values[part]);
                    }
                    &Step::Split { axis, tile: size, outer, inner } => {
                        (values[outer], values[inner]) = (values[axis] / size, values[axis] % size);
                        let parts = if merging.is_empty() { core::slice::from_ref(&axis) } else { merging };
                        covered.push(all(&values, parts));
                        merging = &[];
                        outers.push(outer);
                        inners.push(inner);
                    }
                }
            }
            start = end;
            axes.splice(0..0, prepended);
            axes.truncate(axes.len() - tile.dimensions().len());
            let untouched = all(&values, &axes);
            let (tile_index, within) = (all(&values, &outers), all(&values, &inners));
            axes.extend(outers.into_iter().chain(inners));
            tiles.push(WorkedTile { tile: tile.clone(), untouched, covered, tile_index, within });
        }
        let bounds = self.logical_dimensions().iter().copied();
        Ok(WorkedOffset { index: index.iter().copied().zip(bounds).collect(), physical_order, tiles, offset })
    }
}

impl WorkedTile {
    /// The index along all axes behind the tile: the untouched axes, the tile's index, the index within.
    #[must_use]
    pub fn combined(&self) -> AxisIndex {
        [&self.untouched[..], &self.tile_index, &self.within].concat()
    }
}

impl WorkedOffset {
    /// `linear_index = (1·3 + 1)·2·2 + (0·2 + 1) = 17`, the last line of the text; for more than 20 axes, without the
    /// sum.
    #[must_use]
    pub fn formula(&self) -> String {
        /// The most axes of memory in a formula.
        const LONGEST: usize = 20;
        let (outer, within) = match self.tiles.last() {
            Some(last) => ([&last.untouched[..], &last.tile_index].concat(), &last.within[..]),
            None => (Vec::new(), &self.physical_order[..]),
        };
        let offset = self.offset;
        let sum = match (outer.len(), within.len()) {
            (0, 0) => None,
            (outer, within) if outer + within > LONGEST => None,
            (0, _) => Some(sum(within)),
            _ => Some(format!("{}·{} + {}", in_brackets(&outer), times(within), in_brackets(within))),
        };
        match sum {
            Some(sum) if sum != offset.to_string() => format!("linear_index = {sum} = {offset}"),
            _ => format!("linear_index = {offset}"),
        }
    }
}

impl fmt::Display for WorkedOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&indexed(&self.index))?;
        if self.physical_order != self.index {
            write!(f, "; in physical order {}", indexed(&self.physical_order))?;
        }
        let names = self.tiles.iter().enumerate();
        let names: Vec<String> =
            names.map(|(level, worked)| format!("{}{}", if level == 0 { "T" } else { "" }, worked.tile)).collect();
        let width = crate::steps::widest(names.iter().map(|name| name.chars().count()));
        for (name, worked) in names.iter().zip(&self.tiles) {
            let merged = worked.covered.iter().filter(|axes| axes.len() > 1);
            let mut lines: Vec<String> =
                merged.map(|axes| format!("* combines {} to {}", indexed(axes), merged_in_words(axes))).collect();
            let [(tile, tiles), (within, sizes)] = [&worked.tile_index, &worked.within].map(|axes| split(axes));
            lines.push(format!(
                "tile index ⌊e/t⌋ = {tile} in ⌈d/t⌉ = {tiles}, within the tile e mod t = {within} in {sizes}"
            ));
            lines.push(format!("combined {}", indexed(&worked.combined())));
            for (at, line) in lines.iter().enumerate() {
                write!(f, "\n{:<width$}  {line}", if at == 0 { name } else { "" })?;
            }
        }
        write!(f, "\n{}", self.formula())
    }
}

/// `(1,1) in (2,3)`
fn indexed(axes: &[(u64, u64)]) -> String {
    let (index, bounds) = split(axes);
    format!("{index} in {bounds}")
}

fn split(axes: &[(u64, u64)]) -> (String, String) {
    let (index, bounds): (Vec<u64>, Vec<u64>) = axes.iter().copied().unzip();
    let tuple = |numbers: &[u64]| {
        let mut text = String::from("(");
        // Writing to a string can't fail.
        let _ = join(&mut text, numbers);
        text + ")"
    };
    (tuple(&index), tuple(&bounds))
}

/// `1·7·8 + 2·8 + 3 = 75 in 112`
fn merged_in_words(axes: &[(u64, u64)]) -> String {
    let (value, bound) =
        axes.iter().fold((0, 1_u64), |(value, all), &(at, bound)| (value * bound + at, all.saturating_mul(bound)));
    format!("{} = {value} in {bound}", sum(axes))
}

/// The document's linear index, e₂·d₁ + e₁.
fn sum(axes: &[(u64, u64)]) -> String {
    let mut terms: Vec<String> = Vec::with_capacity(axes.len());
    for (at, (index, _)) in axes.iter().enumerate() {
        let minor = axes[at + 1..].iter().map(|&(_, bound)| format!("·{bound}"));
        terms.push(minor.fold(index.to_string(), |term, factor| term + &factor));
    }
    terms.join(" + ")
}

fn in_brackets(axes: &[(u64, u64)]) -> String {
    if axes.len() == 1 { sum(axes) } else { format!("({})", sum(axes)) }
}

/// `2·2`, the sizes of a tile.
fn times(axes: &[(u64, u64)]) -> String {
    let sizes: Vec<String> = axes.iter().map(|(_, size)| size.to_string()).collect();
    sizes.join("·")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formula(text: &str, index: &[u64]) -> String {
        let tiled = Tiled::new(&text.parse().expect(text)).expect(text);
        tiled.worked_offset(index).expect(text).formula()
    }

    /// The documents' own examples, and cases they leave out: scalars, no tiles, longer tiles.
    #[test]
    fn formulas_are_the_documents() {
        assert_eq!(formula("f32[3,5]{1,0:T(2,2)}", &[2, 3]), "linear_index = (1·3 + 1)·2·2 + (0·2 + 1) = 17");
        assert_eq!(
            formula("f32[8,8]{1,0:T(2,4)(2,1,1,1)}", &[6, 5]),
            "linear_index = (1·2·2·4 + 1·2·4 + 0·4 + 1)·2·1·1·1 + (1·1·1·1 + 0·1·1 + 0·1 + 0) = 51"
        );
        assert_eq!(formula("f32[2,3]{0,1}", &[1, 2]), "linear_index = 2·2 + 1 = 5");
        assert_eq!(formula("f32[7]{0:T(4)}", &[6]), "linear_index = 1·4 + 2 = 6");
        assert_eq!(formula("f32[7]{0}", &[6]), "linear_index = 6");
        assert_eq!(formula("f32[]{:T(128)}", &[]), "linear_index = 0·128 + 0 = 0");
        assert_eq!(formula("f32[]", &[]), "linear_index = 0");
    }

    #[test]
    fn combining_is_written_out() {
        let text = "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}";
        let tiled = Tiled::new(&text.parse().expect(text)).expect(text);
        assert_eq!(
            tiled.worked_offset(&[1, 2, 3, 4, 5]).expect(text).to_string(),
            "(1,2,3,4,5) in (2,7,8,11,10)\n\
             T(*,*,2,*,3)  * combines (1,2,3) in (2,7,8) to 1·7·8 + 2·8 + 3 = 75 in 112\n              \
                           * combines (4,5) in (11,10) to 4·10 + 5 = 45 in 110\n              \
                           tile index ⌊e/t⌋ = (37,15) in ⌈d/t⌉ = (56,37), within the tile e mod t = (1,0) in (2,3)\n              \
                           combined (37,15,1,0) in (56,37,2,3)\n\
             linear_index = (37·37 + 15)·2·3 + (1·3 + 0) = 8307"
        );
    }
}
