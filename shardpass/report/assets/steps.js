// A collective as a picture: the array before, after each step, and at the end.
function stepWords(step) {
  const over = step.axes.length ? ` over ${step.axes.join(", ")}` : "";
  return [`${step.kind}${over}`, el("br"), step.bytes ? showBytes(step.bytes) : "on each device alone"];
}

function stepsPicture(row) {
  if (!row.before || !row.after) return null;
  const way = row.way === null ? null : data.ways[row.way];
  const between = way && way.steps.length > 1 && way.panels ? way.panels.slice(1, -1) : [];
  const panels = [
    layoutOf(row.type, row.before),
    ...between.map(panel => ({...panel, sizes: sizesOf(row.type)})),
    layoutOf(row.type, row.after),
  ];
  const all = between.length || (way && way.steps.length === 1);
  const steps = all ? way.steps : [{kind: row.kind, axes: row.axes, bytes: row.each}];
  const out = panels.flatMap((layout, k) => {
    const title = k === 0 ? "Before" : k === panels.length - 1 ? "After" : `After step ${k}`;
    const shown = figure(title, arrayPicture(layout), k === 0 ? notesBefore(row, layout) : words(layout));
    return k ? [arrow(row, steps[k - 1]), shown] : [shown];
  });
  return el(panels.length > 2 ? "div.pictures.steps.long" : "div.pictures.steps", {}, out);
}

function arrow(row, step) {
  // the row's own step stands out
  const own = step.kind === row.kind && step.axes.join() === row.axes.join();
  return el("div.arrow", {}, el(own ? "strong" : "span", {}, stepWords(step)));
}

function notesBefore(row, layout) {
  if (!row.source.startsWith("partial")) return words(layout);
  const summands = `each device holds a summand; ${row.size} of them along ${row.axes.join(", ")} are added`;
  return [summands, ...words(layout).filter(note => !note.startsWith("the same"))];
}
