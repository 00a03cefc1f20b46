//! Repeated layers of a network, and the values that each keeps for the backward pass.

use super::{
    finding::Checkpointed,
    layer_calls::LayerCalls,
    program::{LiveArray, ProgramModel},
    residuals::Residual,
};
use crate::program::{is_backward, is_module, modules, numbered, traced};
use foldhash::{HashMap, HashSet};
use std::{cmp::Reverse, collections::BTreeMap};
use tilewise_hlo::Opcode;

/// Repeated layers with the values that they keep, in execution order.
pub(crate) struct Layers<'k, 'a, 'm> {
    /// Their path in operation names, such as `transformer/h/*`; `None` if only their shapes repeat.
    path: Option<String>,
    /// Number of layers; each of several gradients runs all of them.
    count: usize,
    layers: Vec<Layer<'k, 'a, 'm>>,
}

/// Start times of the layers' backward passes, in rising order; each ends where the next begins.
struct BackwardPasses(Vec<usize>);

impl BackwardPasses {
    fn of(layers: &[Layer<'_, '_, '_>]) -> Self {
        let mut begins: Vec<usize> = layers.iter().map(Layer::restart).filter(|begin| *begin < usize::MAX).collect();
        begins.sort_unstable();
        Self(begins)
    }

    fn has_begun(&self, moment: usize) -> bool {
        self.0.first().is_some_and(|begin| *begin <= moment)
    }

    /// End of the backward pass running at `moment`; `usize::MAX` for the last one, whose end is unknown.
    fn end_after(&self, moment: usize) -> usize {
        self.0.get(self.0.partition_point(|begin| *begin <= moment)).copied().unwrap_or(usize::MAX)
    }
}

/// One layer with the values that it keeps.
struct Layer<'k, 'a, 'm> {
    values: Vec<&'k Residual<'a, 'm>>,
    /// End of its forward pass.
    end: usize,
    /// For each value, whether it is a later layer's input, which stays when the layer is recomputed.
    inputs: Vec<bool>,
    /// Bytes of an input that isn't among `values`, and stays, too.
    other_input: u64,
}

impl<'k, 'a, 'm> Layers<'k, 'a, 'm> {
    /// The layers of the gradient that keeps most, joined by other gradients' layers with the same path.
    pub(crate) fn of(kept: &'k [Residual<'a, 'm>]) -> Option<Self> {
        // Values stacked by a loop belong to its steps, not to a layer.
        let unrolled = kept.iter().filter(|value| value.array.instruction.opcode() != Opcode::While);
        let kept: Vec<&'k Residual<'a, 'm>> = unrolled.collect();
        let mut passes: Vec<Self> = passes(&kept).iter().filter_map(|pass| Self::of_pass(pass)).collect();
        let largest = passes.iter().enumerate().max_by_key(|(_, layers)| layers.bytes())?.0;
        let mut best = passes.swap_remove(largest);
        let others = passes.into_iter().filter(|other| other.path == best.path);
        best.layers.extend(others.flat_map(|other| other.layers));
        Some(best)
    }

    /// The layers of one gradient: by operation names, unless repeating shapes find over a third more bytes.
    fn of_pass(kept: &[&'k Residual<'a, 'm>]) -> Option<Self> {
        let (by_name, by_shape) = (by_name(kept), by_shape(kept));
        let all = |layers: &Option<Self>| layers.as_ref().map_or(0, Self::bytes);
        let mut best = if all(&by_name) / 3 >= all(&by_shape) / 4 { by_name } else { by_shape }?;
        best.find_inputs();
        Some(best)
    }

    fn new(path: Option<String>, layers: Vec<Layer<'k, 'a, 'm>>) -> Self {
        Self { path, count: layers.len(), layers }
    }

    fn bytes(&self) -> u64 {
        self.layers.iter().map(Layer::bytes).fold(0, u64::saturating_add)
    }

    /// Bytes kept by all layers but the largest.
    fn bytes_but_of_one(&self) -> u64 {
        self.bytes() - self.layers.iter().map(Layer::bytes).max().unwrap_or(0)
    }

    /// Marks the inputs of later layers: values read after their own layer's forward pass. If a layer has none, its
    /// smallest value over 1/64 of the layer stands in, or, if another layer's such value is smaller, that size: inputs
    /// of all layers are alike.
    fn find_inputs(&mut self) {
        let smallest = |layer: &Layer<'k, 'a, 'm>| {
            let trifle = layer.bytes() / 64;
            let sizes = layer.values.iter().map(|value| value.array.bytes).enumerate();
            sizes.filter(|(_, bytes)| *bytes > trifle).min_by_key(|(_, bytes)| *bytes)
        };
        let least = self.layers.iter().filter_map(smallest).map(|(_, bytes)| bytes).min().unwrap_or(0);
        for layer in &mut self.layers {
            layer.inputs = layer.values.iter().map(|value| value.last_forward > layer.end).collect();
            if !layer.inputs.contains(&true) {
                match smallest(layer) {
                    Some((at, bytes)) if bytes == least => layer.inputs[at] = true,
                    _ => layer.other_input = least,
                }
            }
        }
    }

