//! One shape made from another, as XLA's `ShapeUtil` does it: the answer of `tilewise edit`.

use super::{
    input::{Reader, dimension_numbers, number, numbers},
    labelled::Labelled,
};
use crate::{
    Terminal, WriteText,
    style::{STRONG, bytes_both, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{ArrayShape, Shape, Tiled};
use tilewise_audit::Failure;

/// A shape, and the result of each edit.
///
/// ```
/// use tilewise_report::{Edited, Reader};
///
/// let edits = ["permute=1,0".to_owned(), "append-major=7".to_owned()];
/// let edited = Edited::read("f32[3,5]{1,0:T(2,2)}", &edits, &mut Reader::without_notes())?;
/// assert_eq!(edited.shape(), "f32[5,3,7]{0,1,2:T(2,2)}");
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Edited {
    /// The result of the last edit.
    shape: String,
    from: String,
    steps: Vec<Step>,
    /// Null where a size is not known.
    physical_bytes: Option<u64>,
    #[serde(skip)]
    physical_bytes_before: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
struct Step {
    edit: String,
    shape: String,
}

/// An edit: its name, how its value is written, and its meaning.
struct Edit {
    name: &'static str,
    value: &'static str,
    meaning: &'static str,
    apply: fn(&Shape, &str) -> Result<Shape, Failure>,
}

const EDITS: &[Edit] = &[
    Edit {
        name: "permute",
        value: "1,0",
        meaning: "reorder the dimensions; every element keeps its place in memory",
        apply: |shape, value| Ok(shape.permute_dimensions(&dimensions(shape, value)?)?),
    },
    Edit {
        name: "delete",
        value: "0,2",
        meaning: "delete dimensions; the rest of the layout stays",
        apply: |shape, value| Ok(shape.delete_dimensions(&dimensions(shape, value)?)?),
    },
    Edit {
        name: "insert",
        value: "1:7",
        meaning: "insert a dimension of size 7 in front of dimension 1; only the order stays of the layout",
        apply: insert,
    },
    Edit {
        name: "append-major",
        value: "7",
        meaning: "append a dimension of size 7, the most major in memory; the rest of the layout stays",
        apply: |shape, value| Ok(shape.append_major_dimension(number(value, 0)?)?),
    },
    Edit {
        name: "append-minor",
        value: "7",
        meaning: "append a dimension of size 7, the most minor in memory; the rest of the layout stays",
        apply: |shape, value| Ok(shape.append_minor_dimension(number(value, 0)?)?),
    },
    Edit {
        name: "move-to-major",
        value: "1",
        meaning: "put dimension 1 in front, the most major in memory; only the order stays of the layout",
        apply: |shape, value| match dimensions(shape, value)?[..] {
            [dimension] => Ok(shape.move_dim_to_major(dimension)?),
            _ => Err(Failure::new("syntax", "one dimension is moved at a time")),
        },
    },
    Edit {
        name: "drop-degenerate",
        value: "",
        meaning: "delete the dimensions of size 1",
        apply: |shape, _| Ok(shape.drop_degenerate_dimensions()?),
    },
    Edit { name: "clear-tiles", value: "", meaning: "leave the tiles out", apply: |shape, _| Ok(shape.clear_tiles()) },
    Edit {
        name: "default-layout",
        value: "",
        meaning: "make the layout XLA's default, major to minor",
        apply: |shape, _| Ok(shape.with_default_layout()?),
    },
    Edit {
        name: "descending-layout",
        value: "",
        meaning: "order the dimensions as they lie in memory, with a layout that is major to minor",
        apply: |shape, _| Ok(shape.with_descending_layout_and_same_physical_layout()?),
    },
    Edit {
        name: "static",
        value: "",
        meaning: "make dynamic dimensions as large as their bound",
        apply: |shape, _| Ok(shape.static_shape()?),
    },
    Edit {
        name: "type",
        value: "bf16",
        meaning: "change the element type; the layout stays",
        apply: |shape, value| Ok(shape.change_element_type(value.trim().parse()?)?),
    },
];

fn array(shape: &Shape) -> Result<&ArrayShape, Failure> {
    shape.as_array().ok_or_else(|| Failure::new("not_an_array", "only an array has dimensions"))
}

fn dimensions(shape: &Shape, value: &str) -> Result<Vec<usize>, Failure> {
    match shape.as_array() {
        Some(array) => dimension_numbers(value, array),
        // For a tuple, the dimensions of each array.
        None => numbers(value, 0)?
            .into_iter()
            .map(|number| {
                usize::try_from(number).map_err(|_| Failure::new("index_out_of_bounds", "there is no such dimension"))
            })
            .collect(),
    }
}

/// `1:7`, `1:7,8`
fn insert(shape: &Shape, value: &str) -> Result<Shape, Failure> {
    let wrong = || Failure::new("syntax", "`insert` takes a place and a size").with_help("such as `insert=1:7`");
    let (place, sizes) = value.split_once(':').ok_or_else(wrong)?;
    let rank = array(shape)?.rank();
    let place = usize::try_from(number(place, 0)?).unwrap_or(usize::MAX);
    if place > rank {
        let message = format!("there is no place {place} between the dimensions of an array of rank {rank}");
        return Err(Failure::new("index_out_of_bounds", message));
    }
    Ok(shape.insert_dimensions_at_index(place, &numbers(sizes, 0)?)?)
}

impl Edited {
    /// A shape with edits, `NAME` or `NAME=VALUE`, one behind the other.
    ///
    /// # Errors
    /// Those of [`Reader::shape`], with the span; `unknown_edit`; and of an edit that XLA's function aborts on.
    pub fn read(text: &str, edits: &[String], reader: &mut Reader) -> Result<Self, Failure> {
        let first = reader.shape(text)?;
        let mut shape = first.clone();
        let mut steps = Vec::new();
        for edit in edits {
            shape = apply(&shape, edit)?;
            steps.push(Step { edit: edit.clone(), shape: shape.to_string() });
        }
        let bytes = |shape: &Shape| Tiled::new(shape).ok().map(|tiled| tiled.physical_bytes());
        Ok(Self {
            shape: shape.to_string(),
            from: first.to_string(),
            steps,
            physical_bytes: bytes(&shape),
            physical_bytes_before: bytes(&first),
        })
    }

    /// The result of the last edit.
    #[must_use]
    pub fn shape(&self) -> &str {
        &self.shape
    }

    /// Each edit as it is written, and its meaning.
    pub fn edits() -> impl Iterator<Item = (String, &'static str)> {
        let written = |edit: &Edit| match edit.value {
            "" => edit.name.to_owned(),
            value => format!("{}={value}", edit.name),
        };
        EDITS.iter().map(move |edit| (written(edit), edit.meaning))
    }
}

fn apply(shape: &Shape, text: &str) -> Result<Shape, Failure> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let name = name.trim().trim_start_matches('-');
    let Some(edit) = EDITS.iter().find(|edit| edit.name == name) else {
        let known: Vec<String> = Edited::edits().map(|(written, _)| format!("`{written}`")).collect();
        let message = format!("`{name}` isn't an edit");
        return Err(Failure::new("unknown_edit", message).with_help(format!("the edits are {}", known.join(", "))));
    };
    if value.is_empty() != edit.value.is_empty() {
        let example =
            if edit.value.is_empty() { edit.name.to_owned() } else { format!("{}={}", edit.name, edit.value) };
        return Err(Failure::new("syntax", format!("`{text}`: write `{example}`")));
    }
    // The span would lie in the value, but the shape is the input.
    (edit.apply)(shape, value).map_err(|failure| failure.about("the edit", text))
}

impl WriteText for Edited {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let out = &mut Labelled::new(terminal, out);
        writeln!(out.to, "{}", self.from)?;
        for step in &self.steps {
            out.line(&step.edit, &styled(STRONG, &step.shape))?;
        }
        if let (Some(before), Some(after)) = (self.physical_bytes_before, self.physical_bytes) {
            let words = if before == after {
                bytes_both(after)
            } else {
                format!("{} → {}", bytes_both(before), bytes_both(after))
            };
            out.line("physical size", &words)?;
        }
        writeln!(out.to)
    }
}
