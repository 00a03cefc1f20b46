//! An argument that is not what the program was compiled for (E0102).

use super::{Words, code::JAX};
use crate::{shape::packing::jax_name, style::bytes};
use tilewise::{ArrayShape, Shape};
use tilewise_audit::{Mismatch, MismatchCause, recommendation::finding::MismatchFinding};
use tilewise_oom::Message;

pub(super) fn words(finding: &MismatchFinding) -> Words {
    match finding {
        MismatchFinding::OtherLayout => Words::new(
            "Put the arguments in the layouts that the program was compiled for; or compile again with the layout that they have",
        )
        .code(JAX, "compiled = step.lower(*args).compile()\nargs = jax.device_put(args, compiled.input_formats[0])"),
        MismatchFinding::OtherType { wanted, is_of_x64: false } => Words::new(format!(
            "Pass this array as {wanted}, which the program was compiled for; or compile (or export) again for the type that it has now"
        ))
        .code(
            JAX,
            format!(
                "x = x.astype('{}')  # or lower and compile again with x as it is",
                wanted.parse().map_or_else(|_| wanted.clone(), jax_name)
            ),
        ),        MismatchFinding::OtherType { wanted, .. } => Words::new(format!(
            "Set `jax_enable_x64` once, before the first array is made, and make this array again as {wanted}"
        ))
        .code(JAX, "jax.config.update('jax_enable_x64', True)  # or False: first of all\njax.clear_caches()"),
        MismatchFinding::OtherMemory(wanted) => {
            Words::new(format!("Put the argument in `{wanted}` memory before the call"))
                .code(JAX, format!("x = jax.device_put(x, x.sharding.with_memory_kind(\"{wanted}\"))"))
        }
        _ => Words::new(
            "Pass the shape, type and layout that the program was compiled for: pad or drop a last batch that is smaller, and \
             compile (or export) again for other sizes",
        )
        .code(JAX, "print(jax.tree.map(lambda x: (x.shape, x.dtype, x.format), args))"),
    }
}

pub(super) fn answer(message: &Message, mismatch: &Mismatch) -> [String; 2] {
    [headline(message), cause(message, mismatch)]
}

