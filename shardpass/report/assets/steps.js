// A collective as a picture: the array before, after each step, and at the end.
function stepWords(step) {
  const over = step.axes.length ? ` over ${step.axes.join(", ")}` : "";
  return [`${step.kind}${over}`, el("br"), step.bytes ? showBytes(step.bytes) : "on each device alone"];
}

function stepsPicture(row) {
  const way = row.way === null ? null : data.ways[row.way], own = {kind: row.kind, axes: row.axes, bytes: row.each};
  const sums = row.source.startsWith("partial");
  if (!row.before || !row.after) return null;
  const ends = [layoutOf(row.type, row.before), layoutOf(row.type, row.after)];
  const between = way && way.steps.length > 1 && way.panels ? way.panels.slice(1, -1) : [];
  const steps = way && (between.length || way.steps.length === 1) ? way.steps : [own];
  const panels = [ends[0], ...between.map(panel => ({...panel, sizes: sizesOf(row.type)})), ends[1]];
  const out = [];
  panels.forEach((layout, k) => {
    if (k) {
      const words = steps[k - 1];
      const own = words.kind === row.kind && words.axes.join() === row.axes.join();
      out.push(el("div.arrow", {}, el(own ? "strong" : "span", {}, stepWords(words))));
    }
    const title = k === 0 ? "Before" : k === panels.length - 1 ? "After" : `After step ${k}`;
    const notes = k === 0 && sums ? [`each device holds a summand; ${row.size} of them along ${row.axes.join(", ")} are added`] : words(layout);
    out.push(figure(title, arrayPicture(layout), k === 0 && sums ? [...notes, ...words(layout).filter(w => !w.startsWith("the same"))] : notes));
  });
  return el(panels.length > 2 ? "div.pictures.steps.long" : "div.pictures.steps", {}, out);
}
