// Mixtures of location-scale laws, in plain doubles: bread.paths.mixture.
#ifndef BREAD_MIXTURE_HPP
#define BREAD_MIXTURE_HPP

#include "math.hpp"  // before any other header of Eigen

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace bread {

extern "C" {
// Mirrored in structures.py; one location-scale law of a mixture (bread.paths.mixture.Component).
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

class Mixture {
 public:
  Mixture(const bread_component* components, std::int64_t n_components, Eigen::Index n)
      : logs_(n_components), gradient_(n) {
    components_.reserve(n_components);
    for (std::int64_t k = 0; k < n_components; ++k) components_.emplace_back(components[k], n);
  }

  double log_density(const Eigen::VectorXd& x) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < components_.size(); ++k) {
      logs_[k] = components_[k].log_density(x);
      if (!(logs_[k] <= largest)) largest = logs_[k];
    }
    value_ = largest;
    if (components_.size() > 1 && std::isfinite(largest)) {
      double sum = 0.0;
      for (const double log : logs_) sum += std::exp(log - largest);
      value_ = largest + std::log(sum);
    }
    return value_;
  }

  // At the x of the last call of log_density.
  const Eigen::VectorXd& gradient() {
    if (components_.size() == 1) return components_[0].gradient();
    gradient_.setZero();
    for (std::size_t k = 0; k < components_.size(); ++k) {
      const double share = std::exp(logs_[k] - value_);
      if (share != 0.0) gradient_ += share * components_[k].gradient();
    }
    return gradient_;
  }

 private:
  std::vector<Component> components_;
  std::vector<double> logs_;
  double value_ = 0.0;
  Eigen::VectorXd gradient_;
};

}  // namespace bread

#endif
