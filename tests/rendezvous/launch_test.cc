#include "gloo/launch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "gloo/common/error.h"
#include "rendezvous/launch_sources.h"
#include "tests/rendezvous/temporary_directory.h"

namespace gloo_test {

namespace {

using Variables = std::map<std::string, std::string>;

gloo::launch::Environment resolve(const Variables& variables) {
  return gloo::launch::resolve(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) {
          return std::nullopt;
        }
        return found->second;
      });
}

// The text of the refusal; empty if there is none.
std::string refusalOf(const Variables& variables) {
  try {
    resolve(variables);
  } catch (const gloo::InvalidOperationException& error) {
    return error.what();
  }
  return "";
}

const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "29500"}};
const Variables kOpenMpi{
    {"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"PMIX_NAMESPACE", "256114689"},     {"TMPDIR", "/some/tmp"}};
const Variables kSlurm{{"SLURM_PROCID", "2"},
                       {"SLURM_NTASKS", "4"},
                       {"SLURM_LOCALID", "0"},
                       {"SLURM_STEP_NUM_NODES", "2"},
                       {"SLURM_JOB_ID", "77"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) {
    variables[name] = value;
  }
  return variables;
}

TEST(LaunchTest, TorchrunsStoreIsLeftAlone) {
  const auto found = resolve(kTorchrun);
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.size, 8);
  EXPECT_EQ(found.localRank, 1);
  EXPECT_EQ(found.localSize, 2);
  EXPECT_EQ(found.store, "tcp://node0:29501");
  EXPECT_NE(found.source.find("torchrun"), std::string::npos);
  EXPECT_EQ(resolve(with(kTorchrun, {{"MASTER_ADDR", "::1"}})).store,
            "tcp://[::1]:29501");
}

TEST(LaunchTest, OpenMpiOnOneHostMeetsInADirectoryOfTheJob) {
  const auto found = resolve(kOpenMpi);
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.size, 4);
  EXPECT_EQ(found.store.rfind("file:///some/tmp/gloo-", 0), 0U) << found.store;
  EXPECT_NE(found.store.find("256114689"), std::string::npos);
  EXPECT_NE(found.source.find("Open MPI"), std::string::npos);
  auto other = kOpenMpi;
  other["PMIX_NAMESPACE"] = "1";
  EXPECT_NE(resolve(other).store, found.store);
}

TEST(LaunchTest, SeveralHostsNeedAStore) {
  EXPECT_NE(refusalOf(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}))
                .find("GLOO_STORE"),
            std::string::npos);
  EXPECT_NE(refusalOf(kSlurm).find("GLOO_STORE"), std::string::npos);
}

TEST(LaunchTest, SlurmOnOneHostMeetsInADirectoryOfTheStep) {
  const auto found = resolve(
      with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_ID", "3"}}));
  EXPECT_EQ(found.rank, 2);
  EXPECT_NE(found.store.find("slurm-77-3"), std::string::npos) << found.store;
}

TEST(LaunchTest, MpichIsRecognised) {
  const auto found = resolve({{"PMI_RANK", "1"},
                              {"PMI_SIZE", "2"},
                              {"MPI_LOCALRANKID", "1"},
                              {"MPI_LOCALNRANKS", "2"},
                              {"GLOO_STORE", "tcp://host:1"}});
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.localRank, 1);
  EXPECT_EQ(found.store, "tcp://host:1");
}

TEST(LaunchTest, VariablesSetByHandNameTheirStore) {
  const auto found = resolve({{"GLOO_RANK", "0"},
                              {"GLOO_SIZE", "2"},
                              {"GLOO_STORE", "file:///shared"}});
  EXPECT_EQ(found.size, 2);
  EXPECT_EQ(found.store, "file:///shared");
  EXPECT_NE(found.source.find("GLOO_RANK"), std::string::npos);
  EXPECT_NE(found.source.find("GLOO_STORE"), std::string::npos);
}

TEST(LaunchTest, ASingleRankNeedsNoStore) {
  EXPECT_EQ(resolve({{"GLOO_RANK", "0"}, {"GLOO_SIZE", "1"}}).store, "");
}

TEST(LaunchTest, ContradictionsNameBothVariablesAndValues) {
  const auto refusal =
      refusalOf(with(kOpenMpi, {{"GLOO_RANK", "2"}, {"GLOO_SIZE", "4"}}));
  for (const char* part : {"GLOO_RANK is 2", "OMPI_COMM_WORLD_RANK is 1"}) {
    EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
  }
  const auto sizes =
      refusalOf(with(kTorchrun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "9"}}));
  for (const char* part : {"WORLD_SIZE is 8", "PMI_SIZE is 9"}) {
    EXPECT_NE(sizes.find(part), std::string::npos) << sizes;
  }
  EXPECT_NE(refusalOf(with(kSlurm, {{"GLOO_RANK", "1"}, {"GLOO_SIZE", "4"}}))
                .find("SLURM_PROCID is 2"),
            std::string::npos);
}

TEST(LaunchTest, ALauncherInsideASlurmStepIsBelieved) {
  EXPECT_EQ(resolve(with(kSlurm, kTorchrun)).rank, 3);
  EXPECT_EQ(resolve(with(kSlurm, kOpenMpi)).rank, 1);
}

TEST(LaunchTest, MissingAndMalformedVariablesAreNamed) {
  EXPECT_NE(refusalOf({}).find("GLOO_RANK"), std::string::npos);
  EXPECT_NE(refusalOf({{"RANK", "0"}}).find("WORLD_SIZE is not"),
            std::string::npos);
  EXPECT_NE(refusalOf({{"GLOO_SIZE", "2"}}).find("GLOO_RANK is not"),
            std::string::npos);
  EXPECT_NE(refusalOf({{"RANK", "x"}, {"WORLD_SIZE", "2"}}).find("'x'"),
            std::string::npos);
  EXPECT_NE(refusalOf({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).find("size - 1"),
            std::string::npos);
  EXPECT_NE(refusalOf({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}).find("'-1'"),
            std::string::npos);
  EXPECT_NE(
      refusalOf(with(kTorchrun, {{"MASTER_PORT", "65535"}})).find("65534"),
      std::string::npos);
  EXPECT_NE(
      refusalOf(with(kTorchrun, {{"GLOO_STORE", "nonsense"}})).find("nonsense"),
      std::string::npos);
  EXPECT_NE(refusalOf(with(kTorchrun, {{"GLOO_STORE", "tcp://host:0"}}))
                .find("port 0"),
            std::string::npos);
}

TEST(LaunchTest, AJobDirectoryIsPrivateAndMayExist) {
  TemporaryDirectory parent;
  const std::string path = parent.path() + "/job";
  gloo::launch::makeJobDirectory(path);
  gloo::launch::makeJobDirectory(path);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  const std::string link = parent.path() + "/link";
  std::filesystem::create_symlink(path, link);
  EXPECT_THROW(gloo::launch::makeJobDirectory(link), gloo::IoException);
  EXPECT_THROW(gloo::launch::makeJobDirectory(parent.path() + "/a/b"),
               gloo::IoException);
}

}  // namespace

}  // namespace gloo_test
