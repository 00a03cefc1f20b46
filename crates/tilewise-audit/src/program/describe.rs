//! Names of the axes of arrays, as a reader calls them. Unknown names aren't made up.

use super::{
    axis_name::{AxisName, NamedAxis},
    axis_signs::{
        Around, is_of_words, is_whole, loops, multiplied, of_exponentials, paired, reduces_rows, takes_maximum,
        tells_places_apart,
    },
    has_gradient, is_backward, is_input, name, op_name,
};
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Axes, AxisId, Dataflow, EventKind, FactorKind, Position},
};

/// Axes that an argument's dimension has, or a loop fills.
struct KnownAxes {
    axes: Vec<AxisId>,
    name: AxisName,
    is_of_data: bool,
}

/// The names of a program's axes.
pub(crate) struct Names<'f> {
    flow: &'f Dataflow,
    /// All axes of an argument's dimension with their name, by the first of them; the argument with the most
    /// informative name comes first.
    known: HashMap<AxisId, Vec<KnownAxes>>,
}

impl<'f> Names<'f> {
    pub(crate) fn of(flow: &'f Dataflow) -> Self {
        let facts = Facts::of(flow);
        let mut known: HashMap<AxisId, Vec<KnownAxes>> = HashMap::default();
        // Inputs before weights, whose dimensions tell less; images before their labels.
        let mut arguments = facts.arguments.iter().collect::<Vec<_>>();
        arguments.sort_by_key(|argument| (!argument.is_input, Reverse(argument.rank)));
        for argument in arguments {
            let Some(first) = argument.axes.first() else { continue };
            let of_first = known.entry(*first).or_default();
            if !of_first.iter().any(|known| known.axes == argument.axes) {
                let (axes, name, is_of_data) =
                    (argument.axes.clone(), facts.name(argument), facts.is_of_data(argument));
                of_first.push(KnownAxes { axes, name, is_of_data });
            }
        }
        // Axes that no argument has, but a loop fills.
        for axis in facts.in_loops() {
            if known.contains_key(&axis) {
                continue;
            }
            let axes = facts.filled_with(axis);
            let name = facts.of_loop(&axes);
            known.extend(name.map(|name| (axis, vec![KnownAxes { axes, name, is_of_data: false }])));
        }
        Self { flow, known }
    }

    /// The named axes of an array.
    pub(crate) fn at(&self, position: Position) -> Vec<NamedAxis> {
        let told = self.flow.told(position);
        told.map_or_else(Vec::new, |(at, leaf)| self.of_array(&at, leaf))
    }

    /// The named axes of an instruction's array; of a tuple, by the number of its leaf.
    fn of_array(&self, instruction: &Instruction<'_>, leaf: usize) -> Vec<NamedAxis> {
        let axes = self.flow.axes();
        let mut found = Vec::new();
        for (dimension, all) in axes.of_array(instruction, leaf).enumerate() {
            let mut rest = all;
            while let Some((first, after)) = rest.split_first() {
                let candidates = self.known.get(first).into_iter().flatten();
                let longest =
                    candidates.filter(|known| rest.starts_with(&known.axes)).max_by_key(|known| known.axes.len());
                let Some(known) = longest else {
                    rest = after;
                    continue;
                };
                let size = known.axes.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
                let (name, is_of_data) = (known.name.clone(), known.is_of_data);
                found.push(NamedAxis { dimension, name, size, is_of_data });
                rest = &rest[known.axes.len()..];
            }
        }
        found
    }
}

/// A dimension of an argument.
struct Argument {
    name: String,
    dimension: usize,
    rank: usize,
    axes: Vec<AxisId>,
    /// Whether it is neither a weight nor a state, by its name.
    is_input: bool,
    /// Whether its elements are whole numbers.
    is_whole: bool,
}

/// Facts about a program's axes.
struct Facts<'f> {
    flow: &'f Dataflow,
    axes: &'f Axes,
    /// Whether the program takes a gradient.
    has_gradient: bool,
    arguments: Vec<Argument>,
    /// Axes of weights, each with the ranks and dimensions at which it occurs.
    of_weights: HashMap<AxisId, Vec<(usize, usize)>>,
    /// Axes that begin an input, each with the number of elements of all such inputs.
    beginning: HashMap<AxisId, u64>,
    /// Axes of weights that are named like those of a vocabulary.
    of_words: HashSet<AxisId>,
    /// Axes that occur in two dimensions of one array.
    paired: HashSet<AxisId>,
    /// A dot's axes that only one operand has.
    multiplied: HashSet<AxisId>,
    /// Axes of exponentials.
    of_exponentials: HashSet<AxisId>,
    /// The batch axis of the most input elements.
    batch: Option<AxisId>,
    /// Axes along which rows of weights are looked up, and axes of the indices.
    tables: HashSet<Vec<AxisId>>,
    looked_up: HashSet<AxisId>,
    /// By computation, the innermost loop around its instructions.
    loops: HashMap<usize, Around>,
    /// The bodies of loops that go through weights.
    of_layers: HashSet<usize>,
}

