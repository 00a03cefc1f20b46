//! A program that doesn't fit, where nothing that is listed tells what would help.

use super::{
    Words, checkpoint,
    code::{AN_AXIS, DUMP, JAX, SHARDING},
    words::quoted,
};
use crate::style::{bytes, grouped, percent, share};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{Lowered, MemoryFinding, MessageLacks, Shrink},
};
use tilewise_oom::{Framework, Setting, SoftwareOption, Switch, SwitchKind};

/// The reason to look into the program, of a message without a list.
pub(super) const NO_ARRAYS: &str = "the message lists no arrays";

pub(super) fn words(finding: &MemoryFinding, about: &Recommendation) -> Words {
    match finding {
        MemoryFinding::LookInside { lacks, shrink, dump, is_elsewhere } => {
            lacking(*lacks, *shrink, dump.as_deref(), *is_elsewhere, about)
        }
        MemoryFinding::Settings { settings, shrink, is_trained, is_evaluated, accumulation } => {
            let each = |Lowered { setting, to, .. }: &Lowered| match to {
                Some(to) => format!("`{}` from {} to {to}", setting.name, setting.value),
                None => format!("`{}` ({})", setting.name, setting.value),
            };
            let lower = format!("Lower {}", settings.iter().map(each).collect::<Vec<_>>().join(" or "));
            let words = Words::new(format!(
                "{lower}, or less: most of what a program makes grows with the batch, and with the length of its samples"
            ))
            .task(lower);
            let has_batch = settings.iter().any(|lowered| lowered.setting.is_of_batch());
            let add_up = match accumulation.as_ref().filter(|_| *is_trained && has_batch) {
                Some(Setting { name, value, .. }) => {
                    Some(format!("Raise `{name}` from {value} as much as the batch falls: gradients of smaller batches add up"))
                }
                None => {
                    let is_known = settings.iter().any(|lowered| lowered.setting.is_of_accumulating_trainer());
                    (*is_trained && is_known && shrink.is_none()).then(|| ADD_UP.to_owned())
                }
            };
            let evaluated = (*is_evaluated && has_batch)
                .then(|| "The evaluation fails: of a batch that it shares with the training, give it a smaller one".to_owned());
            let all: Vec<String> = shrink.map(to_shrink).into_iter().chain(add_up).chain(evaluated).collect();
            if all.is_empty() { words } else { words.caveat(all.join(". ")) }
        }
        MemoryFinding::LessAtOnce { shrink } => {
            let by = shrink.map(|shrink| format!("{} % ", shrink.percent)).unwrap_or_default();
            let of = match about.is_batch_ruled_out {
                true => "shorter or smaller samples",
                false => "fewer, shorter or smaller samples",
            };
            Words::new(format!("Take {by}less at once ({of}): what a program makes grows with its inputs, its weights don't"))
                .task(format!("Take {by}less at once: {of}"))
        }
        MemoryFinding::Software(SoftwareOption { software, change, effect, keeps_results, .. }) => {
            let others = if *keeps_results { "" } else { "; results change" };
            Words::new(format!("{change}, an option of {software}'s own: {effect}{others}"))
                .task((*change).to_owned())
                .caveat(format!("{software}: {effect}{others}"))
        }
        MemoryFinding::Switches(switches) => set_switches(switches),
        MemoryFinding::SmallerInputs(sizes) => {
            let sizes = sizes.iter().map(|size| grouped(*size)).collect::<Vec<_>>().join(" or ");
            Words::new(format!(
                "Lower a size of the inputs, if {sizes} is one, of the largest array that the message lists: samples, a length, rows, pixels. \
                 What the program makes grows with it"
            ))
            .task(format!("If {sizes} is a size of your inputs: lower it"))
        }
        MemoryFinding::Recompute { is_of_keras, shrink } => {
            // A checkpoint seldom frees more than half.
            let is_far = shrink.is_some_and(|shrink| shrink.percent > 50);
            let less = if is_far { ", and take less at once" } else { " (a checkpoint around each)" };
            let words = Words::new(
                "Put checkpoints around the layers: a training keeps what each computes until its backward pass, and can compute it again there, \
                 about a third slower",
            )
            .task(format!("Recompute layers in the backward pass{less}"));
            let words = Words { caveat: shrink.map(to_shrink), ..words };
            match is_of_keras {
                true => words.code("import keras", "with keras.RematScope(mode='full'):  # Keras 3.9 and newer\n    model = make_model()  # its layers are made in it"),
                false => checkpoint::around_a_layer(words, about),
            }
        }
        MemoryFinding::ScoresBesideKernel => Words::new(
            "Update the library of the attention kernel, or take another kernel: the text shows a blockwise one, which holds no scores, and \
             yet they are made whole, in its stead or beside it",
        )
        .task("Update the attention kernel's library, or take another kernel")
        .jax(about, None, "pip install -U jax  # the kernels of jax.experimental.pallas.ops; others have a package of their own"),
        MemoryFinding::GlobalBatch(global) => {
            let words = Words::new(format!(
                "Give each device its part of the batch, if there are several: an array of one has all {} samples of `{}`, as where a data \
                 set for each device makes batches of the whole size, or a batch isn't sharded",
                global.value, global.name
            ))
            .task(format!("If devices share `{}` ({}): give each its part", global.name, global.value));
            match about.framework {
                Some(Framework::TensorFlow) => {
                    words.code(None, "data = data.batch(context.get_per_replica_batch_size(GLOBAL))  # in dataset_fn(context)")
                }
                _ => words.jax(
                    about,
                    JAX,
                    "batch = jax.device_put(batch, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('data')))",
                ),
            }
        }
        MemoryFinding::WholeModel(model) => {
            #[expect(clippy::cast_precision_loss, reason = "a number for people")]
            let billions = format!("{:.1}", model.parameters as f64 / 1e9);
            let (billions, taken) = (billions.trim_end_matches(".0"), bytes(model.bytes()));
            let (of, less) = if model.is_trained {
                ("with gradients and Adam's moments in f32", "train a part of it (LoRA)")
            } else {
                match model.bits {
                    16 => ("in bfloat16", "hold the model in int8"),
                    8 => ("in 8 bits", "hold the model in 4 bits"),
                    _ => ("in 4 bits", "take a smaller model"),
                }
            };
            Words::new(format!(
                "Divide the model between devices, if each holds it whole, or {less}: {billions} billion parameters take {taken} {of}"
            ))
            .task(match model.is_trained {
                true => format!("If each device holds the whole model: divide it, or {less}"),
                false => format!("{}{}, or divide it between devices", less[..1].to_uppercase(), &less[1..]),
            })
            .caveat(format!("{billions} billion parameters take {taken} {of}"))
        }
        MemoryFinding::ServedModel { model, devices: Some(devices), part, .. } => {
            let part = bytes(*part);
            Words::new(format!(
                "Divide the model between more devices, {} in place of {devices}, or load weights of fewer bits: in {} bits they take {part} of each \
                 device, before the cache and what a step computes. Fewer or shorter requests save none of that",
                devices.saturating_mul(2),
                model.bits
            ))
            .task(format!("Take {} devices in place of {devices}, or weights of fewer bits", devices.saturating_mul(2)))
            .caveat(format!("in {} bits the weights take {part} of each device", model.bits))
        }
        MemoryFinding::ServedModel { model, devices: None, part, room } => {
            let (taken, bits, each) = (bytes(*part), model.bits, bytes(*room));
            let least = part.div_ceil((*room).max(1));
            Words::new(format!(
                "Divide the model between {} devices or more, or load weights of fewer bits: in {bits} bits they take {taken}, which {least} devices of \
                 {each} hold without a cache and what a step computes. Fewer or shorter requests save none of that",
                least.next_power_of_two()
            ))
            .task(format!("Take {} devices or more, or weights of fewer bits", least.next_power_of_two()))
            .caveat(format!("in {bits} bits the weights take {taken}: {least} devices of {each} for them alone"))
        }
        MemoryFinding::FewSamples { elements } => Words::new(format!(
            "Divide weights, gradients and the optimizer's state between devices, or take smaller ones (bfloat16, Adafactor, LoRA): \
             batch and length make {elements} elements, and what is computed of so few is little beside them"
        ))
        .task("Divide weights and the optimizer's state, or take smaller ones (LoRA, bfloat16)"),
        MemoryFinding::UncutGraph => Words::new(
            "Cut the graph after each batch, unless the loop does: PyTorch/XLA queues operations until something runs them, so that all \
             batches before a `.item()` or a `print`, or whose gradients are added up, are one program",
        )
        .task("Cut the graph after each batch, unless the loop does")
        .code("import torch_xla", "torch_xla.sync()  # after each loss.backward(); xm.mark_step() before PyTorch/XLA 2.7"),
        MemoryFinding::EarlyAbort => Words::new(
            "Let the compiler go on and list what is largest: it gave up early, and its figure is an estimate",
        )
        .code(None, "export LIBTPU_INIT_ARGS=\"--xla_tpu_impure_oom_fast_exit_threshold=-1\""),
        MemoryFinding::OutOfReach(times) => {
            let (times, root) = (grouped(*times), grouped(times.isqrt() + 1));
            Words::new(format!(
                "Take smaller sizes: what is needed is {times} times what there is, which no flag, type, recomputing or number of devices makes up for. \
                 Where arrays have a size squared, as a matrix of all pairs, 1/{root} of it fits; or work through the rows in parts, and keep only what \
                 is read"
            ))
            .task(format!("Take smaller sizes: 1/{times} fits, of a size that comes squared 1/{root}"))
        }
        MemoryFinding::OneArray { bytes: size } => {
            let of = size.map(|size| format!(" of {}", bytes(size))).unwrap_or_default();
            Words::new(format!(
                "Never make the array whole, or divide it between devices: one array{of} alone is larger than the memory. If the batch or \
                 sequence of all devices is in it, an annotation that divides it is missing"
            ))
            .task("Never make the array whole, or divide it between devices")
            .jax(
                about,
                SHARDING,
                "mesh = jax.make_mesh((jax.device_count(),), ('x',), axis_types=(jax.sharding.AxisType.Auto,))\n\
                 x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec('x')))",
            )
        }
        MemoryFinding::OwnFunction { name } => Words::new(format!(
            "Make the array in parts: the program is `{name}` alone, by its name one of JAX's own, called outside of `jax.jit`, which makes the array whole \
             on one device, beside the others of its computation. Inside of `jax.jit` with `out_shardings` each device makes its \
             part; fewer elements at once, or a smaller type, help on one device"
        ))
        .task(format!("Make the array in parts: JAX's own `{name}` is the whole program"))
        .jax(
            about,
            SHARDING,
            "mesh = jax.make_mesh((jax.device_count(),), ('x',), axis_types=(jax.sharding.AxisType.Auto,))\n\
             x = jax.jit(make, out_shardings=NamedSharding(mesh, PartitionSpec('x')))()  # make: a function of the call",
        ),
        MemoryFinding::OffHost { bytes: taken, are_made: true, .. } => {
            let taken = taken.map(|taken| format!(", {}", bytes(taken))).unwrap_or_default();
            Words::new(format!(
                "Offload less, or divide between devices what the program offloads{taken}: it makes these values itself, as under a \
                 checkpoint's policy that offloads (`S(5)` in their layout), and without a constraint on the layers' input each host may \
                 hold them whole"
            ))
            .task("Divide what is offloaded between devices, or offload less (the checkpoint's policy)")
            .jax(
                about,
                SHARDING,
                "x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec('x')))  # x: the layers' input; an axis that the mesh divides",
            )
        }
        MemoryFinding::OffHost { bytes: taken, percent, .. } => {
            let taken = taken.map(|taken| format!(", {},", bytes(taken))).unwrap_or_default();
            let by = percent.map(|percent| format!("{percent} % ")).unwrap_or_default();
            Words::new(format!(
                "Offload {by}less, or divide what is offloaded{taken} between more hosts: arrays in `pinned_host` memory (`S(5)` in their \
                 layout) are the program's own, and each host holds its devices' parts; a host with more memory helps, too"
            ))
            .task(format!("Offload {by}less, or divide it between more hosts"))
            .jax(
                about,
                JAX,
                "policy = jax.checkpoint_policies.save_and_offload_only_these_names(  # if a checkpoint's policy offloads: fewer names\n    \
                 names_which_can_be_saved=[], names_which_can_be_offloaded=['hidden'], offload_src='device', offload_dst='pinned_host')",
            )
        }
        MemoryFinding::Arguments { .. } => arguments(finding, about),
        MemoryFinding::Replicated { .. } => replicated(finding, about),
        MemoryFinding::Results { bytes: taken, arguments, all } => results(*taken, *arguments, *all, about),
        _ => Words::new(""),
    }
}

