//===- BundleTest.cpp - Reading bundles -----------------------------------===//

#include "TestBundle.h"

#include "lib/Runtime/Bundle.h"
#include "lib/Runtime/Error.h"

#include "gtest/gtest.h"

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

/// The error of reading `text`, "" when there is none.
static std::string read(const std::string &text) {
  llvm::Expected<BundleInfo> info = readBundle(text);
  return info ? "" : llvm::toString(info.takeError());
}

/// The error of the test bundle after `change` of its kernel.
template <typename Function>
static std::string readChanged(Function change) {
  json::Value bundle = makeBundle();
  change(getKernel(bundle));
  return read(toText(bundle));
}

static json::Object &parameter(json::Object &kernel, unsigned index) {
  return *(*kernel.getArray("launch_parameters"))[index].getAsObject();
}
static json::Object &argument(json::Object &kernel, unsigned index) {
  return *(*kernel.getArray("arguments"))[index].getAsObject();
}

TEST(BundleTest, ReadsEverything) {
  llvm::Expected<BundleInfo> info = readBundle(toText(makeBundle()));
  ASSERT_TRUE(static_cast<bool>(info));
  EXPECT_EQ(info->target, "sm_90a");
  EXPECT_FALSE(info->isPtx);
  ASSERT_EQ(info->images.size(), 1u);
  EXPECT_EQ(std::string(info->images[0].begin(), info->images[0].end()), "\x7f"
                                                                         "ELF");
  ASSERT_EQ(info->kernels.size(), 1u);
  const KernelInfo &kernel = info->kernels[0];
  EXPECT_EQ(kernel.name, "attend");
  EXPECT_EQ(kernel.symbol, "attend_entry");
  EXPECT_EQ(kernel.dims, (std::vector<std::string>{"B", "H", "SQ", "HK"}));
  EXPECT_EQ(kernel.arguments[3].alignment, 4u);
  EXPECT_EQ(kernel.arguments[3].access, Access::Write);
  EXPECT_EQ(kernel.requirements[0].divisor, 3u);
  EXPECT_EQ(kernel.requirements[0].dividend, 1u);
  std::vector<unsigned> offsets;
  for (const LaunchParameter &entry : kernel.parameters)
    offsets.push_back(entry.offset);
  EXPECT_EQ(offsets, (std::vector<unsigned>{0, 128, 256, 264, 272, 280, 288, 296}));
  EXPECT_EQ(kernel.parameterBytes, 300u);
  EXPECT_NE(kernel.description.find("\"spills\":0"), std::string::npos);
}

TEST(BundleTest, PtxEndsWithAZeroByte) {
  json::Value bundle = makeBundle();
  (*bundle.getAsObject())["image"] = json::Object{{"kind", "ptx"}, {"base64", "YWI="}};
  llvm::Expected<BundleInfo> info = readBundle(toText(bundle));
  ASSERT_TRUE(static_cast<bool>(info));
  EXPECT_TRUE(info->isPtx);
  EXPECT_EQ(info->images[0], (std::vector<char>{'a', 'b', '\0'}));
}

TEST(BundleTest, ReadsFurtherImages) {
  json::Value bundle = makeBundle();
  json::Object &object = *bundle.getAsObject();
  object["version"] = 4;
  EXPECT_EQ(read(toText(bundle)), "damaged bundle: expected an array at bundle.further_images");
  object["further_images"] = json::Array{json::Object{{"kind", "cubin"}, {"base64", "YWI="}}};
  getKernel(bundle)["image"] = 1;
  llvm::Expected<BundleInfo> info = readBundle(toText(bundle));
  ASSERT_TRUE(static_cast<bool>(info));
  ASSERT_EQ(info->images.size(), 2u);
  EXPECT_EQ(info->images[1], (std::vector<char>{'a', 'b'}));
  EXPECT_EQ(info->kernels[0].image, 1u);
  getKernel(bundle)["image"] = 2;
  EXPECT_EQ(read(toText(bundle)),
            "damaged bundle: expected the number of an image at bundle.kernels[0].image");
  object["further_images"] = json::Array{json::Object{{"kind", "ptx"}, {"base64", "YWI="}}};
  EXPECT_EQ(read(toText(bundle)), "damaged bundle: expected the kind of the first image at "
                                  "bundle.further_images[0].kind");
}

TEST(BundleTest, RefusesWhatIsNoBundle) {
  EXPECT_EQ(read("\x7f"
                 "ELF")
                .substr(0, 33),
            "not a bundle: not JSON text: [1:1");
  EXPECT_EQ(read("[]"), "damaged bundle: expected an object when parsing bundle");
  EXPECT_EQ(read("{}"), "damaged bundle: expected \"tessera-bundle\": this is no bundle at "
                        "bundle.format");
  EXPECT_EQ(read(R"({"format":"tessera-bundle","version":7})"),
            "damaged bundle: this library reads versions 1 to 6 at bundle.version");
  EXPECT_EQ(read(R"({"format":"tessera-bundle","version":1,"target":"sm_90a",
                     "image":{"kind":"cubin","base64":"?"},"kernels":[]})"),
            "damaged bundle: expected base64 text at bundle.image.base64");
}

