// Language models that stay open between computations: opening one takes longer than a short generation. An object of a
// model has the buffers of one caller, so each is lent to one computation at a time.
#pragma once

#include <memory>
#include <string>

#include "engine/model/text_model.hpp"

namespace draftproof {

// The model by the name that --model takes, opened where none of that name and these options is free; it goes back when
// the last copy of the pointer goes. Safe from any thread. Errors (input, usage) at `where`: those of model_path() and
// open_text_model().
std::shared_ptr<TextModel> borrow_text_model(const std::string& name, const TextModelOptions& options,
                                             const std::string& where);

}  // namespace draftproof
