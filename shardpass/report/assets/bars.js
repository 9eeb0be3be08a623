// The headline: the worst in a sentence, five numbers, and bars of bytes by direction and by kind of collective.
function card(title, value, note, id) {
  return el(
    "div.card",
    {id},
    el("div.quiet.small", {}, title),
    el("div.value", {}, value),
    el("div.quiet.small", {}, note),
  );
}

function worstFirst() {
  const {sentence, code, saves} = data.worst;
  return el(
    "section.worst",
    {id: "worst", "aria-label": "what costs most"},
    el("p.sentence", {}, sentence),
    code.length ? el("pre", {}, ...diffLines(code)) : null,
    saves ? el("p.quiet", {}, saves) : null,
  );
}

// lines of an edit: those of a diff that go and come in their colours
function diffLines(lines) {
  const kind = line => (/^(---|\+\+\+|@@)/.test(line) ? "quiet" : line[0] === "-" ? "gone" : line[0] === "+" ? "come" : "");
  return lines.map(line => el(`span.edit${kind(line) ? `.${kind(line)}` : ""}`, {}, `${line}\n`));
}

function headline() {
  const memory = data.memory,
    received = showBytes(data.bytes) + (data.most === null || !data.unknown ? "" : ` to ${showBytes(data.most)}`);
  const parts = memory && [
    ["arguments", memory.arguments],
    ["results", memory.results],
    ["temporaries", memory.temporaries],
  ];
  return el(
    "section.cards",
    {"aria-label": "the whole program"},
    card("bytes received by a device", received, "in one run; lower is better", "card-bytes"),
    card(
      "modelled time of collectives",
      showSeconds(data.seconds),
      `profile ${data.profile}; lower is better`,
      "card-time",
    ),
    data.compute !== null &&
      card(
        data.schedule ? "modelled time of a step, overlapped" : "modelled time of a step",
        showSeconds(data.schedule ? data.schedule.seconds : data.step),
        `${data.schedule ? `${showSeconds(data.step)} one after the other; ` : ""}computes for ${showSeconds(data.compute)}${
          data.work.some(one => one.place)
            ? ` (${data.work
                .filter(one => one.place)
                .map(one => `${one.place} ${showSeconds(one.seconds)}`)
                .join(", ")})`
            : ""
        }, bounded by ${data.bound}; lower is better`,
        "card-step",
      ),
    memory &&
      card(
        "peak memory of a device",
        showBytes(memory.total),
        `${parts.map(([name, size]) => `${name} ${showBytes(size)}`).join(", ")}; lower is better`,
        "card-memory",
      ),
    card(
      "collectives that run",
      data.runs.toLocaleString("en"),
      "in one run, loops multiplied; fewer is better",
      "card-runs",
    ),
  );
}

function remarks() {
  const memory = data.memory,
    out = [];
  if (data.unknown) {
    const most = data.trips === null ? "" : `; with ${data.trips} trips the greater number`;
    out.push(
      el("p.bad", {}, `${counted(data.unknown, "collective")} in loops whose trips are not known count once${most}`),
    );
  }
  if (memory && memory.limit !== null && memory.total > memory.limit) {
    out.push(
      el("p.bad", {}, `does not fit ${showBytes(memory.limit)}: ${showBytes(memory.total - memory.limit)} too much`),
    );
  }
  return out;
}

function barChart(title, bars) {
  const scale = ticks(Math.max(...bars.map(bar => bar.bytes), 1)),
    most = scale[scale.length - 1];
  const lines = bars.flatMap(bar => [
    el("span", {}, bar.name),
    el("span.number", {}, `${showBytes(bar.bytes)}, ${bar.runs.toLocaleString("en")}\u00d7`),
    el(
      "span.track",
      {title: bar.parts.map(p => `${p.axes.join(", ") || "no axis"}: ${showBytes(p.bytes)}`).join("\n")},
      bar.parts
        .filter(part => part.bytes)
        .map(part => {
          const piece = coloured(el("span.part"), part.axes);
          piece.style.width = `${(100 * bar.bytes * part.bytes) / (most * total(bar.parts, "bytes"))}%`;
          return piece;
        }),
    ),
  ]);
  return el(
    "section.card.chart",
    {},
    el("h3", {}, title),
    el(
      "div.bars",
      {},
      lines,
      el(
        "span.scale",
        {"aria-hidden": "true"},
        scale.map(tick => el("span", {}, showBytes(tick))),
      ),
      el("span.axis-title", {}, "bytes that a device receives in one run, coloured by mesh axis; shorter is better"),
    ),
  );
}

function charts() {
  return el(
    "div.charts",
    {},
    balance(),
    barChart("Forward and backward", data.bars.direction),
    barChart("By kind of collective", data.bars.kind),
  );
}
