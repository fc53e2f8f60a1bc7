"use strict";
// A client of tessera-lsp-server that needs nothing beside VS Code itself.

const { spawn } = require("child_process");
const vscode = require("vscode");

const LANGUAGE = "tile";

/** Messages of the language server protocol to and from a process. */
class Connection {
  constructor(process, onNotification) {
    this.process = process;
    this.onNotification = onNotification;
    this.pending = new Map();
    this.received = Buffer.alloc(0);
    this.nextId = 1;
    process.stdout.on("data", (chunk) => this.receive(chunk));
    process.on("exit", () => this.end());
  }

  send(message) {
    if (!this.process.stdin.writable) return;
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.process.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params) {
    const id = this.nextId++;
    this.send({ id, method, params });
    return new Promise((resolve) => this.pending.set(id, resolve));
  }

  receive(chunk) {
    this.received = Buffer.concat([this.received, chunk]);
    for (;;) {
      const end = this.received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.received.toString("ascii", 0, end))[1]);
      if (this.received.length < end + 4 + length) return;
      const text = this.received.toString("utf8", end + 4, end + 4 + length);
      this.received = this.received.subarray(end + 4 + length);
      this.handle(JSON.parse(text));
    }
  }

  handle(message) {
    if (message.method) return this.onNotification(message.method, message.params);
    const resolve = this.pending.get(message.id);
    this.pending.delete(message.id);
    if (resolve) resolve(message.result);
  }

  /** Nobody answers any more. */
  end() {
    for (const resolve of this.pending.values()) resolve(null);
    this.pending.clear();
  }
}

const toRange = (range) =>
  new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character);
const toLocation = (place) => new vscode.Location(vscode.Uri.parse(place.uri), toRange(place.range));

/** What VS Code asks of languages, answered by the server. */
function makeProviders(connection) {
  const ask = (method, document, position, others) =>
    connection.request(`textDocument/${method}`, {
      textDocument: { uri: document.uri.toString() },
      position: { line: position.line, character: position.character },
      ...others,
    });
  const toItem = (item) => {
    const made = new vscode.CompletionItem(item.label, item.kind === undefined ? undefined : item.kind - 1);
    made.detail = item.detail;
    made.documentation = item.documentation;
    made.insertText = item.insertText;
    return made;
  };
  return {
    provideHover: async (document, position) => {
      const result = await ask("hover", document, position);
      return result && new vscode.Hover(new vscode.MarkdownString(result.contents.value), result.range && toRange(result.range));
    },
    provideDefinition: async (document, position) => ((await ask("definition", document, position)) || []).map(toLocation),
    provideReferences: async (document, position) =>
      ((await ask("references", document, position, { context: { includeDeclaration: true } })) || []).map(toLocation),
    provideCompletionItems: async (document, position) => {
      const result = await ask("completion", document, position);
      return ((result && result.items) || []).map(toItem);
    },
  };
}

function showDiagnostics(collection, { uri, diagnostics }) {
  const severities = [0, 0, 1, 2, 3]; // the protocol counts from 1
  collection.set(
    vscode.Uri.parse(uri),
    diagnostics.map((given) => {
      const made = new vscode.Diagnostic(toRange(given.range), given.message, severities[given.severity || 1]);
      made.source = given.source;
      return made;
    })
  );
}

/** Tells the server of the documents that are open. */
function followDocuments(connection, context) {
  const isOurs = (document) => document.languageId === LANGUAGE;
  const open = (document) =>
    isOurs(document) &&
    connection.notify("textDocument/didOpen", {
      textDocument: { uri: document.uri.toString(), languageId: LANGUAGE, version: document.version, text: document.getText() },
    });
  const change = ({ document }) =>
    isOurs(document) &&
    connection.notify("textDocument/didChange", {
      textDocument: { uri: document.uri.toString(), version: document.version },
      contentChanges: [{ text: document.getText() }],
    });
  const close = (document) =>
    isOurs(document) && connection.notify("textDocument/didClose", { textDocument: { uri: document.uri.toString() } });
  context.subscriptions.push(
    vscode.workspace.onDidOpenTextDocument(open),
    vscode.workspace.onDidChangeTextDocument(change),
    vscode.workspace.onDidCloseTextDocument(close)
  );
  vscode.workspace.textDocuments.forEach(open);
}

let connection;

async function activate(context) {
  const command = vscode.workspace.getConfiguration("tessera").get("server") || "tessera-lsp-server";
  const server = spawn(command, ["--log=error"], { stdio: ["pipe", "pipe", "inherit"] });
  server.on("error", (error) =>
    vscode.window.showErrorMessage(`${command}: ${error.message}; the setting tessera.server is the path of tessera-lsp-server`)
  );
  const collection = vscode.languages.createDiagnosticCollection(LANGUAGE);
  connection = new Connection(server, (method, params) => {
    if (method === "textDocument/publishDiagnostics") showDiagnostics(collection, params);
  });
  const result = await connection.request("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
  if (!result) return;
  connection.notify("initialized", {});
  const triggers = result.capabilities.completionProvider.triggerCharacters;
  const providers = makeProviders(connection);
  context.subscriptions.push(
    collection,
    vscode.languages.registerHoverProvider(LANGUAGE, providers),
    vscode.languages.registerDefinitionProvider(LANGUAGE, providers),
    vscode.languages.registerReferenceProvider(LANGUAGE, providers),
    vscode.languages.registerCompletionItemProvider(LANGUAGE, providers, ...triggers)
  );
  followDocuments(connection, context);
}

async function deactivate() {
  if (!connection) return;
  await connection.request("shutdown", null);
  connection.notify("exit", null);
}

module.exports = { activate, deactivate };
