# Writes web_assets.cpp: the files of web/ as raw strings. Scripts are joined in the order of their
# names' list. Run with -DWEB=folder -DOUT=file -DSCRIPTS="a.js b.js".
#
# A raw string may be long, but compilers need not take more than 64 KiB of one literal: so pieces.
function(literal name out_text content)
  set(text "const std::string_view ${name} =")
  string(LENGTH "${content}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${content}" ${at} 12000 piece)
    string(APPEND text "\n    R\"plimsoll(${piece})plimsoll\"")
    math(EXPR at "${at} + 12000")
  endwhile()
  set(${out_text} "${text};\n" PARENT_SCOPE)
endfunction()

file(READ ${WEB}/report.html page)
file(READ ${WEB}/report.css style)
set(script "")
string(REPLACE " " ";" names "${SCRIPTS}")
foreach(name ${names})
  file(READ ${WEB}/${name} one)
  string(APPEND script "${one}")
endforeach()
literal(kReportTemplate page_text "${page}")
literal(kReportStyle style_text "${style}")
literal(kReportScript script_text "${script}")
file(WRITE ${OUT} "#include \"plimsoll/report/web_assets.h\"\n\nnamespace plimsoll::report {\n\n${page_text}\n${style_text}\n${script_text}\n}  // namespace plimsoll::report\n")
