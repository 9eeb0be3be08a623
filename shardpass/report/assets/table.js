// The table: groups that fold, rows that open, columns that sort, and a filter. Rows of a folded group are no elements.
const COLUMNS = [
  ["bytes", "bytes, share of all", row => row.bytes, -1],
  ["time", "time", row => row.seconds, -1],
  ["exposed", "exposed", row => row.exposed ?? 0, -1],
  ["measured", "measured", row => row.measured ?? 0, -1],
  ["runs", "runs", row => row.runs, -1],
  ["collective", "collective", row => row.kind || "", 1],
  ["axes", "axes", row => (row.axes || []).join(","), 1],
  ["array", "array and its sharding", row => row.array || "", 1],
  ["direction", "direction", row => (row.backward ? 1 : 0), 1],
  ["line", "line of your program", row => row.place || "", 1],
].filter(([name]) => !["exposed", "measured"].includes(name) || data.rows.some(row => row[name] !== null));
const OPENED = 1; // groups that stand open at first: the dearest
const MOST_LINES = 300; // that are shown until more are asked for
const view = {by: "line", sort: "bytes", way: -1, filter: "", open: new Set(), rows: new Set(), most: MOST_LINES};

function wordsOf(row) {
  return [
    row.kind,
    ...row.axes,
    row.array,
    row.type,
    row.source,
    row.target,
    row.full,
    ...row.path,
    row.line,
    row.reason,
    row.names,
    row.backward ? "backward" : "forward",
  ]
    .join(" ")
    .toLowerCase();
}
const searched = data.rows.map(wordsOf);
const natural = new Intl.Collator("en", {numeric: true});
function compared(a, b) {
  return typeof a === "number" ? a - b : natural.compare(a, b);
}
function sorted(some) {
  const key = COLUMNS.find(([name]) => name === view.sort)[2];
  return [...some].sort((a, b) => view.way * compared(key(a), key(b)));
}

// the groups as they are shown: those with a row that the filter leaves
function shownGroups() {
  const left = number => view.filter.split(/\s+/).every(word => searched[number].includes(word));
  const made = view.by === "none" ? [{rows: data.rows.map((_, k) => k), place: "", parts: []}] : data.groups[view.by];
  const shown = (groups, level, above) => {
    const out = groups.map((group, number) => {
      const numbers = group.rows.filter(left),
        rows = sorted(numbers.map(k => data.rows[k])),
        key = `${above} ${number}`;
      const some = rows.length === group.rows.length ? group : {...group, ...sums(rows)};
      // a group stands where its first row would: text columns are those of its rows
      return {...rows[0], ...some, place: group.place, key, level, rows, parts: shown(group.parts, level + 1, key)};
    });
    return sorted(out.filter(group => group.rows.length));
  };
  return shown(made, 0, view.by);
}
const total = (rows, key) => rows.reduce((all, row) => all + row[key], 0);
// of the device that receives most: a row brings its bytes to every device, or says to which (received)
function receivedBytes(rows) {
  const some = new Map();
  let everywhere = 0;
  for (const row of rows) {
    for (const {bytes, devices} of row.received || [{bytes: row.bytes, devices: null}]) {
      if (devices === null) everywhere += bytes;
      for (const device of devices || []) some.set(device, (some.get(device) || 0) + bytes);
    }
  }
  return everywhere + [...some.values()].reduce((most, bytes) => Math.max(most, bytes), 0);
}
const sums = rows => ({
  bytes: receivedBytes(rows),
  seconds: total(rows, "seconds"),
  exposed: total(rows, "exposed"),
  measured: total(rows, "measured"),
  runs: total(
    rows.filter(row => row.counted),
    "runs",
  ),
  backward: receivedBytes(rows.filter(row => row.backward)),
});

