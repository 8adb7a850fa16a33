// What the driver needs of Stan Math. Most of its build would go into the rest: functions, distributions, solvers.
//
// Stan's own headers ask for all of it, which is left out by the names of their include guards. Where a version of Stan has
// these parts elsewhere, the driver is compiled again with BREAD_WHOLE_STAN_MATH.
#ifndef BREAD_MATH_HPP
#define BREAD_MATH_HPP

#ifdef BREAD_WHOLE_STAN_MATH
#include <stan/math/rev.hpp>
#else
#define STAN_MATH_REV_HPP
#define STAN_MATH_PRIM_HPP
#include <stan/math/prim/fun/Eigen.hpp>  // before any other header of Eigen

#include <stan/math/prim/fun/log_sum_exp.hpp>
#include <stan/math/prim/fun/welford_var_estimator.hpp>
#include <stan/math/rev/core.hpp>
#include <stan/math/rev/functor/gradient.hpp>
#include <stan/math/rev/meta.hpp>
#endif

#endif
