func.func @main() {
  "a.b"() {x = dense_resource<blob> : tensor<1xi8>} : () -> ()
  return
}
%0 = "a.b"() : () -> i32

{-#
  dialect_resources: { builtin: { blob: "0x0100000001" } }
#-}
