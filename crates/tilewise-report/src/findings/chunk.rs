//! Most of the peak has one dimension of the input in common: parts of that, one after the other.

use super::{
    Words,
    code::{JAX, is_name, is_path, tuple},
    parted::{either, microbatch, recomputed},
    words::{at as line, at_line, bare, bounds_of, quoted},
};
use crate::style::bytes;
use tilewise_audit::{
    Recommendation,
    recommendation::{
        EditedLines,
        finding::{Finding, GradientSums, InParts, LargeDimension, Library},
    },
};
use tilewise_oom::Framework;

/// Behind the parts of a batch whose gradient is taken.
pub(super) const ADD_UP: &str = "; add up the gradients of the parts, and update once";

pub(super) fn words(finding: &LargeDimension, about: &Recommendation) -> Words {
    if !finding.is_known {
        return of_message(finding, about);
    }
    let (size, parts) = (finding.size, about.parts.unwrap_or(2));
    let (bounds, place) = (bounds_of(about), at_line(about));
    let (lead, ways, then) = match finding.gradients {
        GradientSums::Apart => {
            ("Take", "in parts", "; join the results (`jax.lax.map` with `batch_size`, not `jax.vmap`)")
        }
        GradientSums::Summed => ("Microbatch", "(gradient accumulation)", ADD_UP),
        GradientSums::OfEach => (
            "Take the gradients of",
            "in parts",
            "; each sample has one of its own: clip those of a part, or what else the step makes of them, and add that up",
        ),
        _ => ("Process", "in parts", ""),
    };
    let what = if finding.inputs.is_empty() {
        let at = finding.place;
        format!("dimension {at} of [{bounds}]{place} {ways}: {}", most(finding, about))
    } else {
        let along: Vec<String> =
            finding.inputs.iter().map(|(at, names)| format!("{} along dimension {at}", quoted(names))).collect();
        format!(
            "{} {ways}: most arrays at the peak have this dimension, of size {size}, e.g. [{bounds}]{place}",
            along.join(" and ")
        )
    };
    let keys = if finding.keys.is_empty() {
        String::new()
    } else {
        format!("; split {} for each part", quoted(&finding.keys))
    };
    let freed = match (parts, finding.others) {
        (2, Some(many)) => format!("halves free this much, {} parts up to {} more", many.parts, bytes(many.freed)),
        (_, Some(few)) if !few.is_more => {
            format!("{parts} parts free this much, {} parts {} less", few.parts, bytes(few.freed))
        }
        (2, None) => "halves free this much, more parts free more".to_owned(),
        (parts, _) if finding.is_to_fit => format!("{parts} parts free this much, and with fewer it may not fit"),
        (parts, _) => {
            let more = if parts < size { ", more parts free more" } else { "" };
            format!("{parts} parts free this much{more}; two parts free little: tiles of few samples are padded")
        }
    };
    if finding.is_made || finding.joint.is_some() {
        return of_functions(finding, about, &format!("{keys}; {freed}"));
    }
    let words = Words::new(format!("{lead} {what}{then}{keys}; {freed}")).task(task(finding, parts));
    let words = if finding.keys.is_empty() {
        words
    } else {
        words.caveat(format!("split {} for each part", quoted(&finding.keys)))
    };
    // The step that is taken as it is draws random numbers as before.
    let whole = |words: Words, sketch| match microbatch(finding, about, parts) {
        None => either(words, about, None, sketch),
        code => either(Words { caveat: None, ..words }, about, code, sketch),
    };
    let taken = TakenGradient::named(finding.gradient_of, about.edited.as_ref());
    let words = match plain(finding, about, &taken, "  # with your options; what has_aux gives is averaged here, too") {
        // Sums of parts have other divisors: added up as they are, they were another gradient.
        Some(_) if finding.is_divided => words,
        Some(code) if finding.gradients == GradientSums::None && finding.in_parts.is_none() => {
            return whole(words, Some(code));
        }
        // A prior, which parts of a sum share, would count once for each.
        Some(code) if finding.is_summed && finding.gradients == GradientSums::Summed => {
            return whole(words, Some(code));
        }
        Some(code) if about.framework == Some(Framework::Jax) => Words { plain: Some(code), ..words },
        _ => words,
    };
    let is_mapped =
        about.array.as_ref().and_then(|array| array.op_name.as_deref()).is_some_and(|name| name.contains("vmap("));
    if let Some(code) = apart(finding, parts).filter(|_| is_mapped) {
        return words.jax(about, JAX, code);
    }
    if finding.gradients == GradientSums::OfEach {
        let sketch = added_up(finding, "f", &arrays(finding, None), parts);
        return whole(words, Some(sketch));
    }
    match (&finding.in_parts, microbatch(finding, about, parts)) {
        (Some(code), _) => words.jax(about, JAX, in_parts(code)),
        // Behind code for the line that takes the gradient.
        (None, Some(code)) if words.plain.is_some() => words.jax(about, JAX, code),
        (None, _) => whole(words, None),
    }
}

