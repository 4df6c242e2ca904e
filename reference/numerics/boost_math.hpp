// Before any header of Boost.Math: it computes doubles as doubles. By default it takes long double, which has 64 bits
// on x86, 113 in software on AArch64 and in a browser, and would give each platform last bits of its own. exp, log
// and pow are those of elementary.cpp.
#pragma once

// The guard of Boost's sums of the Lanczos series with SSE2, which add in another order than other platforms do.
#define BOOST_MATH_SPECIAL_FUNCTIONS_LANCZOS_SSE2

#ifndef BOOST_MATH_PROMOTE_DOUBLE_POLICY
#define BOOST_MATH_PROMOTE_DOUBLE_POLICY false
#endif

#include <boost/math/policies/policy.hpp>

static_assert(!boost::math::policies::policy<>::promote_double_type::value,
              "include reference/numerics/boost_math.hpp before Boost.Math's own headers");