impl<'f> Facts<'f> {
    fn of(flow: &'f Dataflow) -> Self {
        let mut facts = Self {
            flow,
            axes: flow.axes(),
            has_gradient: has_gradient(flow.module()),
            arguments: Vec::new(),
            of_weights: HashMap::default(),
            beginning: HashMap::default(),
            of_words: HashSet::default(),
            paired: paired(flow),
            multiplied: multiplied(flow),
            of_exponentials: of_exponentials(flow),
            batch: None,
            tables: HashSet::default(),
            looked_up: HashSet::default(),
            loops: loops(flow),
            of_layers: HashSet::default(),
        };
        facts.add_arguments();
        facts.add_tables();
        facts.add_layers();
        let batches = facts.arguments.iter().filter(|argument| facts.is_batch(argument));
        let first = batches.filter_map(|argument| argument.axes.first().copied());
        facts.batch = first.max_by_key(|first| (facts.beginning.get(first).copied(), Reverse(*first)));
        facts
    }

    fn add_arguments(&mut self) {
        let Some(entry) = self.flow.module().entry() else { return };
        for parameter in entry.instructions().filter(|at| at.opcode() == Opcode::Parameter) {
            let Ok(shape) = parameter.shape() else { continue };
            let name = name(&parameter);
            let is_input = is_input(&name);
            for (leaf, (_, array)) in shape.leaves().enumerate() {
                for (dimension, axes) in self.axes.of_array(&parameter, leaf).enumerate() {
                    let rank = array.dimensions().len();
                    match axes.first() {
                        Some(first) if is_input && dimension == 0 => {
                            let bounds = array.dimensions().iter().map(|dimension| dimension.bound().unwrap_or(1));
                            let elements = self.beginning.entry(*first).or_default();
                            *elements = elements.saturating_add(bounds.fold(1, u64::saturating_mul));
                        }
                        Some(_) if !is_input => {
                            for axis in axes {
                                self.of_weights.entry(*axis).or_default().push((rank, dimension));
                            }
                            if is_of_words(&name) {
                                self.of_words.extend(axes);
                            }
                        }
                        _ => {}
                    }
                    let (name, axes, is_whole) = (name.clone(), axes.to_vec(), is_whole(&array));
                    self.arguments.push(Argument { name, dimension, rank, axes, is_input, is_whole });
                }
            }
        }
    }

    fn add_tables(&mut self) {
        let axes = self.axes;
        for at in self.flow.module().instructions().filter(|at| at.opcode() == Opcode::Gather) {
            let (Some(table), Some(dimensions)) =
                (at.operands().next().and_then(|of| of.instruction()), at.gather_dimensions())
            else {
                continue;
            };
            let rows = |dimension: &usize| axes.of_dimension(&table, 0, *dimension).iter().copied();
            let rows: Vec<AxisId> = dimensions.indexed.iter().flat_map(rows).collect();
            if !rows.is_empty() && rows.iter().all(|axis| self.of_weights.contains_key(axis)) {
                let size = |axis: &AxisId| axes.all()[*axis].size;
                let all = rows.iter().map(size).fold(1, u64::saturating_mul);
                self.tables.insert(rows);
                let places = dimensions.batch(axes.of_array(&at, 0).count());
                let looked = places.iter().flat_map(|(at_result, _)| axes.of_dimension(&at, 0, *at_result));
                let mut counts = looked.scan(1_u64, |count, axis| {
                    *count = count.saturating_mul(size(axis));
                    Some(*count)
                });
                // As many rows as the table has look up others of it: neighbours, not words.
                if counts.any(|count| count == all) {
                    continue;
                }
                self.looked_up.extend(places.iter().flat_map(|(at_result, _)| axes.of_dimension(&at, 0, *at_result)));
            }
        }
    }

