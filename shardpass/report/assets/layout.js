// Pictures of a layout: the array cut into tiles, each with its devices, and the mesh, each device with its tile.
// A layout is {dims: [{dim, size, axes, parts, of}], shown}: parts[k] are ranges of a dimension, of[p] says which of
// them the device at place p of the mesh holds, shown[p] whether it holds any of what is drawn.
const DRAWN = 16; // tiles along a dimension
const DEVICES = 64; // of a mesh that is drawn
const STRIP = 9; // the breadth of an axis' strip
const places = Array.from({length: data.devices}, (_, place) => place);
const idOf = place => (data.ids ? data.ids[place] : place);

function coordinates(place) {
  const out = {};
  for (const [name, size] of [...data.mesh].reverse()) {
    out[name] = place % size;
    place = Math.floor(place / size);
  }
  return out;
}

function sizesOf(type) {
  const found = /\[([\d,]*)\]$/.exec(type);
  return found && found[1] ? found[1].split(",").map(Number) : [];
}

// the layout of an array by the axes that split each of its dimensions: as XLA cuts, ceil(size / count) each
function layoutOf(type, dims) {
  const sizes = sizesOf(type);
  const split = sizes.map((size, dim) => dimension(dim, size, dims[dim] || [])).filter(d => d.parts.length > 1);
  const others = split.slice(2);
  return {sizes, dims: split.slice(0, 2), others, shown: places.map(place => others.every(d => d.of[place] === 0))};
}
function dimension(dim, size, axes) {
  const parts = axes.map(partOf),
    count = parts.reduce((product, part) => product * part.size, 1);
  const tile = Math.ceil(size / count);
  const of = places.map(place => {
    const at = coordinates(place);
    return axes.reduce((number, axis, k) => number * parts[k].size + parts[k].at(at[baseName(axis)]), 0);
  });
  const ranges = Array.from({length: count}, (_, k) => [[Math.min(k * tile, size), Math.min((k + 1) * tile, size)]]);
  return {dim, size, axes, parts: ranges, of};
}

const rangeText = part => part.map(([a, b]) => (a < b ? `${a}:${b}` : "empty")).join(" ");
function devicesText(some) {
  // 0-3 8
  const ids = some.map(idOf).sort((a, b) => a - b),
    runs = [];
  for (const id of ids) {
    const last = runs[runs.length - 1];
    if (last && last[1] === id - 1) last[1] = id;
    else runs.push([id, id]);
  }
  const text = runs.map(([a, b]) => (a === b ? `${a}` : b === a + 1 ? `${a} ${b}` : `${a}-${b}`));
  return text.length > 6 ? `${text.slice(0, 5).join(" ")} +${ids.length - 5}` : text.join(" ") || "none";
}

// ---- which dimension runs down and which across: the first that is split down, unless it is alone and the last
function oriented(layout) {
  const [first, second] = layout.dims;
  if (!first) return [null, null];
  if (second) return [first, second];
  return first.dim === 0 && layout.sizes.length > 1 ? [first, null] : [null, first];
}

// a strip for each axis of a dimension, as the heads of a table have levels; a digit says the coordinate
function strips(dim, count, at) {
  let inner = dim.axes.map(axis => partOf(axis).size),
    out = [];
  dim.axes.forEach((axis, level) => {
    const width = inner.slice(level + 1).reduce((a, b) => a * b, 1);
    for (let k = 0; k < count; k += width) {
      const place = Math.floor(k / width) % inner[level];
      const strip = svg(`rect.paint.${axisClass(axis)}`, {
        ...at(level, k, Math.min(width, count - k)),
        "fill-opacity": place % 2 ? 0.6 : 1,
      });
      strip.append(svg("title", {}, `${axis} = ${place}`));
      out.push(strip);
    }
  });
  return out;
}

// the colours of part k of a dimension: of each axis, the stronger the further along it
function tints(dim, k) {
  let left = k;
  return [...dim.axes].reverse().map(axis => {
    const size = partOf(axis).size,
      at = left % size;
    left = Math.floor(left / size);
    return {axis, opacity: 0.06 + 0.24 * (size > 1 ? at / (size - 1) : 0)};
  });
}

// the cells of a picture of the array, row by row: which tile each is, and the devices that hold it
function cellsOf(layout, down, across, rows, columns) {
  const holds = (place, r, c) =>
    layout.shown[place] && (!down || down.of[place] === r) && (!across || across.of[place] === c);
  return Array.from({length: rows * columns}, (_, k) => {
    const r = Math.floor(k / columns),
      c = k % columns;
    return {r, c, text: devicesText(places.filter(place => holds(place, r, c)))};
  });
}

// where its cells stand, and what leaves room for the heads before and above them
function measured(down, across, rows, columns, cells) {
  const longest = (dim, count) =>
    dim ? Math.max(...dim.parts.slice(0, count).map(part => rangeText(part).length)) * 6.6 + 8 : 0;
  const head = longest(down, rows),
    letters = Math.max(...cells.map(cell => cell.text.length)) * 7.2 + 14;
  return {
    head,
    left: head + (down ? down.axes.length * (STRIP + 1) + 3 : 0),
    top: across ? 34 + across.axes.length * (STRIP + 1) : down ? 18 : 2,
    wide: Math.max(44, letters, longest(across, columns), columns === 1 ? 150 : 0),
    high: rows === 1 ? 54 : 30,
  };
}

function headsAcross(across, columns, {left, wide}) {
  const ranges = across.parts
    .slice(0, columns)
    .map((part, c) => svg("text.quiet", {x: left + (c + 0.5) * wide, y: 26, "text-anchor": "middle"}, rangeText(part)));
  const bands = strips(across, columns, (level, k, n) => ({
    x: left + k * wide + 1,
    y: 31 + level * (STRIP + 1),
    width: n * wide - 2,
    height: STRIP,
  }));
  return [...ranges, ...bands];
}

