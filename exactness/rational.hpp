// The exact number of every proof.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

namespace draftproof {

using Rational = boost::multiprecision::cpp_rational;

}  // namespace draftproof
