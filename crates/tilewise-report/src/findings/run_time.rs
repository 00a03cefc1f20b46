//! Memory that others hold while a program runs, and messages that tell of no arrays.

use super::{
    Words, cache,
    code::{self, ALIVE, JAX},
    history, resource,
    words::printed,
};
use crate::style::{bytes, grouped};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{Asker, CoreHalt, RunTimeFinding},
};
use tilewise_oom::{Framework, Kept, Message, PrintedSize, Server, Way, Worked};

/// The effect of donation, behind a sentence on room.
const DONATED: &str = "; donated arguments leave their place to results";

pub(super) fn words(finding: &RunTimeFinding, about: &Recommendation) -> Words {
    let size = |size: &Option<PrintedSize>| size.as_ref().map(printed).unwrap_or_default();
    match finding {
        RunTimeFinding::Fragmented { is_program, asked } => {
            let piece = asked.as_ref().map(|asked| format!(": {} are needed in one piece", printed(asked)));
            let sentence = if *is_program {
                "Free arrays before this program is loaded, load the largest programs first, and allocate what stays before what \
                 comes and goes"
            } else {
                "Free arrays before this one is allocated, and allocate what stays before what comes and goes"
            };
            let donated = match about.framework {
                Some(Framework::Jax) => DONATED,
                _ => "",
            };
            let words = list_alive(Words::new(format!("{sentence}{donated}{}", piece.unwrap_or_default())), about);
            let dropped = "\ndel old  # what nothing needs any more, such as parameters from before they were copied to all devices";
            Words { code: words.code.map(|code| code + dropped), ..words }
        }
        RunTimeFinding::Returns { size, are_more, percent } => returns(size, *are_more, *percent, about),
        RunTimeFinding::OthersHold { asked, free, programs, has_run } => {
            let free = free.as_ref().map(|free| format!(" where {} are free", printed(free))).unwrap_or_default();
            let asked = asked.as_ref().map(|asked| format!(": {} are asked for{free}", printed(asked)));
            let programs = if *programs { " and other compiled programs" } else { "" };
            let sentence = format!(
                "See what else is in memory{}. Arrays that Python still refers to (old states, results kept in a list, a second \
                 copy of the parameters){programs} count. What is needed in whole belongs on more devices, a part on each",
                asked.unwrap_or_default()
            );
            // PyTorch/XLA reports the amount of taken memory, not its owners.
            list_alive(Words::new(sentence).task(drop_old(*has_run, about)), about)
        }
        RunTimeFinding::ServerRoom { server, filled, percent } => server_room(*server, *filled, *percent),
        RunTimeFinding::AskLess { asker, shrink } => match shrink {
            // One array may be the last of many.
            Some(shrink) if *asker == Asker::Program => {
                let less = format!("Give the program smaller inputs, so that it takes {} % less", shrink.percent);
                ask_less(*asker, about).task(less)
            }
            _ => ask_less(*asker, about),
        },
        RunTimeFinding::Told { told, to } => {
            if told.way == Way::Set {
                let set = format!("{}={}", told.name, told.value.as_deref().unwrap_or("1"));
                return Words::new(format!("Set `{set}` before the job starts, as a warning of the line that fails says"))
                    .task("Set the variable that a warning of this line names")
                    .code(None, format!("export {set}"));
            }
            let verb = if told.way == Way::Raise { "Raise" } else { "Lower" };
            let now = match (&told.value, to) {
                (Some(value), Some(to)) => format!(" from {value} to {to}"),
                (Some(value), None) => format!(" ({value} now)"),
                _ => String::new(),
            };
            let by = if to.is_some() { "by the error's figures" } else { "as the error says" };
            Words::new(format!("{verb} `{}`{now}, {by}", told.name))
        }
        RunTimeFinding::Worked { worked: Worked::Release(release), .. } => Words::new(format!(
            "Take {release} again, from which the text tells of an update, or one newer than that, and tell its authors: whatever is equal with \
             both, such as the input and the device, isn't the cause"
        ))
        .task(format!("Take {release} again, or a newer one than fails")),
        RunTimeFinding::Worked { worked: Worked::Option { name, value }, .. } => Words::new(format!(
            "Keep `{name}={value}`, with which it works as the text says, and tell the authors of the other value's code what it holds: whatever is \
             equal in both runs, such as the sizes of model and batch, isn't the cause"
        ))
        .task(format!("Keep `{name}={value}`, with which the text says it works")),
        RunTimeFinding::Worked { worked: Worked::Without(name), .. } => Words::new(format!(
            "Take `{name}` out, with which alone it fails as the text says, or do its work in another place: whatever is equal without it, such as the sizes \
             of model and batch, isn't the cause"
        ))
        .task(format!("Take `{name}` out, with which alone the text says it fails")),
        RunTimeFinding::Worked { worked: Worked::Before(version), .. } => Words::new(format!(
            "Take commit {version} back until it is mended, as the text says that the job runs without it, and tell its authors: what the commit \
             allocates anew has to replace what it was before, by donation, or after the old arrays are deleted"
        ))
        .task(format!("Take commit {version} back, without which the text says it works"))
        .code(None, format!("git revert {version}")),
        RunTimeFinding::Worked { worked: Worked::Version { package, version, repository }, machine } => Words::new(format!(
            "Install `{package}` {version} again, with which the job ran as the text says, and tell its authors what the newer version holds"
        ))
        .task(format!("Install `{package}` {version} again, which the text says works"))
        .code(None, history::install(package, version, repository.as_deref(), *machine)),
        RunTimeFinding::OptimizerState { .. }
        | RunTimeFinding::Repeated
        | RunTimeFinding::Resumed { .. }
        | RunTimeFinding::TransformedSamples => history::words(finding, about),
        RunTimeFinding::ClosedOver => Words::new(
            "Pass all arrays as arguments: an array that a compiled function closes over is a constant of its program, whole on each device \
             beside the array itself, and copied by the host as it compiles. `functools.partial` closes over it, too. To divide or move an array no \
             function is needed",
        )
        .task("Pass the array as an argument of the compiled function")
        .jax(
            about,
            JAX,
            "y = jax.jit(f)(x, array)  # not jax.jit(lambda x: f(x, array))(x), nor with names from around f\n\
             # only to divide or move it: array = jax.device_put(array, sharding)",
        ),
        RunTimeFinding::LongInput { tokens, most } => Words::new(format!(
            "Give the model a shorter input: this one has {} tokens, and the model was trained for {} at most, as the tokenizer warns. What \
             compares all tokens with all grows by their square. Of a video or pictures take fewer frames or pixels",
            grouped(*tokens),
            grouped(*most)
        ))
        .task(format!("Shorten the input: {} tokens, {} at most", grouped(*tokens), grouped(*most)))
        .code(None, format!("tokenizer(text, truncation=True, max_length={most})  # of a video: fewer frames or pixels")),
 RunTimeFinding::Move { gathers: true } => Words::new(
            "Make the array of each process's own part: it is gathered from all processes, so that each device holds a whole copy for every process. \
             `jax.device_put` of a host's array to devices of several processes does so, to see that all have the same; \
             `jax.make_array_from_callback` takes each process's own part",
        )
        .task("Make the array of each process's own part: a copy for each is gathered")
        .jax(about, JAX, "x = jax.make_array_from_callback(x.shape, sharding, lambda at: x[at])  # in place of jax.device_put(x, sharding)"),
        RunTimeFinding::Move { .. } => Words::new(
            "Move the array in parts, or free the old one as it moves: it is put into another sharding (`jax.device_put`, \
             `process_allgather`, JAX's own program `_identity_fn`), and both have to have room. What every device gets whole is held \
             whole on each",
        )
        .task("Move the array in parts, or free the old one as it moves")
        .jax(about, JAX, "y = jax.device_put(x, sharding, donate=True)  # x can't be read afterwards"),
        RunTimeFinding::Kept(Kept::Checkpoint(name)) => Words::new(format!(
            "Load `{name}` to the host, and drop it once the model and the optimizer have theirs: on the device it is a second copy of the state, which stays as long as its name"
        ))
        .task(format!("Load `{name}` to the host: on the device it stays beside the model"))
        .code(
            "import torch",
            format!("{name} = torch.load(path, map_location='cpu')\ndel {name}  # after the last load_state_dict"),
        ),
        RunTimeFinding::Kept(Kept::Traceback) => Words::new(
            "Drop the traceback after an error: the last error's traceback has the functions that it left, and with them all their arrays, in a notebook until \
             the interpreter ends. What is caught where it is raised leaves none. Smaller shapes, or `jax.eval_shape`, find the error without the arrays",
        )
        .task("Drop the traceback after an error: it keeps the arrays of what failed")
        .code(
            "import gc\nimport sys",
            "sys.last_value = sys.last_traceback = sys.last_exc = None; gc.collect()  # after each error\n\
             # or in the cell: try: run() … except Exception: traceback.print_exc()",
        ),
        RunTimeFinding::Kept(Kept::OfEachRank) => Words::new(
            "Load the checkpoint to the host: without a `map_location` each process puts its copy onto the GPU from which it was saved, mostly the \
             first, beside the model of that GPU's own process",
        )
        .task("Load the checkpoint to the host: each rank fills GPU 0 with its own")
        .code(None, "model = Model.load_from_checkpoint(path, map_location='cpu')"),
        RunTimeFinding::AskCompiler => Words::new(
            "Compile the function, and ask the compiler: it plans all memory before anything runs, from shapes alone. `jax.live_arrays()` doesn't have \
             what is made inside a program; without the TPU, `tilewise audit FILE.py:FACTORY --tpu v5e` compiles it",
        )
        .task("Ask the compiler: it plans all memory before anything runs")
        .code(
            JAX,
            "plan = jax.jit(f).lower(*args).compile().memory_analysis()  # args: arrays, or jax.ShapeDtypeStruct(shape, dtype)\n\
             print(plan)  # bytes of arguments, results, temporaries and aliases",
        ),
        RunTimeFinding::StepsOfALoop => Words::new(
            "Put `jax.checkpoint` around the step of the loop that the gradient goes through: values of every step are kept for the backward \
             pass, and memory grows with the number of steps. With it, the loop's carry of each step is kept, and the rest computed again. Where that is still too much, go through the steps in two loops, one in the other, and put one around the inner loop, too",
        )
        .task("Recompute the loop's step in the backward pass: its values of all steps are kept")
        .code(JAX, "carry, ys = jax.lax.scan(jax.checkpoint(step), carry, xs)  # fori_loop: jax.checkpoint(body)"),
        RunTimeFinding::Kept(Kept::Models) => Words::new(
            "Clear Keras's session between models: a loop makes models, and each stays in a graph that the process keeps, whatever is deleted",
        )
        .task("Clear Keras's session between the models that the loop makes")
        .code("import tensorflow as tf", "tf.keras.backend.clear_session()  # before each model; or each in a process of its own"),
        RunTimeFinding::Kept(Kept::Sum { sum, value }) => Words::new(format!(
            "Add numbers to `{sum}`, not losses: each loss has the graph of its gradient, which stays in memory as long as the sum does"
        ))
        .task(format!("Add numbers to `{sum}`: a loss keeps the graph of its step"))
        .code(None, format!("{sum} += {}.item()", value.as_deref().unwrap_or("loss"))),
        RunTimeFinding::Kept(Kept::List { list, value }) => {
            // A sentence tells no name.
            let (name, list) = if list.is_empty() { ("the list".to_owned(), "kept") } else { (format!("`{list}`"), &**list) };
            let words = Words::new(format!(
                "Keep on the host what {name} collects, or only a sum of it: a loop appends to {name}, and each array stays on the device until \
                 the list is gone, with the graph of its gradient, if it has one. Smaller batches only delay it"
            ))
            .task(format!("Keep on the host what {name} collects in a loop"));
            match about.framework {
                Some(Framework::Jax) => words.code(JAX, format!("{list}.append(jax.device_get({}))", value.as_deref().unwrap_or("y"))),
                None => words.code(JAX, format!("{list}.append(jax.device_get(y))  # PyTorch: {list}.append(y.detach().cpu())")),
                Some(_) => words.code(None, format!("{list}.append({}.detach().cpu())", value.as_deref().unwrap_or("y"))),
            }
        }
        RunTimeFinding::WholeState(line) => {
            let words = Words::new(format!(
                "Divide the state as the weights are: `{line}` shows an array of it whole on each device. What is restored, or made outside \
                 of a compiled function, has the sharding that it comes with"
            ))
            .task("Divide the state between devices: the text shows it replicated");
            match about.framework {
                Some(Framework::TorchXla) => words.code(
                    "import torch_xla.distributed.spmd as xs",
                    "for name, array in state.items():  # right after they are loaded\n    xs.mark_sharding(array, mesh, spec(name))",
                ),
                _ => words.jax(about, JAX, "state = jax.device_put(state, shardings)  # from arrays of the host's"),
            }
        }
        RunTimeFinding::OtherResource(other) => resource::words(*other),
        RunTimeFinding::CompilerCheck { is_of_gpu: true } => Words::new(
            "Install the framework with CUDA's and cuDNN's packages of its own release, and look whether other versions are found before them: the \
             compiler needs these libraries, and may fail so where they don't belong together. If it stays, report it to XLA",
        )
        .task("Install the framework with the CUDA packages of its own release")
        .jax(about, None, "pip install --upgrade 'jax[cuda12]'; env -u LD_LIBRARY_PATH python your_job.py"),
        RunTimeFinding::CompilerCheck { .. } => Words::new(
            "Update JAX and libtpu, and report it to XLA with a dump of the program if it stays: a text that the compiler refuses \
             at one version may compile at the next",
        )
        .code(None, code::DUMP),
        RunTimeFinding::FatalCheck => Words::new(
            "Update the library that printed it, and look for the line among its issues; if it stays, report it with the lines before it and its \
             stack trace: a check that fails is a defect of the library, or of what it was given",
        )
        .task("Update the library that printed it, and look for the line among its issues"),
        RunTimeFinding::SparseCores { size: needed } => Words::new(format!(
            "Divide the embedding tables between more devices, lower `max_ids_per_partition`, `max_unique_ids_per_partition` and \
             the batch, and widen tables of fewer than 8 columns, whose rows are padded to 32 bytes: the SparseCores need {} of \
             it",
            size(needed)
        )),
        RunTimeFinding::TensorCore { size: needed, over: Some(over) } => Words::new(format!(
            "Take {} from either: each alone would fit, so a smaller batch or layers that are recomputed are enough for the TensorCore, which needs \
             {}, or tables that follow one another for the SparseCores. `tilewise audit dump` says what owns the peak of a dumped program",
            bytes(*over),
            size(needed)
        ))
        .task(format!("Take {} from either: a smaller batch, or tables one after the other", bytes(*over)))
        .caveat(
            "The SparseCores need less where tables follow one another (`--xla_sc_num_serialized_tables_to_optimize_hbm`), the TensorCore where layers \
             are recomputed"
                .to_owned(),
        ),
        RunTimeFinding::TensorCore { size: needed, .. } => Words::new(format!(
            "Dump the program and run `tilewise audit dump`, which says what owns the peak: the TensorCore needs {} of it",
            size(needed)
        ))
        .code(None, code::DUMP),
        RunTimeFinding::CoreHalt(halt) => {
            Words::new(format!("{}; see https://openxla.org/xla/errors/error_0200", core_halt(*halt)))
        }
        RunTimeFinding::Unknown { code: Some(code) } => Words::new(format!(
            "See https://openxla.org/xla/errors/error_{}; sizes and layouts of arrays are not the cause",
            code.trim_start_matches('E')
        )),
        _ => Words::new("Paste the whole text of the error, from RESOURCE_EXHAUSTED on, with the list of allocations"),
    }
}

