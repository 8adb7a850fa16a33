// Factors of one side given those of the other, in plain doubles: bread.paths.factors.
#ifndef BREAD_FACTORS_HPP
#define BREAD_FACTORS_HPP

#include "math.hpp"  // before any other header of Eigen

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace bread {

extern "C" {
// Mirrored in structures.py; numbers that are sums of multiples of exponentials of the rest.
struct bread_powers {
  std::int64_t n;           // exponentials
  const double* exponents;  // (n, r) by row
  const double* values;     // (n, size) by row
};

// Mirrored in structures.py; coordinates are places among those of bread_density.
struct bread_factors {
  std::int64_t n_rows;          // K
  std::int64_t n_inner;         // m
  std::int64_t n_outer;         // n
  std::int64_t n_rest;          // r
  const std::int64_t* inner;    // (K, m) by row: u
  const std::int64_t* outer;    // (K, n) by row: v
  const std::int64_t* rest;     // (r)
  const std::int64_t* drivers;  // (K n + r), increasing: v and the rest
  const double* units;          // (r)
  bread_powers own;             // (m)
  bread_powers curvature;       // (m, n) by row
  bread_powers slopes;          // (m, n) by row
};
}

// Numbers as functions of the rest.
class Powers {
 public:
  Powers(const bread_powers& spec, Eigen::Index r, Eigen::Index rows, Eigen::Index columns)
      : exponents_(Eigen::Map<const RowMajor>(spec.exponents, spec.n, r)), factors_(spec.n), now_(rows, columns) {
    for (std::int64_t f = 0; f < spec.n; ++f) {
      values_.emplace_back(Eigen::Map<const RowMajor>(spec.values + f * rows * columns, rows, columns));
    }
  }

  const Eigen::MatrixXd& at(const Eigen::VectorXd& rest) {
    now_.setZero();
    for (std::size_t f = 0; f < values_.size(); ++f) {
      const double power = exponents_.row(f).dot(rest);
      const double value = std::exp(std::min(std::max(power, -kLargest), kLargest));
      factors_[f] = std::fabs(power) < kLargest ? value : 0.0;
      now_ += value * values_[f];
    }
    return now_;
  }

  bool changes() const { return (exponents_.array() != 0.0).any(); }

  // Adds to `by_rest` the derivative of what has the derivatives `by` by the numbers, at the last rest.
  void pull(const Eigen::MatrixXd& by, Eigen::VectorXd& by_rest) const {
    for (std::size_t f = 0; f < values_.size(); ++f) {
      by_rest += (values_[f].cwiseProduct(by).sum() * factors_[f]) * exponents_.row(f).transpose();
    }
  }

 private:
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  static constexpr double kLargest = 300.0;  // an exponent beyond is held

  Eigen::MatrixXd exponents_;
  std::vector<Eigen::MatrixXd> values_;
  Eigen::VectorXd factors_;  // 0 where an exponent is held
  Eigen::MatrixXd now_;
};

// Symmetric matrices are kept as columns of their lower triangles, by row.
class Factors {
 public:
  Factors(const bread_factors& spec, Eigen::Index n)
      : k_(spec.n_rows),
        m_(spec.n_inner),
        n_(spec.n_outer),
        inner_(spec.inner, spec.inner + k_ * m_),
        outer_(spec.outer, spec.outer + k_ * n_),
        rest_places_(spec.rest, spec.rest + spec.n_rest),
        drivers_(spec.drivers, spec.drivers + k_ * n_ + spec.n_rest),
        units_(Eigen::Map<const Eigen::VectorXd>(spec.units, spec.n_rest)),
        own_(spec.own, spec.n_rest, m_, 1),
        curvature_(spec.curvature, spec.n_rest, m_, n_),
        slopes_(spec.slopes, spec.n_rest, m_, n_),
        rest_(spec.n_rest),
        by_rest_(spec.n_rest),
        v_(k_, n_),
        by_v_(k_, n_),
        squares_(k_ * (k_ + 1) / 2, n_),
        by_squares_(squares_.rows(), n_),
        matrix_(squares_.rows(), m_),
        by_matrix_(squares_.rows(), m_),
        linear_(k_, m_),
        mean_(k_, m_),
        away_(k_, m_),
        by_linear_(k_, m_),
        factor_(squares_.rows(), m_),
        inverse_(squares_.rows()),
        is_law_(m_),
        by_pairs_(m_, n_),
        w_(static_cast<Eigen::Index>(drivers_.size())),
        gradient_(n) {}

  Eigen::Index n_drivers() const { return w_.size(); }

  // v, in units of u, and the rest.
  const Eigen::VectorXd& drivers(const Eigen::VectorXd& x) {
    for (std::size_t i = 0; i < rest_places_.size(); ++i) rest_[i] = x[rest_places_[i]];
    read(x, outer_, v_);
    read(x, inner_, away_);
    unit_ = std::exp(units_.dot(rest_));
    for (std::size_t i = 0; i < drivers_.size(); ++i) gradient_[drivers_[i]] = x[drivers_[i]];
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index j = 0; j < n_; ++j) gradient_[outer_[a * n_ + j]] *= unit_;
    }
    for (std::size_t i = 0; i < drivers_.size(); ++i) w_[i] = gradient_[drivers_[i]];
    return w_;
  }

  // Of u given the rest, and of v in units of u as one of v, at the last x.
  double log_density() {
    own_now_ = &own_.at(rest_);
    curvature_now_ = &curvature_.at(rest_);
    slopes_now_ = &slopes_.at(rest_);
    for (Eigen::Index j = 0; j < n_; ++j) {
      Eigen::Index at = 0;
      for (Eigen::Index a = 0; a < k_; ++a) {
        for (Eigen::Index b = 0; b <= a; ++b) squares_(at++, j) = v_(a, j) * v_(b, j);
      }
    }
    matrix_.noalias() = squares_ * curvature_now_->transpose();
    linear_.noalias() = v_ * slopes_now_->transpose();
    double value = static_cast<double>(k_ * n_) * units_.dot(rest_)
                   - 0.5 * static_cast<double>(k_ * m_) * std::log(2.0 * 3.14159265358979323846);
    for (Eigen::Index i = 0; i < m_; ++i) {
      for (Eigen::Index a = 0; a < k_; ++a) matrix_(place(a, a), i) += (*own_now_)(i, 0);
      is_law_[i] = factorise(i);
      if (!is_law_[i]) take_standard_normal(i);
      for (Eigen::Index a = 0; a < k_; ++a) away_(a, i) -= mean_(a, i);
      for (Eigen::Index b = 0; b < k_; ++b) {
        double along = 0.0;
        for (Eigen::Index a = b; a < k_; ++a) along += factor_(place(a, b), i) * away_(a, i);
        value += std::log(factor_(place(b, b), i)) - 0.5 * along * along;
      }
    }
    return value;
  }

  // By x, where `by_w` is the gradient of the law of the drivers: at the last x.
  const Eigen::VectorXd& gradient(const Eigen::VectorXd& by_w) {
    for (Eigen::Index i = 0; i < m_; ++i) pull(i);
    by_squares_.noalias() = by_matrix_ * *curvature_now_;
    by_v_.noalias() = by_linear_ * *slopes_now_;
    for (Eigen::Index j = 0; j < n_; ++j) {
      Eigen::Index at = 0;
      for (Eigen::Index a = 0; a < k_; ++a) {
        for (Eigen::Index b = 0; b <= a; ++b, ++at) {
          by_v_(a, j) += by_squares_(at, j) * v_(b, j);
          by_v_(b, j) += by_squares_(at, j) * v_(a, j);
        }
      }
    }
    by_rest_.setZero();
    if (own_.changes()) {
      by_pairs_.col(0).setZero();
      for (Eigen::Index a = 0; a < k_; ++a) by_pairs_.col(0) += by_matrix_.row(place(a, a)).transpose();
      own_.pull(by_pairs_.col(0), by_rest_);
    }
    if (curvature_.changes()) {
      by_pairs_.noalias() = by_matrix_.transpose() * squares_;
      curvature_.pull(by_pairs_, by_rest_);
    }
    if (slopes_.changes()) {
      by_pairs_.noalias() = by_linear_.transpose() * v_;
      slopes_.pull(by_pairs_, by_rest_);
    }
    double stretch = static_cast<double>(k_ * n_);
    for (std::size_t i = 0; i < drivers_.size(); ++i) gradient_[drivers_[i]] = by_w[i];
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index j = 0; j < n_; ++j) {
        double& own = gradient_[outer_[a * n_ + j]];
        own *= unit_;
        stretch += own * v_(a, j);
        own += by_v_(a, j);
      }
    }
    by_rest_ += stretch * units_;
    for (std::size_t i = 0; i < rest_places_.size(); ++i) gradient_[rest_places_[i]] += by_rest_[i];
    return gradient_;
  }

 private:
  static Eigen::Index place(Eigen::Index a, Eigen::Index b) { return a * (a + 1) / 2 + b; }

  void read(const Eigen::VectorXd& x, const std::vector<std::int64_t>& places, Eigen::MatrixXd& into) const {
    for (Eigen::Index a = 0; a < into.rows(); ++a) {
      for (Eigen::Index j = 0; j < into.cols(); ++j) into(a, j) = x[places[a * into.cols() + j]];
    }
  }

  // Cholesky factor and mean of u_i; false where the matrix is numerically not positive definite.
  bool factorise(Eigen::Index i) {
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index b = 0; b <= a; ++b) {
        double sum = matrix_(place(a, b), i);
        for (Eigen::Index c = 0; c < b; ++c) sum -= factor_(place(a, c), i) * factor_(place(b, c), i);
        if (a == b && !(sum > 0.0 && std::isfinite(sum))) return false;
        factor_(place(a, b), i) = a == b ? std::sqrt(sum) : sum / factor_(place(b, b), i);
      }
    }
    for (Eigen::Index a = 0; a < k_; ++a) {
      double sum = linear_(a, i);
      for (Eigen::Index c = 0; c < a; ++c) sum -= factor_(place(a, c), i) * mean_(c, i);
      mean_(a, i) = sum / factor_(place(a, a), i);
    }
    for (Eigen::Index a = k_ - 1; a >= 0; --a) {
      double sum = mean_(a, i);
      for (Eigen::Index c = a + 1; c < k_; ++c) sum -= factor_(place(c, a), i) * mean_(c, i);
      mean_(a, i) = sum / factor_(place(a, a), i);
      if (!std::isfinite(mean_(a, i))) return false;
    }
    return true;
  }

  void take_standard_normal(Eigen::Index i) {
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index b = 0; b <= a; ++b) factor_(place(a, b), i) = a == b ? 1.0 : 0.0;
      mean_(a, i) = 0.0;
    }
  }

  // The derivatives by matrix (twice those below its diagonal) and linear coefficients of u_i, and by u_i.
  void pull(Eigen::Index i) {
    for (Eigen::Index b = 0; b < k_; ++b) {  // inverse of the factor, a column at a time
      inverse_[place(b, b)] = 1.0 / factor_(place(b, b), i);
      for (Eigen::Index a = b + 1; a < k_; ++a) {
        double sum = 0.0;
        for (Eigen::Index c = b; c < a; ++c) sum -= factor_(place(a, c), i) * inverse_[place(c, b)];
        inverse_[place(a, b)] = sum / factor_(place(a, a), i);
      }
    }
    for (Eigen::Index a = 0; a < k_; ++a) {
      const double u = away_(a, i) + mean_(a, i);
      by_linear_(a, i) = is_law_[i] ? away_(a, i) : 0.0;
      for (Eigen::Index b = 0; b <= a; ++b) {
        double own = mean_(a, i) * mean_(b, i) - u * (away_(b, i) + mean_(b, i));
        for (Eigen::Index c = a; c < k_; ++c) own += inverse_[place(c, a)] * inverse_[place(c, b)];
        by_matrix_(place(a, b), i) = !is_law_[i] ? 0.0 : a == b ? 0.5 * own : own;
      }
    }
    for (Eigen::Index a = 0; a < k_; ++a) {
      double sum = 0.0;  // of L L' away
      for (Eigen::Index b = 0; b <= a; ++b) {
        double along = 0.0;
        for (Eigen::Index c = b; c < k_; ++c) along += factor_(place(c, b), i) * away_(c, i);
        sum += factor_(place(a, b), i) * along;
      }
      gradient_[inner_[a * m_ + i]] = -sum;
    }
  }

  Eigen::Index k_;
  Eigen::Index m_;
  Eigen::Index n_;
  std::vector<std::int64_t> inner_;
  std::vector<std::int64_t> outer_;
  std::vector<std::int64_t> rest_places_;
  std::vector<std::int64_t> drivers_;
  Eigen::VectorXd units_;
  Powers own_;
  Powers curvature_;
  Powers slopes_;
  const Eigen::MatrixXd* own_now_ = nullptr;
  const Eigen::MatrixXd* curvature_now_ = nullptr;
  const Eigen::MatrixXd* slopes_now_ = nullptr;
  double unit_ = 1.0;
  Eigen::VectorXd rest_;
  Eigen::VectorXd by_rest_;
  Eigen::MatrixXd v_;
  Eigen::MatrixXd by_v_;
  Eigen::MatrixXd squares_;
  Eigen::MatrixXd by_squares_;
  Eigen::MatrixXd matrix_;
  Eigen::MatrixXd by_matrix_;
  Eigen::MatrixXd linear_;
  Eigen::MatrixXd mean_;
  Eigen::MatrixXd away_;  // u, then u less its mean
  Eigen::MatrixXd by_linear_;
  Eigen::MatrixXd factor_;
  Eigen::VectorXd inverse_;
  std::vector<char> is_law_;
  Eigen::MatrixXd by_pairs_;
  Eigen::VectorXd w_;
  Eigen::VectorXd gradient_;
};

}  // namespace bread

#endif
