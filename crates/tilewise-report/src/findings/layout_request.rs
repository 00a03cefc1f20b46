//! Arguments and results that the program copies into another layout: the caller can pass and take them in that one.

use super::{
    Words,
    code::{self, LAYOUT, Variable},
    words::capitalized,
};
use crate::style::bytes;
use tilewise::{
    Shape, Tiled,
    tpu::{self, Generation},
};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{LayoutRequest, RequestedLayout},
};

pub(super) fn words(finding: &LayoutRequest, about: &Recommendation) -> Words {
    let words = Words::new(sentence(&finding.arrays));
    match code(finding) {
        Some(code) => words.jax(about, LAYOUT, code),
        None => words,
    }
}

fn sentence(arrays: &[RequestedLayout]) -> String {
    let is_donated_to = |number: usize| arrays.iter().any(|other| other.donated_to == Some(number));
    let said: Vec<String> = arrays
        .iter()
        // The request for a donated argument covers its result.
        .filter(|array| !(array.argument.is_none() && is_donated_to(array.number)))
        .map(|array| match (&array.argument, array.donated_to) {
            (None, _) => format!("take result {} as {}", array.number, sized(array)),
            (Some(name), Some(_)) => format!("pass `{name}` and take it back as {}", sized(array)),
            (Some(name), None) => format!("pass `{name}` as {}", sized(array)),
        })
        .collect();
    let way = if arrays.iter().all(|array| array.argument.is_none()) { "out of" } else { "into" };
    capitalized(&match &said[..] {
        [] => String::new(),
        [one] => format!("{one}: the program copies it {way} that layout"),
        [one, two] => format!("{one}, and {two}: the program copies them {way} those layouts"),
        [one, rest @ ..] => {
            format!("{one}, and {} more likewise: the program copies them {way} those layouts", rest.len())
        }
    })
}

/// The layout to request, and the array's bytes in it, if that is more.
fn sized(array: &RequestedLayout) -> String {
    let [before, after] = array.bytes;
    if after <= before {
        return array.to.to_string();
    }
    format!("{} ({}, not {})", array.to, bytes(after), bytes(before))
}

fn code(finding: &LayoutRequest) -> Option<String> {
    let layout = |array: &RequestedLayout| layout(&array.to, finding.generation);
    let arguments = || finding.arrays.iter().filter_map(|array| Some((array, array.argument.as_deref()?)));
    let results: Vec<&RequestedLayout> = finding.arrays.iter().filter(|array| array.argument.is_none()).collect();
    let mut lines = Vec::new();
    let mut roots: Vec<&str> = arguments().map(|(_, name)| code::root(name)).collect();
    roots.dedup();
    for root in roots {
        let parts: Vec<(&str, String)> = arguments()
            .filter(|(_, name)| code::root(name) == root)
            .map(|(array, name)| Some((name, layout(array)?)))
            .collect::<Option<_>>()?;
        lines.extend(code::put_parts_in(root, &parts));
    }
    if results.is_empty() {
        return Some(lines.join("\n"));
    }
    let parameters = finding.parameters.as_ref()?;
    let mut formats = Vec::new();
    for result in &results {
        let donated = arguments().find(|(argument, _)| argument.donated_to == Some(result.number));
        // The division of a result between devices is unknown, unless it takes an argument's place.
        let like = match donated {
            Some((_, name)) => Variable::of(name).name,
            None if finding.partitions == 1 => Variable::of(&parameters.first()?.first).name,
            None => return None,
        };
        formats.push((result.number, format!("Format({}, {like}.sharding)", layout(result)?)));
    }
    let donated = arguments().filter(|(argument, _)| argument.donated_to.is_some());
    let mut donated: Vec<&str> = donated.map(|(_, name)| code::root(name)).collect();
    donated.dedup();
    if !donated.iter().all(|name| code::is_name(name)) {
        return None;
    }
    let options = if donated.is_empty() {
        String::new()
    } else {
        format!("donate_argnames=({}), ", code::tuple(donated.iter().map(|name| format!("\"{name}\""))))
    };
    let function = &finding.function;
    match &formats[..] {
        [(_, format)] if finding.returns_one => {
            lines.push(format!("{function} = jax.jit({function}, {options}out_shardings={format})"));
        }
        _ => {
            let roots: Vec<&str> = parameters.iter().map(|parameter| parameter.root.as_str()).collect();
            if !roots.iter().all(|root| code::is_name(root)) {
                return None;
            }
            lines.push(format!("results, tree = jax.tree.flatten(jax.eval_shape({function}, {}))", roots.join(", ")));
            lines.push("formats = [None] * len(results)".to_owned());
            lines.extend(formats.iter().map(|(number, format)| format!("formats[{number}] = {format}")));
            let formats = "jax.tree.unflatten(tree, formats)";
            lines.push(format!("{function} = jax.jit({function}, {options}out_shardings={formats})"));
        }
    }
    Some(lines.join("\n"))
}

/// JAX's `Layout` of this order, with tiles where they aren't those of the order.
fn layout(shape: &Shape, generation: Generation) -> Option<String> {
    let array = shape.as_array()?;
    let bounds: Vec<u64> = shape.bounds()?;
    let order = array.layout()?.minor_to_major();
    let default = tpu::layout_for_order(array.element_type(), &bounds, order, generation).ok()?;
    let mut jax = Tiled::new(shape).ok()?.jax().ok()?;
    if default.layout().map(|layout| layout.tiles()) == shape.layout().map(|layout| layout.tiles()) {
        jax.tiling = None;
        jax.sub_byte_element_size_in_bits = 0;
    }
    Some(jax.to_string())
}