fn ask_less(asker: Asker, about: &Recommendation) -> Words {
    match asker {
        Asker::Server { server, is_lowered, percent } => {
            let (flag, requests, length) = (server.memory_flag(), server.requests_flag(), server.length_flag());
            let fewer = format!("fewer or shorter sequences (`{requests}`, `{length}`)");
            Words::new(format!(
                "Leave the server less to hold: a lower `{flag}`, where its cache took the memory; {fewer}; weights of fewer bits or on more \
                 devices, where they did"
            ))
            .task(match is_lowered {
                true => format!("Serve {fewer}, or smaller weights"),
                false => format!("Leave the server a smaller KV cache (`{flag}`), fewer sequences, or smaller weights"),
            })
            .code_if(command(server).map(|command| match is_lowered {
                true => format!("{command} {requests} 64 {length} 4096  # in place of these, about half of yours"),
                false => lower_share(command, flag, percent),
            }))
        }
        Asker::ServedWeights { server, devices: Some(devices), part: Some(part), .. } => {
            let part = bytes(part);
            let words = Words::new(format!(
                "Load them by another implementation or version of the server: each of {devices} devices has {part} of the weights once all are divided, \
                 which fits, so that some lie whole on one device, or twice, as they are loaded. The memory ran out before there was a cache, so that \
                 its flags don't help"
            ))
            .task(format!("Take another loader or version: divided by {devices}, the weights take {part}"));
            match (server, about.framework) {
                (Server::Vllm, Some(Framework::Jax)) => {
                    words.code(None, "export MODEL_IMPL_TYPE=vllm  # or flax_nnx: tpu-inference has two implementations of many models")
                }
                _ => words,
            }
        }
        Asker::ServedWeights { are_all: true, .. } => Words::new(
            "Load weights that fit: a checkpoint whose weights have fewer bits already (a server may quantize only what it has loaded), or a smaller \
             model, since all devices that the text tells of are in use. The memory ran out as weights were loaded, when there was no cache yet, so that \
             its flags don't help",
        )
        .task("Load a checkpoint of fewer bits: all devices are in use"),
        Asker::ServedWeights { server, devices, to: Some(to), .. } => {
            let now = devices.map_or_else(|| "one, unless the command tells otherwise".to_owned(), |devices| devices.to_string());
            Words::new(format!(
                "Divide the model between {to} devices, of which {now} now have it: the memory ran out as weights were loaded, when there was no cache \
                 yet, so that its flags don't help"
            ))
            .task(format!("Divide the model between {to} devices: its weights don't fit as they are"))
            .code(None, format!("{} {to}", server.devices_flag()))
        }
        Asker::ServedWeights { server, devices, .. } => Words::new(
            "Load weights that fit: a checkpoint whose weights have fewer bits already (a server may quantize only what it has loaded), or \
             more devices for one model. The memory ran out as weights were loaded, when there was no cache yet, so that its flags don't help",
        )
        .task("Load a checkpoint of fewer bits, or over more devices")
        .code(None, cache::more_devices(server, devices)),
        Asker::Weights => Words::new(
            "Divide weights and the optimizer's state between devices as they are made, not after: the memory ran out while a function \
             made them, before any step. On one device hold less: a narrower type, a lighter optimizer, no second copy; a script that only \
             converts them needs no device",
        )
        .task("Divide weights and state between devices as they are made")
        .caveat("On one device hold less: a narrower type, a lighter optimizer, or train a part of the weights (LoRA)")
        .jax(
            about,
            JAX,
            "state = jax.jit(init, out_shardings=shardings)(key)  # init: your function that makes them\n\
             # JAX_PLATFORMS=cpu where they are only converted",
        ),
        Asker::Conversion => Words::new(
            "Convert on the host: weights are only read and written, for which no device is needed, and one device has to hold all of them here. The host \
             needs room for the weights, and for a second copy in the other format",
        )
        .task("Convert on the host: one device holds all weights here")
        .code(None, "export JAX_PLATFORMS=cpu  # or the script's own option, such as --cpu; PyTorch: device='cpu'"),
        Asker::Division => Words::new(
            "Make the array in its parts: one device makes it whole, and holds it beside its part until it is divided. A function that is \
             compiled with `out_shardings` makes on each device its own part; an array of NumPy's is divided on the host",
        )
        .task("Make the array in its parts: one device holds it whole")
        .jax(about, JAX, "a = jax.jit(lambda: jnp.zeros(shape), out_shardings=sharding)()"),
        Asker::Load { .. } if about.framework == Some(Framework::Torch) => Words::new(
            "Load the weights in fewer bits, or keep a part of them on the host: the memory ran out while a model was loaded, before any batch. \
             Nothing else of the job lies there yet, so that smaller batches don't help",
        )
        .task("Load the weights in fewer bits, or a part on the host")
        .code(
            None,
            "quantization_config=BitsAndBytesConfig(load_in_8bit=True)  # in from_pretrained; of transformers or diffusers\n\
             # or pipe.enable_model_cpu_offload(); of a trainer its own option, as base_model_precision",
        ),
        Asker::Load { is_restored, is_of_keras, is_on_tpu } => {
            let less = if is_restored {
                "Load less on each device: a part of the weights, as they are read and not after; parameters alone where nothing is trained, since \
                 a training's checkpoint holds an optimizer's state, too; a narrower type. The memory ran out while a function loaded them, before \
                 any step"
            } else {
                "Load the weights on the host, and give each device only its part of them: what is read or initialized on the device first lies there \
                 whole, maybe twice. On a single device a narrower type is left. The memory ran out while a function loaded them, before any step"
            };
            let words = Words::new(less).task(match (is_restored, is_of_keras || !is_on_tpu) {
                (true, _) => "Load less on a device: a part, no optimizer's state, a narrower type",
                (_, true) => "Load less on a device: a part of the weights, or a narrower type",
                _ => "Load the weights on the host, then give each device its part",
            });
        if is_of_keras {
            return words.jax(
                about,
                "import keras\nimport keras_hub",
                "devices = keras.distribution.list_devices()  # of several\n\
                 mesh = keras.distribution.DeviceMesh((1, len(devices)), ('batch', 'model'), devices)\n\
                 layout = keras_hub.models.GemmaBackbone.get_layout_map(mesh)  # of your model's backbone\n\
                 keras.distribution.set_distribution(\n    \
                 keras.distribution.ModelParallel(layout_map=layout, batch_dim_name='batch'))\n\
                 # then from_preset(..., dtype='bfloat16')",
            );
        }
        if !is_restored {
            let is_of_jax = matches!(about.framework, Some(Framework::Jax) | None);
            return if !is_of_jax { words } else { words.code(
                "import jax",
                "with jax.default_device(jax.devices('cpu')[0]):\n    params = load()  # your call that loads; of Flax's from_pretrained: model.params\n\
                 params = jax.device_put(params, shardings)  # shardings: of each array, over all devices",
            ) };
        }
        words.jax(
            about,
            "import jax\nimport orbax.checkpoint as ocp",
            "like = lambda of, to: jax.ShapeDtypeStruct(of.shape, 'bfloat16', sharding=to)\n\
             item = jax.tree.map(like, shapes, shardings)  # of the parameters alone\n\
             restore_args = ocp.checkpoint_utils.construct_restore_args(item)\n\
             args = ocp.args.PyTreeRestore(item, restore_args=restore_args, partial_restore=True)\n\
             params = ocp.PyTreeCheckpointer().restore(path, args=args)",
        )
        }
        Asker::Program => {
            Words::new("Make the program itself smaller: smaller inputs, or, where it takes a gradient, a checkpoint around layers")
                .task("Give the program smaller inputs")
        }
        _ => Words::new(
            "Ask for less at once, where no training step ran: a part of the array on each device, fewer samples or pixels, a narrower \
             type",
        )
        .task("If no step ran: ask for less, a part on each device")
        .code_if(matches!(about.framework, Some(Framework::Jax) | None).then(|| {
            "state = jax.jit(init, out_shardings=shardings)(key)  # init makes it: each device makes its part alone\n\
             x = jax.device_put(x, sharding)  # of an array of the host's, in place of jnp.asarray(x)"
                .to_owned()
        })),
    }
}

