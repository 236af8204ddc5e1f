import { parseHostPort } from '../../../lib/address/host-port.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { checkBackendPolicies } from '../../../upstream/check.ts'
import { entriesOf, providerOf } from '../llm-backend.ts'
import { namePatternIssue } from '../models/name-pattern.ts'
import type { LlmBackendConfig, LlmPolicyConfig, LlmProviderEntry } from './backend-config.ts'

/** Reports issues of an `ai` backend beyond its schema. */
export function checkLlmBackend(config: LlmBackendConfig, report: ReportIssue): void {
  if (config.groups !== undefined) {
    for (const key of singleProviderKeys) {
      if (config[key] !== undefined) report([key], 'is only valid on providers of groups[].providers')
    }
  }
  const names = new Set<string>()
  for (const { entry, path } of entriesOf(config)) {
    checkEntry(entry, (rest, message) => report([...path, ...rest], message))
    if (config.groups !== undefined && entry.policies?.ai?.routes !== undefined) {
      report(
        [...path, 'policies', 'ai', 'routes'],
        'is only valid in policies.ai of the backend or route, because paths are matched before a provider is selected',
      )
    }
    if (entry.name === undefined) continue
    if (names.has(entry.name)) report([...path, 'name'], `duplicate provider name "${entry.name}"`)
    names.add(entry.name)
  }
}

const singleProviderKeys = ['name', 'hostOverride', 'pathOverride', 'pathPrefix', 'policies'] as const

/** Reports issues of `policies.ai` beyond its schema. */
export function checkLlmPolicy(
  { routes = {}, modelAliases = {} }: LlmPolicyConfig,
  report: ReportIssue,
): void {
  for (const suffix of Object.keys(routes)) {
    if (suffix === '*') continue
    if (!suffix.startsWith('/') || suffix.endsWith('/') || suffix.includes('*')) {
      report(['routes', suffix], `must be a path suffix such as /v1/messages, or *, got "${suffix}"`)
    }
  }
  for (const alias of Object.keys(modelAliases)) {
    const message = alias === '' ? 'model name must not be empty' : namePatternIssue(alias)
    if (message !== undefined) report(['modelAliases', alias], message)
  }
}

function checkEntry(entry: LlmProviderEntry, report: ReportIssue): void {
  const { kind, provider } = providerOf(entry)
  const { hostOverride, policies } = entry
  if (provider && provider.address === undefined && !provider.local && hostOverride === undefined) {
    report(['provider', kind], `provider "${kind}" requires hostOverride`)
  }
  if (hostOverride !== undefined && parseHostPort(hostOverride)?.port === 0) {
    report(['hostOverride'], 'port must not be 0')
  }
  for (const key of overrideKeys) {
    const text = entry[key]
    if (text === undefined) continue
    if (provider?.local)
      report([key], `is not valid with provider "${kind}": it runs inside the gateway and has no address`)
    if (key !== 'hostOverride' && !/^\/[\x21-\x7e]*$/.test(text)) {
      report([key], `must start with a slash and contain no spaces, got "${text}"`)
    } else if (key !== 'hostOverride' && /[?#]/.test(text)) {
      report([key], 'must not contain a query or a fragment')
    }
  }
  if (entry.pathOverride !== undefined && entry.pathPrefix !== undefined) {
    report(['pathPrefix'], 'is not valid with pathOverride: remove one of them')
  }
  if (policies === undefined) return
  checkBackendPolicies(policies, (path, message) => report(['policies', ...path], message))
  if (policies.ai)
    checkLlmPolicy(policies.ai, (path, message) => report(['policies', 'ai', ...path], message))
}

const overrideKeys = ['hostOverride', 'pathOverride', 'pathPrefix'] as const