TEST(BundleTest, NamesTheOffendingMember) {
  EXPECT_EQ(readChanged([](json::Object &kernel) { kernel.erase("symbol"); }),
            "damaged bundle: expected a string that is not empty at bundle.kernels[0].symbol");
  EXPECT_EQ(readChanged([](json::Object &kernel) { kernel["block"] = json::Array{512, 4, 1}; }),
            "damaged bundle: expected three sizes, x, y and z, of at most 1024 threads in all at "
            "bundle.kernels[0].block");
  EXPECT_EQ(readChanged([](json::Object &kernel) { kernel["grid"] = json::Array{}; }),
            "damaged bundle: expected 1 to 3 dimensions at bundle.kernels[0].grid");
  EXPECT_EQ(readChanged([](json::Object &kernel) { kernel.getArray("dims")->push_back("X"); }),
            "damaged bundle: is a dimension of no argument at bundle.kernels[0].dims[4]");
  EXPECT_EQ(readChanged([](json::Object &kernel) { argument(kernel, 2)["alignment"] = 24; }),
            "damaged bundle: expected a power of 2, from the element's size to 1024 at "
            "bundle.kernels[0].arguments[2].alignment");
  EXPECT_EQ(readChanged([](json::Object &kernel) { argument(kernel, 1)["name"] = "q"; }),
            "damaged bundle: is the name of an earlier argument at "
            "bundle.kernels[0].arguments[1].name");
}

TEST(BundleTest, ReadsRequirementsWithAFactor) {
  auto change = [](json::Value factor) {
    return [factor](json::Object &kernel) {
      (*(*kernel.getArray("requirements"))[0].getAsObject())["divisor"] =
          json::Object{{"dim", "HK"}, {"factor", factor}};
    };
  };
  json::Value bundle = makeBundle();
  change(8)(getKernel(bundle));
  Requirement requirement = llvm::cantFail(readBundle(toText(bundle))).kernels[0].requirements[0];
  EXPECT_EQ(requirement.divisor, 3u);
  EXPECT_EQ(requirement.factor, 8);
  for (json::Value nonsense : {json::Value(0), json::Value("8"), json::Value(int64_t(1) << 31)})
    EXPECT_EQ(readChanged(change(nonsense)),
              "damaged bundle: expected an integer from 1 to 2^31 - 1 at "
              "bundle.kernels[0].requirements[0].divisor.factor");
}

TEST(BundleTest, ReadsRequirementsOfANumber) {
  auto change = [](json::Value divisor) {
    return [divisor](json::Object &kernel) {
      (*(*kernel.getArray("requirements"))[0].getAsObject())["divisor"] = divisor;
    };
  };
  json::Value bundle = makeBundle();
  change(8)(getKernel(bundle));
  Requirement requirement = llvm::cantFail(readBundle(toText(bundle))).kernels[0].requirements[0];
  EXPECT_EQ(requirement.divisor, std::nullopt);
  EXPECT_EQ(requirement.factor, 8);
  EXPECT_EQ(readChanged(change(0)), "damaged bundle: expected an integer from 1 to 2^31 - 1 at "
                                    "bundle.kernels[0].requirements[0].divisor");
}

TEST(BundleTest, ReadsBoundsOfScalars) {
  auto change = [](json::Value above, llvm::StringRef type) {
    return [=](json::Object &kernel) {
      json::Object &scale = *(*kernel.getArray("arguments"))[4].getAsObject();
      scale["above"] = above;
      scale["type"] = type;
    };
  };
  json::Value bundle = makeBundle();
  EXPECT_FALSE(llvm::cantFail(readBundle(toText(bundle))).kernels[0].arguments[4].above);
  change(0.5, "f32")(getKernel(bundle));
  EXPECT_EQ(llvm::cantFail(readBundle(toText(bundle))).kernels[0].arguments[4].above, 0.5);
  std::string refusal = "damaged bundle: expected a number, beside an f32 scalar at "
                        "bundle.kernels[0].arguments[4].above";
  EXPECT_EQ(readChanged(change("0.5", "f32")), refusal);
  EXPECT_EQ(readChanged(change(0.5, "i32")), refusal);
}

