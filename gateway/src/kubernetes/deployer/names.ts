import { hash } from 'node:crypto'
import type { Gateway } from '../objects/gateway-api.ts'
import { gatewayApiGroup } from '../objects/kinds.ts'

export const gatewayNameLabel = `${gatewayApiGroup}/gateway-name`
export const gatewayClassLabel = `${gatewayApiGroup}/gateway-class-name`

/** Names of Services and values of labels. */
const maxLength = 63
const suffixLength = '-session-key'.length
const hashLength = 12

/** The parts of a Gateway that name its objects. */
export type NamedGateway = {
  readonly metadata: Pick<Gateway['metadata'], 'name'>
  readonly spec: Pick<Gateway['spec'], 'gatewayClassName'>
}

/**
 * Name of the Deployment, Service and ServiceAccount of a Gateway: `<gateway>-<class>` (GEP-1762). A name
 * that a Service cannot have is shortened or changed, and ends with a hash.
 */
export function proxyName({ metadata, spec }: NamedGateway): string {
  const wanted = `${metadata.name}-${spec.gatewayClassName}`
  const limit = maxLength - suffixLength
  const isUsable = wanted.length <= limit && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(wanted)
  if (isUsable) return wanted
  const letters = wanted.replaceAll('.', '-').replace(/^(?![a-z])/, 'gateway-')
  return withHash(letters, wanted, limit)
}

export function sessionSecretName(gateway: NamedGateway): string {
  return `${proxyName(gateway)}-session-key`
}

export function authorityName(gateway: NamedGateway): string {
  return `${proxyName(gateway)}-ca`
}

/** A name as the value of a label. */
export function labelValue(name: string): string {
  return name.length <= maxLength ? name : withHash(name, name, maxLength)
}

function withHash(text: string, source: string, limit: number): string {
  const digest = hash('sha256', source, 'hex').slice(0, hashLength)
  return `${text.slice(0, limit - hashLength - 1).replace(/[^a-z0-9]+$/, '')}-${digest}`
}