    /// The values freed if each layer is recomputed for its backward pass.
    pub(crate) fn recomputed(&self) -> impl Iterator<Item = &'k Residual<'a, 'm>> {
        self.layers.iter().flat_map(Layer::recomputed)
    }

    /// The layers as a finding, with the bytes that the largest keeps.
    pub(crate) fn checkpointed(&self) -> Checkpointed {
        let values = self.layers.iter().flat_map(|layer| &layer.values);
        let calls = LayerCalls::of(self.path.as_deref(), values.map(|value| value.array.instruction));
        Checkpointed {
            path: self.path.clone(),
            count: self.count,
            bytes: self.layers.iter().map(Layer::bytes).max().unwrap_or(0),
            modules: self.modules(),
            classes: calls.classes,
            call: calls.line,
        }
    }

    /// Up to three modules that keep most in the largest layer, with their bytes; empty if fewer than two are known.
    fn modules(&self) -> Vec<(String, u64)> {
        const SHOWN: usize = 3;
        let largest = self.layers.iter().max_by_key(|layer| layer.bytes());
        let (Some(path), Some(largest)) = (&self.path, largest) else { return Vec::new() };
        let base = path.rsplit('/').next().unwrap_or_default().trim_end_matches('*');
        let mut held: BTreeMap<&str, u64> = BTreeMap::new();
        for value in &largest.values {
            let is_layer = |word: &&str| {
                let number = word.strip_prefix(base);
                number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
                    || base.strip_suffix('_') == Some(*word)
            };
            if let Some(module) = modules(&value.name).skip_while(|word| !is_layer(word)).nth(1) {
                let bytes = held.entry(module).or_default();
                *bytes = bytes.saturating_add(value.array.bytes);
            }
        }
        let mut held: Vec<(String, u64)> = held.into_iter().map(|(module, bytes)| (module.to_owned(), bytes)).collect();
        held.sort_by_key(|(_, bytes)| Reverse(*bytes));
        if held.len() < 2 {
            return Vec::new();
        }
        held.truncate(SHOWN);
        held
    }

    /// Peak bytes of temporaries if each layer is recomputed. A layer's values live until its forward pass is done with
    /// them, and again during its backward pass, or, if `is_lazy`, from their first read there. They end with that pass
    /// even if a weight's gradient reads them later now: it is then computed in the pass, the only one that has the
    /// values again.
    pub(crate) fn temporary_bytes(&self, program: &ProgramModel<'m>, is_lazy: bool) -> u64 {
        let backward = BackwardPasses::of(&self.layers);
        // A weight comes back updated, or as its gradient; a batch may be as large as what is made of it.
        let states = program.states();
        let is_state = |array: &&LiveArray<'_>| states.contains(&array.shape.without_layout().to_string());
        let parameters = program.arrays.iter().filter(|array| array.is_parameter());
        let weights: HashSet<u64> = parameters.filter(is_state).map(LiveArray::elements).collect();
        let is_of_backward_pass = |array: &LiveArray<'m>| {
            let name = || traced(program.flow, &array.instruction).0;
            backward.has_begun(array.first)
                && !weights.contains(&array.elements())
                && name().is_some_and(|name| is_backward(&name))
        };
        let mut steps: BTreeMap<usize, i128> = BTreeMap::new();
        let mut lives = |first: usize, last: usize, bytes: u64| {
            *steps.entry(first).or_default() += i128::from(bytes);
            *steps.entry(last + 1).or_default() -= i128::from(bytes);
        };
        let mut again: HashMap<(usize, usize), (usize, usize, usize)> = HashMap::default();
        for layer in &self.layers {
            let restart = layer.restart();
            let end = backward.end_after(restart);
            for value in layer.recomputed() {
                let restart = if is_lazy { value.first_backward.clamp(restart, end) } else { restart };
                again.insert((value.array.buffer, value.array.first), (value.last_forward, restart, end));
            }
            let first = layer.recomputed().map(|value| value.array.first).min();
            let last = layer.recomputed().map(|value| value.first_backward).max();
            if let (Some(first), Some(last)) = (first, last) {
                lives(first, last, layer.other_input);
            }
        }
        for array in program.temporaries() {
            match again.get(&(array.buffer, array.first)) {
                Some((last_forward, restart, end)) if last_forward < restart => {
                    let last = array.last.min(*end);
                    lives(array.first, *last_forward, array.bytes);
                    lives((*restart).min(last), last, array.bytes);
                }
                None if is_of_backward_pass(array) => {
                    // A backward pass's results are read by it or by the next one.
                    lives(
                        array.first,
                        array.last.min(backward.end_after(backward.end_after(array.first))),
                        array.bytes,
                    );
                }
                _ => lives(array.first, array.last, array.bytes),
            }
        }
        let mut alive = 0;
        let most = steps.into_values().map(|step| {
            alive += step;
            alive
        });
        u64::try_from(most.max().unwrap_or(0)).unwrap_or(0)
    }
}