TEST(BundleTest, ReadsBounds) {
  auto change = [](json::Value dim, json::Value most) {
    return [=](json::Object &kernel) {
      (*kernel.getArray("requirements"))[0] = json::Object{{"dim", dim}, {"at_most", most}};
    };
  };
  json::Value bundle = makeBundle();
  change("H", 8)(getKernel(bundle));
  KernelInfo kernel = llvm::cantFail(readBundle(toText(bundle))).kernels[0];
  EXPECT_TRUE(kernel.requirements.empty());
  ASSERT_EQ(kernel.bounds.size(), 1u);
  EXPECT_EQ(kernel.dims[kernel.bounds[0].dim], "H");
  EXPECT_EQ(kernel.bounds[0].most, 8);
  EXPECT_EQ(readChanged(change("H", 0)), "damaged bundle: expected an integer from 1 to 2^31 - 1 "
                                         "at bundle.kernels[0].requirements[0].at_most");
  EXPECT_NE(readChanged(change("X", 8)).find("bundle.kernels[0].requirements[0].dim"),
            std::string::npos);
}

TEST(BundleTest, ChecksTensorMaps) {
  static constexpr char kElementRule[] =
      "damaged bundle: expected the element type of the argument, or \"tf32\" for f32 at "
      "bundle.kernels[0].launch_parameters[0].element";
  EXPECT_EQ(readChanged([](json::Object &kernel) { parameter(kernel, 0)["argument"] = "scale"; }),
            "damaged bundle: expected a view at bundle.kernels[0].launch_parameters[0].argument");
  EXPECT_EQ(readChanged([](json::Object &kernel) { parameter(kernel, 0)["element"] = "f16"; }),
            kElementRule);
  EXPECT_EQ(readChanged([](json::Object &kernel) { parameter(kernel, 0)["element"] = "tf32"; }),
            kElementRule);
  EXPECT_EQ(readChanged([](json::Object &kernel) { parameter(kernel, 0)["swizzle"] = "64B"; }),
            "damaged bundle: the innermost size exceeds the bytes of the swizzle at "
            "bundle.kernels[0].launch_parameters[0].box[0]");
  EXPECT_EQ(
      readChanged([](json::Object &kernel) { parameter(kernel, 0)["box"] = json::Array{64}; }),
      "damaged bundle: expected as many sizes as the map has dimensions at "
      "bundle.kernels[0].launch_parameters[0].box");
  EXPECT_EQ(readChanged([](json::Object &kernel) { argument(kernel, 0)["alignment"] = 8; }),
            "damaged bundle: an argument with a tensor map needs alignment 16 at "
            "bundle.kernels[0].launch_parameters[0].argument");
  EXPECT_EQ(readChanged([](json::Object &kernel) {
              (*parameter(kernel, 0).getArray("dims"))[1] =
                  json::Object{{"extent", "SQ"}, {"stride_of_dim", 4}};
            }),
            "damaged bundle: expected the number of a dimension of the argument at "
            "bundle.kernels[0].launch_parameters[0].dims[1].stride_of_dim");
}

TEST(BundleTest, ReadsStridesThatWrap) {
  auto wrap = [](json::Object &kernel, size_t dim, json::Value value) {
    (*(*parameter(kernel, 0).getArray("dims"))[dim].getAsObject())["wraps"] = std::move(value);
  };
  json::Value bundle = makeBundle();
  wrap(getKernel(bundle), 1, true);
  BundleInfo info = llvm::cantFail(readBundle(toText(bundle)));
  const TensorMapRecipe &recipe = info.kernels[0].tensorMaps[0];
  EXPECT_TRUE(recipe.dims[1].wraps);
  EXPECT_FALSE(recipe.dims[3].wraps);
  for (auto [dim, value] : {std::pair<size_t, json::Value>(2, true), {1, 1}})
    EXPECT_EQ(readChanged([&](json::Object &kernel) { wrap(kernel, dim, value); }),
              "damaged bundle: expected true or false, beside \"stride_of_dim\" at "
              "bundle.kernels[0].launch_parameters[0].dims[" +
                  std::to_string(dim) + "].wraps");
}

TEST(BundleTest, ReadsTensorMapsThatRound) {
  json::Value bundle = makeBundle();
  json::Object &kernel = getKernel(bundle);
  argument(kernel, 0)["element"] = "f32";
  parameter(kernel, 0)["element"] = "f32";
  parameter(kernel, 0)["swizzle"] = "none";
  auto readMap = [&] {
    return llvm::cantFail(readBundle(toText(bundle))).kernels[0].tensorMaps[0];
  };
  EXPECT_EQ(readMap().dataType(), 7); // CU_TENSOR_MAP_DATA_TYPE_FLOAT32
  parameter(kernel, 0)["element"] = "tf32";
  EXPECT_EQ(readMap().dataType(), 11); // CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
  EXPECT_EQ(readMap().elementName(), "tf32");
}

