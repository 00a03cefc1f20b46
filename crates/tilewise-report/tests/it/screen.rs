//! The first screen: that it is one, what its causes add up to, which change comes first, and whose lines it quotes.

use std::{fs, path::Path};
use tilewise_audit::{Audit, ChangeCost, Content, Explanation, Machine, Program, Report};
use tilewise_oom::Message;
use tilewise_report::{AsJson, AuditOutput, Exporter, Markdown, MessageSummary, Quotes, WriteText};
use tilewise_testing::programs;

const EXAMPLES: [&str; 6] = [
    "gnn_large.v5e.hlo",
    "kv_decode_row_major.v5e.hlo",
    "lstm_train.v4.hlo.gz",
    "machines/transformer.h100.hlo.gz",
    "machines/transformer_remat.h100.hlo.gz",
    "machines/attention.cpu.hlo",
];

fn program(name: &str) -> Program {
    let bytes = fs::read(programs::example(name)).expect("an example");
    match Content::read(bytes).pop() {
        Some(Ok(Content::Program(program))) => program,
        other => panic!("{name}: {other:?}"),
    }
}

fn report(name: &str, limit: Option<u64>) -> Report {
    let machine = name.contains("h100").then(|| "gpu:h100".parse::<Machine>().expect("a machine"));
    let program = program(name);
    let audit = Audit::new(&program).machine(machine).source(name);
    limit.map_or(audit, |limit| audit.limit(limit)).run()
}

/// With all the memory that it needs, with half, and with a tenth.
fn reports(name: &str) -> Vec<Report> {
    let whole = report(name, None);
    let needed = whole.memory_bounds.at_most_bytes;
    let mut all = vec![whole];
    all.extend([needed / 2, needed / 10].map(|limit| report(name, Some(limit))));
    all
}

#[test]
fn the_first_screen_is_24_lines() {
    for name in EXAMPLES {
        for report in reports(name) {
            let output = AuditOutput::new(report);
            for width in [80, 100] {
                let text = output.to_text(width);
                let (first, _) = text.split_once("\nIn detail\n").expect("the fold");
                assert!(first.lines().count() <= 24, "{name}:\n{first}");
                // Code is whole, to be copied.
                let words =
                    first.lines().filter(|line| !line.starts_with("          ") || line.starts_with(&" ".repeat(25)));
                let long = words.filter(|line| !line.starts_with("jit_")).find(|line| line.chars().count() > width);
                assert_eq!(long, None, "{name}");
            }
        }
    }
}

