import type { Path } from '../../../../schema/path.ts'
import type { ServiceRef } from '../../../own-kinds/gateway-backend.ts'
import type { ServiceBackend, ServiceReading } from '../services.ts'
import { reportBroken, type Translation } from './findings.ts'

const reasons = {
  missing: 'BackendNotFound',
  unsupported: 'UnsupportedProtocol',
  value: 'UnsupportedValue',
} as const satisfies Record<Exclude<ServiceReading['kind'], 'service'>, string>

/** Finds the Service of a reference, and reports a broken one. */
export function findService(
  reference: ServiceRef,
  path: Path,
  translation: Translation,
): ServiceBackend | undefined {
  const reading = translation.lookups.service(reference)
  if (reading.kind === 'service') return reading.backend
  const reason = 'reason' in reading ? reading.reason : reasons[reading.kind]
  reportBroken(translation, path, { reason, message: reading.message })
  return undefined
}
