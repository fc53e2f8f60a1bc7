"""The types of arguments, which ./dev docs writes from lib/Support/ElementTypes.h."""

#: name, tessera_type as elements and as a number (0 for neither), bytes, DLDataTypeCode, type string of numpy, name in torch
TYPES = (
    ("f16", 1, 0, 2, 2, "<f2", "float16"),
    ("bf16", 2, 0, 2, 4, "", "bfloat16"),
    ("f32", 3, 18, 4, 2, "<f4", "float32"),
    ("f8E4M3FN", 7, 0, 1, 10, "", "float8_e4m3fn"),
    ("f8E5M2", 8, 0, 1, 12, "", "float8_e5m2"),
    ("i8", 4, 0, 1, 0, "|i1", "int8"),
    ("i32", 5, 16, 4, 0, "<i4", "int32"),
    ("i64", 6, 17, 8, 0, "<i8", "int64"),
)
