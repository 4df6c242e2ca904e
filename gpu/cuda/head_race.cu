// The worked example for GPUs; no call of draftproof.h launches it.
#include "gpu/kernels/head_race.cuh"
