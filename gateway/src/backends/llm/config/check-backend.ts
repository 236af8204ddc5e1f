import { parseHostPort } from '../../../lib/address/host-port.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { checkBackendPolicies } from '../../../upstream/check.ts'
import { entriesOf, providerOf } from '../llm-backend.ts'
import { namePatternIssue } from '../models/name-pattern.ts'
import type { LlmBackendConfig, LlmPolicyConfig, LlmProviderEntry } from './backend-config.ts'

/** Reports what a schema cannot see in an `ai` backend. */
export function checkLlmBackend(config: LlmBackendConfig, report: ReportIssue): void {
  if (config.groups !== undefined) {
    for (const key of singleProviderKeys) {
      if (config[key] !== undefined) report([key], 'belongs to a provider of groups[].providers')
    }
  }
  const names = new Set<string>()
  for (const { entry, path } of entriesOf(config)) {
    checkEntry(entry, (rest, message) => report([...path, ...rest], message))
    if (config.groups !== undefined && entry.policies?.ai?.routes !== undefined) {
      report(
        [...path, 'policies', 'ai', 'routes'],
        'what a path asks for is decided before a provider is chosen: it belongs to policies.ai of the backend or route',
      )
    }
    if (entry.name === undefined) continue
    if (names.has(entry.name)) report([...path, 'name'], `there is another provider named "${entry.name}"`)
    names.add(entry.name)
  }
}

const singleProviderKeys = ['name', 'hostOverride', 'pathOverride', 'pathPrefix', 'policies'] as const

/** Reports what a schema cannot see in `policies.ai`. */
export function checkLlmPolicy(
  { routes = {}, modelAliases = {} }: LlmPolicyConfig,
  report: ReportIssue,
): void {
  for (const suffix of Object.keys(routes)) {
    if (suffix === '*') continue
    if (!suffix.startsWith('/') || suffix.endsWith('/') || suffix.includes('*')) {
      report(['routes', suffix], `must be the end of a path, as /v1/messages, or *, got "${suffix}"`)
    }
  }
  for (const alias of Object.keys(modelAliases)) {
    const mistake = alias === '' ? 'the name of a model must not be empty' : namePatternIssue(alias)
    if (mistake !== undefined) report(['modelAliases', alias], mistake)
  }
}

function checkEntry(entry: LlmProviderEntry, report: ReportIssue): void {
  const { kind, provider } = providerOf(entry)
  const { hostOverride, policies } = entry
  if (provider && provider.address === undefined && !provider.local && hostOverride === undefined) {
    report(['provider', kind], `provider "${kind}" needs hostOverride`)
  }
  if (hostOverride !== undefined && parseHostPort(hostOverride)?.port === 0) {
    report(['hostOverride'], 'the port must not be 0')
  }
  for (const key of overrideKeys) {
    const text = entry[key]
    if (text === undefined) continue
    if (provider?.local) report([key], `provider "${kind}" answers inside the gateway and has no address`)
    if (key !== 'hostOverride' && !/^\/[\x21-\x7e]*$/.test(text)) {
      report([key], `must start with a slash and hold no blanks, got "${text}"`)
    } else if (key !== 'hostOverride' && /[?#]/.test(text)) {
      report([key], 'must not have a query or a fragment')
    }
  }
  if (entry.pathOverride !== undefined && entry.pathPrefix !== undefined) {
    report(['pathPrefix'], 'pathOverride is the whole path already: keep one of them')
  }
  if (policies === undefined) return
  checkBackendPolicies(policies, (path, message) => report(['policies', ...path], message))
  if (policies.ai)
    checkLlmPolicy(policies.ai, (path, message) => report(['policies', 'ai', ...path], message))
}

const overrideKeys = ['hostOverride', 'pathOverride', 'pathPrefix'] as const
