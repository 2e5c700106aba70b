#include "algorithms/hazards.h"

#include <algorithm>
#include <iterator>

GLOO_NAMESPACE_BEGIN
namespace algorithms {

Hazards::Spans::iterator Hazards::isolate(Spans& spans, size_t begin,
                                          size_t end) {
  // Mostly, actions touch what an earlier one has touched.
  if (const auto it = spans.find(begin);
      it != spans.end() && it->second.end == end) {
    return it;
  }
  const auto splitAt = [&spans](size_t at) {
    auto it = spans.upper_bound(at);
    if (it == spans.begin()) {
      return;
    }
    --it;
    if (it->first < at && at < it->second.end) {
      Span rest = it->second;
      it->second.end = at;
      spans.emplace_hint(std::next(it), at, std::move(rest));
    }
  };
  splitAt(begin);
  splitAt(end);
  // Fill the gaps with spans that nobody has touched.
  for (size_t at = begin; at < end;) {
    auto it = spans.lower_bound(at);
    const size_t next = it == spans.end() ? end : std::min(end, it->first);
    if (next > at) {
      it = spans.emplace_hint(it, at, Span{next, -1, {}});
    }
    at = it->second.end;
  }
  return spans.find(begin);
}

void Hazards::read(uint32_t index, Place place, size_t bytes,
                   std::vector<uint32_t>& waits) {
  Spans& spans = memories_[static_cast<size_t>(place.memory)];
  const size_t end = place.offset + bytes;
  for (auto it = isolate(spans, place.offset, end);
       it != spans.end() && it->first < end; ++it) {
    if (it->second.writer >= 0) {
      waits.push_back(static_cast<uint32_t>(it->second.writer));
    }
    it->second.readers.push_back(index);
  }
}

void Hazards::write(uint32_t index, Place place, size_t bytes,
                    std::vector<uint32_t>& waits) {
  Spans& spans = memories_[static_cast<size_t>(place.memory)];
  const size_t end = place.offset + bytes;
  auto first = isolate(spans, place.offset, end);
  auto it = first;
  for (; it != spans.end() && it->first < end; ++it) {
    if (it->second.writer >= 0) {
      waits.push_back(static_cast<uint32_t>(it->second.writer));
    }
    for (const uint32_t reader : it->second.readers) {
      if (reader != index) {
        waits.push_back(reader);
      }
    }
  }
  // One span from now on: all of it was written by the same action.
  spans.erase(std::next(first), it);
  first->second = Span{end, index, {}};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