TEST(BundleTest, ReadsPersistentKernelsAndWorkspaces) {
  json::Value bundle = makeBundle();
  json::Object &kernel = getKernel(bundle);
  EXPECT_FALSE(llvm::cantFail(readBundle(toText(bundle))).kernels[0].persistent);
  kernel["persistent"] = true;
  kernel["cluster"] = json::Array{2, 1, 1};
  for (int64_t bytes : {300, 4})
    kernel.getArray("launch_parameters")
        ->push_back(json::Object{{"kind", "workspace"}, {"bytes", bytes}});
  BundleInfo info = llvm::cantFail(readBundle(toText(bundle)));
  EXPECT_TRUE(info.kernels[0].persistent);
  llvm::ArrayRef<LaunchParameter> parameters = info.kernels[0].parameters;
  EXPECT_EQ(parameters[8].offset, 304u);
  EXPECT_EQ(parameters[8].bytes, 8u);
  EXPECT_EQ(parameters[8].workspaceOffset, 0u);
  EXPECT_EQ(parameters[9].offset, 312u);
  EXPECT_EQ(parameters[9].workspaceOffset, 512u);
  EXPECT_EQ(info.kernels[0].workspaceBytes, 516u);
}

TEST(BundleTest, ChecksPersistentKernelsAndWorkspaces) {
  EXPECT_EQ(readChanged([](json::Object &kernel) { kernel["persistent"] = 1; }),
            "damaged bundle: expected true or false at bundle.kernels[0].persistent");
  EXPECT_EQ(readChanged([](json::Object &kernel) {
              kernel["persistent"] = true;
              kernel["cluster"] = json::Array{1, 2, 1};
            }),
            "damaged bundle: the clusters of a persistent or flat kernel extend in x only at "
            "bundle.kernels[0].cluster");
  for (json::Value bytes : {json::Value(0), json::Value("4"), json::Value((int64_t(1) << 40) + 1)})
    EXPECT_EQ(readChanged([&](json::Object &kernel) {
                parameter(kernel, 7) = json::Object{{"kind", "workspace"}, {"bytes", bytes}};
              }),
              "damaged bundle: expected a number of bytes from 1 to 2^40 at "
              "bundle.kernels[0].launch_parameters[7].bytes");
}

TEST(BundleTest, ChecksTickets) {
  auto readWith = [](json::Value views, int count = 1) {
    return readChanged([&](json::Object &kernel) {
      for (int i = 0; i < count; ++i)
        kernel.getArray("launch_parameters")
            ->push_back(json::Object{{"kind", "tickets"}, {"views", views}});
    });
  };
  const std::string prefix = "damaged bundle: ", place = " at bundle.kernels[0].launch_parameters";
  json::Object tiles{{"extent", "SQ"}, {"divisor", 1}};
  // Without braces: json::Array{array} would be a copy.
  auto inArray = [](json::Value value) {
    json::Array array;
    array.push_back(std::move(value));
    return array;
  };
  EXPECT_EQ(readWith(json::Array()), prefix + "expected a view at least" + place + "[8].views");
  EXPECT_EQ(readWith(inArray(json::Array())),
            prefix + "expected an array of the dimensions of a view" + place + "[8].views[0]");
  EXPECT_EQ(readWith(inArray(inArray(json::Object(tiles))), 2),
            prefix + "a kernel has one array of tickets" + place + "[9]");
  tiles["divisor"] = 0;
  EXPECT_EQ(readWith(inArray(inArray(json::Object(tiles)))),
            prefix + "expected an integer from 1 to 2147483647" + place +
                "[8].views[0][0].divisor");
}

TEST(BundleTest, RefusesTooManyParameters) {
  EXPECT_EQ(readChanged([](json::Object &kernel) {
              json::Array &parameters = *kernel.getArray("launch_parameters");
              while (parameters.size() < 40)
                parameters.push_back(json::Value(parameters[0]));
            }),
            "damaged bundle: more than 4096 bytes of parameters, the most a kernel takes at "
            "bundle.kernels[0].launch_parameters");
}

/// Every member of the test bundle in turn removed or replaced by nonsense: refused or read, never
/// a crash.
TEST(BundleTest, SurvivesDamage) {
  json::Value original = makeBundle();
  unsigned refused = 0, tried = 0;
  for (auto &entry : getKernel(original)) {
    for (json::Value nonsense : {json::Value(nullptr), json::Value(-1), json::Value("x"),
                                 json::Value(json::Array{nullptr}), json::Value(json::Object{})}) {
      json::Value damaged = original;
      getKernel(damaged)[entry.first] = nonsense;
      refused += !read(toText(damaged)).empty();
      ++tried;
    }
  }
  // "schedule" and "report" are not read.
  EXPECT_GE(refused + 12, tried);
}