impl<'k, 'a, 'm> Layer<'k, 'a, 'm> {
    fn new(values: Vec<&'k Residual<'a, 'm>>, end: usize) -> Self {
        Self { values, end, inputs: Vec::new(), other_input: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(&self.values)
    }

    /// Start of its backward pass; earlier reads, fused into the forward pass, don't count. `usize::MAX` if unknown.
    fn restart(&self) -> usize {
        let made = self.values.iter().map(|value| value.array.first).max().unwrap_or(0);
        let end = if self.end == usize::MAX { made } else { self.end };
        let moments = self.recomputed().map(|value| value.first_backward);
        moments.filter(|moment| *moment > end).min().unwrap_or(usize::MAX)
    }

    fn recomputed(&self) -> impl Iterator<Item = &'k Residual<'a, 'm>> {
        self.values.iter().zip(&self.inputs).filter(|(_, is_input)| !**is_input).map(|(value, _)| *value)
    }
}

/// Layers by operation names: numbered modules (`h/3`, `layer_3`, the first perhaps without a number), or the parts of
/// one module, whatever their names, if these keep over a quarter more, the largest part aside.
fn by_name<'k, 'a, 'm>(kept: &[&'k Residual<'a, 'm>]) -> Option<Layers<'k, 'a, 'm>> {
    let mut by_number: BTreeMap<String, BTreeMap<u64, Vec<&'k Residual<'a, 'm>>>> = BTreeMap::new();
    let mut by_module: BTreeMap<String, BTreeMap<&str, Vec<&'k Residual<'a, 'm>>>> = BTreeMap::new();
    for value in kept {
        for (path, number) in numbered(&value.name) {
            by_number.entry(path).or_default().entry(number).or_default().push(value);
        }
        let words = words(value);
        for (at, word) in words.iter().enumerate().skip(1) {
            by_module.entry(words[..at].join("/")).or_default().entry(word).or_default().push(value);
        }
    }
    let of_numbers = by_number.into_iter().map(|(path, layers)| in_order(path, layers.into_values().collect()));
    let of_modules = by_module.into_iter().map(|(path, mut parts)| {
        // A part that keeps little, or is a single operation, isn't worth wrapping.
        let most = parts.values().map(|values| bytes_of(values)).max().unwrap_or(0);
        let depth = path.split('/').count() + 1;
        let has_parts = |values: &[&Residual<'_, '_>]| values.iter().any(|value| words(value).len() > depth);
        parts.retain(|_, values| bytes_of(values) > most / 16 && has_parts(values));
        let mut names: Vec<&str> = parts.keys().copied().collect();
        names.sort_by_key(|name| start(&parts[name]));
        in_order(format!("{path}/{}", pattern(&names)), parts.into_values().collect())
    });
    let (numbered, parts) = (largest(of_numbers), largest(of_modules));
    let all = |layers: &Option<Layers<'_, '_, '_>>| layers.as_ref().map_or(0, Layers::bytes_but_of_one);
    if all(&numbered) / 4 >= all(&parts) / 5 { numbered } else { parts }
}

