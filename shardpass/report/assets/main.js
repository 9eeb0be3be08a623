// The page from top to bottom.
function findings() {
  const rows = one => one.figures.filter(([, before, after]) => before !== after);
  return el(
    "ol",
    {id: "findings"},
    data.findings.map((one, number) =>
      el(
        "li",
        {},
        el("p", {}, one.headline, number ? "" : " (the edit above)"),
        number ? el("pre", {}, ...diffLines(one.diff.length ? one.diff : one.code)) : null,
        el("p", {}, rows(one).map(([name, before, after]) => `${name} ${before} \u2192 ${after}`).join(", ")),
      ),
    ),
  );
}

const where = one => (one.place ? `${one.place}: ` : "");
const list = some => el("ul", {}, some.map(words => el("li", {}, ...[words].flat())));

// what would save: edits that were compiled, lines that send too much, constraints, annotations
function remedies() {
  const parts = [
    data.findings.length ? [`Edits, compiled by ${data.partitioner}`, findings()] : null,
    data.gap.length
      ? [
          "The same program, made in other ways",
          list(data.gap.map(one => `${one.program}: ${showBytes(one.bytes)} received, ${showBytes(one.memory)} held`)),
        ]
      : null,
    data.constraints.length
      ? [
          "Constraints that cost more than they must",
          list(
            data.constraints.map(
              one =>
                `${where(one)}${showBytes(one.bytes)} to bring ${one.type} to ${one.spec} and on; saves ` +
                `${showBytes(one.saved)} if it did not hold`,
            ),
          ),
        ]
      : null,
    data.hints
      ? [
          "Annotations, planned again with each",
          data.hints.length
            ? list(
                data.hints.map(hint => [
                  `${where(hint)}${hint.name} is ${hint.now}; `,
                  el("code", {}, hint.code),
                  ` saves ${showBytes(hint.saves)} of ${showBytes(hint.before)}`,
                ]),
              )
            : el("p", {}, "No single annotation was found that saves."),
        ]
      : null,
  ].filter(Boolean);
  if (!parts.length) return null;
  return el("section", {id: "remedies"}, el("h2", {}, "Remedies"), ...parts.flatMap(([title, body]) => [el("h3", {}, title), body]));
}

function decisions() {
  const changes = data.changes.map(one => `${where(one)}${one.message}: saves ${showSeconds(one.saved)}`);
  const decided = data.decided.map(one => [
    `${where(one)}${one.words} saves ${one.saves}; to have it in XLA: `,
    el("code", {}, one.code),
  ]);
  if (!changes.length && !decided.length) return null;
  return el("section", {}, el("h2", {}, "Decided, beyond what propagation finds"), list([...decided, ...changes]));
}

document
  .getElementById("head")
  .append(
    el("h1", {}, data.file),
    el("p", {}, counted(data.devices, "device"), data.mesh.length ? ", mesh " : "", legend(), data.partitioned || ", partitioned by shardpass"),
    el(
      "p.quiet.small",
      {id: "made"},
      `shardpass ${data.version}, machine ${data.profile}`,
      data.command ? el("span", {}, ": ", el("code", {}, data.command)) : "",
    ),
  );
const page = document.getElementById("page");
page.append(
  ...[
    worstFirst(),
    headline(),
    ...remarks(),
    data.rows.length ? charts() : null,
    remedies(),
    collectives(),
    scheduleSection(),
    loops(),
    plot(),
    programSection() ||
      el(
        "p.quiet",
        {},
        data.partitioned
          ? "The report is read from the HLO that XLA compiled, which does not say how arrays were split."
          : "The module was partitioned already: its program is not known.",
      ),
    decisions(),
  ].filter(Boolean),
);
