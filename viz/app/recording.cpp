#include "viz/app/recording.hpp"

#include <imgui.h>
#include <imgui_internal.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"

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

RecordedEvent event_of(const Json& json) {
  RecordedEvent event{};
  const auto& name = json.at("kind").get_ref<const std::string&>();
  std::size_t kind = 0;
  while (kind < kKinds.size() && name != kKinds.at(kind)) ++kind;
  if (kind == kKinds.size()) throw std::out_of_range("no such kind of event: " + name);
  event.kind = static_cast<Kind>(kind);
  event.x = json.value("x", 0.0);
  event.y = json.value("y", 0.0);
  event.code = json.value("code", std::int64_t{0});
  event.down = json.value("down", false);
  event.path = json.value("path", std::string());
  return event;
}

RecordedFrame frame_of(const Json& json) {
  RecordedFrame frame;
  frame.delta_s = json.at("delta_s").get<double>();
  for (const Json& event : json.at("events")) frame.events.push_back(event_of(event));
  return frame;
}

Recording header_of(const Json& json) {
  if (json.at("format") != kFormat) throw std::out_of_range("the format is not '" + std::string(kFormat) + "'");
  Recording recording;
  recording.width_px = json.at("width_px").get<int>();
  recording.height_px = json.at("height_px").get<int>();
  recording.scale = json.at("scale").get<double>();
  recording.only_panel = json.at("panel").get<std::string>();
  constexpr int kSizeMax_px = 16384;
  if (recording.width_px < 1 || recording.width_px > kSizeMax_px || recording.height_px < 1 ||
      recording.height_px > kSizeMax_px || !(recording.scale >= 0.5 && recording.scale <= 4))
    throw std::out_of_range("the size is out of range");
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
      const Json json = Json::parse(line);
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
