// The module `_native`: the interface between Python and the kernels. Every check that keeps the kernels inside their
// arrays is in this folder.
#include "bindings/arrays.h"

namespace unspool {

void bind_products(nb::module_& m);
void bind_recurrence(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_optimisers(nb::module_& m);
void bind_elementwise(nb::module_& m);
void bind_random(nb::module_& m);
void bind_stream(nb::module_& m);
void bind_byte_coder(nb::module_& m);
void bind_machine(nb::module_& m);

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // a daemon thread that sleeps at exit keeps what it uses: no leak
  m.doc() = "unspool's native kernels. Use unspool.kernels.native.";
  nb::object input_error = nb::module_::import_("unspool.errors").attr("InputError");
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* type) {
        try {
          std::rethrow_exception(p);
        } catch (const Refused& e) {
          PyErr_SetString((PyObject*)type, e.what());
        }
      },
      input_error.inc_ref().ptr());

  bind_products(m);
  bind_recurrence(m);
  bind_losses(m);
  bind_optimisers(m);
  bind_elementwise(m);
  bind_random(m);
  bind_stream(m);
  bind_byte_coder(m);
  bind_machine(m);
}

}  // namespace unspool
