import type { ObjectKey } from '../../../objects/meta.ts'
import type { ObjectSet } from '../../../objects/object-set.ts'
import type { BackendConfig, BackendTraffic } from '../../plan.ts'
import type { ObjectStatus } from '../../status/object-status.ts'
import type { Permits } from '../grants.ts'
import type { Memo } from '../memo.ts'
import type { ClientCertificate, Services } from '../services.ts'

/** A GatewayBackend that references can use, or the reason against it. */
export type GatewayBackendReading =
  | {
      readonly kind: 'backend'
      /** Name in the `backends` section. */
      readonly name: string
      readonly traffic: BackendTraffic
    }
  | { readonly kind: 'missing' | 'invalid'; readonly message: string }

/** GatewayBackends as backends. */
export type GatewayBackends = {
  find(key: ObjectKey): GatewayBackendReading
  /** The entry of the `backends` section; undefined if the backend is missing or not valid. */
  config(key: ObjectKey, pair: ClientCertificate): BackendConfig | undefined
  /** Names of the Service backends that the entry refers to. */
  services(key: ObjectKey): readonly string[]
  statuses(): readonly ObjectStatus[]
}

export type GatewayBackendContext = {
  readonly services: Services
  readonly permits: Permits
  readonly memo: Memo
}

/** Creates the GatewayBackends of a set of objects. */
export function createGatewayBackends(objects: ObjectSet, _context: GatewayBackendContext): GatewayBackends {
  return {
    find(key) {
      const place = `GatewayBackend "${key}"`
      const invalid = objects.invalid.get(`GatewayBackend/${key}`)
      if (invalid !== undefined) {
        return { kind: 'invalid', message: `${place} is not valid: ${invalid.mistakes.join('; ')}` }
      }
      return { kind: 'missing', message: `${place} does not exist` }
    },
    config: () => undefined,
    services: () => [],
    statuses: () => [],
  }
}
