// Annealed chains (Grosse, Ancha & Roy 2016, section 2.2), chains at one inverse temperature, and adaptation.
#ifndef BREAD_CHAINS_HPP
#define BREAD_CHAINS_HPP

#include "kernels.hpp"

#include <string>

namespace bread {

// The codes of bread.backends.base.Failure.
enum Failure : std::int64_t { none = 0, zero_ratio = 1, zero_start = 2, not_a_number = 3, exception = 4 };

extern "C" {
// Mirrored in structures.py. Matrices are stored by row.
struct bread_schedule {
  std::int64_t n_temperatures;
  const double* betas;           // (n_temperatures), from 0 to 1
  const double* step_sizes;      // (n_temperatures)
  const double* inverse_metrics; // (n_temperatures, dim)
  std::int32_t is_reverse;
  std::int32_t every;            // with proposals the kernel moves at the last temperature and each so many before it
};

struct bread_chains {
  std::int64_t n_chains;
  const double* start;           // (n_chains, dim)
  const std::uint32_t* seeds;    // (n_chains, 4)
  double* log_ratio;             // (n_chains, n_temperatures)
  double* state_at_start;        // (n_chains, dim)
  double* state_at_end;          // (n_chains, dim)
  double* log_start;             // (n_chains, 2): start density at state_at_start, at state_at_end
  std::int64_t* counts;          // (n_chains, 4): gradients, evaluations, divergences, failure
  const struct bread_proposals* proposals;  // (n_chains), or null
};

// Draws from the start of the path, one a transition in the order of the chain: each is proposed before the transition
// of a chain, and after that of a reverse one.
struct bread_proposals {
  const double* states;          // (n_steps, dim)
  const double* log_ratio;       // (n_steps): there
  const double* log_uniform;     // (n_steps): logs of the random numbers that decide
};
}

using Map = Eigen::Map<const Eigen::VectorXd>;

// Equal chains must see equal memory: the layout of Stan's arena decides the alignment of vectors, alignment decides
// the order of Eigen's sums, and the last bit of a sum grows along a trajectory.
inline void forget_history() {
  stan::math::recover_memory();
  stan::math::ChainableStack::instance_->memalloc_.free_all();
}

// Metropolis and Hastings for a proposal from the start of the path: whether it takes the place of a state.
inline bool accepts(const bread_proposals& proposals, std::int64_t step, double beta, double log_ratio) {
  const double proposed = proposals.log_ratio[step];
  if (!std::isfinite(proposed) || !std::isfinite(log_ratio)) return false;
  return proposals.log_uniform[step] < beta * (proposed - log_ratio);
}

// One annealed chain. In both directions log_ratio[t] is the log ratio of the path's ends at theta_t.
class AnnealedChain {
 public:
  AnnealedChain(const TemperedModel& model, const bread_schedule& schedule, const bread_chains& chains,
                std::int64_t row)
      : model_(model),
        schedule_(schedule),
        dim_(static_cast<std::int64_t>(model.num_params_r())),
        start_(Map(chains.start + row * dim_, dim_)),
        state_(start_, 0.0, 0.0),
        log_ratio_(chains.log_ratio + row * schedule.n_temperatures),
        log_start_(chains.log_start + 2 * row),
        state_at_start_(chains.state_at_start + row * dim_),
        state_at_end_(chains.state_at_end + row * dim_),
        counts_(chains.counts + 4 * row),
        proposals_(chains.proposals == nullptr ? nullptr : chains.proposals + row) {}

  template <typename Kernel>
  void run(Kernel& kernel, std::string& message) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill_n(log_ratio_, schedule_.n_temperatures, nan);
    log_start_[0] = log_start_[1] = nan;
    std::string reason;
    Failure failure = Failure::none;
    try {
      move_through(kernel);
    } catch (const BadStart& error) {
      failure = explain(error, reason);
    } catch (const std::exception& error) {  // Interrupted is none
      failure = Failure::exception;
      reason = error.what();
    }
    if (failure != Failure::none) record_log_starts();
    if (message.empty()) message = reason;
    counts_[0] = model_.n_gradients;
    counts_[1] = model_.n_evaluations;
    counts_[2] = n_divergences_;
    counts_[3] = failure;
    const Eigen::VectorXd& end = state_.cont_params();
    std::copy_n((schedule_.is_reverse ? end : start_).data(), dim_, state_at_start_);
    std::copy_n((schedule_.is_reverse ? start_ : end).data(), dim_, state_at_end_);
  }

