#include "studies/speculate/model_shelf.hpp"

#include <deque>
#include <mutex>
#include <utility>

#include "engine/model/shipped_model.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kFreeModelsMax = 3;

struct Shelf {
  struct Entry {
    std::string key;
    std::unique_ptr<TextModel> model;
  };
  std::mutex mutex;
  std::deque<Entry> free;  // the longest unused first

  std::unique_ptr<TextModel> take(const std::string& key) {
    const std::lock_guard lock(mutex);
    for (auto entry = free.begin(); entry != free.end(); ++entry) {
      if (entry->key != key) continue;
      std::unique_ptr<TextModel> model = std::move(entry->model);
      free.erase(entry);
      return model;
    }
    return nullptr;
  }

  void give_back(const std::string& key, std::unique_ptr<TextModel> model) {
    Entry unused;  // freed behind the lock
    const std::lock_guard lock(mutex);
    free.push_back({key, std::move(model)});
    if (free.size() <= kFreeModelsMax) return;
    unused = std::move(free.front());
    free.pop_front();
  }
};

}  // namespace

std::shared_ptr<TextModel> borrow_text_model(const std::string& name, const TextModelOptions& options,
                                             const std::string& where) {
  // Held by every loan too: who borrows may outlive what is static.
  static const auto shelf = std::make_shared<Shelf>();
  const std::string key = (options.float_activations ? "f32 " : "int8 ") + std::to_string(options.threads) + " " + name;
  std::unique_ptr<TextModel> model = shelf->take(key);
  if (!model) model = std::make_unique<TextModel>(open_text_model(name, model_path(name), options, where));
  return {model.release(),
          [shelf = shelf, key](TextModel* lent) { shelf->give_back(key, std::unique_ptr<TextModel>(lent)); }};
}

}  // namespace draftproof
