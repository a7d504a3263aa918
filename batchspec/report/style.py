"""The looks of a report's page, for light and dark screens and for paper."""

from batchspec.report.pictures.markup import Markup

__all__ = ["STYLE"]

STYLE = Markup(
    """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #5b6675; --paper: #ffffff; --line: #dfe3e8;
  --one: #2563a8; --two: #c2610f; --good: #1b7f4b; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --dim: #9aa5b4; --paper: #14181e; --line: #333b46;
  --one: #6ea8e5; --two: #f0a35e; --good: #63c792; --bad: #f2857d; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; }
h2 { font-size: 1.05rem; margin: 0 0 .4rem; }
p { margin: .1rem 0; overflow-wrap: anywhere; }
.quiet, .note, figcaption { color: var(--dim); font-size: .85rem; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
section { margin-top: 1.8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { vertical-align: bottom; font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.text { text-align: left; overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); gap: 1.5rem;
  margin-top: 1.5rem; }
figure { margin: 0; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--dim); font-size: 12px; }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .bar { fill: var(--one); }
svg .curve { fill: none; stroke: currentColor; stroke-width: 2; }
svg .dot { fill: currentColor; }
svg .reach { stroke: currentColor; stroke-width: 2; opacity: .55; }
.series0 { color: var(--one); }
.series1 { color: var(--two); }
figcaption span { margin-right: 1rem; }
figcaption i { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; background: currentColor;
  margin-right: .3rem; }
@media print { main { max-width: none; } figure, section { break-inside: avoid; } }
"""
)
