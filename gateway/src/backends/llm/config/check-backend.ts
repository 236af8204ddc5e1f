import type { ReportIssue } from '../../../schema/report.ts'
import { checkBackendPolicies } from '../../../upstream/check.ts'
import { checkCachedBody, checkResponseCache } from '../cache/config.ts'
import { entriesOf, providerOf } from '../llm-backend.ts'
import { namePatternIssue } from '../models/name-pattern.ts'
import { checkFinalTransformation, checkModelTransformation } from '../models/transformation.ts'
import { checkSettings } from '../providers/settings.ts'
import type { LlmBackendConfig, LlmPolicyConfig, LlmProviderEntry } from './backend-config.ts'
import { checkOverrides } from './check-overrides.ts'
import { checkBodyFields } from './check-settings.ts'
import { routingRoots } from './model-settings.ts'

const roots: ReadonlySet<string> = new Set(routingRoots)

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
export function checkLlmPolicy(policy: LlmPolicyConfig, report: ReportIssue): void {
  const { routes = {}, modelAliases = {}, transformations = {}, finalTransformations = {} } = policy
  checkBodyFields({ ...policy, path: [] }, report)
  checkModelTransformation(transformations, roots, (at, message) =>
    report(['transformations', ...at], message),
  )
  checkFinalTransformation(finalTransformations, roots, (at, message) =>
    report(['finalTransformations', ...at], message),
  )
  if (policy.cache) checkResponseCache(policy.cache, (at, message) => report(['cache', ...at], message))
  checkCachedBody(policy.cache, policy.finalTransformations, report)
  for (const suffix of Object.keys(routes)) {
    if (suffix === '*') continue
    if (!/^[/:]/.test(suffix) || suffix.endsWith('/') || suffix.includes('*')) {
      report(
        ['routes', suffix],
        `must be a path suffix such as /v1/messages or :generateContent, or *, got "${suffix}"`,
      )
    }
  }
  for (const alias of Object.keys(modelAliases)) {
    const message = alias === '' ? 'model name must not be empty' : namePatternIssue(alias)
    if (message !== undefined) report(['modelAliases', alias], message)
  }
}

function checkEntry(entry: LlmProviderEntry, report: ReportIssue): void {
  const { name, kind, settings } = providerOf(entry)
  const { hostOverride, policies } = entry
  const reportSetting = (field: string, message: string) => report(['provider', name, field], message)
  const provider = kind && checkSettings(kind, settings, reportSetting) ? kind.configure(settings) : undefined
  if (provider && provider.address === undefined && !provider.local && hostOverride === undefined) {
    report(['provider', name], `provider "${name}" requires hostOverride`)
  }
  checkOverrides(entry, provider, report)
  if (policies === undefined) return
  checkBackendPolicies(policies, (path, message) => report(['policies', ...path], message))
  if (policies.ai)
    checkLlmPolicy(policies.ai, (path, message) => report(['policies', 'ai', ...path], message))
}
