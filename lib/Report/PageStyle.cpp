//===- PageStyle.cpp - How a page looks, and its script -------------------===//
//
// Neither text has a character that XML would take for its own.
//
//===----------------------------------------------------------------------===//

#include "PageStyle.h"

const char *const attn::kPageStyle = R"css(
:root { color-scheme: light dark; --ink: #1f2328; --faint: #59636e;
  --paper: #ffffff; --card: #f6f8fa; --rule: #d1d9e0; --bar: #0072b2;
  --best: #1a7f37; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #f0f6fc; --faint: #9198a1; --paper: #0d1117; --card: #151b23;
    --rule: #3d444d; --bar: #58a6ff; --best: #3fb950; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 16px; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; line-height: 1.25; margin: 8px 0; }
h2 { font-size: 18px; margin: 32px 0 8px;
  border-bottom: 1px solid var(--rule); padding-bottom: 4px; }
p { margin: 6px 0; overflow-wrap: anywhere; }
.faint { color: var(--faint); }
code, pre, td, th { font-variant-numeric: tabular-nums; }
code, pre { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; font-size: 13px; }
code { overflow-wrap: anywhere; }
.wide { overflow-x: auto; border: 1px solid var(--rule); border-radius: 6px; }
.tall { max-height: 520px; overflow-y: auto; }
.tall th { position: sticky; top: 0; }
.wide pre { margin: 0; padding: 12px; }
.picture { background: #ffffff; }
.picture svg { display: block; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 5px 10px;
  border-bottom: 1px solid var(--rule); }
.sortable th, .sortable td { white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
th { background: var(--card); }
td.number, th.number { text-align: right; }
tr.chosen td { color: var(--best); font-weight: 600; }
tr.unbuilt td { color: var(--faint); }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--bar); }
th button::after { content: " \2195"; color: var(--faint); }
th[aria-sort="ascending"] button::after { content: " \2191"; }
th[aria-sort="descending"] button::after { content: " \2193"; }
.bars { display: grid; grid-template-columns: auto 1fr auto; gap: 4px 12px;
  align-items: center; font-size: 13px; }
.bar { background: var(--bar); height: 12px; border-radius: 2px;
  min-width: 1px; }
.binds { font-weight: 600; }
.binds.bar { background: var(--best); }
details { border-bottom: 1px solid var(--rule); padding: 6px 0; }
summary { cursor: pointer; }
)css";

const char *const attn::kPageScript = R"js(
for (const head of document.querySelectorAll("table.sortable th")) {
  head.querySelector("button").addEventListener("click", function () {
    const heads = Array.from(head.parentNode.children);
    const column = heads.indexOf(head);
    const isUp = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    const value = function (row) {
      return row.children[column].getAttribute("data-value");
    };
    const order = function (a, b) {
      const difference = Number(value(a)) - Number(value(b));
      return Number.isNaN(difference) ? value(a).localeCompare(value(b))
                                      : difference;
    };
    const body = head.closest("table").tBodies[0];
    const rows = Array.from(body.rows).sort(order);
    if (!isUp) rows.reverse();
    for (const row of rows) body.appendChild(row);
  });
}
)js";
