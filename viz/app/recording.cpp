#include "viz/app/recording.hpp"

#include <imgui.h>
#include <imgui_internal.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;
using Kind = RecordedEvent::Kind;

constexpr const char* kFormat = "draftproof dashboard recording 1";
constexpr const char* kNotOurs = "is not of a recording that draftproof dash --record wrote";
constexpr std::array<const char*, 6> kKinds{"mouse", "button", "wheel", "key", "text", "open"};

Json to_json(const RecordedEvent& event) {
  Json json{{"kind", kKinds.at(static_cast<std::size_t>(event.kind))}};
  switch (event.kind) {
    case Kind::mouse_position:
    case Kind::mouse_wheel:
      json["x"] = event.x;
      json["y"] = event.y;
      break;
    case Kind::mouse_button:
    case Kind::key:
      json["code"] = event.code;
      json["down"] = event.down;
      break;
    case Kind::text:
      json["code"] = event.code;
      break;
    case Kind::open:
      json["path"] = event.path;
  }
  return json;
}

[[noreturn]] void refuse(const char* key, const Json& value, const std::string& expected) {
  throw std::out_of_range(std::string(key) + " is " + printable_line(value.dump(-1, ' ', true)).substr(0, 40) +
                          "; expected " + expected);
}

double number_of(const Json& json, const char* key, double least, double most, const char* expected) {
  const Json& value = json.at(key);
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
    refuse(key, value, expected);
  return value.get<double>();
}

std::int64_t integer_of(const Json& json, const char* key, std::int64_t least, std::int64_t most) {
  const Json& value = json.at(key);
  if (!value.is_number_integer() || value < least || value > most)
    refuse(key, value, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return value.get<std::int64_t>();
}

// A key that Dear ImGui takes: a name or a modifier, and no alias of a mouse button.
std::int64_t key_of(const Json& json) {
  const std::int64_t code = integer_of(json, "code", 0, std::numeric_limits<int>::max());
  const auto key = static_cast<ImGuiKey>(code);
  if (key != ImGuiKey_None && (!ImGui::IsNamedKeyOrMod(key) || ImGui::IsAliasKey(key)))
    refuse("code", json.at("code"), "a key of Dear ImGui");
  return code;
}

RecordedEvent event_of(const Json& json) {
  constexpr double kFar = std::numeric_limits<float>::max();  // where the mouse is when it has left the window
  RecordedEvent event{};
  const auto& name = json.at("kind").get_ref<const std::string&>();
  std::size_t kind = 0;
  while (kind < kKinds.size() && name != kKinds.at(kind)) ++kind;
  if (kind == kKinds.size()) throw std::out_of_range("no such kind of event: " + printable_line(name).substr(0, 40));
  event.kind = static_cast<Kind>(kind);
  switch (event.kind) {
    case Kind::mouse_position:
    case Kind::mouse_wheel:
      event.x = number_of(json, "x", -kFar, kFar, "a float");
      event.y = number_of(json, "y", -kFar, kFar, "a float");
      break;
    case Kind::mouse_button:
      event.code = integer_of(json, "code", 0, ImGuiMouseButton_COUNT - 1);
      event.down = json.at("down").get<bool>();
      break;
    case Kind::key:
      event.code = key_of(json);
      event.down = json.at("down").get<bool>();
      break;
    case Kind::text:
      event.code = integer_of(json, "code", 0, 0x10FFFF);
      break;
    case Kind::open:
      event.path = json.at("path").get<std::string>();
  }
  return event;
}

RecordedFrame frame_of(const Json& json) {
  RecordedFrame frame;
  frame.delta_s = number_of(json, "delta_s", 0, std::numeric_limits<float>::max(), "seconds from 0");
  if (!json.at("events").is_array()) refuse("events", json.at("events"), "a list");
  for (const Json& event : json.at("events")) frame.events.push_back(event_of(event));
  return frame;
}

Recording header_of(const Json& json) {
  if (json.at("format") != kFormat) throw std::out_of_range("the format is not '" + std::string(kFormat) + "'");
  constexpr int kSizeMax_px = 16384;
  Recording recording;
  recording.width_px = static_cast<int>(integer_of(json, "width_px", 1, kSizeMax_px));
  recording.height_px = static_cast<int>(integer_of(json, "height_px", 1, kSizeMax_px));
  recording.scale = number_of(json, "scale", 0.5, 4, "a number from 0.5 to 4");
  recording.only_panel = json.at("panel").get<std::string>();
  return recording;
}

}  // namespace