#[test]
fn causes_are_parts_of_the_whole() {
    for name in EXAMPLES {
        for report in reports(name) {
            let needed = report.memory_bounds.at_most_bytes;
            let output = AuditOutput::new(report);
            let causes = output.summary().causes;
            let (others, own): (Vec<_>, Vec<_>) = causes.iter().partition(|cause| cause.kind == "others");
            let told: u64 = own.iter().map(|cause| cause.bytes).sum();
            assert!((1..=3).contains(&own.len()) && told <= needed, "{name}: {told} of {needed}");
            // Nothing is left out that a fourth cause could tell, and the rest is told.
            let is_most = told * 100 >= needed * 80;
            assert!(own.len() == 3 || is_most, "{name}: {told} of {needed}");
            assert_eq!(others.len(), usize::from(needed - told > needed / 100), "{name}");
            assert!(others.iter().all(|rest| rest.bytes == needed - told), "{name}");
            for cause in causes {
                assert!(
                    (cause.share.expect("a share of the peak") - cause.bytes as f64 / needed as f64).abs() < 1e-9,
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn nothing_needs_to_change_where_it_fits() {
    let needed = report("gnn_large.v5e.hlo", None).memory_bounds.at_most_bytes;
    let said = |limit: u64| {
        let output = AuditOutput::new(report("gnn_large.v5e.hlo", Some(limit)));
        let text = output.to_text(100);
        (
            output.summary().headline.is_comfortable,
            text.contains("Nothing needs to change."),
            text.contains("jnp.unstack"),
        )
    };
    assert_eq!(said(needed * 3), (true, true, true));
    assert_eq!(said(needed * 11 / 10), (false, true, true));
    assert_eq!(said(needed / 2), (false, false, true));
}

/// Seconds that a change adds, if they are known.
fn added(cost: ChangeCost) -> Option<f64> {
    match cost {
        ChangeCost::Seconds { added, .. } => Some(added),
        _ => None,
    }
}

#[test]
fn the_gentlest_change_that_is_enough_comes_first() {
    for name in EXAMPLES {
        for report in reports(name) {
            let (held, limit) = (report.memory_bounds.at_most_bytes, report.limit());
            let Some(limit) = limit.filter(|limit| held > *limit) else { continue };
            let is_enough = |freed: Option<u64>| freed.is_some_and(|freed| held - freed <= limit);
            let costs = report.costs();
            let enough = report.advice().iter().zip(&costs).filter(|(one, _)| is_enough(one.saving.bytes()));
            let least = enough.filter_map(|(_, cost)| added(*cost)).min_by(f64::total_cmp);
            let output = AuditOutput::new(report.clone());
            let summary = output.summary();
            if let (Some(least), Some(first)) = (least, summary.changes.first()) {
                assert_eq!(first.fits, Some(true), "{name}");
                let at = report.advice().iter().position(|one| one == first.recommendation);
                let added = at.and_then(|at| added(costs[at]));
                assert!(added.is_none_or(|added| added <= least), "{name}: {added:?}, not {least}");
            }
            // Each leaves less than those before it.
            assert!(summary.changes.is_sorted_by(|one, next| one.bytes_after > next.bytes_after), "{name}");
        }
    }
}

/// The arrays that the forward loop stacks up for the backward pass are one cause, counted as a reader counts.
#[test]
fn what_a_loop_stacks_is_kept_for_the_gradient() {
    let output = AuditOutput::new(report("lstm_train.v4.hlo.gz", None));
    let summary = output.summary();
    let first = &summary.causes[0];
    assert_eq!((first.kind, first.arrays), ("kept_for_gradient", 12));
    assert_eq!(first.sentence, "12 arrays of all 128 steps, kept for the gradient");
}

#[test]
fn padding_is_told_in_places() {
    let output = AuditOutput::new(report("gnn_large.v5e.hlo", None));
    let summary = output.summary();
    assert_eq!((summary.causes[0].kind, summary.causes[0].filled), ("padding", Some([12, 128])));
    assert!(output.to_text(100).contains("12 of 128 hold data"));
}

#[test]
fn a_quoted_line_stands_under_its_cause() {
    let report = report("gnn_large.v5e.hlo", None);
    let quotes = Quotes::read(&report, |_| Some("\n".repeat(438) + "y = x[senders]\u{1b}[31m @ w\n"));
    let output = AuditOutput { quotes, ..AuditOutput::new(report) };
    let text = output.to_text(100);
    let (_, rest) = text.split_once("439 │ ").expect("the line");
    assert!(rest.starts_with("y = x[senders]") && !text.contains('\u{1b}'), "{rest}");
}

fn messages() -> Vec<(String, Explanation)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilewise-oom/tests/data");
    let files = [folder.clone(), folder.join("public")]
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).expect("messages").map(|entry| entry.expect("an entry").path()));
    let texts = files.filter(|path| path.extension().is_some_and(|kind| kind == "txt"));
    let read = texts.filter_map(|path| {
        let message = Message::parse(&fs::read_to_string(&path).expect("text")).ok()?;
        Some((path.display().to_string(), tilewise_audit::explain(message, None)))
    });
    read.collect()
}

fn first_screen(text: &str) -> &str {
    text.split_once("\nIn detail\n").map_or(text.trim_end(), |(first, _)| first)
}

/// Words of more than one line in one, to be found in what wraps them.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_messages_first_screen_is_24_lines() {
    let messages = messages();
    assert!(messages.len() > 30, "{}", messages.len());
    for (name, explained) in &messages {
        for width in [80, 100] {
            let text = explained.to_text(width);
            let first = first_screen(&text);
            assert!(first.lines().count() <= 24, "{name}:\n{first}");
            // Code is whole, to be copied.
            let long = first.lines().filter(|line| !line.starts_with("          "));
            assert_eq!(long.filter(|line| line.chars().count() > width).collect::<Vec<_>>(), [""; 0], "{name}");
        }
        let summary = MessageSummary::of(explained);
        for change in &summary.changes {
            assert!(change.task.split(' ').count() <= 12, "{name}: {}", change.task);
            assert_eq!(change.task.matches('(').count(), change.task.matches(')').count(), "{name}: {}", change.task);
        }
        for [start, end] in summary.quote.iter().flat_map(|quote| &quote.marks) {
            let quote = summary.quote.as_ref().map(|quote| quote.text.chars().count());
            assert!(start < end && Some(*end) <= quote, "{name}");
        }
    }
}

/// No sentence stands twice on a first screen, and each is worded alike in text, JSON and Markdown.
#[test]
fn what_is_said_first_is_said_once_and_everywhere_alike() {
    let said_once = |name: &str, first: &str, sentences: &[String]| {
        let first = unwrapped(first);
        for sentence in sentences {
            assert_eq!(first.matches(sentence.as_str()).count(), 1, "{name}: {sentence}\n{first}");
        }
    };
    for name in EXAMPLES {
        for report in reports(name) {
            let output = AuditOutput::new(report);
            let summary = output.summary();
            let text = output.to_text(1000);
            let mut sentences = vec![summary.headline.sentence.clone()];
            sentences.extend(summary.headline.comfort.clone());
            sentences.extend(summary.causes.iter().map(|cause| cause.sentence.clone()));
            sentences.extend(summary.changes.first().map(|first| first.task.clone()));
            said_once(name, first_screen(&text), &sentences);
            let json = serde_json::to_value(&output).expect("JSON");
            let (mut markdown, causes) = (Vec::new(), summary.causes.iter());
            Markdown.write(&output, &mut markdown).expect("Markdown");
            let markdown = String::from_utf8(markdown).expect("text").replace('\\', "");
            assert_eq!(json["headline"]["sentence"], summary.headline.sentence, "{name}");
            assert!(markdown.contains(&summary.headline.sentence), "{name}");
            for (at, cause) in causes.enumerate() {
                assert_eq!(json["causes"][at]["sentence"], cause.sentence, "{name}");
                assert!(markdown.contains(&cause.sentence), "{name}: {}\n{markdown}", cause.sentence);
            }
        }
    }
    for (name, explained) in messages() {
        let summary = MessageSummary::of(&explained);
        let mut sentences = vec![summary.headline.sentence.clone(), summary.verdict.clone()];
        sentences.extend(summary.changes.first().map(|first| first.task.clone()));
        said_once(&name, first_screen(&explained.to_text(1000)), &sentences);
        let json = serde_json::to_value(AsJson(&explained)).expect("JSON");
        assert_eq!(json["headline"]["sentence"], summary.headline.sentence, "{name}");
        assert_eq!(json["changes"][0]["do"].as_str(), summary.changes.first().map(|first| &*first.task), "{name}");
    }
}

#[test]
fn a_traceback_leads_to_the_readers_line() {
    let text = "Traceback (most recent call last):\n  File \"/home/me/train.py\", line 88, in main\n    state = step(state)\n  \
                File \"/x/site-packages/jax/_src/pjit.py\", line 1, in g\n    run()\nRESOURCE_EXHAUSTED: Ran out of memory in \
                memory space hbm. Used 16.50G of 15.75G hbm. Exceeded hbm capacity by 768.00M.";
    let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
    let said = explained.to_text(100);
    assert_eq!(said.lines().nth(1), Some("train.py:88  state = step(state)"), "{said}");
    let marks = said.lines().find(|line| line.contains("^^^^^^ ")).expect("marks");
    let quoted = said.lines().find(|line| line.contains("Used 16.50G")).expect("the message");
    assert_eq!(marks.find('^'), quoted.find("16.50G"));
}

#[test]
fn what_the_compiler_refused_ran_out_of_nothing() {
    let text = "statically prove that index in dimension 1 is a multiple of 128";
    let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
    assert!(explained.to_text(100).starts_with("Compile failed, no memory ran out. "), "{}", explained.to_text(100));
}

/// A message that is cut after one array of 2 GiB, of 40 that its total has.
#[test]
fn arrays_that_a_message_does_not_list_are_no_certain_saving() {
    let text = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 40.10G of 30.75G hbm. Exceeded hbm \
                capacity by 9.35G.

Program hbm requirement 40.10G:
    HLO temp          40.00G (100.0% utilization: Unpadded (40.00G) Padded (40.00G), 0.0% fragmentation (0B))

  Largest program allocations in hbm:

  1. Size: 2.00G
     Operator: op_name=\"jit(step)/jvp(Net)/block_3/mlp/mul\"";
    let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
    let changes = MessageSummary::of(&explained).changes;
    assert_eq!(changes[0].lead, "frees 2.00 GiB");
    assert_eq!(changes[0].effect, "up to 40.00 GiB if unlisted arrays are alike");
}

/// Code is of what the message names: no `vmap` where none is, and no Python for Julia.
#[test]
fn code_is_of_what_the_message_names() {
    let first = |text: &str| {
        let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
        first_screen(&explained.to_text(80)).to_owned()
    };
    let request = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 93936833408 bytes.";
    let listed = |name: &str| {
        format!(
            "{request}\nBufferAssignment stats:\n  preallocated temp allocation: 87.49GiB\nPeak buffers:\n\tBuffer 1:\n\t\t\
                 Size: 80.00GiB\n\t\tOperator: op_name=\"jit(f)/{name}/dot_general\"\n\t\tShape: f32[64,335544320]\n"
        )
    };
    assert!(first(&listed("vmap(g)")).contains("jax.lax.map"));
    assert!(!first(&listed("g")).contains("jax.lax.map"));
    assert!(first(request).contains("tilewise audit dump"));
    let julia = first(&format!("ERROR: LoadError: {request}"));
    assert!(!julia.contains("python") && !julia.contains("jax"), "{julia}");
    let free =
        "Error loading program 'f': Attempting to allocate 293.79M. That was not possible. There are 12.76M free.";
    assert!(first(free).contains("# in JAX"));
    assert!(!first(&format!("jax.errors.JaxRuntimeError: {free}")).contains("# in JAX"));
}

/// Gaps lie among the temporaries, and results take memory as other arrays do.
#[test]
fn totals_of_a_message_are_told_once() {
    let causes = |text: &str| {
        let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
        let told = |cause: &tilewise_report::PeakCause| (cause.kind, cause.bytes >> 20);
        MessageSummary::of(&explained).causes.iter().map(told).collect::<Vec<_>>()
    };
    let gaps = "Ran out of memory in memory space hbm. Used 40.00G of 30.00G hbm. Exceeded hbm capacity by 10.00G.\n\
        Program hbm requirement 40.00G:\n    \
        HLO temp  40.00G (100.0% utilization: Unpadded (32.00G) Padded (32.00G), 20.0% fragmentation (8.00G))\n";
    assert_eq!(causes(gaps), [("temporaries", 32 << 10), ("fragmentation", 8 << 10)]);
    let results = "Out of memory while trying to allocate 1073741824 bytes.\nBufferAssignment stats:\n  \
        parameter allocation: 1.00GiB\n  maybe_live_out allocation: 4.00GiB\n  preallocated temp allocation: 1.00GiB\n  \
        total allocation: 6.00GiB\n";
    assert_eq!(causes(results)[0], ("results", 4 << 10));
    let explained = tilewise_audit::explain(Message::parse(results).expect("a message"), None);
    assert_eq!(
        MessageSummary::of(&explained).changes[0].task,
        "Return less at once: results take 4.00 GiB, 66.7 % of the program"
    );
    // The request that failed is no whole, and where a program makes next to nothing, fewer samples free next to nothing.
    let state = "Failed to allocate request for 112.00MiB (117440512B) on device ordinal 0\nBufferAssignment stats:\n  \
        parameter allocation: 16.50GiB\n  maybe_live_out allocation: 21.55GiB\n  preallocated temp allocation: 13.4KiB\n  \
        total allocation: 38.05GiB\nPeak buffers:\n\tBuffer 1:\n\t\tSize: 1000.00MiB\n\t\tEntry Parameter Subshape: \
        f32[32000,8192]\n\t\t==========\n";
    assert_eq!(causes(state), [("results", 22_067), ("arguments", 15_896), ("listed", 1000)]);
    let explained = tilewise_audit::explain(Message::parse(state).expect("a message"), None);
    let said = explained.to_text(1000);
    assert!(!said.contains("fewer samples") && said.contains("donate_argnums"), "{said}");
}

/// An array that is converted is as large with fewer samples, where it is a weight.
#[test]
fn copies_in_f32_are_told_first() {
    let text = "BufferAssignment stats:\n  parameter allocation: 7.78GiB\n  preallocated temp allocation: 3.83GiB\n\
        Peak buffers:\n\tBuffer 1:\n\t\tSize: 3.83GiB\n\t\tOperator: op_name=\"jit(main)/Bloom/lm_head/\
        convert_element_type[new_dtype=float32 weak_type=False]\" source_file=\"a.py\" source_line=97\n\t\tXLA Label: convert\n\t\t\
        Shape: f32[250880,4096]\n\t\t==========\n";
    let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
    assert_eq!(MessageSummary::of(&explained).changes[0].task, "Compute in the stored type, without copies in f32");
}

/// Of the sharding that a warning asks for.
#[test]
fn a_constraint_divides_what_is_wanted() {
    let text = "[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding {maximal device=0} to \
        {devices=[1,2,1,2]<=[4]} without doing a full rematerialization of the tensor for HLO operation: %e = \
        f32[8,2048,4,64]{3,2,1,0} copy(%d).";
    let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
    assert!(explained.to_text(200).contains("PartitionSpec(None, 'x', None, 'y')"), "{}", explained.to_text(200));
    // The result of a callback of the host stays on one device, whatever is asked of it.
    let text = text
        .replace("%e = ", "%get-tuple-element = ")
        .replace("copy(%d)", "get-tuple-element((token[], f32[8]) %custom-call.3)");
    assert!(first_change(&text).0.starts_with("Nothing, if this is done once"), "{}", first_change(&text).0);
}

/// A first change, and the first screen.
pub(crate) fn first_change(text: &str) -> (String, String) {
    let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
    let task = MessageSummary::of(&explained).changes.first().map(|first| first.task.clone()).unwrap_or_default();
    (task, first_screen(&explained.to_text(200)).to_owned())
}

#[test]
fn equal_arrays_without_names_are_of_layers_first() {
    let row = "     Shape: bf16[12,131072,3072]{2,1,0:T(8,128)(2,1)}\n     ==========================\n";
    let rows: String = (1..=6).map(|number| format!("  {number}. Size: 9.00G\n{row}")).collect();
    let text = format!(
        "Ran out of memory in memory space hbm. Used 58.33G of 30.75G hbm. Exceeded hbm capacity by 27.58G.\n\n  Largest program \
         allocations in hbm:\n\n{rows}"
    );
    let (task, screen) = first_change(&text);
    assert_eq!(task, "If the model is trained, recompute each layer for the gradient", "{screen}");
    // Nothing tells that the 12 are samples.
    assert!(!screen.contains("batch"), "{screen}");
}

/// JAX's own functions run alone, outside of the reader's programs: they have no samples, and nothing to look into.
#[test]
fn an_array_that_jax_itself_makes_has_no_batch() {
    let over = "Ran out of memory in memory space hbm. Used 46.60G of 31.25G hbm. Exceeded hbm capacity by 15.35G.\n\n  Largest \
                program allocations in hbm:\n\n";
    let list = |names: [&str; 2]| {
        let row = |name: &str| {
            format!(
                "  1. Size: 15.00G\n     Operator: op_name=\"{name}\"\n     Shape: f32[4096,983040]{{1,0:T(8,128)}}\n     \
                 ==========================\n"
            )
        };
        format!("{over}{}", names.map(row).concat())
    };
    for (function, text) in [
        ("_normal", list(["jit(_normal)/jit(main)/jit(_normal_real)/erf_inv", "jit(_normal)/jit(main)/mul"])),
        ("concatenate", list(["jit(concatenate)/jit(main)/concatenate", "jit(concatenate)/concatenate"])),
    ] {
        let (task, screen) = first_change(&text);
        assert!(task.starts_with("Make the array in parts"), "{screen}");
        assert!(!screen.contains("batch") && !screen.contains("dump"), "{screen}");
        assert!(task.contains(function), "{screen}");
    }
    for names in [
        ["jit(_step)/jit(main)/jvp(f)/dot_general", "jit(_step)/jit(main)/mul"],
        ["jit(step)/jit(main)/jit(_normal)/mul", "jit(step)/jit(main)/mul"],
        ["jit(_step)/while/body/dot_general", "jit(_step)/mul"],
        ["jit(_forward)/jit(main)/Model/Dense_0/dot_general", "jit(_forward)/mul"],
    ] {
        let (_, screen) = first_change(&list(names));
        assert!(!screen.contains("JAX's own"), "{screen}");
    }
}

#[test]
fn a_server_is_left_less_to_hold() {
    let (task, screen) = first_change(
        "vllm/v1/engine/core.py: Error allocating device buffer: Attempting to allocate 128.00M. That was not possible. There are \
         87.93M free.",
    );
    assert!(task.starts_with("Leave the server a smaller KV cache (`--gpu-memory-utilization`)"), "{screen}");
}

#[test]
fn a_dump_that_is_there_is_not_made_again() {
    let over = "Ran out of memory in memory space hbm. Used 46.60G of 31.25G hbm. Exceeded hbm capacity by 15.35G.";
    let (_, screen) = first_change(&format!("XLA_FLAGS=\"--xla_dump_to=/tmp/d\" python -m train\n{over}"));
    assert!(screen.contains("tilewise audit /tmp/d") && !screen.contains("export"), "{screen}");
    let (_, screen) = first_change(over);
    assert!(screen.contains("export XLA_FLAGS"), "{screen}");
}

/// The array in a kernel's row lies in HBM: a cut message doesn't tell what the kernel takes.
#[test]
fn an_operand_is_no_kernels_memory() {
    let cut = "Ran out of memory in memory space vmem while allocating on stack for %update.1 = bf16[710080,64,128]{2,1,0:T(8,128)(2,1)} \
               custom-call(%a, %b), custom_call_target=\"tpu_custom_call\"";
    let (_, screen) = first_change(cut);
    assert!(!screen.contains("GiB") && !screen.contains("Why"), "{screen}");
}

#[test]
fn a_whole_operand_is_not_padded() {
    let refused = |shape: &str| {
        format!(
            "Mosaic failed to compile TPU kernel: Failed to verify layout for Mosaic kernel operand 3: XLA layout does not match MLIR \
             layout for an operand of shape {shape}: expected {{1,0:T(128)S(1)}}, got {{1,0:T(8,128)S(1)}}"
        )
    };
    let (task, screen) = first_change(&refused("f32[16,3072]"));
    assert!(task.starts_with("Compile the kernel") && !screen.contains("jnp.pad"), "{screen}");
    assert!(first_change(&refused("f32[13,3072]")).1.contains("jnp.pad"));
}

/// Arguments and results exceed the memory, whatever is recomputed, and one device divides nothing.
#[test]
fn arguments_that_exceed_the_memory_are_made_smaller() {
    let (task, screen) = first_change(
        "Can't reduce memory use below -12.50GiB (-13421772800 bytes) by rematerialization; only reduced to 19.00GiB (20401094656 \
         bytes), down from 19.00GiB (20401094656 bytes) originally",
    );
    assert!(task.starts_with("Make arguments and results smaller"), "{screen}");
    assert!(!screen.contains("checkpoint") && screen.contains("unified memory"), "{screen}");
}

#[test]
fn results_that_find_no_room_are_no_small_request() {
    let (_, screen) = first_change(
        "Out of memory while trying to allocate 14745600000 bytes.\nBufferAssignment stats:\n  parameter allocation: 802.3KiB\n  \
         maybe_live_out allocation: 13.73GiB\n  preallocated temp allocation: 7.92MiB\n  total allocation: 13.74GiB\n",
    );
    assert!(!screen.contains("was small") && screen.contains("results found no room"), "{screen}");
}

#[test]
fn pallas_is_named_where_the_text_names_it() {
    let launch = "INTERNAL: Shared memory requested exceeds device resources.; current tracing scope: custom-call.371";
    assert!(!first_change(launch).1.contains("plgpu"));
    assert!(first_change(&format!("{launch}\nin pallas_call")).1.contains("plgpu"));
}

/// TensorFlow's programs are compiled on a TPU's host, which flags of the job don't reach.
#[test]
fn tensorflow_is_told_of_no_dump() {
    let over = "Ran out of memory in memory space hbm. Used 46.60G of 31.25G hbm. Exceeded hbm capacity by 15.35G.";
    let (task, screen) =
        first_change(&format!("tensorflow.python.framework.errors_impl.ResourceExhaustedError: {over}"));
    assert!(task.contains("tf.recompute_grad") && !screen.contains("xla_dump_to"), "{screen}");
    assert!(first_change(over).1.contains("xla_dump_to"));
}

#[test]
fn a_type_that_a_kernel_has_not_is_named() {
    let (task, screen) = first_change(
        "MosaicError: INTERNAL: Mosaic failed to compile TPU kernel: Unsupported type 'vector<8x128x8xf4E2M1FN>'",
    );
    assert_eq!(task, "Give the kernel another element type than `f4E2M1FN`", "{screen}");
    assert!(!screen.contains("mask"), "{screen}");
}

#[test]
fn a_title_that_names_spills_is_read() {
    let over = "Bad StatusOr access: RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 29.96M of 16.00M vmem. \
                Exceeded vmem capacity by 13.96M.";
    let (task, screen) = first_change(&format!("register allocator spill slots call depth 2\n{over}"));
    assert_eq!(task, "Find the operation that unrolls, and give it less at once", "{screen}");
    // Without a kernel in the text, the operation is the compiler's own.
    let (_, screen) = first_change(over);
    assert!(!screen.contains("BlockSpec"), "{screen}");
    let (_, screen) = first_change(&format!("my pallas kernel\n{over}"));
    assert!(screen.contains("BlockSpec"), "{screen}");
}

#[test]
fn a_host_that_pins_no_more_may_fail() {
    let (task, screen) =
        first_change("failed to alloc 2147483648 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
    assert_eq!(task, "If an error follows, free or pin less of the host's memory", "{screen}");
    assert!(!screen.contains("nothing failed"), "{screen}");
}

/// The message ends within the shape of the first array.
#[test]
fn a_cut_name_of_the_forward_pass_tells_of_layers() {
    let text = "Ran out of memory in memory space hbm. Used 87.08G of 30.75G hbm. Exceeded hbm capacity by 56.33G.\n\
        Program hbm requirement 87.08G:\n    HLO temp         87.06G (100.0% utilization: Unpadded (86.24G) Padded (86.24G), \
        0.9% fragmentation (841.66M))\n  Largest program allocations in hbm:\n  1. Size: 4.00G\n     Operator: \
        op_name=\"pjit(train_step)/jit(main)/jvp(LLaMA)/h/4/attention/sub\" \
        source_file=\"/x/site-packages/flax/linen/attention.py\" source_line=108\n     Shape: f32[8";
    let (task, screen) = first_change(text);
    assert_eq!(task, "Recompute the layer or the loop's step (a checkpoint around it)", "{screen}");
    // No change is made in an installed package.
    assert!(!screen.contains("at attention.py"), "{screen}");
}

#[test]
fn advice_is_for_the_memory_that_the_verdict_names() {
    let tasks = |report: Report| -> Vec<String> {
        let output = AuditOutput::new(report);
        output.summary().changes.iter().map(|change| format!("{} {}", change.lead, change.task)).collect()
    };
    let mut compared = 0;
    for report in EXAMPLES.into_iter().flat_map(reports) {
        let Some(available) = report.available_bytes() else { continue };
        assert_eq!(tasks(report.clone()), tasks(report.with_limit(Some(available))));
        compared += 1;
    }
    assert!(compared > 2, "{compared} programs");
}

/// Arguments and program are all that is used: the results lie in the program.
#[test]
fn results_in_the_program_count_once() {
    let text = "Ran out of memory in memory space hbm. Used 30.00G of 20.00G hbm. Exceeded hbm capacity by 10.00G.\n\n\
        Total hbm usage >= 30.25G:\n    reserved        256.00M\n    program          18.00G\n    arguments        12.00G\n\n\
        Output size 12.00G; shares 0B with arguments.\n";
    let text = tilewise_audit::explain(Message::parse(text).expect("a message"), None).to_text(80);
    assert!(text.contains("60.0 %  the program") && text.contains("40.0 %  of it results"), "{text}");
}
