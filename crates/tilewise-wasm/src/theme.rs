//! The page's colours.

use tilewise_draw::{Options, Theme};

/// Options of a picture in the page's colours: `light`, `dark`, else the reader's.
pub(crate) fn themed(theme: &str) -> Options {
    Options::new().with_theme(match theme {
        "light" => Theme::Light,
        "dark" => Theme::Dark,
        _ => Theme::Auto,
    })
}
