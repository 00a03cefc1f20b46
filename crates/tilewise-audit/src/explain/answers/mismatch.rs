//! An argument that is not what the program was compiled for (E0102).

use super::answer::Answer;
use crate::{
    advice::{Change, Recommendation, Target, snippet},
    program::bytes_in_words,
};
use tilewise::{
    ArrayShape, Shape,
    tpu::{self, Generation},
};
use tilewise_oom::{Facts, Message, PrintedSize};

/// What the program was compiled for, and what it was given.
struct Sides<'a> {
    facts: &'a Facts,
    expected: Option<Shape>,
    actual: Option<Shape>,
}

pub(super) fn answer(message: &Message) -> Answer {
    let facts = &message.facts;
    let shape = |name| facts.shapes(name).first()?.parsed.as_ref().ok().filter(|shape| shape.as_array().is_some());
    // Of one of them printed alone, the other has the same dimensions, in a layout that its size tells.
    let either = shape("expected_shape").or_else(|| shape("actual_shape"));
    let side = |name, size| {
        with_layout_of_size(shape(name).or(either)?, facts.size(size).map(PrintedSize::bytes), shape(name).is_some())
    };
    let sides = Sides { facts, expected: side("expected_shape", "expected"), actual: side("actual_shape", "actual") };
    let (cause, advice) = sides.cause();
    Answer { headline: headline(message), cause, advice: vec![advice] }
}

fn headline(message: &Message) -> String {
    let facts = &message.facts;
    let number = facts.number("parameter").map_or("An argument".to_owned(), |number| format!("Argument {number}"));
    let of = message.module.as_ref().map(|module| format!(" of {module}")).unwrap_or_default();
    let size = |name| facts.size(name).map(|size| format!("{} ({} bytes)", bytes_in_words(size.bytes()), size.bytes()));
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

impl Sides<'_> {
    /// Why they differ, and what to do.
    fn cause(&self) -> (String, Recommendation) {
        let array = |shape: &'_ Option<Shape>| shape.as_ref().and_then(Shape::as_array).cloned();
        if let (Some(expected), Some(actual)) = (array(&self.expected), array(&self.actual)) {
            let (expected, actual) = (&expected, &actual);
            let same_bounds = expected.dimensions() == actual.dimensions();
            let (wanted, given) = (expected.element_type(), actual.element_type());
            if same_bounds && wanted == given && expected.layout() != actual.layout() {
                return (layouts(expected, actual), relayout());
            }
            if same_bounds && wanted != given {
                let (wide, narrow) = (wanted.bits().max(given.bits()), wanted.bits().min(given.bits()));
                let why = if wide == 2 * narrow {
                    "one type is twice as wide as the other: `jax_enable_x64` changed while this array, or the \
                     compiled program, was kept"
                } else {
                    "the element types differ"
                };
                return (
                    format!("Compiled for {wanted}, called with {given}: {why}."),
                    enable_x64(&wanted.to_string()),
                );
            }
            return (
                "The arrays have other dimensions: another batch size, such as a last one that is smaller, or weights of \
                 another topology."
                    .to_owned(),
                recompile(),
            );
        }
        if let (Some(wanted), Some(given)) = (self.facts.text("expected_type"), self.facts.text("actual_type")) {
            let cause = format!(
                "Compiled for {wanted}, called with {given}: `jax_enable_x64` changed, or a cast is missing, since the \
                 program was compiled."
            );
            return (cause, enable_x64(&wanted.to_lowercase()));
        }
        if let (Some(wanted), Some(given)) = (self.facts.text("expected_space"), self.facts.text("actual_space")) {
            let sentence = format!("Put the argument in `{wanted}` memory before the call");
            let code = format!("x = jax.device_put(x, x.sharding.with_memory_kind(\"{wanted}\"))");
            let advice = Recommendation::new(Change::None, Target::Argument, sentence).snippet(snippet::JAX, code);
            return (format!("The argument lies in `{given}` memory, and was compiled for `{wanted}`."), advice);
        }
        (self.by_sizes(), recompile())
    }

    /// Where only sizes are told.
    fn by_sizes(&self) -> String {
        let bytes = |name| self.facts.size(name).map(PrintedSize::bytes).filter(|bytes| *bytes > 0);
        let Some((wanted, given)) = bytes("expected").zip(bytes("actual")) else {
            return "The shape, type, layout or memory of the argument changed since the program was compiled."
                .to_owned();
        };
        if wanted == given.saturating_mul(2) || given == wanted.saturating_mul(2) {
            return "One is twice the other: a type twice as wide, since `jax_enable_x64` changed; or half a batch."
                .to_owned();
        }
        let divisor = gcd(wanted, given);
        let (part, whole) = (given / divisor, wanted / divisor);
        if given < wanted && whole <= 4096 {
            return format!(
                "What was passed is {part}/{whole} of what was compiled for: a last batch that is smaller, or the same \
                 array in a layout that pads less."
            );
        }
        "The sizes differ, and the message has no shapes: another batch size, type or layout than was compiled for."
            .to_owned()
    }
}

