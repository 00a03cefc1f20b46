//! Why a program has each of its copies.

use crate::style::bytes as size;
use tilewise::{Shape, tpu};
use tilewise_audit::{CopyClass, CopyEnd, CopyEndKind, CopyReason, CopyRow, RequestObstacle};

/// The reason for a copy: a sentence, without a full stop.
///
/// ```
/// let module = tilewise_hlo::Module::parse("\
/// HloModule jit_f, is_scheduled=true
///
/// ENTRY main {
///   w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name=\"w\"}
///   c = f32[1024,1024]{1,0:T(8,128)} copy(w)
///   ROOT r = f32[1024]{0:T(1024)} custom-call(c), custom_call_target=\"rows\"
/// }")?;
/// let report = tilewise_audit::audit(&module);
/// let why = tilewise_report::why(&report.copies[0], &report.copy_reasons()[0]);
/// assert_eq!(why, "`w` (argument 0) is in {0,1:T(8,128)}, pinned by the caller; `r` reads it in {1,0:T(8,128)}");
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[must_use]
pub fn why(row: &CopyRow, reason: &CopyReason) -> String {
    if !reason.is_in_text {
        return "what is copied isn't in the text".to_owned();
    }
    let mut why = cause(row, reason);
    if let Some(other) = &reason.cancels {
        why += &format!(". `{other}` undoes it");
    }
    if let Some(obstacle) = reason.obstacle {
        why += &format!(". {}", in_words(obstacle));
    }
    why
}

fn cause(row: &CopyRow, reason: &CopyReason) -> String {
    let (origin, reader) = (&reason.origin, reason.reader.as_ref());
    let (from, to) = (layout(&row.from), layout(&row.to));
    let of = named(origin);
    let read = reader.map_or_else(|| "what follows".to_owned(), named);
    match row.class {
        CopyClass::Relayout => {
            let begin = match origin.kind {
                CopyEndKind::Argument if reason.is_own && reason.is_default => {
                    format!("{of} is in {from}, its default order")
                }
                CopyEndKind::Argument if reason.is_own => format!("{of} is in {from}, pinned by the caller"),
                CopyEndKind::Loop if reason.is_own => format!("{of} carries it in {from}"),
                CopyEndKind::Instruction if reason.is_own => format!("{of} is produced in {from}"),
                _ => format!("{of} is in {from}"),
            };
            let end = match reader.map(|reader| reader.kind) {
                Some(CopyEndKind::Result) => format!("{read} is in {to}"),
                Some(CopyEndKind::Loop) => format!("{read} carries it in {to}"),
                _ => format!("{read} reads it in {to}"),
            };
            let is_converted = row.from.element_type() != row.to.element_type();
            let converted = row.to.element_type().filter(|_| is_converted).map(|to| format!(", as {to}"));
            format!("{begin}; {end}{}", converted.unwrap_or_default())
        }
        CopyClass::Transfer => {
            let space = tpu::memory_space_name(row.to.as_array().map_or(0, |array| array.memory_space()));
            format!("{of} is copied to {} for {read}, same layout", space.to_uppercase())
        }
        CopyClass::Duplicate => match reader.map(|reader| reader.kind) {
            Some(CopyEndKind::Loop) => format!("{read} overwrites what it carries, and {of} must stay unchanged"),
            Some(CopyEndKind::Result) => format!("{read} needs memory of its own, and {of} must stay unchanged"),
            _ => format!("{of} is copied within its memory space for {read}, same layout"),
        },
        _ => format!("{from} and {to} put every byte of {of} in the same place"),
    }
}

/// An end of a copy, in a sentence.
fn named(end: &CopyEnd) -> String {
    let number = end.number.map(|number| number.to_string()).unwrap_or_default();
    match (end.kind, &end.op_name) {
        (CopyEndKind::Argument, Some(name)) => format!("`{name}` (argument {number})"),
        (CopyEndKind::Argument, None) => format!("argument {number}"),
        (CopyEndKind::Result, _) => format!("result {number}"),
        (CopyEndKind::Constant, _) => format!("the constant `{}`", end.instruction),
        (CopyEndKind::Loop, _) => format!("the loop `{}`", end.instruction),
        _ => format!("`{}`", end.instruction),
    }
}

/// The layout alone, without the memory space.
fn layout(shape: &Shape) -> String {
    let layout = shape.layout().cloned().and_then(|layout| layout.with_memory_space(0).ok());
    layout.map(|layout| layout.to_string()).unwrap_or_default()
}

fn in_words(obstacle: RequestObstacle) -> String {
    let no_use = |why: &str| format!("Requesting that layout would not help: {why}");
    let cost = |why: String| format!("Requesting that layout would cost memory: {why}");
    match obstacle {
        RequestObstacle::Readers => no_use("it is also read in another layout"),
        RequestObstacle::Order => "No order of its own dimensions gives that layout".to_owned(),
        RequestObstacle::Tiles => "Results are best left in the default tiles of their order".to_owned(),
        RequestObstacle::Donated => no_use("it shares its memory with a result in another layout"),
        RequestObstacle::Overwritten => no_use("the copy is overwritten, and the argument isn't donated"),
        RequestObstacle::Padded(bytes) => cost(format!("the array would take {}", size(bytes))),
        RequestObstacle::Larger(bytes) => cost(format!("the program would hold {} more", size(bytes))),
        _ => "An argument that is returned has to be copied".to_owned(),
    }
}