fn headline(message: &Message) -> String {
    let facts = &message.facts;
    let number = facts.number("parameter").map_or("An argument".to_owned(), |number| format!("Argument {number}"));
    let of = message.module.as_ref().map(|module| format!(" of {module}")).unwrap_or_default();
    let size = |name| facts.size(name).map(|size| format!("{} ({} bytes)", bytes(size.bytes()), size.bytes()));
    let text = |name| facts.text(name).map(str::to_owned);
    let shape = |name| facts.shapes(name).first().map(|shape| shape.text.clone());
    let both = |get: &dyn Fn(&'static str) -> Option<String>, expected, actual| Some((get(expected)?, get(actual)?));
    let pair = both(&size, "expected", "actual")
        .or_else(|| both(&shape, "expected_shape", "actual_shape"))
        .or_else(|| both(&text, "expected_type", "actual_type"))
        .or_else(|| both(&text, "expected_space", "actual_space"));
    match pair {
        Some((expected, actual)) => format!("{number}{of} was compiled for {expected}, and got {actual}."),
        None => format!("{number}{of} is not what the program was compiled for."),
    }
}

/// The reason why they differ.
fn cause(message: &Message, mismatch: &Mismatch) -> String {
    let text = |name| message.facts.text(name).unwrap_or_default();
    let element = |shape: &Option<Shape>| shape.as_ref().and_then(Shape::element_type).map(|kind| kind.to_string());
    match mismatch.cause {
        MismatchCause::Layout => {
            let sides = mismatch.expected.as_ref().and_then(Shape::as_array).zip(mismatch.actual.as_ref().and_then(Shape::as_array));
            sides.map(|(expected, actual)| layouts(expected, actual)).unwrap_or_default()
        }
        MismatchCause::Type(is_of_x64) => {
            let why = if is_of_x64 {
                "one type is twice as wide as the other: `jax_enable_x64` changed while this array, or the compiled program, was \
                 kept"
            } else {
                "a cast changed since, such as that of a checkpoint"
            };
            let [wanted, given] = [&mismatch.expected, &mismatch.actual].map(|shape| element(shape).unwrap_or_default());
            format!("Compiled for {wanted}, called with {given}: {why}.")
        }
        MismatchCause::Dimensions => {
            "The arrays have other dimensions: another batch size, such as a last one that is smaller, or weights of another \
             topology."
                .to_owned()
        }
        MismatchCause::NamedType(is_of_x64) => format!(
            "Compiled for {}, called with {}: {}, since the program was compiled.",
            text("expected_type"),
            text("actual_type"),
            if is_of_x64 { "`jax_enable_x64` changed, or a cast is missing" } else { "a cast changed" }
        ),
        MismatchCause::Memory => format!(
            "The argument lies in `{}` memory, and was compiled for `{}`.",
            text("actual_space"),
            text("expected_space")
        ),
        MismatchCause::Twice => {
            "One is twice the other: a type twice as wide, since `jax_enable_x64` changed; or half a batch.".to_owned()
        }
        MismatchCause::Part(part, whole) => format!(
            "What was passed is {part}/{whole} of what was compiled for: a last batch that is smaller, or the same array in a \
             layout that pads less."
        ),
        MismatchCause::Size => {
            "The sizes differ, and the message has no shapes: another batch size, type or layout than was compiled for.".to_owned()
        }
        _ => "The shape, type, layout or memory of the argument changed since the program was compiled.".to_owned(),
    }
}

/// Both layouts of one array.
fn layouts(expected: &ArrayShape, actual: &ArrayShape) -> String {
    let whole = Shape::from(expected.clone());
    let bare = whole.without_layout();
    let one = |array: &ArrayShape| {
        let bytes = array.sizes().map(|sizes| format!(", {} bytes", sizes.physical_bytes)).unwrap_or_default();
        let minor = array.layout().and_then(|layout| layout.minor_to_major().first().copied());
        let lanes = minor.and_then(|minor| {
            let size = array.dimensions().get(minor)?.bound()?;
            let padded = size.checked_next_multiple_of(128)?;
            let to = if padded > size { format!(", padded to {padded}") } else { String::new() };
            Some(format!("dimension {minor} (size {size}{to}) on the 128 lanes"))
        });
        format!("{}{bytes}", lanes.unwrap_or_else(|| "a layout that isn't printed".to_owned()))
    };
    format!(
        "Both are {bare}, in two layouts: compiled with {}; called with {}. The array, or the program, comes from \
         another compilation, or its layout is pinned.",
        one(expected),
        one(actual)
    )
}

#[cfg(test)]
mod tests {
    use super::super::answer;
    use tilewise_audit::explain;
    use tilewise_oom::Message;

    fn cause(text: &str) -> String {
        let [_, cause] = answer(&explain(Message::parse(text).expect("a message"), None)).expect("an answer");
        cause
    }

    /// The example of <https://openxla.org/xla/errors/error_0102>, whose figures this works out.
    #[test]
    fn the_order_follows_from_the_size() {
        let text = "Executable(jit_step) expected parameter 2 of size 5242880 (bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}) but got \
                    buffer with incompatible size 1638400 (bf16[16,1280,40]{1,2,0:T(8,128)(2,1)})";
        let expected = "compiled with dimension 2 (size 40, padded to 128) on the 128 lanes, 5242880 bytes; called with \
                        dimension 1 (size 1280) on the 128 lanes, 1638400 bytes.";
        assert!(cause(text).contains(expected), "{}", cause(text));
        let bare = "Executable(jit_step) expected parameter 2 of size 5242880 (bf16[16,1280,40]) but got \
                    buffer with incompatible size 1638400 (bf16[16,1280,40])";
        assert!(cause(bare).contains(expected), "{}", cause(bare));
    }
}
