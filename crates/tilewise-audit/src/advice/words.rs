//! Advice as sentences and as Python.

use super::{
    AdviceTarget,
    scene::{Candidate, Held, Party, Scene},
};
use crate::{
    origin::{op_name, place, source_line},
    snippet::{self, JAX, LAYOUT, NUMPY},
    words::bytes_in_words,
};
use tilewise::{Shape, Tiled, tpu};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Role;

/// How many parts are proposed: what remains of a halved array is still the largest.
const PARTS: u64 = 8;

/// Whether JAX made the program: its names of operations begin with the function that was compiled.
fn is_jax(scene: &Scene<'_>) -> bool {
    const LOOKED_AT: usize = 4096;
    let mut names = scene.module.instructions().rev().take(LOOKED_AT).filter_map(|at| op_name(&at));
    scene.module.name().starts_with("jit_") || names.any(|name| name.starts_with("jit(") || name.starts_with("pmap("))
}

fn give<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, imports: &'static str, code: String) {
    if is_jax(scene) {
        (candidate.code, candidate.imports) = (Some(code), Some(imports));
    }
}

/// An argument's name in the program, such as `params['w']`.
fn name(argument: &Instruction<'_>) -> String {
    op_name(argument).filter(|name| !name.is_empty() && !name.contains('/')).unwrap_or_else(|| "x".to_owned())
}

/// The parameter of the Python function that an argument is part of.
fn root(name: &str) -> &str {
    name.split(['[', '.']).next().unwrap_or(name)
}

fn bounds_text(bounds: &[u64]) -> String {
    bounds.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn order<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, group: &[&Held<'m>]) {
    if candidate.target == AdviceTarget::Argument {
        let names: Vec<String> = group.iter().map(|held| name(&held.instruction)).collect();
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let (them, pads) = if names.len() == 1 { ("it", "pads it") } else { ("them", "pads them") };
        candidate.sentence = format!(
            "hand {} over in the default layout: the caller pins {them} to another order, which {pads} and all that is made \
             of {them}",
            listed(&quoted)
        );
        let lines: Vec<String> = group.iter().zip(&names).map(|(held, name)| put(scene, held, name)).collect();
        give(scene, candidate, LAYOUT, lines.join("\n"));
    } else {
        candidate.sentence = "take this result in the default layout: drop its order from `out_shardings`".to_owned();
        let function = function(scene);
        give(scene, candidate, LAYOUT, snippet::results_in_any_order(function));
    }
}

/// The line that brings an argument into the default layout.
fn put(scene: &Scene<'_>, held: &Held<'_>, name: &str) -> String {
    let default = tpu::default_layout(held.element_type(), &held.bounds, scene.generation).ok();
    let order = default.as_ref().and_then(Shape::as_array).map(|array| array.major_to_minor().collect::<Vec<usize>>());
    snippet::put_in_order(name, &order.unwrap_or_default())
}

/// `a`, `a and b`, `a, b and 3 others`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, rest @ ..] => {
            let others = if rest.len() == 1 { "other" } else { "others" };
            format!("{one}, {two} and {} {others}", rest.len())
        }
    }
}

/// The Python function that was compiled.
fn function<'m>(scene: &Scene<'m>) -> &'m str {
    let name = scene.module.name();
    name.strip_prefix("jit_").filter(|name| !name.is_empty()).unwrap_or("f")
}

pub(super) fn columns<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, others: &[&Held<'m>]) {
    let about = candidate.about.clone();
    let (name, columns) = (name(&about.instruction), about.bounds.last().copied().unwrap_or(1));
    let same = match others.len() {
        0 => String::new(),
        1 => ", and the other array of this shape that crosses the interface, too".to_owned(),
        count => format!(", and the {count} others of this shape that cross the interface, too"),
    };
    if candidate.kind == super::AdviceKind::Reshape {
        let elements = about.elements();
        candidate.sentence = format!(
            "keep `{name}` flat, as [{elements}], between calls and inside: only elementwise operations read it{same}"
        );
        give(scene, candidate, JAX, format!("{name} = {name}.reshape(-1)  # {}[{elements}]", about.element_type()));
    } else {
        candidate.sentence = format!(
            "hand `{name}` over as {columns} arrays of [{}], a column each, and keep them apart inside{same}",
            bounds_text(&about.bounds[..about.bounds.len() - 1])
        );
        give(scene, candidate, NUMPY, format!("{name} = jnp.unstack({name}, axis=-1)  # a tuple of {columns} arrays"));
    }
}

