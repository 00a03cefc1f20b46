//! Kernels that many programs share, found by their names anywhere in a text.

use memchr::memmem;

/// Parts of kernel names, the more specific ones first.
const SIGNS: [&str; 10] = [
    "splash_",
    "RPAd-",
    "RPAp-",
    "RPAm-",
    "ragged_paged_attention",
    "rpa_",
    "paged_attention",
    "flash_attention",
    "flash_mha",
    "gmm",
];

/// The whole name around the first sign that the text has.
pub(crate) fn of(text: &str) -> Option<String> {
    SIGNS.iter().find_map(|sign| {
        let begins_word = |at: &usize| !text[..*at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let at = memmem::find_iter(text.as_bytes(), sign).find(begins_word)?;
        // The character before the name may take several bytes, as a quotation mark does.
        let is_of_name = |c: &char| is_part(*c) && (*c != '-' || sign.ends_with('-'));
        let start =
            text[..at].char_indices().rev().take_while(|(_, c)| is_of_name(c)).last().map_or(at, |(first, _)| first);
        Some(text[start..].chars().take_while(is_of_name).collect())
    })
}

/// The names in a text, without the numbers that XLA puts behind dots.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_part(c)).filter(|word| !word.is_empty())
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn names_are_whole() {
        assert_eq!(of("on stack for %tpu_splash_mha_fwd.3 = (f32").as_deref(), Some("tpu_splash_mha_fwd"));
        assert_eq!(of("/rpa_metadata_schedule/pallas_call").as_deref(), Some("rpa_metadata_schedule"));
        assert_eq!(of("%RPAm-p_128-bq_32_32.23 = ").as_deref(), Some("RPAm-p_128-bq_32_32"));
        assert_eq!(of("augmmented"), None);
        assert_eq!(of("\u{201c}flash_attention\u{201d}").as_deref(), Some("flash_attention"));
        assert_eq!(of("flash_attention").as_deref(), Some("flash_attention"));
    }
}
