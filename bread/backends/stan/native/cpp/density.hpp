// A Stan model as a tempered density, as Stan's samplers see it: counted, watched, interruptible.
#ifndef BREAD_DENSITY_HPP
#define BREAD_DENSITY_HPP

#include "math.hpp"
#include "paths.hpp"
#include "state.hpp"

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
// Shared with Python while a call runs; mirrored in structures.py.
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

// Of a state: log density at the start of the path (prior or reference), and log ratio of the path's ends.
struct Terms {
  double log_start;
  double log_ratio;
};

class TemperedModel {
 public:
  TemperedModel(const stan::model::model_base& model, const bread_path& path, bread_control* control)
      : model_(model),
        path_(path),
        control_(control),
        pull_(static_cast<Eigen::Index>(model.num_params_r())),
        law_pull_(pull_) {
    set_beta(1.0);
  }

  std::size_t num_params_r() const { return model_.num_params_r(); }

  // The likelihood inside the program is multiplied by beta; it is whole where the program is one end of a path from a
  // reference.
  void set_beta(double beta) const {
    beta_ = beta;
    tempering.beta = path_.reference ? 1.0 : beta;
  }

  // At beta = 0 of a path from a reference, kernels see the reference alone.
  bool leaves_model_out() const { return path_.reference && beta_ == 0.0; }

  // Samplers drop constants (propto); chains must not, or the terms of a state would depend on who asks.
  template <bool propto, bool jacobian, typename T>
  T log_prob(Eigen::Matrix<T, Eigen::Dynamic, 1>& q, std::ostream* messages) const {
    if (control_ && control_->stop) throw Interrupted();
    if (!is_watching_) return density<jacobian>(q, messages);
    T result = 0.0;
    try {
      result = density<jacobian>(q, messages);
    } catch (const std::domain_error& error) {
      is_watching_ = false;
      throw BadStart(BadStart::Kind::rejected, error.what());
    }
    is_watching_ = false;
    require_finite(stan::math::value_of(result));
    return result;
  }

  // The next evaluation is the start of a transition: keep its terms, and throw BadStart unless it is finite.
  void watch_start() const { is_watching_ = true; }
  const Terms& start_terms() const { return start_; }

  // A rejected state (reject(), a failed check) has density zero under the model.
  Terms evaluate(const Eigen::VectorXd& state, std::string* reason = nullptr) const {
    constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
    const double beta = beta_;
    set_beta(path_.reference ? 1.0 : 0.0);
    is_watching_ = false;
    Terms terms{minus_infinity, minus_infinity};
    try {
      if (path_.reference) terms.log_start = (*path_.reference)(state);
      Eigen::VectorXd q = state;
      const double density = log_prob<false, true, double>(q, nullptr);
      if (path_.reference) {
        terms.log_ratio = density - terms.log_start;
      } else {
        terms = {density, tempering.log_likelihood};
      }
    } catch (const std::domain_error& error) {
      if (reason) *reason = error.what();
    } catch (...) {
      set_beta(beta);
      throw;
    }
    set_beta(beta);
    return terms;
  }

  // Log ratio at the last state whose density was evaluated; NaN where the model was left out.
  double last_log_ratio() const { return log_ratio_; }

  void set_progress(double done) const {
    if (control_) control_->done = done;
  }

  mutable std::int64_t n_gradients = 0;  // of the program
  mutable std::int64_t n_evaluations = 0;

 private:
  template <typename T>
  using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

  template <bool jacobian, typename T>
  T density(Vector<T>& q, std::ostream* messages) const {
    if (path_.reference) return from_reference<jacobian>(q, messages);
    const T result = program<jacobian>(q, messages);
    log_ratio_ = tempering.log_likelihood;
    const double tempered = beta_ == 0.0 ? 0.0 : beta_ * log_ratio_;  // not NaN where the likelihood is zero
    if (is_watching_) start_ = {stan::math::value_of(result) - tempered, log_ratio_};
    return result;
  }

