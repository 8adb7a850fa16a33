// Factors of one side given those of the other, in plain doubles: bread.paths.factors.
#ifndef BREAD_FACTORS_HPP
#define BREAD_FACTORS_HPP

#include "math.hpp"  // before any other header of Eigen

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
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
  // Of (size) numbers a row, those of some rows.
  Powers(const bread_powers& spec, Eigen::Index r, Eigen::Index n_rows, Eigen::Index size,
         const std::vector<Eigen::Index>& rows)
      : exponents_(Eigen::Map<const RowMajor>(spec.exponents, spec.n, r)),
        factors_(spec.n),
        now_(static_cast<Eigen::Index>(rows.size()), size) {
    for (std::int64_t f = 0; f < spec.n; ++f) {
      Eigen::Map<const RowMajor> all(spec.values + f * n_rows * size, n_rows, size);
      Eigen::MatrixXd& values = values_.emplace_back(now_.rows(), size);
      for (std::size_t i = 0; i < rows.size(); ++i) values.row(i) = all.row(rows[i]);
    }
  }

  const Eigen::MatrixXd& at(const Eigen::VectorXd& rest) {
    for (std::size_t f = 0; f < values_.size(); ++f) {
      const double power = exponents_.row(f).dot(rest);
      const double value = std::exp(std::min(std::max(power, -kLargest), kLargest));
      factors_[f] = std::fabs(power) < kLargest ? value : 0.0;
      if (f == 0) {
        now_ = value * values_[f];
      } else {
        now_ += value * values_[f];
      }
    }
    if (values_.empty()) now_.setZero();
    return now_;
  }

  bool changes() const { return (exponents_.array() != 0.0).any(); }
  bool is_one() const { return values_.size() == 1; }

  // Adds to `by_rest` the derivative of what has the derivatives `by` by the numbers, at the last rest.
  void pull(const Eigen::MatrixXd& by, Eigen::VectorXd& by_rest) const {
    for (std::size_t f = 0; f < values_.size(); ++f) {
      by_rest += (values_[f].cwiseProduct(by).sum() * factors_[f]) * exponents_.row(f).transpose();
    }
  }

  // The same of one exponential, given the sum of all derivatives times the numbers.
  void pull_one(double sum, Eigen::VectorXd& by_rest) const {
    if (factors_[0] != 0.0) by_rest += sum * exponents_.row(0).transpose();
  }

 private:
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  static constexpr double kLargest = 300.0;  // an exponent beyond is held

  Eigen::MatrixXd exponents_;
  std::vector<Eigen::MatrixXd> values_;
  Eigen::VectorXd factors_;  // 0 where an exponent is held
  Eigen::MatrixXd now_;
};

// Which u have the same precision matrix whatever v and the rest are, as where no observation is missing.
struct Alike {
  std::vector<Eigen::Index> of;     // (m), a class of each
  std::vector<Eigen::Index> first;  // of each class

  explicit Alike(const bread_factors& spec) : of(spec.n_inner) {
    std::map<std::vector<double>, Eigen::Index> classes;
    for (std::int64_t i = 0; i < spec.n_inner; ++i) {
      std::vector<double> numbers;
      for (std::int64_t f = 0; f < spec.own.n; ++f) numbers.push_back(spec.own.values[f * spec.n_inner + i]);
      for (std::int64_t f = 0; f < spec.curvature.n; ++f) {
        const double* row = spec.curvature.values + (f * spec.n_inner + i) * spec.n_outer;
        numbers.insert(numbers.end(), row, row + spec.n_outer);
      }
      of[i] = classes.emplace(std::move(numbers), static_cast<Eigen::Index>(first.size())).first->second;
      if (of[i] == static_cast<Eigen::Index>(first.size())) first.push_back(i);
    }
  }
};

