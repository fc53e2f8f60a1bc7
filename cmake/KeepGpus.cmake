# cmake -DINPUT=schedules.json -DOUTPUT=FILE.json -P KeepGpus.cmake
# Writes the database without its measurements. All of it takes milliseconds to read, and the classes of shapes depend on
# its GPUs alone.
file(READ "${INPUT}" text)
string(JSON text SET "${text}" entries "[]")
string(JSON text ERROR_VARIABLE none SET "${text}" times "[]")
file(WRITE "${OUTPUT}" "${text}\n")
