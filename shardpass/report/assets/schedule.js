// What can be hidden: work and collectives over time, a track for compute and for each mesh axis.
const TRACK = 34,
  SCHEDULE_TOP = 26,
  SCHEDULE_LEFT = 92;
const SCHEDULE_TOLD = "Point at a bar: what runs there. A bar of a collective opens its row of the table.";
const axesOf = (plan, bar) => bar.tracks.map(number => plan.tracks[number]);
const isWork = (plan, bar) => plan.tracks[bar.tracks[0]] === "compute";

function scheduleSection() {
  const plan = data.schedule;
  if (!plan || !data.rows.length) return null;
  const told = el("p.tip.small", {}, SCHEDULE_TOLD),
    holder = el("div.gantt");
  let wide = 0;
  new ResizeObserver(([{contentRect}]) => {
    const now = Math.max(300, Math.floor(contentRect.width));
    if (now === wide && holder.firstChild) return;
    wide = now;
    holder.replaceChildren(drawnSchedule(plan, now, told));
  }).observe(holder);
  const hidden = Math.max(0, data.seconds - plan.exposed);
  return el(
    "section",
    {id: "schedule"},
    el("h2", {}, "What can be hidden"),
    el(
      "p.quiet",
      {},
      `Each collective as early as what it takes is there, on the links of its axes, beside work that does not need it. ` +
        `${showSeconds(hidden)} of the collectives' ${showSeconds(data.seconds)} pass behind other things; ` +
        `${showSeconds(plan.exposed)} are exposed (outlined). A loop is drawn once, as long as all its trips.`,
    ),
    holder,
    told,
  );
}

function drawnSchedule(plan, wide, told) {
  const high = SCHEDULE_TOP + TRACK * plan.tracks.length + 34,
    left = Math.min(SCHEDULE_LEFT, wide / 4);
  const x = time => left + ((wide - left - 10) * time) / plan.seconds;
  const rows = plan.tracks.map((track, number) => {
    const y = SCHEDULE_TOP + TRACK * number;
    return [
      svg("rect.shade", {x: left, y: y + 3, width: wide - left - 10, height: TRACK - 6, rx: 3}),
      svg("text", {x: 0, y: y + TRACK / 2 + 4}, track.length > 12 ? `${track.slice(0, 11)}\u2026` : track),
    ];
  });
  const loops = plan.loops.map(loop => {
    const width = x(loop.end) - x(loop.start),
      words = `\u00d7 ${loop.trips.toLocaleString("en")}`;
    return [
      svg("rect.loop", {x: x(loop.start), y: SCHEDULE_TOP - 4, width, height: TRACK * plan.tracks.length + 8, rx: 4}),
      width > 8 * words.length && !loop.depth
        ? svg("text.quiet", {x: x(loop.start) + 4, y: SCHEDULE_TOP - 9}, words)
        : null,
    ].filter(Boolean);
  });
  const bars = plan.bars.flatMap(bar =>
    bar.tracks.map(number => {
      const shape = svg(isWork(plan, bar) ? "rect.work" : bar.exposed > 0.01 * (bar.end - bar.start) ? "rect.bare" : "rect", {
        x: x(bar.start),
        y: SCHEDULE_TOP + TRACK * number + 6,
        width: Math.max(0.75, x(bar.end) - x(bar.start)),
        height: TRACK - 12,
      });
      if (!isWork(plan, bar)) painted(shape, axesOf(plan, bar));
      if (bar.row !== null) {
        shape.classList.add("bar");
        shape.addEventListener("click", () => showRow(bar.row));
      }
      const tell = () => {
        told.textContent = tellBar(plan, bar);
      };
      shape.addEventListener("pointermove", tell);
      shape.addEventListener("pointerdown", tell);
      return shape;
    }),
  );
  const count = wide < 600 ? 2 : 4;
  const scale = Array.from({length: count + 1}, (_, k) => {
    const time = (plan.seconds * k) / count,
      anchor = k === 0 ? "start" : k === count ? "end" : "middle";
    return svg(
      "text.quiet",
      {x: x(time), y: SCHEDULE_TOP + TRACK * plan.tracks.length + 18, "text-anchor": anchor},
      k ? showSeconds(time) : "0",
    );
  });
  return svg(
    "svg",
    {viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "work and collectives over time"},
    ...rows,
    ...loops,
    ...bars,
    ...scale,
  );
}

function tellBar(plan, bar) {
  const where = bar.place ? ` at ${bar.place}` : "",
    long = showSeconds(bar.end - bar.start);
  if (isWork(plan, bar)) return `${bar.name}${where}: computes for ${long}`;
  return `${bar.name} over ${axesOf(plan, bar).join(", ")}${where}: ${long}, ${showSeconds(bar.exposed)} exposed`;
}

// work beside communication, as two bars of one scale
function balance() {
  const plan = data.schedule;
  if (data.compute === null || !data.rows.length) return null;
  const most = Math.max(data.compute, data.seconds) || 1,
    bare = plan ? plan.exposed : data.seconds;
  const bar = (name, parts, words) => [
    el("span", {}, name),
    el("span.number", {}, words),
    el(
      "span.track",
      {},
      parts.map(([kind, size]) => {
        const piece = el(`span.part.${kind}`, {title: showSeconds(size)});
        piece.style.width = `${(100 * size) / most}%`;
        return piece;
      }),
    ),
  ];
  const hidden = Math.max(0, data.seconds - bare);
  return el(
    "section.card.chart",
    {id: "balance"},
    el("h3", {}, "Compute beside communication"),
    el(
      "div.bars",
      {},
      bar("compute", [["computes", data.compute]], showSeconds(data.compute)),
      bar(
        "communication",
        [
          ["exposed", bare],
          ["hidden", hidden],
        ].filter(([, size]) => size > 0),
        showSeconds(data.seconds),
      ),
      el("span.axis-title", {}, plan ? balanceWords(plan, hidden) : "modelled time; shorter is better"),
    ),
  );
}
const balanceWords = (plan, hidden) =>
  `${showSeconds(plan.exposed)} exposed (full), ${showSeconds(hidden)} hidden behind other things (pale): ` +
  `a step of ${showSeconds(plan.seconds)}, one after the other ${showSeconds(plan.one)}; shorter is better`;