// All u at once: a row for each, or for each class of those that are alike; columns are elements of vectors, or of the
// lower triangles of symmetric matrices, by row.
class Factors {
 public:
  Factors(const bread_factors& spec, Eigen::Index n)
      : k_(spec.n_rows),
        m_(spec.n_inner),
        n_(spec.n_outer),
        alike_(spec),
        n_classes_(static_cast<Eigen::Index>(alike_.first.size())),
        inner_(spec.inner, spec.inner + k_ * m_),
        outer_(spec.outer, spec.outer + k_ * n_),
        rest_places_(spec.rest, spec.rest + spec.n_rest),
        drivers_(spec.drivers, spec.drivers + k_ * n_ + spec.n_rest),
        units_(Eigen::Map<const Eigen::VectorXd>(spec.units, spec.n_rest)),
        own_(spec.own, spec.n_rest, m_, 1, alike_.first),
        curvature_(spec.curvature, spec.n_rest, m_, n_, alike_.first),
        slopes_(spec.slopes, spec.n_rest, m_, n_, all(m_)),
        rest_(spec.n_rest),
        by_rest_(spec.n_rest),
        v_(n_, k_),
        by_v_(n_, k_),
        squares_(n_, k_ * (k_ + 1) / 2),
        by_squares_(n_, squares_.cols()),
        matrix_(n_classes_, squares_.cols()),
        factor_(n_classes_, squares_.cols()),
        inverse_(n_classes_, squares_.cols()),
        covariance_(n_classes_, squares_.cols()),
        reciprocal_(n_classes_, k_),
        log_volume_(n_classes_),
        is_class_law_(n_classes_),
        by_class_(n_classes_, squares_.cols()),
        linear_(m_, k_),
        u_(m_, k_),
        mean_(m_, k_),
        away_(m_, k_),
        along_(m_, k_),
        by_linear_(m_, k_),
        by_matrix_(m_, squares_.cols()),
        is_law_(m_),
        pull_(m_),
        w_(static_cast<Eigen::Index>(drivers_.size())),
        gradient_(n) {}

  Eigen::Index n_drivers() const { return w_.size(); }

