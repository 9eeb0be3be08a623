// The page from top to bottom.
function findings() {
  if (!data.findings.length) return null;
  const rows = one => one.figures.filter(([, before, after]) => before !== after);
  return el(
    "section",
    { id: "findings" },
    el("h2", {}, "Findings: edits that were compiled"),
    el(
      "ol",
      {},
      data.findings.map(one =>
        el(
          "li",
          {},
          el("p", {}, one.headline),
          el("pre", {}, (one.diff.length ? one.diff : one.code).join("\n")),
          el("p", {}, rows(one).map(([name, before, after]) => `${name} ${before} \u2192 ${after}`).join(", ")),
        ),
      ),
    ),
  );
}

function advice() {
  const where = one => (one.place ? `${one.place}: ` : "");
  const hints = (data.hints || []).map(hint =>
    el(
      "li",
      {},
      `${where(hint)}${hint.name} is ${hint.now}; `,
      el("code", {}, hint.code),
      ` saves ${showBytes(hint.saves)} of ${showBytes(hint.before)}`,
    ),
  );
  const none = data.hints && !hints.length ? el("p", {}, "No single annotation was found that saves.") : null;
  const settled = data.settled.map(one =>
    el("li", {}, `${where(one)}${one.told}: saves ${showSeconds(one.saved)}`),
  );
  return [
    data.hints
      ? el("section", {}, el("h2", {}, "What would save, planned again with it"), none, el("ul", {}, hints))
      : null,
    settled.length
      ? el("section", {}, el("h2", {}, "What the search settled, beyond what propagation finds"), el("ul", {}, settled))
      : null,
  ];
}

document
  .getElementById("head")
  .append(
    el("h1", {}, data.file),
    el("p", {}, counted(data.devices, "device"), data.mesh.length ? ", mesh " : "", legend(), data.partitioned),
  );
const [hints, settled] = advice();
const page = document.getElementById("page");
page.append(
  ...[
    headline(),
    findings(),
    ...remarks(),
    data.rows.length ? charts() : null,
    collectives(),
    loops(),
    hints,
    plot(),
    programSection() ||
      el(
        "p.quiet",
        {},
        data.partitioned
          ? "The report is read from the HLO that XLA compiled, which does not say how arrays were split."
          : "The module was partitioned already: its program is not known.",
      ),
    settled,
  ].filter(Boolean),
);
