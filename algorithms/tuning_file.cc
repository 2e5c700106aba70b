#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "algorithms/collective_names.h"
#include "algorithms/direct_sizes.h"
#include "algorithms/tuning.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr int kMaxDepth = 8;
constexpr double kMaxSeconds = 1000;
constexpr double kMaxBytes = 1e15;
constexpr double kMaxRanks = 1 << 20;
// Shorter ones are all head, and of a long vector too many to plan.
constexpr double kLeastSegment = 4096;

[[noreturn]] void wrong(const std::string& where, const std::string& what) {
  throw InvalidOperationException(
      MakeString("GLOO_TUNING_FILE: ", where, ": ", what));
}

// Of what a file may contain: for the texts of errors.
std::string shown(const json& value) {
  constexpr size_t kMost = 40;
  const std::string text =
      value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// A name, without quotes.
std::string shownName(const std::string& name) {
  const std::string text = shown(name);
  return text.substr(1, text.size() - (text.back() == '"' ? 2 : 1));
}

std::string boundText(double bound) {
  constexpr double kMostExact = 1e15;
  return bound == std::floor(bound) && std::abs(bound) <= kMostExact
             ? std::to_string(static_cast<int64_t>(bound))
             : MakeString(bound);
}

double numberOf(const json& value, const std::string& where, double least,
                double most) {
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!(number >= least && number <= most)) {
    wrong(where, MakeString("expected a number from ", boundText(least), " to ",
                            boundText(most), ", found ", shown(value)));
  }
  return number;
}

// 2.0 is one as well.
double wholeNumberOf(const json& value, const std::string& where, double least,
                     double most) {
  const double number = numberOf(value, where, least, most);
  if (number != std::floor(number)) {
    wrong(where, "expected a whole number, found " + shown(value));
  }
  return number;
}

const json& member(const json& object, const char* name, json::value_t type,
                   const std::string& where) {
  const auto it = object.find(name);
  if (it == object.end() || it->type() != type) {
    wrong(where, MakeString("no '", name, "', or not of the right type"));
  }
  return *it;
}

void requireObject(const json& value, const std::set<std::string>& names,
                   const std::string& where) {
  if (!value.is_object()) {
    wrong(where, "expected an object, found " + shown(value));
  }
  for (const auto& item : value.items()) {
    if (names.count(item.key()) == 0) {
      wrong(where, "unknown member " + shown(item.key()));
    }
  }
}

std::string transportOf(const json& name, const std::string& where) {
  for (const char* const known : {"tcp", "shm", "ibverbs", "auto"}) {
    if (name == known) {
      return known;
    }
  }
  wrong(where + ".transport",
        "expected tcp, shm, ibverbs or auto, found " + shown(name));
}

Collective collectiveNamed(const std::string& name, const std::string& where) {
  const auto collective = findCollective(name);
  if (!collective) {
    wrong(where, noCollective(shownName(name)));
  }
  return *collective;
}

Table tableOf(const json& rows, Collective collective,
              const std::string& where) {
  if (!rows.is_array()) {
    wrong(where, "expected an array, found " + shown(rows));
  }
  Table table;
  for (const json& row : rows) {
    requireObject(row, {"bytes", "algorithm"}, where);
    const json& name = member(row, "algorithm", json::value_t::string, where);
    const AlgorithmInfo* info =
        findAlgorithm(collective, name.get_ref<const std::string&>());
    if (info == nullptr) {
      wrong(where, "there is no algorithm " + shown(name));
    }
    const auto bytes = static_cast<size_t>(wholeNumberOf(
        row.value("bytes", json()), where + ".bytes", 0, kMaxBytes));
    if (!table.empty() && bytes <= table.back().bytes) {
      wrong(where, MakeString("bytes ", bytes, " after ", table.back().bytes,
                              ": rows must ascend"));
    }
    table.push_back({bytes, info});
  }
  return table;
}

