//===- SassTest.cpp - Loops and runs of machine code ----------------------===//

#include "lib/Inspect/Sass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace tessera::sass;

namespace {

/// A loop of two products with a wait whose repetition stands behind the exit, in a loop over
/// tiles.
constexpr llvm::StringLiteral kText = R"(
	.section	.nv.info.attend,"",@"SHT_CUDA_INFO"
	.section	.text.attend,"ax",@progbits
attend:
.text.attend:
	//## File "a.tile", line 10
        /*0000*/                   MOV R1, R2 ;
.L_x_0:
        /*0010*/                   IADD3 R1, R1, 0x1, RZ ;
.L_x_1:
	//## File "a.tile", line 12
        /*0020*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P4, [UR30+0x30048], R9 ;
        /*0030*/              @!P4 BRA `(.L_x_3) ;
.L_x_2:
        /*0040*/                   WARPGROUP.ARRIVE ;
        /*0050*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR16], RZ, !UPT ;
        /*0060*/                   UIADD3 UR4, UR4, 0x2, URZ ;
        /*0070*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR16], R24, gsb0 ;
        /*0080*/                   HGMMA.64x64x16.F32.BF16 R88, R180, gdesc[UR16].tnspB, R88, gsb0 ;
        /*0090*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
	//## File "a.tile", line 14
        /*00a0*/                   MUFU.EX2 R10, R10 ;
        /*00b0*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*00c0*/                   MUFU.EX2 R11, R11 ;
        /*00d0*/                   FADD.FTZ R12, R10, R11 ;
        /*00e0*/                   STL [R1], R12 ;
        /*00f0*/              @!P0 BRA `(.L_x_1) ;
        /*0100*/               @P1 BRA `(.L_x_0) ;
        /*0110*/                   EXIT ;
.L_x_3:
        /*0120*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P4, [UR30+0x30048], R9 ;
        /*0130*/               @P4 BRA `(.L_x_2) ;
        /*0140*/                   BRA `(.L_x_3) ;
.L_x_4:
        /*0150*/                   BRA `(.L_x_4);
        /*0160*/                   NOP;
)";

Function parse() { return parseDisassembly(kText).front(); }

} // namespace

TEST(SassTest, ReadsInstructions) {
  std::vector<Function> functions = parseDisassembly(kText);
  ASSERT_EQ(functions.size(), 1u);
  const Function &function = functions.front();
  EXPECT_EQ(function.name, "attend");
  ASSERT_EQ(function.instructions.size(), 23u);
  const Instruction &branch = function.instructions[3];
  EXPECT_EQ(branch.address, 0x30u);
  EXPECT_EQ(branch.guard, "@!P4");
  EXPECT_EQ(branch.opcode, "BRA");
  EXPECT_EQ(branch.target, 18u);
  EXPECT_EQ(branch.line, 12u);
  EXPECT_EQ(function.instructions[5].getMnemonic(), "HGMMA");
  EXPECT_EQ(function.instructions[0].line, 10u);
  EXPECT_TRUE(parseDisassembly("nothing").empty());
}

TEST(SassTest, FindsTheInnermostLoopWithProducts) {
  std::vector<Loop> loops = findMainLoops(parse());
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].body.front(), 2u);
  EXPECT_EQ(loops[0].body.back(), 15u);
  EXPECT_EQ(loops[0].body.size(), 14u);
  EXPECT_EQ(loops[0].outOfLine, (std::vector<size_t>{18, 19, 20}));
}

TEST(SassTest, FindsLoopsWithoutProducts) {
  // The repetition of a wait is no main loop; one that computes is.
  std::vector<Function> functions = parseDisassembly(R"(
	.section	.text.sum,"ax",@progbits
.L_x_0:
        /*0000*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P4, [UR30], R9 ;
        /*0010*/              @!P4 BRA `(.L_x_0) ;
.L_x_1:
        /*0020*/                   FADD R1, R1, R2 ;
        /*0030*/                   BRA.U UP0, `(.L_x_1) ;
        /*0040*/                   EXIT ;
)");
  std::vector<Loop> loops = findMainLoops(functions.front());
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].body, (std::vector<size_t>{2, 3}));
}

