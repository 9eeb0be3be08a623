// Mesh axes: each has one colour, on the whole page. Several axes together are striped in theirs.
const axisNames = data.mesh.map(([name]) => name);
const axisSize = Object.fromEntries(data.mesh);
const baseName = axis => axis.replace(/:\(\d+\)\d+$/, ""); // of a part of an axis, data:(1)2
const partOf = axis => {
  // how coordinates of an axis give the place along this part of it
  const found = /:\((\d+)\)(\d+)$/.exec(axis),
    size = axisSize[baseName(axis)] || 1;
  if (!found) return {size, at: place => place};
  const pre = Number(found[1]),
    own = Number(found[2]);
  return {size: own, at: place => Math.floor(place / (size / (pre * own))) % own};
};
const axisClass = axis => {
  const place = axisNames.indexOf(baseName(axis));
  return place < 0 ? "none" : `a${place % 8}`;
};
const axisColour = axis => `var(--axis-${axisClass(axis).replace("a", "")})`;

function chip(axis, words = axis) {
  return el(`span.chip.${axisClass(axis)}`, {}, words);
}
function chips(axes) {
  return axes.length
    ? el(
        "span.chips",
        {},
        axes.map(axis => chip(axis)),
      )
    : el("span.quiet", {}, "no axis");
}
function legend() {
  return el(
    "span.chips",
    {},
    data.mesh.map(([name, size]) => chip(name, `${name} ${size}`)),
  );
}

// the background of an HTML element in the colours of axes
function coloured(element, axes) {
  const colours = (axes.length ? axes : ["?"]).map(axisColour);
  const stripes = colours.map((colour, k) => `${colour} ${5 * k}px ${5 * k + 5}px`);
  element.style.background =
    colours.length === 1 ? colours[0] : `repeating-linear-gradient(135deg, ${stripes.join(", ")})`;
  return element;
}
// the same for an SVG shape: a class, or a pattern that is made when it is first wanted
const patterns = new Map();
function painted(shape, axes) {
  if (axes.length < 2) {
    shape.classList.add("paint", axisClass(axes[0] || "?"));
    return shape;
  }
  const key = axes.map(axisClass).join("-");
  if (!patterns.has(key)) {
    const bands = axes.map((axis, k) => svg(`rect.paint.${axisClass(axis)}`, {x: 4 * k, width: 4, height: 8}));
    const shown = {
      id: `stripes-${key}`,
      width: 4 * axes.length,
      height: 8,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    };
    document.querySelector("#paints defs").append(svg("pattern", shown, bands));
    patterns.set(key, `url(#stripes-${key})`);
  }
  shape.setAttribute("fill", patterns.get(key));
  return shape;
}

// f32[2048,256] with each dimension in the colours of the axes that split it
function typed(type, dims) {
  const found = /^(.*)\[([\d,]*)\]$/.exec(type);
  if (!found) return el("code", {}, type);
  const sizes = found[2] ? found[2].split(",") : [];
  const shown = sizes.flatMap((size, k) => {
    const axes = (dims && dims[k]) || [];
    const marks = axes.map((axis, level) =>
      el(
        `span.dim.${axisClass(axis)}`,
        {title: `split over ${axes.join(", ")}`},
        level ? "" : size,
        el("span.small", {}, `/${axis}`),
      ),
    );
    const dim = axes.length ? marks : [size];
    return k ? [", ", ...dim] : dim;
  });
  return el("code", {}, `${found[1]}[`, shown, "]");
}
