//! Rows as a Parquet file, a row group for each program.

use super::{Exporter, csv::OF_FILE};
use crate::{AuditOutput, Kind, ReportView, TableRow, Value};
use parquet::{
    basic::{ConvertedType, Repetition, Type as PhysicalType},
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type,
};
use std::{
    io::{self, Write},
    sync::Arc,
};
use tilewise_audit::BufferRow;

/// A row for each buffer. The file is in memory until it ends.
#[expect(missing_debug_implementations, reason = "a writer of another crate")]
pub struct Parquet {
    writer: SerializedFileWriter<Vec<u8>>,
}

impl Parquet {
    /// A file without rows: the columns of a buffer after the program's `source` and `module`, as in CSV.
    ///
    /// # Errors
    /// None that is known.
    pub fn new() -> io::Result<Self> {
        let of_file = OF_FILE.map(|name| (name, Kind::Text, false));
        let of_buffer = BufferRow::COLUMNS.iter().map(|column| (column.name, column.kind, column.is_optional));
        let fields = of_file.into_iter().chain(of_buffer).map(|(name, kind, is_optional)| {
            let (physical, converted) = match kind {
                Kind::Text => (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8),
                Kind::Ratio => (PhysicalType::DOUBLE, ConvertedType::NONE),
                _ => (PhysicalType::INT64, ConvertedType::NONE),
            };
            let repetition = if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
            let field = Type::primitive_type_builder(name, physical);
            Ok(Arc::new(field.with_converted_type(converted).with_repetition(repetition).build()?))
        });
        let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
        let schema = Type::group_type_builder("buffers").with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        Ok(Self { writer: SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties)? })
    }

    fn add(&mut self, view: &ReportView<'_>) -> io::Result<()> {
        let buffers: Vec<_> = view.buffers().collect();
        let of_file: [Value<'_>; 2] = [view.source.into(), view.report.module_name.as_str().into()];
        let mut columns: Vec<Vec<Value<'_>>> = of_file.map(|value| vec![value; buffers.len()]).into();
        columns.extend(BufferRow::COLUMNS.iter().map(|_| Vec::with_capacity(buffers.len())));
        for buffer in &buffers {
            for (column, cell) in columns.iter_mut().skip(2).zip(buffer.cells()) {
                column.push(cell);
            }
        }
        let kinds = [(Kind::Text, false); 2].into_iter();
        let kinds = kinds.chain(BufferRow::COLUMNS.iter().map(|column| (column.kind, column.is_optional)));
        let mut group = self.writer.next_row_group()?;
        for (column, (kind, is_optional)) in columns.into_iter().zip(kinds) {
            let present: Vec<i16> = column.iter().map(|cell| i16::from(*cell != Value::Null)).collect();
            let levels = is_optional.then_some(&*present);
            let cells = column.into_iter().filter(|cell| *cell != Value::Null);
            match kind {
                Kind::Text => write::<ByteArrayType>(&mut group, cells.map(text), levels)?,
                Kind::Ratio => write::<DoubleType>(&mut group, cells.map(ratio), levels)?,
                _ => write::<Int64Type>(&mut group, cells.map(count), levels)?,
            }
        }
        group.close()?;
        Ok(())
    }
}

impl Exporter for Parquet {
    fn write(&mut self, output: &AuditOutput, _: &mut dyn Write) -> io::Result<()> {
        self.add(&output.view())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.writer.finish()?;
        out.write_all(self.writer.inner())
    }
}

fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(&values.collect::<Vec<_>>(), levels, None)?;
    column.close()
}

fn text(cell: Value<'_>) -> ByteArray {
    match cell {
        Value::Text(text) => text.as_ref().into(),
        _ => ByteArray::from(""),
    }
}

fn ratio(cell: Value<'_>) -> f64 {
    if let Value::Ratio(ratio) = cell { ratio } else { f64::NAN }
}

/// Sizes are below 2^63.
fn count(cell: Value<'_>) -> i64 {
    if let Value::Count(count) = cell { i64::try_from(count).unwrap_or(i64::MAX) } else { 0 }
}
