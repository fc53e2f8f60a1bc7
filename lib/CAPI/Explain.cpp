//===- Explain.cpp - Pages about sources in the C interface ---------------===//

#include "lib/Explain/Explain.h"
#include "lib/CAPI/Conversions.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera;
using namespace tessera::capi;

struct tessera_page {
  std::string text, data;
};

tessera_compile_status tessera_explain(const char *source, size_t length, const char *file_name,
                                       const tessera_compile_options *options,
                                       const tessera_define *scalars, size_t scalar_count,
                                       tessera_diagnostic_handler handler, void *user_data,
                                       tessera_page **page) {
  *page = nullptr;
  DiagnosticHandler handle = convert(handler, user_data);
  std::optional<CompileOptions> converted = convert(options, handle);
  std::optional<std::string> given = convert(source, length, handle);
  if (!converted || !given || !checkArray(scalars, scalar_count, handle))
    return TESSERA_COMPILE_USAGE_ERROR;
  explain::ExplainOptions explainOptions;
  explainOptions.pictures.shape = converted->tuning.shape;
  explainOptions.pictures.scalars = convert(scalars, scalar_count);
  explainOptions.compile = std::move(*converted);
  explain::Explanation explanation =
      explain::explain(*given, text(file_name), explainOptions, handle);
  if (explanation.status != CompileStatus::UsageError) {
    std::string data =
        llvm::formatv("{0}", llvm::json::Value(llvm::json::Object(explanation.data)));
    *page = new tessera_page{explain::writePage(std::move(explanation.data)), std::move(data)};
  }
  return convert(explanation.status);
}

void tessera_page_destroy(tessera_page *page) { delete page; }

static const char *give(const std::string &text, size_t *size) {
  if (size)
    *size = text.size();
  return text.c_str();
}

const char *tessera_page_text(const tessera_page *page, size_t *size) {
  return give(page->text, size);
}

const char *tessera_page_data(const tessera_page *page, size_t *size) {
  return give(page->data, size);
}
