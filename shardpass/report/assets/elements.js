// Elements, and numbers with their units. All text is set as text; nothing here reads markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = document.getElementById("paints").namespaceURI;

// el("td.number", {title: "..."}, children...): children are elements, strings, or null for none
function el(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return filled(document.createElement(tag || "div"), classes, attributes, children);
}
function svg(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return filled(document.createElementNS(SVG, tag), classes, attributes, children);
}
function filled(made, classes, attributes, children) {
  if (classes.length) made.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return made;
}

// as Python rounds: the even one of two that are as near
function oneDigit(value) {
  const tenths = value * 10,
    low = Math.floor(tenths);
  const rounded = tenths - low === 0.5 ? low + (low % 2) : Math.round(tenths);
  return (rounded / 10).toFixed(1);
}
function showBytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = count,
    unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${count} B` : `${oneDigit(size)} ${units[unit]}`;
}
function showSeconds(seconds) {
  for (const [unit, size] of [
    ["s", 1],
    ["ms", 1e-3],
  ]) {
    if (seconds >= size) return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  }
  return `${Number((seconds * 1e6).toPrecision(3))} \u00b5s`;
}
const counted = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
const share = part => (data.bytes ? Math.round((100 * part) / data.bytes) + "%" : "0%");

// a button that opens what stands after it; made(): what it opens, built when it is first wanted
function folding(button, holder, made) {
  let built = false;
  button.setAttribute("aria-expanded", "false");
  holder.hidden = true;
  button.addEventListener("click", () => {
    if (!built) {
      holder.append(...[made()].flat());
      built = true;
    }
    holder.hidden = !holder.hidden;
    button.setAttribute("aria-expanded", String(!holder.hidden));
  });
}

// round numbers of bytes from 0 to at least most: for scales
function ticks(most) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(Math.max(most, 1)) / Math.log(1024)));
  const span = most / unit;
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find(s => span / s <= 5) || 500;
  const count = Math.max(1, Math.ceil(span / step - 1e-9));
  return Array.from({length: count + 1}, (_, k) => Math.round(k * step * unit));
}
