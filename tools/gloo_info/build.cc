#include <dlfcn.h>

#include "gloo/config.h"
#include "gloo/internal/cores.h"
#include "gloo/internal/cuda.h"
#include "tools/gloo_info/reports.h"
#include "transport/base/topology.h"

namespace gloo_info {
namespace {

// The library takes the driver that its process has loaded: this one loads it.
void printCuda(std::ostream& out) {
  out << "memory of CUDA devices: ";
  if (::dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    out << "none, without the CUDA driver (" << ::dlerror()
        << "): install NVIDIA's\n";
  } else if (gloo::internal::cudaDriver() == nullptr) {
    out << "none, since the CUDA driver lacks functions: install a newer one\n";
  } else {
    out << "by the CUDA driver, and what docs/ibverbs.md says of devices\n";
  }
}

}  // namespace

bool printBuild(std::ostream& out) {
  out << "gloo " << GLOO_VERSION_MAJOR << '.' << GLOO_VERSION_MINOR << '.'
      << GLOO_VERSION_PATCH << " (" << GLOO_IMPLEMENTATION << ")\n"
      << "transports: auto, tcp, shm"
      << (GLOO_HAVE_TRANSPORT_IBVERBS ? ", ibverbs" : "")
      << "\nstores: file, hash, prefix, tcp"
      << (GLOO_USE_REDIS ? ", redis" : "") << "\n";
  printCuda(out);
  return true;
}

bool printHost(std::ostream& out) {
  using gloo::transport::base::Topology;
  out << "host: " << Topology("").str();
  if (const int home = Topology::instance().home(); home >= 0) {
    out << ", this thread on node " << home;
  }
  out << "\n";
  const cpu_set_t cores = gloo::internal::allowedCores();
  out << "this process: may run on " << CPU_COUNT(&cores) << " cores";
  if (const auto& quotas = gloo::internal::ownCoreQuotas(); !quotas.empty()) {
    out << ", for as much time as " << quotas.front().cores
        << " have (a quota of its cgroup)";
  }
  out << "; more than " << gloo::internal::usableCores()
      << " ranks on this host share cores\n";
  return true;
}

}  // namespace gloo_info