// Those that the file names; the rest stays.
DirectParameters directOf(const json& object, DirectParameters direct,
                          const std::string& where) {
  requireObject(object,
                {"flat_bytes", "crowded_flat_bytes", "rooted_bytes",
                 "crowded_rooted_bytes", "halved_bytes", "in_place_bytes",
                 "read_bytes", "chunk_bytes", "most_bytes"},
                where);
  const auto set = [&](const char* name, size_t least, size_t& bytes) {
    if (const auto it = object.find(name); it != object.end()) {
      bytes = static_cast<size_t>(wholeNumberOf(
          *it, where + "." + name, static_cast<double>(least), kMaxBytes));
    }
  };
  // One alone was measured with the ranks as they are.
  const auto setBoth = [&](const char* name, const char* crowded,
                           DirectParameters::ByCores& both) {
    set(name, 0, both.apart);
    set(name, 0, both.crowded);
    set(crowded, 0, both.crowded);
  };
  setBoth("flat_bytes", "crowded_flat_bytes", direct.flatBytes);
  setBoth("rooted_bytes", "crowded_rooted_bytes", direct.rootedBytes);
  set("halved_bytes", 0, direct.halvedBytes);
  set("in_place_bytes", DirectParameters::kLeastInPlace, direct.inPlaceBytes);
  set("read_bytes", DirectParameters::kLeastInPlace, direct.readBytes);
  set("chunk_bytes", DirectParameters::kLeastChunk, direct.chunkBytes);
  if (object.contains("most_bytes")) {
    const json& most =
        member(object, "most_bytes", json::value_t::object, where);
    for (const auto& item : most.items()) {
      const Collective collective =
          collectiveNamed(item.key(), where + ".most_bytes");
      const std::string place = where + ".most_bytes." + item.key();
      if (!hasDirect(collective)) {
        wrong(place, "it never runs in memory that all ranks have mapped");
      }
      direct.mostBytes[static_cast<size_t>(collective)] =
          static_cast<size_t>(wholeNumberOf(item.value(), place, 0, kMaxBytes));
    }
  }
  return direct;
}

// One network of the file.
struct Entry {
  std::string transport;
  int ranks = 0;
  LinkParameters link;
  double reducePerByte = 0;
  double copyPerByte = 0;
  size_t segmentBytes = 0;
  std::map<Collective, Table> best;
  DirectParameters direct;
};

Entry entryOf(const json& object, const std::string& where) {
  requireObject(
      object,
      {"transport", "ranks", "latency", "overhead", "gap", "gap_per_byte",
       "reduce_per_byte", "copy_per_byte", "segment_bytes", "best", "direct"},
      where);
  const auto seconds = [&](const char* name) {
    return numberOf(object.value(name, json()), where + "." + name, 0,
                    kMaxSeconds);
  };
  const auto whole = [&](const char* name, double least, double most) {
    return wholeNumberOf(object.value(name, json()), where + "." + name, least,
                         most);
  };
  Entry entry;
  entry.transport = transportOf(
      member(object, "transport", json::value_t::string, where), where);
  entry.ranks = static_cast<int>(whole("ranks", 1, kMaxRanks));
  entry.link.latency = seconds("latency");
  entry.link.overhead = seconds("overhead");
  entry.link.gap = seconds("gap");
  entry.link.gapPerByte = seconds("gap_per_byte");
  entry.reducePerByte = seconds("reduce_per_byte");
  entry.copyPerByte = seconds("copy_per_byte");
  entry.segmentBytes =
      static_cast<size_t>(whole("segment_bytes", kLeastSegment, kMaxBytes));
  if (object.contains("best")) {
    const json& best = member(object, "best", json::value_t::object, where);
    for (const auto& item : best.items()) {
      const Collective collective =
          collectiveNamed(item.key(), where + ".best");
      const std::string place = where + ".best." + item.key();
      entry.best[collective] = tableOf(item.value(), collective, place);
    }
  }
  entry.direct = shippedDirectParameters(entry.ranks);
  if (object.contains("direct")) {
    entry.direct = directOf(object["direct"], entry.direct, where + ".direct");
  }
  return entry;
}

