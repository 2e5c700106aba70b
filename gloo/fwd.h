// Names without definitions, for headers that only mention them. Use this
// instead of declaring `namespace gloo { class Context; }` yourself, which
// would name another class where the library's names live in an inline
// namespace.
#pragma once

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

class Algorithm;
class Context;
class IStore;

namespace rendezvous {
class Context;
class ContextFactory;
class ExchangeStore;
class FileStore;
class HashStore;
class PrefixStore;
class RedisStore;
class Store;
}  // namespace rendezvous

namespace transport {
class Address;
class Buffer;
class Context;
class Device;
class Pair;
class RemoteKey;
class UnboundBuffer;

namespace ibverbs {
struct attr;
}  // namespace ibverbs
namespace tcp {
struct attr;
}  // namespace tcp
}  // namespace transport

GLOO_NAMESPACE_END
