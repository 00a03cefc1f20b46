// Rectangles as pixels: a hundred thousand of them in the time of a frame, since those of memory never overlap.

/// A colour as a pixel, and the same where padding's stripes run.
export interface Ink {
  plain: number;
  striped: number;
}

/// Colours as the browser understands them, as red, green, blue and their share.
function channels(context: CanvasRenderingContext2D, color: string): [number, number, number, number] {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
  return [red!, green!, blue!, alpha! / 255];
}

/// Makes inks of colours.
export function inks(colors: string[], stripes: string): Ink[] {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  const [red, green, blue, alpha] = channels(context, stripes);
  const pixel = (r: number, g: number, b: number) => ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
  return colors.map((color) => {
    const [r, g, b] = channels(context, color);
    const mixed = (below: number, above: number) => below + (above - below) * alpha;
    return { plain: pixel(r, g, b), striped: pixel(mixed(r, red), mixed(g, green), mixed(b, blue)) };
  });
}

/// Units between stripes, and their width.
const STRIPES = 6;
const STRIPE = 1.6;

export class Raster {
  private readonly image: ImageData;
  private readonly pixels: Uint32Array;
  private readonly stripes: number;
  private readonly stripe: number;

  /// `ratio` pixels are one unit.
  constructor(
    readonly width: number,
    readonly height: number,
    readonly ratio: number,
  ) {
    this.image = new ImageData(Math.max(Math.round(width * ratio), 1), Math.max(Math.round(height * ratio), 1));
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.stripes = Math.round(STRIPES * ratio);
    this.stripe = Math.max(1, Math.round(STRIPE * ratio));
  }

  clear(ink: Ink): void {
    this.pixels.fill(ink.plain);
  }

  /// From one corner to another, at least a pixel; nothing where it lies outside.
  rect(left: number, top: number, right: number, bottom: number, { plain, striped }: Ink, isStriped = false): void {
    const { width, height } = this.image;
    const from = Math.max(Math.round(left * this.ratio), 0);
    const above = Math.max(Math.round(top * this.ratio), 0);
    const to = Math.min(Math.max(Math.round(right * this.ratio), from + 1), width);
    const below = Math.min(Math.max(Math.round(bottom * this.ratio), above + 1), height);
    if (to <= from) return;
    for (let y = above; y < below; y++) {
      const row = y * width;
      if (!isStriped) {
        // A call takes longer than a few pixels.
        if (to - from > 16) this.pixels.fill(plain, row + from, row + to);
        else for (let x = row + from; x < row + to; x++) this.pixels[x] = plain;
        continue;
      }
      for (let x = from; x < to; x++) this.pixels[row + x] = (x + y) % this.stripes < this.stripe ? striped : plain;
    }
  }

  /// Onto a canvas of as many pixels.
  put(context: CanvasRenderingContext2D): void {
    context.putImageData(this.image, 0, 0);
  }
}
