// The extension module draftproof._core: every function takes one dict of arrays and settings by name, which the Python
// half has checked and brought into form, and gives back arrays, dicts and lists.
#include "base/error.hpp"
#include "python/src/bindings.hpp"

NB_MODULE(_core, m) {
  namespace nb = nanobind;
  nb::exception<draftproof::Error>(m, "Error", PyExc_ValueError).attr("__doc__") =
      "Raised for an invalid argument, with the text that the program draftproof prints.";
  draftproof::python::bind_sampling(m);
  draftproof::python::bind_audit(m);
}
