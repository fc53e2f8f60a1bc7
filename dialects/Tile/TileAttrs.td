// Attributes of the tile dialect: grid, requirements and the schedule.

#ifndef TESSERA_DIALECTS_TILE_TILEATTRS_TD
#define TESSERA_DIALECTS_TILE_TILEATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "dialects/Tile/ScheduleFields.td"
include "dialects/Tile/TileDialect.td"

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "How tile.reduce combines elements", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>,
    I32EnumAttrCase<"maximum", 3>, I32EnumAttrCase<"minimum", 4>, I32EnumAttrCase<"product", 5>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_DotPrecision : I32EnumAttr<"DotPrecision", "With what tile.dot multiplies f32, and how many products of it", [
    I32EnumAttrCase<"bf16", 0>, I32EnumAttrCase<"f16", 1>, I32EnumAttrCase<"bf16x3", 2>, I32EnumAttrCase<"f16x3", 3>,
    I32EnumAttrCase<"bf16x6", 4>, I32EnumAttrCase<"tf32", 5>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_GridDimAttr : AttrDef<Tile_Dialect, "GridDim"> {
  let mnemonic = "grid_dim";
  let summary = "The number of grid points along one dimension: ceil(extent / divisor)";
  let description = [{
    `extent` is a StringAttr naming a run-time dimension of the kernel's views or an i64 IntegerAttr;
    `divisor` is the tile size along it, at least 1.

    ```mlir
    #tile.grid_dim<"SQ", 128>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$extent, "int64_t":$divisor);
  let assemblyFormat = "`<` $extent `,` $divisor `>`";
  let genVerifyDecl = 1;
}

def Tile_DividesAttr : AttrDef<Tile_Dialect, "Divides"> {
  let mnemonic = "divides";
  let summary = "A launch requirement: `factor` times the extent `divisor` divides the extent `dividend`";
  let description = [{
    `divisor` and `dividend` name run-time dimensions of the kernel's views; `factor` is at least 1. Without a divisor, as "", the
    factor alone divides. Checked at launch.

    ```mlir
    #tile.divides<"HK", "H", 8>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$divisor, "::mlir::StringAttr":$dividend,
                        DefaultValuedParameter<"int64_t", "1">:$factor);
  let assemblyFormat = "`<` $divisor `,` $dividend (`,` $factor^)? `>`";
  let genVerifyDecl = 1;
}

def Tile_WideAttr : AttrDef<Tile_Dialect, "Wide"> {
  let mnemonic = "wide";
  let summary = "A tile lies in shared memory in chunks of 128 bytes of its rows";
  let description = [{
    The encoding of a tile in a pipe, a buffer or shared memory, which loads with `wide` ask for. Without it chunks are as
    wide as divides the rows, so that a tile of 96 columns of 16 bits has three of 64 bytes. With it they are of 128 bytes,
    the last of which has room for columns that the tile has not: two, of 64 columns. A bulk copy fills that room with what
    the view has there, or with 0, and products do not read it. It is for tiles that are loaded: a store would write these
    columns too.

    ```mlir
    !hop.pipe<tensor<80x96xbf16, #tile.wide>, 2>
    ```
  }];
}

def Tile_AtMostAttr : AttrDef<Tile_Dialect, "AtMost"> {
  let mnemonic = "at_most";
  let summary = "A launch requirement: the extent `dim` is at most `bound`";
  let description = [{
    `dim` names a run-time dimension of the kernel's views; `bound` is at least 1. Checked at launch. A kernel that
    covers a dimension with one tile says so that the dimension is no wider.

    ```mlir
    #tile.at_most<"DQ", 128>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$dim, "int64_t":$bound);
  let assemblyFormat = "`<` $dim `,` $bound `>`";
  let genVerifyDecl = 1;
}

def Tile_AboveAttr : AttrDef<Tile_Dialect, "Above"> {
  let mnemonic = "above";
  let summary = "A launch requirement: the scalar `argument` is finite and above `bound`";
  let description = [{
    `argument` names an f32 argument of the kernel. Checked at launch. A kernel that divides by a scalar, or whose
    masks become NaN with a factor of 0, says so.

    ```mlir
    #tile.above<"scale", 1.000000e-30>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$argument, "::mlir::FloatAttr":$bound);
  let builders = [AttrBuilder<(ins "::mlir::StringAttr":$argument, "double":$bound), [{
    return $_get($_ctxt, argument, ::mlir::Builder($_ctxt).getF64FloatAttr(bound));
  }]>];
  let assemblyFormat = "`<` $argument `,` $bound `>`";
  let genVerifyDecl = 1;
}

/// The fields of a schedule: a struct that ScheduleAttr itself declares.
def Tile_ScheduleFieldsParameter : AttrParameter<"::tessera::tile::ScheduleAttr::Fields", "the fields"> {
  let cppAccessorType = "const ::tessera::tile::ScheduleAttr::Fields &";
}

def Tile_ScheduleAttr : AttrDef<Tile_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How the compiler runs a kernel on the machine";
  let description = [{
    Every field is optional; `tile-choose-schedule` fills in what is absent, and `--schedule` of the command
    line overrides what is written. A schedule never changes what a kernel computes, except for the order of
    floating-point accumulation and, with `polynomial_exp`, the last bits of numbers that are rounded to 16 bits.

    | field | values | when absent | meaning |
    |---|---|---|---|
}] # !interleave(!foreach(f, Tile_ScheduleFields,
       "    | `" # f.name # "` | " # f.domain.text # " | " # f.absent.rule # " | " # f.doc # " |\n"), "") # [{
    ```mlir
    #tile.schedule<consumers = 2, stages = 2, overlap = 2, pingpong = true>
    ```
  }];
  let parameters = (ins Tile_ScheduleFieldsParameter:$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The name of a field, its values as text in their natural order, how a message names them,
    /// and the value that it has when it is absent, if that is always the same.
    struct FieldInfo {
      ::llvm::StringLiteral name;
      ::llvm::ArrayRef<::llvm::StringLiteral> values;
      ::llvm::StringLiteral expected, fixedDefault;
    };
    /// All fields, in the order in which they print.
    static ::llvm::ArrayRef<FieldInfo> getFieldInfos();

    /// The fields, which can be set one at a time.
    struct Fields {
}] # !interleave(!foreach(f, Tile_ScheduleFields,
       "      std::optional<" # f.domain.cppType # "> " # f.member # ";\n"), "") # [{

      /// Calls `visit(info, field, field of other)` for every field, in the order in which they print.
      template <typename Visitor>
      void visitWith(Fields &other, Visitor &&visit) {
        const FieldInfo *info = getFieldInfos().begin();
}] # !interleave(!foreach(f, Tile_ScheduleFields,
       "        visit(*info++, " # f.member # ", other." # f.member # ");\n"), "") # [{      }
      /// Calls `visit(info, field)` for every field.
      template <typename Visitor>
      void visit(Visitor &&visit) {
        visitWith(*this, [&](const FieldInfo &info, auto &field, auto &) { visit(info, field); });
      }
      auto tie() const {
        return std::tie(}] # !interleave(!foreach(f, Tile_ScheduleFields, f.member), ", ") # [{);
      }
      bool operator==(const Fields &other) const { return tie() == other.tie(); }
      friend ::llvm::hash_code hash_value(const Fields &fields) {
        return ::llvm::hash_value(fields.tie());
      }

      /// The attribute; the fields must be in their domains.
      ScheduleAttr get(::mlir::MLIRContext *context) const;
      /// The attribute, or null with an error when a field is outside its domain.
      ScheduleAttr getChecked(::mlir::MLIRContext *context,
                              ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
      /// Whether a warpgroup of its own loads.
      bool hasProducer() const { return producer && *producer != ProducerKind::None; }
      /// Whether the first dot of an iteration runs ahead by itself, beside the last ones of the one before
      /// (`tile-overlap`).
      bool leadsAlone() const { return overlap == OverlapKind::Lead; }
      /// Whether operands in registers are read while their products run: a reducer gets its operand
      /// under the product of the same tile, and work on a tile goes on under its product.
      bool keepsOperands() const { return leadsAlone() || placement == PlacementKind::apart; }
      /// Gives the absent fields their defaults, where these are always the same.
      void setFixedDefaults();
      /// Calls `take(name, value)` for every field that is set, with its value as text.
      void forEachSet(
          ::llvm::function_ref<void(::llvm::StringRef, const std::string &)> take) const;
      /// Succeeds when the fields that `members` point to are set, or all fields when no member is
      /// given; otherwise an error at `op` names those that are absent.
      template <typename... T>
      ::llvm::LogicalResult require(::mlir::Operation *op,
                                    std::optional<T> Fields::*...members) const {
        Fields copy = *this;
        ::llvm::SmallVector<::llvm::StringRef> absent;
        copy.visit([&](const FieldInfo &info, auto &field) {
          bool isAsked = sizeof...(members) == 0 ||
                         ((static_cast<void *>(&(copy.*members)) == &field) || ...);
          if (isAsked && !field)
            absent.push_back(info.name);
        });
        return reportAbsent(op, absent);
      }

    private:
      static ::llvm::LogicalResult reportAbsent(::mlir::Operation *op,
                                                ::llvm::ArrayRef<::llvm::StringRef> absent);
    };

}] # !interleave(!foreach(f, Tile_ScheduleFields,
       "    const std::optional<" # f.domain.cppType # "> &" # f.accessor # "() const { return getFields()." #
       f.member # "; }\n"), "") # [{
    /// Parses "consumers=2,overlap=1"; reports the bad field and what would work through `emitError`.
    static ::mlir::FailureOr<ScheduleAttr>
    parseText(::mlir::MLIRContext *context, ::llvm::StringRef text,
              ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError);
    /// This schedule with each field that `other` sets taken from `other`.
    ScheduleAttr overriddenBy(ScheduleAttr other) const;
  }];
  let extraClassDefinition = [{
    ::llvm::ArrayRef<$cppClass::FieldInfo> $cppClass::getFieldInfos() {
}] # !interleave(!foreach(f, Tile_ScheduleFields,
       "      static constexpr ::llvm::StringLiteral " # f.member # "[] = {\"" #
       !interleave(f.domain.values, "\", \"") # "\"};\n"), "") # [{
      static const FieldInfo infos[] = {
}] # !interleave(!foreach(f, Tile_ScheduleFields,
       "        {\"" # f.name # "\", " # f.member # ", \"" # f.domain.text # "\", \"" # f.absent.value # "\"},\n"),
       "") # [{      };
      return infos;
    }
  }];
}

#endif // TESSERA_DIALECTS_TILE_TILEATTRS_TD