/// The task of dropping arrays that are done, which may not be there before the first step.
pub(super) fn drop_old(has_run: bool, about: &Recommendation) -> &'static str {
    match (has_run, about.framework) {
        (false, Some(Framework::TorchXla)) => "If earlier steps ran: see how much is taken; drop old tensors",
        (true, Some(Framework::TorchXla)) => "See how much is taken, and drop old tensors",
        (false, _) => "If earlier steps ran: list the arrays alive, drop old ones",
        (true, _) => "List the arrays alive, and drop old ones",
    }
}

/// Code that lists what is alive.
pub(super) fn list_alive(words: Words, about: &Recommendation) -> Words {
    match about.framework {
        Some(Framework::Jax) => words.code(JAX, format!("# just before the call that fails\n{ALIVE}")),
        // Errors of the run time name no framework.
        None => words.code(JAX, format!("# in JAX, just before the call that fails\n{ALIVE}")),
        Some(Framework::TorchXla) => words.code(
            "import gc\nimport torch_xla.core.xla_model as xm",
            "del outputs  # and all that is done; of a loss, keep loss.detach()\n\
             gc.collect(); xm.mark_step()\n\
             print(xm.get_memory_info(xm.xla_device()))",
        ),
        _ => words,
    }
}

/// Advice on results that stay between runs.
fn returns(size: &PrintedSize, are_more: bool, percent: Option<f64>, about: &Recommendation) -> Words {
    let size = printed(size);
    let more = if are_more { ", more than is asked for" } else { " between runs" };
    let padded = percent.map(|percent| {
        format!("; {percent:.1} % of it is data, and the rest padding, which arrays whose last dimension is a multiple of 128 don't have")
    });
    let padded = padded.unwrap_or_default();
    // A lazy graph returns each tensor that Python still refers to where it is cut.
    let (lazy, code) = match about.framework {
        Some(Framework::TorchXla) => (
            "; tensors that are still referred to where a step ends (`xm.mark_step()`, `.item()`, `print`) are its results, among them what a \
             backward pass needs",
            "total += loss.detach()  # not loss, which keeps all that its backward pass reads",
        ),
        _ => (
            DONATED,
            "step = jax.jit(step, donate_argnums=0)  # new state in the place of the old one; return nothing else of that size",
        ),
    };
    let words = Words::new(format!(
        "Return less from a step: the results of a program of this job take {size}{more}{padded}{lazy}"
    ))
    .task(format!("Return less from a step: results of a program take {size}"));
    match about.framework {
        Some(Framework::TorchXla) => words.code(None, code),
        _ => words.jax(about, JAX, code),
    }
}

