// What the program and the driver share: how likelihood terms are tempered, and the log likelihood that falls out.
#ifndef BREAD_STATE_HPP
#define BREAD_STATE_HPP

namespace bread {

struct Tempering {
  double beta = 1.0;            // factor of each likelihood term
  double log_likelihood = 0.0;  // total of the terms since it was last set to zero
};

// One per library. A library evaluates one density at a time: processes run in parallel, threads do not.
extern Tempering tempering;

}  // namespace bread

#endif
