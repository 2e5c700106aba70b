// A store in a directory that all ranks can write to.
#pragma once

#include <string>
#include <vector>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// One file for each key, replaced atomically by rename; readers never see half
// a value. On a local file system a waiting rank sleeps until the kernel
// reports a new file; on a network file system it looks, as often as 5% of a
// core allows. What an earlier run left in the directory is simply
// overwritten, but for what writers were writing when they were killed: that
// stays as .tmp-*, for people to remove. A value has at most 1 GiB:
// InvalidOperationException. Thread-safe, and safe between processes. append
// and add lock the store against each other, but not against set, which never
// waits for anybody: a set of a key that another rank appends or adds to at
// that moment may be lost.
class GLOO_API FileStore : public PeekableStore {
 public:
  // The directory must exist: InvalidOperationException. It must be readable
  // and writable: IoException. A relative path is one of the working directory
  // of this moment.
  explicit FileStore(const std::string& path);
  ~FileStore() override;

  void set(const std::string& key, const std::vector<char>& data) override;
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override;
  void append(const std::string& key, const std::vector<char>& value) override;
  int64_t add(const std::string& key, int64_t value) override;

  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override;
  bool wait_any(const std::vector<std::string>& keys,
                Deadline deadline) override;
  std::string str() const override;

  // The files that hold values now.
  std::vector<std::string> getAllKeyFilePaths();

 private:
  std::string pathOf(const std::string& key) const;
  void refresh() const;

  const std::string directory_;
  const bool remote_;  // the kernel does not report other hosts' changes
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
