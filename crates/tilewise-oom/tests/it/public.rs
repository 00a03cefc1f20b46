//! Out-of-memory messages of other people's programs and older compilers; see `data/public/README.md`.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use std::fs;

use tilewise_oom::{Form, Message, PrintedSize};

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
        ("run_time_ordinal", Form::RunTime, "", "33554432B", "", "", true),
        ("allocation_hbm", Form::Allocation, "hbm", "107374182400", "17179869184", "", false),
        ("no_headline", Form::Excerpt, "hbm", "", "", "", true),
        ("deep_indent", Form::Excerpt, "hbm", "", "", "", true),
        ("wrapped_operator", Form::Excerpt, "hbm", "", "", "", true),
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
