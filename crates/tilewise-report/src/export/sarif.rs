//! SARIF 2.1.0, which code scanning of GitHub, Azure and editors read.

use super::{
    Exporter,
    alerts::{Alert, DOES_NOT_FIT, Level, alerts},
};
use crate::{AuditOutput, Page};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io::{self, Write},
};

/// A log of one run: a result for each alert of each program.
///
/// The format is that of *Static Analysis Results Interchange Format (SARIF) Version 2.1.0*, OASIS.
#[derive(Clone, Debug, Default)]
pub struct Sarif {
    rules: BTreeSet<&'static str>,
    results: Vec<Value>,
}

impl Exporter for Sarif {
    fn write(&mut self, output: &AuditOutput, _: &mut dyn Write) -> io::Result<()> {
        for alert in alerts(output) {
            self.rules.insert(alert.rule);
            self.results.push(result(&alert, &output.report.module_name));
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let rules: Vec<Value> = self.rules.iter().map(|rule| described(rule)).collect();
        let driver = json!({
            "name": "tilewise",
            "version": env!("CARGO_PKG_VERSION"),
            "informationUri": env!("CARGO_PKG_REPOSITORY"),
            "rules": rules,
        });
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints", "results": self.results }],
        });
        serde_json::to_writer_pretty(&mut *out, &log)?;
        out.write_all(b"\n")
    }
}

fn result(alert: &Alert<'_>, module: &str) -> Value {
    let mut message = json!({ "text": alert.message });
    if let Some(code) = &alert.code {
        message["markdown"] = format!("{}\n\n```python\n{code}\n```", alert.message).into();
    }
    json!({
        "ruleId": alert.rule,
        "level": alert.level.as_str(),
        "message": message,
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&alert.file) },
            "region": { "startLine": alert.line },
        } }],
        // The fingerprint stays the same in the next run, though bytes and lines moved.
        "partialFingerprints": { "programAndRule/v1": format!("{module}/{}/{}", alert.rule, alert.file) },
    })
}

fn described(rule: &str) -> Value {
    let (name, level) = if rule == DOES_NOT_FIT { ("E1000", Level::Error) } else { (rule, Level::Warning) };
    let mut described = json!({ "id": rule, "defaultConfiguration": { "level": level.as_str() } });
    if let Some(page) = Page::named(name) {
        described["shortDescription"] = json!({ "text": page.title });
        described["fullDescription"] = json!({ "text": page.paragraphs.join("\n\n") });
    }
    described
}

/// The path as a URI: relative as it is, absolute with its scheme (RFC 8089).
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("src/model.py"), "src/model.py");
        assert_eq!(uri("/home/a b/m.py"), "file:///home/a%20b/m.py");
        assert_eq!(uri("<string>"), "%3Cstring%3E");
    }
}
