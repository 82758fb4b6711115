# Writes a C++ file that holds a text as one string. Run with -DIN=file -DOUT=file -DHEADER=file -DNAME=namespace::kName.
#
# A raw string may be long, but compilers need not take more than 64 KiB of one literal: so pieces.
file(READ ${IN} content)
string(LENGTH "${content}" length)
set(text "const std::string_view ${NAME} =")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${content}" ${at} 12000 piece)
  string(APPEND text "\n    R\"plimsoll(${piece})plimsoll\"")
  math(EXPR at "${at} + 12000")
endwhile()
file(WRITE ${OUT} "#include \"${HEADER}\"\n\n${text};\n")
