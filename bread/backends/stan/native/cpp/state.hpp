// What the program and the driver share: how likelihood terms are tempered, and the log likelihood that falls out.
#ifndef BREAD_STATE_HPP
#define BREAD_STATE_HPP

#include <stan/math/rev.hpp>

#include <vector>

namespace bread {

struct Tempering {
  double beta = 1.0;            // factor of each likelihood term, unless they are gathered
  bool is_gathering = false;    // terms are set aside, and left out of the program's density
  double log_likelihood = 0.0;  // total of the terms since it was last set to zero
  std::vector<stan::math::var> gathered;
};

// One per library. A library evaluates one density at a time: processes run in parallel, threads do not.
extern Tempering tempering;

}  // namespace bread

#endif
