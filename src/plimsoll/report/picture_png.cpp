#include <memory>

#include <librsvg/rsvg.h>

#include "plimsoll/report/picture.h"

#ifdef PLIMSOLL_SANITIZED
// fontconfig, which librsvg asks for fonts, keeps its tables to the end of the program.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfontconfig.so\n";
}
#endif

namespace plimsoll::report {
namespace {

struct Unref {
  void operator()(RsvgHandle* handle) const { g_object_unref(handle); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};

tl::unexpected<Error> refused(GError* error) {
  const std::string why = error == nullptr ? "no reason given" : error->message;
  g_clear_error(&error);
  return fail(ErrorCode::kInternal, "librsvg refuses the picture: {}", why);
}

cairo_status_t append(void* out, const unsigned char* bytes, unsigned int count) {
  static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

Result<std::string> to_png(const std::string& svg, double scale) {
  GError* error = nullptr;
  const std::unique_ptr<RsvgHandle, Unref> handle(
      rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
  if (handle == nullptr) return refused(error);
  double width = 0;
  double height = 0;
  if (!rsvg_handle_get_intrinsic_size_in_pixels(handle.get(), &width, &height))
    return refused(nullptr);
  const std::unique_ptr<cairo_surface_t, Unref> surface(cairo_image_surface_create(
      CAIRO_FORMAT_RGB24, static_cast<int>(width * scale), static_cast<int>(height * scale)));
  const std::unique_ptr<cairo_t, Unref> context(cairo_create(surface.get()));
  const RsvgRectangle page{0, 0, width * scale, height * scale};
  if (!rsvg_handle_render_document(handle.get(), context.get(), &page, &error))
    return refused(error);
  std::string png;
  if (cairo_surface_write_to_png_stream(surface.get(), append, &png) != CAIRO_STATUS_SUCCESS)
    return refused(nullptr);
  return png;
}

}  // namespace plimsoll::report