/// The group of two or more layers that keeps most, its largest layer aside; among equals, the one with the shortest
/// path.
fn largest<'k, 'a, 'm>(layers: impl Iterator<Item = Layers<'k, 'a, 'm>>) -> Option<Layers<'k, 'a, 'm>> {
    let several = layers.filter(|layers| layers.count > 1);
    several.max_by_key(|layers| (layers.bytes_but_of_one(), Reverse(layers.path.as_ref().map(String::len))))
}

/// Layers in execution order: each ends where the next one begins.
fn in_order<'k, 'a, 'm>(path: String, layers: Vec<Vec<&'k Residual<'a, 'm>>>) -> Layers<'k, 'a, 'm> {
    let count = layers.len();
    let of_run = |mut layers: Vec<Vec<&'k Residual<'a, 'm>>>| {
        layers.sort_by_key(|values| start(values));
        let ends: Vec<usize> =
            layers.iter().skip(1).map(|next| start(next).saturating_sub(1)).chain([usize::MAX]).collect();
        layers.into_iter().zip(ends).map(|(values, end)| Layer::new(values, end)).collect::<Vec<_>>()
    };
    let layers = runs(layers).into_iter().flat_map(of_run).collect();
    // Omits the outermost module, which is the whole network.
    let path = path.split_once('/').filter(|_| path.matches('/').count() > 1).map_or(&*path, |(_, rest)| rest);
    Layers { count, ..Layers::new(Some(path.to_owned()), layers) }
}

/// Splits layers by runs of the network before its gradient, as on small and large pictures: a run begins where the
/// first layer begins again after the last one.
fn runs<'k, 'a, 'm>(mut layers: Vec<Vec<&'k Residual<'a, 'm>>>) -> Vec<Vec<Vec<&'k Residual<'a, 'm>>>> {
    let mut found = Vec::new();
    loop {
        layers.sort_by_key(|values| start(values));
        let last = layers.last().map_or(0, |values| start(values));
        let first = layers.first().filter(|_| layers.len() > 1).map(Vec::as_slice).unwrap_or_default();
        let again: Vec<&Residual<'_, '_>> = first.iter().copied().filter(|value| value.array.first > last).collect();
        // Some of a layer's values may be made late.
        if again.is_empty() || bytes_of(&again) < bytes_of(first) / 4 {
            found.push(layers);
            return found;
        }
        let begins = start(&again);
        let is_before = |value: &&Residual<'_, '_>| value.array.first < begins;
        let parted = layers.into_iter().map(|values| values.into_iter().partition::<Vec<_>, _>(is_before));
        let (before, after): (Vec<_>, Vec<_>) = parted.unzip();
        found.push(before.into_iter().filter(|values| !values.is_empty()).collect());
        layers = after.into_iter().filter(|values| !values.is_empty()).collect();
    }
}

/// The modules of a value, outermost first.
fn words<'n>(value: &'n Residual<'_, '_>) -> Vec<&'n str> {
    modules(&value.name).filter(|word| is_module(word)).collect()
}

/// Time at which the first of a layer's values is made.
fn start(values: &[&Residual<'_, '_>]) -> usize {
    values.iter().map(|value| value.array.first).min().unwrap_or(usize::MAX)
}

/// A shell pattern for module names: `block_*`, `{encoder,decoder}`, or `*` for many.
fn pattern(names: &[&str]) -> String {
    const SHORT: usize = 3;
    let first = names.first().copied().unwrap_or_default();
    let is_common = |length: &usize| names.iter().all(|name| name.get(..*length) == first.get(..*length));
    let common = (0..=first.len()).rev().find(is_common).unwrap_or(0);
    match names.len() {
        ..=SHORT if common < SHORT => format!("{{{}}}", names.join(",")),
        _ if common < SHORT => "*".to_owned(),
        _ => format!("{}*", &first[..common]),
    }
}

