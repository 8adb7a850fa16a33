// Stan's NUTS and static HMC with a leaner gradient and leapfrog step. The arithmetic is Stan's, in Stan's order, so
// that chains agree with those of Stan's own classes to the last bit, but for paths of static HMC through states that the
// program rejects. Left out are temporary vectors, a stream for messages that nobody reads, and a call for every
// parameter in the reverse sweep, which has nothing to do there.
#ifndef BREAD_SAMPLERS_HPP
#define BREAD_SAMPLERS_HPP

#include "math.hpp"

#include <stan/callbacks/logger.hpp>
#include <stan/mcmc/hmc/hamiltonians/diag_e_metric.hpp>
#include <stan/mcmc/hmc/nuts/base_nuts.hpp>
#include <stan/mcmc/hmc/static/base_static_hmc.hpp>

#include <limits>
#include <stdexcept>

namespace bread {

template <class Model, class Rng>
class DiagonalMetric : public stan::mcmc::diag_e_metric<Model, Rng> {
 public:
  using Point = stan::mcmc::diag_e_point;

  explicit DiagonalMetric(const Model& model)
      : stan::mcmc::diag_e_metric<Model, Rng>(model), q_(static_cast<Eigen::Index>(model.num_params_r())) {}

  // These two hide Stan's.
  void init(Point& z, stan::callbacks::logger& logger) { update_potential_gradient(z, logger); }

  // A rejected state has infinite energy and no force. Stan's classes go on there with the gradient of the state before,
  // the sign changed: a path of static HMC that leaves the region again would not be the reverse of any other.
  void update_potential_gradient(Point& z, stan::callbacks::logger&) {
    try {
      differentiate(z);
    } catch (const std::domain_error&) {
      z.V = std::numeric_limits<double>::infinity();
      z.g.setZero();
    }
  }

 private:
  void differentiate(Point& z) {
    using stan::math::var;
    using stan::math::vari;
    const stan::math::nested_rev_autodiff nested;
    const Eigen::Index dim = q_.size();
    auto* leaves = stan::math::ChainableStack::instance_->memalloc_.alloc_array<vari>(dim);
    for (Eigen::Index i = 0; i < dim; ++i) q_.coeffRef(i) = var(::new (leaves + i) vari(z.q.coeff(i), false));
    const var density = this->model_.template log_prob<true, true>(q_, nullptr);
    stan::math::grad(density.vi_);
    z.V = -density.val();
    for (Eigen::Index i = 0; i < dim; ++i) z.g.coeffRef(i) = -leaves[i].adj_;
  }

  Eigen::Matrix<stan::math::var, Eigen::Dynamic, 1> q_;
};

template <class Hamiltonian>
class Leapfrog {
 public:
  void evolve(typename Hamiltonian::PointType& z, Hamiltonian& hamiltonian, double epsilon,
              stan::callbacks::logger& logger) {
    const double half = 0.5 * epsilon;
    for (Eigen::Index i = 0; i < z.q.size(); ++i) {
      z.p.coeffRef(i) -= half * z.g.coeff(i);
      z.q.coeffRef(i) += epsilon * (z.inv_e_metric_.coeff(i) * z.p.coeff(i));
    }
    hamiltonian.update_potential_gradient(z, logger);
    z.p -= half * z.g;
  }
};

template <class Model, class Rng>
using DiagonalNuts = stan::mcmc::base_nuts<Model, DiagonalMetric, Leapfrog, Rng>;

template <class Model, class Rng>
using DiagonalStaticHmc = stan::mcmc::base_static_hmc<Model, DiagonalMetric, Leapfrog, Rng>;

}  // namespace bread

#endif
