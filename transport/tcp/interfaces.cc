#include "transport/tcp/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {
namespace {

using base::SocketAddress;

// 127.0.0.0/8, all of which is this host's although one address is listed.
bool isIn127(const SocketAddress& address) {
  return address.family() == AF_INET && address.isLoopback();
}

bool sameHost(SocketAddress a, SocketAddress b) {
  if (a.family() != b.family()) {
    return false;
  }
  if (a.family() == AF_INET) {
    const auto* x = reinterpret_cast<const sockaddr_in*>(a.get());
    const auto* y = reinterpret_cast<const sockaddr_in*>(b.get());
    return x->sin_addr.s_addr == y->sin_addr.s_addr;
  }
  const auto* x = reinterpret_cast<const sockaddr_in6*>(a.get());
  const auto* y = reinterpret_cast<const sockaddr_in6*>(b.get());
  const bool scopes = x->sin6_scope_id == 0 || y->sin6_scope_id == 0 ||
                      x->sin6_scope_id == y->sin6_scope_id;
  return scopes &&
         std::memcmp(&x->sin6_addr, &y->sin6_addr, sizeof(x->sin6_addr)) == 0;
}

bool isLinkLocal(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address.get());
    return (ntohl(in->sin_addr.s_addr) >> 16) == 0xa9fe;  // RFC 3927
  }
  const auto* in = reinterpret_cast<const sockaddr_in6*>(address.get());
  return IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr);
}

std::string withoutPort(const SocketAddress& address) {
  const std::string text = address.str();
  return text.substr(0, text.rfind(':'));
}

std::string describe(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& interface : interfaces) {
    text += (text.empty() ? "" : ", ") + interface.name + " " +
            withoutPort(interface.address) + (interface.up ? "" : " (down)");
  }
  return text.empty() ? "none" : text;
}

const char* familyText(int family) {
  return family == AF_INET    ? " of family IPv4"
         : family == AF_INET6 ? " of family IPv6"
                              : "";
}

bool allLoopback(const std::vector<SocketAddress>& addresses) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const auto& it) { return it.isLoopback(); });
}

// A name of 127.0.1.1 is this host's, with its domain perhaps (Debian's
// reference, 5.1.1). The number itself means itself.
bool isDebiansOwnName(const std::string& host,
                      const std::vector<SocketAddress>& addresses) {
  in_addr number{};
  return ::inet_pton(AF_INET, host.c_str(), &number) != 1 &&
         !addresses.empty() &&
         std::all_of(addresses.begin(), addresses.end(), [](const auto& it) {
           return withoutPort(it) == "127.0.1.1";
         });
}

class Chooser {
 public:
  Chooser(const Wanted& wanted, const std::vector<Interface>& interfaces)
      : wanted_(wanted), interfaces_(interfaces) {}

  template <typename Test>
  const Interface* first(const Test& test) const {
    const Interface* found = nullptr;
    for (const Interface& interface : interfaces_) {
      const int family = interface.address.family();
      if (!interface.up || !test(interface) ||
          (wanted_.family != AF_UNSPEC && wanted_.family != family)) {
        continue;
      }
      if (family == AF_INET) {
        return &interface;
      }
      found = found == nullptr ? &interface : found;
    }
    return found;  // IPv6 where there is no IPv4
  }

  std::optional<Interface> byAddresses(
      const std::vector<SocketAddress>& addresses, bool loopback) const {
    for (const SocketAddress& address : addresses) {
      const Interface* found = first([&](const Interface& interface) {
        return (loopback || !interface.loopback) &&
               (sameHost(interface.address, address) ||
                (isIn127(interface.address) && isIn127(address)));
      });
      if (found != nullptr) {
        Interface chosen = *found;
        if (isIn127(address)) {
          chosen.address = address;
          chosen.address.setPort(0);
        }
        return chosen;
      }
    }
    return std::nullopt;
  }

  const Interface* automatic() const {
    const Interface* found =
        first([](const Interface& it) { return it.routable(); });
    if (found == nullptr) {
      found = first([](const Interface& it) { return !it.loopback; });
    }
    return found != nullptr ? found : first([](const auto&) { return true; });
  }

  Interface byAddress() const {
    const auto found = byAddresses({wanted_.address}, true);
    if (!found) {
      fail("none that is up has the address " + withoutPort(wanted_.address));
    }
    return *found;
  }

  Interface byName() const {
    const auto named = [&](const Interface& it) {
      return it.name == wanted_.name;
    };
    const Interface* found = first([&](const Interface& it) {
      return named(it) && !isLinkLocal(it.address);
    });
    found = found != nullptr ? found : first(named);
    if (found == nullptr) {
      fail("none that is up is called " + wanted_.name);
    }
    return *found;
  }

  Interface byHost(const std::string& ownName, Resolve resolve) const {
    const bool any = wanted_.host.empty();
    const std::string host = any ? ownName : wanted_.host;
    std::string why = "none of its addresses is this host's";
    const auto addresses = resolve(host, wanted_.family, &why);
    // Many hosts give their own name a loopback address: no use to the others.
    const bool own = host == ownName || isDebiansOwnName(host, addresses);
    if (const auto found = byAddresses(addresses, !own)) {
      return *found;
    }
    const Interface* found = nullptr;
    if (any || (own && allLoopback(addresses))) {
      found = automatic();
    }
    if (found == nullptr) {
      fail("tried the host name " + host + " (" + why + ")");
    }
    return *found;
  }

 private:
  [[noreturn]] void fail(const std::string& tried) const {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION(
        "No network interface for the TCP device: ", tried,
        familyText(wanted_.family),
        ". Interfaces of this host: ", describe(interfaces_));
  }

  const Wanted& wanted_;
  const std::vector<Interface>& interfaces_;
};

}  // namespace

bool Interface::routable() const {
  return !loopback && !address.isLoopback() && !isLinkLocal(address);
}

std::vector<Interface> listInterfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("Cannot list the network interfaces: ",
                            base::errnoText(error));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(
      list, &::freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* it = list; it != nullptr; it = it->ifa_next) {
    const int family = it->ifa_addr != nullptr ? it->ifa_addr->sa_family : 0;
    if (family != AF_INET && family != AF_INET6) {
      continue;
    }
    const socklen_t length =
        family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    interfaces.push_back({it->ifa_name, SocketAddress(it->ifa_addr, length),
                          (it->ifa_flags & IFF_UP) != 0,
                          (it->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return interfaces;
}

std::vector<SocketAddress> resolveHost(const std::string& host, int family,
                                       std::string* why) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int rv = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (rv != 0) {
    *why = rv == EAI_SYSTEM ? base::errnoText(errno) : ::gai_strerror(rv);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(
      list, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* it = list; it != nullptr; it = it->ai_next) {
    addresses.emplace_back(it->ai_addr, it->ai_addrlen);
  }
  return addresses;
}

Interface chooseInterface(const Wanted& wanted,
                          const std::vector<Interface>& interfaces,
                          const std::string& ownName, Resolve resolve) {
  const Chooser chooser(wanted, interfaces);
  if (wanted.address.length() > 0) {
    return chooser.byAddress();
  }
  if (!wanted.name.empty()) {
    return chooser.byName();
  }
  return chooser.byHost(ownName, resolve);
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
