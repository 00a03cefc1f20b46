//! The memory plan as files of other programs: what they would read there agrees with the plan.

use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path, process::Command};
use tilewise_testing::programs;

const EXAMPLES: [&str; 2] = ["gnn_large.v5e.hlo", "kv_decode_row_major.v5e.hlo"];

fn audit(example: &str, format: &str) -> Vec<u8> {
    let path = programs::example(example);
    let output =
        Command::new(env!("CARGO_BIN_EXE_tilewise")).args(["audit", "--all", "--format", format]).arg(path).output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// The peak of each memory space, as the audit says.
fn peaks(example: &str) -> BTreeMap<String, u64> {
    let report: Value = serde_json::from_slice(&audit(example, "json")).expect("an object");
    let spaces = list(&report["memory_spaces"]).iter();
    spaces.map(|space| (space["memory_space"].to_string(), number(&space["peak_live_bytes"]))).collect()
}

#[test]
fn a_trace_counts_up_to_the_peak() {
    for example in EXAMPLES {
        let trace: Value = serde_json::from_slice(&audit(example, "trace")).expect("an object");
        let events = list(&trace["traceEvents"]);
        for (space, peak) in peaks(example) {
            let name = match &*space {
                "0" => "hbm",
                "1" => "vmem",
                _ => continue,
            };
            let counters: Vec<_> = events.iter().filter(|event| event["ph"] == "C" && event["name"] == name).collect();
            assert_eq!(
                counters.iter().map(|event| number(&event["args"]["bytes"])).max(),
                Some(peak),
                "{example} {name}"
            );
            assert!(counters.is_sorted_by_key(|event| moment(&event["ts"])));
            let label = format!("peak of {name}: ");
            assert!(events.iter().any(|event| event["name"].as_str().is_some_and(|event| event.starts_with(&label))));
        }
    }
}

fn moment(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Of the second example all is priced, of the first only a part.
#[test]
fn a_trace_is_of_time_where_nearly_all_of_it_is_known() {
    let [of_order, of_time] = EXAMPLES.map(|example| {
        let trace: Value = serde_json::from_slice(&audit(example, "trace")).expect("an object");
        let events = list(&trace["traceEvents"]);
        let hbm = events.iter().rfind(|event| event["ph"] == "C" && event["name"] == "hbm").expect("a counter");
        let report: Value = serde_json::from_slice(&audit(example, "json")).expect("an object");
        let name = events[0]["args"]["name"].as_str().expect("the process").to_owned();
        (name, hbm["ts"].clone(), moment(&report["time"]["estimate_seconds"]))
    });
    assert!(!of_order.0.contains("estimated") && of_order.1.is_u64(), "{of_order:?}");
    assert!(of_time.0.ends_with("estimated from the compiler's own cycle counts, not measured"), "{of_time:?}");
    let share = moment(&of_time.1) / (of_time.2 * 1e6);
    assert!((share - 1.0).abs() < 1e-6, "{of_time:?}");
}

#[test]
fn a_page_holds_the_report() {
    for example in EXAMPLES {
        let page = String::from_utf8(audit(example, "html")).expect("text");
        let (_, rest) = page.split_once("id=\"report\">").expect("data");
        let (data, script) = rest.split_once("</script>").expect("its end");
        assert!(script.contains("<script type=\"module\">") && !page.contains("{{report}}"));
        assert!(!page.contains("src=") && !page.contains("href=\"http"), "{example} asks for nothing");
        let data: Value = serde_json::from_str(data).expect("an object");
        let report: Value = serde_json::from_slice(&audit(example, "json")).expect("an object");
        assert_eq!(data["report"], report);
        let timeline = &data["timeline"];
        let moment = number(&timeline["peak_moment"]);
        let column = |name: &str| list(&timeline["pieces"][name]);
        let lifetimes = column("first").iter().zip(column("last"));
        let alive: u64 = column("bytes")
            .iter()
            .zip(lifetimes)
            .filter(|(_, (first, last))| (number(first)..=number(last)).contains(&moment))
            .map(|(bytes, _)| number(bytes))
            .sum();
        assert_eq!(number(&timeline["resident_bytes"]) + alive, number(&report["memory_spaces"][0]["peak_live_bytes"]));
        let residents = list(&timeline["residents"]).iter().map(|resident| number(&resident["bytes"]));
        assert_eq!(residents.sum::<u64>(), number(&timeline["resident_bytes"]), "{example}");
        assert!(data["on_demand"].as_str().is_some_and(|packed| packed.len() > 1000));
    }
}

#[test]
fn a_snapshot_replays() {
    for example in EXAMPLES {
        let snapshot = unpickle(&audit(example, "memory-viz"));
        for (device, trace) in list(&snapshot["device_traces"]).iter().enumerate() {
            let segments = || list(&snapshot["segments"]).iter().filter(|segment| segment["device"] == device);
            // Blocks alive at the end, less those of the run, were alive before.
            let mut living = BTreeMap::new();
            for segment in segments() {
                let mut at = number(&segment["address"]);
                let end = at + number(&segment["total_size"]);
                for block in list(&segment["blocks"]) {
                    if block["state"] == "active_allocated" {
                        living.insert(at, number(&block["size"]));
                    }
                    at += number(&block["size"]);
                }
                assert_eq!(at, end, "{example}: blocks fill their segment");
            }
            let mut live: u64 = living.values().sum();
            let mut peak = live;
            for event in list(trace) {
                let [address, size] = ["addr", "size"].map(|field| number(&event[field]));
                if event["action"] == "alloc" {
                    let below = living.range(..address + size).next_back().map_or(0, |(start, size)| start + size);
                    assert!(below <= address, "{example}: nothing else lies there");
                    assert!(segments().any(|segment| {
                        let start = number(&segment["address"]);
                        start <= address && address + size <= start + number(&segment["total_size"])
                    }));
                    assert!(!list(&event["frames"]).is_empty());
                    living.insert(address, size);
                    live += size;
                    peak = peak.max(live);
                } else if event["action"] == "free_completed" {
                    assert_eq!(living.remove(&address), Some(size), "{example}: it was allocated");
                    live -= size;
                }
            }
            if let Some(expected) = peaks(example).get(&device.to_string()).filter(|_| device < 2) {
                assert_eq!(peak, *expected, "{example} {device}");
            }
        }
    }
}

/// Reads a pickle of the few opcodes that <https://pytorch.org/memory_viz> knows and that a snapshot needs.
fn unpickle(bytes: &[u8]) -> Value {
    let mut rest = bytes.strip_prefix(b"\x80\x02").expect("protocol 2");
    let mut take = move |count: usize| {
        let (taken, left) = rest.split_at(count);
        rest = left;
        taken
    };
    let mut stack: Vec<Value> = Vec::new();
    let mut marks = Vec::new();
    loop {
        match take(1)[0] {
            b'}' => stack.push(Value::Object(Map::new())),
            b']' => stack.push(json!([])),
            b'(' => marks.push(stack.len()),
            b'X' => {
                let length = u32::from_le_bytes(take(4).try_into().expect("4 bytes"));
                stack.push(json!(std::str::from_utf8(take(length as usize)).expect("text")));
            }
            b'J' => stack.push(json!(i32::from_le_bytes(take(4).try_into().expect("4 bytes")))),
            0x8a => {
                assert_eq!(take(1), [8]);
                stack.push(json!(i64::from_le_bytes(take(8).try_into().expect("8 bytes"))));
            }
            b'e' => {
                let items = stack.split_off(marks.pop().expect("a mark"));
                assert!(items.len() <= 1000);
                let list = stack.last_mut().and_then(Value::as_array_mut).expect("a list");
                list.extend(items);
            }
            b'u' => {
                let entries = stack.split_off(marks.pop().expect("a mark"));
                let object = stack.last_mut().and_then(Value::as_object_mut).expect("a dict");
                let pair = |pair: &[Value]| (pair[0].as_str().expect("a name").to_owned(), pair[1].clone());
                object.extend(entries.chunks(2).map(pair));
            }
            b'.' => return stack.pop().expect("a value"),
            other => panic!("opcode {other}"),
        }
    }
}

#[test]
fn what_has_no_plan_is_an_error() {
    for format in ["trace", "memory-viz"] {
        let program = env!("CARGO_BIN_EXE_tilewise");
        let mut child = Command::new(program)
            .args(["audit", "--format", format, "-"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program runs");
        let text = b"ENTRY main { ROOT x = f32[8]{0:T(256)} parameter(0)\n}";
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), text).expect("a pipe");
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(String::from_utf8_lossy(&output.stderr).contains("no memory plan"));
    }
}

#[test]
fn the_picture_in_the_readme_is_what_is_drawn() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let drawn = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plan.svg");
    let command = Command::new(env!("CARGO_BIN_EXE_tilewise"))
        .arg("audit")
        .arg(programs::example("gnn_large.v5e.hlo"))
        .arg("-o")
        .arg(&drawn)
        .output()
        .expect("the program runs");
    assert!(command.status.success());
    let read = |path: &Path| std::fs::read_to_string(path).expect("a picture");
    assert!(read(&drawn) == read(&root.join("crates/tilewise-draw/figures/plan.svg")), "`audit -o` draws another one");
}

#[test]
fn a_page_holds_two_programs() {
    let folder = std::env::temp_dir().join(format!("tilewise-against-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let page = folder.join("change.html");
    let [before, after] = EXAMPLES.map(programs::example);
    let compare = |arguments: &[&Path]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
        command.arg("audit").args(arguments).arg("--against").arg(&before).output().expect("the program runs")
    };
    let output = compare(&[&after, Path::new("-o"), &page]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_to_string(&page).expect("the page");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let (_, rest) = written.split_once("id=\"report\">").expect("data");
    let data: Value = serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("an object");
    for (which, (example, side)) in EXAMPLES.into_iter().zip(["before", "after"]).enumerate() {
        let report: Value = serde_json::from_slice(&audit(example, "json")).expect("an object");
        assert_eq!(data[side]["bytes"]["total"], report["at_most_bytes"], "{example}");
        let alive = list(&data["live_bytes"][which]).iter().map(number);
        assert_eq!(alive.max(), report["memory_spaces"][0]["peak_live_bytes"].as_u64(), "{example}");
    }
    // The JSON is the page's data, but for the rows that it leaves out.
    let printed = compare(&[&after, Path::new("--format=json")]);
    let printed: Value = serde_json::from_slice(&printed.stdout).expect("an object");
    for field in ["headline", "verdict", "before", "after"] {
        assert_eq!(printed[field], data[field], "{field}");
    }
    assert!(list(&printed["changes"]).len() >= list(&data["changes"]).len());
    // Standard output gets this page, too; two programs are one too many.
    assert_eq!(compare(&[&after, Path::new("--format=html")]).stdout, written.as_bytes());
    assert_eq!(compare(&[&after, &after, Path::new("--format=html")]).status.code(), Some(2));
}

#[test]
fn programs_together_are_a_picture_and_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ["small", "large"].map(|name| programs::example(&format!("server/{name}.v6e.hlo.gz")));
    let written = |name: &str| {
        let out = folder.path().join(name);
        let command = Command::new(env!("CARGO_BIN_EXE_tilewise"))
            .args(["audit", "--tpu", "v6e", "--together"])
            .args(&server)
            .arg("-o")
            .arg(&out)
            .output();
        assert!(command.expect("the program runs").status.success());
        std::fs::read_to_string(out).expect("a file")
    };
    let (svg, page) = (written("server.svg"), written("server.html"));
    for text in ["cache: 1024 pages in 4 arrays", "large: 136.54 MiB", "limit 31.24 GiB"] {
        assert!(svg.contains(text) && page.contains(text), "{text}");
    }
    // The page has what is printed, too.
    assert!(page.contains("Arrays that are held once"));
}
