//===- Energy.h - Joules of transfers ---------------------------*- C++ -*-===//
///
/// What moving bytes takes, level by level.  Arithmetic, idle units and leakage
/// are left out, so these are no watts of a card; they compare plans, and say
/// which level is worth saving at.
///
/// The constants are of a Tesla K40 (28 nm, GDDR5), the one GPU for which all
/// three levels have been published by one method: a newer chip takes less, HBM
/// about two thirds of `hbm`.  Source: Arunkumar, Bolotin, Nellans, Wu,
/// Understanding the Future of Energy Efficiency in Multi-Module GPUs, HPCA
/// 2019, energy per transaction: 5.32 pJ/bit from shared memory to registers,
/// 15.48 from L2 to L1, 30.55 from DRAM to L2.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_ENERGY_H
#define ATTN_SCHEDULE_ENERGY_H

#include "attn/Schedule/Costs.h"

namespace attn {

/// Joules for a byte.
inline constexpr double kHbmJoulesPerByte = 8 * 30.55e-12,
                        kL2JoulesPerByte = 8 * 15.48e-12,
                        kSmemJoulesPerByte = 8 * 5.32e-12;
inline constexpr char kEnergySource[] =
    "Arunkumar et al., HPCA 2019: a Tesla K40, 30.55, 15.48 and 5.32 pJ/bit";

struct Energy {
  double hbm = 0, l2 = 0, smem = 0;

  double joules() const { return hbm + l2 + smem; }
};

inline Energy energyOf(const Bytes &bytes) {
  return {double(bytes.hbm) * kHbmJoulesPerByte,
          double(bytes.l2) * kL2JoulesPerByte,
          double(bytes.smem) * kSmemJoulesPerByte};
}

} // namespace attn

#endif // ATTN_SCHEDULE_ENERGY_H
