import type { BackendPolicies } from '../../../../upstream/config.ts'
import { keyOf } from '../../../objects/meta.ts'
import type { GatewayBackend, GatewayBackendSpec } from '../../../own-kinds/gateway-backend.ts'
import type { BackendConfig, BackendTraffic } from '../../plan.ts'
import { translateAi } from './ai.ts'
import { reportMistake, type Translation, translatePart } from './findings.ts'
import { translateHost } from './hosts.ts'
import { type TargetService, translateMcp } from './mcp.ts'
import { translatePolicies } from './settings.ts'

/** A GatewayBackend as entries of the `backends` section, without the endpoints of Services. */
export type Draft = {
  readonly traffic: BackendTraffic
  readonly main: BackendConfig
  readonly services: readonly TargetService[]
}

/** Prefix of names in the `backends` section. */
export const gatewayBackendPrefix = 'GatewayBackend/'

/** Translates a GatewayBackend and reports its problems; undefined if it is not usable. */
export function translateGatewayBackend(
  backend: GatewayBackend,
  translation: Translation,
): Draft | undefined {
  const { spec } = backend
  const name = `${gatewayBackendPrefix}${keyOf(backend)}`
  const { value: policies, isUsable } = translatePart(translation, () => policiesOf(spec, translation))
  const common = { name, ...(policies && { policies }) }
  if (spec.ai !== undefined) {
    const ai = translateAi(spec.ai, ['spec', 'ai'], translation)
    return ai && isUsable ? { traffic: 'llm', main: { ...common, ai }, services: [] } : undefined
  }
  if (spec.mcp !== undefined) {
    const mcp = translateMcp(spec.mcp, name, translation)
    return mcp && isUsable
      ? { traffic: 'mcp', main: { ...common, mcp: mcp.config }, services: mcp.services }
      : undefined
  }
  const { value: hosts, isUsable: areUsable } = translatePart(translation, () =>
    hostsOf(spec.static, translation),
  )
  if (!isUsable || !areUsable) return undefined
  const [only] = hosts
  const isSingle = hosts.length === 1 && only?.weight === undefined
  const servers = isSingle && only ? { host: only.host } : { endpoints: hosts }
  return { traffic: 'http', main: { ...common, ...servers }, services: [] }
}

function hostsOf({ hosts }: NonNullable<GatewayBackendSpec['static']>, translation: Translation) {
  return hosts.map(({ host, port, weight }, index) => ({
    host: translateHost({ host, port }, ['spec', 'static', 'hosts', index, 'host'], translation),
    ...(weight !== undefined && { weight }),
  }))
}

function policiesOf(
  { policies, ...spec }: GatewayBackendSpec,
  translation: Translation,
): BackendPolicies | undefined {
  if (policies === undefined) return undefined
  const path = ['spec', 'policies']
  if (spec.mcp !== undefined) {
    reportMistake(translation, path, 'is not valid with mcp: set the policies of its targets')
  }
  if (spec.static === undefined && policies.health !== undefined) {
    reportMistake(translation, [...path, 'health'], 'is only valid with static')
  }
  return translatePolicies(policies, path, translation)
}
