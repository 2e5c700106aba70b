#include "transport/auto/offer.h"

#include <algorithm>
#include <span>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace transport::automatic {
namespace {

std::span<const char> take(std::span<const char>& bytes, size_t n) {
  if (bytes.size() < n) {
    GLOO_THROW_IO_EXCEPTION(
        "The peer's hello ends within an offer of a link: it runs another"
        " program or is broken");
  }
  const std::span<const char> taken = bytes.first(n);
  bytes = bytes.subspan(n);
  return taken;
}

size_t takeNumber(std::span<const char>& bytes, size_t n) {
  size_t number = 0;
  int shift = 0;
  for (const char c : take(bytes, n)) {
    number |= size_t{static_cast<uint8_t>(c)} << shift;
    shift += 8;
  }
  return number;
}

}  // namespace

// Each: length of the kind u8, kind, length of the blob u16, blob.
std::vector<char> encode(const std::vector<Offer>& offers) {
  std::vector<char> out;
  for (const Offer& offer : offers) {
    out.push_back(static_cast<char>(offer.kind.size()));
    out.insert(out.end(), offer.kind.begin(), offer.kind.end());
    out.push_back(static_cast<char>(offer.blob.size()));
    out.push_back(static_cast<char>(offer.blob.size() >> 8));
    out.insert(out.end(), offer.blob.begin(), offer.blob.end());
  }
  return out;
}

std::vector<Offer> decodeOffers(const std::vector<char>& bytes) {
  std::vector<Offer> offers;
  std::span<const char> rest(bytes);
  while (!rest.empty()) {
    const auto kind = take(rest, takeNumber(rest, 1));
    const auto blob = take(rest, takeNumber(rest, 2));
    offers.push_back({{kind.begin(), kind.end()}, {blob.begin(), blob.end()}});
  }
  return offers;
}

const Offer* find(const std::vector<Offer>& offers, const std::string& kind) {
  const auto it =
      std::find_if(offers.begin(), offers.end(),
                   [&](const Offer& offer) { return offer.kind == kind; });
  return it != offers.end() ? &*it : nullptr;
}

}  // namespace transport::automatic
GLOO_NAMESPACE_END
