// The lessons of every panel, by the type of its settings; those of the course (docs/course/course.toml) are among
// them. Those of Exactness and Kernels, which a web page leaves out, are defined with their studies.
#pragma once

#include <vector>

#include "studies/lesson.hpp"

namespace draftproof {

struct AcceptanceDecaySettings;
struct DistributionLabSettings;
struct ExactnessSettings;
struct HeadsSettings;
struct KernelsSettings;
struct ServingTimelineSettings;
struct SpeculateSettings;
struct SpeedupByBatchSettings;
struct TreeExplorerSettings;

// Settings that a lesson leaves open, as the model or the head, are those of `current`.
std::vector<Lesson<AcceptanceDecaySettings>> lessons(const AcceptanceDecaySettings& current);
std::vector<Lesson<DistributionLabSettings>> lessons(const DistributionLabSettings& current);
std::vector<Lesson<ExactnessSettings>> lessons(const ExactnessSettings& current);
std::vector<Lesson<HeadsSettings>> lessons(const HeadsSettings& current);
std::vector<Lesson<KernelsSettings>> lessons(const KernelsSettings& current);
std::vector<Lesson<ServingTimelineSettings>> lessons(const ServingTimelineSettings& current);
std::vector<Lesson<SpeculateSettings>> lessons(const SpeculateSettings& current);
std::vector<Lesson<SpeedupByBatchSettings>> lessons(const SpeedupByBatchSettings& current);
std::vector<Lesson<TreeExplorerSettings>> lessons(const TreeExplorerSettings& current);

}  // namespace draftproof
