//! From a layout to a scene, and from a scene to a picture.

use crate::{
    Error, ErrorKind, Options, Scene, View,
    figure::Figure,
    svg, terminal,
    text::{counted, list},
    views,
};
use tilewise::Tiled;

/// The most arrays of a tuple that are drawn.
const MOST_ARRAYS: usize = 16;

impl Scene {
    /// Draws a layout.
    ///
    /// # Errors
    /// A highlighted or sliced index outside the array; two slices of one dimension; a comparison of two different
    /// arrays.
    pub fn of(tiled: &Tiled, options: &Options) -> Result<Self, Error> {
        Ok(Self { sheets: vec![views::sheet_of(tiled, options)?], options: options.clone() })
    }

    /// Draws the arrays of a tuple below each other, each with its path through the tuples: [`Shape::leaves`]. Only the
    /// first 16 are drawn.
    ///
    /// ```
    /// use tilewise::{Error, Shape, Tiled};
    /// use tilewise_draw::{Options, Scene};
    ///
    /// let tuple: Shape = "(f32[3,5]{1,0:T(2,2)}, (s32[4]{0}))".parse()?;
    /// let arrays: Result<Vec<_>, Error> =
    ///     tuple.leaves().map(|(path, leaf)| Ok((path, Tiled::new(&leaf)?))).collect();
    /// let scene = Scene::of_tuple(&arrays?, &Options::new()).expect("no index was given");
    /// assert!(scene.to_terminal(80).contains("{1,0}: s32[4]{0}"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Scene::of`], and for a comparison, which takes two arrays.
    ///
    /// [`Shape::leaves`]: tilewise::Shape::leaves
    pub fn of_tuple(arrays: &[(Vec<usize>, Tiled)], options: &Options) -> Result<Self, Error> {
        if matches!(options.view, View::Compare(_)) {
            return Err(Error::new(ErrorKind::ShapeMismatch, "only arrays can be compared, not tuples"));
        }
        let mut sheets = Vec::new();
        for (path, tiled) in arrays.iter().take(MOST_ARRAYS) {
            let mut sheet = views::sheet_of(tiled, options)?;
            sheet.title = format!("{{{}}}: {}", list(path), sheet.title);
            sheets.push(sheet);
        }
        if let (Some(last), more @ 1..) = (sheets.last_mut(), arrays.len().saturating_sub(MOST_ARRAYS)) {
            last.captions.push(format!("… {} not drawn.", counted(more as u64, "more array")));
        }
        Ok(Self { sheets, options: options.clone() })
    }

    /// Draws the derivation of a layout as a strip of pictures: the array, then each pad, reshape and transpose.
    ///
    /// Every picture shows the index of the array's element in each place, in the colour of its tile. The
    /// options' view has no effect.
    ///
    /// ```
    /// use tilewise_draw::{Options, Scene};
    ///
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let strip = Scene::steps(&tiled, &Options::new()).expect("no index was given");
    /// assert!(strip.to_terminal(80).contains("2. reshape [4,6] → [2,2,3,2]"));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Scene::of`].
    pub fn steps(tiled: &Tiled, options: &Options) -> Result<Self, Error> {
        Ok(Self { sheets: vec![views::steps::sheet(tiled, options)?], options: options.clone() })
    }

    /// The picture as an SVG document. The [crate's documentation](crate) lists the attributes of its cells.
    ///
    /// One HTML page can hold any number of pictures: ids and style rules are unique to each picture, and the same each
    /// time it is drawn.
    #[must_use]
    pub fn to_svg(&self) -> String {
        svg::write(&Figure::of(self), self.options.theme)
    }

    /// The picture as text of at most `width` columns, or as wide as the widest cell; ends in a line feed.
    #[must_use]
    pub fn to_terminal(&self, width: usize) -> String {
        terminal::write(self, width)
    }

    /// The picture as a PNG image, with `scale` pixels per unit of the SVG. Without an explicit theme it is light.
    ///
    /// # Errors
    /// A scale that isn't a positive number, or an image of more than 100 million pixels.
    ///
    /// ```
    /// use tilewise_draw::{Options, Scene, Theme};
    ///
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let scene = Scene::of(&tiled, &Options::new().with_theme(Theme::Dark)).expect("no index was given");
    /// assert!(scene.to_png(2.0).expect("a small picture").starts_with(b"\x89PNG"));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[cfg(feature = "png")]
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, Error> {
        crate::png::write(&Figure::of(self), self.options.theme, scale)
    }
}
