// The collectives' checks, of all else.
#include "tests/support/collectives/checks.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

GLOO_TEST_FOR_EACH_OTHER_TYPE(GLOO_TEST_DEFINE_ALL)

}  // namespace testing_support
GLOO_NAMESPACE_END
