// The inverse temperature inside a Stan program.
//
// Included before the C++ that stanc generates. The program wraps each contribution of the likelihood in
// bread_temper(), which multiplies it by the inverse temperature. The call also adds the contribution to a running
// total, so that the log likelihood falls out of every evaluation of the density.
#ifndef BREAD_TEMPERING_HPP
#define BREAD_TEMPERING_HPP

#include "state.hpp"

#ifdef BREAD_WHOLE_STAN_MATH
#include <stan/model/model_header.hpp>
#else
#include "left_out.hpp"  // before the header that would include it

#include <stan/model/model_header.hpp>

#include "model_base.hpp"
#endif

#include <ostream>
#include <vector>

namespace bread_m__namespace {  // where `stanc --name=bread_m_` puts the program

// The guard at 0 keeps a likelihood of zero (0 * -inf) and its gradient out of the prior.
template <typename T, stan::require_stan_scalar_t<T>* = nullptr>
inline T bread_temper(const T& x, std::ostream*) {
  bread::tempering.log_likelihood += stan::math::value_of(x);
  if (bread::tempering.beta == 0.0) return T(0.0);
  return T(bread::tempering.beta * x);
}

// target += of a vector or row vector: Stan adds up the elements.
template <typename T, stan::require_eigen_t<T>* = nullptr>
inline stan::plain_type_t<T> bread_temper(const T& x, std::ostream* messages) {
  const stan::plain_type_t<T> values = x;
  stan::plain_type_t<T> result(values.rows(), values.cols());
  const double before = bread::tempering.log_likelihood;
  for (Eigen::Index i = 0; i < values.size(); ++i) result(i) = bread_temper(values(i), messages);
  bread::tempering.log_likelihood = before + stan::math::value_of(values).sum();
  return result;
}

template <typename T>
inline std::vector<T> bread_temper(const std::vector<T>& x, std::ostream* messages) {
  std::vector<T> result;
  result.reserve(x.size());
  for (const T& element : x) result.push_back(bread_temper(element, messages));
  return result;
}

}  // namespace bread_m__namespace

#endif
