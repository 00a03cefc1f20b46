//! A scene as a PNG image: its SVG, rasterised with the bundled font.

use crate::{Error, ErrorKind, Scene, Theme, svg};
use resvg::{tiny_skia, usvg};
use std::sync::{Arc, OnceLock};

/// Pixels of an image, at most.
const MOST_PIXELS: f32 = 1e8;

pub(crate) fn write(scene: &Scene, scale: f32) -> Result<Vec<u8>, Error> {
    if !(scale.is_finite() && scale > 0.0) {
        return Err(Error::new(ErrorKind::InvalidScale, format!("the scale must be a positive number, not {scale}")));
    }
    let theme = if scene.options.theme == Theme::Auto { Theme::Light } else { scene.options.theme };
    let options = usvg::Options { fontdb: fonts(), font_family: "Inter".to_owned(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(&svg::write(scene, theme), &options)
        .map_err(|error| Error::new(ErrorKind::Rendering, format!("the picture can't be rasterised: {error}")))?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    if width * height > MOST_PIXELS {
        let message = format!("{width:.0} × {height:.0} pixels are more than the limit of 100 million");
        return Err(Error::new(ErrorKind::ImageTooLarge, message));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and below the limit")]
    let (width, height) = (width.ceil().max(1.0) as u32, height.ceil().max(1.0) as u32);
    let Some(mut pixels) = tiny_skia::Pixmap::new(width, height) else {
        return Err(Error::new(ErrorKind::ImageTooLarge, format!("{width} × {height} pixels make no image")));
    };
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    encoded(&pixels).map_err(|error| Error::new(ErrorKind::Rendering, format!("the image can't be encoded: {error}")))
}

/// Flat colours compress well without trying hard, and several times faster.
fn encoded(pixels: &tiny_skia::Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut image = Vec::new();
    let mut encoder = png::Encoder::new(&mut image, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut straight = Vec::with_capacity(pixels.data().len());
    for pixel in pixels.pixels() {
        let pixel = pixel.demultiply();
        straight.extend([pixel.red(), pixel.green(), pixel.blue(), pixel.alpha()]);
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&straight)?;
    writer.finish()?;
    Ok(image)
}

/// The bundled font only: pictures are the same on every machine.
fn fonts() -> Arc<usvg::fontdb::Database> {
    static FONTS: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    FONTS
        .get_or_init(|| {
            let mut fonts = usvg::fontdb::Database::new();
            fonts.load_font_data(include_bytes!("../fonts/Inter-Regular.otf").to_vec());
            fonts.load_font_data(include_bytes!("../fonts/Inter-SemiBold.otf").to_vec());
            Arc::new(fonts)
        })
        .clone()
}