pub(super) fn donation<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, arguments: &[&Held<'m>]) {
    let mut roots: Vec<String> =
        arguments.iter().map(|argument| root(&name(&argument.instruction)).to_owned()).collect();
    roots.sort();
    roots.dedup();
    let quoted: Vec<String> = roots.iter().map(|root| format!("`{root}`")).collect();
    candidate.sentence = format!(
        "donate {}: results of the same shape can take the place of what they replace, if the caller doesn't need the \
         old values any more",
        quoted.join(" and ")
    );
    let names = snippet::tuple(roots.iter().map(|root| format!("\"{root}\"")));
    let function = function(scene);
    let code = format!("{function} = jax.jit({function}, donate_argnames=({names}))");
    give(scene, candidate, JAX, code);
}

pub(super) fn upstream<'m>(
    scene: &Scene<'m>,
    candidate: &mut Candidate<'m>,
    columns: u64,
    is_gathered: bool,
    is_scattered: bool,
    table: Option<&Instruction<'m>>,
) {
    let place = place(source_line(&candidate.about.instruction).as_ref());
    candidate.sentence = match (is_gathered, is_scattered) {
        (true, true) => format!(
            "gather each of the {columns} columns on its own{place}, and keep them apart until each is scattered: a row \
             takes 128 lanes, whatever it holds"
        ),
        (true, false) => format!(
            "gather each of the {columns} columns on its own{place}, before anything makes rows of them: a row takes \
             128 lanes, whatever it holds"
        ),
        _ => {
            format!("scatter each of the {columns} columns on its own{place}: a row takes 128 lanes, whatever it holds")
        }
    };
    let code = if is_gathered {
        let table = table.map_or_else(|| "table".to_owned(), name);
        snippet::gather_columns(&table)
    } else {
        snippet::SCATTER_COLUMNS.to_owned()
    };
    give(scene, candidate, NUMPY, code);
}

pub(super) fn kernel<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, kernel: &Instruction<'m>) {
    let about = candidate.about.clone();
    let minor = about.minor_to_major().first().copied().unwrap_or(0);
    let mut bounds = about.bounds.clone();
    let columns = if minor < bounds.len() { bounds.remove(minor) } else { 1 };
    bounds.insert(bounds.len().saturating_sub(1), columns);
    candidate.sentence = format!(
        "write the kernel{} for [{}]: its blocks have {columns} columns, and each row of them takes 128 lanes; \
         transpose its BlockSpecs and what it reads and writes",
        place(source_line(kernel).as_ref()),
        bounds_text(&bounds)
    );
    give(scene, candidate, NUMPY, "x = jnp.swapaxes(x, -1, -2)  # before the kernel; its blocks transposed".to_owned());
}

pub(super) fn checkpoint<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, stacked: usize, trips: u64) {
    let arrays = if stacked == 1 { "an array" } else { "arrays" };
    candidate.sentence = format!(
        "put `jax.checkpoint` around the step of the loop{}: it keeps {stacked} {arrays} of all its {trips} steps for the \
         gradient, and could work them out again from what it carries",
        place(source_line(&candidate.about.instruction).as_ref())
    );
    let code = "carry, ys = jax.lax.scan(jax.checkpoint(step), carry, xs)".to_owned();
    give(scene, candidate, JAX, code);
}

pub(super) fn chunk<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, size: u64) {
    let about = &candidate.about;
    let has_gradient = scene.has_gradient();
    let at = about.bounds.iter().position(|bound| *bound == size).unwrap_or(0);
    candidate.sentence = format!(
        "work through dimension {at} of [{}], of size {size}, in parts: most of the peak has it{}; halves free this much, \
         more parts more",
        bounds_text(&about.bounds),
        if has_gradient { ", so take loss and gradient of each part, and add them up" } else { "" }
    );
    let about = about.clone();
    if let Some(code) = in_parts(scene, &about, size, has_gradient) {
        give(scene, candidate, JAX, code);
    }
}

