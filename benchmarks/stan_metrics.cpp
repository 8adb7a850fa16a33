// Stan's own NUTS and static HMC with each metric, one transition at a time; see stan_metrics.py.
#include <stan/callbacks/logger.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/mcmc/hmc/nuts/dense_e_nuts.hpp>
#include <stan/mcmc/hmc/nuts/diag_e_nuts.hpp>
#include <stan/mcmc/hmc/nuts/unit_e_nuts.hpp>
#include <stan/mcmc/hmc/static/dense_e_static_hmc.hpp>
#include <stan/mcmc/hmc/static/diag_e_static_hmc.hpp>
#include <stan/mcmc/hmc/static/unit_e_static_hmc.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/util/create_rng.hpp>

#include <cstdint>
#include <memory>
#include <sstream>

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages);

namespace {

using Model = stan::model::model_base;
using Rng = decltype(stan::services::util::create_rng(0U, 0U));

struct Chain {
  virtual ~Chain() = default;
  virtual double step(double* state, std::uint32_t seed) = 0;
};

template <template <class, class> class Sampler>
class Kernel : public Chain {
 public:
  template <typename Setting>
  Kernel(std::unique_ptr<Model> model, const Setting& set)
      : model_(std::move(model)), rng_(stan::services::util::create_rng(0U, 0U)), sampler_(*model_, rng_) {
    set(sampler_);
  }

  double step(double* state, std::uint32_t seed) override {
    rng_ = stan::services::util::create_rng(seed, 1U);
    Eigen::Map<Eigen::VectorXd> q(state, model_->num_params_r());
    stan::mcmc::sample sample(q, 0.0, 0.0);
    sample = sampler_.transition(sample, logger_);
    q = sample.cont_params();
    return sample.log_prob();
  }

 private:
  std::unique_ptr<Model> model_;
  Rng rng_;
  Sampler<Model, Rng> sampler_;
  stan::callbacks::logger logger_;
};

}  // namespace

extern "C" {

// A kernel on one target; `metric` is the inverse metric (dim x dim), n_leapfrogs 0 means NUTS.
__attribute__((visibility("default"))) void* make(int target, int metric_kind, int n_leapfrogs, double step_size,
                                                  int max_depth, const double* metric) {
  std::stringstream text;
  text << "{\"which\": " << target << "}";
  stan::json::json_data data(text);
  std::unique_ptr<Model> model(&new_model(data, 1U, nullptr));
  const Eigen::Index dim = static_cast<Eigen::Index>(model->num_params_r());
  const Eigen::MatrixXd dense = Eigen::Map<const Eigen::MatrixXd>(metric, dim, dim);
  const Eigen::VectorXd diagonal = dense.diagonal();
  const auto nuts = [&](auto& sampler) {
    sampler.set_nominal_stepsize(step_size);
    sampler.set_max_depth(max_depth);
  };
  const auto hmc = [&](auto& sampler) { sampler.set_nominal_stepsize_and_L(step_size, n_leapfrogs); };
  if (n_leapfrogs == 0) {
    if (metric_kind == 0) return new Kernel<stan::mcmc::unit_e_nuts>(std::move(model), nuts);
    if (metric_kind == 1) {
      return new Kernel<stan::mcmc::diag_e_nuts>(std::move(model), [&](auto& s) { nuts(s), s.set_metric(diagonal); });
    }
    return new Kernel<stan::mcmc::dense_e_nuts>(std::move(model), [&](auto& s) { nuts(s), s.set_metric(dense); });
  }
  if (metric_kind == 0) return new Kernel<stan::mcmc::unit_e_static_hmc>(std::move(model), hmc);
  if (metric_kind == 1) {
    return new Kernel<stan::mcmc::diag_e_static_hmc>(std::move(model), [&](auto& s) { hmc(s), s.set_metric(diagonal); });
  }
  return new Kernel<stan::mcmc::dense_e_static_hmc>(std::move(model), [&](auto& s) { hmc(s), s.set_metric(dense); });
}

// One transition, in place; the log density that the sampler holds for the new state.
__attribute__((visibility("default"))) double step(void* kernel, double* state, std::uint32_t seed) {
  return static_cast<Chain*>(kernel)->step(state, seed);
}
}
