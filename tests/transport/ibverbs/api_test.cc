// The table of libibverbs' functions: the real library, none, a wrong one.
#include "transport/ibverbs/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gloo/common/error.h"
#include "transport/ibverbs/ports.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using testing::HasSubstr;

// Restores the system's library.
struct ReplacedApi {
  explicit ReplacedApi(const LoadedApi& loaded) { replaceApi(&loaded); }
  ~ReplacedApi() { replaceApi(nullptr); }
};

TEST(VerbsApi, FindsEveryFunctionInTheInstalledLibrary) {
  const LoadedApi loaded = loadApi("libibverbs.so.1");
  ASSERT_TRUE(loaded.api.has_value()) << loaded.error;
  EXPECT_STREQ(loaded.api->wcStatusStr(IBV_WC_SUCCESS), "success");
}

TEST(VerbsApi, AMissingLibraryIsNoDeviceAndNamesTheRemedy) {
  const LoadedApi loaded = loadApi("libibverbs-that-is-not-there.so.1");
  EXPECT_FALSE(loaded.api.has_value());
  EXPECT_THAT(loaded.error, HasSubstr("No RDMA device"));
  EXPECT_THAT(loaded.error, HasSubstr("libibverbs-that-is-not-there.so.1"));
  EXPECT_THAT(loaded.error, HasSubstr("apt-get install libibverbs1"));
}

TEST(VerbsApi, ALibraryWithoutTheFunctionsIsTooOldAndNamesThem) {
  const LoadedApi loaded = loadApi("libc.so.6");
  EXPECT_FALSE(loaded.api.has_value());
  EXPECT_THAT(loaded.error, HasSubstr("libc.so.6 is too old"));
  EXPECT_THAT(loaded.error, HasSubstr("ibv_reg_mr_iova2"));
}

TEST(VerbsApi, WithoutTheLibraryListingDevicesSaysWhy) {
  const LoadedApi none = loadApi("libibverbs-that-is-not-there.so.1");
  const ReplacedApi replaced(none);
  EXPECT_EQ(findApi(), nullptr);
  try {
    listDevices();
    FAIL() << "listed devices without a library";
  } catch (const NoDeviceException& error) {
    EXPECT_THAT(error.what(), HasSubstr("apt-get install libibverbs1"));
  }
}

TEST(VerbsApi, ListsWhatThisHostHasWithoutAnError) {
  // Whatever there is: a host without a device has an empty list.
  for (const RdmaDevice& device : listDevices()) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_TRUE(!device.error.empty() || !device.ports.empty());
  }
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
