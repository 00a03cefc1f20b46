//! The fields of rows, spelled once: JSON prints all of them, tables (CSV, Arrow, data frames) those that are columns.

use crate::causes_in_words;
use std::borrow::Cow;
use tilewise::{Sizes, tpu::memory_space_name};
use tilewise_audit::{Allocation, BufferRow, Cause, SourceLine};
use tilewise_oom::{Window, WindowKind};

/// A row of a report or an explanation, as named fields.
///
/// ```
/// use tilewise_report::{TableRow, Value};
///
/// let module = tilewise_hlo::Module::parse("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")?;
/// let report = tilewise_audit::audit(&module);
/// let row = report.buffers().next().expect("a buffer");
/// let padding = row.columns().iter().position(|column| column.name == "padding_bytes");
/// assert_eq!(padding.map(|at| row.cells()[at].clone()), Some(Value::Count(185_600_000)));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
pub trait TableRow {
    /// The columns of a table of such rows, in order.
    const COLUMNS: &'static [Column];

    /// Every field with its name, in the order of JSON.
    fn fields(&self) -> Vec<(&'static str, Value<'_>)>;

    /// The columns of a table of such rows, in order.
    fn columns(&self) -> &'static [Column] {
        Self::COLUMNS
    }

    /// A value for each column: [`Value::Null`], text or a number.
    ///
    /// Fields of [`Value::Source`] are columns of their own, `file` and `line`; [`Value::Path`] is text with dots
    /// between its numbers.
    fn cells(&self) -> Vec<Value<'_>> {
        let fields = self.fields();
        let cell = |column: &Column| {
            let name = if matches!(column.name, "file" | "line") { "source" } else { column.name };
            let field = fields.iter().find(|(field, _)| *field == name);
            match field.map_or(Value::Null, |(_, value)| value.clone()) {
                Value::Source(source) if column.name == "line" => Value::Count(source.line.into()),
                Value::Source(source) => Value::Text(source.file.as_str().into()),
                Value::Path(path) => {
                    Value::Text(path.iter().map(usize::to_string).collect::<Vec<_>>().join(".").into())
                }
                value => value,
            }
        };
        Self::COLUMNS.iter().map(cell).collect()
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The kind of its cells.
    pub kind: Kind,
    /// Whether a row may have no value there.
    pub is_optional: bool,
}

/// The kind of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`Value::Text`].
    Text,
    /// [`Value::Count`].
    Count,
    /// [`Value::Ratio`].
    Ratio,
}

