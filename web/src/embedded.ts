// The content of a one-file report: a program's audit with what its view asks for later, or two programs' comparison.

import type { ComparisonPage } from "./program/compare";
import { audit, columns, type Report, type Summary, type TimelineJson } from "./program/data";
import { here, type Texts } from "./program/text";
import { programView } from "./program/view";
import type { Pictures } from "./said";

export interface Embedded {
  report: Report;
  timeline: TimelineJson | null;
  summary: Summary;
  /// `OnDemand` as JSON, deflated, in base64.
  on_demand: string;
}

interface OnDemand {
  /// Of the shapes that hold most.
  pictures: Record<string, string>;
  timelines: TimelineJson[];
  /// The program's, where it isn't too long.
  text: string | null;
}

const MISSING = "The program’s text is too long for this report: tilewise audit reads it from the file.";

export const isEmbedded = (data: object): data is Embedded => "on_demand" in data && "summary" in data;
export const isComparison = (data: object): data is ComparisonPage => "changes" in data && "live_bytes" in data;

export function embeddedView({ report, summary, timeline, on_demand }: Embedded): HTMLElement {
  let unpacked: Promise<OnDemand> | undefined;
  /// The parts that are shown only on request.
  const onDemand = () => {
    const bytes = Uint8Array.from(atob(on_demand), (character) => character.charCodeAt(0));
    return (unpacked ??= new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json() as Promise<OnDemand>);
  };
  let text: Promise<Texts> | undefined;
  const texts: Texts = {
    async ask(call, ...args) {
      text ??= onDemand().then(({ text }) => here(text ?? MISSING));
      return (await text).ask(call, ...args);
    },
  };
  const timelines = async (space: number) => {
    const found = (await onDemand()).timelines.find(({ memory_space }) => memory_space === space);
    return found ? columns(found) : null;
  };
  return programView(audit(report, summary, timeline), { pictures: async (shape) => (await onDemand()).pictures[shape] ?? null, timelines, texts });
}

/// A report of `tilewise audit --format json`, without its program.
export const reportView = (report: Report, pictures: Pictures): HTMLElement => programView(audit(report, null, null), { pictures });