/// The compiled function in parts, those of its parameters taken apart that begin with a dimension of this size. `None`
/// where that alone would compute something else, or what comes of the parts can't be told.
fn in_parts(scene: &Scene<'_>, about: &Held<'_>, size: u64, has_gradient: bool) -> Option<String> {
    // Pairs of the same array's elements: taking it apart leaves most of them out.
    if about.bounds.iter().filter(|bound| **bound == size).count() > 1 {
        return None;
    }
    let parts = (2..=PARTS).rev().find(|parts| size.is_multiple_of(*parts))?;
    // By name: whether all of its arrays have the dimension.
    let mut parameters: Vec<(String, bool)> = Vec::new();
    let entry = scene.module.entry()?;
    let mut arguments: Vec<Instruction<'_>> =
        entry.instructions().filter(|at| at.opcode() == Opcode::Parameter).collect();
    arguments.sort_by_cached_key(Instruction::parameter_number);
    for argument in arguments {
        let name = root(&op_name(&argument)?).to_owned();
        let has_it = begins_with(&argument.shape().ok()?, size);
        match parameters.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all_have_it)) => *all_have_it &= has_it,
            None => parameters.push((name, has_it)),
        }
    }
    let all: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let batch: Vec<&str> = parameters.iter().filter(|(_, has_it)| *has_it).map(|(name, _)| name.as_str()).collect();
    if batch.is_empty() || !all.iter().all(|name| is_name(name)) {
        return None;
    }
    let result = entry.root()?.shape().ok()?;
    let joins = result.leaves().all(|(_, leaf)| begins_with(&leaf, size));
    let (function, all, batch) = (function(scene), all.join(", "), batch.join(", "));
    let comma = if batch.contains(',') { "" } else { "," };
    let lead = format!("def {function}_in_parts({all}, parts={parts}):");
    let apart = format!("batch = jax.tree.map(lambda a: a.reshape(parts, -1, *a.shape[1:]), ({batch}{comma}))");
    let take = format!("{batch}{comma} = batch");
    let call = format!("{function}({all})");
    let lines = if joins && !has_gradient {
        vec![
            lead,
            "    def part(batch):".to_owned(),
            format!("        {take}"),
            format!("        return {call}"),
            format!("    {apart}"),
            "    results = jax.lax.map(part, batch)".to_owned(),
            "    return jax.tree.map(lambda r: r.reshape(-1, *r.shape[2:]), results)".to_owned(),
        ]
    } else {
        vec![
            lead,
            "    def part(batch):".to_owned(),
            format!("        {take}"),
            format!("        return {call}"),
            "    def add(total, batch):".to_owned(),
            "        return jax.tree.map(jax.numpy.add, total, part(batch)), None".to_owned(),
            format!("    {apart}"),
            "    first = jax.tree.map(lambda a: a[0], batch)".to_owned(),
            "    zero = jax.tree.map(lambda r: jax.numpy.zeros(r.shape, r.dtype), jax.eval_shape(part, first))"
                .to_owned(),
            "    return jax.lax.scan(add, zero, batch)[0]  # divide by parts, if it is a mean".to_owned(),
        ]
    };
    Some(lines.join("\n"))
}

/// Whether an array's first dimension has this size.
fn begins_with(shape: &Shape, size: u64) -> bool {
    shape.dimensions().first().and_then(|dimension| dimension.bound()) == Some(size)
}

/// Whether it can be a variable's name.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

pub(super) fn nothing_helps(scene: &Scene<'_>, largest: &Held<'_>) -> String {
    let place = place(source_line(&largest.instruction).as_ref());
    let share = largest.bytes.saturating_mul(100) / scene.total_bytes.max(1);
    format!(
        "padding is not what takes this program's memory: the largest array, {}{place}, is {share} % of it, and holds data",
        largest.shape
    )
}

/// The sentence and the code for arguments and results in the order that the program wants.
pub(super) fn handover<'m>(scene: &Scene<'m>, candidate: &mut Candidate<'m>, parties: &[Party<'m>]) {
    let said: Vec<String> = parties
        .iter()
        // A donated argument speaks for its result.
        .filter(|party| {
            !parties.iter().any(|other| party.role == Role::Output && other.donated_to == Some(party.number))
        })
        .map(|party| match (party.role, party.donated_to) {
            (Role::Output, _) => format!("take result {} as {}", party.number, sized(party)),
            (_, Some(_)) => format!("hand `{}` over and take it back as {}", name(&party.instruction), sized(party)),
            _ => format!("hand `{}` over as {}", name(&party.instruction), sized(party)),
        })
        .collect();
    candidate.sentence = match &said[..] {
        [one] => format!("{one}: the program copies it into that layout"),
        [one, two] => format!("{one}, and {two}: the program copies them into those layouts"),
        [one, rest @ ..] => {
            format!("{one}, and {} more likewise: the program copies them into those layouts", rest.len())
        }
        [] => String::new(),
    };
    if parties.iter().all(|party| party.role == Role::Output) {
        candidate.sentence = candidate.sentence.replace("into that layout", "out of that layout");
        candidate.sentence = candidate.sentence.replace("into those layouts", "out of those layouts");
    }
    if let Some(code) = handover_code(scene, parties) {
        give(scene, candidate, LAYOUT, code);
    }
}