    fn name(&self, argument: &Argument) -> AxisName {
        let all = &argument.axes[..];
        let is_of_weight = all.iter().any(|axis| self.of_weights.contains_key(axis));
        let is_stacked = |rank: usize| {
            let of_first = all.first().and_then(|first| self.of_weights.get(first));
            of_first.is_some_and(|places| places.contains(&(rank, 0)))
        };
        let dimension = || AxisName::Dimension(argument.name.clone(), argument.dimension);
        // A softmax that isn't learned may choose among moves, or neighbours.
        if is_of_weight && self.is_of_logits(all) {
            return match () {
                () if is_stacked(3) => AxisName::Experts,
                () if self.is_table(all) => AxisName::Vocabulary,
                () => AxisName::Classes,
            };
        }
        if let Some(name) = self.of_loop(all) {
            return name;
        }
        let is_first = argument.dimension == 0 && all.first() == self.batch.as_ref();
        match () {
            () if is_of_weight || !argument.is_input => dimension(),
            () if is_first && self.is_batch(argument) => AxisName::Batch(argument.name.clone()),
            () if self.is_of_tokens(argument) => AxisName::Tokens(argument.name.clone()),
            () => dimension(),
        }
    }

    /// Whether a softmax goes over axes of weights that aren't positions, which attention pairs. Without a gradient, it
    /// may choose among anything.
    fn is_of_logits(&self, all: &[AxisId]) -> bool {
        self.has_gradient && !all.iter().any(|axis| self.paired.contains(axis)) && self.is_softmax(all)
    }

    /// Whether rows of a weight are looked up along axes, or a weight that has these axes is named like a vocabulary.
    fn is_table(&self, all: &[AxisId]) -> bool {
        self.tables.contains(all) || all.iter().all(|axis| self.of_words.contains(axis))
    }

    /// Whether an input's dimension is one of tokens: whole numbers that look up rows of a weight, and that attention
    /// pairs.
    fn is_of_tokens(&self, argument: &Argument) -> bool {
        let is_token = |axis: &AxisId| self.looked_up.contains(axis) && self.paired.contains(axis);
        argument.is_whole && (argument.rank, argument.dimension) == (2, 1) && argument.axes.iter().all(is_token)
    }

    /// Whether a dimension may be the batch: the first of an input of rank 2 or more. In products only one operand has
    /// its axes, no weight has them, they aren't paired, and no operation tells their places apart, or sums over them
    /// by products except a gradient.
    fn is_batch(&self, argument: &Argument) -> bool {
        let is_free = |axis: &AxisId| {
            self.multiplied.contains(axis) && !self.paired.contains(axis) && !self.of_weights.contains_key(axis)
        };
        let is_one = |axis: &AxisId| {
            self.axes.events(*axis).iter().all(|event| {
                let at = self.flow.module().instruction(event.instruction);
                at.is_none_or(|at| match event.kind {
                    EventKind::Mixed | EventKind::Ends(FactorKind::Mix) | EventKind::Made(FactorKind::Mix) => {
                        // A kernel's effect is unknown; it is only accepted in a program with a gradient.
                        !tells_places_apart(&at) && (self.has_gradient || at.opcode() != Opcode::CustomCall)
                    }
                    _ => true,
                })
            })
        };
        let is_input = argument.is_input && argument.dimension == 0 && argument.rank > 1;
        is_input
            && !argument.axes.is_empty()
            && argument
                .axes
                .iter()
                .all(|axis| is_free(axis) && is_one(axis) && !self.is_summed(*axis, |opcode| opcode != Opcode::Reduce))
    }

    /// Whether an operation of these sums over an axis, other than a gradient's.
    fn is_summed(&self, axis: AxisId, is: impl Fn(Opcode) -> bool) -> bool {
        let mut ends = self.axes.events(axis).iter().filter(|event| event.kind == EventKind::Ends(FactorKind::Sum));
        ends.any(|event| {
            let at = self.flow.module().instruction(event.instruction);
            let at = at.filter(|at| is(at.opcode()));
            at.is_some_and(|at| !op_name(&at).is_some_and(|name| is_backward(&name)))
        })
    }

    /// Whether a dimension counts data, such as samples, positions or edges, and isn't the model's.
    fn is_of_data(&self, argument: &Argument) -> bool {
        let all = &argument.axes;
        let is_of_weight = all.iter().any(|axis| self.of_weights.contains_key(axis));
        let is_product = |opcode| matches!(opcode, Opcode::Dot | Opcode::Convolution);
        let is_width = |axis: &AxisId| self.is_summed(*axis, is_product);
        argument.is_input && !is_of_weight && (self.is_softmax(all) || !all.iter().any(is_width))
    }

