//! Plans in words.

use crate::{
    Padding, Plan,
    leaf::{Convert, Leaf, Loop, Transpose},
    nest::Nest,
    plan::Clear,
};
use std::fmt;

impl fmt::Display for Plan {
    /// One line for the job, one for each loop from the outermost, one for the innermost work.
    ///
    /// ```
    /// use tilewise_relayout::Plan;
    ///
    /// let plan = Plan::new(&"f32[24,256]".parse()?, &"f32[24,256]{1,0:T(8,128)}".parse()?)?;
    /// assert_eq!(
    ///     plan.to_string(),
    ///     "f32[24,256]{1,0} → f32[24,256]{1,0:T(8,128)}, 24576 → 24576 bytes\n\
    ///      3 times, 8192 bytes apart → 8192\n\
    ///      . 2 times, 512 bytes apart → 4096\n\
    ///      . . 8 times, 1024 bytes apart → 512\n\
    ///      . . . copy 512 bytes",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}, {} → {} bytes", self.from(), self.to(), self.source_bytes(), self.destination_bytes())?;
        let work = &self.work;
        match work.clear {
            Clear::Nothing => {}
            Clear::Around(_) => f.write_str("\nclear the destination's padding")?,
            Clear::Everything => f.write_str("\nclear the destination")?,
        }
        let mut indent = 0;
        if let Some(irregular) = &work.irregular {
            let indices: u64 = irregular.bounds.iter().product();
            write!(f, "\n{indices} times, each offset computed")?;
            indent = 1;
        }
        write_nest(f, &work.nest, indent)?;
        if work.nest.fills {
            f.write_str(", zeros where a loop ends early")?;
        } else if self.padding() == Padding::Leave {
            f.write_str(", padding left as it is")?;
        }
        for edge in &work.edges {
            write!(f, "\nthen, from {} → {} on:", edge.source_offset, edge.destination_offset)?;
            write_nest(f, &edge.nest, 0)?;
        }
        Ok(())
    }
}

fn write_nest(f: &mut fmt::Formatter<'_>, nest: &Nest, mut indent: usize) -> fmt::Result {
    let things = if matches!(nest.leaf, Leaf::Elements(_)) { "elements" } else { "bytes" };
    for level in &nest.loops {
        f.write_str("\n")?;
        f.write_str(&". ".repeat(indent))?;
        write_loop(f, level, things)?;
        indent += 1;
    }
    f.write_str("\n")?;
    f.write_str(&". ".repeat(indent))?;
    write_leaf(f, &nest.leaf)
}

fn write_loop(f: &mut fmt::Formatter<'_>, level: &Loop, things: &str) -> fmt::Result {
    let Loop { number, count, source_stride, destination_stride, .. } = level;
    let most = if number.is_some() { "up to " } else { "" };
    write!(f, "{most}{count} times, {source_stride} {things} apart → {destination_stride}")
}

fn write_leaf(f: &mut fmt::Formatter<'_>, leaf: &Leaf) -> fmt::Result {
    match leaf {
        Leaf::Nothing => f.write_str("nothing to do"),
        Leaf::Elements(elements) if elements.source_bits == elements.destination_bits => {
            write!(f, "copy one element of {} bits", elements.source_bits)
        }
        Leaf::Elements(elements) => {
            write!(f, "convert one element of {} bits to {}", elements.source_bits, elements.destination_bits)
        }
        Leaf::Run { source_unit, unit, run, convert } => {
            let count = run.map_or(1, |run| run.count);
            let most = if run.is_some() { "up to " } else { "" };
            let (from, to) = (source_unit * count, unit * count);
            match convert {
                Convert::Copy => write!(f, "copy {most}{to} bytes"),
                Convert::Pack { bits, pitch: 1 } => write!(f, "pack {most}{from} bytes into {to}, {bits} bits each"),
                Convert::Pack { bits, pitch } => {
                    write!(f, "pack {} rows, {pitch} bytes apart, into {most}{to} bytes, {bits} bits each", 8 / bits)
                }
                Convert::Unpack { bits, pitch: 1, .. } => {
                    write!(f, "unpack {most}{from} bytes into {to}, from {bits} bits each")
                }
                Convert::Unpack { bits, pitch, .. } => {
                    let rows = 8 / bits;
                    write!(f, "unpack {most}{from} bytes into {rows} rows, {pitch} bytes apart, from {bits} bits each")
                }
            }
        }
        Leaf::Transpose { unit, rows, columns, kind, convert } => {
            match kind {
                Transpose::Interleave { ways } => write!(f, "interleave {ways} rows of {}", columns.count())?,
                Transpose::Deinterleave { ways } => write!(f, "take {ways} rows of {} apart", rows.count())?,
                Transpose::Blocks => write!(f, "transpose {} × {}", rows.count(), columns.count())?,
            }
            write!(f, " units of {unit} bytes")?;
            match convert {
                Convert::Pack { bits, .. } => write!(f, ", each packed from {} rows of {bits} bits", 8 / bits),
                Convert::Unpack { bits, .. } => write!(f, ", each unpacked into {} rows, from {bits} bits", 8 / bits),
                Convert::Copy => Ok(()),
            }
        }
    }
}
