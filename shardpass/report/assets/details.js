// What a row of the table opens: all that is known of the collective, and its picture.
function details(row) {
  const facts = [
    [
      "array",
      el("span", {}, el("code", {}, row.array || "without a name"), " ", row.before ? "" : el("code", {}, row.type)),
    ],
    ["from", end(row.type, row.before, row.source)],
    ["to", end(row.type, row.after, row.target)],
    ["why", row.reason || null],
    [
      "your line",
      row.full ? el("span", {}, el("span", {}, row.full), row.line ? el("code.source", {}, row.line) : null) : null,
    ],
    ["scopes and calls", row.path.length ? el("code", {}, row.path.join(" \u203a ")) : null],
    ["name stack", row.names ? el("code", {}, row.names) : null],
    ["bytes", `${row.each.toLocaleString("en")} each time, ${row.bytes.toLocaleString("en")} in one run`],
    ["runs", repeats(row)],
    ["devices", `${row.size} talk to one another${row.axes.length ? `, along ${row.axes.join(", ")}` : ""}`],
  ].filter(([, value]) => value);
  return el(
    "div.both",
    {},
    el(
      "dl",
      {},
      facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    ),
    stepsPicture(row) || el("p.quiet", {}, "No picture: the shardings on both sides are not known."),
  );
}

function end(type, dims, told) {
  if (!dims && !told) return null;
  return el("span", {}, dims ? typed(type, dims) : "", " ", el("code.quiet", {}, told));
}

function repeats(row) {
  const alike = row.count > 1 ? `${row.count} collectives that are alike, ` : "";
  const loop = row.unknown ? ", in a loop whose trips are not known" : "";
  const branch = row.counted ? "" : ", in a branch that receives less than another and is not counted";
  const times = row.runs === 1 ? "once" : `${row.runs.toLocaleString("en")} times`;
  return `${alike}${times} in one run of the program${loop}${branch}`;
}