impl Column {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, is_optional: false }
    }

    const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, is_optional: true }
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value.
    Null,
    /// Words, names, shapes.
    Text(Cow<'a, str>),
    /// Bytes, numbers of lines and memory spaces.
    Count(u64),
    /// A quotient.
    Ratio(f64),
    /// Yes or no.
    Flag(bool),
    /// A place inside tuples.
    Path(&'a [usize]),
    /// A line of the user's program.
    #[serde(serialize_with = "crate::json::referred")]
    Source(&'a SourceLine),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a SourceLine> for Value<'a> {
    fn from(source: &'a SourceLine) -> Self {
        Self::Source(source)
    }
}

impl From<u64> for Value<'_> {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u8> for Value<'_> {
    fn from(number: u8) -> Self {
        Self::Count(number.into())
    }
}

impl From<f64> for Value<'_> {
    fn from(ratio: f64) -> Self {
        Self::Ratio(ratio)
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

/// The sizes of a row's array: data, memory, padding, expansion.
fn sizes(sizes: Option<Sizes>) -> [(&'static str, Value<'static>); 4] {
    [
        ("logical_bytes", sizes.map(|sizes| sizes.logical_bytes).into()),
        ("physical_bytes", sizes.map(|sizes| sizes.physical_bytes).into()),
        ("padding_bytes", sizes.map(|sizes| sizes.padding_bytes()).into()),
        ("expansion", sizes.map(|sizes| sizes.expansion()).into()),
    ]
}

/// The causes of a row's padding, its operation and its source line.
fn reasons<'a>(
    causes: &[Cause],
    op_name: Option<&'a str>,
    source: Option<&'a SourceLine>,
) -> [(&'static str, Value<'a>); 3] {
    [
        ("cause", (!causes.is_empty()).then(|| causes_in_words(causes).join("; ")).into()),
        ("op_name", op_name.into()),
        ("source", source.into()),
    ]
}

impl TableRow for BufferRow {
    const COLUMNS: &'static [Column] = &[
        Column::new("instruction", Kind::Text),
        Column::new("shape_index", Kind::Text),
        Column::new("computation", Kind::Text),
        Column::new("opcode", Kind::Text),
        Column::new("shape", Kind::Text),
        Column::new("memory_space", Kind::Count),
        Column::new("logical_bytes", Kind::Count),
        Column::new("physical_bytes", Kind::Count),
        Column::new("padding_bytes", Kind::Count),
        Column::new("expansion", Kind::Ratio),
        Column::optional("cause", Kind::Text),
        Column::optional("op_name", Kind::Text),
        Column::optional("file", Kind::Text),
        Column::optional("line", Kind::Count),
    ];

    fn fields(&self) -> Vec<(&'static str, Value<'_>)> {
        let mut fields = vec![
            ("instruction", self.instruction.as_str().into()),
            ("computation", self.computation.as_str().into()),
            ("opcode", self.opcode.as_str().into()),
            ("shape", self.shape.to_string().into()),
            ("shape_index", Value::Path(&self.shape_index)),
            ("memory_space", self.memory_space.into()),
            ("memory_space_name", memory_space_name(self.memory_space).into()),
        ];
        fields.extend(sizes(Some(self.sizes)));
        fields.extend(reasons(&self.causes, self.op_name.as_deref(), self.source.as_ref()));
        fields
    }
}

impl TableRow for Allocation {
    const COLUMNS: &'static [Column] = &[
        Column::new("section", Kind::Text),
        Column::optional("instruction", Kind::Text),
        Column::optional("shape", Kind::Text),
        Column::optional("reported_bytes", Kind::Count),
        Column::optional("logical_bytes", Kind::Count),
        Column::optional("physical_bytes", Kind::Count),
        Column::optional("padding_bytes", Kind::Count),
        Column::optional("expansion", Kind::Ratio),
        Column::optional("cause", Kind::Text),
        Column::optional("op_name", Kind::Text),
        Column::optional("file", Kind::Text),
        Column::optional("line", Kind::Count),
    ];

    fn fields(&self) -> Vec<(&'static str, Value<'_>)> {
        let entry = &self.entry;
        let (instruction, opcode) = entry.instruction().unzip();
        let window = entry.window();
        let block = window.as_ref().and_then(|window| window.block.as_ref()).map(|block| block.text.clone());
        let mut fields = vec![
            ("section", entry.section.as_str().into()),
            ("instruction", instruction.into()),
            ("opcode", opcode.into()),
            ("label", entry.label.as_deref().into()),
            ("allocation_type", entry.allocation_type.as_deref().into()),
            ("tag", entry.tag.as_deref().into()),
            ("window", window.as_ref().and_then(window_words).into()),
            ("block", block.into()),
            ("buffers", window.as_ref().and_then(|window| window.buffers).map(u64::from).into()),
            ("shape", entry.shape.as_ref().map(|shape| shape.text.as_str()).into()),
            ("memory_space", self.memory_space.into()),
            ("memory_space_name", self.memory_space.map(memory_space_name).into()),
            ("reported_bytes", entry.size.as_ref().map(|size| size.bytes()).into()),
            ("reported_unpadded_bytes", entry.unpadded.as_ref().map(|size| size.bytes()).into()),
            ("agrees", self.agrees().into()),
        ];
        fields.extend(sizes(self.sizes));
        let op_name = entry.operator.as_ref().and_then(|operator| operator.op_name());
        fields.extend(reasons(&self.causes, op_name, self.source.as_ref()));
        fields
    }
}

/// The kind of a kernel's window, its operand and the full array, in words; `None` for spilled registers.
pub(crate) fn window_words(window: &Window) -> Option<String> {
    let number = window.operand.map(|operand| format!(" {operand}")).unwrap_or_default();
    let full = window.full.as_ref().map(|full| format!(" of {}", full.text)).unwrap_or_default();
    (window.kind != WindowKind::Spill).then(|| format!("{}{number}{full}", window.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column is a field, but for the two parts of `source`.
    fn check(row: &impl TableRow) {
        let fields = row.fields();
        for column in row.columns() {
            let name = if matches!(column.name, "file" | "line") { "source" } else { column.name };
            assert!(fields.iter().any(|(field, _)| *field == name), "{}", column.name);
        }
        for (column, cell) in row.columns().iter().zip(row.cells()) {
            let fits = match (cell, column.kind) {
                (Value::Null, _) => column.is_optional,
                (Value::Text(_), kind) => kind == Kind::Text,
                (Value::Count(_), kind) => kind == Kind::Count,
                (Value::Ratio(_), kind) => kind == Kind::Ratio,
                _ => false,
            };
            assert!(fits, "{}", column.name);
        }
    }

    #[test]
    fn columns_are_fields() {
        let text = "x = (f32[20,3]{1,0:T(8,128)}, s8[]) custom-call(), metadata={source_file=\"m.py\" source_line=3}";
        let report = tilewise_audit::audit(&tilewise_hlo::Module::parse(text).expect("an instruction"));
        report.buffers().for_each(|row| check(&row));
        let row = report.buffers().next().expect("a buffer");
        assert_eq!(row.cells()[1], Value::from("0"));
        let text = "1. Size: 4.0K\n Shape: f32[8,3]{1,0:T(8,128)}\n XLA label: x\n ====\n\
                    2. Size: 1.0K\n XLA label: overlays\n ====";
        let explained = tilewise_audit::explain(tilewise_oom::Message::parse(text).expect("a list"), None);
        explained.allocations.iter().for_each(check);
    }
}