std::vector<Entry> entriesOf(const std::string& text) {
  // nlohmann::json copies and prints recursively, but parses in a loop.
  bool deep = false;
  const json file = json::parse(
      text,
      [&deep](int depth, json::parse_event_t, const json&) {
        deep |= depth > kMaxDepth;
        return !deep;
      },
      false);
  if (deep) {
    wrong("the file", "it is nested too deeply");
  }
  if (file.is_discarded()) {
    wrong("the file",
          "it is no JSON text; write it with 'benchmark --tune FILE'");
  }
  requireObject(file, {"version", "networks"}, "the file");
  numberOf(file.value("version", json()), "version", kVersion, kVersion);
  std::vector<Entry> entries;
  std::set<std::pair<std::string, int>> seen;
  for (const json& object :
       member(file, "networks", json::value_t::array, "the file")) {
    const std::string where = MakeString("networks[", entries.size(), "]");
    entries.push_back(entryOf(object, where));
    const Entry& entry = entries.back();
    if (!seen.insert({entry.transport, entry.ranks}).second) {
      wrong(where, MakeString("a second one of ", entry.transport, " and ",
                              entry.ranks, " ranks"));
    }
  }
  return entries;
}

// The table of one collective for another with algorithms of the same names.
void lendTable(std::map<Collective, Table>& best, Collective from,
               Collective to) {
  const auto it = best.find(from);
  if (it == best.end() || best.count(to) > 0) {
    return;
  }
  Table table = it->second;
  for (TableRow& row : table) {
    row.algorithm = findAlgorithm(to, row.algorithm->name);
  }
  const bool all =
      std::all_of(table.begin(), table.end(),
                  [](const TableRow& row) { return row.algorithm != nullptr; });
  if (all) {
    best[to] = std::move(table);
  }
}

// How far a number of ranks is from another, as the ratio of the larger one to
// the smaller. In whole numbers: logarithms of equal ratios may differ in their
// last bit, and all ranks are to choose the same, whatever their library.
struct Distance {
  int64_t larger = 1;
  int64_t smaller = 1;

  Distance(int a, int b) : larger(std::max(a, b)), smaller(std::min(a, b)) {}
  bool operator<(const Distance& other) const {
    return larger * other.smaller < other.larger * smaller;
  }
};

}  // namespace

void applyTuningFile(const std::string& text, const std::string& transport,
                     int size, Tuning& tuning) {
  const std::vector<Entry> entries = entriesOf(text);
  // Of so many ranks or, if there are none, the next larger or smaller number;
  // of two that are as near, the first in the file.
  const Entry* nearest = nullptr;
  for (const Entry& entry : entries) {
    if (entry.transport == transport &&
        (nearest == nullptr ||
         Distance(entry.ranks, size) < Distance(nearest->ranks, size))) {
      nearest = &entry;
    }
  }
  if (nearest == nullptr) {
    return;
  }
  for (LinkParameters* link :
       {&tuning.network.between, &tuning.network.inside}) {
    const LinkParameters shipped = *link;
    *link = nearest->link;
    // These are the transport's nature.
    link->byProcessor = shipped.byProcessor;
    link->sending = shipped.sending;
  }
  tuning.network.reducePerByte = nearest->reducePerByte;
  tuning.network.copyPerByte = nearest->copyPerByte;
  tuning.segmentBytes = nearest->segmentBytes;
  tuning.shortSegmentBytes = 0;
  tuning.reducedSegmentBytes = 0;
  tuning.best.clear();
  if (nearest->ranks == size) {
    tuning.direct = nearest->direct;
    tuning.best = nearest->best;
    lendTable(tuning.best, Collective::kReduceScatter,
              Collective::kReduceScatterv);
    lendTable(tuning.best, Collective::kAllgather, Collective::kAllgatherv);
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