 private:
  // A transition begins with the gradient at the state it leaves: that gives the log ratio there.
  template <typename Kernel>
  void move_through(Kernel& kernel) {
    const std::int64_t n = schedule_.n_temperatures - 1;
    stan::callbacks::logger logger;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t t = schedule_.is_reverse ? n - i : i + 1;
      position_ = schedule_.is_reverse ? t : i;
      model_.set_beta(schedule_.betas[t]);
      kernel.set(schedule_.step_sizes[t], Map(schedule_.inverse_metrics + t * dim_, dim_));
      const bool proposes_first = proposals_ != nullptr && !schedule_.is_reverse;
      const bool rests = proposals_ != nullptr && (n - t) % schedule_.every != 0;
      if ((proposes_first || rests) && propose_at(i, schedule_.betas[t]) && rests) continue;
      model_.watch_start();
      kernel.move(state_, logger);
      if (!proposes_first) {
        log_ratio_[position_] = model_.start_terms().log_ratio;
        if (i == 0) record_first(model_.start_terms().log_start);
      }
      n_divergences_ += kernel.diverged(state_);
      if (proposals_ != nullptr && schedule_.is_reverse) {
        propose(i, schedule_.betas[t], model_.evaluate(state_.cont_params()).log_ratio);
      }
    }
    position_ = schedule_.is_reverse ? 0 : n;
    const Terms terms = model_.evaluate(state_.cont_params());
    log_ratio_[position_] = terms.log_ratio;
    log_start_[!schedule_.is_reverse] = terms.log_start;
    if (schedule_.is_reverse && !std::isfinite(terms.log_ratio)) {
      throw BadStart(BadStart::Kind::nan, "the log ratio where the chain ended is not finite");
    }
  }

  // A proposal before the kernel, or in its place: what is recorded is the state that it may replace. Returns whether
  // that has finite densities; the kernel refuses what has none.
  bool propose_at(std::int64_t step, double beta) {
    const Terms terms = model_.evaluate(state_.cont_params());
    log_ratio_[position_] = terms.log_ratio;
    if (step == 0) record_first(terms.log_start);
    if (!std::isfinite(terms.log_start) || !std::isfinite(terms.log_ratio)) return false;
    propose(step, beta, terms.log_ratio);
    return true;
  }

  void propose(std::int64_t step, double beta, double log_ratio) {
    if (!accepts(*proposals_, step, beta, log_ratio)) return;
    state_ = stan::mcmc::sample(Map(proposals_->states + step * dim_, dim_), 0.0, 0.0);
  }

  // An exact draw outside the support of a reference has a finite density at beta = 1.
  void record_first(double log_start) {
    log_start_[schedule_.is_reverse] = log_start;
    if (schedule_.is_reverse && !std::isfinite(log_start)) {
      throw BadStart(std::isnan(log_start) ? BadStart::Kind::nan : BadStart::Kind::zero,
                     "the start of the path has density zero where the chain starts");
    }
  }

  Failure explain(const BadStart& error, std::string& reason) {
    constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
    if (error.kind != BadStart::Kind::zero) reason = error.what();
    if (error.kind == BadStart::Kind::nan) return Failure::not_a_number;
    log_ratio_[position_] = error.kind == BadStart::Kind::zero ? model_.start_terms().log_ratio : minus_infinity;
    if (schedule_.is_reverse) return Failure::zero_start;
    return log_ratio_[position_] == minus_infinity ? Failure::zero_ratio : Failure::zero_start;
  }

  // Of a chain that failed: its ends are the start and the last state.
  void record_log_starts() {
    const Eigen::VectorXd* states[2] = {&start_, &state_.cont_params()};
    for (int end = 0; end < 2; ++end) {
      double& log_start = log_start_[schedule_.is_reverse ? 1 - end : end];
      try {
        log_start = model_.evaluate(*states[end]).log_start;
      } catch (const std::exception&) {  // stays NaN; the failure is on record
      }
    }
  }

  const TemperedModel& model_;
  const bread_schedule& schedule_;
  const std::int64_t dim_;
  const Eigen::VectorXd start_;
  stan::mcmc::sample state_;
  double* log_ratio_;
  double* log_start_;
  double* state_at_start_;
  double* state_at_end_;
  std::int64_t* counts_;
  const bread_proposals* proposals_;
  std::int64_t position_ = 0;
  std::int64_t n_divergences_ = 0;
};

