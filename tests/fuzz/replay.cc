// Runs every target on its seeds and on a fixed set of mutations of them; with
// `corpus NAME DIRECTORY` writes the seeds of a target for libFuzzer.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

namespace {

using gloo::test::FuzzTarget;
using gloo::test::fuzzTargets;

constexpr int kMutationsPerSeed = 20000;

void replay(const FuzzTarget& target) {
  std::mt19937_64 random(1);
  for (const auto& seed : target.seeds) {
    target.run(seed.data(), seed.size());
    for (int i = 0; i < kMutationsPerSeed; i++) {
      // A copy of exactly this size: a sanitizer sees one byte too far.
      const auto bytes = gloo::test::mutate(seed, random);
      target.run(bytes.data(), bytes.size());
    }
  }
  std::printf("%s: %zu seeds, %d mutations each\n", target.name,
              target.seeds.size(), kMutationsPerSeed);
}

bool writeCorpus(const FuzzTarget& target, const std::string& directory) {
  for (size_t i = 0; i < target.seeds.size(); i++) {
    std::ofstream out(directory + "/seed" + std::to_string(i));
    out.write(target.seeds[i].data(),
              static_cast<std::streamsize>(target.seeds[i].size()));
    if (!out.flush()) {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const bool corpus = argc == 4 && std::strcmp(argv[1], "corpus") == 0;
  int matched = 0;
  for (const FuzzTarget& target : fuzzTargets()) {
    if (corpus && std::strcmp(argv[2], target.name) == 0) {
      matched += writeCorpus(target, argv[3]) ? 1 : 0;
    } else if (!corpus) {
      replay(target);
      matched++;
    }
  }
  if (matched == 0) {
    std::fprintf(stderr, "no target ran\n");
    return 1;
  }
  return 0;
}