/// `Do the batch of 1024 in 16 parts; add up their gradients`
fn task(finding: &LargeDimension, parts: u64) -> String {
    let size = finding.size;
    let names: Vec<String> = finding.inputs.iter().flat_map(|(_, names)| names).cloned().collect();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", quoted(&names)) };
    match finding.gradients {
        // A batch is the first dimension.
        GradientSums::Summed if finding.inputs.iter().all(|(at, _)| *at == 0) => {
            format!("Do the batch of {size} in {parts} parts; add up their gradients")
        }
        GradientSums::Summed => {
            format!("Do the {size} {}{of} in {parts} parts; add up their gradients", positions(finding))
        }
        GradientSums::OfEach => format!("Take the gradients of the {size} samples in {parts} parts"),
        _ if names.is_empty() => format!("Do the {size} in {parts} parts, one after the other"),
        // A caller that chooses the number of rows has a setting for it.
        GradientSums::None if finding.inputs.iter().all(|(at, _)| *at == 0) => {
            let left = size / parts.max(1);
            let rows = if left == 1 { "row" } else { "rows" };
            format!("Take {left} {rows}{of} in a call instead of {size}")
        }
        _ => format!("Do the {size} {}{of} in {parts} parts, one after the other", positions(finding)),
    }
}

/// `rows` of a leading dimension; `positions along dimension 1` of another.
fn positions(finding: &LargeDimension) -> String {
    match finding.inputs.first() {
        Some((at, _)) if *at > 0 => format!("positions along dimension {at}"),
        _ => "rows".to_owned(),
    }
}

/// The call that takes a program's gradient.
pub(crate) struct TakenGradient<'a> {
    /// `jax.value_and_grad` or `jax.grad`
    pub(crate) call: &'a str,
    /// The differentiated function.
    pub(crate) loss: &'a str,
    /// The call's other arguments, behind a comma: `, has_aux=True`.
    pub(crate) options: &'a str,
    /// Whether the function takes the batch as an argument, instead of from its closure.
    pub(crate) takes_batch: bool,
    /// The call's arguments behind the first, if others than the batch are among them; else empty.
    pub(crate) arguments: Vec<&'a str>,
    /// The arguments that have the batch, under the names of the call; else empty.
    pub(crate) batch: Vec<&'a str>,
}

impl<'a> TakenGradient<'a> {
    /// The gradient by the program's call stacks, if its source isn't at hand.
    fn named(library: Library, edited: Option<&'a EditedLines>) -> Self {
        let call = if library == Library::Equinox { "eqx.filter_value_and_grad" } else { "jax.value_and_grad" };
        let name = edited.and_then(|edited| edited.loss.as_deref());
        let loss = name.and_then(|name| name.rsplit('.').next()).filter(|name| is_name(name)).unwrap_or("loss_fn");
        // A function of the step's own takes the batch from it.
        let step = edited.and_then(|edited| edited.line.function.as_deref());
        let within = name.zip(step).and_then(|(name, step)| name.strip_prefix(step));
        let is_closure = within.is_some_and(|within| within.starts_with(".<locals>."));
        Self { call, loss, options: "", takes_batch: !is_closure, arguments: Vec::new(), batch: Vec::new() }
    }