  // (1 - beta) log q + beta log p; at beta = 0 the program is not evaluated, at beta = 1 the reference is not, unless
  // the log ratio is wanted.
  template <bool jacobian, typename T>
  T from_reference(Vector<T>& q, std::ostream* messages) const {
    constexpr bool has_gradient = !std::is_same<T, double>::value;
    const double share = 1.0 - beta_;
    double log_reference = std::numeric_limits<double>::quiet_NaN();
    if (share > 0.0) {
      pull_.setZero();
      log_reference = (*path_.reference)(stan::math::value_of(q), share, has_gradient ? &pull_ : nullptr);
    } else if (is_watching_) {
      log_reference = (*path_.reference)(stan::math::value_of(q));
    }
    if (leaves_model_out()) {
      log_ratio_ = std::numeric_limits<double>::quiet_NaN();
      start_ = {log_reference, log_ratio_};
      return combine(T(0.0), 0.0, log_reference, q, pull_);
    }
    if (is_watching_) start_ = {log_reference, -std::numeric_limits<double>::infinity()};  // should the program throw
    const T joint = program<jacobian>(q, messages);
    log_ratio_ = stan::math::value_of(joint) - log_reference;
    if (is_watching_) start_ = {log_reference, log_ratio_};
    return share == 0.0 ? joint : combine(joint, beta_, share * log_reference, q, pull_);
  }

  // The program's density as it is tempered inside, and the law that multiplies it.
  template <bool jacobian, typename T>
  T program(Vector<T>& q, std::ostream* messages) const {
    ++(std::is_same<T, double>::value ? n_evaluations : n_gradients);
    if (path_.given) return beside_given<jacobian>(q, messages);
    tempering.log_likelihood = 0.0;
    const T density = model_.template log_prob<false, jacobian>(q, messages);
    if (!path_.law) return density;
    law_pull_.setZero();
    const double log_law = (*path_.law)(stan::math::value_of(q), 1.0, &law_pull_);
    return combine(density, 1.0, log_law, q, law_pull_);
  }

  // log prior + log likelihood of the given data + beta * log likelihood: the mean of two densities of the program, in
  // which likelihoods count twice.
  template <bool jacobian, typename T>
  T beside_given(Vector<T>& q, std::ostream* messages) const {
    struct Restored {
      const double beta = tempering.beta;
      ~Restored() { tempering.beta = beta; }
    } before;
    tempering.beta = 2.0;
    const T given = path_.given->template log_prob<false, jacobian>(q, messages);
    tempering.beta = 2.0 * before.beta;
    tempering.log_likelihood = 0.0;
    const T own = model_.template log_prob<false, jacobian>(q, messages);
    return T(0.5 * (given + own));
  }

  static double combine(double density, double weight, double more, const Vector<double>&, const Eigen::VectorXd&) {
    return weight == 0.0 ? more : weight * density + more;
  }

  // weight * density + more, where `pull` is the gradient of the latter: no automatic differentiation through it.
  static stan::math::var combine(const stan::math::var& density, double weight, double more,
                                 const Vector<stan::math::var>& q, const Eigen::VectorXd& pull) {
    const Eigen::Index dim = q.size();
    auto& arena = stan::math::ChainableStack::instance_->memalloc_;
    auto** operands = arena.alloc_array<stan::math::vari*>(dim);
    auto* gradient = arena.alloc_array<double>(dim);
    for (Eigen::Index i = 0; i < dim; ++i) {
      operands[i] = q.coeff(i).vi_;
      gradient[i] = pull.coeff(i);
    }
    return stan::math::make_callback_var(
        weight == 0.0 ? more : weight * density.val() + more, [density, weight, operands, gradient, dim](auto& result) {
          density.vi_->adj_ += weight * result.adj();
          for (Eigen::Index i = 0; i < dim; ++i) operands[i]->adj_ += gradient[i] * result.adj();
        });
  }

  void require_finite(double density) const {
    if (std::isfinite(density)) return;
    const std::string what = "the log density is " + std::to_string(density) + " and the log "
                             + (path_.reference ? "ratio " : "likelihood ") + std::to_string(start_.log_ratio);
    const bool is_zero = density == -std::numeric_limits<double>::infinity();
    throw BadStart(is_zero ? BadStart::Kind::zero : BadStart::Kind::nan, what);
  }

  const stan::model::model_base& model_;
  const Path path_;
  bread_control* control_;
  mutable Eigen::VectorXd pull_;      // gradient of the reference, times its share
  mutable Eigen::VectorXd law_pull_;  // gradient of the law
  mutable double beta_ = 1.0;
  mutable bool is_watching_ = false;
  mutable double log_ratio_ = 0.0;
  mutable Terms start_{0.0, 0.0};
};

}  // namespace bread

#endif
