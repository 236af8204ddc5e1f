import { parseDuration } from '../../../lib/duration.ts'
import { nearest } from '../../../lib/nearest.ts'
import { compilePattern } from '../../../lib/pattern.ts'
import type { Path } from '../../../schema/path.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { checkCachedBody, checkResponseCache } from '../cache/config.ts'
import { namePatternIssue } from '../models/name-pattern.ts'
import { settingsOf, sharedProvider } from '../models/settings.ts'
import { checkPassthrough } from './check-passthrough.ts'
import { checkProvider } from './check-provider.ts'
import { checkModelSettings } from './check-settings.ts'
import { checkVirtualModels } from './check-virtual-models.ts'
import type { LlmConfig, LlmParams, ModelConfig } from './config.ts'
import { reportDuplicates } from './duplicates.ts'

const oneCredential = 'is not valid with params.apiKey: remove one of them'

/**
 * Reports issues of `llm` beyond its schema: duplicate and unknown names, patterns, expressions, missing
 * addresses.
 */
export function checkLlm(config: LlmConfig, report: ReportIssue): void {
  if (config.port !== undefined && config.gateways !== undefined) {
    report(['gateways'], 'is not valid with port: remove one of them')
  }
  const shared = config.providers ?? []
  const sharedNames = shared.map((provider) => provider.name)
  reportDuplicates(sharedNames, (index, name) =>
    report(['providers', index, 'name'], `duplicate provider name "${name}"`),
  )
  for (const [index, provider] of shared.entries()) {
    const path = ['providers', index]
    checkProvider(provider.provider, provider.params, path, report)
    if (provider.defaults) checkModelSettings(provider.defaults, [...path, 'defaults'], report)
    if (provider.params?.apiKey !== undefined && provider.defaults?.auth !== undefined)
      report([...path, 'defaults', 'auth'], oneCredential)
  }
  checkIds(config.models, report)
  for (const [index, model] of config.models.entries()) {
    const path = ['models', index]
    const issue = namePatternIssue(model.name)
    if (issue) report([...path, 'name'], issue)
    const { provider } = model
    if (typeof provider === 'string' || provider.custom !== undefined)
      checkProvider(provider, model.params, path, report)
    else checkReference(provider.reference, model.params, sharedNames, path, report)
    checkHeaderPatterns(model, path, report)
    checkModelSettings(model, path, report)
    checkPassthrough(model, config, path, report)
    checkConcurrency(model, path, report)
    if (model.cache) {
      checkResponseCache(model.cache, (at, message) => report([...path, 'cache', ...at], message))
      const { finalTransformation } = settingsOf(model, sharedProvider(model, config))
      checkCachedBody(model.cache, finalTransformation, (at, message) => report([...path, ...at], message))
    }
    if (model.params?.apiKey !== undefined && model.auth !== undefined)
      report([...path, 'auth'], oneCredential)
  }
  checkVirtualModels(config, report)
  for (const key of ['firstByte', 'idle'] as const) {
    const text = config.timeouts?.[key]
    if (text !== undefined && parseDuration(text) === 0) report(['timeouts', key], 'must be greater than 0')
  }
}

function checkConcurrency({ concurrency }: ModelConfig, path: Path, report: ReportIssue): void {
  const { queue = 0, timeout } = concurrency ?? {}
  if (timeout === undefined) return
  const at = [...path, 'concurrency', 'timeout']
  const timeoutMs = parseDuration(timeout) ?? 0
  if (timeoutMs <= 0 || timeoutMs > maxQueueTimeMs) report(at, 'must be greater than 0, and at most 1m')
  if (queue === 0) report(at, 'has no effect without queue: set queue, or remove it')
}

const maxQueueTimeMs = 60_000

function checkReference(
  reference: string,
  params: LlmParams | undefined,
  names: readonly string[],
  path: (string | number)[],
  report: ReportIssue,
): void {
  if (!names.includes(reference)) {
    const near = nearest(reference, names)
    const hint = near ? `, did you mean "${near}"?` : ''
    report([...path, 'provider', 'reference'], `llm.providers has no entry named "${reference}"${hint}`)
  }
  for (const key of Object.keys(params ?? {})) {
    if (key === 'model') continue
    report(
      [...path, 'params', key],
      `is not valid with a reference: set it in provider "${reference}"; only params.model is valid here`,
    )
  }
}

function checkHeaderPatterns({ matches }: ModelConfig, path: (string | number)[], report: ReportIssue): void {
  for (const [index, match] of (matches ?? []).entries()) {
    for (const [position, header] of match.headers.entries()) {
      if (header.value.regex === undefined) continue
      const pattern = compilePattern(header.value.regex)
      if (!pattern.ok)
        report([...path, 'matches', index, 'headers', position, 'value', 'regex'], pattern.message)
    }
  }
}

/** Names may repeat with different `matches`; explicit ids must be unique. */
function checkIds(models: readonly ModelConfig[], report: ReportIssue): void {
  const seen = new Set<string>()
  for (const [index, { id }] of models.entries()) {
    if (id === undefined) continue
    if (seen.has(id)) report(['models', index, 'id'], `duplicate model id "${id}"`)
    seen.add(id)
  }
  const unconditional = new Set<string>()
  for (const [index, { name, matches, visibility }] of models.entries()) {
    if (matches !== undefined && matches.length > 0) continue
    const key = `${visibility ?? 'public'} ${name}`
    if (unconditional.has(key)) {
      report(
        ['models', index, 'name'],
        `an earlier model named "${name}" matches every request: add matches to one of them`,
      )
    }
    unconditional.add(key)
  }
}