function shareCell(row, rows) {
  const parts = new Map();
  for (const one of rows) parts.set(one.axes.join(), [...(parts.get(one.axes.join()) || []), one]);
  const sizes = [...parts.values()].map(some => ({axes: some[0].axes, bytes: receivedBytes(some)})),
    all = total(sizes, "bytes"); // of devices that may differ: more than row.bytes
  const pieces = sizes
    .filter(({bytes}) => bytes)
    .map(({axes, bytes}) => {
      const piece = coloured(el("span.part"), axes);
      piece.style.width = `${(100 * row.bytes * bytes) / (all * data.bytes)}%`;
      return piece;
    });
  return el(
    "td.share",
    {"data-bytes": row.bytes},
    el("span.figures", {}, el("span", {}, showBytes(row.bytes)), el("span.quiet", {}, share(row.bytes))),
    el("span.track", {}, pieces),
  );
}
// seconds that are exposed, and measured, where a column has them
const moreTimes = row =>
  ["exposed", "measured"]
    .filter(name => COLUMNS.some(([column]) => column === name))
    .map(name => el("td.number", {[`data-${name}`]: row[name]}, showSeconds(row[name])));
const direction = back =>
  el(`span.way.${back ? "backward" : "forward"}`, {}, back ? "\u2190 backward" : "forward \u2192");

function groupRow(group) {
  const open = isOpen(group),
    back = group.bytes ? Math.round((100 * group.backward) / group.bytes) : 0;
  const button = el("button.fold", {type: "button", "aria-expanded": String(open)}, group.place || "no line is known");
  button.style.marginLeft = `${1.5 * group.level}em`;
  const line = el(
    group.level ? "tr.group.part" : "tr.group",
    {onclick: () => toggle(group, open)},
    shareCell(group, group.rows),
    el("td.number", {}, showSeconds(group.seconds)),
    ...moreTimes(sums(group.rows)),
    el("td.number", {}, `${group.runs.toLocaleString("en")}\u00d7`),
    el("td.wide", {colspan: 4}, button, group.line ? el("code.source", {}, group.line) : null),
    el("td", {}, el("span.quiet.small", {}, `${counted(group.rows.length, "row")}, ${back}% backward`)),
  );
  const inside = () => (group.parts.length ? group.parts.flatMap(groupRow) : group.rows.flatMap(collectiveRow));
  return [line, ...(open ? inside() : [])];
}
const isOpen = group => view.open.has(group.key);
function toggle(group, open) {
  if (open) view.open.delete(group.key);
  else view.open.add(group.key);
  draw();
}
const withParts = groups => groups.flatMap(group => [group, ...withParts(group.parts)]);

function collectiveRow(row) {
  const number = data.rows.indexOf(row),
    open = view.rows.has(number);
  const button = el(
    "button.fold",
    {type: "button", "aria-expanded": String(open), "aria-label": `details of ${row.kind}`},
    row.kind,
  );
  const flip = () => {
    if (open) view.rows.delete(number);
    else view.rows.add(number);
    draw();
  };
  const line = el(
    open ? "tr.row.open" : "tr.row",
    {"data-row": number, onclick: flip},
    shareCell(row, [row]),
    el("td.number", {"data-seconds": row.seconds}, showSeconds(row.seconds)),
    ...moreTimes(row),
    el(
      "td.number",
      {},
      row.unknown ? `${row.runs.toLocaleString("en")} or more` : `${row.runs.toLocaleString("en")}\u00d7`,
    ),
    el("td", {}, button),
    el("td", {}, chips(row.axes)),
    el(
      "td.wide",
      {},
      el("code", {}, row.array),
      " ",
      row.before ? typed(row.type, row.before) : el("code", {}, row.type),
      row.source || row.target
        ? el("div.quiet.small", {}, el("code", {}, `${row.source || "?"} \u2192 ${row.target || "?"}`))
        : null,
    ),
    el("td", {}, direction(row.backward)),
    el("td", {}, view.by === "line" ? "" : row.place),
  );
  return open ? [line, el("tr.detail", {}, el("td", {colspan: COLUMNS.length}, details(row)))] : [line];
}

