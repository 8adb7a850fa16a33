// The base class of programs, in the place of Stan's of that name: it compiles the densities that the driver asks for.
// Stan's compiles sixteen, with and without constants and Jacobian, of states as vectors of two kinds.
#ifndef BREAD_MODEL_BASE_HPP
#define BREAD_MODEL_BASE_HPP

#include <stan/model/model_header.hpp>

#include <ostream>
#include <stdexcept>
#include <vector>

namespace stan {
namespace model {

template <typename Model>
class model_base_crtp : public model_base {
  using Var = math::var;
  using Doubles = Eigen::VectorXd;
  using Vars = Eigen::Matrix<math::var, Eigen::Dynamic, 1>;
  using OldDoubles = std::vector<double>;
  using OldVars = std::vector<math::var>;
  using Integers = std::vector<int>;
  using Rng = decltype(services::util::create_rng(0U, 0U));
  using Out = std::ostream*;

 public:
  explicit model_base_crtp(std::size_t num_params_r) : model_base(num_params_r) {}

  double log_prob(Doubles& q, Out out) const override { return self().template log_prob<false, false>(q, out); }
  double log_prob_jacobian(Doubles& q, Out out) const override { return self().template log_prob<false, true>(q, out); }
  Var log_prob_jacobian(Vars& q, Out out) const override { return self().template log_prob<false, true>(q, out); }

  void write_array(Rng& rng, Doubles& q, Doubles& values, bool with_transformed = true, bool with_generated = true,
                   Out out = nullptr) const override {
    self().write_array(rng, q, values, with_transformed, with_generated, out);
  }
  void unconstrain_array(const Doubles& values, Doubles& q, Out out = nullptr) const override {
    self().unconstrain_array(values, q, out);
  }

  // What the driver never calls.
  Var log_prob(Vars&, Out) const override { refuse(); }
  double log_prob_propto(Doubles&, Out) const override { refuse(); }
  Var log_prob_propto(Vars&, Out) const override { refuse(); }
  double log_prob_propto_jacobian(Doubles&, Out) const override { refuse(); }
  Var log_prob_propto_jacobian(Vars&, Out) const override { refuse(); }
  double log_prob(OldDoubles&, Integers&, Out) const override { refuse(); }
  Var log_prob(OldVars&, Integers&, Out) const override { refuse(); }
  double log_prob_jacobian(OldDoubles&, Integers&, Out) const override { refuse(); }
  Var log_prob_jacobian(OldVars&, Integers&, Out) const override { refuse(); }
  double log_prob_propto(OldDoubles&, Integers&, Out) const override { refuse(); }
  Var log_prob_propto(OldVars&, Integers&, Out) const override { refuse(); }
  double log_prob_propto_jacobian(OldDoubles&, Integers&, Out) const override { refuse(); }
  Var log_prob_propto_jacobian(OldVars&, Integers&, Out) const override { refuse(); }
  void transform_inits(const io::var_context&, Doubles&, Out) const override { refuse(); }
  void write_array(Rng&, OldDoubles&, Integers&, OldDoubles&, bool = true, bool = true, Out = nullptr) const override {
    refuse();
  }
  void unconstrain_array(const OldDoubles&, OldDoubles&, Out = nullptr) const override { refuse(); }

 private:
  const Model& self() const { return *static_cast<const Model*>(this); }
  [[noreturn]] static void refuse() { throw std::logic_error("bread does not compile this density"); }
};

}  // namespace model
}  // namespace stan

#endif
