"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  /** An element; children are elements and texts, which are never read as HTML. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function makeSvg(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const list = values => Object.entries(values || {}).map(([name, value]) => `${name} = ${value}`).join(", ");
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const quiet = text => make("p", { class: "faint" }, text);

  // Lines of the source, and the lines of other texts that come from them. -------------------------

  /** Rows by "file:line"; those of the source stay, those of the view go with it. */
  const sourceRows = new Map(), viewRows = new Map();
  let pinned = [];

  const keyOf = ([file, line]) => `${file}:${line}`;

  function getRows(keys) {
    const rows = new Set();
    for (const key of keys)
      for (const table of [sourceRows, viewRows])
        for (const row of table.get(key) || []) rows.add(row);
    return rows;
  }

  function setPinned(keys) {
    for (const row of getRows(pinned)) row.classList.remove("pinned");
    pinned = keys;
    for (const row of getRows(pinned)) row.classList.add("pinned");
  }

  /** Brings the first row of `table` that belongs to the lines into sight. */
  function scrollTo(table, keys) {
    const rows = keys.flatMap(key => table.get(key) || []);
    const first = rows.reduce(
      (a, b) => (!a || b.compareDocumentPosition(a) & Node.DOCUMENT_POSITION_FOLLOWING ? b : a), null);
    if (first) first.scrollIntoView({ block: "center" });
  }

  /** Links a row to lines of the source; `other` has what it is linked with. */
  function link(row, places, table, other) {
    if (!places.length) return row;
    const keys = places.map(keyOf);
    for (const key of keys) {
      if (!table.has(key)) table.set(key, []);
      table.get(key).push(row);
    }
    row.classList.add("linked");
    const mark = on => () => getRows(keys).forEach(r => r.classList.toggle("hover", on));
    row.addEventListener("mouseenter", mark(true));
    row.addEventListener("mouseleave", mark(false));
    row.addEventListener("click", () => {
      if (String(getSelection())) return;
      const again = pinned.join() === keys.join();
      setPinned(again ? [] : keys);
      if (again) return;
      if (other === sourceRows) showFile(places[0][0]);
      scrollTo(other, keys);
    });
    if (keys.some(key => pinned.includes(key))) row.classList.add("pinned");
    return row;
  }

  function makeRow(number, text) {
    const cell = make("span", { class: "text" });
    const comment = text.indexOf("//");
    if (comment >= 0)
      cell.append(text.slice(0, comment), make("span", { class: "comment" }, text.slice(comment)));
    else cell.append(text);
    return make("div", { class: "row" }, make("span", { class: "number" }, String(number)), cell);
  }

  // The source. ---------------------------------------------------------------------------------

  const mainFile = data.files.length - 1;
  const fileViews = new Map();
  const filePane = make("div", { class: "file code" });
  const fileTabs = make("nav", { role: "tablist" });

  function where(diagnostic) {
    const name = diagnostic.path === undefined ? data.files[diagnostic.file].name : diagnostic.path;
    return name ? `${name}${diagnostic.line ? `:${diagnostic.line}:${diagnostic.column}` : ""}: ` : "";
  }

  function makeDiagnostic(diagnostic) {
    const box = make("div", { class: `diagnostic ${diagnostic.severity}` },
                     `${diagnostic.path === undefined ? "" : where(diagnostic)}${diagnostic.severity}: ${diagnostic.message}`);
    for (const note of diagnostic.notes)
      box.append(make("div", { class: "note" }, `note: ${where(note)}${note.message}`));
    return box;
  }

  function makeFile(index) {
    const page = make("div", {});
    const own = data.diagnostics.filter(d => d.file === index);
    data.files[index].text.split("\n").forEach((text, i) => {
      page.append(link(makeRow(i + 1, text), [[index, i + 1]], sourceRows, viewRows));
      for (const diagnostic of own) if (diagnostic.line === i + 1) page.append(makeDiagnostic(diagnostic));
    });
    return page;
  }

  function showFile(index) {
    if (!fileViews.has(index)) fileViews.set(index, makeFile(index));
    if (filePane.firstChild === fileViews.get(index)) return;
    filePane.replaceChildren(fileViews.get(index));
    for (const tab of fileTabs.children)
      tab.setAttribute("aria-selected", String(tab.value === String(index)));
  }

  function makeSource() {
    for (let i = mainFile; i >= 0; --i) {
      const count = data.diagnostics.filter(d => d.file === i).length;
      const name = data.files[i].name.split("/").pop();
      fileTabs.append(make("button", { role: "tab", value: i, title: data.files[i].name, onclick: () => showFile(i) },
                           count ? `${name} (${count})` : name));
    }
    const pane = document.getElementById("source");
    pane.append(fileTabs);
    for (const diagnostic of data.diagnostics)
      if (diagnostic.file === undefined || !diagnostic.line) pane.append(makeDiagnostic(diagnostic));
    pane.append(filePane);
    const error = data.diagnostics.find(d => d.severity === "error" && d.file !== undefined && d.line);
    showFile(error ? error.file : mainFile);
    if (error) scrollTo(sourceRows, [keyOf([error.file, error.line])]);
  }

  // The forms of the module. ----------------------------------------------------------------------

  let shownForm = 0, showsDiff = false;

  /** The lines of `b`, and between them those of `a` that are gone: [sign, index in its own list]. */
  function diffLines(a, b) {
    let head = 0, tail = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) ++head;
    while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) ++tail;
    const rows = a.length - head - tail, columns = b.length - head - tail;
    const result = [];
    for (let i = 0; i < head; ++i) result.push([" ", i]);
    // Longest common subsequences, of texts for which a table of them is small.
    const isSmall = rows * columns <= 16e6, width = columns + 1;
    const best = isSmall ? new Uint16Array((rows + 1) * width) : null;
    for (let i = rows - 1; isSmall && i >= 0; --i)
      for (let j = columns - 1; j >= 0; --j)
        best[i * width + j] = a[head + i] === b[head + j]
          ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    for (let i = 0, j = 0; i < rows || j < columns;) {
      if (isSmall && i < rows && j < columns && a[head + i] === b[head + j]) {
        result.push([" ", head + j]);
        ++i, ++j;
      } else if (i < rows && (j === columns || !isSmall || best[(i + 1) * width + j] >= best[i * width + j + 1]))
        result.push(["-", head + i++]);
      else result.push(["+", head + j++]);
    }
    for (let j = b.length - tail; j < b.length; ++j) result.push([" ", j]);
    return result;
  }

  function makeForms() {
    const page = make("div", {});
    if (!data.forms.length) {
      page.append(make("div", { class: "page" }, quiet("The source could not be read, so that no pass ran.")));
      return page;
    }
    const changed = data.forms.map((form, i) => i).filter(i => data.forms[i].text !== undefined);
    const text = make("div", { class: "code" });
    const folded = make("span", { class: "faint" });
    const select = make("select", { "aria-label": "The pass", onchange: () => show(Number(select.value)) });
    for (const i of changed)
      select.append(make("option", { value: i },
                         `${i}. ${data.forms[i].pass}${data.forms[i].failed ? " (failed)" : ""}`));
    const diff = make("button", { "aria-pressed": String(showsDiff), onclick: () => {
      showsDiff = !showsDiff;
      diff.setAttribute("aria-pressed", String(showsDiff));
      show(shownForm);
    } }, "changes");
    const step = by => {
      const next = changed[changed.indexOf(shownForm) + by];
      if (next !== undefined) show(next);
    };
    function show(index) {
      shownForm = index;
      select.value = String(index);
      viewRows.clear();
      const form = data.forms[index], before = data.forms[changed[changed.indexOf(index) - 1]];
      const linesOf = of => of.text.split("\n");
      const makeLine = (of, i, line) => link(makeRow(i + 1, line), data.places[of.at[i] || 0], viewRows, sourceRows);
      const lines = linesOf(form);
      if (showsDiff && before) {
        const old = linesOf(before);
        text.replaceChildren(...diffLines(old, lines).map(([sign, i]) => {
          const row = sign === "-" ? makeLine(before, i, old[i]) : makeLine(form, i, lines[i]);
          if (sign !== " ") row.classList.add(sign === "-" ? "removed" : "added");
          return row;
        }));
      } else text.replaceChildren(...lines.map((line, i) => makeLine(form, i, line)));
      let past = index + 1;
      while (past < data.forms.length && data.forms[past].text === undefined) ++past;
      const passes = data.forms.slice(index + 1, past).map(f => f.pass + (f.failed ? " (failed)" : ""));
      folded.textContent = passes.length ? `then without a change: ${passes.join(", ")}` : "";
    }
    page.append(make("div", { class: "bar" }, "after ", select,
                     make("button", { onclick: () => step(-1) }, "previous"),
                     make("button", { onclick: () => step(1) }, "next"), diff, folded), text);
    if (data.trials > 1)
      page.append(quiet(`${data.trials} schedules were tried; these are the forms of the last.`));
    show(shownForm || changed[0]);
    return page;
  }

  // Masks. ------------------------------------------------------------------------------------------

  const visitNames = { f: "full", p: "partial", m: "visited, and nothing of it is left", s: "skipped" };

  /** The rows of a picture that stand for the values of its grid dimensions, `along` varying. */
  function selectRows(mask, along, fixed) {
    const rows = [];
    for (let i = 0; i < mask.grid[along].extent; ++i) {
      let index = 0, stride = 1;
      mask.grid.forEach((dim, d) => {
        index += (d === along ? i : fixed[d]) * stride;
        stride *= dim.extent;
      });
      rows.push(mask.rows[index]);
    }
    return rows;
  }

  function drawRows(mask, rows, rowName) {
    const cell = Math.max(2, Math.min(18, Math.floor(640 / Math.max(rows.length, rows[0].length))));
    const left = 64, top = 30, width = left + cell * rows[0].length, height = top + cell * rows.length;
    const svg = makeSvg("svg", { class: "picture", width, height, viewBox: `0 0 ${width} ${height}` });
    const word = mask.columns === "elements" ? "block at" : "iteration";
    svg.append(makeSvg("text", { x: left, y: 12 }, word));
    svg.append(makeSvg("text", { x: 0, y: 12 }, rowName));
    // As many numbers as there is room for.
    const every = (count, room) => Math.ceil(count / Math.max(1, Math.floor(count * cell / room)));
    for (let x = 0, step = every(rows[0].length, 44); x < rows[0].length; x += step)
      svg.append(makeSvg("text", { x: left + x * cell, y: top - 4 }, String(mask.first + x * mask.unit)));
    for (let y = 0, step = every(rows.length, 16); rowName && y < rows.length; y += step)
      svg.append(makeSvg("text", { x: left - 4, y: top + y * cell + Math.min(cell, 11), "text-anchor": "end" }, String(y)));
    const gap = cell > 6 ? 1 : 0;
    rows.forEach((row, y) => {
      // Neighbours of one kind are one box, lest there be tens of thousands.
      for (let first = 0, past; first < row.length; first = past) {
        for (past = first + 1; past < row.length && row[past] === row[first] && !gap; ++past);
        const at = x => mask.first + x * mask.unit;
        const places = past - first > 1 ? `${word} ${at(first)} to ${at(past - 1)}` : `${word} ${at(first)}`;
        svg.append(makeSvg("rect", { class: row[first], x: left + first * cell, y: top + y * cell,
                                     width: (past - first) * cell - gap, height: cell - gap },
                           makeSvg("title", {}, `${rowName} ${y}, ${places}: ${visitNames[row[first]]}`)));
      }
    });
    return svg;
  }

  function makePicture(mask) {
    const box = make("div", {});
    if (!mask.grid.length) {
      box.append(drawRows(mask, mask.rows, ""));
      return box;
    }
    const along = mask.grid.reduce((best, dim, i) => (dim.extent > mask.grid[best].extent ? i : best), 0);
    const fixed = mask.grid.map(() => 0);
    const place = make("div", {});
    const redraw = () => place.replaceChildren(drawRows(mask, selectRows(mask, along, fixed), mask.grid[along].name));
    mask.grid.forEach((dim, d) => {
      if (d === along) return;
      const select = make("select", { onchange: () => { fixed[d] = Number(select.value); redraw(); } });
      for (let i = 0; i < dim.extent; ++i) select.append(make("option", { value: i }, String(i)));
      box.append(make("label", {}, `${dim.name} = `, select, " "));
    });
    redraw();
    box.append(place);
    return box;
  }

  function makeMask(mask, box) {
    if (mask.problem) {
      box.append(quiet(`There is no picture of this mask: ${mask.problem}.`));
      return;
    }
    const counts = mask.counts;
    const what = mask.kind === "visits"
      ? "The iterations of a tile.visits, and the interval that the compiler takes."
      : "The iterations of a loop, as its bounds and the masks in it say, among those that any grid point runs.";
    const points = mask.points_per_row > 1 ? ` Each row stands for ${mask.points_per_row} grid points.` : "";
    box.append(
      make("p", {}, `${what} `, make("b", {}, `${mask.visited_percent.toFixed(1)} of 100 blocks are visited`),
           `: ${counts.full} in full, ${counts.partial} in part` +
           `${counts.masked ? `, ${counts.masked} in vain` : ""}; ${counts.skipped} are skipped.${points}`),
      make("p", {}, ...["f", "p", "m", "s"].filter(k => k !== "m" || counts.masked).flatMap(
        k => [make("span", { class: `key ${k}` }), visitNames[k]])),
      makePicture(mask));
  }

  function makeMasks() {
    const page = make("div", { class: "page" });
    for (const kernel of data.kernels) {
      const picture = kernel.picture;
      page.append(make("h2", {}, kernel.name));
      if (picture.shape) {
        page.append(quiet(`For ${list(picture.shape) || "its fixed shape"}: ${picture.grid.join(" x ")} grid points.` +
                          " Others with --shape."));
      }
      if (picture.problem) page.append(quiet(`There is no picture: ${picture.problem}.`));
      else if (!picture.masks.length)
        page.append(quiet("No loop of this kernel has a mask by position: each runs all iterations of its bounds."));
      else for (const mask of picture.masks) makeMask(mask, page);
    }
    if (!data.kernels.length) page.append(quiet("No kernel could be read."));
    return page;
  }

  // Schedules and resources. ------------------------------------------------------------------------

  function isNested(value) {
    return typeof value === "object" && value !== null;
  }

  /** A table of any JSON: objects by name, lists of objects with a column for each name. */
  function makeTable(value) {
    if (!isNested(value)) return document.createTextNode(String(value));
    if (!Array.isArray(value)) {
      const table = make("table", {});
      for (const [name, part] of Object.entries(value))
        table.append(make("tr", {}, make("th", {}, name.replaceAll("_", " ")), make("td", {}, makeTable(part))));
      return table;
    }
    if (!value.some(isNested)) return document.createTextNode(value.length ? value.join(", ") : "none");
    const names = [...new Set(value.flatMap(entry => Object.keys(entry)))];
    const table = make("table", {}, make("tr", {}, ...names.map(name => make("th", {}, name.replaceAll("_", " ")))));
    for (const entry of value)
      table.append(make("tr", {}, ...names.map(name =>
        make("td", {}, entry[name] === undefined ? "" : makeTable(entry[name])))));
    return table;
  }

  /** The fields of "consumers = 2, stages = 3". */
  const fieldsOf = text => new Map((text || "").split(/, (?![^\[]*\])/).filter(Boolean).map(field => field.split(" = ")));

  function makeRejections(choice, box) {
    if (choice.use) box.append(quiet(`It takes ${choice.use}.`));
    if (choice.rejections && choice.rejections.length)
      box.append(quiet("Preferred before it, and rejected:"), makeTable(choice.rejections));
    else if (choice.rejections) box.append(quiet("No other was preferred and rejected."));
  }

  /** What one trial asked for and got, beside what the model of the machine prefers by itself. */
  function makeChoice(choice, origins, box) {
    const asked = fieldsOf(choice.asked), chosen = fieldsOf(choice.schedule);
    const model = choice.model ? fieldsOf(choice.model.schedule) : null;
    if (!chosen.size) box.append(make("p", { class: "error" }, "No schedule holds."));
    const rows = [...new Set([...chosen.keys(), ...asked.keys()])].map(name => {
      const row = { field: name, chosen: chosen.get(name) ?? "none" };
      // Reports say where each field of what was compiled comes from; of what was not only what was set.
      if (origins) row["comes from"] = origins[name] ?? "model";
      else row["was set"] = asked.get(name) ?? "";
      if (model) row["by the model"] = model.get(name) ?? "none";
      row.meaning = data.fields[name] ?? "";
      return row;
    });
    if (rows.length) box.append(make("details", { open: "" }, make("summary", {}, "fields"), makeTable(rows)));
    makeRejections(choice, box);
    if (!choice.model) return;
    box.append(quiet("Without the fields that were set, by a measurement or an earlier trial, the model searches so:"));
    if (!model.size) box.append(make("p", { class: "error" }, "No schedule holds."));
    makeRejections(choice.model, box);
  }

  function makeSchedules() {
    const page = make("div", { class: "page" });
    for (const kernel of data.kernels) {
      page.append(make("h2", {}, kernel.name));
      for (const choice of kernel.schedules || []) {
        page.append(make("h3", {}, data.trials > 1 ? `Schedule, trial ${choice.trial}` : "Schedule"));
        // The last is the one that was compiled.
        makeChoice(choice, kernel.origins && choice === kernel.schedules.at(-1) ? kernel.origins.schedule : null, page);
      }
      const parameters = Object.entries((kernel.origins || {}).parameters || {}).map(
        ([name, origin]) => ({ parameter: name, value: data.parameters[name], "comes from": origin }));
      if (parameters.length)
        page.append(make("details", {}, make("summary", {}, "parameters"), makeTable(parameters)));
      if (!kernel.schedules) page.append(quiet("The compilation ended before a schedule was looked for."));
      const description = kernel.description;
      page.append(make("h3", {}, "Resources"));
      if (!description) {
        page.append(quiet("The compilation ended before the resources were known."));
        continue;
      }
      for (const name of ["report", "roles", "shared_memory", "shared_map", "barriers", "named_barriers", "block", "cluster"])
        if (description[name] !== undefined)
          page.append(make("details", ["report", "roles"].includes(name) ? { open: "" } : {},
                           make("summary", {}, name.replaceAll("_", " ")), makeTable(description[name])));
    }
    if (!data.kernels.length) page.append(quiet("No kernel could be read."));
    return page;
  }

  // Machine code. -----------------------------------------------------------------------------------

  function makeCode() {
    viewRows.clear();
    const page = make("div", { class: "page" });
    if (data.code.problem) {
      page.append(quiet(`There is no machine code: ${data.code.problem}.`));
      return page;
    }
    for (const { name, report, loops } of data.code.functions) {
      page.append(make("h2", {}, name), make("pre", { class: "code" }, report));
      loops.forEach((loop, i) => {
        page.append(make("h3", {}, `Loop ${i + 1}: ${plural(loop.length, "instruction")}`),
                    quiet("Address, groups of products in flight before it, and the instruction."));
        const listing = make("div", { class: "code" });
        for (const [address, text, inFlight, ...place] of loop)
          listing.append(link(makeRow(address.toString(16), `${inFlight}  ${text}`), place.length ? [place] : [],
                              viewRows, sourceRows));
        page.append(listing);
      });
      if (!loops.length) page.append(quiet("It has no loops."));
    }
    return page;
  }

  // Timeline. -----------------------------------------------------------------------------------------

  function makeTimeline() {
    const page = make("div", { class: "page" });
    if (!data.timeline) page.append(quiet("There is no timeline; --timeline runs the kernel on the simulator for one."));
    else if (data.timeline.problem) page.append(quiet(`There is no timeline: ${data.timeline.problem}.`));
    else {
      page.append(quiet(`One thread block on the simulator, for ${list(data.timeline.shape)}. The order of events is one that the machine could show; ` +
                        "their lengths count instructions and mean no time."));
      for (const launch of data.timeline.launches) {
        if (data.timeline.launches.length > 1) page.append(make("h2", {}, launch.kernel));
        if (launch.problem) page.append(quiet(`There is no picture: ${launch.problem}.`));
        else {
          const svg = new DOMParser().parseFromString(launch.svg, "image/svg+xml").documentElement;
          page.append(make("div", { class: "timeline" }, document.importNode(svg, true)));
        }
        page.append(make("pre", { class: "code" }, launch.summary));
      }
    }
    return page;
  }

  // The page. -------------------------------------------------------------------------------------------

  const views = { "IR": makeForms, "Masks": makeMasks, "Schedule and resources": makeSchedules,
                  "Machine code": makeCode, "Timeline": makeTimeline };

  function showView(name) {
    viewRows.clear();
    document.getElementById("view").replaceChildren(views[name]());
    for (const tab of document.getElementById("tabs").children)
      tab.setAttribute("aria-selected", String(tab.textContent === name));
  }

  function makeHead() {
    const name = data.files[mainFile].name.split("/").pop();
    document.title = `${name}: tessera explain`;
    const count = severity => data.diagnostics.filter(d => d.severity === severity).length;
    const parts = ["error", "warning", "remark"].map(s => plural(count(s), s)).join(", ");
    document.getElementById("head").append(
      make("h1", {}, name),
      make("span", { class: data.status ? "error" : "faint" }, `${data.status ? "does not compile" : "compiles"}: ${parts}`),
      make("p", {}, list(data.parameters)));
  }

  makeHead();
  makeSource();
  for (const name of Object.keys(views))
    document.getElementById("tabs").append(make("button", { role: "tab", onclick: () => showView(name) }, name));
  showView("IR");
})();