function heads() {
  return el(
    "tr",
    {},
    COLUMNS.map(([name, title, , way]) =>
      el(
        "th",
        {scope: "col", "aria-sort": view.sort !== name ? "none" : view.way < 0 ? "descending" : "ascending"},
        el(
          "button",
          {
            type: "button",
            onclick: () => {
              view.way = view.sort === name ? -view.way : way;
              view.sort = name;
              draw();
            },
          },
          title,
        ),
      ),
    ),
  );
}

const table = el("table", {id: "collectives"}, el("thead"), el("tbody"));
const told = el("p.quiet.small", {role: "status", id: "left"});
const rest = el(
  "button",
  {
    type: "button",
    id: "more",
    onclick: () => {
      view.most *= 4;
      draw();
    },
  },
  "show more",
);
function draw() {
  const groups = shownGroups(),
    rows = groups.flatMap(group => group.rows),
    focus = focused(),
    lines = [];
  const parts =
    view.by === "none" ? rows.map(row => () => collectiveRow(row)) : groups.map(group => () => groupRow(group));
  for (const part of parts) {
    if (lines.length >= view.most) break;
    lines.push(...part());
  }
  rest.hidden = lines.length < view.most;
  table.tHead.replaceChildren(heads());
  table.tBodies[0].replaceChildren(...lines.slice(0, view.most));
  const sizes = `${showBytes(receivedBytes(rows))} of ${showBytes(data.bytes)}`;
  told.textContent = view.filter ? `${counted(rows.length, "row")} of ${data.rows.length}, ${sizes}` : "";
  if (focus >= 0) table.querySelectorAll("button")[focus]?.focus(); // what was drawn again keeps the keyboard's place
}
const focused = () => [...table.querySelectorAll("button")].indexOf(document.activeElement);

// opens the row, wherever it is folded or left out, and shows it
function showRow(number) {
  view.filter = document.getElementById("filter").value = "";
  view.most = Infinity;
  const around = withParts(shownGroups()).filter(group => group.rows.includes(data.rows[number]));
  for (const group of around) view.open.add(group.key);
  view.rows.add(number);
  draw();
  table.querySelector(`[data-row="${number}"]`)?.scrollIntoView({block: "center"});
}

function collectives() {
  if (!data.rows.length)
    return el("section", {}, el("h2", {}, "Collectives"), el("p", {}, "None: no device receives anything."));
  const choose = el(
    "select",
    {
      id: "group-by",
      onchange: event => {
        view.by = event.target.value;
        openDearest();
        draw();
      },
    },
    ["line", "axis", "kind", "array", "none"].map(by => el("option", {value: by}, by === "none" ? "nothing" : by)),
  );
  const filter = el("input", {
    id: "filter",
    type: "search",
    placeholder: "all_gather model params ...",
    oninput: event => {
      view.filter = event.target.value.trim().toLowerCase();
      draw();
    },
  });
  const all = el(
    "button",
    {
      type: "button",
      id: "fold-all",
      onclick: () => {
        const groups = withParts(shownGroups()),
          folded = groups.some(group => !isOpen(group));
        view.open = new Set(folded ? groups.map(group => group.key) : []);
        draw();
      },
    },
    "fold or unfold all",
  );
  openDearest();
  draw();
  return el(
    "section",
    {},
    el("h2", {}, "What each line costs"),
    el(
      "p.quiet",
      {},
      "The dearest first. A row opens: why the collective is there, and what it does as a picture. " +
        "Collectives that repeat, of layers say, are one row.",
    ),
    el("div.tools", {}, el("label", {}, "filter", filter), el("label", {}, "grouped by", choose), all),
    told,
    table,
    el("p", {}, rest),
  );
}
function openDearest() {
  const dearest = groups => groups.slice(0, OPENED).flatMap(group => [group.key, ...dearest(group.parts)]);
  view.open = new Set(view.by === "none" ? [] : dearest(shownGroups()));
}
