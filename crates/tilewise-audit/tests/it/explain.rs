//! Messages cut anywhere are still judged, by what is there.

use std::{fs, path::Path};
use tilewise_oom::Message;

#[test]
fn messages_cut_anywhere_are_judged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilewise-oom/tests/data");
    let mut messages = 0;
    for file in fs::read_dir(folder).expect("the messages").flatten() {
        if file.path().extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(file.path()).expect("a message");
        let whole = tilewise_audit::explain(Message::parse(&text).expect("a message"), None);
        messages += 1;
        // The reader's own tests cut at every byte.
        for end in (0..text.len()).step_by(29) {
            let Some(part) = text.get(..end) else { continue };
            let Ok(message) = Message::parse(part) else { continue };
            let explained = tilewise_audit::explain(message, None);
            assert!(explained.allocations.len() <= whole.allocations.len(), "{:?} cut at {end}", file.path());
            assert!(explained.padding_bytes() <= whole.padding_bytes(), "{:?} cut at {end}", file.path());
        }
    }
    assert!(messages >= 17);
}