TEST(SassTest, CutsALoopIntoRuns) {
  Function function = parse();
  std::vector<tessera::sass::Run> runs = getRuns(function, findMainLoops(function).front());
  std::vector<RunKind> kinds;
  for (const tessera::sass::Run &run : runs)
    kinds.push_back(run.kind);
  EXPECT_EQ(kinds, (std::vector<RunKind>{RunKind::Sync, RunKind::Products, RunKind::Products,
                                         RunKind::Wait, RunKind::Arithmetic, RunKind::Wait,
                                         RunKind::Arithmetic}));
  // A group ends where it is closed; addresses go with what they stand among.
  EXPECT_EQ(runs[1].counts.at("HGMMA"), 2u);
  EXPECT_EQ(runs[1].counts.at("UIADD3"), 1u);
  EXPECT_EQ(runs[2].counts.at("HGMMA"), 1u);
  EXPECT_EQ(runs[6].counts.at("MUFU"), 1u);
}

TEST(SassTest, CountsGroupsInFlight) {
  Function function = parse();
  EXPECT_EQ(getGroupsInFlight(function, findMainLoops(function).front()),
            (std::vector<unsigned>{0, 0, 0, 0, 1, 1, 1, 2, 1, 1, 0, 0, 0, 0}));
}

TEST(SassTest, ReportsCountsAndNotes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeReport(parse(), nullptr, /*listing=*/false, os);
  EXPECT_NE(text.find("attend: 23 instructions, 3 of them products"), std::string::npos);
  EXPECT_NE(text.find("loop at 0x20 to 0xf0: 14 instructions, 3 more out of line\n"
                      "  lines 12 to 14 of a.tile\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("HGMMA x2 | HGMMA x1 | wait 0x1 | MUFU x1 | wait 0x0 | MUFU x1 + 2 arithmetic"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find("1 of 2 MUFU run while a product of this warpgroup is in flight; 1 come after "
                "the wait at 0xb0, which leaves none"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("0 loads and 1 stores of local memory"), std::string::npos);
}

TEST(SassTest, NamesTheFileOfEachLine) {
  Function function = parse();
  for (tessera::sass::Instruction &instruction : function.instructions)
    if (instruction.line == 14)
      instruction.file = "kernels/imported.tile";
  std::string text;
  llvm::raw_string_ostream os(text);
  writeReport(function, nullptr, /*listing=*/true, os);
  EXPECT_NE(text.find("  lines 12 of a.tile, 14 of imported.tile\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a.tile:12        in flight"), std::string::npos) << text;
  EXPECT_NE(text.find("imported.tile:14 in flight"), std::string::npos) << text;
}

TEST(SassTest, ReadsSamplesOfNcu) {
  Function function = parse();
  std::string csv =
      "==PROF== a line before the table\n"
      "\"Address\",\"Source\",\"# Samples\",\"stall_wait\",\"stall_wait (Not Issued)\"\n";
  for (auto [i, instruction] : llvm::enumerate(function.instructions))
    csv += "\"7f00\",\"" + instruction.guard + (instruction.guard.empty() ? "" : " ") +
           instruction.opcode + " " + instruction.operands + "\",\"" +
           std::to_string(i == 10   ? 30
                          : i == 12 ? 10
                                    : 0) +
           "\",\"" + std::to_string(i == 10 ? 20 : 0) + "\",\"5\"\n";
  Samples samples = llvm::cantFail(readNcuTable(csv, function));
  EXPECT_EQ(samples.total, 40u);
  EXPECT_EQ(samples.places[10].total, 30u);
  EXPECT_EQ(samples.places[10].stalls.at("wait"), 20u);
  EXPECT_EQ(samples.places[10].stalls.size(), 1u);
  std::string text;
  llvm::raw_string_ostream os(text);
  writeReport(function, &samples, /*listing=*/false, os);
  EXPECT_NE(text.find("a.tile:14  100.0 %  [wait 50.0 %]"), std::string::npos) << text;

  function.instructions[3].opcode = "BRX";
  EXPECT_EQ(toString(readNcuTable(csv, function).takeError()),
            "row 4 has BRA where 'attend' has BRX; the profile is of other machine code");
  EXPECT_NE(toString(readNcuTable("a,b\n", function).takeError()).find("has no columns"),
            std::string::npos);
}
