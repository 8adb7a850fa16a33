// A Stan model as a tempered density, as Stan's samplers see it: counted, watched, interruptible.
#ifndef BREAD_DENSITY_HPP
#define BREAD_DENSITY_HPP

#include "state.hpp"

#include <stan/math/rev.hpp>
#include <stan/model/model_base.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace bread {

extern "C" {
// Shared with Python while a call runs; mirrored in interface.py.
struct bread_control {
  volatile std::int32_t stop;  // set by Python: the call ends at the next evaluation
  std::int32_t unused;
  volatile double done;        // share of the work that is done
};
}

struct Interrupted {};

// The start of a transition has no finite density. Not a std::domain_error: Stan's samplers would take that for a
// rejected proposal and never leave the state.
class BadStart : public std::runtime_error {
 public:
  enum class Kind { zero, rejected, nan };
  BadStart(Kind kind, const std::string& what) : std::runtime_error(what), kind(kind) {}
  Kind kind;
};

struct Terms {
  double log_prior;
  double log_likelihood;
};

class TemperedModel {
 public:
  TemperedModel(const stan::model::model_base& model, bread_control* control) : model_(model), control_(control) {}

  std::size_t num_params_r() const { return model_.num_params_r(); }

  // Samplers drop constants (propto); chains must not, or log prior and log likelihood would depend on who asks.
  template <bool propto, bool jacobian, typename T>
  T log_prob(Eigen::Matrix<T, Eigen::Dynamic, 1>& q, std::ostream* messages) const {
    count<T>();
    tempering.log_likelihood = 0.0;
    if (!watching_) return model_.template log_prob<false, jacobian>(q, messages);
    watching_ = false;
    T density = 0.0;
    try {
      density = model_.template log_prob<false, jacobian>(q, messages);
    } catch (const std::domain_error& error) {
      throw BadStart(BadStart::Kind::rejected, error.what());
    }
    start_density_ = stan::math::value_of(density);
    start_log_likelihood_ = tempering.log_likelihood;
    require_finite();
    return density;
  }

  // The next evaluation is the start of a transition: keep its values, and throw BadStart unless it is finite.
  void watch_start() const { watching_ = true; }
  double start_log_likelihood() const { return start_log_likelihood_; }
  double start_log_prior() const { return start_density_ - tempering.beta * start_log_likelihood_; }

  // Log prior and log likelihood of a state. A rejected state (reject(), a failed check) has likelihood zero.
  Terms evaluate(const Eigen::VectorXd& state, std::string* reason = nullptr) const {
    constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
    const double beta = tempering.beta;
    tempering.beta = 0.0;
    watching_ = false;
    Terms terms{minus_infinity, minus_infinity};
    try {
      Eigen::VectorXd q = state;
      terms.log_prior = log_prob<false, true, double>(q, nullptr);
      terms.log_likelihood = tempering.log_likelihood;
    } catch (const std::domain_error& error) {
      if (reason) *reason = error.what();
    } catch (...) {
      tempering.beta = beta;
      throw;
    }
    tempering.beta = beta;
    return terms;
  }

  void set_progress(double done) const {
    if (control_) control_->done = done;
  }

  mutable std::int64_t n_gradients = 0;
  mutable std::int64_t n_evaluations = 0;

 private:
  template <typename T>
  void count() const {
    ++(std::is_same<T, double>::value ? n_evaluations : n_gradients);
    if (control_ && control_->stop) throw Interrupted();
  }

  void require_finite() const {
    if (std::isfinite(start_density_)) return;
    const std::string what = "the log density is " + std::to_string(start_density_) + " and the log likelihood "
                             + std::to_string(start_log_likelihood_);
    const bool is_zero = start_density_ == -std::numeric_limits<double>::infinity();
    throw BadStart(is_zero ? BadStart::Kind::zero : BadStart::Kind::nan, what);
  }

  const stan::model::model_base& model_;
  bread_control* control_;
  mutable bool watching_ = false;
  mutable double start_density_ = 0.0;
  mutable double start_log_likelihood_ = 0.0;
};

}  // namespace bread

#endif
