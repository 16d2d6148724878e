//===- MachineTextTest.cpp - Machines as people write them ----------------===//

#include "attn/Machine/MachineText.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

std::string refusal(std::string_view text) {
  std::string error;
  EXPECT_FALSE(parseMachine(text, error)) << text;
  return error;
}

TEST(MachineText, NamesAndFields) {
  std::string error;
  auto plain = parseMachine("h100_sxm", error);
  ASSERT_TRUE(plain) << error;
  EXPECT_EQ(plain->sms, 132);
  auto other = parseMachine(
      " h100_sxm ,smem_bytes_per_block=49152, hbm_bytes_per_second = "
      "2500000000000.5",
      error);
  ASSERT_TRUE(other) << error;
  EXPECT_EQ(other->name, "h100_sxm");
  EXPECT_EQ(other->smemBytesPerBlock, 49152);
  EXPECT_EQ(other->hbmBytesPerSecond, 2500000000000.5);
  EXPECT_EQ(other->measuredHbmBytesPerSecond, 0);
}

TEST(MachineText, WrongTexts) {
  EXPECT_EQ(refusal("h1000"), unknownMachine("h1000"));
  EXPECT_EQ(refusal(""), unknownMachine(""));
  std::string fields = "; fields: " + machineFieldNames();
  EXPECT_EQ(refusal("l4, smem = 49152"),
            "expects a machine field, but got 'smem' (at character 5 of 'l4, "
            "smem = 49152')" +
                fields);
  EXPECT_EQ(refusal("l4, sms = 0"),
            "expects sms between 1 and 1000000, but got 0 (at character 5 of "
            "'l4, sms = 0')" +
                fields);
  EXPECT_EQ(refusal("l4, sms = 3, sms = 3"),
            "expects every field once, but got 'sms' twice (at character 14 of "
            "'l4, sms = 3, sms = 3')" +
                fields);
  EXPECT_EQ(refusal("l4, l2_bytes = 0"),
            "expects l2_bytes between 1 and 1000000000000000, but got 0 (at "
            "character 5 of 'l4, l2_bytes = 0')" +
                fields);
  EXPECT_EQ(refusal("l4, smem_bytes_per_sm = 0"),
            "expects smem_bytes_per_sm to be at least 102400, "
            "smem_bytes_per_block and 1024 that the system keeps, but got 0 "
            "(in 'l4, smem_bytes_per_sm = 0')");
  for (const char *piece :
       {"sms", "sms =", "sms = x", "sms = -3", "sms = 1e3", "sms = .5",
        "sms = 1.2.3", "sms = nan", "= 3 4", "sms 3"})
    EXPECT_EQ(refusal(std::string("l4,") + piece),
              "expects a field and a number, as in 'sms = 64', but got '" +
                  std::string(piece) + "' (at character 4 of 'l4," + piece +
                  "')" + fields);
  EXPECT_NE(refusal("l4,").find("but got ''"), std::string::npos);
  EXPECT_NE(refusal("l4, sms = 3,").find("but got ''"), std::string::npos);
}

} // namespace
