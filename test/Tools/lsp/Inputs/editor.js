// editor.js EXTENSION SERVER FILE: stands in for VS Code, opens FILE with the extension and prints what it shows.
"use strict";
const fs = require("fs"), path = require("path"), Module = require("module");
const [extension, server, file] = process.argv.slice(2);

class Uri {
  constructor(text) { this.text = text; }
  static parse(text) { return new Uri(text); }
  toString() { return this.text; }
}
class Range { constructor(a, b, c, d) { Object.assign(this, { start: [a, b], end: [c, d] }); } }
const plain = (...names) => class { constructor(...values) { names.forEach((name, i) => (this[name] = values[i])); } };
const document = {
  languageId: "tile", version: 1, uri: Uri.parse("file://" + path.resolve(file)), getText: () => fs.readFileSync(file, "utf8"),
};
const shown = [], providers = {};
const subscribe = () => ({ dispose() {} });
const vscode = {
  Uri, Range, Hover: plain("contents", "range"), Location: plain("uri", "range"), Diagnostic: plain("range", "message", "severity"),
  MarkdownString: plain("value"), CompletionItem: plain("label", "kind"),
  workspace: {
    getConfiguration: () => ({ get: () => server }), textDocuments: [document],
    onDidOpenTextDocument: subscribe, onDidChangeTextDocument: subscribe, onDidCloseTextDocument: subscribe,
  },
  window: { showErrorMessage: message => { throw new Error(message); } },
  languages: Object.fromEntries(["Hover", "Definition", "Reference", "CompletionItem"].map(
    kind => [`register${kind}Provider`, (language, provider) => { providers[kind] = provider; return subscribe(); }])),
};
vscode.languages.createDiagnosticCollection = () => ({ set: (uri, diagnostics) => shown.push(...diagnostics), dispose() {} });
const load = Module._load;
Module._load = (name, ...others) => (name === "vscode" ? vscode : load(name, ...others));

/** The position of the first `word` of the text. */
function find(word) {
  const before = document.getText().slice(0, document.getText().indexOf(word)).split("\n");
  return { line: before.length - 1, character: before.at(-1).length + 1 };
}

(async () => {
  const client = require(path.resolve(extension, "extension.js"));
  await client.activate({ subscriptions: [] });
  console.log("hover:", (await providers.Hover.provideHover(document, find("load"))).contents.value.split("\n")[0]);
  const places = await providers.Definition.provideDefinition(document, find("$BM"));
  console.log("definition:", places.map(place => `${path.basename(place.uri.text)} ${place.range.start}`).join());
  const items = await providers.CompletionItem.provideCompletionItems(document, find("$BM"));
  console.log("completion:", items.map(item => item.label).join());
  await client.deactivate();
  for (const { message, range, severity } of shown) console.log(`diagnostic ${severity} at ${range.start}: ${message.split("\n")[0]}`);
})();
