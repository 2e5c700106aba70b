#include <exception>

#include "gloo/transport/auto/device.h"
#include "tools/gloo_info/reports.h"

namespace gloo_info {

bool printAutomatic(std::ostream& out) {
  try {
    out << "the automatic device: " << gloo::transport::CreateDevice()->str()
        << "\n";
    return true;
  } catch (const std::exception& error) {
    out << "the automatic device cannot be made: " << error.what() << "\n";
    return false;
  }
}

}  // namespace gloo_info
