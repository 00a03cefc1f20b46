//! Texts that are no messages, or meant to be slow.

use std::time::{Duration, Instant};

use tilewise_oom::{Form, Message, PrintedSize};

/// Fails if reading `unit` repeated takes more than a little time for each byte: the quadratic way takes hours.
fn is_linear(unit: &str, bytes: usize) -> Option<Message> {
    let text = unit.repeat(bytes / unit.len() + 1);
    let start = Instant::now();
    let message = Message::parse(&text).ok();
    assert!(start.elapsed() < Duration::from_secs(60), "{unit:?}: {:?}", start.elapsed());
    message
}

#[test]
fn long_texts_take_linear_time() {
    let message = is_linear("Size: 4.0K\n", 10_000_000);
    assert_eq!(message, None);
    let entry = "1. Size: 4.0K\n Shape: f32[8,128]{1,0:T(8,128)}\n";
    let message = is_linear(entry, 2_000_000).unwrap();
    assert_eq!(message.form, Form::Excerpt);
    assert_eq!(message.entries.len(), 2_000_000 / entry.len() + 1);
}

#[test]
fn repetition_of_anything_takes_linear_time() {
    for unit in [
        "Ran out of memory in memory space hbm ",
        "Ran out of memory in memory space hbm. Used ",
        "Error: lower foo_bar 2",
        "same batch ",
        "Ran out of memory on HBM",
        "Ran ",
        "RanRan",
        "HLO temporaries (",
        "Allocation (size=1",
        "Allocation (size=1) would exceed memory (size=1) :: [shape = '",
        "Allocation (size=1) would exceed memory (size=1) :: [shape = 'f32[2]', tag = 'a",
        "Attempting to reserve 1.00G ",
        "Error loading program 'a': Attempting to allocate ",
        "while allocating on stack for %a = (f32[2], ",
        "Ran out of memory in memory space vmem while allocating on stack for %a = ((((",
        "Total hbm usage >= 1.00G: a ",
        "requirement",
        "requirement ",
        "Program hbm requirement 1.00G: a 1.0K (",
        "Program hbm requirement ",
        "Output size 1.0K; shares ",
        "Largest program allocations in ",
        "XLA label: ",
        "1. Size: 1.0K XLA label: a = (f32[2], ",
        "Operator: a=\"",
        "1. Size: 1.0K Operator: a=\"b\" ",
        "1. Size: 1.0K Shape: (((( ",
        "==== ",
        "====",
        "9",
        "9.",
        "[type.googleapis.com/",
        "[type.googleapis.com/[truncated]",
        "\\",
        "\\n",
        "Ran out of memory\\n",
        "&",
        "&lt;",
        "\u{1b}[",
        "\u{1b}[1",
        "\r",
        " ",
        "\n",
        "```\n",
        "> ",
        "> XLA label: a\n",
        "│",
        "\u{a0}",
        "E1000: ",
        "E2003: ",
        "TPU TensorCore Hbm usage: 1.00G, SparseCore Hbm usage 1.00G ",
        "op current allocation offset upper bound (1 ",
        "No viable logical replica count ",
        "No viable logical replica count fixed_size_allocation_bytes = 1 ",
        "OOM when allocating tensor ",
        "1.3% utilization: Unpadded (1.00G) Padded (",
        "Persistent allocations include some or all of: arguments 1.00G ",
        "HBM capacity 1.00G ",
        "{\"message\":\"a\\\\\"}",
        "{\"a\":\"",
        "spill ",
        "é",
    ] {
        is_linear(unit, 100_000);
        is_linear(&format!("{unit}\n"), 100_000);
        is_linear(&format!("1. Size: 1.0K XLA label: a {unit}"), 10_000);
    }
}

#[test]
fn other_texts_are_refused_with_a_reason() {
    for (text, reason) in [
        ("", "the text is empty"),
        (" \n", "the text is empty"),
        ("HloModule f\nENTRY %main () -> f32[] {", "HLO text"),
        ("Attempting to allocate time for HLO temporaries (a lot)", "no message about memory found"),
        ("Size: 4.00G", "no message about memory found"),
        ("1. Size: 4.00G", "no message about memory found"),
        ("Largest program allocations in hbm:", "no message about memory found"),
    ] {
        let error = Message::parse(text).unwrap_err();
        assert!(error.to_string().contains(reason), "{text}: {error}");
        assert_eq!(error.as_str(), "not_an_oom_message");
    }
}

#[test]
fn a_shape_that_is_none_is_kept_with_its_error() {
    let message = Message::parse("1. Size: 4.0K\n Shape: f33[8]{0}\n XLA label: x\n ====").unwrap();
    let shape = message.entries[0].shape.as_ref().unwrap();
    assert_eq!(shape.text, "f33[8]{0}");
    assert_eq!(shape.parsed.as_ref().unwrap_err().kind(), tilewise::ErrorKind::UnknownElementType);
    assert!(message.entries[0].computed_bytes().unwrap().is_err());
    assert_eq!(message.entries[0].agrees(), None);
}

#[test]
fn of_several_messages_the_fullest_is_read() {
    let short = "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 2.00G of \
                 1.00G hbm. Exceeded hbm capacity by 1.00G.\n";
    let list =
        "Largest program allocations in hbm:\n 1. Size: 2.00G\n XLA label: overlays\n ==========================\n";
    let message = Message::parse(&format!("{short}{short}{list}")).unwrap();
    assert_eq!((message.entries.len(), message.truncated), (1, false));
    let message = Message::parse(&format!("{short}{list}{short}")).unwrap();
    assert_eq!(message.entries.len(), 1);
}

/// As in the log of pytorch/xla#1965: lines were lost between the size of one allocation and the shape of another.
#[test]
fn an_entry_without_its_middle_is_two() {
    let whole = "  2. Size: 6.00G\n     Shape: u32[12582912,1]{1,0:T(8,128)}\n     Unpadded size: 48.00M\n     \
                 Extra memory due to padding: 5.95G (128.0x expansion)\n     ==========================\n";
    let joined = "  3. Size: 6.00G\n     Shape: bf16[512,16,3072]{2,1,0:T(8,128)(2,1)}\n     Unpadded size: 48.00M\n     \
                  ==========================\n";
    let message = Message::parse(&format!("{whole}\n{joined}")).expect("a list");
    let read: Vec<_> = message
        .entries
        .iter()
        .map(|entry| {
            (entry.size.as_ref().map(PrintedSize::bytes), entry.shape.as_ref().map(|shape| shape.text.as_str()))
        })
        .collect();
    let gib = Some(6 << 30);
    assert_eq!(
        read,
        [
            (gib, Some("u32[12582912,1]{1,0:T(8,128)}")),
            (gib, None),
            (None, Some("bf16[512,16,3072]{2,1,0:T(8,128)(2,1)}")),
        ]
    );
}
