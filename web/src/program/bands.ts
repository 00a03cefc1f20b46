// Which pieces have which colour: those of a line, or of a layer.

import { stands, type Audit, type Timeline } from "./data";
import { aliveAt, byOwner, sum, type Row } from "./rows";

/// Colours of lines or layers; behind them that of all others.
export const TILES = 8;

/// Numbers that all bands over all moments may be together.
const LARGEST = 2_000_000;

/// Whose colours pieces have.
export type Colouring = "lines" | "layers";

export interface Bands {
  /// How many there are; the last is that of all others.
  count: number;
  /// The band of each piece.
  of: Uint16Array;
  /// Of a band, which of the tiles' colours it has.
  tile: (band: number) => number;
  /// A band's name; that of all others, too.
  name: (band: number) => string;
  /// The names that the colours stand for.
  legend: { name: string; title: string; tile: number }[];
}

export function bands(audit: Audit, timeline: Timeline, colouring: Colouring): Bands {
  const { owner, layer } = timeline.pieces;
  if (colouring === "lines") {
    const lines = largest(audit, timeline).slice(0, TILES);
    const numbers = new Map(lines.map(({ owner }, at) => [owner, at]));
    const of = timeline.owners.map((line) => numbers.get(line) ?? TILES);
    const legend = lines.map(({ name, owner }, tile) => ({ name, title: owner, tile }));
    return { count: TILES + 1, of: Uint16Array.from(owner, (owner) => of[owner] ?? TILES), tile: (band) => band, name: (band) => lines[band]?.name ?? "other lines", legend };
  }
  // Where they are very many, neighbours are together.
  const layers = timeline.layers.length;
  const count = Math.min(layers, Math.max(TILES, Math.floor(LARGEST / Math.max(timeline.moments, 1))));
  const band = (layer: number) => (layer < layers ? Math.floor((layer * count) / layers) : count);
  const tile = (band: number) => (band === count ? TILES : band % TILES);
  const few = layers <= 2 * TILES ? timeline.layers : [...timeline.layers.slice(0, TILES), `… ${timeline.layers.at(-1)}`];
  const short = (name: string) => name.split("/").slice(-2).join("/");
  const legend = few.map((name, at) => ({ name: short(name), title: name, tile: tile(band(name.startsWith("…") ? layers - 1 : at)) }));
  const name = (band: number) => (band === count ? "no layer" : short(timeline.layers[Math.ceil((band * layers) / count)] ?? ""));
  return { count: count + 1, of: Uint16Array.from(layer, band), tile, name, legend };
}

/// The colours to begin with: those of layers where there are some and one line holds most of what is temporary, and would be
/// all of the picture.
export function colouringOf(audit: Audit, timeline: Timeline): Colouring {
  if (timeline.layers.length < 2) return "lines";
  const temporary = temporaryAtPeak(audit, timeline);
  const [most] = byOwner(temporary);
  const { layer, bytes } = timeline.pieces;
  const layered = (most?.rows ?? (most ? [most] : [])).flatMap(({ pieces }) => pieces).filter((piece) => layer[piece]! < timeline.layers.length);
  // Of what is in one layer alone they tell no more.
  const held = layered.reduce((sum, piece) => sum + bytes[piece]!, 0);
  return held * 2 > sum(temporary, (row) => row.bytes) ? "layers" : "lines";
}

const temporaryAtPeak = (audit: Audit, timeline: Timeline) => aliveAt(audit, timeline, timeline.peak_moment ?? 0).filter((row) => !stands(row));

/// The lines that hold enough at the peak to be seen.
function largest(audit: Audit, timeline: Timeline): Row[] {
  const temporary = temporaryAtPeak(audit, timeline);
  const total = sum(temporary, (row) => row.bytes);
  return byOwner(temporary).filter((row) => row.bytes * 200 >= total);
}

/// The colour of a row, as a CSS variable's name.
export type Paint = (row: Row) => string;

/// The colours of rows in a picture of these bands; without bands, only that of standing rows.
export function paint(bands: Bands | null): Paint {
  const one = (row: Row) => {
    if (row.role !== "" && stands(row)) return "--resident";
    const tiles = new Set(row.pieces.map((piece) => bands?.tile(bands.of[piece]!)));
    const [tile = TILES] = tiles;
    return tiles.size > 1 || tile === TILES ? "--other" : `--tile-${tile}`;
  };
  return (row) => {
    const colors = new Set((row.rows ?? [row]).map(one));
    return colors.size === 1 ? [...colors][0]! : "--other";
  };
}
