// Stan's NUTS and static HMC with a diagonal metric, frozen or adapting, behind one interface.
#ifndef BREAD_KERNELS_HPP
#define BREAD_KERNELS_HPP

#include "density.hpp"
#include "samplers.hpp"

#include <stan/callbacks/logger.hpp>
#include <stan/mcmc/hmc/nuts/adapt_diag_e_nuts.hpp>
#include <stan/mcmc/hmc/static/adapt_diag_e_static_hmc.hpp>

#include <boost/random/mixmax.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bread {

using Rng = boost::random::mixmax;

extern "C" {
// Mirrored in structures.py.
struct bread_kernel {
  std::int32_t name;             // 0: NUTS, 1: static HMC
  std::int32_t max_tree_depth;   // NUTS
  std::int32_t max_leapfrogs;    // HMC: limit of a trajectory
  std::int32_t unused;
  double integration_time;       // HMC: step size times number of leapfrogs
  double step_size_jitter;       // uniform, relative, independent of the state
};
}

inline Rng make_rng(const std::uint32_t* words) {
  return Rng(words[0], words[1], words[2], words[3]);
}

template <template <class, class> class Sampler>
class NutsKernel {
 public:
  NutsKernel(const TemperedModel& model, Rng& rng, const bread_kernel& spec) : sampler(model, rng) {
    sampler.set_max_depth(spec.max_tree_depth);
    sampler.set_stepsize_jitter(spec.step_size_jitter);
  }

  void set(double step_size, const Eigen::VectorXd& inverse_metric) {
    sampler.set_metric(inverse_metric);
    sampler.set_nominal_stepsize(step_size);
  }

  void move(stan::mcmc::sample& state, stan::callbacks::logger& logger) {
    state = sampler.transition(state, logger);
    values_.clear();
    sampler.get_sampler_params(values_);
  }

  bool diverged(const stan::mcmc::sample&) const { return values_[3] != 0.0; }

  void limit_trajectory() {}

  Sampler<TemperedModel, Rng> sampler;

 private:
  std::vector<double> values_;  // step size, tree depth, leapfrogs, divergent, energy
};

template <template <class, class> class Sampler>
class HmcKernel {
 public:
  HmcKernel(const TemperedModel& model, Rng& rng, const bread_kernel& spec)
      : sampler(model, rng), time_(spec.integration_time), max_leapfrogs_(spec.max_leapfrogs) {
    sampler.set_stepsize_jitter(spec.step_size_jitter);
  }

  void set(double step_size, const Eigen::VectorXd& inverse_metric) {
    sampler.set_metric(inverse_metric);
    const double n_leapfrogs = std::min(std::max(time_ / step_size, 1.0), static_cast<double>(max_leapfrogs_));
    sampler.set_nominal_stepsize_and_L(step_size, static_cast<int>(n_leapfrogs));
  }

  void move(stan::mcmc::sample& state, stan::callbacks::logger& logger) { state = sampler.transition(state, logger); }

  // The acceptance probability underflows to zero where the energy rises by more than 745 nats.
  bool diverged(const stan::mcmc::sample& state) const { return !(state.accept_stat() > 0.0); }

  // While Stan's adaptation moves the step size, the path keeps its length, up to a number of leapfrogs.
  void limit_trajectory() {
    const double step_size = sampler.get_nominal_stepsize();
    sampler.set_T(std::min(time_, step_size * (max_leapfrogs_ + 0.5)));
  }

  Sampler<TemperedModel, Rng> sampler;

 private:
  double time_;
  int max_leapfrogs_;
};

}  // namespace bread

#endif