    /// Whether a softmax goes over axes: exponentials have them, and a maximum and a sum of each row reduce them, and
    /// no others.
    fn is_softmax(&self, all: &[AxisId]) -> bool {
        let is_of_these = |at: &Instruction<'_>| {
            let (operand, dimensions) = (at.operands().next().and_then(|of| of.instruction()), at.dimensions());
            operand.zip(dimensions).is_none_or(|(operand, dimensions)| {
                let mut reduced = dimensions.iter().flat_map(|at| self.axes.of_dimension(&operand, 0, *at));
                reduced.all(|axis| all.contains(axis))
            })
        };
        let ends = |kind: FactorKind| {
            all.iter().all(|axis| {
                let events = self.axes.events(*axis).iter().filter(|event| event.kind == EventKind::Ends(kind));
                let mut reduces = events.filter_map(|event| self.flow.module().instruction(event.instruction));
                reduces
                    .any(|at| reduces_rows(&at) && (kind == FactorKind::Sum || takes_maximum(&at)) && is_of_these(&at))
            })
        };
        all.iter().all(|axis| self.of_exponentials.contains(axis)) && ends(FactorKind::Reduce) && ends(FactorKind::Sum)
    }

    /// The loop that reads an array along axes (`dynamic-slice`), or fills it (`dynamic-update-slice`), one place a
    /// step.
    fn loops_along(&self, all: &[AxisId], opcode: Opcode) -> Option<Around> {
        let size = all.iter().map(|axis| self.axes.all()[*axis].size).fold(1, u64::saturating_mul);
        let around = |axis: &AxisId| self.loops_of(*axis, opcode, size).next();
        all.iter().map(around).reduce(|one, other| one.filter(|_| one == other)).flatten()
    }

    /// The loops of `size` steps that read or fill arrays along an axis.
    fn loops_of(&self, axis: AxisId, opcode: Opcode, size: u64) -> impl Iterator<Item = Around> {
        let events = self.axes.events(axis).iter();
        let mixed = events.filter(|event| matches!(event.kind, EventKind::Mixed | EventKind::Ends(FactorKind::Mix)));
        mixed.filter_map(move |event| {
            let at = self.flow.module().instruction(event.instruction).filter(|at| at.opcode() == opcode)?;
            self.loops.get(&at.computation().index()).copied().filter(|around| around.trips == size)
        })
    }

    /// The axes of arrays that loops read or fill at some place.
    fn in_loops(&self) -> HashSet<AxisId> {
        let of = |opcode: Opcode, at: &Instruction<'f>| match opcode {
            Opcode::DynamicSlice => at.operands().next().and_then(|of| of.instruction()),
            Opcode::DynamicUpdateSlice => Some(*at),
            _ => None,
        };
        let inside = self.flow.module().instructions().filter(|at| self.loops.contains_key(&at.computation().index()));
        let arrays = inside.filter_map(|at| of(at.opcode(), &at));
        arrays.flat_map(|array| self.axes.in_array(&array, 0)).copied().collect()
    }

    /// The axes of the dimension that begins with one, of an array that a loop fills: a reshape behind it may take its steps apart.
    fn filled_with(&self, axis: AxisId) -> Vec<AxisId> {
        let mixed = self.axes.events(axis).iter().filter(|event| event.kind == EventKind::Mixed);
        let mut dimensions = mixed.filter_map(|event| {
            let at = self.flow.module().instruction(event.instruction)?;
            let is_filled = at.opcode() == Opcode::DynamicUpdateSlice;
            self.axes.of_array(&at, 0).find(|all| is_filled && all.first() == Some(&axis)).map(<[_]>::to_vec)
        });
        dimensions.next().unwrap_or_else(|| vec![axis])
    }

    /// The name of axes that loops go along: layers, if one of them goes through weights, else steps.
    fn of_loop(&self, all: &[AxisId]) -> Option<AxisName> {
        let [read, filled] =
            [Opcode::DynamicSlice, Opcode::DynamicUpdateSlice].map(|opcode| self.loops_along(all, opcode));
        // A forward pass fills what a backward pass reads.
        let mut loops = [read, filled].into_iter().flatten().peekable();
        loops.peek()?;
        let is_of_layers = loops.any(|around| self.of_layers.contains(&around.body));
        Some(if is_of_layers { AxisName::Layers } else { AxisName::Steps })
    }

    fn add_layers(&mut self) {
        let weights =
            self.arguments.iter().filter(|argument| !argument.is_input && argument.dimension == 0 && argument.rank > 1);
        // The backward pass is a loop of its own.
        let bodies = weights.flat_map(|weight| match weight.axes[..] {
            [axis] => self.loops_of(axis, Opcode::DynamicSlice, self.axes.all()[axis].size).collect::<Vec<_>>(),
            _ => self.loops_along(&weight.axes, Opcode::DynamicSlice).into_iter().collect(),
        });
        self.of_layers = bodies.map(|around| around.body).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_hlo::Module;

    /// The names of an instruction's axes, by dimension.
    fn named(text: &str, instruction: &str) -> Vec<(usize, AxisName, u64)> {
        let flow = Dataflow::new(&Module::parse(text).expect("a program"));
        let at = flow.module().instructions().find(|at| at.name() == instruction).expect("an instruction");
        let found = Names::of(&flow).of_array(&at, 0);
        found.into_iter().map(|axis| (axis.dimension, axis.name, axis.size)).collect()
    }

    /// The loss of a language model whose embedding is also its output weight.
    const MODEL: &str = "
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
maximum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
ENTRY main {
  ids = s32[16,1024] parameter(0), metadata={op_name=\"batch['ids']\"}
  table = f32[5000,64] parameter(1), metadata={op_name=\"params['table']['w']\"}
  zero = f32[] constant(0)
  rows = s32[16384] reshape(ids)
  taken = f32[16384,64] gather(table, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}, metadata={op_name=\"jit(f)/transpose(jvp())/gather\"}
  e = f32[16,1024,64] reshape(taken)
  w = f32[64,64] parameter(2), metadata={op_name=\"params['w']\"}
  x = f32[16,1024,64] dot(e, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  scores = f32[16,1024,1024] dot(x, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  logits = f32[16,1024,5000] dot(x, table), lhs_contracting_dims={2}, rhs_contracting_dims={1}
  most = f32[16,1024] reduce(logits, zero), dimensions={2}, to_apply=maximum
  scaled = f32[16,1024,5000] exponential(logits)
  sum = f32[16,1024] reduce(scaled, zero), dimensions={2}, to_apply=add
  flat = f32[16384,5000] reshape(logits)
  ROOT t = (f32[16,1024], f32[16,1024], f32[16384,5000], f32[16,1024,1024]) tuple(most, sum, flat, scores)
}";

    #[test]
    fn a_language_model_has_a_batch_of_tokens_and_a_vocabulary() {
        let (batch, tokens) = (AxisName::Batch("batch['ids']".into()), AxisName::Tokens("batch['ids']".into()));
        let logits = [(0, batch.clone(), 16), (1, tokens.clone(), 1024), (2, AxisName::Vocabulary, 5000)];
        assert_eq!(named(MODEL, "logits"), logits);
        // A dimension that merges two axes has both names.
        let flat = [(0, batch.clone(), 16), (0, tokens.clone(), 1024), (1, AxisName::Vocabulary, 5000)];
        assert_eq!(named(MODEL, "flat"), flat);
        assert_eq!(named(MODEL, "scores"), [(0, batch, 16), (1, tokens.clone(), 1024), (2, tokens, 1024)]);
        let features = AxisName::Dimension("params['table']['w']".into(), 1);
        assert_eq!(named(MODEL, "taken")[2], (1, features, 64));
    }

    #[test]
    fn names_are_told_by_signs_not_by_sizes() {
        // Without a gradient, a softmax may choose among anything.
        let inference = MODEL.replace("transpose(jvp())", "f");
        assert_eq!(named(&inference, "logits")[2].1, AxisName::Dimension("params['table']['w']".into(), 0));
        // A maximum over further axes scales values, and isn't a softmax's.
        let scaled = MODEL
            .replace(
                "most = f32[16,1024] reduce(logits, zero), dimensions={2}",
                "most = f32[16] reduce(logits, zero), dimensions={1,2}",
            )
            .replace("(f32[16,1024], f32[16,1024], f32[16384,5000]", "(f32[16], f32[16,1024], f32[16384,5000]");
        assert_eq!(named(&scaled, "logits")[2].1, AxisName::Dimension("params['table']['w']".into(), 0));
        // An axis that is sorted along isn't a batch of samples.
        let sorted = MODEL.replace(
            "  rows = ",
            "  order = s32[16,1024] sort(ids), dimensions={0}, to_apply=add, metadata={op_name=\"jit(f)/sort\"}\n  rows = ",
        );
        assert_eq!(named(&sorted, "logits")[0].1, AxisName::Dimension("batch['ids']".into(), 0));
        // As many rows as the table has look up neighbours.
        let neighbours = MODEL.replace("5000", "16");
        assert_eq!(named(&neighbours, "scores")[1].1, AxisName::Dimension("batch['ids']".into(), 1));
        // An axis without products may be anything.
        let plain = "ENTRY main {\n  x = f32[16,1024] parameter(0), metadata={op_name=\"x\"}\n  ROOT y = f32[16,1024] tanh(x)\n}";
        let names = [0, 1].map(|at| (at, AxisName::Dimension("x".into(), at), [16, 1024][at]));
        assert_eq!(named(plain, "y"), names);
    }

    /// SparseCore operations as a TPU's compiler prints them: the start has no operand, and its result isn't in the
    /// text.
    #[test]
    fn what_is_started_has_the_axes_of_what_is_done() {
        let text = "
ENTRY main {
  x = f32[64,8] parameter(0), metadata={op_name=\"x\"}
  started = ((), (), (s32[4])) negate-start()
  handed = ((f32[64,8]), f32[64,8], (s32[4])) negate-update(started, x)
  ROOT done = f32[64,8] negate-done(handed)
}";
        let flow = Dataflow::new(&Module::parse(text).expect("a program"));
        let hidden = flow.ops().iter().find(|(_, op)| op.is_hidden && op.is_root).expect("what the text leaves out").1;
        let found = Names::of(&flow).at(hidden.position);
        assert_eq!(found.iter().map(|axis| (axis.dimension, axis.size)).collect::<Vec<_>>(), [(0, 64), (1, 8)]);
    }

    #[test]
    fn loops_have_layers_and_steps() {
        let text = |weights: &str| {
            format!(
                "
body {{
  c = (s32[], f32[8,16], f32[12,8,16], f32[12,16,16]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[8,16] get-tuple-element(c), index=1
  kept = f32[12,8,16] get-tuple-element(c), index=2
  ws = f32[12,16,16] get-tuple-element(c), index=3
  zero = s32[] constant(0)
  w1 = f32[1,16,16] dynamic-slice(ws, i, zero, zero), dynamic_slice_sizes={{1,16,16}}
  w = f32[16,16] reshape(w1)
  y = f32[8,16] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  y1 = f32[1,8,16] reshape(y)
  all = f32[12,8,16] dynamic-update-slice(kept, y1, i, zero, zero)
  ROOT t = (s32[], f32[8,16], f32[12,8,16], f32[12,16,16]) tuple(n, y, all, ws)
}}
condition {{
  d = (s32[], f32[8,16], f32[12,8,16], f32[12,16,16]) parameter(0)
  j = s32[] get-tuple-element(d), index=0
  k = s32[] constant(12)
  ROOT p = pred[] compare(j, k), direction=LT
}}
ENTRY main {{
  x0 = f32[8,16] parameter(0), metadata={{op_name=\"x\"}}
  ws0 = f32[12,16,16] parameter(1), metadata={{op_name=\"{weights}\"}}
  n0 = s32[] constant(0)
  f = f32[] constant(0)
  zeros = f32[12,8,16] broadcast(f), dimensions={{}}
  begun = (s32[], f32[8,16], f32[12,8,16], f32[12,16,16]) tuple(n0, x0, zeros, ws0)
  done = (s32[], f32[8,16], f32[12,8,16], f32[12,16,16]) while(begun), condition=condition, body=body, metadata={{op_name=\"jit(f)/while\"}}
  ROOT stacked = f32[12,8,16] get-tuple-element(done), index=2
}}"
            )
        };
        assert_eq!(named(&text("params['ws']"), "stacked")[0], (0, AxisName::Layers, 12));
        assert_eq!(named(&text("params['ws']"), "ws0")[0], (0, AxisName::Layers, 12));
        assert_eq!(named(&text("xs"), "stacked")[0], (0, AxisName::Steps, 12));
        // Where the source's operations have names, a loop without one is the compiler's own.
        let own = named(&text("xs").replace("jit(f)/while", ""), "stacked");
        assert!(own.iter().all(|(dimension, ..)| *dimension != 0), "{own:?}");
    }
}
