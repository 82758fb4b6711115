// The functions of fmt that its headers only declare. Linked into libplimsoll.so, so that the
// library that others load depends on nothing but the C and C++ runtimes: fmt's own soname changes
// with every release, and a process may hold another one already. (FMT_HEADER_ONLY would ask for a
// second compilation of everything that is linked in.) The list is that of fmt 9, Debian 12's; with
// any other the library asks for libfmt as the program does.
#include <fmt/core.h>

#if !defined(FMT_HEADER_ONLY) && FMT_VERSION / 10000 == 9
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view,
                                 basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
#endif
