//! `tilewise show`: a shape and its layout in words and numbers.

use crate::{
    input::each_item,
    output::{Format, Output},
};
use clap::{
    ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use std::io;
use tilewise::interop::Notation;
use tilewise_audit::Failure;
use tilewise_report::{LayoutSummary, Rendered, ShapeSummary};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise show 'bf16[300,500]{1,0:T(8,128)(2,1)}'
  tilewise show 'f32[3,128]@tpu-8x128' --as cute
  tilewise show '{0,1}' --format text-proto
  tilewise show - < shapes.txt

A shape stands in quotes: shells read its braces and brackets.")]
pub(crate) struct Args {
    /// Shapes in XLA's notation, such as 'bf16[300,500]{1,0:T(8,128)(2,1)}', SHAPE@NAME with a
    /// name that `tilewise tiles` lists, a line of HLO text, a ShapeProto as text or proto:HEX; a
    /// layout alone, also as a LayoutProto; - reads one per line
    #[arg(required = true, value_name = "SHAPE")]
    shapes: Vec<String>,
    /// Print the layout in another system's notation
    #[arg(long = "as", value_parser = notations(), value_name = "NOTATION")]
    notation: Option<Notation>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: ShowFormat,
}

fn notations() -> impl TypedValueParser<Value = Notation> {
    let value = |notation: &Notation| PossibleValue::new(notation.as_str()).help(notation.in_words());
    PossibleValuesParser::new(Notation::ALL.iter().map(value)).try_map(|name| name.parse())
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// Text for people
    #[default]
    Human,
    /// JSON Lines: one object per item
    Json,
    /// One ShapeProto per line, of a layout a LayoutProto, in hexadecimal
    Proto,
    /// The same in protobuf's text format
    TextProto,
}

impl From<ShowFormat> for Format {
    fn from(format: ShowFormat) -> Self {
        match format {
            ShowFormat::Json => Self::Json,
            ShowFormat::Human | ShowFormat::Proto | ShowFormat::TextProto => Self::Human,
        }
    }
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    each_item(&args.shapes, |input, readable| {
        let mut reader = output.reader();
        if let Some(notation) = args.notation {
            let rendered = readable.and_then(|()| {
                let shape = reader.shape(input)?;
                Rendered::of(&shape, notation).map_err(|error| Failure::from(error).within(0..input.len()))
            });
            return output.item_read(input, reader, rendered);
        }
        let summary = readable.and_then(|()| ShapeSummary::read(input, &mut reader));
        // A layout alone has no sizes, but its words.
        if let Some(layout) = LayoutSummary::read(input).filter(|_| summary.is_err() && output.is_for_people()) {
            return match args.format {
                ShowFormat::Proto => {
                    output.item_as(input, Ok(layout), |layout, out| writeln!(out, "{}", layout.proto_hex()))
                }
                ShowFormat::TextProto => {
                    output.item_as(input, Ok(layout), |layout, out| write!(out, "{}", layout.text_proto()))
                }
                ShowFormat::Human | ShowFormat::Json => output.item(input, Ok(layout)),
            };
        }
        output.notes(&mut reader)?;
        match args.format {
            ShowFormat::Proto => {
                output.item_as(input, summary, |summary, out| writeln!(out, "{}", summary.proto_hex()))
            }
            ShowFormat::TextProto => {
                output.item_as(input, summary, |summary, out| write!(out, "{}", summary.text_proto()))
            }
            ShowFormat::Human | ShowFormat::Json => output.item(input, summary),
        }
    })
}
