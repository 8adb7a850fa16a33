// Normalised densities on unconstrained coordinates, in plain doubles: bread.references, natively or by a callback.
#ifndef BREAD_REFERENCE_HPP
#define BREAD_REFERENCE_HPP

#include <stan/math/rev.hpp>  // before any other header of Eigen

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace bread {

extern "C" {
// Log density (1) and gradient (n) at n coordinates, written by Python; not 0 after an exception.
typedef std::int32_t (*bread_callback)(const double* state, double* value, double* gradient);

// Mirrored in path_arguments.py; one location-scale law of a mixture (bread.references.Component).
struct bread_component {
  const double* mean;        // (n)
  const double* scale;       // (n)
  const double* matrix;      // (n, n) by row, or null
  const double* directions;  // (n, rank) by row, or null
  const double* stretch;     // (rank), or null
  const double* degrees;     // (n), infinite for the normal law; null: all are
  std::int64_t rank;
  double log_factor;         // log of weight and normalising constant
};

struct bread_density {
  std::int64_t n_components;
  const bread_component* components;
  std::int64_t n;                   // number of coordinates
  const std::int64_t* coordinates;  // (n), their places in the state
  const std::int32_t* jacobians;    // (n), whose Jacobian to take out (0: identity, 1: log, 2: logit); null: none
  bread_callback callback;          // null: the components
};
}

// z = W (x - mean) / scale has independent coordinates, normal or Student t.
class Component {
 public:
  Component(const bread_component& spec, Eigen::Index n)
      : mean_(Eigen::Map<const Eigen::VectorXd>(spec.mean, n)),
        scale_(Eigen::Map<const Eigen::VectorXd>(spec.scale, n)),
        log_factor_(spec.log_factor),
        z_(n),
        pull_(n) {
    if (spec.matrix) matrix_ = Eigen::Map<const RowMajor>(spec.matrix, n, n);
    is_triangular_ = spec.matrix && matrix_.isLowerTriangular(0.0);
    if (spec.directions) {
      directions_ = Eigen::Map<const RowMajor>(spec.directions, n, spec.rank);
      shrink_ = Eigen::Map<const Eigen::VectorXd>(spec.stretch, spec.rank).cwiseInverse().array() - 1.0;
    }
    if (spec.degrees) degrees_ = Eigen::Map<const Eigen::VectorXd>(spec.degrees, n);
  }

  double log_density(const Eigen::VectorXd& x) {
    z_ = (x - mean_).cwiseQuotient(scale_);
    multiply(z_, false);
    if (degrees_.size() == 0) return log_factor_ - 0.5 * z_.squaredNorm();
    double sum = log_factor_;
    for (Eigen::Index i = 0; i < z_.size(); ++i) {
      const double square = z_[i] * z_[i];
      sum -= std::isinf(degrees_[i]) ? 0.5 * square : 0.5 * (degrees_[i] + 1.0) * std::log1p(square / degrees_[i]);
    }
    return sum;
  }

  // At the x of the last call of log_density.
  const Eigen::VectorXd& gradient() {
    pull_ = -z_;
    for (Eigen::Index i = 0; i < degrees_.size(); ++i) {
      const double nu = degrees_[i];
      if (!std::isinf(nu)) pull_[i] *= (nu + 1.0) / (nu + z_[i] * z_[i]);
    }
    multiply(pull_, true);
    pull_ = pull_.cwiseQuotient(scale_);
    return pull_;
  }

 private:
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  // v <- W v or W' v.
  void multiply(Eigen::VectorXd& v, bool is_transposed) {
    if (matrix_.size() == 0) {
      if (directions_.size() == 0) return;
      along_.noalias() = directions_.transpose() * v;
      along_.array() *= shrink_.array();
      v.noalias() += directions_ * along_;
      return;
    }
    if (is_triangular_ && is_transposed) {
      product_.noalias() = matrix_.transpose().triangularView<Eigen::Upper>() * v;
    } else if (is_triangular_) {
      product_.noalias() = matrix_.triangularView<Eigen::Lower>() * v;
    } else if (is_transposed) {
      product_.noalias() = matrix_.transpose() * v;
    } else {
      product_.noalias() = matrix_ * v;
    }
    v.swap(product_);
  }

  // Copies, so that equal references lie equally in memory: the order of Eigen's sums depends on the alignment.
  Eigen::VectorXd mean_;
  Eigen::VectorXd scale_;
  double log_factor_;
  Eigen::MatrixXd matrix_;
  bool is_triangular_ = false;
  Eigen::MatrixXd directions_;
  Eigen::VectorXd shrink_;
  Eigen::VectorXd degrees_;
  Eigen::VectorXd z_;
  Eigen::VectorXd pull_;
  Eigen::VectorXd product_;
  Eigen::VectorXd along_;
};

class ReferenceDensity {
 public:
  explicit ReferenceDensity(const bread_density& spec)
      : callback_(spec.callback), coordinates_(spec.coordinates, spec.coordinates + spec.n), x_(spec.n), own_(spec.n) {
    if (spec.jacobians) jacobians_.assign(spec.jacobians, spec.jacobians + spec.n);
    components_.reserve(spec.n_components);
    for (std::int64_t k = 0; k < spec.n_components; ++k) components_.emplace_back(spec.components[k], spec.n);
    logs_.resize(components_.size());
  }

  // Log density at a state; adds `weight` times its gradient to `pull` (dim), unless that is null.
  double operator()(const Eigen::VectorXd& state, double weight = 0.0, Eigen::VectorXd* pull = nullptr) {
    for (std::size_t i = 0; i < coordinates_.size(); ++i) x_[i] = state[coordinates_[i]];
    const double value = callback_ ? call_back(weight, pull) : mixture(weight, pull);
    return jacobians_.empty() ? value : value - log_jacobian(weight, pull);
  }

 private:
  double mixture(double weight, Eigen::VectorXd* pull) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < components_.size(); ++k) {
      logs_[k] = components_[k].log_density(x_);
      if (!(logs_[k] <= largest)) largest = logs_[k];
    }
    double value = largest;
    if (components_.size() > 1 && std::isfinite(largest)) {
      double sum = 0.0;
      for (const double log : logs_) sum += std::exp(log - largest);
      value = largest + std::log(sum);
    }
    for (std::size_t k = 0; pull && k < components_.size(); ++k) {
      const double share = components_.size() == 1 ? weight : weight * std::exp(logs_[k] - value);
      if (share != 0.0) add(share, components_[k].gradient(), *pull);
    }
    return value;
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
  std::vector<Component> components_;
  std::vector<double> logs_;
  Eigen::VectorXd x_;
  Eigen::VectorXd own_;
};

}  // namespace bread

#endif
