// A law of one coordinate, and a Gaussian law of the others that follows it, in plain doubles: bread.paths.nested.
#ifndef BREAD_NESTED_HPP
#define BREAD_NESTED_HPP

#include "mixture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bread {

extern "C" {
// Mirrored in structures.py; n is that of bread_density. Piece i ends at knot i, the last one nowhere; in a piece
// the functions of u are polynomials of (u - origin) / width.
struct bread_nested {
  std::int64_t driver;                // place of u among the coordinates
  std::int64_t n_components;
  const bread_component* components;  // of the law of u; each of one coordinate
  const double* centre;               // (n - 1)
  const double* matrix;               // (n - 1, n - 1) by row
  std::int64_t n_knots;
  const double* knots;                // (n_knots), increasing
  const double* origins;              // (n_knots + 1)
  const double* widths;               // (n_knots + 1)
  const double* coefficients;         // (n_knots + 1, 4, 2, n - 1): by power, of mean and log standard deviation
  double log_factor;                  // log of the normalising constant of the others given u
};
}

// z = W (others - centre) has independent normal coordinates, whose mean and log standard deviation are functions of u.
class Nested {
 public:
  Nested(const bread_nested& spec, Eigen::Index n)
      : driver_(spec.driver),
        n_others_(n - 1),
        marginal_(spec.components, spec.n_components, 1),
        centre_(Eigen::Map<const Eigen::VectorXd>(spec.centre, n_others_)),
        matrix_(Eigen::Map<const RowMajor>(spec.matrix, n_others_, n_others_)),
        knots_(spec.knots, spec.knots + spec.n_knots),
        log_factor_(spec.log_factor),
        u_(1),
        others_(n_others_),
        residual_(n_others_),
        rate_(n_others_),
        pull_(n_others_),
        law_(2 * n_others_),
        slope_(2 * n_others_),
        gradient_(n) {
    pieces_.reserve(spec.n_knots + 1);
    for (std::int64_t i = 0; i <= spec.n_knots; ++i) {
      const Eigen::Map<const Eigen::MatrixXd> powers(spec.coefficients + i * 8 * n_others_, 2 * n_others_, 4);
      pieces_.push_back({spec.origins[i], spec.widths[i], powers});
    }
  }

  double log_density(const Eigen::VectorXd& x) {
    u_[0] = x[driver_];
    piece_ = std::lower_bound(knots_.begin(), knots_.end(), u_[0]) - knots_.begin();
    place_ = (u_[0] - pieces_[piece_].origin) / pieces_[piece_].width;
    const Eigen::MatrixXd& c = pieces_[piece_].powers;
    law_ = c.col(0) + place_ * (c.col(1) + place_ * (c.col(2) + place_ * c.col(3)));
    others_.head(driver_) = x.head(driver_);
    others_.tail(n_others_ - driver_) = x.tail(n_others_ - driver_);
    others_ -= centre_;
    rate_ = (-law_.tail(n_others_)).array().exp();
    residual_.noalias() = matrix_ * others_;
    residual_ = (residual_ - law_.head(n_others_)).cwiseProduct(rate_);
    return marginal_.log_density(u_) + log_factor_ - 0.5 * residual_.squaredNorm() - law_.tail(n_others_).sum();
  }

  // At the x of the last call of log_density.
  const Eigen::VectorXd& gradient() {
    const Eigen::MatrixXd& c = pieces_[piece_].powers;
    slope_ = (c.col(1) + place_ * (2.0 * c.col(2) + 3.0 * place_ * c.col(3))) / pieces_[piece_].width;
    pull_ = residual_.cwiseProduct(rate_);
    const double along = pull_.dot(slope_.head(n_others_))
                         + (residual_.array().square() - 1.0).matrix().dot(slope_.tail(n_others_));
    others_.noalias() = matrix_.transpose() * pull_;
    gradient_.head(driver_) = -others_.head(driver_);
    gradient_[driver_] = marginal_.gradient()[0] + along;
    gradient_.tail(n_others_ - driver_) = -others_.tail(n_others_ - driver_);
    return gradient_;
  }

 private:
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  struct Piece {
    double origin;
    double width;
    Eigen::MatrixXd powers;  // (2 n_others, 4)
  };

  // Copies, as in Component: the order of Eigen's sums depends on the alignment.
  Eigen::Index driver_;
  Eigen::Index n_others_;
  Mixture marginal_;
  Eigen::VectorXd centre_;
  Eigen::MatrixXd matrix_;
  std::vector<double> knots_;
  std::vector<Piece> pieces_;
  double log_factor_;
  std::size_t piece_ = 0;  // of the last x
  double place_ = 0.0;     // in it
  Eigen::VectorXd u_;
  Eigen::VectorXd others_;
  Eigen::VectorXd residual_;
  Eigen::VectorXd rate_;
  Eigen::VectorXd pull_;
  Eigen::VectorXd law_;    // means, log standard deviations
  Eigen::VectorXd slope_;  // of them
  Eigen::VectorXd gradient_;
};

}  // namespace bread

#endif