/// Options that are off in the job's own command.
fn set_switches(switches: &[Switch]) -> Words {
    let shown = |value: &str| if value.is_empty() { "''".to_owned() } else { value.to_owned() };
    let each = |switch: &Switch| format!("`{}` from {} to {}", switch.name, shown(&switch.value), switch.to);
    let set = format!("Set {}", switches.iter().map(each).collect::<Vec<_>>().join(", "));
    let effects: Vec<&str> = switches
        .iter()
        .map(|switch| match switch.kind {
            SwitchKind::Recompute => {
                "layers keep their inputs alone, and are computed again in the backward pass, about a third slower"
            }
            SwitchKind::Narrow => "values of 32 bits take half in 16",
            _ => "layers that are steps of a loop share their memory",
        })
        .collect();
    Words::new(format!("{set}: {}", effects.join("; "))).task(set)
}

fn lacking(
    lacks: MessageLacks,
    shrink: Option<Shrink>,
    dump: Option<&str>,
    is_elsewhere: bool,
    about: &Recommendation,
) -> Words {
    let why = match lacks {
        MessageLacks::Arrays => NO_ARRAYS,
        MessageLacks::Rest => {
            "the message lists the largest arrays alone, and these changes together free less than is missing"
        }
        _ => "no change is known for the arrays that the message lists",
    };
    // Only the program shows which part of it grows with the batch.
    let shrink = shrink.map(to_shrink);
    let why = format!("{why}{}", shrink.as_ref().map(|shrink| format!(". {shrink}")).unwrap_or_default());
    let words = if is_elsewhere && dump.is_none() { less_at_once(&why, about) } else { look_inside(&why, dump, about) };
    match shrink {
        Some(shrink) => words.caveat(shrink),
        None => words,
    }
}

