//! Runs of a job beside the one that failed: versions and optimizers that work, attempts in the same process.

use super::Words;
use tilewise_audit::{Recommendation, recommendation::finding::RunTimeFinding};
use tilewise_oom::{Framework, UntiledMachine};

pub(super) fn words(finding: &RunTimeFinding, about: &Recommendation) -> Words {
    match finding {
        RunTimeFinding::OptimizerState { optimizers, is_divided, is_of_keras } => {
            let (works, fails, arrays) = (optimizers.works, optimizers.fails, optimizers.arrays);
            let more = if arrays == 1 { "one array".to_owned() } else { format!("{arrays} arrays") };
            let cause = format!("{fails} keeps {more} of each weight's size that {works} doesn't, and with {works} the job runs");
            let words = Words::new(if *is_divided {
                format!("See that the state of {fails} is divided between the devices as the weights are, or narrow it (bfloat16, Adafactor): {cause}")
            } else {
                format!("Divide the state of {fails} between devices, or take an optimizer with less of it (Adafactor, 8 bits): {cause}")
            })
            .task(if *is_divided {
                format!("See that {fails}'s state is divided as the weights are; {works} has less")
            } else {
                format!("Divide {fails}'s state, or take an optimizer with less: {works} runs")
            });
            match about.framework {
                Some(Framework::Jax) | None if *is_of_keras => words.code(
                    None,
                    "for v in model.optimizer.variables: print(v.path, v.shape, v.value.sharding)  # after model.optimizer.build(model.trainable_variables)",
                ),
                Some(Framework::Jax) => words.code("import jax", "print(jax.tree.map(lambda x: x.sharding, opt_state))"),
                _ => words,
            }
        }
        RunTimeFinding::Resumed { is_of_host: true } => Words::new(
            "Restore into shapes, not into a state that was made before: a fresh run fits, so that the state which is made and the one that is loaded lie \
             in the host's memory together, with the buffers of the load. Processes of one host may load one after the other, or in smaller parts",
        )
        .task("Restore into shapes, not into a state that is made before: both lie there")
        .jax(
            about,
            "import jax",
            "shapes = jax.eval_shape(init, key)  # init: your function that makes the state; with a sharding for each array\n\
             state = restore(path, shapes)  # your call that loads",
        ),
        RunTimeFinding::Resumed { .. } => resumed(about),
        RunTimeFinding::TransformedSamples => Words::new(
            "Transform the samples one after the other: what fails is what comes after the sampling, which takes all draws of all chains at once \
             (`jax.vmap`), so that fewer draws or chains help, too",
        )
        .task("Transform the samples one after the other, not all at once")
        .code(
            None,
            "idata = pm.sampling.jax.sample_numpyro_nuts(…, postprocessing_vectorize='scan')  # older PyMC: postprocessing_chunks=10",
        ),
        _ => Words::new(
            "Run each attempt in a process of its own, or free what the earlier ones hold before the next: an attempt that failed in the same \
             process may still hold its weights, cache and programs, and leaves the memory in pieces. The first attempt's error is the one to \
             look into",
        )
        .task("Run each attempt in a fresh process: earlier ones may hold memory")
        .jax(
            about,
            "import gc\nimport jax",
            "del engine, state  # whatever the earlier attempt made\ngc.collect(); jax.clear_caches()  # or end the process",
        ),
    }
}

/// A job that runs when it is fresh, and fails once it goes on from a checkpoint.
fn resumed(about: &Recommendation) -> Words {
    const WHY: &str = "A fresh run fits, so that the program isn't too large: what is restored is held twice, or whole where the fresh state is divided";
    match about.framework {
        Some(Framework::TorchXla) => Words::new(format!(
            "Restore each tensor in the sharding of its parameter, the optimizer's too: {WHY}. Plain `torch.load` gives each device a state that is \
             not divided"
        ))
        .task("Restore the optimizer's state sharded: a fresh run fits, so it is whole or twice")
        .code(
            "import torch.distributed.checkpoint as dist_cp\nfrom torch_xla.experimental.distributed_checkpoint import SPMDLoadPlanner",
            "# saved with dist_cp.save and SPMDSavePlanner; the optimizer is primed first, so that its state is there\n\
             dist_cp.load(state, storage_reader=dist_cp.FileSystemReader(path), planner=SPMDLoadPlanner())",
        ),
        _ => Words::new(format!(
            "Give the step a state that it can donate, and drop what was restored: {WHY}. Restored arrays that something else refers to, or that JAX \
             did not make itself, aren't donated, which no warning tells as a step runs: beside them lies the new state. What a compiled function \
             returns is like a fresh state"
        ))
        .task("Give the step a restored state that it can donate: a fresh run fits")
        .jax(
            about,
            "import jax",
            "state = jax.jit(lambda s: s, out_shardings=shardings)(restored)  # shardings: those of a fresh state\n\
             del restored  # and the state that it was restored into",
        ),
    }
}

/// The command that installs a version, with what belongs to it.
pub(super) fn install(
    package: &str,
    version: &str,
    repository: Option<&str>,
    machine: Option<UntiledMachine>,
) -> String {
    /// Wheels of JAX outside of PyPI.
    const WHEELS: &str = "-f https://storage.googleapis.com/jax-releases/";
    if let Some(repository) = repository {
        return format!("pip install git+{repository}@{version}");
    }
    if !["jax", "jaxlib"].contains(&package) {
        return format!("pip install {package}=={version}");
    }
    let numbers: Vec<u64> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    // Since then the CUDA of PyPI is the extra `cuda12`, before it was `cuda12_pip`.
    match (machine, &numbers[..]) {
        (None, _) => format!("pip install \"jax[tpu]=={version}\" {WHEELS}libtpu_releases.html"),
        (Some(UntiledMachine::Gpu), numbers) if *numbers >= [0, 4, 30][..] => {
            format!("pip install \"jax[cuda12]=={version}\"")
        }
        (Some(UntiledMachine::Gpu), numbers) if *numbers >= [0, 4, 7][..] => {
            format!("pip install \"jax[cuda12_pip]=={version}\" {WHEELS}jax_cuda_releases.html")
        }
        _ => format!("pip install jax=={version} jaxlib=={version}"),
    }
}