/// The command that starts a server; `None` where its share of the memory isn't set by one.
fn command(server: Server) -> Option<&'static str> {
    match server {
        Server::Vllm => Some("vllm serve MODEL"),
        Server::Sglang => Some("python -m sgl_jax.launch_server --model-path MODEL"),
        Server::TextGeneration => Some("text-generation-launcher --model-id MODEL"),
        _ => None,
    }
}

/// A lower share of the memory for a server.
fn lower_share(command: &str, flag: &str, percent: Option<u64>) -> String {
    /// Hundredths.
    const STEP: u64 = 5;
    match percent.filter(|percent| *percent > STEP) {
        Some(now) => format!("{command} {flag} 0.{:02}  # 0.{now:02} now; lower still if it fails again", now - STEP),
        None => format!("{command} {flag} 0.85  # 0.05 to 0.1 less than now"),
    }
}

/// Advice to lower a server's memory flag, to leave room for programs.
fn server_room(server: Server, filled: Option<[f64; 2]>, percent: Option<u64>) -> Words {
    let flag = server.memory_flag();
    let filled = filled.map(|[used, all]| format!(": {used} of {all} GiB were in use before it loaded them"));
    let to = percent.map_or("0.05 to 0.1 less than now".to_owned(), |percent| format!("0.{percent:02}"));
    let words = Words::new(format!(
        "Leave programs more room beside the cache of keys and values: lower `{flag}` to {to}. The server sizes the cache first, and \
         programs get what is left{}",
        filled.unwrap_or_default()
    ));
    match percent {
        Some(percent) => words.code_if(command(server).map(|command| format!("{command} {flag} 0.{percent:02}"))),
        None => words
            .task(format!("If the server's cache can be smaller: lower `{flag}`"))
            .code_if(command(server).map(|command| lower_share(command, flag, None))),
    }
}

