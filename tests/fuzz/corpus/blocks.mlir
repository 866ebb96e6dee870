#loc = loc("model.py":1:2)
#loc1 = loc("f"(#loc))
#loc2 = loc(callsite(#loc1 at "g"("model.py":7:8)))
func.func @main(%a: tensor<2xi32> loc("model.py":3:4)) -> tensor<2xi32> {
  "a.graph"() ({
  ^bb0:
    "a.br"()[^bb2] : () -> ()
  ^bb1:
    "a.use"(%0, %1#1, %a, %1#0) : (tensor<2xi32>, i32, tensor<2xi32>, i32) -> ()
    %sum = stablehlo.add %0, %late : tensor<2xi32> loc(fused["x", #loc2])
    "a.end"() : () -> ()
  ^bb2:
    %0 = "a.def"() : () -> tensor<2xi32> loc(#loc2)
    %1:2 = "a.def"() : () -> (i32, i32) loc(callsite("h"(fused<"m">["n", "model.py":9:1 to 9:5]) at unknown))
    %late = "a.def"() {d = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32> loc(unknown)
    "a.br"()[^bb1] : () -> ()
  }) : () -> ()
  %m = "a.def"() : () -> tensor<2x3xf32>
  %c = "a.def"() : () -> tensor<f32>
  %2 = stablehlo.reduce(%m init: %c) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
   reducer(%x: tensor<f32> loc("x"), %y: tensor<f32>) {
    %5 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }
  return %a : tensor<2xi32>
}