    /// The name of the function in parts.
    pub(crate) fn in_parts(&self) -> String {
        let name = self.call.rsplit('.').next().unwrap_or_default();
        format!("{}_in_parts", name.strip_prefix("filter_").unwrap_or(name))
    }
}

/// A gradient in parts in JAX alone.
fn plain(
    finding: &LargeDimension,
    about: &Recommendation,
    taken: &TakenGradient<'_>,
    note: &'static str,
) -> Option<String> {
    let inputs: Vec<(&str, usize)> = about.inputs().collect();
    let axis = inputs.first()?.1;
    let names: Vec<&str> =
        if taken.batch.is_empty() { inputs.iter().map(|(name, _)| *name).collect() } else { taken.batch.clone() };
    let is_whole = names.iter().all(|name| is_name(name)) && inputs.iter().all(|(_, at)| *at == axis);
    if finding.gradients == GradientSums::None && inputs.iter().all(|(name, at)| is_path(name) && *at == axis) {
        return finding.function.as_ref().map(|function| calls(function, &names, axis, about.parts.unwrap_or(2)));
    }
    if finding.gradients != GradientSums::Summed || !is_whole {
        return None;
    }
    let (parts, arguments) = (about.parts.unwrap_or(2), names.join(", "));
    let (tree, star) = if names.len() == 1 { (names[0].to_owned(), "") } else { (format!("({arguments})"), "*") };
    let TakenGradient { call, loss, options, takes_batch, arguments: ref given, .. } = *taken;
    let is_equinox = call.starts_with("eqx.");
    let (params, shapes) = if is_equinox { ("model", "eqx.filter_eval_shape") } else { ("params", "jax.eval_shape") };
    let all = if given.is_empty() { arguments.clone() } else { given.join(", ") };
    let now = if takes_batch { format!("{params}, {all}") } else { params.to_owned() };
    let parted = match axis {
        // Each device keeps the rows that it has.
        0 if finding.is_on_devices => format!("a.reshape(-1, {parts}, *a.shape[1:]).swapaxes(0, 1)"),
        _ => format!("jnp.stack(jnp.split(a, {parts}, {axis}))"),
    };
    // Arguments that aren't of the batch are the same for each part.
    let key = key_of_parts(finding, given);
    let (tree, star, parts_of_key) = match key {
        None => (format!("jax.tree.map(lambda a: {parted}, {tree})"), star, String::new()),
        Some(key) => {
            let star_of_tree = star;
            let tree =
                format!("({star_of_tree}jax.tree.map(lambda a: {parted}, {tree}), jax.random.split({key}, {parts}))");
            (tree, "*", format!(", {key}"))
        }
    };
    let of_part =
        if given.is_empty() { String::new() } else { format!("lambda {params}, {arguments}{parts_of_key}: ") };
    let call_of_part = if given.is_empty() { String::new() } else { format!("({params}, {all})") };
    let takes = match (takes_batch, note.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!("  # {loss}({params}, {arguments}) has to take the batch"),
        (false, false) => format!("; {loss}({params}, {arguments}) has to take the batch"),
    };
    let first = format!("{params}, {star}jax.tree.map(lambda a: a[0], parts)");
    let head = format!(
        "def {}({params}, {all}):  # in place of {call}({loss}{options})({now})
    f = {of_part}{call}({loss}{options}){call_of_part}{note}{takes}
    parts = {tree}\n",
        taken.in_parts()
    );
    // A mean of the parts' means is that of all, of as many in each.
    let [mean, sum] = [format!("jax.tree.map(lambda s: s / {parts}, sums)"), "sums".to_owned()];
    let (joined, note) = match finding.is_summed {
        true => (
            sum,
            format!(
                "# {loss} seems to be a sum (of a mean: {mean}); what the parts share, as a prior, counts {parts} times"
            ),
        ),
        false => (mean, format!("# if {loss} is a mean, of as many in each part; of a sum: sums")),
    };
    if !options.contains("has_aux=True") {
        return Some(format!(
            "{head}    zeros = jax.tree.map(jnp.zeros_like, {shapes}(f, {first}))
    add = lambda sums, part: (jax.tree.map(jnp.add, sums, f({params}, {star}part)), None)
    sums, _ = jax.lax.scan(add, zeros, parts)
    return {joined}  {note}"
        ));
    }
    // A label of each sample isn't averaged: what belongs to a part stays apart.
    let (result, sums) = if call.ends_with("value_and_grad") {
        ("(loss, aux), grads", "(loss, grads)")
    } else {
        ("grads, aux", "grads")
    };
    Some(format!(
        "{head}    def add(sums, part):
        {result} = f({params}, {star}part)
        return jax.tree.map(jnp.add, sums, {sums}), aux
    {result} = {shapes}(f, {first})
    sums, aux = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, {sums}), parts)  # aux: of each part, stacked
    {bare} = {joined}  {note}
    return {result}",
        bare = sums.trim_matches(['(', ')'])
    ))
}