/// A check inside the compiler that failed.
pub(super) fn check(message: &Message) -> [String; 2] {
    if let Some(condition) = message.facts.text("ended") {
        return [
            format!("A check failed, which ends the process: {condition}."),
            "That line says why the job ended, and it isn't about memory.".to_owned(),
        ];
    }
    let condition = message.facts.text("condition").map(|text| format!(": {text}")).unwrap_or_default();
    let place = message.facts.text("place").map(|place| format!(" ({place})")).unwrap_or_default();
    let is_of_layouts = condition.contains("layout") || place.contains("layout");
    let gave = if place.contains("/gpu/") { "CUDA libraries of another release" } else { "what gave it the program" };
    let what = if is_of_layouts { "An array has another layout than a pass of the compiler expects: a" } else { "A" };
    [
        format!("A check inside the compiler failed{condition}{place}."),
        format!("{what} defect of the compiler, or of {gave}."),
    ]
}

fn core_halt(halt: CoreHalt) -> &'static str {
    match halt {
        CoreHalt::Bounds => {
            "Check the indices of your own kernels (`pl.debug_print`, `checkify`) and that sharding annotations fit the shapes: a \
             copy went out of its array's bounds"
        }
        CoreHalt::Semaphore => {
            "Pair every semaphore signal of the kernel with a wait, and wait for every copy that it starts: one was left over at \
             its end"
        }
        CoreHalt::Launch => {
            "Run the same program on all hosts, with the same `XLA_FLAGS`, image and libtpu: the cores run different programs"
        }
        CoreHalt::Machine => "Try again, and take the host out if it fails again: the machine failed",
        CoreHalt::Instruction => {
            "Report it to XLA with a dump of the program: the compiler made an instruction that the core refuses"
        }
        _ => {
            "Look for `observed errors are`, `BoundsCheck`, `scheck` or `Semaphore` in the log: each has its own cause"
        }
    }
}
