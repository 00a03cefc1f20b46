//! The terminal's width, colours and characters.

use anstream::{AutoStream, ColorChoice};
use std::{env, io};
use tilewise_draw::ColorMode;
use tilewise_report::Terminal;

/// The terminal that results go to, or a plain one of 80 columns.
pub(crate) fn terminal() -> Terminal {
    Terminal::plain(screen_width()).with_color(color_mode()).with_ascii(!has_unicode())
}

/// Columns of the terminal; without one, those of `COLUMNS`, or 80.
pub(crate) fn screen_width() -> usize {
    let asked = || env::var("COLUMNS").ok()?.trim().parse().ok();
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal.or_else(asked).unwrap_or(80).clamp(40, 200)
}

/// The colours the terminal can show; none in a pipe, or where colour is switched off.
fn color_mode() -> ColorMode {
    let is_on = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    let names_true_color = |name: String| matches!(name.as_str(), "truecolor" | "24bit");
    match (is_on, env::var("COLORTERM").is_ok_and(names_true_color)) {
        (false, _) => ColorMode::None,
        (true, true) => ColorMode::TrueColor,
        (true, false) => ColorMode::Palette256,
    }
}

/// Whether box-drawing characters can be shown: by the locale on Unix, always on Windows.
fn has_unicode() -> bool {
    if cfg!(windows) {
        return true;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| env::var(name).ok());
    let locale = locale.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