/// `The temporaries have to shrink by 11 %`
pub(super) fn to_shrink(Shrink { is_of_temporaries, percent, is_least, .. }: Shrink) -> String {
    let what = if is_of_temporaries { "The temporaries have" } else { "What is needed has" };
    let beside = if is_least { " at least, and by what lies beside" } else { "" };
    format!("{what} to shrink by {percent} %{beside}")
}

/// Advice where the job's flags don't reach the compiler, so that there is no dump.
fn less_at_once(why: &str, about: &Recommendation) -> Words {
    let (kept, code) = match about.framework {
        Some(Framework::TensorFlow) => (", or recompute what a gradient keeps", " (`tf.recompute_grad` keeps less)"),
        _ => ("", ""),
    };
    let (all, short) = match about.is_batch_ruled_out {
        true => ("Take shorter samples", "Take shorter samples"),
        false => ("Take fewer samples, or shorter ones, at once", "Take fewer or shorter samples at once"),
    };
    Words::new(format!("{all}{kept}: {why}")).task(format!("{short}{code}"))
}

/// The way to train with a smaller batch and as many samples in a step, of trainers that have this option.
const ADD_UP: &str = "Raise `gradient_accumulation_steps` as much: gradients of smaller batches add up";

/// Advice to read the program's dump, which shows more than a message.
pub(super) fn look_inside(why: &str, dump: Option<&str>, about: &Recommendation) -> Words {
    // A dump in a bucket is copied first.
    let remote = dump.filter(|folder| folder.contains("://"));
    let (sentence, task) = match dump {
        Some(_) => ("Run `tilewise audit` on the job's own dump", "See in the job's own dump what owns the peak"),
        None => ("Dump the program and run `tilewise audit dump`", "Dump the program, and see what owns its peak"),
    };
    let words = Words::new(format!("{sentence}, which says what owns the peak: {why}")).task(task);
    match (about.framework, remote, dump) {
        (_, Some(folder), _) if folder.starts_with("gs://") => {
            words.code(None, format!("gcloud storage cp -r {folder} dump\ntilewise audit dump"))
        }
        (_, None, Some(folder)) => words.code(None, format!("tilewise audit {folder}")),
        (_, Some(_), _) => words,
        (Some(Framework::Reactant), ..) => words.code(
            None,
            "write(\"program.hlo\", repr(@code_xla f(x)))  # f(x): the call; in a shell: tilewise audit program.hlo",
        ),
        _ => words.code(None, format!("{DUMP}\ntilewise audit dump")),
    }
}