/// The layout to hand it over in, and what it then takes, if that is more.
fn sized(party: &Party<'_>) -> String {
    let bytes =
        |shape: &Shape| shape.as_array().and_then(|array| array.sizes().ok()).map_or(0, |sizes| sizes.physical_bytes);
    let (before, after) = (bytes(&party.from), bytes(&party.to));
    if after <= before {
        return party.to.to_string();
    }
    format!("{} ({}, not {})", party.to, bytes_in_words(after), bytes_in_words(before))
}

fn handover_code(scene: &Scene<'_>, parties: &[Party<'_>]) -> Option<String> {
    let (arguments, results): (Vec<&Party<'_>>, Vec<&Party<'_>>) =
        parties.iter().partition(|party| party.role == Role::Argument);
    let mut lines = Vec::new();
    for party in &arguments {
        let name = name(&party.instruction);
        lines.push(snippet::put_in(&name, &layout(scene, &party.to)?));
    }
    if results.is_empty() {
        return Some(lines.join("\n"));
    }
    let parameters = parameters(scene)?;
    let donated = |result: &Party<'_>| arguments.iter().find(|argument| argument.donated_to == Some(result.number));
    let mut formats = Vec::new();
    for result in &results {
        // How a result is divided between devices isn't known, unless it takes an argument's place.
        let like = match donated(result) {
            Some(argument) => name(&argument.instruction),
            None if scene.partitions == 1 => parameters.first()?.1.clone(),
            None => return None,
        };
        formats.push((result.number, format!("Format({}, {like}.sharding)", layout(scene, &result.to)?)));
    }
    let mut options = String::new();
    let mut roots: Vec<String> = arguments
        .iter()
        .filter(|argument| argument.donated_to.is_some())
        .map(|argument| format!("\"{}\"", root(&name(&argument.instruction))))
        .collect();
    roots.dedup();
    if !roots.is_empty() {
        options = format!("donate_argnames=({}), ", snippet::tuple(roots.into_iter()));
    }
    let function = function(scene);
    let leaves = scene.module.entry()?.root()?.shape().ok()?;
    match &formats[..] {
        [(_, format)] if leaves.as_array().is_some() => {
            lines.push(format!("{function} = jax.jit({function}, {options}out_shardings={format})"));
        }
        _ => {
            let mut roots: Vec<&str> = parameters.iter().map(|(root, _)| root.as_str()).collect();
            roots.dedup();
            if !roots.iter().all(|root| is_name(root)) {
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
fn layout(scene: &Scene<'_>, shape: &Shape) -> Option<String> {
    let array = shape.as_array()?;
    let bounds: Vec<u64> = shape.dimensions().iter().map(|dimension| dimension.bound()).collect::<Option<_>>()?;
    let order = array.layout()?.minor_to_major();
    let default = tpu::layout_for_order(array.element_type(), &bounds, order, scene.generation).ok()?;
    let mut jax = Tiled::new(shape).ok()?.jax().ok()?;
    if default.layout().map(|layout| layout.tiles()) == shape.layout().map(|layout| layout.tiles()) {
        jax.tiling = None;
        jax.sub_byte_element_size_in_bits = 0;
    }
    Some(jax.to_string())
}

/// The parameters of the Python function that the entry's parameters are parts of, each with the first of these.
fn parameters(scene: &Scene<'_>) -> Option<Vec<(String, String)>> {
    let mut arguments: Vec<Instruction<'_>> =
        scene.module.entry()?.instructions().filter(|at| at.opcode() == Opcode::Parameter).collect();
    arguments.sort_by_cached_key(Instruction::parameter_number);
    let mut parameters: Vec<(String, String)> = Vec::new();
    for argument in arguments {
        let name = op_name(&argument)?;
        let root = root(&name).to_owned();
        if !parameters.iter().any(|(known, _)| *known == root) {
            parameters.push((root, name));
        }
    }
    Some(parameters)
}
