// Coordinates that rotations leave alone, and a density of them as one of states: bread.paths.rotated.
#ifndef BREAD_ROTATED_HPP
#define BREAD_ROTATED_HPP

#include "math.hpp"  // before any other header of Eigen

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace bread {

extern "C" {
// Mirrored in structures.py; n is that of bread_density.
struct bread_gauge {
  std::int64_t n_rows;         // K
  std::int64_t n_columns;      // P
  const std::int64_t* places;  // (K, P) by row, among the coordinates
  const std::int64_t* others;  // (n - K P), increasing
  const double* frame;         // (P, P) by row: F
  double log_volume;           // of the rotations
};
}

// W F = Q G, by a QR decomposition of the first m = min(K, P) columns.
class Gauge {
 public:
  Gauge(const bread_gauge& spec, Eigen::Index n)
      : k_(spec.n_rows),
        p_(spec.n_columns),
        m_(std::min(k_, p_)),
        places_(spec.places, spec.places + k_ * p_),
        others_(spec.others, spec.others + (n - k_ * p_)),
        frame_(Eigen::Map<const RowMajor>(spec.frame, p_, p_)),
        log_volume_(spec.log_volume),
        w_(k_, p_),
        turned_(k_, p_),
        q_(k_, m_),
        g_(m_, p_),
        by_g_(m_, p_),
        twist_(m_, m_),
        y_(static_cast<Eigen::Index>(others_.size()) + m_ * (m_ + 1) / 2 + m_ * (p_ - m_)),
        gradient_(n) {}

  Eigen::Index n_invariant() const { return y_.size(); }

  const Eigen::VectorXd& invariant(const Eigen::VectorXd& x) {
    Eigen::Index at = 0;
    for (const std::int64_t place : others_) y_[at++] = x[place];
    for (Eigen::Index i = 0; i < k_; ++i) {
      for (Eigen::Index j = 0; j < p_; ++j) w_(i, j) = x[places_[i * p_ + j]];
    }
    turned_.noalias() = w_ * frame_;
    orthogonalise();
    g_.noalias() = q_.transpose() * turned_;
    for (Eigen::Index i = 0; i < m_; ++i) y_[at++] = std::log(g_(i, i));
    for (Eigen::Index i = 0; i < m_; ++i) {
      for (Eigen::Index j = i + 1; j < p_; ++j) y_[at++] = g_(i, j);
    }
    return y_;
  }

  // Of states to a unit of y, at the last x.
  double log_volume_element() const {
    double sum = log_volume_;
    for (Eigen::Index i = 0; i < m_; ++i) sum += static_cast<double>(k_ - i) * y_[others_.size() + i];
    return sum;
  }

  // By the state, at the last x, of a log density of states that has this gradient as one of y.
  const Eigen::VectorXd& gradient(const Eigen::VectorXd& by_y) {
    Eigen::Index at = 0;
    for (const std::int64_t place : others_) gradient_[place] = by_y[at++];
    by_g_.setZero();
    for (Eigen::Index i = 0; i < m_; ++i) by_g_(i, i) = (by_y[at++] - static_cast<double>(k_ - i)) / g_(i, i);
    for (Eigen::Index i = 0; i < m_; ++i) {
      for (Eigen::Index j = i + 1; j < p_; ++j) by_g_(i, j) = by_y[at++];
    }
    // a change of the state also turns Q: d G = Q' d(W F) - (Q' dQ) G, where Q' dQ is antisymmetric
    twist_.noalias() = by_g_ * g_.transpose();
    for (Eigen::Index i = 0; i < m_; ++i) {
      for (Eigen::Index j = 0; j < i; ++j) twist_(i, j) -= twist_(j, i);
    }
    for (Eigen::Index i = 0; i < m_; ++i) {
      for (Eigen::Index j = i; j < m_; ++j) twist_(i, j) = 0.0;
    }
    g_.leftCols(m_).triangularView<Eigen::Upper>().transpose().solveInPlace<Eigen::OnTheRight>(twist_);
    by_g_.leftCols(m_) -= twist_;
    turned_.noalias() = q_ * by_g_;
    w_.noalias() = turned_ * frame_.transpose();
    for (Eigen::Index i = 0; i < k_; ++i) {
      for (Eigen::Index j = 0; j < p_; ++j) gradient_[places_[i * p_ + j]] = w_(i, j);
    }
    return gradient_;
  }

 private:
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  // By Gram and Schmidt, each column twice: once leaves what rounding has added.
  void orthogonalise() {
    for (Eigen::Index j = 0; j < m_; ++j) {
      q_.col(j) = turned_.col(j);
      for (int pass = 0; pass < 2; ++pass) {
        for (Eigen::Index i = 0; i < j; ++i) q_.col(j) -= q_.col(i).dot(q_.col(j)) * q_.col(i);
      }
      q_.col(j) /= q_.col(j).norm();
    }
  }

  // Copies, as in Component: the order of Eigen's sums depends on the alignment.
  Eigen::Index k_;
  Eigen::Index p_;
  Eigen::Index m_;
  std::vector<std::int64_t> places_;
  std::vector<std::int64_t> others_;
  Eigen::MatrixXd frame_;
  double log_volume_;
  Eigen::MatrixXd w_;
  Eigen::MatrixXd turned_;  // W F
  Eigen::MatrixXd q_;
  Eigen::MatrixXd g_;
  Eigen::MatrixXd by_g_;
  Eigen::MatrixXd twist_;
  Eigen::VectorXd y_;
  Eigen::VectorXd gradient_;
};

}  // namespace bread

#endif
