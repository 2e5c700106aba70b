#include "gloo/internal/cgroups.h"

#include <fstream>
#include <sstream>

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

// Where the cgroups of one hierarchy are to be seen.
struct Mount {
  int version = 0;
  std::string top;  // the group that is seen at `point`
  std::string point;
};

bool hasWord(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, ',');) {
    if (one == word) {
      return true;
    }
  }
  return false;
}

// See proc(5): "36 35 0:30 /top /point options [tags] - type source options".
std::vector<Mount> mounts(std::string_view controller,
                          const std::string& root) {
  std::vector<Mount> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) {
      continue;
    }
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string skipped, top, point, type, source, options;
    before >> skipped >> skipped >> skipped >> top >> point;
    after >> type >> source >> options;
    if (type == "cgroup2") {
      found.push_back({2, top, point});
    } else if (type == "cgroup" && hasWord(options, controller)) {
      found.push_back({1, top, point});
    }
  }
  return found;
}

void addFrom(const std::string& root, const Mount& mount, std::string group,
             std::vector<Cgroup>& found) {
  const std::string top = mount.top == "/" ? "" : mount.top;
  const bool isBelow = group.compare(0, top.size(), top) == 0 &&
                       (group.size() == top.size() || group[top.size()] == '/');
  // Outside of what is mounted here: only the top can be looked at.
  group = isBelow ? group.substr(top.size()) : std::string();
  for (;;) {
    found.push_back({root + mount.point + group, mount.version});
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) {
      return;
    }
    group.resize(slash);
  }
}

}  // namespace

std::vector<Cgroup> cgroupsOf(std::string_view controller,
                              const std::string& root) {
  std::vector<Cgroup> found;
  const std::vector<Mount> seen = mounts(controller, root);
  // "4:memory:/group", or "0::/group" of the second version.
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t one = line.find(':');
    const size_t two = line.find(':', one + 1);
    if (one == std::string::npos || two == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(one + 1, two - one - 1);
    const int version = controllers.empty()                ? 2
                        : hasWord(controllers, controller) ? 1
                                                           : 0;
    for (const Mount& mount : seen) {
      if (mount.version == version) {
        addFrom(root, mount, line.substr(two + 1), found);
      }
    }
  }
  return found;
}

}  // namespace internal
GLOO_NAMESPACE_END