  // v, in its units, and the rest.
  const Eigen::VectorXd& drivers(const Eigen::VectorXd& x) {
    for (std::size_t i = 0; i < rest_places_.size(); ++i) rest_[i] = x[rest_places_[i]];
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index j = 0; j < n_; ++j) v_(j, a) = x[outer_[a * n_ + j]];
      for (Eigen::Index i = 0; i < m_; ++i) u_(i, a) = x[inner_[a * m_ + i]];
    }
    unit_ = std::exp(units_.dot(rest_));
    for (std::size_t i = 0; i < drivers_.size(); ++i) gradient_[drivers_[i]] = x[drivers_[i]];
    for (Eigen::Index at = 0; at < k_ * n_; ++at) gradient_[outer_[at]] *= unit_;
    for (std::size_t i = 0; i < drivers_.size(); ++i) w_[i] = gradient_[drivers_[i]];
    return w_;
  }

  // Of u given the rest, and of v in its units as one of v, at the last x.
  double log_density() {
    const Eigen::MatrixXd& own = own_.at(rest_);
    curvature_now_ = &curvature_.at(rest_);
    slopes_now_ = &slopes_.at(rest_);
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index b = 0; b <= a; ++b) {
        squares_.col(place(a, b)) = (v_.col(a).array() * v_.col(b).array()).matrix();
      }
    }
    if (n_classes_ == 1) {
      matrix_.matrix().row(0).noalias() = curvature_now_->row(0) * squares_;
    } else {
      matrix_.matrix().noalias() = *curvature_now_ * squares_;
    }
    // by columns: products of matrices take longer to begin than these few take
    for (Eigen::Index a = 0; a < k_; ++a) linear_.matrix().col(a).noalias() = *slopes_now_ * v_.col(a);
    factorise(own.col(0).array());
    Eigen::ArrayXXd& factor = spread(factor_, factors_);
    Eigen::ArrayXXd& reciprocal = spread(reciprocal_, reciprocals_);
    solve(factor, reciprocal);
    double value = static_cast<double>(k_ * n_) * units_.dot(rest_)
                   - 0.5 * static_cast<double>(k_ * m_) * std::log(2.0 * 3.14159265358979323846);
    for (Eigen::Index i = 0; i < m_; ++i) {
      is_law_[i] = is_class_law_[alike_.of[i]] && mean_.row(i).isFinite().all();
      if (is_law_[i]) {
        value += log_volume_[alike_.of[i]];
      } else {  // standard normal
        mean_.row(i) = 0.0;
        for (Eigen::Index a = 0; a < k_; ++a) {
          for (Eigen::Index b = 0; b <= a; ++b) factor(i, place(a, b)) = a == b ? 1.0 : 0.0;
        }
      }
    }
    away_ = u_ - mean_;
    for (Eigen::Index b = 0; b < k_; ++b) {
      along_.col(b) = factor.col(place(b, b)) * away_.col(b);
      for (Eigen::Index a = b + 1; a < k_; ++a) along_.col(b) += factor.col(place(a, b)) * away_.col(a);
    }
    return value - 0.5 * along_.square().sum();
  }

  // By x, where `by_w` is the gradient of the law of the drivers: at the last x.
  const Eigen::VectorXd& gradient(const Eigen::VectorXd& by_w) {
    pull_inner();
    if (n_classes_ == 1) {
      by_squares_.noalias() = curvature_now_->row(0).transpose() * by_class_.matrix().row(0);
    } else {
      by_squares_.noalias() = curvature_now_->transpose() * by_class_.matrix();
    }
    for (Eigen::Index a = 0; a < k_; ++a) {
      by_v_.col(a).noalias() = slopes_now_->transpose() * by_linear_.matrix().col(a);
    }
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index b = 0; b <= a; ++b) {
        by_v_.col(a).array() += by_squares_.col(place(a, b)).array() * v_.col(b).array();
        by_v_.col(b).array() += by_squares_.col(place(a, b)).array() * v_.col(a).array();
      }
    }
    pull_rest();
    double stretch = static_cast<double>(k_ * n_);
    for (std::size_t i = 0; i < drivers_.size(); ++i) gradient_[drivers_[i]] = by_w[i];
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index j = 0; j < n_; ++j) {
        double& own = gradient_[outer_[a * n_ + j]];
        own *= unit_;
        stretch += own * v_(j, a);
        own += by_v_(j, a);
      }
    }
    by_rest_ += stretch * units_;
    for (std::size_t i = 0; i < rest_places_.size(); ++i) gradient_[rest_places_[i]] += by_rest_[i];
    return gradient_;
  }

 private:
  static Eigen::Index place(Eigen::Index a, Eigen::Index b) { return a * (a + 1) / 2 + b; }

  static std::vector<Eigen::Index> all(Eigen::Index n) {
    std::vector<Eigen::Index> result(n);
    for (Eigen::Index i = 0; i < n; ++i) result[i] = i;
    return result;
  }

  // A row for each u of what has one for each class: of the same memory where no two are alike.
  Eigen::ArrayXXd& spread(Eigen::ArrayXXd& of_classes, Eigen::ArrayXXd& into) const {
    if (n_classes_ == m_) return of_classes;
    into.resize(m_, of_classes.cols());
    for (Eigen::Index column = 0; column < of_classes.cols(); ++column) {
      if (n_classes_ == 1) into.col(column).setConstant(of_classes(0, column));
      for (Eigen::Index i = 0; n_classes_ > 1 && i < m_; ++i) into(i, column) = of_classes(alike_.of[i], column);
    }
    return into;
  }

  // Cholesky factors, their inverses' diagonals and logarithms of their determinants.
  template <typename Column>
  void factorise(const Column& own) {
    is_class_law_ = true;
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index b = 0; b <= a; ++b) {
        auto column = factor_.col(place(a, b));
        column = matrix_.col(place(a, b));
        if (a == b) column += own;
        for (Eigen::Index c = 0; c < b; ++c) column -= factor_.col(place(a, c)) * factor_.col(place(b, c));
        if (a == b) {
          is_class_law_ = is_class_law_ && column > 0.0 && column.isFinite();
          column = column.sqrt();
          reciprocal_.col(a) = column.inverse();
        } else {
          column *= reciprocal_.col(b);
        }
      }
    }
    log_volume_ = factor_.col(0);
    for (Eigen::Index a = 1; a < k_; ++a) log_volume_ *= factor_.col(place(a, a));
    for (Eigen::Index c = 0; c < n_classes_; ++c) {
      if (log_volume_[c] > 1e-300 && log_volume_[c] < 1e300) {
        log_volume_[c] = std::log(log_volume_[c]);
      } else {
        log_volume_[c] = 0.0;
        for (Eigen::Index a = 0; a < k_; ++a) log_volume_[c] += std::log(factor_(c, place(a, a)));
      }
    }
  }

  // Means.
  void solve(const Eigen::ArrayXXd& factor, const Eigen::ArrayXXd& reciprocal) {
    for (Eigen::Index a = 0; a < k_; ++a) {
      mean_.col(a) = linear_.col(a);
      for (Eigen::Index c = 0; c < a; ++c) mean_.col(a) -= factor.col(place(a, c)) * mean_.col(c);
      mean_.col(a) *= reciprocal.col(a);
    }
    for (Eigen::Index a = k_ - 1; a >= 0; --a) {
      for (Eigen::Index c = a + 1; c < k_; ++c) mean_.col(a) -= factor.col(place(c, a)) * mean_.col(c);
      mean_.col(a) *= reciprocal.col(a);
    }
  }

  // The derivatives by matrices (twice those below diagonals) and linear coefficients, and by u.
  void pull_inner() {
    for (Eigen::Index b = 0; b < k_; ++b) {  // inverses of the factors
      inverse_.col(place(b, b)) = reciprocal_.col(b);
      for (Eigen::Index a = b + 1; a < k_; ++a) {
        auto column = inverse_.col(place(a, b));
        column = factor_.col(place(a, b)) * reciprocal_.col(b);
        for (Eigen::Index c = b + 1; c < a; ++c) column += factor_.col(place(a, c)) * inverse_.col(place(c, b));
        column *= -reciprocal_.col(a);
      }
    }
    for (Eigen::Index a = 0; a < k_; ++a) {
      for (Eigen::Index b = 0; b <= a; ++b) {
        auto column = covariance_.col(place(a, b));
        column = inverse_.col(place(a, a)) * inverse_.col(place(a, b));
        for (Eigen::Index c = a + 1; c < k_; ++c) column += inverse_.col(place(c, a)) * inverse_.col(place(c, b));
      }
    }
    const Eigen::ArrayXXd& covariance = spread(covariance_, covariances_);
    const Eigen::ArrayXXd& factor = n_classes_ == m_ ? factor_ : factors_;
    const bool are_laws = is_law_.all();
    for (Eigen::Index a = 0; a < k_; ++a) {
      by_linear_.col(a) = away_.col(a);
      if (!are_laws) by_linear_.col(a) = is_law_.select(away_.col(a), 0.0);
      pull_ = factor.col(place(a, 0)) * along_.col(0);
      for (Eigen::Index b = 1; b <= a; ++b) pull_ += factor.col(place(a, b)) * along_.col(b);
      for (Eigen::Index i = 0; i < m_; ++i) gradient_[inner_[a * m_ + i]] = -pull_[i];
      for (Eigen::Index b = 0; b <= a; ++b) {
        auto column = by_matrix_.col(place(a, b));
        column = covariance.col(place(a, b)) + mean_.col(a) * mean_.col(b) - u_.col(a) * u_.col(b);
        if (a == b) column *= 0.5;
        if (!are_laws) column = is_law_.select(column, 0.0).eval();
      }
    }
    if (n_classes_ == m_) {
      by_class_ = by_matrix_;
      return;
    }
    if (n_classes_ == 1) {
      by_class_.row(0) = by_matrix_.colwise().sum();
      return;
    }
    by_class_ = 0.0;
    for (Eigen::Index column = 0; column < by_matrix_.cols(); ++column) {
      for (Eigen::Index i = 0; i < m_; ++i) by_class_(alike_.of[i], column) += by_matrix_(i, column);
    }
  }

  void pull_rest() {
    by_rest_.setZero();
    if (own_.changes()) {
      by_own_ = by_class_.col(0);
      for (Eigen::Index a = 1; a < k_; ++a) by_own_ += by_class_.col(place(a, a)).matrix();
      own_.pull(by_own_, by_rest_);
    }
    if (curvature_.changes()) {
      if (curvature_.is_one()) {
        curvature_.pull_one(product(by_class_, matrix_), by_rest_);
      } else {
        by_pairs_.noalias() = by_class_.matrix() * squares_.transpose();
        curvature_.pull(by_pairs_, by_rest_);
      }
    }
    if (slopes_.changes()) {
      if (slopes_.is_one()) {
        slopes_.pull_one(product(by_linear_, linear_), by_rest_);
      } else {
        by_pairs_.noalias() = by_linear_.matrix() * v_.transpose();
        slopes_.pull(by_pairs_, by_rest_);
      }
    }
  }

  // Sum of products; zero where the first is, though the second may be infinite there.
  static double product(const Eigen::ArrayXXd& one, const Eigen::ArrayXXd& other) {
    const double sum = (one * other).sum();
    return std::isfinite(sum) ? sum : (one != 0.0).select(one * other, 0.0).sum();
  }

  Eigen::Index k_;
  Eigen::Index m_;
  Eigen::Index n_;
  Alike alike_;
  Eigen::Index n_classes_;
  std::vector<std::int64_t> inner_;
  std::vector<std::int64_t> outer_;
  std::vector<std::int64_t> rest_places_;
  std::vector<std::int64_t> drivers_;
  Eigen::VectorXd units_;
  Powers own_;
  Powers curvature_;
  Powers slopes_;
  const Eigen::MatrixXd* curvature_now_ = nullptr;
  const Eigen::MatrixXd* slopes_now_ = nullptr;
  double unit_ = 1.0;
  Eigen::VectorXd rest_;
  Eigen::VectorXd by_rest_;
  Eigen::MatrixXd v_;
  Eigen::MatrixXd by_v_;
  Eigen::MatrixXd squares_;
  Eigen::MatrixXd by_squares_;
  Eigen::ArrayXXd matrix_;  // precision less `own`
  Eigen::ArrayXXd factor_;
  Eigen::ArrayXXd inverse_;  // of the factor
  Eigen::ArrayXXd covariance_;
  Eigen::ArrayXXd reciprocal_;  // of the factor's diagonal
  Eigen::ArrayXd log_volume_;
  Eigen::Array<bool, Eigen::Dynamic, 1> is_class_law_;
  Eigen::ArrayXXd by_class_;
  Eigen::ArrayXXd factors_;  // for each u, where some are alike
  Eigen::ArrayXXd reciprocals_;
  Eigen::ArrayXXd covariances_;
  Eigen::ArrayXXd linear_;
  Eigen::ArrayXXd u_;
  Eigen::ArrayXXd mean_;
  Eigen::ArrayXXd away_;
  Eigen::ArrayXXd along_;
  Eigen::ArrayXXd by_linear_;
  Eigen::ArrayXXd by_matrix_;
  Eigen::Array<bool, Eigen::Dynamic, 1> is_law_;
  Eigen::ArrayXd pull_;
  Eigen::MatrixXd by_own_;
  Eigen::MatrixXd by_pairs_;
  Eigen::VectorXd w_;
  Eigen::VectorXd gradient_;
};

}  // namespace bread

#endif
