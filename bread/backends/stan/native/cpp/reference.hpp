// Normalised densities on unconstrained coordinates, in plain doubles: bread.paths.mixture, natively or by a callback.
#ifndef BREAD_REFERENCE_HPP
#define BREAD_REFERENCE_HPP

#include "factors.hpp"
#include "mixture.hpp"
#include "nested.hpp"
#include "rotated.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

namespace bread {

extern "C" {
// Log density (1) and gradient (n) at n coordinates, written by Python; not 0 after an exception.
typedef std::int32_t (*bread_callback)(const double* state, double* value, double* gradient);

// Mirrored in structures.py.
struct bread_density {
  std::int64_t n_components;
  const bread_component* components;
  std::int64_t n;                   // number of coordinates
  const std::int64_t* coordinates;  // (n), their places in the state
  const std::int32_t* jacobians;    // (n), whose Jacobian to take out (0: identity, 1: log, 2: logit); null: none
  const bread_nested* nested;       // null: the components
  const bread_gauge* gauge;         // null: those above are of the coordinates, not of what rotations leave alone
  const bread_factors* factors;     // null: all above are of all coordinates, not of the drivers of some factors
  bread_callback callback;          // null: those above
};
}

class ReferenceDensity {
 public:
  explicit ReferenceDensity(const bread_density& spec)
      : callback_(spec.callback),
        coordinates_(spec.coordinates, spec.coordinates + spec.n),
        factors_(spec.factors ? std::make_unique<Factors>(*spec.factors, spec.n) : nullptr),
        gauge_(spec.gauge ? std::make_unique<Gauge>(*spec.gauge, n_drivers()) : nullptr),
        mixture_(spec.components, spec.n_components, gauge_ ? gauge_->n_invariant() : n_drivers()),
        x_(spec.n),
        own_(spec.n) {
    if (spec.jacobians) jacobians_.assign(spec.jacobians, spec.jacobians + spec.n);
    if (spec.nested) nested_ = std::make_unique<Nested>(*spec.nested, gauge_ ? gauge_->n_invariant() : n_drivers());
  }

  // Log density at a state; adds `weight` times its gradient to `pull` (dim), unless that is null.
  double operator()(const Eigen::VectorXd& state, double weight = 0.0, Eigen::VectorXd* pull = nullptr) {
    for (std::size_t i = 0; i < coordinates_.size(); ++i) x_[i] = state[coordinates_[i]];
    const double value = callback_ ? call_back(weight, pull)
                         : nested_ ? evaluate(*nested_, weight, pull)
                                   : evaluate(mixture_, weight, pull);
    return jacobians_.empty() ? value : value - log_jacobian(weight, pull);
  }

 private:
  Eigen::Index n_drivers() const {
    return factors_ ? factors_->n_drivers() : static_cast<Eigen::Index>(coordinates_.size());
  }

  template <typename Density>
  double evaluate(Density& density, double weight, Eigen::VectorXd* pull) {
    if (!factors_) {
      const double value = value_of(density, x_);
      if (pull && (!gauge_ || std::isfinite(value))) add(weight, gradient_of(density), *pull);
      return value;
    }
    const double own = value_of(density, factors_->drivers(x_));
    const double value = own + factors_->log_density();
    if (!std::isfinite(value)) return -std::numeric_limits<double>::infinity();
    if (pull) add(weight, factors_->gradient(gradient_of(density)), *pull);
    return value;
  }

  // Zero where no rotation is defined, as where all that is rotated is.
  template <typename Density>
  double value_of(Density& density, const Eigen::VectorXd& x) {
    if (!gauge_) return density.log_density(x);
    const double value = density.log_density(gauge_->invariant(x)) - gauge_->log_volume_element();
    return std::isfinite(value) ? value : -std::numeric_limits<double>::infinity();
  }

  // At the last x.
  template <typename Density>
  const Eigen::VectorXd& gradient_of(Density& density) {
    return gauge_ ? gauge_->gradient(density.gradient()) : density.gradient();
  }

  // Of the maps from coordinates to bounded parameters, constant factors apart.
  double log_jacobian(double weight, Eigen::VectorXd* pull) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < coordinates_.size(); ++i) {
      const double x = x_[i];
      if (jacobians_[i] == 1) sum += x;
      if (jacobians_[i] == 2) sum -= std::fabs(x) + 2.0 * std::log1p(std::exp(-std::fabs(x)));
      const double slope = jacobians_[i] == 1 ? 1.0 : jacobians_[i] == 2 ? -std::tanh(0.5 * x) : 0.0;
      if (pull) (*pull)[coordinates_[i]] -= weight * slope;
    }
    return sum;
  }

  void add(double weight, const Eigen::VectorXd& gradient, Eigen::VectorXd& pull) const {
    for (std::size_t i = 0; i < coordinates_.size(); ++i) pull[coordinates_[i]] += weight * gradient[i];
  }

  double call_back(double weight, Eigen::VectorXd* pull) {
    double value = 0.0;
    if (callback_(x_.data(), &value, pull ? own_.data() : nullptr) != 0) {
      throw std::runtime_error("the reference raised an exception");
    }
    if (pull) add(weight, own_, *pull);
    return value;
  }

  bread_callback callback_;
  const std::vector<std::int64_t> coordinates_;
  std::vector<std::int32_t> jacobians_;
  std::unique_ptr<Factors> factors_;
  std::unique_ptr<Gauge> gauge_;
  Mixture mixture_;
  std::unique_ptr<Nested> nested_;
  Eigen::VectorXd x_;
  Eigen::VectorXd own_;
};

}  // namespace bread

#endif