fn replicated(finding: &MemoryFinding, about: &Recommendation) -> Words {
    let MemoryFinding::Replicated { bytes: taken, devices, roots, mesh_axis, dimension } = finding else {
        return Words::new("");
    };
    let (taken, devices, mesh_axis) = (*taken, *devices, mesh_axis.as_deref());
    let what = if roots.is_empty() { "weights and the optimizer's state".to_owned() } else { quoted(roots) };
    let words = Words::new(format!(
        "Divide {what} between the {devices} devices, each of which holds all of it, {}: {} on each{}",
        bytes(taken),
        bytes(taken / devices.max(1)),
        if dimension.is_some() { "" } else { " (FSDP, ZeRO)" }
    ))
    .task(format!("Divide {what} between the {devices} devices, each of which holds all"));
    if about.framework != Some(Framework::Jax) {
        return words;
    }
    let roots = if roots.is_empty() { vec!["params"] } else { roots.iter().map(String::as_str).collect() };
    let (axis, note) = (mesh_axis.unwrap_or("x"), if mesh_axis.is_some() { "" } else { AN_AXIS });
    if let (Some((dimension, size)), [root]) = (dimension, &roots[..]) {
        let places = "None, ".repeat(*dimension);
        return words.code(
            SHARDING,
            format!(
                "{root}_sharding = NamedSharding(mesh, PartitionSpec({places}'{axis}'))  # where {root} gets its sharding: its {} along \
                 dimension {dimension}{note}",
                grouped(*size)
            ),
        );
    }
    let shardings: Vec<String> =
        roots.iter().map(|root| format!("\n{root}_sharding = jax.tree.map(divided, {root})")).collect();
    words.code(
        JAX,
        format!(
            "# these go into in_shardings and out_shardings of the step, and of what makes them{}
def divided(a):  # along its largest dimension
    at = max(range(a.ndim), key=lambda d: a.shape[d], default=0)
    is_even = a.ndim and a.shape[at] % {devices} == 0
    spec = jax.sharding.PartitionSpec(*[None] * at, '{}') if is_even else jax.sharding.PartitionSpec()
    return jax.sharding.NamedSharding(mesh, spec){}  # of its arrays, or of the shapes of jax.eval_shape",
            note,
            axis,
            shardings.concat()
        ),
    )
}

