"""The look of the page: one style sheet, for light and dark, wide and narrow, that asks for no other file."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1f2430; --muted: #626a78; --line: #e0ddd5; --track: #eceae4;
  --all: #39424f; --warm: #b84e14; --cold: #2563a8; --good: #2f7d4f; --lost: #b3443c; --chip: #f1efe9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14161b; --card: #1b1e25; --ink: #e4e7ec; --muted: #9aa3b2; --line: #2f343f; --track: #2a2e38;
    --all: #b9c2d0; --warm: #f0934e; --cold: #6fb0f5; --good: #5fbf86; --lost: #e8786f; --chip: #262a33;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; }
h2 { font-size: 1.2rem; margin: 2.75rem 0 0.25rem; }
h3 { font-size: 1rem; margin: 0; }
p { margin: 0.35rem 0 0.75rem; max-width: 46rem; }
.muted, .facts { color: var(--muted); }
.facts { font-size: 0.9rem; overflow-wrap: anywhere; }
code { font: 0.88em/1.4 ui-monospace, "Cascadia Mono", Menlo, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
ul.short { padding-left: 1.2rem; max-width: 46rem; }
ul.short li { margin: 0.3rem 0; }
nav { font-size: 0.9rem; margin: 1rem 0; display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; }
a { color: var(--cold); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--muted); font-weight: 600; font-size: 0.8rem; vertical-align: bottom; }
th, td { padding: 0.4rem 0.9rem 0.4rem 0; border-bottom: 1px solid var(--line); }
td { vertical-align: top; }
td code { overflow-wrap: break-word; }
th.n, td.n { text-align: right; white-space: nowrap; }
tr.ours td { font-weight: 650; }
small { color: var(--muted); font-weight: 400; }
.range { display: block; position: relative; height: 6px; min-width: 5.5rem; margin: 0.3rem 0 0; border-radius: 3px;
  background: var(--track); }
.range i, .range b { position: absolute; top: 0; height: 6px; border-radius: 3px; }
.range i { opacity: 0.45; }
.range b { width: 4px; margin-left: -2px; top: -2px; height: 10px; }
.all { background: var(--all); } .warm { background: var(--warm); } .cold { background: var(--cold); }
.bars { display: grid; grid-template-columns: minmax(7rem, 15rem) 1fr minmax(4.5rem, auto); gap: 0.45rem 0.8rem;
  align-items: center; font-size: 0.9rem; font-variant-numeric: tabular-nums; margin: 0.75rem 0; }
.bars > .value { text-align: right; white-space: nowrap; }
.track { position: relative; height: 1rem; background: var(--track); border-radius: 3px; overflow: hidden; }
.track i { position: absolute; top: 0; bottom: 0; border-radius: 3px; min-width: 2px; }
.good { background: var(--good); } .lost { background: var(--lost); } .plain { background: var(--all); }
.failure { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.9rem 1rem;
  margin: 0.75rem 0; }
.failure header { display: flex; flex-wrap: wrap; gap: 0.2rem 0.8rem; align-items: baseline; }
.count { margin-left: auto; font-variant-numeric: tabular-nums; color: var(--muted); font-size: 0.9rem; }
.failure p { font-size: 0.92rem; margin: 0.35rem 0; }
.chip { background: var(--chip); border-radius: 999px; padding: 0.05rem 0.6rem; font-size: 0.78rem;
  white-space: nowrap; }
.none { opacity: 0.65; }
.pair { border-bottom: 1px solid var(--line); padding: 0.6rem 0; }
.pair header { display: flex; flex-wrap: wrap; gap: 0.15rem 0.7rem; align-items: baseline; overflow-wrap: anywhere; }
.pair p { font-size: 0.9rem; margin: 0.25rem 0; }
summary { cursor: pointer; color: var(--cold); font-size: 0.9rem; }
.example { border-left: 3px solid var(--line); padding: 0.1rem 0 0.1rem 0.8rem; margin: 0.75rem 0; font-size: 0.9rem;
  overflow-wrap: anywhere; }
.example > div { margin: 0.1rem 0; display: grid; grid-template-columns: 4rem minmax(0, 1fr); }
.label { color: var(--muted); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem 2rem; }
figure { margin: 0.5rem 0; }
figcaption { font-size: 0.9rem; color: var(--muted); max-width: 34rem; }
svg { width: 100%; max-width: 34rem; height: auto; display: block; }
svg text { fill: var(--muted); font: 11px system-ui, "DejaVu Sans", sans-serif; }
svg text.strong { fill: var(--ink); font-weight: 600; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--muted); stroke-width: 1; }
svg .honest { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 4 3; }
svg .s-all { stroke: var(--all); fill: var(--all); } svg .s-warm { stroke: var(--warm); fill: var(--warm); }
svg .s-cold { stroke: var(--cold); fill: var(--cold); } svg .s-good { stroke: var(--good); fill: var(--good); }
svg path { fill: none !important; stroke-width: 2; }
svg .band { stroke: none; opacity: 0.16; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; font-size: 0.85rem; color: var(--muted); }
.legend i { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 2px; margin-right: 0.35rem;
  vertical-align: -1px; }
@media (max-width: 40rem) {
  body { font-size: 15px; }
  .bars { grid-template-columns: 1fr auto; gap: 0.1rem 0.6rem; grid-auto-flow: dense; }
  .bars > .track { grid-column: 1 / -1; margin-bottom: 0.5rem; }
  .bars > .value { grid-column: 2; }
  .scroll > table { min-width: 38rem; }
  .failure .count, .pair .count { margin-left: 0; width: 100%; }
  th, td { padding-right: 0.7rem; }
}
@media print { details { display: block; } body { background: #fff; } }
"""
