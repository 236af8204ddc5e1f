import type { LlmBackendConfig, LlmProviderEntry } from '../../../../backends/llm/config/backend-config.ts'
import { formatHostPort } from '../../../../lib/address/host-port.ts'
import type { Path } from '../../../../schema/path.ts'
import type { AiSpec, ProviderSpec, ServiceRef } from '../../../own-kinds/gateway-backend.ts'
import type { ServiceBackend } from '../services.ts'
import { reportBroken, reportMistake, type Translation, translatePart } from './findings.ts'
import { translateHost } from './hosts.ts'
import { findService } from './service-references.ts'
import { addressOf, translateLlmPolicy, translatePolicies } from './settings.ts'

/**
 * Translates `ai`. Providers with broken references are left out while others remain: requests go to the next
 * provider, as they do when a provider fails. Undefined without usable provider.
 */
export function translateAi(ai: AiSpec, path: Path, translation: Translation): LlmBackendConfig | undefined {
  if (ai.groups === undefined) {
    const { value, isUsable } = translatePart(translation, () => translateProvider(ai, path, translation))
    return isUsable ? value : undefined
  }
  const { groups: written, ...rest } = ai
  for (const key of Object.keys(rest)) {
    reportMistake(translation, [...path, key], 'is only valid on providers of groups[].providers')
  }
  const groups = written.flatMap(({ providers }, group) => {
    const usable = providers.flatMap((provider, index) => {
      const place = [...path, 'groups', group, 'providers', index]
      const { value, isUsable } = translatePart(translation, () =>
        translateProvider(provider, place, translation),
      )
      return isUsable ? [value] : []
    })
    return usable.length === 0 ? [] : [{ providers: usable }]
  })
  return groups.length === 0 ? undefined : { groups }
}

function translateProvider(
  { backendRef, policies, ...provider }: ProviderSpec,
  path: Path,
  translation: Translation,
): LlmProviderEntry {
  const place = [...path, 'policies']
  const { ai, ...others } = policies ?? {}
  const own = policies && {
    ...translatePolicies(others, place, translation),
    ...(ai && { ai: translateLlmPolicy(ai) }),
  }
  if (provider.hostOverride !== undefined) {
    translateHost(addressOf(provider.hostOverride), [...path, 'hostOverride'], translation)
  }
  if (backendRef === undefined) {
    if (provider.hostOverride === undefined && isLocal(provider)) {
      reportMistake(
        translation,
        [...path, 'provider'],
        'ollama needs backendRef or hostOverride: it has no public address',
      )
    }
    return { ...provider, ...(own && { policies: own }) }
  }
  if (provider.hostOverride !== undefined) {
    reportMistake(translation, [...path, 'backendRef'], 'is not valid with hostOverride: remove one of them')
  }
  const server = translateServer(backendRef, [...path, 'backendRef'], translation)
  const merged = { ...(server?.tls && { backendTLS: server.tls }), ...own }
  return {
    ...provider,
    ...(server && { hostOverride: server.host }),
    ...(Object.keys(merged).length > 0 && { policies: merged }),
  }
}

/** The default address of the provider is the machine itself, which is the Pod of the proxy. */
function isLocal({ provider }: Pick<ProviderSpec, 'provider'>): boolean {
  return Object.entries(provider).some(([name, settings]) => name === 'ollama' && settings !== undefined)
}

/** A Service as one address: its cluster IP, or its DNS name if it is headless. */
function translateServer(reference: ServiceRef, path: Path, translation: Translation) {
  const backend = findService(reference, path, translation)
  if (backend === undefined) return undefined
  const { tls } = backend
  if (tls?.kind === 'invalid') {
    reportBroken(translation, path, { reason: 'InvalidBackend', message: tls.message })
    return undefined
  }
  return { host: addressOfService(backend), tls: tls?.config }
}

function addressOfService({ service, port }: ServiceBackend): string {
  const { name, namespace } = service.metadata
  const { clusterIP } = service.spec
  if (clusterIP !== undefined && clusterIP !== '' && clusterIP !== 'None') {
    return formatHostPort({ host: clusterIP, port: port.port })
  }
  // The name of a headless Service resolves to its Pods. Services of manifests have no address.
  const isHeadless = clusterIP === 'None' && typeof port.targetPort === 'number'
  return `${name}.${namespace}.svc:${isHeadless ? port.targetPort : port.port}`
}
