// Memory and traffic over the program, on one axis: the number of the op, in the program's order.
const LEFT = 74,
  RIGHT = 12,
  MEMORY_TOP = 62,
  MEMORY = 190,
  TRAFFIC_TOP = 320,
  TRAFFIC = 110,
  HIGH = 486;
let WIDE = 1000; // as the page is: letters keep their size

function plot() {
  const course = data.course;
  if (!course) return null;
  const told = el("p.told.small", {}, TOLD),
    holder = el("div.plot");
  new ResizeObserver(([{contentRect}]) => {
    const wide = Math.max(300, Math.floor(contentRect.width));
    if (wide === WIDE && holder.firstChild) return;
    WIDE = wide;
    holder.replaceChildren(drawnPlot(course, told));
  }).observe(holder);
  return el("section", {}, el("h2", {}, "Memory and traffic over the program"), holder, told, holdings());
}

function drawnPlot(course, told) {
  const x = op => LEFT + ((WIDE - LEFT - RIGHT) * op) / (course.end + 1);
  const most = Math.max(
    data.memory.total,
    ...course.memory.map(([, size]) => size),
    fits(data.memory.limit, data.memory.total),
  );
  const drawn = svg(
    "svg",
    {viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": "memory and traffic over the program"},
    shades(course, x),
    memoryCurve(course, x, most),
    trafficBars(course, x),
    bottom(course, x),
  );
  const cursor = svg("line.cursor", {y1: MEMORY_TOP, y2: TRAFFIC_TOP + TRAFFIC, x1: -9, x2: -9});
  drawn.append(cursor);
  const follow = event => {
    const box = drawn.getBoundingClientRect(),
      at = ((event.clientX - box.left) * WIDE) / box.width;
    const op = Math.floor(((at - LEFT) / (WIDE - LEFT - RIGHT)) * (course.end + 1));
    if (op < 0 || op > course.end) return;
    cursor.setAttribute("x1", x(op + 0.5));
    cursor.setAttribute("x2", x(op + 0.5));
    told.textContent = tellOp(course, op);
  };
  drawn.addEventListener("pointermove", follow);
  drawn.addEventListener("pointerdown", follow);
  return drawn;
}
const TOLD =
  "Point at the plot: the line that runs there, what is alive, and what is received. " +
  "A bar opens its row of the table.";
// a limit far above is not drawn: the curve would be flat
const fits = (limit, total) => (limit !== null && limit < 2 * total ? limit : 0);

function before(points, op) {
  // the last of [op, ...] that begins at op or before
  let found = null;
  for (const point of points) {
    if (point[0] > op) break;
    found = point;
  }
  return found;
}
function tellOp(course, op) {
  const where = op === course.end ? "results" : (before(course.places, op) || [0, ""])[1] || "no line is known";
  const alive = (before(course.memory, op) || course.memory[0] || [0, 0])[1];
  const here = course.traffic.filter(([at]) => at === op);
  const received = here.map(([, number, bytes]) => {
    const row = data.rows[number];
    return `${row.kind} over ${row.axes.join(", ") || "no axis"} ${showBytes(bytes)}`;
  });
  return `op ${op}, ${where}: ${showBytes(alive)} alive${received.length ? `; received: ${received.join(", ")}` : ""}`;
}

function shades(course, x) {
  const near = []; // ranges with a gap that is hardly seen are drawn as one
  for (const [a, b] of course.backward) {
    const last = near[near.length - 1];
    if (last && x(a) - x(last[1]) < 8) last[1] = b;
    else near.push([a, b]);
  }
  const back = near.map(([a, b]) =>
    svg("rect.shade", {x: x(a), y: MEMORY_TOP, width: x(b) - x(a), height: TRAFFIC_TOP + TRAFFIC - MEMORY_TOP}),
  );
  const loops = course.loops
    .filter(([a, b]) => x(b) - x(a) > 1)
    .map(([a, b]) =>
      svg(
        "g",
        {},
        svg("line.base", {x1: x(a), x2: x(b), y1: MEMORY_TOP - 4, y2: MEMORY_TOP - 4}),
        x(b) - x(a) > 60
          ? svg("text.quiet", {x: (x(a) + x(b)) / 2, y: MEMORY_TOP - 8, "text-anchor": "middle"}, "in a loop or branch")
          : null,
      ),
    );
  return [...back, ...loops];
}

function scaleLines(top, height, most) {
  const scale = ticks(most),
    last = scale[scale.length - 1],
    y = size => top + height * (1 - size / last);
  const lines = scale.map(tick =>
    svg(
      "g",
      {},
      svg("line.grid", {x1: LEFT, x2: WIDE - RIGHT, y1: y(tick), y2: y(tick)}),
      svg("text.quiet", {x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end"}, showBytes(tick)),
    ),
  );
  return {lines, y};
}

function memoryCurve(course, x, most) {
  const {lines, y} = scaleLines(MEMORY_TOP, MEMORY, most),
    memory = data.memory,
    points = course.memory;
  const path =
    points
      .map(([op, size], k) => {
        const next = k + 1 < points.length ? points[k + 1][0] : course.end + 1;
        return `${k ? "L" : `M${x(op)} ${y(0)}L`}${x(op)} ${y(size)}L${x(next)} ${y(size)}`;
      })
      .join("") + (points.length ? `L${x(course.end + 1)} ${y(0)}Z` : "");
  const peak = points.find(([, size]) => size === Math.max(...points.map(point => point[1])));
  const words = peak && `peak ${showBytes(peak[1])}${memory.place ? ` at ${memory.place}` : ""}`;
  const mark =
    peak &&
    svg(
      "g",
      {},
      svg("circle", {cx: x(peak[0] + 0.5), cy: y(peak[1]), r: 4, class: "paint none"}),
      svg("text", {x: Math.min(x(peak[0] + 0.5) + 8, WIDE - RIGHT - 7 * words.length), y: y(peak[1]) - 7}, words),
    );
  const limit = fits(memory.limit, memory.total)
    ? svg(
        "g",
        {},
        svg("line.limit", {x1: LEFT, x2: WIDE - RIGHT, y1: y(memory.limit), y2: y(memory.limit)}),
        svg(
          "text",
          {x: WIDE - RIGHT - 4, y: y(memory.limit) - 5, "text-anchor": "end"},
          `limit ${showBytes(memory.limit)}`,
        ),
      )
    : null;
  return [
    title(16, "Bytes alive on a device", "lower is better"),
    ...lines,
    svg("path.memory", {d: path}),
    mark,
    limit,
  ].filter(Boolean);
}

function trafficBars(course, x) {
  const stacks = new Map();
  for (const [op, number, bytes] of course.traffic) {
    const stack = stacks.get(op) || stacks.set(op, []).get(op);
    stack.push({number, bytes});
  }
  const heights = [...stacks.values()].map(stack => total(stack, "bytes"));
  const {lines, y} = scaleLines(TRAFFIC_TOP, TRAFFIC, Math.max(1, ...heights)),
    bars = [];
  const wide = Math.max(3, Math.min(14, x(1) - x(0)));
  for (const [op, stack] of stacks) {
    let low = 0;
    for (const {number, bytes} of stack) {
      const bar = svg("rect.bar", {
        x: x(op + 0.5) - wide / 2,
        y: y(low + bytes),
        width: wide,
        height: Math.max(0, y(low) - y(low + bytes)),
        onclick: () => showRow(number),
      });
      bars.push(painted(bar, data.rows[number].axes));
      low += bytes;
    }
  }
  return [
    title(
      TRAFFIC_TOP - 34,
      "Bytes received by a device",
      "coloured by mesh axis, all trips of a loop together; lower is better",
    ),
    ...lines,
    ...bars,
  ];
}

function title(y, words, better) {
  return svg("g", {}, svg("text", {x: 0, y, "font-weight": 600}, words), svg("text.quiet", {x: 0, y: y + 15}, better));
}

function bottom(course, x) {
  const y = TRAFFIC_TOP + TRAFFIC,
    step = Math.max(1, 10 ** Math.floor(Math.log10(course.end + 1)));
  const fine = (course.end + 1) / step > 5 ? step : (course.end + 1) / step > 2 ? step / 2 : step / 5;
  const every = WIDE < 600 ? 2 * fine : fine;
  const marks = [];
  for (let op = 0; op <= course.end; op += Math.max(1, Math.round(every))) {
    marks.push(
      svg("line.base", {x1: x(op), x2: x(op), y1: y, y2: y + 4}),
      svg("text.quiet", {x: x(op), y: y + 17, "text-anchor": "middle"}, `${op}`),
    );
  }
  const shaded = course.backward.length ? "shaded: backward, what a derivative computes" : "";
  const middle = {x: (LEFT + WIDE) / 2, "text-anchor": "middle"};
  return [
    svg("line.base", {x1: LEFT, x2: WIDE - RIGHT, y1: y, y2: y}),
    ...marks,
    svg("text.quiet", {...middle, y: y + 34}, "op, in the program's order"),
    svg("text.quiet", {...middle, y: y + 50}, shaded),
  ];
}

function holdings() {
  const some = data.memory.holdings;
  if (!some.length) return null;
  const rows = some.map(one =>
    el(
      "tr",
      {},
      el("td.number", {}, showBytes(one.bytes)),
      el(
        "td.wide",
        {},
        el("code", {}, `${one.count > 1 ? `${one.count} \u00d7 ` : ""}${one.name || "without a name"} ${one.type}`),
      ),
      el("td", {}, one.place),
    ),
  );
  const list = el("div");
  const button = el(
    "button.fold",
    {type: "button"},
    `What is alive at the peak${data.memory.place ? `, ${data.memory.place}` : ""}`,
  );
  folding(button, list, () => el("table", {}, el("tbody", {}, rows)));
  return el("div", {}, button, list);
}
