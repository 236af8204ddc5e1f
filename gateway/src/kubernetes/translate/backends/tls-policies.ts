import type { BackendTlsConfig } from '../../../upstream/connection-config.ts'
import type { ConfigMap, Secret } from '../../objects/core.ts'
import type { BackendTLSPolicy, ObjectReference } from '../../objects/gateway-api.ts'
import { compareByAge, keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { InvalidObject, ObjectSet } from '../../objects/object-set.ts'
import { mistakesText } from '../status/invalid-objects.ts'
import { readCa, type TextReading } from './certificates.ts'
import type { Memo } from './memo.ts'

/** TLS of a Service port by a BackendTLSPolicy. */
export type AppliedTls =
  | { readonly kind: 'tls'; readonly config: BackendTlsConfig }
  | { readonly kind: 'invalid'; readonly message: string }

/** Result of the validation of a policy by itself. */
export type PolicyReading = {
  readonly tls: { readonly kind: 'tls'; readonly config: BackendTlsConfig } | { readonly kind: 'invalid' }
  /** A problem of the policy, for the condition Accepted. */
  readonly accepted: Problem | undefined
  /** A problem of its references, for the condition ResolvedRefs. */
  readonly references: Problem | undefined
}

export type Problem = { readonly reason: string; readonly message: string }

/** BackendTLSPolicies by target. */
export type TlsPolicies = {
  /** The policy of a port of a Service: of its name before the whole Service, the oldest first. */
  of(service: ObjectKey, portName: string | undefined): AppliedTls | undefined
  read(policy: BackendTLSPolicy): PolicyReading
  /** The policy that takes precedence over all others with the same target. */
  winner(service: ObjectKey, sectionName: string | undefined): Source | undefined
}

/** A policy, or one that violates its schema: its Services refuse connections, plain text replaces no TLS. */
type Source = BackendTLSPolicy | InvalidObject

type Target = BackendTLSPolicy['spec']['targetRefs'][number]

/** Indexes the BackendTLSPolicies of Services. Targets of other kinds are not supported. */
export function indexTlsPolicies(objects: ObjectSet, memo: Memo): TlsPolicies {
  const winners = new Map<string, Source>()
  for (const policy of [...objects.BackendTLSPolicy.values(), ...invalidTlsPolicies(objects)]) {
    for (const { group, kind, name, sectionName } of tlsTargetsOf(policy)) {
      if (group !== '' || kind !== 'Service') continue
      const target = targetKey(`${policy.metadata.namespace}/${name}`, sectionName)
      const other = winners.get(target)
      if (other === undefined || compareByAge(policy, other) < 0) winners.set(target, policy)
    }
  }
  const read = (policy: BackendTLSPolicy): PolicyReading => {
    const { namespace = '' } = policy.metadata
    const references = policy.spec.validation.caCertificateRefs ?? []
    const found = references.map((reference) => objectOf(reference, namespace, objects))
    return memo(policy, 'reading', found, () => readPolicy(policy, objects))
  }
  const applied = (policy: Source): AppliedTls => {
    if ('mistakes' in policy) return memo(policy, 'applied', [], () => refusal(policy, mistakesText(policy)))
    const reading = read(policy)
    return memo<AppliedTls>(policy, 'applied', [reading], () =>
      reading.tls.kind === 'tls' ? reading.tls : refusal(policy, messageOf(reading)),
    )
  }
  return {
    read,
    winner: (service, sectionName) => winners.get(targetKey(service, sectionName)),
    of(service, portName) {
      const ofPort = portName === undefined ? undefined : winners.get(targetKey(service, portName))
      const policy = ofPort ?? winners.get(targetKey(service, undefined))
      return policy && applied(policy)
    },
  }
}

/** Policies that violate their schema. */
export function invalidTlsPolicies({ invalid }: ObjectSet): InvalidObject[] {
  return [...invalid.values()].filter(({ kind }) => kind === 'BackendTLSPolicy')
}

/** The targets of a policy; of one that violates its schema, those that are readable. */
export function tlsTargetsOf(policy: Source): readonly Target[] {
  if (!('mistakes' in policy)) return policy.spec.targetRefs
  const { targetRefs } = fieldsOf(policy.spec)
  return Array.isArray(targetRefs) ? targetRefs.flatMap(readTarget) : []
}

function readTarget(value: unknown): Target[] {
  const { kind, name, sectionName } = fieldsOf(value)
  if (kind !== 'Service' || typeof name !== 'string') return []
  return [{ group: '', kind, name, ...(typeof sectionName === 'string' && { sectionName }) }]
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function refusal(policy: Source, message: string): Extract<AppliedTls, { kind: 'invalid' }> {
  return { kind: 'invalid', message: `BackendTLSPolicy ${keyOf(policy)} is not valid: ${message}` }
}

function messageOf({ accepted, references }: PolicyReading): string {
  return (references ?? accepted)?.message ?? ''
}

function targetKey(service: ObjectKey, sectionName: string | undefined): string {
  return sectionName === undefined || sectionName === '' ? service : `${service}#${sectionName}`
}

function readPolicy(policy: BackendTLSPolicy, objects: ObjectSet): PolicyReading {
  const {
    hostname,
    caCertificateRefs = [],
    wellKnownCACertificates,
    subjectAltNames,
  } = policy.spec.validation
  const names = subjectAltNames?.map(({ type, hostname, uri }) => (type === 'URI' ? uri : hostname))
  const known = names?.filter((name) => name !== undefined && name !== '') as string[] | undefined
  const common = { hostname, ...(known !== undefined && known.length > 0 && { subjectAltNames: known }) }
  if (known?.length !== names?.length) {
    return invalid({
      reason: 'Invalid',
      message: 'validation.subjectAltNames: each must have the name of its type',
    })
  }
  const hasSystem = wellKnownCACertificates !== undefined && wellKnownCACertificates !== ''
  if (hasSystem === caCertificateRefs.length > 0) {
    const message = 'validation: set one of caCertificateRefs and wellKnownCACertificates'
    return invalid({ reason: 'Invalid', message })
  }
  if (hasSystem) {
    if (wellKnownCACertificates === 'System') return valid(common)
    const message = `validation.wellKnownCACertificates: ${wellKnownCACertificates} is not supported: use System`
    return invalid({ reason: 'Invalid', message })
  }
  const { namespace = '' } = policy.metadata
  const readings = caCertificateRefs.map((reference) => readReference(reference, namespace, objects))
  const texts = readings.flatMap((reading) => (reading.kind === 'text' ? [reading.text] : []))
  const problem = referenceProblem(readings)
  if (texts.length === 0) {
    const message = `no CA certificate is usable: ${problem?.message ?? ''}`
    return {
      tls: { kind: 'invalid' },
      accepted: { reason: 'NoValidCACertificate', message },
      references: problem,
    }
  }
  // Fewer authorities are stricter: servers of an authority that is missing fail the handshake.
  return { ...valid({ ...common, root: { inline: texts.join('\n') } }), references: problem }
}

type Reading = TextReading | { readonly kind: 'invalid-kind'; readonly message: string }

function readReference(reference: ObjectReference, namespace: string, objects: ObjectSet): Reading {
  const { group = '', kind = 'ConfigMap', name } = reference
  if (group !== '' || (kind !== 'ConfigMap' && kind !== 'Secret')) {
    const written = group === '' ? kind : `${group}/${kind}`
    return { kind: 'invalid-kind', message: `${written} ${name} must be a ConfigMap or a Secret` }
  }
  const place = `${kind} ${namespace}/${name}`
  const object = objectOf(reference, namespace, objects)
  return object === undefined
    ? { kind: 'invalid', message: `${place} does not exist` }
    : readCa(object, place)
}

function objectOf(
  { kind = 'ConfigMap', name }: ObjectReference,
  namespace: string,
  { Secret, ConfigMap }: ObjectSet,
): Secret | ConfigMap | undefined {
  return (kind === 'Secret' ? Secret : ConfigMap).get(`${namespace}/${name}`)
}

function referenceProblem(readings: readonly Reading[]): Problem | undefined {
  const problems = readings.flatMap((reading, index) =>
    reading.kind === 'text' ? [] : [{ ...reading, index }],
  )
  const [first] = problems
  if (first === undefined) return undefined
  const message = problems
    .map(({ index, message }) => `validation.caCertificateRefs[${index}]: ${message}`)
    .join('; ')
  const isKind = problems.some(({ kind }) => kind === 'invalid-kind')
  return { reason: isKind ? 'InvalidKind' : 'InvalidCACertificateRef', message }
}

function valid(config: BackendTlsConfig): PolicyReading {
  return { tls: { kind: 'tls', config }, accepted: undefined, references: undefined }
}

function invalid(accepted: Problem): PolicyReading {
  return { tls: { kind: 'invalid' }, accepted, references: undefined }
}