function headsDown(down, rows, {head, top, high}) {
  const ranges = down.parts
    .slice(0, rows)
    .map((part, r) =>
      svg("text.quiet", {x: head - 6, y: top + (r + 0.5) * high + 4, "text-anchor": "end"}, rangeText(part)),
    );
  const bands = strips(down, rows, (level, k, n) => ({
    x: head + level * (STRIP + 1),
    y: top + k * high + 1,
    width: STRIP,
    height: n * high - 2,
  }));
  return [...ranges, ...bands];
}

function arrayPicture(layout) {
  const [down, across] = oriented(layout);
  const rows = down ? Math.min(down.parts.length, DRAWN) : 1;
  const columns = across ? Math.min(across.parts.length, DRAWN) : 1;
  const cells = cellsOf(layout, down, across, rows, columns),
    sizes = measured(down, across, rows, columns, cells);
  const {left, top, wide, high} = sizes;
  const heading = [
    [down, "\u2193"],
    [across, "\u2192"],
  ]
    .filter(([dim]) => dim)
    .map(([dim, way]) => `${way} dimension ${dim.dim} (${dim.size})`)
    .join("  ");
  const out = [svg("text.quiet", {x: 0, y: 11}, heading)];
  if (across) out.push(...headsAcross(across, columns, sizes));
  if (down) out.push(...headsDown(down, rows, sizes));
  for (const {r, c, text} of cells) {
    const box = {x: left + c * wide, y: top + r * high, width: wide, height: high};
    out.push(svg("rect.cell", box), ...tinted(box, down && [down, r], across && [across, c]));
    out.push(svg("text", {x: box.x + wide / 2, y: box.y + high / 2 + 4, "text-anchor": "middle"}, text));
  }
  return drawing(
    Math.max(left + columns * wide, heading.length * 6.4) + 4,
    top + rows * high + 4,
    words(layout).join("; "),
    out,
  );
}

function drawing(width, height, label, parts) {
  return svg("svg.layout", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label}, parts);
}

// a cell in the colours of the tiles that it is of
function tinted(box, ...tiles) {
  return tiles
    .filter(Boolean)
    .flatMap(([dim, k]) => tints(dim, k))
    .map(({axis, opacity}) => svg(`rect.paint.${axisClass(axis)}`, {...box, "fill-opacity": opacity}));
}

// the devices as a grid: the first axis down, all others across
function meshPicture(layout) {
  if (!data.mesh.length || data.devices > DEVICES) return null;
  const [first, ...rest] = data.mesh,
    rows = rest.length ? first[1] : 1;
  const columns = data.devices / rows,
    [down, across] = oriented(layout);
  const part = (dim, place) => (dim.of[place] < 0 ? "-" : rangeText(dim.parts[dim.of[place]]));
  const told = place => layout.dims.map(dim => part(dim, place)).join(", ") || "all";
  const wide = Math.max(58, ...places.map(place => told(place).length * 6.6 + 14)),
    high = 40,
    left = 26,
    top = 24;
  const names = rest.length ? rest.map(([name]) => name).join(", ") : first[0];
  const out = [svg("text.quiet", {x: left, y: 13}, `${names} \u2192`)];
  const turned = {x: 10, y: top + 4, transform: `rotate(90 10 ${top + 4})`};
  if (rest.length) out.push(svg("text.quiet", turned, `${first[0]} \u2192`));
  for (const place of places) {
    const x = left + (place % columns) * wide,
      y = top + Math.floor(place / columns) * high;
    const box = {x, y, width: wide, height: high},
      middle = {x: x + wide / 2, "text-anchor": "middle"};
    const tile = dim => dim && dim.of[place] >= 0 && [dim, dim.of[place]];
    out.push(svg("rect.cell", box), ...tinted(box, tile(down), tile(across)));
    out.push(svg("text", {...middle, y: y + 16}, `${idOf(place)}`));
    out.push(svg("text.part-text", {...middle, y: y + 32}, told(place)));
  }
  return drawing(left + columns * wide + 4, top + rows * high + 4, "the mesh", out);
}

// what a picture cannot say, in words
function words(layout) {
  const others = layout.others || [],
    all = [...layout.dims, ...others];
  const over = d => `${d.parts.length} parts over ${d.axes.join(", ")}`;
  const used = new Set(all.flatMap(d => d.axes.map(baseName)));
  const copies = data.mesh
    .filter(([name, size]) => size > 1 && !used.has(name))
    .map(([name, size]) => `${name} (${size})`);
  return [
    ...layout.dims.map(d => `dimension ${d.dim} (${d.size}) is in ${over(d)}`),
    ...others.map(d => `dimension ${d.dim} is in ${over(d)}; the first is drawn`),
    ...(copies.length ? [`the same on all devices along ${copies.join(" and ")}`] : []),
    ...layout.dims
      .filter(d => d.parts.length > DRAWN)
      .map(d => `${d.parts.length - DRAWN} more parts of dimension ${d.dim} are not drawn`),
  ];
}

function figure(title, picture, notes) {
  return (
    picture &&
    el(
      "figure.picture",
      {},
      el("h3", {}, title),
      picture,
      notes.length ? el("figcaption.quiet", {}, notes.join("; ")) : null,
    )
  );
}

// both pictures of a value
function pictures(type, dims) {
  const layout = layoutOf(type, dims);
  return el(
    "div.pictures",
    {},
    figure("The array: which devices hold which tile", arrayPicture(layout), words(layout)),
    figure("The mesh: which tile each device holds", meshPicture(layout), [
      "a device's number, and below it what it holds",
    ]),
  );
}
