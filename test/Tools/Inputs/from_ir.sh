# from_ir.sh DIR LEVEL...: prints a kernel at each level into DIR, and compares the PTX made of it with DIR/whole.
set -e
folder=$1
shift
for level in "$@"; do
  tessera compile gemm -D BN=64 --emit "$level" --no-database -o "$folder/$level.mlir"
  tessera compile "$folder/$level.mlir" --from "$level" --emit ptx -o "$folder/$level.ptx"
  grep -v '\.loc\|\.file\|^//' "$folder/$level.ptx" > "$folder/$level"
  diff -q "$folder/whole" "$folder/$level"
done
