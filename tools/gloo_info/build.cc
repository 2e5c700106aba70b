#include "gloo/config.h"
#include "tools/gloo_info/reports.h"

namespace gloo_info {

bool printBuild(std::ostream& out) {
  out << "gloo " << GLOO_VERSION_MAJOR << '.' << GLOO_VERSION_MINOR << '.'
      << GLOO_VERSION_PATCH << " (" << GLOO_IMPLEMENTATION << ")\n"
      << "transports: tcp" << (GLOO_HAVE_TRANSPORT_IBVERBS ? ", ibverbs" : "")
      << "\nstores: file, hash, prefix, tcp"
      << (GLOO_USE_REDIS ? ", redis" : "")
      << "\nCUDA: " << (GLOO_USE_CUDA ? "yes" : "no") << "\n";
  return true;
}

}  // namespace gloo_info