void write_recording(const std::string& path, const Recording& recording) {
  AtomicFile file(path);
  file.stream() << Json{{"format", kFormat},
                        {"width_px", recording.width_px},
                        {"height_px", recording.height_px},
                        {"scale", recording.scale},
                        {"panel", recording.only_panel}}
                       .dump()
                << '\n';
  for (const RecordedFrame& frame : recording.frames) {
    Json events = Json::array();
    for (const RecordedEvent& event : frame.events) events.push_back(to_json(event));
    file.stream() << Json{{"delta_s", frame.delta_s}, {"events", std::move(events)}}.dump() << '\n';
  }
  file.commit();
}

Recording read_recording(const std::string& path) {
  const InputFile input(path, std::uint64_t{1} << 30);
  std::istringstream lines{std::string(input.text())};
  Recording recording;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      const Json json = parse_json<Json>(line, path + ", line " + std::to_string(number));
      if (number == 1) {
        recording = header_of(json);
      } else {
        recording.frames.push_back(frame_of(json));
      }
    } catch (const Json::exception&) {
      throw input_error(path + ", line " + std::to_string(number), kNotOurs);
    } catch (const std::out_of_range& error) {
      throw input_error(path + ", line " + std::to_string(number), std::string(kNotOurs) + ": " + error.what());
    }
  }
  if (number == 0) throw input_error(path, "is empty; expected a recording that draftproof dash --record wrote");
  return recording;
}

std::vector<RecordedEvent> events_of_frame() {
  std::vector<RecordedEvent> events;
  for (const ImGuiInputEvent& event : ImGui::GetCurrentContext()->InputEventsTrail) {
    RecordedEvent recorded{};
    switch (event.Type) {
      case ImGuiInputEventType_MousePos:
        recorded = {Kind::mouse_position,
                    static_cast<double>(event.MousePos.PosX),
                    static_cast<double>(event.MousePos.PosY),
                    0,
                    false,
                    ""};
        break;
      case ImGuiInputEventType_MouseWheel:
        recorded = {Kind::mouse_wheel,
                    static_cast<double>(event.MouseWheel.WheelX),
                    static_cast<double>(event.MouseWheel.WheelY),
                    0,
                    false,
                    ""};
        break;
      case ImGuiInputEventType_MouseButton:
        recorded = {Kind::mouse_button, 0, 0, event.MouseButton.Button, event.MouseButton.Down, ""};
        break;
      case ImGuiInputEventType_Key:
        recorded = {Kind::key, 0, 0, event.Key.Key, event.Key.Down, ""};
        break;
      case ImGuiInputEventType_Text:
        recorded = {Kind::text, 0, 0, static_cast<std::int64_t>(event.Text.Char), false, ""};
        break;
      default:
        continue;  // focus and viewports change nothing that a panel sees
    }
    events.push_back(std::move(recorded));
  }
  return events;
}

void repeat_events(const RecordedFrame& frame) {
  ImGuiIO& io = ImGui::GetIO();
  for (const RecordedEvent& event : frame.events) {
    switch (event.kind) {
      case Kind::mouse_position:
        io.AddMousePosEvent(static_cast<float>(event.x), static_cast<float>(event.y));
        break;
      case Kind::mouse_wheel:
        io.AddMouseWheelEvent(static_cast<float>(event.x), static_cast<float>(event.y));
        break;
      case Kind::mouse_button:
        io.AddMouseButtonEvent(static_cast<int>(event.code), event.down);
        break;
      case Kind::key:
        io.AddKeyEvent(static_cast<ImGuiKey>(event.code), event.down);
        break;
      case Kind::text:
        io.AddInputCharacter(static_cast<unsigned>(event.code));
        break;
      case Kind::open:
        break;
    }
  }
}

}  // namespace draftproof