/// The shape with a layout that takes so many bytes, if it prints none; `None` where that is not the only one, unless it is
/// `printed` like this.
fn with_layout_of_size(shape: &Shape, bytes: Option<u64>, printed: bool) -> Option<Shape> {
    let as_printed = || printed.then(|| shape.clone());
    let array = shape.as_array()?;
    let is_tiled = array.layout().is_some_and(|layout| !layout.tiles().is_empty());
    let bounds: Option<Vec<u64>> = array.dimensions().iter().map(|dimension| dimension.bound()).collect();
    let (Some(bytes), Some(bounds), false) = (bytes, bounds, is_tiled) else { return as_printed() };
    if bounds.len() > MOST_DIMENSIONS {
        return as_printed();
    }
    let tiled = orders(bounds.len()).into_iter().filter_map(|order| {
        let shape = tpu::layout_for_order(array.element_type(), &bounds, &order, Generation::V5e).ok()?;
        (shape.as_array()?.sizes().ok()?.physical_bytes == bytes).then_some(shape)
    });
    let minor = |shape: &Shape| shape.layout().and_then(|layout| layout.minor_to_major().first().copied());
    let tiled: Vec<Shape> = tiled.collect();
    let Some(first) = tiled.first() else { return as_printed() };
    // Which dimension lies on the lanes is what a size tells; of the others, the default order is as good as any.
    tiled.iter().all(|other| minor(other) == minor(first)).then(|| first.clone()).or_else(as_printed)
}

/// Of more dimensions there are too many orders.
const MOST_DIMENSIONS: usize = 4;

/// All orders of so many dimensions, row-major first.
fn orders(rank: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..rank {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                let rest = (0..rank).rev().filter(|dimension| !order.contains(dimension));
                rest.map(|dimension| order.iter().copied().chain([dimension]).collect())
            })
            .collect();
    }
    orders
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

fn relayout() -> Recommendation {
    Recommendation::new(
        Change::Order,
        Target::Argument,
        "Put the arguments in the layouts that the program was compiled for; or compile again with the layout that they \
         have",
    )
    .snippet(
        snippet::JAX,
        "compiled = step.lower(*args).compile()\nargs = jax.device_put(args, compiled.input_formats[0])",
    )
}

fn enable_x64(wanted: &str) -> Recommendation {
    Recommendation::new(
        Change::None,
        Target::Argument,
        format!("Set `jax_enable_x64` once, before the first array is made, and make this array again as {wanted}"),
    )
    .snippet(snippet::JAX, "jax.config.update('jax_enable_x64', True)  # or False: first of all\njax.clear_caches()")
}

fn recompile() -> Recommendation {
    Recommendation::new(
        Change::None,
        Target::Argument,
        "Pass the shape, type and layout that the program was compiled for: pad or drop a last batch that is smaller, \
         and compile (or export) again for other sizes",
    )
    .snippet(snippet::JAX, "print(jax.tree.map(lambda x: (x.shape, x.dtype, x.format), args))")
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::explain;

    fn cause(text: &str) -> String {
        explain(Message::parse(text).expect("a message"), None).answer.expect("an answer").cause
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

    #[test]
    fn orders_of_three() {
        assert_eq!(orders(2), [[1, 0], [0, 1]]);
        assert_eq!((orders(3).len(), &orders(3)[0][..], orders(0).len()), (6, &[2, 1, 0][..], 1));
    }
}
