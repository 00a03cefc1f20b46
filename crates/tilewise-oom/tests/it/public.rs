//! Out-of-memory messages of other people's programs and older compilers; see `data/public/README.md`.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use std::fs;

use tilewise_oom::{Form, Framework, Message, OomVerdict, PrintedSize, UntiledMachine};

fn parse(name: &str) -> Message {
    let path = format!("{}/tests/data/public/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    Message::parse(&fs::read_to_string(path).unwrap()).unwrap()
}

fn text(size: &Option<PrintedSize>) -> &str {
    size.as_ref().map_or("", PrintedSize::text)
}

#[test]
fn headlines() {
    for (name, form, space, used, limit, exceeded, truncated) in [
        ("hbm_v4", Form::Assignment, "hbm", "63.80G", "30.75G", "33.05G", false),
        ("broken_headline", Form::Assignment, "hbm", "21.95G", "15.48G", "6.47G", true),
        ("vmem_spills", Form::Assignment, "vmem", "29.95M", "16.00M", "13.95M", true),
        ("wrapped_vmem", Form::Assignment, "vmem", "65.05M", "64.00M", "1.05M", true),
        ("smem", Form::Assignment, "smem", "1.00M", "1.00M", "1.7K", true),
        ("smem_bug", Form::Assignment, "smem", "", "", "", true),
        ("early_abort", Form::EarlyAbort, "hbm", "3.47E", "14.49G", "", false),
        ("run_time_reserve", Form::RunTime, "hbm", "3.95G", "1.92G", "", false),
        ("run_time_program", Form::RunTime, "hbm", "29.49G", "147.64M", "", false),
        ("run_time_buffer", Form::RunTime, "hbm", "129.50M", "78.17M", "", false),
        ("run_time_ordinal", Form::Device, "", "33554432", "", "", false),
        ("allocation_hbm", Form::Allocation, "hbm", "107374182400", "17179869184", "", false),
        ("no_headline", Form::Excerpt, "hbm", "", "", "", true),
        ("deep_indent", Form::Excerpt, "hbm", "8.74G", "", "", true),
        ("wrapped_operator", Form::Excerpt, "hbm", "11.47G", "", "", true),
    ] {
        let message = parse(name);
        assert_eq!(message.form, form, "{name}");
        assert_eq!(message.memory_space.as_deref().unwrap_or(""), space, "{name}");
        let figures = [text(&message.used), text(&message.limit), text(&message.exceeded)];
        assert_eq!(figures, [used, limit, exceeded], "{name}");
        assert_eq!(message.truncated, truncated, "{name}");
        assert_eq!(message.code, None, "{name}");
    }
    assert_eq!(parse("run_time_program").module.as_deref(), Some("jit_step"));
}

#[test]
fn entries() {
    for (name, sizes) in [
        ("prefixed_log", &["6.00G 128", "6.00G 128"][..]),
        ("no_headline", &["4.00G 4"]),
        ("deep_indent", &["570.00M", "570.00M 2"]),
        ("hbm_v4", &["2.00G"]),
        ("allocation_hbm", &["107374182400"]),
    ] {
        let message = parse(name);
        let of = |entry: &tilewise_oom::Entry| {
            assert_eq!(entry.agrees(), Some(true), "{name}");
            let unpadded = entry.computed_unpadded_bytes().unwrap().unwrap();
            assert!(entry.unpadded.as_ref().is_none_or(|printed| printed.agrees_with(unpadded)), "{name}");
            let expansion = entry.expansion.map(|expansion| format!(" {expansion}")).unwrap_or_default();
            format!("{}{expansion}", text(&entry.size))
        };
        assert_eq!(message.entries.iter().map(of).collect::<Vec<_>>(), sizes, "{name}");
    }
    let log = parse("prefixed_log");
    assert_eq!(log.entries[0].number, Some(2));
    assert_eq!(log.entries[0].instruction(), Some(("fusion.1", "fusion")));
    assert!(log.entries[0].complete && !log.entries[1].complete);
    assert_eq!(parse("deep_indent").entries[1].instruction(), Some(("fusion.10.remat3", "fusion")));

    let spills = parse("vmem_spills");
    assert_eq!(spills.entries.len(), 2);
    assert_eq!(spills.entries[0].label.as_deref(), Some("register allocator spill slots call depth 2"));
    assert_eq!(spills.entries[1].shape.as_ref().unwrap().text, "f32[128,3]{1,0}");
    assert_eq!(spills.entries[1].agrees(), Some(false), "VMEM is tiled although the layout does not say so");

    let operator = parse("wrapped_operator").entries[0].operator.clone().unwrap();
    assert_eq!(operator.get("op_type"), Some("conv_general_dilated"));
    assert!(operator.op_name().unwrap().ends_with("window_strides=(1, 1, 1)\\n]"));
    let operator = parse("hbm_v4").entries[0].operator.clone().unwrap();
    assert_eq!((operator.source_file(), operator.source_line()), (Some("attention.py"), Some(1059)));
}

#[test]
fn tables() {
    let message = parse("run_time_reserve");
    let usage = message.usage.unwrap();
    assert_eq!(usage.total.text(), "10.94G");
    let rows: Vec<_> = usage.rows.iter().map(|row| format!("{} {}", row.name, row.size)).collect();
    let wanted = [
        "reserved(Infeed/Outfeed/Continuations) 529.00M",
        "heap allocations (without fragmentation) 6.08G",
        "program 4.34G",
    ];
    assert_eq!(rows, wanted);
    let requirement = message.requirement.unwrap();
    assert_eq!(requirement.get("scoped").unwrap().text(), "17.43M");
    assert_eq!(requirement.rows.len(), 4);
    let utilization = requirement.utilization.unwrap();
    assert_eq!((utilization.percent, utilization.fragmentation.unwrap().text()), (97.4, "14.68M"));

    let message = parse("deep_indent");
    assert_eq!(message.usage.unwrap().get("arguments").unwrap().text(), "7.04G");
    assert_eq!(message.output.unwrap().size.text(), "6.0K");
    assert_eq!(parse("broken_headline").usage.unwrap().rows.len(), 3);
    assert!(parse("wrapped_vmem").usage.is_none());
}

#[test]
fn published_sizes_follow_from_shapes() {
    for (shape, unpadded, padded) in [
        ("s32[8388608,8,4]{2,1,0:T(8,128)}", "1.00G", "32.00G"),
        ("bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}", "1.00G", "4.00G"),
        ("s32[2048,1,128,128,4]{4,3,2,0,1:T(8,128)}", "512M", "16G"),
        ("u32[12582912,1]{1,0:T(8,128)}", "48M", "6G"),
        ("f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}", "40.5M", "512M"),
        ("s32[29360128,10]{1,0:T(8,128)}", "1.09G", "14G"),
    ] {
        let text = format!("1. Size: {padded}\n Shape: {shape}\n Unpadded size: {unpadded}\n ====");
        let entry = &Message::parse(&text).unwrap().entries[0];
        assert_eq!(entry.agrees(), Some(true), "{shape}");
        assert!(entry.unpadded.as_ref().unwrap().agrees_with(entry.computed_unpadded_bytes().unwrap().unwrap()));
    }
}

#[test]
fn verdicts() {
    for (name, verdict) in [
        ("prefixed_log", OomVerdict::Padding),
        ("no_headline", OomVerdict::Padding),
        ("wrapped_operator", OomVerdict::Padding),
        ("deep_indent", OomVerdict::Size),
        ("hbm_v4", OomVerdict::Size),
        ("broken_headline", OomVerdict::Size),
        ("early_abort", OomVerdict::Size),
        ("allocation_hbm", OomVerdict::Size),
        ("vmem_spills", OomVerdict::Spills),
        ("wrapped_vmem", OomVerdict::KernelMemory),
        ("smem", OomVerdict::KernelMemory),
        ("smem_bug", OomVerdict::KernelMemory),
        ("run_time_reserve", OomVerdict::Reservation),
        ("run_time_program", OomVerdict::Reservation),
        ("run_time_buffer", OomVerdict::Reservation),
        ("run_time_ordinal", OomVerdict::NotTpu),
    ] {
        assert_eq!(parse(name).verdict(), verdict, "{name}");
    }
    let (mut read, mut wrapped) = (0, 0);
    for (name, verdict, text) in many() {
        let message = Message::parse(&text).unwrap();
        assert_eq!(message.verdict().as_str(), verdict, "{name}");
        read += 1;
        // As a log of JSON objects, one a line.
        let objects: String =
            text.lines().map(|line| format!("{{\"severity\":\"ERROR\",\"message\":{line:?}}}\n")).collect();
        let objects = objects.replace("\\'", "'");
        if text.lines().count() > 1 {
            assert_eq!(Message::parse(&objects).unwrap().verdict().as_str(), verdict, "{name} as objects");
            wrapped += 1;
        }
    }
    assert_eq!((read, wrapped), (19, 9));
}

/// The messages of `verdicts.txt`: name, verdict, text.
fn many() -> Vec<(String, String, String)> {
    let path = format!("{}/tests/data/public/verdicts.txt", env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(path).unwrap();
    let message = |part: &str| {
        let (head, text) = part.split_once('\n').unwrap();
        let (name, verdict) = head.split_once(' ').unwrap();
        (name.to_owned(), verdict.to_owned(), text.to_owned())
    };
    source.split("%%% ").skip(1).map(message).collect()
}

fn one(name: &str) -> Message {
    let (_, _, text) = many().into_iter().find(|(found, _, _)| found == name).unwrap();
    Message::parse(&text).unwrap()
}

#[test]
fn totals_count_where_shapes_do_not() {
    // 1.3% utilization: Unpadded (294.49M) Padded (23.01G), and no more.
    let budget = one("xla2016").budget();
    let padding = 23.01 * f64::from(1 << 30) - 294.49 * f64::from(1 << 20);
    assert!((budget.padding_bytes.unwrap() as f64 - padding).abs() < 1e6);
    assert_eq!(budget.unread, 0);
    // 41.19G, 24.2% utilization, 293.84M lost in packing: what an older compiler prints.
    let budget = one("flowpm27").budget();
    let temporaries = (41.19 * f64::from(1 << 30) - 293.84 * f64::from(1 << 20)) * 0.758;
    assert!((budget.padding_bytes.unwrap() as f64 - temporaries).abs() < 1e6);
    assert_eq!(budget.argument_bytes, None);
    // The last entry ends before its shape; the total counts it, too.
    let budget = one("colabfold62").budget();
    assert_eq!(budget.unread, 1);
    let padding = (9.06 - 8.65) * f64::from(1 << 30);
    assert!((budget.padding_bytes.unwrap() as f64 - padding).abs() < 1e6);

    let budget = parse("run_time_reserve").budget();
    assert_eq!(budget.capacity_bytes, Some(8 << 30));
    assert_eq!(budget.others_bytes, Some(6_528_350_290));
    // 71.6% of 5.06G, 89.4% of 478.07M.
    let padding = 5.06 * 0.284 * f64::from(1 << 30) + 478.07 * 0.106 * f64::from(1 << 20);
    assert!((budget.argument_padding_bytes.unwrap() as f64 - padding).abs() < 1e6);
}

#[test]
fn cut_layouts_are_completed_if_they_take_what_is_printed() {
    // Cut within the tiles.
    let message = one("easydel142");
    let shape = |number: usize| message.entries[number].shape.as_ref().unwrap().parsed.as_ref().unwrap().to_string();
    assert_eq!(shape(1), "bf16[3072,24576]{1,0:T(8,128)(2,1)}");
    assert_eq!(message.entries[1].padding_bytes(), Some(0));
    // Cut within the order: the default one takes 1.00M, any other more.
    let of = |text: &str| Message::parse(&format!("1. Size: 1.00M\n Shape: {text}")).unwrap().entries[0].clone();
    assert_eq!(of("f32[512,512]{1").padding_bytes(), Some(0));
    // Not the size of these tiles, and none printed.
    let entry = of("f32[512,500]{0,1:T(8,128");
    assert!(entry.shape.as_ref().unwrap().parsed.is_ok() || entry.padding_bytes().is_none());
    let entry = of("f32[512,7]{1,0:T(8");
    assert_eq!((entry.shape.as_ref().unwrap().parsed.is_ok(), entry.padding_bytes()), (false, None));
}

#[test]
fn codes_and_frameworks() {
    let figures = |message: &Message| {
        (message.used.as_ref().map(PrintedSize::bytes), message.limit.as_ref().map(PrintedSize::bytes))
    };
    let cores = one("error_1000");
    assert_eq!((cores.form, text(&cores.used)), (Form::Cores, "208.92G"));
    assert_eq!(cores.usage.unwrap().get("SparseCore").unwrap().text(), "174.10G");
    let alloca = one("error_3000");
    assert_eq!((alloca.form, alloca.memory_space.as_deref()), (Form::SparseCore, Some("tile_spmem")));
    assert_eq!(figures(&alloca), (Some(4 * 140_704), Some(4 * 131_071)));
    assert_eq!(figures(&one("error_3001")), (Some(410_880 + 1_696_224), Some(524_288)));
    let other = one("error_2003");
    assert_eq!((other.form, other.code.as_deref()), (Form::Index, Some("E2003")));
    assert_eq!(one("jax7913").contiguous.unwrap().text(), "250.62M");
    for (name, framework) in [
        ("hf22328", Some(Framework::TorchXla)),
        ("flowpm27", Some(Framework::TensorFlow)),
        ("jax7502", Some(Framework::Jax)),
        ("xla2016", None),
    ] {
        assert_eq!(one(name).framework, framework, "{name}");
    }
    assert_eq!(parse("vmem_spills").framework, Some(Framework::TorchXla));
}

#[test]
fn messages_of_other_machines_are_told_from_a_tpu_s() {
    for (text, machine, used) in [
        (
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 214748364800 bytes.",
            UntiledMachine::Unnamed,
            Some(200 << 30),
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00MiB",
            UntiledMachine::Gpu,
            Some(20 << 20),
        ),
        (
            "failed to allocate 2.00G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            UntiledMachine::Gpu,
            Some(2 << 30),
        ),
        (
            "OOM when allocating tensor with shape[8,128] and type float on /device:GPU:0 by allocator GPU_0_bfc",
            UntiledMachine::Gpu,
            Some(4096),
        ),
        (
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB for an array",
            UntiledMachine::Host,
            Some(8 << 30),
        ),
    ] {
        let message = Message::parse(text).unwrap();
        assert_eq!((message.machine(), message.verdict()), (Some(machine), OomVerdict::NotTpu), "{text}");
        assert_eq!(message.used.map(|used| used.bytes()), used, "{text}");
    }
    // As PyTorch 2.1 words it.
    let text = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
                23.65 GiB of which 1.07 GiB is free. Of the allocated memory 20.98 GiB is allocated by PyTorch, and 1.13 \
                GiB is reserved by PyTorch but unallocated.";
    let message = Message::parse(text).unwrap();
    let bytes = |name| message.facts.size(name).map(|size| size.text().to_owned());
    assert_eq!(message.framework, Some(Framework::Torch));
    assert_eq!(
        [bytes("free"), bytes("held"), bytes("cached")].map(Option::unwrap),
        ["1.07 GiB", "20.98 GiB", "1.13 GiB"]
    );
    let message = Message::parse("RESOURCE_EXHAUSTED: something else").unwrap();
    assert_eq!((message.form, message.verdict()), (Form::Other, OomVerdict::Unknown));
}

/// The wording is vllm-project/tpu-inference#2803's.
#[test]
fn a_list_of_one_kernels_memory_needs_no_headline() {
    let verdict = |kind: &str, name: &str| {
        let text = format!(
            "core.py:1184]   5. Size: 4.00M\ncore.py:1184]      Operator: op_name=\"jit(f)/{name}\" stack_frame_id=459\n\
             core.py:1184]      Shape: bf16[8,2048,128]{{2,1,0:T(16,128)(2,1)}}\ncore.py:1184]      Unpadded size: 4.00M\n{kind}"
        );
        Message::parse(&text).unwrap().verdict()
    };
    let kind =
        |of: &str| format!("core.py:1184]      Allocation type: {of}\ncore.py:1184]      ==========================\n");
    assert_eq!(verdict("", "RPAm-p_256-bq_512_256-bkv_2048_512/pallas_call"), OomVerdict::KernelMemory);
    assert_eq!(verdict(&kind("scoped"), "k/pallas_call"), OomVerdict::KernelMemory);
    // The fifth entry of a list tells nothing of the largest ones.
    assert_eq!(verdict(&kind("HLO temp"), "k/pallas_call"), OomVerdict::Unknown, "what a kernel makes in HBM");
    assert_eq!(verdict(&kind("scoped"), "while/body"), OomVerdict::Unknown);
}

/// The wordings are jax-ml/jax#29520's and #34001's, and what libtpu 0.0.52 says of a strided load of a `[16,256]` array.
#[test]
fn what_mosaic_says_is_told_once() {
    let facts = |text: &str| {
        let message = Message::parse(text).unwrap();
        assert_eq!(message.verdict(), OomVerdict::Mosaic, "{text}");
        ["kernel", "what"].map(|name| message.facts.text(name).map(str::to_owned))
    };
    let what = Some("Not Implemented: The last dim size is not 128 in original base memref".to_owned());
    let old = "ValueError: Mosaic failed to compile TPU kernel: Not Implemented: The last dim size is not 128 in original base memref";
    assert_eq!(facts(old), [None, what.clone()]);
    let new = "MosaicError: INTERNAL: Mosaic failed to compile TPU kernel with MLIR module name `<no name>` HLO name `k.1`: Not \
               Implemented: The last dim size is not 128 in original base memref\n\nThe MLIR operation involved:\n  %1 = \
               \"xir.strided_load\"(%arg0, %0, %0) : (memref<16x256xf32, #xir.tiled<(8,128),[2,1]>>, index, index) -> vector<8x256xf32>";
    assert_eq!(facts(new), [Some("k.1".to_owned()), what]);
    let twice = "MosaicError: INTERNAL: Mosaic failed to compile TPU kernel: Invalid input layout";
    assert_eq!(facts(twice), [None, Some("Invalid input layout".to_owned())]);
}

/// The wording is tensorflow/tensorflow#30803's.
#[test]
fn operations_of_tensorflow_are_told_by_their_names() {
    let of = |kind: &str| {
        let text = format!(
            "  10. Size: 64.00M\n     Operator: op_type=\"{kind}\" op_name=\"tpu_14/conv2d_32/{kind}\"\n     Shape: f32[32,128,32,64]{{3,0,2,1}}\n     Unpadded size: 32.00M\n"
        );
        Message::parse(&text).unwrap().framework
    };
    assert_eq!((of("Conv2D"), of("conv_general_dilated")), (Some(Framework::TensorFlow), None));
}
