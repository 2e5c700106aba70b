#include "algorithms/hazards.h"

#include <algorithm>
#include <iterator>

GLOO_NAMESPACE_BEGIN
namespace algorithms {

Hazards::Spans::iterator Hazards::find(Spans& spans, Spans::iterator near,
                                       size_t at) {
  if (near != spans.end() && near->first <= at) {
    if (near->second.end <= at) {
      ++near;
    }
    if (near == spans.end() || at < near->second.end) {
      return near;
    }
  } else if (near != spans.end() && near != spans.begin()) {
    const auto before = std::prev(near);
    if (before->second.end <= at) {
      return near;
    }
    if (before->first <= at) {
      return before;
    }
  }
  const auto it = spans.upper_bound(at);
  if (it != spans.begin() && at < std::prev(it)->second.end) {
    return std::prev(it);
  }
  return it;
}

Hazards::Spans::iterator Hazards::split(Spans& spans, Spans::iterator it,
                                        size_t at) {
  const Span rest = it->second;
  it->second.end = at;
  return spans.emplace_hint(std::next(it), at, rest);
}

Hazards::Spans::iterator Hazards::isolate(Spans& spans, Spans::iterator near,
                                          size_t begin, size_t end) {
  auto it = find(spans, near, begin);
  // Mostly, actions touch what an earlier one has touched.
  if (it != spans.end() && it->first == begin && it->second.end == end) {
    return it;
  }
  if (it != spans.end() && it->first < begin) {
    it = split(spans, it, begin);
  }
  auto first = it;
  for (size_t at = begin; at < end; ++it) {
    if (it == spans.end() || it->first > at) {
      // A gap: nobody has touched it.
      const size_t next = it == spans.end() ? end : std::min(end, it->first);
      it = spans.emplace_hint(it, at, Span{next});
    } else if (it->second.end > end) {
      split(spans, it, end);
    }
    if (at == begin) {
      first = it;
    }
    at = it->second.end;
  }
  return first;
}

void Hazards::read(uint32_t index, Place place, size_t bytes,
                   std::vector<uint32_t>& waits) {
  Touched& touched = memories_[static_cast<size_t>(place.memory)];
  const size_t end = place.offset + bytes;
  touched.lastRead =
      isolate(touched.spans, touched.lastRead, place.offset, end);
  for (auto it = touched.lastRead;; ++it) {
    Span& span = it->second;
    if (span.writer != kNone) {
      waits.push_back(span.writer);
    }
    if (span.reader != kNone) {
      readers_.push_back({span.reader, span.earlier});
      span.earlier = static_cast<uint32_t>(readers_.size() - 1);
    }
    span.reader = index;
    if (span.end == end) {
      return;
    }
  }
}

void Hazards::write(uint32_t index, Place place, size_t bytes,
                    std::vector<uint32_t>& waits) {
  Touched& touched = memories_[static_cast<size_t>(place.memory)];
  const size_t end = place.offset + bytes;
  const auto first =
      isolate(touched.spans, touched.lastWritten, place.offset, end);
  auto last = first;
  for (;; ++last) {
    const Span& span = last->second;
    if (span.writer != kNone) {
      waits.push_back(span.writer);
    }
    if (span.reader != kNone && span.reader != index) {
      waits.push_back(span.reader);
    }
    for (uint32_t i = span.earlier; i != kNone; i = readers_[i].earlier) {
      if (readers_[i].reader != index) {
        waits.push_back(readers_[i].reader);
      }
    }
    if (span.end == end) {
      break;
    }
  }
  // One span from now on: all of it was written by the same action.
  if (last != first) {
    touched.spans.erase(std::next(first), std::next(last));
    touched.lastRead = first;  // it may have been one of these
  }
  first->second = Span{end, index, kNone, kNone};
  touched.lastWritten = first;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
