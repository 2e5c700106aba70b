// What an end of a pair offers, or answers, in its hello: for each kind of link
// the bytes that this kind needs. Bytes from outside: decoding checks them.
#pragma once

#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::automatic {

struct Offer {
  std::string kind;  // "shm"; at most 255 bytes
  std::vector<char> blob;
};

std::vector<char> encode(const std::vector<Offer>& offers);

// Throws IoException. Kinds that this version does not know are kept.
std::vector<Offer> decodeOffers(const std::vector<char>& bytes);

// The first of this kind; null: there is none.
const Offer* find(const std::vector<Offer>& offers, const std::string& kind);

}  // namespace transport::automatic
GLOO_NAMESPACE_END
