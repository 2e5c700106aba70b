#include "gloo/config.h"
#include "gloo/internal/cores.h"
#include "tools/gloo_info/reports.h"
#include "transport/base/topology.h"

namespace gloo_info {

bool printBuild(std::ostream& out) {
  out << "gloo " << GLOO_VERSION_MAJOR << '.' << GLOO_VERSION_MINOR << '.'
      << GLOO_VERSION_PATCH << " (" << GLOO_IMPLEMENTATION << ")\n"
      << "transports: auto, tcp, shm"
      << (GLOO_HAVE_TRANSPORT_IBVERBS ? ", ibverbs" : "")
      << "\nstores: file, hash, prefix, tcp"
      << (GLOO_USE_REDIS ? ", redis" : "")
      << "\nCUDA: " << (GLOO_USE_CUDA ? "yes" : "no") << "\n";
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
