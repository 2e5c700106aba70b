#include "tools/gloo_simulate/documents.h"

#include <filesystem>
#include <sstream>

#include "tools/gloo_simulate/descriptions.h"
#include "tools/gloo_simulate/diagram.h"
#include "tools/gloo_simulate/report.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;
using algorithms::AlgorithmInfo;

constexpr const char* kPictures = "algorithms";

constexpr const char* kHead = R"(# Algorithms

Made by `./dev docs` from the catalogue (`algorithms/catalogue.cc`): the pictures
are the schedules that run. Each algorithm is proven for 1 to 64 ranks and every
root, and for chosen numbers of up to 1024 ([verifier.md](verifier.md) says which,
and why one run decides all), and [simulator.md](simulator.md) tells what it costs
on a network.

In the pictures ranks are across and rounds go down: a rank sends one message per
round and receives one. Labels are the numbers of blocks (*s2*: block 2 of memory
that is not the caller's, where blocks may be in another order; *2.1*: segment 1
of block 2). A red arrow is received and reduced. Copies within a rank are not
drawn. `gloo_simulate -c allreduce -a ring -n 6 --text` prints any of them,
`--draw FILE` draws it.

n is the number of ranks, m the bytes of the vector, or of all ranks' blocks
together; *moved* is what the busiest rank sends or receives. The hierarchical
algorithms are for ranks that share hosts, H hosts of k ranks; lanes, counterparts
and uneven hosts are explained in [hierarchy.md](hierarchy.md).

The classes of the older API (`AllreduceRing`, `AllreduceHalvingDoubling`, ...) name
their algorithm, and so does `AllreduceOptions::setAlgorithm`. Vectors of up to 16
KiB (or all ranks' blocks together) are not divided for a name's sake: there the
library chooses, as if none had been named. What `GLOO_ALGORITHM` names holds for all.

)";

std::string pictureOf(const AlgorithmInfo& info) {
  return std::string(kPictures) + "/" + std::string(nameOf(info.collective)) +
         "-" + std::string(info.name) + ".svg";
}

void addSection(std::ostream& out, const AlgorithmInfo& info) {
  const Description* d = descriptionOf(info);
  out << "### " << nameOf(info.collective) << ": " << info.name << "\n\n";
  if (d != nullptr) {
    out << d->text << "\n\n- Cost: " << d->cost << "\n- Chosen: " << d->chosen
        << "\n- Source: " << d->source << "\n\n";
  }
  out << "![" << info.name << "](" << pictureOf(info) << ")\n\n";
}

Drawing drawingOf(const AlgorithmInfo& info) {
  Drawing drawing;
  drawing.algorithm = &info;
  if (const Description* d = descriptionOf(info)) {
    drawing.ranks = d->ranks;
    drawing.segments = d->segments;
    drawing.ranksPerHost = d->ranksPerHost;
  }
  return drawing;
}

}  // namespace

std::map<std::string, std::string> documents() {
  std::map<std::string, std::string> files;
  std::ostringstream out;
  out << kHead;
  const AlgorithmInfo* last = nullptr;
  for (const AlgorithmInfo& info : algorithms::catalogue()) {
    if (last == nullptr || last->collective != info.collective) {
      out << "## " << nameOf(info.collective) << "\n\n"
          << promiseOf(info.collective) << "\n\n";
    }
    addSection(out, info);
    files[pictureOf(info)] = svgOf(drawingOf(info));
    last = &info;
  }
  std::string text = out.str();
  text.pop_back();  // one newline at the end
  files["algorithms.md"] = text;
  return files;
}

void writeDocuments(const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path root(folder);
  const auto files = documents();
  fs::create_directories(root / kPictures);
  for (const auto& entry : fs::directory_iterator(root / kPictures)) {
    const std::string name =
        std::string(kPictures) + "/" + entry.path().filename().string();
    if (entry.path().extension() == ".svg" && files.count(name) == 0) {
      fs::remove(entry.path());
    }
  }
  for (const auto& [name, text] : files) {
    writeText((root / name).string(), text);
  }
}

}  // namespace gloo_simulate
