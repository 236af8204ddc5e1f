import { createLocalMemory } from '../../src/lib/planes/memory.ts'
import {
  type Admission,
  type AdmissionMeter,
  createAdmission,
  defaultAdmissionLimits,
} from '../../src/net/listener/admission.ts'

const silent: AdmissionMeter = { changed() {}, refused() {} }

/** Admission under the default limits, without metrics. */
export function defaultAdmission(): Admission {
  return createAdmission(defaultAdmissionLimits, () => silent, createLocalMemory())
}
