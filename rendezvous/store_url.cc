#include "rendezvous/store_url.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "gloo/common/error.h"
#include "rendezvous/decimal.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

constexpr char kForms[] =
    "; use file:///directory, redis://[[user:]password@]host[:port], "
    "redis+unix://[...@]/socket or tcp://host:port";
constexpr int kRedisPort = 6379;
constexpr int kMaxPort = 65535;

// Where what may be a password begins: behind the scheme, if that is one.
size_t endOfScheme(const std::string& url) {
  const size_t end = url.find("://");
  const bool isScheme =
      end != std::string::npos &&
      std::all_of(
          url.begin(), url.begin() + static_cast<ptrdiff_t>(end),
          [](unsigned char c) { return std::isalpha(c) != 0 || c == '+'; });
  return isScheme ? end + 3 : 0;
}

// Printable, on one line, without a password, and not without end.
std::string shown(const std::string& url) {
  std::string text = url;
  const size_t begin = endOfScheme(text);
  const size_t at = text.rfind('@');
  if (at != std::string::npos && at >= begin) {
    text.replace(begin, at - begin, "...");
  }
  if (text.size() > 200) {
    text = text.substr(0, 200) + "...";
  }
  for (char& c : text) {
    c = std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return text;
}

[[noreturn]] void bad(const std::string& url, const std::string& why) {
  throw InvalidOperationException(
      MakeString("store URL '", shown(url), "': ", why, kForms));
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string percentDecode(const std::string& url, const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      bad(url, "'%' is not followed by two hexadecimal digits");
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

// Takes "[user:]password@" off the front of `rest`; `at` is its end, or npos.
void takeCredentials(const std::string& url, size_t at, std::string& rest,
                     StoreUrl& parsed) {
  if (at == std::string::npos) {
    return;
  }
  const std::string credentials = rest.substr(0, at);
  rest = rest.substr(at + 1);
  const size_t colon = credentials.find(':');
  if (colon == std::string::npos) {
    parsed.password = percentDecode(url, credentials);
  } else {
    parsed.user = percentDecode(url, credentials.substr(0, colon));
    parsed.password = percentDecode(url, credentials.substr(colon + 1));
  }
}

// "host", "host:port", "[v6]:port"; defaultPort -1: the port is required.
void takeHostAndPort(const std::string& url, const std::string& rest,
                     int defaultPort, StoreUrl& parsed) {
  std::string port;
  if (!rest.empty() && rest[0] == '[') {
    const size_t end = rest.find(']');
    if (end == std::string::npos) {
      bad(url, "the ']' of the address is missing");
    }
    parsed.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const size_t colon = rest.find(':');
    parsed.host = rest.substr(0, colon);
    port = colon == std::string::npos ? "" : rest.substr(colon);
  }
  if (parsed.host.empty() || parsed.host.find('/') != std::string::npos) {
    bad(url, "there is no host name");
  }
  int64_t number = defaultPort;
  if (!port.empty() && port.back() == '/') {
    port.pop_back();
  }
  if (port.empty() ? defaultPort < 0
                   : port[0] != ':' ||
                         !parseInteger(port.substr(1), 0, kMaxPort, &number)) {
    bad(url, "there is no port between 0 and 65535");
  }
  parsed.port = static_cast<int>(number);
}

}  // namespace

StoreUrl parseStoreUrl(const std::string& url) {
  const size_t split = url.find("://");
  if (split == std::string::npos) {
    bad(url, "there is no '://'");
  }
  const std::string scheme = url.substr(0, split);
  std::string rest = url.substr(split + 3);
  if (rest.find('\0') != std::string::npos) {
    bad(url, "it contains a zero byte");
  }
  StoreUrl parsed;
  if (scheme == "file" || scheme == "redis+unix") {
    parsed.kind = StoreUrl::Kind::kFile;
    if (scheme != "file") {
      parsed.kind = StoreUrl::Kind::kRedisUnix;
      // An absolute path may have a '@' of its own.
      const size_t at = rest[0] == '/' ? std::string::npos : rest.rfind("@/");
      takeCredentials(url, at, rest, parsed);
    }
    if (rest.empty() || rest[0] != '/') {
      bad(url, "the path must be absolute (three slashes)");
    }
    parsed.path = rest;
  } else if (scheme == "redis") {
    parsed.kind = StoreUrl::Kind::kRedis;
    takeCredentials(url, rest.rfind('@'), rest, parsed);
    takeHostAndPort(url, rest, kRedisPort, parsed);
  } else if (scheme == "tcp") {
    parsed.kind = StoreUrl::Kind::kTcp;
    takeHostAndPort(url, rest, -1, parsed);
  } else {
    bad(url, "its kind, before the '://', is unknown");
  }
  return parsed;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
