//! `tilewise show`: a shape and its layout in words and numbers.

use crate::{
    input::each_item,
    output::{Format, Output, Status},
};
use clap::{
    ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use std::io;
use tilewise::interop::Notation;
use tilewise_audit::Failure;
use tilewise_report::{Part, Rendered, Shown};

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
    /// layout alone, also as a LayoutProto, or another part, such as 'T(8,128)(2,1)'; - reads one
    /// per line
    #[arg(required = true, value_name = "SHAPE", allow_negative_numbers = true)]
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
        let shown = readable.and_then(|()| Shown::read(input, &mut reader));
        output.notes(&mut reader)?;
        match shown {
            Ok(shown) => match (proto(&shown, args.format), args.format) {
                (Some(proto), _) => output.item_as(input, Ok(shown), |_, out| out.write_all(proto.as_bytes())),
                (None, ShowFormat::Proto | ShowFormat::TextProto) => {
                    let missing = Failure::new("no_proto", "only shapes and layouts have a proto").at(0..input.len());
                    output.failure(input, missing)
                }
                (None, _) => {
                    if matches!(&shown, Shown::Equation(equation) if !equation.holds()) {
                        output.raise(Status::Flagged);
                    }
                    output.item(input, Ok(shown))
                }
            },
            Err(failure) => match Part::read(input) {
                Some(part) => output.refused(input, &failure, &part),
                None => output.failure(input, failure),
            },
        }
    })
}

/// The proto of a shape or a layout, in the requested format.
fn proto(shown: &Shown, format: ShowFormat) -> Option<String> {
    let (hex, text) = match shown {
        Shown::Shape(summary) => (summary.proto_hex(), summary.text_proto()),
        Shown::Part(part) => part.layout().map(|layout| (layout.proto_hex(), layout.text_proto()))?,
        _ => return None,
    };
    match format {
        ShowFormat::Proto => Some(format!("{hex}\n")),
        ShowFormat::TextProto => Some(text),
        ShowFormat::Human | ShowFormat::Json => None,
    }
}
