//! Runs of a job beside the one that failed.

use crate::screen::first_change;

/// A command that installs a version takes along what belongs to it.
#[test]
fn versions_are_installed_with_their_accelerator() {
    let gpu = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.95GiB (rounded to 2098200576)requested by op \n\
               RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2098200576 bytes.";
    let code = |text: &str| first_change(text).1;
    let old = code(&format!("It works on jax==0.4.13, but fails on jax==0.5.3.\n{gpu}"));
    assert!(old.contains("pip install \"jax[cuda12_pip]==0.4.13\" -f "), "{old}");
    assert!(code(&format!("jax 0.4.35 works, 0.5.3 fails.\n{gpu}")).contains("pip install \"jax[cuda12]==0.4.35\"\n"));
    let tpu = "Ran out of memory in memory space hbm. Used 15.86G of 15.48G hbm. Exceeded hbm capacity by 382.92M.";
    assert!(code(&format!("jax 0.4.35 works, 0.5.3 fails.\n{tpu}")).contains("pip install \"jax[tpu]==0.4.35\" -f "));
    let commit = format!("!pip install git+https://github.com/o/Repo@d06931e79cc3 # This version works well.\n{tpu}");
    assert!(code(&commit).contains("pip install git+https://github.com/o/Repo@d06931e79cc3"));
}

/// The state that one optimizer has and another lacks is the difference.
#[test]
fn an_optimizer_that_works_tells_of_state() {
    let failed = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2098200576 bytes.";
    let post = "I can train with SGD. I can't train at all with AdamW.";
    assert_eq!(
        first_change(&format!("{post}\n{failed}")).0,
        "Divide AdamW's state, or take an optimizer with less: SGD runs"
    );
    let (task, screen) =
        first_change(&format!("{post}\nkeras.distribution.ModelParallel(layout_map=m)\nmodel.fit(x)\n{failed}"));
    assert_eq!(task, "See that AdamW's state is divided as the weights are; SGD has less");
    assert!(screen.contains("v.value.sharding"), "{screen}");
    assert!(!first_change(&format!("I train with AdamW.\n{failed}")).0.contains("AdamW"));
}

/// Attempts that failed in the same process may hold what the next one lacks.
#[test]
fn attempts_in_the_same_process_hold_memory() {
    let failed = "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 1.96G. That was not possible. There are 3.46G \
                  free. The largest contiguous region of free memory is 1.75G due to fragmentation.; (0x0x0_HBM0)";
    let first = |words: &str| first_change(&format!("{words}\n{failed}")).0;
    let task = "Run each attempt in a fresh process: earlier ones may hold memory";
    assert_eq!(first("This is attempt 4 of the task, same process id as attempt 1."), task);
    assert_ne!(first("This is attempt 4 of the task, in a fresh process, not the same process."), task);
}