fn results(taken: u64, arguments: u64, all: u64, about: &Recommendation) -> Words {
    let less =
        format!("Return less at once: results take {}, {} of the program", bytes(taken), percent(share(taken, all)));
    if arguments < taken / 2 {
        return Words::new(format!(
            "{less}. Weights that it makes: a part on each device, or a narrower type; values that a loop collects: some turns at a time"
        ))
        .task(less);
    }
    Words::new(format!("{less}; and donate the arguments that they replace, {} at most", bytes(arguments)))
        .task("Donate the arguments that results replace, or return less")
        .jax(about, JAX, "step = jax.jit(step, donate_argnums=0)  # if the results replace its first argument")
}

fn arguments(finding: &MemoryFinding, about: &Recommendation) -> Words {
    let MemoryFinding::Arguments { bytes: taken, devices, left, roots, element } = finding else {
        return Words::new("");
    };
    let (taken, devices) = (*taken, *devices);
    let narrower = match element {
        None => ", or narrow their type".to_owned(),
        Some(element) if element.bits() > 8 => format!(", or narrow them ({element} now)"),
        Some(_) => String::new(),
    };
    let left = left.map(|left| format!(", which leaves {} for all else", bytes(left)));
    let what = if roots.is_empty() { "the arguments".to_owned() } else { quoted(roots) };
    let words = Words::new(format!(
        "Divide {what}, {}, between devices: {} on each of {devices}{}{narrower}; optimizer state may lie in the host's \
         memory",
        bytes(taken),
        bytes(taken / devices.max(1)),
        left.unwrap_or_default()
    ))
    .task(match roots.is_empty() {
        // A message doesn't tell how many devices share them already.
        true => format!("Divide {what} between {devices} times the devices{narrower}"),
        false => format!("Divide {what} between {devices} devices{narrower}"),
    });
    let all = if roots.is_empty() { "jax.device_count()".to_owned() } else { devices.to_string() };
    let roots = if roots.is_empty() { vec!["params"] } else { roots.iter().map(String::as_str).collect() };
    let divided: Vec<String> = roots.iter().map(|root| format!("\n{root} = jax.tree.map(divided, {root})")).collect();
    match about.framework {
        Some(Framework::Jax) => words.code(
            SHARDING,
            format!(
                "mesh = jax.make_mesh(({all},), ('x',), axis_types=(jax.sharding.AxisType.Auto,))\n\
                 def divided(a):  # along the longest dimension that the devices share evenly
    even = [d for d in range(a.ndim) if a.shape[d] % {all} == 0]
    at = max(even, key=lambda d: a.shape[d], default=None)
    spec = jax.sharding.PartitionSpec(*('x' if d == at else None for d in range(a.ndim)))
    return jax.device_put(a, jax.sharding.NamedSharding(mesh, spec))\
                 {}",
                divided.concat()
            ),
        ),
        Some(Framework::TorchXla) => words.code(
            "from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel",
            "model = XlaFullyShardedDataParallel(model)",
        ),
        _ => words,
    }
}