/// The random key among a gradient's arguments, of which each part needs its own.
fn key_of_parts<'a>(finding: &'a LargeDimension, given: &[&str]) -> Option<&'a str> {
    match &finding.keys[..] {
        [key] if is_name(key) && given.contains(&&**key) => Some(key),
        _ => None,
    }
}

/// Calls of a function with parts of its inputs, one after the other; inputs that no variable has the name of get one.
fn calls(function: &str, names: &[&str], axis: usize, parts: u64) -> String {
    let along = if axis == 0 { String::new() } else { format!(", {axis}") };
    let variable = |(at, name): (usize, &&str)| if is_name(name) { (*name).to_owned() } else { format!("x{at}") };
    let variables: Vec<String> = names.iter().enumerate().map(variable).collect();
    let stand_ins = variables.iter().zip(names).filter(|(variable, name)| variable.as_str() != **name);
    let stand_ins: Vec<String> = stand_ins.map(|(variable, name)| format!("{variable} is {name}")).collect();
    let stand_ins = if stand_ins.is_empty() { String::new() } else { format!("; {}", stand_ins.join(", ")) };
    let split = |name: &String| format!("jnp.split({name}, {parts}{along})");
    let (call, all) = match &variables[..] {
        [name] => ("f(part) for part", split(name)),
        all => ("f(*part) for part", format!("zip({})", all.iter().map(split).collect::<Vec<_>>().join(", "))),
    };
    format!(
        "ys = [{call} in {all}]  # f: your call of {function}, given a part of {}{stand_ins}\n\
         y = jax.tree.map(lambda *parts: jnp.concatenate(parts), *ys)",
        variables.join(" and ")
    )
}

/// A gradient in parts where the program's own is known.
pub(crate) fn gradient_in_parts(about: &Recommendation, taken: &TakenGradient<'_>) -> Option<String> {
    match &about.finding {
        Finding::LargeDimension(finding) if !finding.is_divided && !finding.is_summed => {
            plain(finding, about, taken, "")
        }
        _ => None,
    }
}

/// The dimension that most arrays of the peak have in common, in a clause.
fn most(finding: &LargeDimension, about: &Recommendation) -> String {
    let size = finding.size;
    let shape = about.array.as_ref().and_then(|array| array.shape());
    let named = shape.and_then(|shape| shape.dimensions().get(finding.place)?.bound());
    match named {
        Some(named) if named != size => {
            format!("most arrays at the peak have a dimension of size {size}, which is merged into this one")
        }
        _ => format!("most arrays at the peak have this dimension, of size {size}"),
    }
}

