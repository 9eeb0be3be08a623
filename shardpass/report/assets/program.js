// The program by its lines: the values that each makes, in the colours of the axes that split them.
const AT_ONCE = 60; // lines that are shown until more are asked for

function programSection() {
  if (!data.program.length) return null;
  const list = el("div", {id: "program"}),
    more = el("button", {type: "button"});
  let shown = 0,
    left = data.program;
  const add = () => {
    list.append(...left.slice(shown, shown + AT_ONCE).map(programLine));
    shown += AT_ONCE;
    more.hidden = shown >= left.length;
    more.textContent = `show more (${Math.max(0, left.length - shown)} lines)`;
  };
  const again = event => {
    const asked = event.target.value.trim().toLowerCase().split(/\s+/);
    left = data.program.filter(line => asked.every(word => wordsOfLine(line).includes(word)));
    shown = 0;
    list.replaceChildren();
    add();
  };
  more.addEventListener("click", add);
  add();
  return el(
    "section",
    {},
    el("h2", {}, "The program and its shardings"),
    el(
      "p.quiet",
      {},
      "Each line with the values that it makes, in the order in which it first runs. A dimension has the " +
        "colour of the mesh axis that splits it; a value opens its layout.",
    ),
    el(
      "div.tools",
      {},
      el(
        "label",
        {},
        "filter",
        el("input", {type: "search", id: "filter-program", placeholder: "dot_general hidden ...", oninput: again}),
      ),
      legend(),
    ),
    list,
    el("p", {}, more),
  );
}

function wordsOfLine(line) {
  line.words =
    line.words ||
    [
      line.full,
      line.line,
      line.backward ? "backward" : "forward",
      ...line.values.flatMap(value => [value.name, value.op, value.type, value.sharding]),
    ]
      .join(" ")
      .toLowerCase();
  return line.words;
}

function programLine(line) {
  const last = line.values[line.values.length - 1],
    holder = el("div.values");
  const where = line.place || (last ? last.op : "no line is known");
  const loop = line.depth
    ? el("span.way", {}, line.depth > 1 ? `in ${line.depth} loops or branches` : "in a loop or branch")
    : null;
  const button = el(
    "button.line",
    {type: "button"},
    el("span", {}, el("span.fold", {}, where), " ", line.backward ? direction(true) : "", " ", loop),
    el(
      "span",
      {},
      line.line ? el("code", {}, line.line) : "",
      line.line && last ? el("br") : "",
      last ? summary(line, last) : "",
    ),
    el("span.quiet.small", {}, counted(line.values.length, "value")),
  );
  folding(button, holder, () => line.values.map(programValue));
  return el("div", {}, button, holder);
}

// the line's last value, which is what it assigns
function summary(line, last) {
  return el(
    "span.small",
    {},
    line.place === "arguments" ? "" : el("span.quiet", {}, last.name ? `${last.name} ` : ""),
    line.place === "arguments" ? el("span.quiet", {}, "arguments of the program") : typed(last.type, last.dims),
  );
}

function programValue(value) {
  const holder = el("div.value-detail");
  const count = value.count > 1 ? `${value.count} \u00d7 ` : "";
  const button = el(
    "button.value-row",
    {type: "button"},
    el("code", {}, `${count}${value.name || "without a name"}`),
    typed(value.type, value.dims),
    el("code.quiet", {}, `${value.op} ${value.sharding}`),
    el("span.number", {}, showBytes(value.bytes)),
  );
  folding(button, holder, () => [
    el("p.small", {}, `${showBytes(value.bytes)} on a device, ${value.sharding}`),
    valuePictures(value),
  ]);
  return el("div", {}, button, holder);
}

function valuePictures(value) {
  const rank = sizesOf(value.type).length;
  if (value.dims.length !== rank) return el("p.quiet", {}, "No picture: axes of the mesh do not say this sharding.");
  return pictures(value.type, value.dims);
}
