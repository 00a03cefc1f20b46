//! Lines of the command line's batch form.

use serde_json::Value;

/// A line for `tilewise index -`: it gets one object, with a consistent answer or an error whose span is in the line.
pub fn batch_line(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let answer = tilewise_report::answer_line(line).expect("an object");
    let object: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(object["schema"], 1);
    assert_eq!(object["input"], line, "the input is echoed");
    let Some(error) = object.get("error") else {
        let offset = object["linear_index"].as_u64().expect("an offset");
        if object.get("padding").is_none() {
            // Asked the other way round, the answer is the same.
            let back = format!("{}\t@{offset}", object["shape"].as_str().expect("a shape"));
            let back: Value =
                serde_json::from_str(&tilewise_report::answer_line(&back).expect("an object")).expect("JSON");
            assert_eq!(back["index"], object["index"], "{line:?}");
        }
        return;
    };
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
    let span = error["span"].as_array().expect("a span");
    let [start, end] = [0, 1].map(|at| usize::try_from(span[at].as_u64().expect("a number")).expect("fits"));
    assert!(line.get(start..end).is_some(), "{line:?}: {start}..{end}");
}