/// For a program that makes the dimension or joins it in the end: parts of its own functions.
fn of_functions(finding: &LargeDimension, about: &Recommendation, then: &str) -> Words {
    let (size, bounds, place) = (finding.size, bounds_of(about), at_line(about));
    let at = finding.place;
    let itself = if finding.is_made { ", and the program makes it itself" } else { "" };
    let inputs = finding.inputs.iter().map(|(at, names)| format!("{} along dimension {at}", quoted(names)));
    let of_inputs = inputs.collect::<Vec<_>>().join(" and ");
    let of_inputs = if of_inputs.is_empty() { of_inputs } else { format!(", that of {of_inputs},") };
    let until = finding.joint.as_ref().map_or_else(String::new, |joint| {
        let how = if joint.are_sums { "added up" } else { "joined" };
        format!(", up to where their results are {how}{}", line(joint.source.as_ref()))
    });
    let has_gradient = finding.gradients != GradientSums::None;
    let (function, again) =
        if has_gradient { ("jax.checkpoint(f)", " (the backward pass computes each part again)") } else { ("f", "") };
    let batch = (size / about.parts.unwrap_or(2)).max(1);
    // The numbers or keys that the program makes, and the arrays that begin with the dimension.
    let made = finding.is_made.then(|| match &finding.keys[..] {
        [key] if is_name(key) => format!("jax.random.split({key}, {size})"),
        _ => format!("jax.numpy.arange({size})"),
    });
    let xs = arrays(finding, made);
    let words = Words::new(format!(
        "Compute what has dimension {at} of [{bounds}]{place}{of_inputs} in parts{until}{again}: {}{itself}{then}",
        most(finding, about)
    ))
    .task(task_of_functions(finding, about.parts.unwrap_or(2)));
    if finding.is_on_devices && !finding.joint.as_ref().is_some_and(|joint| joint.are_sums) {
        return words;
    }
    let sketch = if finding.joint.as_ref().is_some_and(|joint| joint.are_sums) {
        added_up(finding, function, &xs, about.parts.unwrap_or(2))
    } else {
        format!("ys = jax.lax.map({function}, {xs}, batch_size={batch})  # f: the result of one of the {size}")
    };
    either(words, about, recomputed(finding, about, about.parts.unwrap_or(2)), Some(sketch))
}

/// `Take the 64 rows of `batch` in 4 parts`
fn task_of_functions(finding: &LargeDimension, parts: u64) -> String {
    let size = finding.size;
    let names: Vec<String> = finding.inputs.iter().flat_map(|(_, names)| names).cloned().collect();
    let what = match &names[..] {
        [] if finding.keys.is_empty() => format!("{size} rows that the program makes"),
        [] => format!("{size} samples"),
        names => format!("{size} {} of {}", positions(finding), quoted(names)),
    };
    let of_device = if finding.is_on_devices { " on each device" } else { "" };
    format!("Take the {what}{of_device} in {parts} parts")
}

/// The arrays that are taken apart, as code has them, with what the program makes; `xs` where they have no names.
fn arrays(finding: &LargeDimension, made: Option<String>) -> String {
    let leads = |at: usize, names: &[String]| at == 0 && names.iter().all(|name| is_name(name));
    let are_named = finding.inputs.iter().all(|(at, names)| leads(*at, names));
    let names = finding.inputs.iter().filter(|_| are_named).flat_map(|(_, names)| names);
    let all: Vec<&String> = made.iter().filter(|_| are_named).chain(names).collect();
    match &all[..] {
        [] => "xs".to_owned(),
        [one] => (*one).clone(),
        all => format!("({})", tuple(all.iter())),
    }
}

/// Code for sums over parts.
fn added_up(finding: &LargeDimension, function: &str, xs: &str, parts: u64) -> String {
    let size = finding.size;
    let parted = match finding.inputs.first() {
        Some((at, _)) if *at > 0 => format!("jax.numpy.stack(jax.numpy.split(x, {parts}, {at}))"),
        // Each device keeps the rows that it has.
        _ if finding.is_on_devices => format!("x.reshape(-1, {parts}, *x.shape[1:]).swapaxes(0, 1)"),
        _ => format!("x.reshape({parts}, -1, *x.shape[1:])"),
    };
    let of_part = size / parts.max(1);
    let (what, first, adding) = if finding.joint.as_ref().is_some_and(|joint| joint.has_rows) {
        let adding = format!(
            "def add(sums, part):
    more, rows = {function}(part)
    return jax.tree.map(jax.numpy.add, sums, more), rows
sums, rows = jax.lax.scan(add, zeros, parts)
rows = jax.tree.map(lambda y: y.reshape(-1, *y.shape[2:]), rows)"
        );
        (", and their rows", "[0]", adding)
    } else {
        let adding = format!(
            "add = lambda sums, part: (jax.tree.map(jax.numpy.add, sums, {function}(part)), None)
sums, _ = jax.lax.scan(add, zeros, parts)"
        );
        ("", "", adding)
    };
    format!(
        "parts = jax.tree.map(lambda x: {parted}, {xs})
# f(part): what {of_part} of {size} add up to{what}
like = jax.eval_shape(f, jax.tree.map(lambda x: x[0], parts)){first}
zeros = jax.tree.map(lambda s: jax.numpy.zeros(s.shape, s.dtype), like)
{adding}"
    )
}

