# cmake -DINPUT=FILE -DOUTPUT=FILE.cpp -DNAME=name -P EmbedText.cmake
# Writes a C++ source that defines the array `name` with the text of a file and a null byte. As bytes, for the
# length of a literal is limited.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REPLACE "0x0a," "0x0a,\n" bytes "${bytes}")
file(WRITE "${OUTPUT}" "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
