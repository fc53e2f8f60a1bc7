// z = x + y by a kernel of a bundle, as `tessera compile add.tile -o add.bundle` writes it.
//
//   launch_add add.bundle             on a Hopper GPU, compared with the host's sums
//   launch_add add.bundle --launch    only launches, for machines with a stand-in for the driver

#include "../driver.h"
#include "tessera/Launch.h"
#include <iostream>

int main(int argc, char **argv) {
  tessera::Expected<tessera::Bundle> bundle =
      tessera::Bundle::loadFile(argc > 1 ? argv[1] : "add.bundle");
  if (!bundle) {
    std::cerr << bundle.message << "\n";
    return bundle.status;
  }
  tessera::Expected<tessera::Kernel> add = bundle->getKernel("add");
  if (!add) {
    std::cerr << add.message << "\n";
    return add.status;
  }

  Driver driver = openDriver();
  std::vector<float> x(10000, 1), y(x.size(), 2), z(x.size());
  auto copy = [&](const std::vector<float> &values) {
    return put(&driver, values.data(), values.size() * sizeof(float));
  };
  uint64_t result = copy(z);
  auto view = [&](uint64_t address) {
    return tessera::Argument(address, TESSERA_TYPE_F32, {int64_t(x.size())});
  };
  if (tessera::Outcome launch = add->launch({view(copy(x)), view(copy(y)), view(result)});
      !launch) {
    std::cerr << launch.message << "\n";
    return launch.status;
  }
  std::cout << "launched\n";
  if (argc > 2 && std::string(argv[2]) == "--launch")
    return 0;

  check(driver.toHost(z.data(), result, z.size() * sizeof(float)), "cuMemcpyDtoH");
  bool right = z == std::vector<float>(x.size(), 3);
  std::cout << (right ? "right\n" : "wrong\n");
  return !right;
}