/// Code for samples that have gradients of their own, as of `jax.vmap`.
fn apart(finding: &LargeDimension, parts: u64) -> Option<String> {
    let names: Vec<&String> = finding.inputs.iter().flat_map(|(_, names)| names).collect();
    let is_whole =
        !names.is_empty() && finding.inputs.iter().all(|(at, _)| *at == 0) && names.iter().all(|name| is_name(name));
    let (all, size) = (tuple(names.iter()), finding.size);
    let arguments = all.trim_end_matches(',');
    (finding.gradients == GradientSums::Apart && is_whole && !finding.is_on_devices).then(|| {
        format!(
            "results = jax.lax.map(lambda one: f(*one), ({all}), batch_size={})  # in place of jax.vmap(f)({arguments}), of all {size}",
            (size / parts.max(1)).max(1)
        )
    })
}

/// The compiled function in parts.
fn in_parts(code: &InParts) -> String {
    let InParts { function, parameters, parts, .. } = code;
    let all = tuple(parameters.iter().map(|(name, _)| name));
    let all = all.trim_end_matches(',');
    let batch = tuple(
        parameters
            .iter()
            .filter(|(_, is_taken_apart)| *is_taken_apart)
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
            .into_iter(),
    );
    format!(
        "def {function}_in_parts({all}, parts={parts}):
    def part(batch):
        {batch} = batch
        return {function}({all})
    batch = jax.tree.map(lambda a: a.reshape(parts, -1, *a.shape[1:]), ({batch}))
    results = jax.lax.map(part, batch)
    return jax.tree.map(lambda r: r.reshape(-1, *r.shape[2:]), results)"
    )
}

fn of_message(finding: &LargeDimension, about: &Recommendation) -> Words {
    let size = finding.size;
    let batch = (size / about.parts.unwrap_or(8)).max(1);
    let parts = size.div_ceil(batch);
    let has_gradient = finding.gradients == GradientSums::Summed;
    let common = match finding.arrays {
        0 | 1 => String::new(),
        count => format!("; {count} listed arrays have it"),
    };
    let (condition, short) = if about.is_batch_ruled_out {
        ("counts what is independent", "if these are independent")
    } else {
        ("is your batch", "if that is your batch")
    };
    let words = Words::new(format!(
        "If dimension 0 of {}{}, of size {size}, {condition}, process it in parts, one after the other{common}{}; {parts} parts \
         free this much at most",
        bare(about),
        at_line(about),
        if has_gradient { "; take loss and gradient of each part, and add them up" } else { "" }
    ))
    .task(format!("Process the {size} in {parts} parts, {short}"));
    match about.framework {
        Some(Framework::Jax) if has_gradient => words.code(
            JAX,
            format!(
                "def add(total, part):
    return jax.tree.map(lambda t, g: t + g / {parts}, total, jax.grad(loss)(params, part)), None
# parts: the batch, [{parts}, …]; loss: a mean. The gradients of a sum are added up as they are.
total, _ = jax.lax.scan(add, jax.tree.map(jax.numpy.zeros_like, params), parts)"
            ),
        ),
        Some(Framework::Jax) => {
            words.code(JAX, format!("ys = jax.lax.map(f, xs, batch_size={batch})  # f takes one of xs"))
        }
        Some(Framework::TorchXla) => words.code(
            "import torch_xla.core.xla_model as xm",
            format!("for part in batch.chunk({parts}):\n    (loss_of(part) / {parts}).backward()\n    xm.mark_step()"),
        ),
        // In a training step all parts of a split would be kept for the gradient.
        _ => words.task(format!("Take fewer than {size} at once, {short}")),
    }
}
