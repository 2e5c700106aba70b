// PyTorch's ProcessGroupGloo as a training program drives it: checks what each
// collective returns, then times it. pytorch.py compiles this with Debian's
// libtorch as it is, and once more with PyTorch's own source of that class
// compiled against this library's headers.
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using c10d::ProcessGroupGloo;
using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;
using Group = c10::intrusive_ptr<ProcessGroupGloo>;

constexpr auto kTimeout = std::chrono::seconds(60);
constexpr int64_t kSizes[] = {4, 4 << 10, 4 << 20};  // bytes
constexpr auto kBudget = std::chrono::milliseconds(500);
constexpr size_t kFewest = 20;
constexpr size_t kMost = 2000;

struct Rank {
  Group group;
  int rank;
  int size;

  float sumOfRanks() const { return static_cast<float>(size * (size + 1)) / 2; }
};

void require(bool holds, const std::string& what) {
  if (!holds) {
    throw std::runtime_error(what + ": wrong result");
  }
}

bool isAll(const at::Tensor& tensor, double value) {
  return tensor.to(torch::kFloat).eq(value).all().item<bool>();
}

// One call of each collective on `count` floats; they may be called again.
struct Collective {
  std::string name;
  std::function<void()> run;
  std::function<bool()> isRight;  // after the first run
};

std::vector<Collective> collectives(const Rank& me, int64_t count) {
  const auto mine = [&] {
    return torch::full({count}, static_cast<float>(me.rank + 1));
  };
  Tensors sum{mine()};
  Tensors root{mine()};
  Tensors from{mine()};
  std::vector<Tensors> all(1);
  for (int rank = 0; rank < me.size; rank++) {
    all[0].push_back(torch::zeros({count}));
  }
  const auto toAll = torch::full({me.size}, static_cast<float>(me.rank + 1));
  const auto fromAll = torch::zeros({me.size});
  const Group group = me.group;
  const int size = me.size;
  return {{"allreduce", [=]() mutable { group->allreduce(sum)->wait(); },
           [=, expected = me.sumOfRanks()] { return isAll(sum[0], expected); }},
          {"broadcast", [=]() mutable { group->broadcast(root)->wait(); },
           [=] { return isAll(root[0], 1); }},
          {"allgather", [=]() mutable { group->allgather(all, from)->wait(); },
           [=] {
             bool right = true;
             for (int rank = 0; rank < size; rank++) {
               right &= isAll(all[0][static_cast<size_t>(rank)], rank + 1);
             }
             return right;
           }},
          {"barrier", [=] { group->barrier()->wait(); }, [] { return true; }}};
}

// What frameworks use beside.
void checkTheRest(const Rank& me) {
  Tensors half{torch::full({1000}, me.rank + 1).to(torch::kHalf)};
  me.group->allreduce(half)->wait();
  require(isAll(half[0], me.sumOfRanks()), "allreduce of float16");

  const auto in = torch::arange(me.size) + me.rank * me.size;
  auto out = torch::zeros({me.size}, torch::kLong);
  auto input = in.clone();
  std::vector<int64_t> equal;
  me.group->alltoall_base(out, input, equal, equal)->wait();
  require(out.eq(torch::arange(me.size) * me.size + me.rank).all().item<bool>(),
          "alltoall");

  Tensors message{torch::full({5}, me.rank)};
  if (me.rank == 0) {
    me.group->send(message, me.size - 1, 7)->wait();
  } else if (me.rank == me.size - 1) {
    me.group->recvAnysource(message, 7)->wait();
    require(isAll(message[0], 0), "recvAnysource");
  }
}

// All ranks have to run as often: as rank 0 finds the budget to allow.
double median(const Rank& me, const std::function<void()>& run) {
  std::vector<double> times;
  const auto begin = Clock::now();
  Tensors goOn{torch::ones({1})};
  while (goOn[0].item<float>() > 0) {
    for (size_t i = 0; i < kFewest; i++) {
      const auto start = Clock::now();
      run();
      times.push_back(
          std::chrono::duration<double, std::micro>(Clock::now() - start)
              .count());
    }
    if (times.size() >= kMost || Clock::now() - begin > kBudget) {
      goOn[0].zero_();
    }
    me.group->broadcast(goOn)->wait();
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void work(const Rank& me) {
  checkTheRest(me);
  for (const int64_t bytes : kSizes) {
    for (const Collective& collective :
         collectives(me, bytes / static_cast<int64_t>(sizeof(float)))) {
      if (collective.name == "barrier" && bytes != kSizes[0]) {
        continue;
      }
      collective.run();
      require(collective.isRight(), collective.name);
      const double time = median(me, collective.run);
      if (me.rank == 0) {
        std::printf(
            "{\"collective\": \"%s\", \"bytes\": %lld, \"us\": %.2f}\n",
            collective.name.c_str(),
            static_cast<long long>(collective.name == "barrier" ? 0 : bytes),
            time);
      }
    }
  }
}

int runRank(const std::string& path, int rank, int size) try {
  const auto options = ProcessGroupGloo::Options::create();
  options->devices.push_back(ProcessGroupGloo::createDeviceForInterface("lo"));
  options->timeout = kTimeout;
  work({c10::make_intrusive<ProcessGroupGloo>(
            c10::make_intrusive<c10d::FileStore>(path, size), rank, size,
            options),
        rank, size});
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw std::runtime_error("not all output could be written to stdout");
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
  return 1;
}

}  // namespace

// process_group STORE RANK SIZE
int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: process_group STORE RANK SIZE\n");
    return 2;
  }
  return runRank(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
