// Products in turn with a collective: the steps in which tiles pass, and the time with and without that.
const LOOP_COLUMNS = [
  ["product", loopProducts, ""],
  ["in place of", loop => el("code", {}, loop.kind), ""],
  ["axes", loop => chips(loop.axes), ""],
  ["steps", loop => loop.steps.toLocaleString("en"), ".number"],
  ["bytes a step", loop => showBytes(loop.bytes_each), ".number"],
  ["holds", loop => `${showBytes(loop.resident_bytes)} for ${showBytes(loop.whole)}`, ".number"],
  ["time in turn", loop => showSeconds(loop.in_turn), ".number"],
  ["time apart", loop => showSeconds(loop.apart), ".number"],
];

function loopProducts(loop) {
  const more = loop.products > 1 ? ` and ${counted(loop.products - 1, "product")} more` : "";
  return el("span", {title: loop.full}, el("code", {}, loop.op), loop.place ? ` at ${loop.place}` : "", more);
}

function loops() {
  if (!data.loops.length) return null;
  const machines = [...new Set(data.loops.map(loop => loop.profile))].join(", ");
  return el(
    "section",
    {},
    el("h2", {}, "Products in turn with a collective"),
    el(
      "p.quiet",
      {},
      "A device multiplies the tile that it holds while the next one comes. In turn, steps pass behind products; apart, " +
        `products follow the collective; both on machine ${machines}. The modelled time of collectives counts what a ` +
        "loop takes beyond its products.",
    ),
    el(
      "table",
      {id: "loops"},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          LOOP_COLUMNS.map(([head, , kind]) => el(`th${kind}`, {scope: "col"}, head)),
        ),
      ),
      el(
        "tbody",
        {},
        data.loops.map(loop =>
          el(
            "tr",
            {},
            LOOP_COLUMNS.map(([head, shown, kind]) => el(`td${kind}`, {"data-head": head}, shown(loop))),
          ),
        ),
      ),
    ),
  );
}
