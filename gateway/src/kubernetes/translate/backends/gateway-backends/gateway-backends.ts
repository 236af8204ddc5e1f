import { validatePart } from '../../../../config/load/validate.ts'
import { formatPath } from '../../../../schema/path.ts'
import type { EndpointConfig } from '../../../../upstream/config.ts'
import { keyOf, type ObjectKey } from '../../../objects/meta.ts'
import type { InvalidObject, ObjectSet } from '../../../objects/object-set.ts'
import type { GatewayBackend } from '../../../own-kinds/gateway-backend.ts'
import type { BackendConfig, BackendTraffic } from '../../plan.ts'
import { conditionsOf, satisfied, violated } from '../../status/conditions.ts'
import { invalidKey, mistakesText } from '../../status/invalid-objects.ts'
import type { ObjectStatus } from '../../status/object-status.ts'
import type { Permits } from '../grants.ts'
import type { Memo } from '../memo.ts'
import type { ClientCertificate, ServiceBackend, Services } from '../services.ts'
import type { Findings } from './findings.ts'
import { createLookups, type RecordedLookups, type Surroundings, surroundingsOf } from './lookups.ts'
import type { TargetService } from './mcp.ts'
import { type Draft, translateGatewayBackend } from './translate-gateway-backend.ts'

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
  /** Entries of the `backends` section: the backend, and those that it refers to. */
  config(key: ObjectKey, pair: ClientCertificate): readonly BackendConfig[]
  /** The Services that the backend refers to. */
  services(key: ObjectKey): readonly ServiceBackend[]
  statuses(): readonly ObjectStatus[]
}

export type GatewayBackendContext = {
  readonly services: Services
  readonly permits: Permits
  readonly memo: Memo
}

/** Translation of a GatewayBackend by itself. */
type Entry = {
  readonly lookups: RecordedLookups
  readonly findings: Findings
  /** Undefined if the backend is not usable. */
  readonly draft: Draft | undefined
  readonly reading: GatewayBackendReading
}

/** Creates the GatewayBackends of a set of objects. */
export function createGatewayBackends(
  objects: ObjectSet,
  { services, permits, memo }: GatewayBackendContext,
): GatewayBackends {
  const surroundings = surroundingsOf(objects, { services, permits })
  const current = new Map<ObjectKey, Entry>()

  function entryOf(backend: GatewayBackend): Entry {
    const key = keyOf(backend)
    const known = current.get(key)
    if (known !== undefined) return known
    const cell = memo<{ entry: Entry | undefined }>(backend, 'entry', [], () => ({ entry: undefined }))
    const entry = cell.entry?.lookups.isCurrent(surroundings) ? cell.entry : translate(backend, surroundings)
    cell.entry = entry
    current.set(key, entry)
    return entry
  }

  const entryAt = (key: ObjectKey) => {
    const backend = objects.GatewayBackend.get(key)
    return backend && entryOf(backend)
  }

  function targetConfig({ name, backend, policies }: TargetService, pair: ClientCertificate): BackendConfig {
    const own = services.config(backend, policies?.backendTLS === undefined ? pair : undefined)
    const owner = pair ?? backend.service
    // A BackendTLSPolicy that is not valid has no effect on a target with TLS settings of its own.
    const endpoints = policies?.backendTLS === undefined ? own.endpoints : services.endpoints(backend)
    return memo<BackendConfig>(owner, `target ${name}`, [endpoints, own.policies, policies], () => {
      const { http, ...others } = { ...own.policies, ...policies }
      const merged = {
        ...others,
        ...((own.policies?.http ?? http) && { http: { ...own.policies?.http, ...http } }),
      }
      return {
        name,
        endpoints: (endpoints ?? []) as EndpointConfig[],
        ...(Object.keys(merged).length > 0 && { policies: merged }),
      }
    })
  }

  return {
    find(key) {
      const entry = entryAt(key)
      if (entry !== undefined) return entry.reading
      const place = `GatewayBackend ${key}`
      const invalid = objects.invalid.get(invalidKey('GatewayBackend', key))
      if (invalid === undefined) return { kind: 'missing', message: `${place} does not exist` }
      return { kind: 'invalid', message: `${place} is not usable: its status has the reasons` }
    },
    config(key, pair) {
      const draft = entryAt(key)?.draft
      if (draft === undefined) return []
      return [draft.main, ...draft.services.map((service) => targetConfig(service, pair))]
    },
    services: (key) => entryAt(key)?.draft?.services.map(({ backend }) => backend) ?? [],
    statuses: () => [
      ...objects.GatewayBackend.values().map((backend) => statusOf(backend, entryOf(backend))),
      ...objects.invalid
        .values()
        .filter(({ kind }) => kind === 'GatewayBackend')
        .map(statusOfInvalid),
    ],
  }
}

function translate(backend: GatewayBackend, surroundings: Surroundings): Entry {
  const key = keyOf(backend)
  const lookups = createLookups(backend.metadata.namespace ?? '', surroundings)
  const findings: Findings = { mistakes: [], broken: [] }
  const draft = translateGatewayBackend(backend, { lookups, findings })
  lookups.complete()
  if (draft !== undefined && findings.mistakes.length === 0) findings.mistakes.push(...mistakesOf(draft))
  if (draft === undefined || findings.mistakes.length > 0) {
    const message = `GatewayBackend ${key} is not usable: its status has the reasons`
    return { lookups, findings, draft: undefined, reading: { kind: 'invalid', message } }
  }
  const { main, traffic } = draft
  return { lookups, findings, draft, reading: { kind: 'backend', name: main.name, traffic } }
}

/** Mistakes that the checks of a configuration find. */
function mistakesOf({ main, services }: Draft): string[] {
  const backends = services.map(({ name, policies }) => ({
    name,
    endpoints: [],
    ...(policies && { policies }),
  }))
  const issues = validatePart({ kind: 'backend', value: main }, { backends })
  const ofServices = backends.flatMap((value) => validatePart({ kind: 'backend', value }, {}))
  return [...issues, ...ofServices].map(
    ({ path, message }) => `${formatPath(['spec', ...path.map(stepOf)])}: ${message}`,
  )
}

/** Fields with other names in the cluster. */
const fieldNames: ReadonlyMap<string | number, string> = new Map([
  ['backendTLS', 'tls'],
  ['backendAuth', 'auth'],
])

function stepOf(step: string | number): string | number {
  return fieldNames.get(step) ?? step
}

function statusOf(backend: GatewayBackend, { findings: { mistakes, broken } }: Entry): ObjectStatus {
  const [first] = broken
  const accepted =
    mistakes.length === 0
      ? satisfied('Accepted', 'Accepted')
      : violated('Accepted', 'Invalid', mistakes.join('; '))
  const resolved =
    first === undefined
      ? satisfied('ResolvedRefs', 'ResolvedRefs')
      : violated('ResolvedRefs', first.reason, broken.map(({ message }) => message).join('; '))
  const conditions = conditionsOf(backend, [accepted, resolved])
  return { kind: 'GatewayBackend', key: keyOf(backend), of: 'conditions', status: { conditions } }
}

function statusOfInvalid(invalid: InvalidObject): ObjectStatus {
  const conditions = conditionsOf(invalid, [violated('Accepted', 'Invalid', mistakesText(invalid))])
  return { kind: 'GatewayBackend', key: keyOf(invalid), of: 'conditions', status: { conditions } }
}
