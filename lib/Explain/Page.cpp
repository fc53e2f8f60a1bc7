//===- Page.cpp - The page of an explanation ------------------------------===//

#include "lib/Explain/Explain.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera;
using llvm::StringRef;

// Page.html, Page.css and Page.js, from the build.
extern const char tesseraExplainHtml[];
extern const char tesseraExplainStyle[];
extern const char tesseraExplainScript[];

/// JSON that may stand in a script of HTML, which `</script`, `<!--` and `<script` would end or
/// change. In a text of JSON, `<` stands in strings alone.
static std::string escapeJson(llvm::json::Object data) {
  std::string text, escaped;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(data));
  escaped.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    bool isMarkup = text[i] == '<' && StringRef("/!sS").contains(text[i + 1]);
    if (isMarkup)
      escaped += "\\u003c";
    else
      escaped += text[i];
  }
  return escaped;
}

std::string tessera::explain::writePage(llvm::json::Object data) {
  std::string page;
  // What is put in is not looked through again: it may hold the marks of what follows.
  auto append = [&](StringRef &html, StringRef mark, StringRef contents) {
    auto [before, after] = html.split(mark);
    page += before;
    page += contents;
    html = after;
  };
  StringRef html = tesseraExplainHtml;
  append(html, "/*STYLE*/", tesseraExplainStyle);
  append(html, "/*DATA*/", escapeJson(std::move(data)));
  append(html, "/*SCRIPT*/", tesseraExplainScript);
  page += html;
  return page;
}
