//! Readable resources: the pages about messages and about changes.

use rmcp::model::{ReadResourceResult, Resource, ResourceContents};
use tilewise_report::Page;

const ERRORS: &str = "tilewise://errors/";
const ADVICE: &str = "tilewise://advice/";

/// All resources, with their titles.
pub(super) fn all() -> Vec<Resource> {
    let of = |scheme: &'static str| {
        move |page: Page| {
            let resource = Resource::new(format!("{scheme}{}", page.name), page.name);
            resource.with_title(page.title).with_mime_type("text/markdown")
        }
    };
    Page::errors().map(of(ERRORS)).chain(Page::advice().map(of(ADVICE))).collect()
}

/// The page at an address.
pub(super) fn read(uri: &str) -> Option<ReadResourceResult> {
    let name = uri.strip_prefix(ERRORS).or_else(|| uri.strip_prefix(ADVICE))?;
    let page = Page::named(name)?;
    let text = format!("# {}\n\n{}\n", page.title, page.paragraphs.join("\n\n"));
    Some(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type("text/markdown")]))
}
