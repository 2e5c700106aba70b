// The collectives' checks, of integers.
#include "tests/support/collectives/checks.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

GLOO_TEST_FOR_EACH_INTEGER(GLOO_TEST_DEFINE_ALL)

}  // namespace testing_support
GLOO_NAMESPACE_END