template <typename Kernel>
void anneal(const stan::model::model_base& stan_model, const bread_path& path, bread_control* control,
            const bread_kernel& spec, const bread_schedule& schedule, const bread_chains& chains,
            std::string& message) {
  for (std::int64_t row = 0; row < chains.n_chains; ++row) {
    forget_history();
    TemperedModel model(stan_model, path, control);
    model.set_progress(static_cast<double>(row) / static_cast<double>(chains.n_chains));
    Rng rng = make_rng(chains.seeds + 4 * row);
    Kernel kernel(model, rng, spec);
    AnnealedChain(model, schedule, chains, row).run(kernel, message);
  }
}

// A chain of the frozen kernel at one inverse temperature; keeps the states after keep[0] <= keep[1] <= ... steps.
template <typename Kernel>
void evolve(const TemperedModel& model, const bread_kernel& spec, const std::uint32_t* seed, double step_size,
            const Eigen::VectorXd& inverse_metric, const Eigen::VectorXd& start, const bread_proposals* proposals,
            double beta, std::int64_t n_keep, const std::int64_t* keep, double* states) {
  forget_history();
  stan::callbacks::logger logger;
  Rng rng = make_rng(seed);
  Kernel kernel(model, rng, spec);
  kernel.set(step_size, inverse_metric);
  stan::mcmc::sample state(start, 0.0, 0.0);
  std::int64_t n_done = 0;
  model.watch_start();
  for (std::int64_t row = 0; row < n_keep; ++row) {
    for (; n_done < keep[row]; ++n_done) {
      if (proposals != nullptr && accepts(*proposals, n_done, beta, model.evaluate(state.cont_params()).log_ratio)) {
        state = stan::mcmc::sample(Map(proposals->states + n_done * start.size(), start.size()), 0.0, 0.0);
      }
      kernel.move(state, logger);
    }
    std::copy_n(state.cont_params().data(), start.size(), states + row * start.size());
  }
}

// Stan's own adaptation from a step size and a metric, both replaced by the result; `state` by the last state of finite
// log ratio. log_ratio[i] is the log ratio after step i.
template <typename Kernel>
void adapt(const TemperedModel& model, const bread_kernel& spec, const std::uint32_t* seed, std::int64_t n_steps,
           const std::int64_t* windows, double target_acceptance, double& step_size, Eigen::VectorXd& inverse_metric,
           Eigen::VectorXd& state, double* log_ratio) {
  forget_history();
  stan::callbacks::logger logger;
  Rng rng = make_rng(seed);
  Kernel kernel(model, rng, spec);
  auto& sampler = kernel.sampler;
  kernel.set(step_size, inverse_metric);
  kernel.limit_trajectory();
  sampler.z().q = state;
  model.watch_start();
  sampler.init_stepsize(logger);
  sampler.get_stepsize_adaptation().set_mu(std::log(10.0 * sampler.get_nominal_stepsize()));
  sampler.get_stepsize_adaptation().set_delta(target_acceptance);
  sampler.set_window_params(n_steps, windows[0], windows[1], windows[2], logger);
  sampler.engage_adaptation();
  stan::mcmc::sample current(state, 0.0, 0.0);
  const auto record = [&](std::int64_t i, const Eigen::VectorXd& q, double value) {
    log_ratio[i] = value;
    if (std::isfinite(value)) state = q;
  };
  for (std::int64_t i = 0; i < n_steps; ++i) {
    model.set_progress(static_cast<double>(i) / static_cast<double>(n_steps));
    const Eigen::VectorXd left = current.cont_params();
    kernel.limit_trajectory();
    model.watch_start();
    kernel.move(current, logger);
    if (i > 0) {
      record(i - 1, left, model.leaves_model_out() ? model.evaluate(left).log_ratio : model.start_terms().log_ratio);
    }
  }
  record(n_steps - 1, current.cont_params(), model.evaluate(current.cont_params()).log_ratio);
  sampler.disengage_adaptation();
  step_size = sampler.get_nominal_stepsize();
  inverse_metric = sampler.z().inv_e_metric_;
}

}  // namespace bread

#endif