/// Layers by the shapes of their values, if names don't show them: each ends at its anchor, the largest value that
/// every layer keeps exactly once.
fn by_shape<'k, 'a, 'm>(kept: &[&'k Residual<'a, 'm>]) -> Option<Layers<'k, 'a, 'm>> {
    let mut shapes: BTreeMap<(String, String), Vec<&'k Residual<'a, 'm>>> = BTreeMap::new();
    for value in kept {
        // `mlp` and `mlp_3` are two layers; `linear_0` and `linear_1` within one of them are one layer.
        let outermost = modules(&value.name).next().unwrap_or_default();
        let base = outermost.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
        let name = value.name.replacen(outermost, base, 1);
        shapes.entry((value.array.shape.to_string(), name)).or_default().push(value);
    }
    let several: Vec<Vec<&Residual<'_, '_>>> = shapes.into_values().filter(|alike| alike.len() > 1).collect();
    // Only shapes found in three quarters of the layers count: a value that each layer has twice would split layers
    // into unlike halves.
    let freed = |anchors: &[&Residual<'_, '_>]| {
        let ends = ends(anchors);
        let is_in_most = |alike: &&Vec<&Residual<'_, '_>>| {
            let layers: HashSet<usize> = alike.iter().map(|value| layer_at(&ends, value)).collect();
            layers.len() * 4 >= ends.len() * 3
        };
        let bytes = several.iter().filter(is_in_most).map(|alike| bytes_of(alike)).fold(0, u64::saturating_add);
        bytes - bytes / ends.len() as u64
    };
    let mut by_count: BTreeMap<usize, &[&Residual<'_, '_>]> = BTreeMap::new();
    for alike in &several {
        let most = by_count.entry(alike.len()).or_insert(alike);
        if bytes_of(alike) > bytes_of(most) {
            *most = alike;
        }
    }
    let anchors = by_count.into_values().max_by_key(|anchors| freed(anchors))?;
    let ends = ends(anchors);
    let mut layers: Vec<Layer<'k, 'a, 'm>> = ends.iter().map(|end| Layer::new(Vec::new(), *end)).collect();
    for value in kept {
        // Values after the last anchor, such as a loss's, belong to no layer.
        if let Some(layer) = layers.get_mut(layer_at(&ends, value)) {
            layer.values.push(value);
        }
    }
    // Nor do values before the first layer, such as a stem's of convolutions: a layer begins with a shape that others
    // have, too.
    if let Some((first, others)) = layers.split_first_mut() {
        let shapes: HashSet<String> =
            others.iter().flat_map(|layer| &layer.values).map(|value| value.array.shape.to_string()).collect();
        let is_alike = |value: &&&Residual<'_, '_>| shapes.contains(&value.array.shape.to_string());
        let begin = first.values.iter().filter(is_alike).map(|value| value.array.first).min().unwrap_or(0);
        first.values.retain(|value| value.array.first >= begin);
    }
    Some(Layers::new(None, layers))
}

/// Ends of the layers: the forward pass's last reads of their anchors, in rising order.
fn ends(anchors: &[&Residual<'_, '_>]) -> Vec<usize> {
    let mut ends: Vec<usize> = anchors.iter().map(|anchor| anchor.last_forward).collect();
    ends.sort_unstable();
    ends
}

/// The number of the layer that makes a value.
fn layer_at(ends: &[usize], value: &Residual<'_, '_>) -> usize {
    ends.partition_point(|end| *end < value.array.first)
}

fn bytes_of(values: &[&Residual<'_, '_>]) -> u64 {
    values.iter().map(|value| value.array.bytes).fold(0, u64::saturating_add)
}

/// Splits kept values by gradient, for gradients taken in sequence: between two, little of the first one's values is
/// left.
fn passes<'k, 'a, 'm>(kept: &[&'k Residual<'a, 'm>]) -> Vec<Vec<&'k Residual<'a, 'm>>> {
    const LITTLE: i128 = 8;
    let mut steps: BTreeMap<usize, i128> = BTreeMap::new();
    for value in kept {
        *steps.entry(value.array.first).or_default() += i128::from(value.array.bytes);
        *steps.entry(value.first_backward + 1).or_default() -= i128::from(value.array.bytes);
    }
    let mut held = 0;
    for step in steps.values_mut() {
        held += *step;
        *step = held;
    }
    let most = steps.values().copied().max().unwrap_or(0);
    let (mut starts, mut is_begun, mut low) = (Vec::new(), false, None);
    for (moment, held) in steps {
        if held > most / 2 {
            starts.extend(low.take());
            is_begun = true;
        } else if is_begun && held < most / LITTLE {
            low = low.or(Some(moment));
        }
    }
    let mut passes = vec![Vec::new(); starts.len() + 1];
    for value in kept {
        passes[starts.partition_point(|start| *start <= value.array.first)].push(*value);
    }
    passes
}
