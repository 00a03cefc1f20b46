//! Messages on a host's memory, and on sizes that a text names.

use super::screen::first_change;

/// Sizes of a request by the names that the text gives them, each where several have the number.
#[test]
fn a_request_is_told_by_names_of_its_sizes() {
    let text = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 25386480000 bytes.\n\
        mmm = fit(data_size=365, n_channels=27, geos=644, number_warmup=1000, number_samples=1000)\n";
    let (task, screen) = first_change(text);
    assert_eq!(task, "Lower `number_warmup` or `number_samples` from 1000, or another of these sizes");
    assert!(screen.contains("(`geos`) × 365 (`data_size`)"), "{screen}");
}

/// All kinds of memory that a killed process held count.
#[test]
fn shared_memory_of_a_killed_process_counts() {
    let text = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python,pid=9,uid=0\nOut of memory: Killed process 9 (python) \
        total-vm:142316804kB, anon-rss:2911044kB, file-rss:88224kB, shmem-rss:53446260kB, UID:1000\n";
    let (task, screen) = first_change(text);
    assert!(task.starts_with("Pin or share less"), "{task}");
    assert!(screen.contains("held 53.83 GiB, 51.05 GiB of it shared or pinned"), "{screen}");
}

/// A compiler's own memory isn't the data's.
#[test]
fn memory_of_a_compilation_is_the_compilers() {
    let text = "The process sits in .compile() and is gone; compiling other sizes is no problem.\n\
        Out of memory: Killed process 41772 (python) total-vm:101884216kB, anon-rss:62301544kB, file-rss:102400kB, shmem-rss:0kB\n";
    assert!(first_change(text).0.starts_with("Compile less"), "{}", first_change(text).0);
    let (task, _) = first_change(&text.replace(".compile()", "load").replace("compiling", "reading"));
    assert!(task.starts_with("Take less of the host's memory"), "{task}");
}
