import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { NamedBackend } from '../../../../upstream/config.ts'
import {
  CheckFailure,
  type CheckInput,
  type CompiledKind,
  type Rejection,
  type Verdict,
} from '../../guard.ts'
import { failsOpen } from '../service/config.ts'
import { invalidResponse } from '../service/detector.ts'
import { findFirst } from '../service/pieces.ts'
import { compileService, type ServiceCall } from '../service/service.ts'
import { compileTarget, type TargetConfig } from '../service/target.ts'
import type { WebhookLimits } from '../webhook/limits.ts'
import type { PresidioConfig } from './config.ts'
import { type Entity, maskEntities, readEntities } from './spans.ts'

const kind = 'presidio'
/** Limits of one check: each text is a call. */
const maxTexts = 1_000
/** Limit of the language models of the analyzer, in characters. */
const maxTextLength = 1_000_000

export type PresidioOptions = {
  readonly rejection: Rejection
  readonly backends: readonly NamedBackend[]
  readonly limits: WebhookLimits
}

export function compilePresidio(
  config: PresidioConfig,
  { rejection, backends, limits }: PresidioOptions,
  context: CompileContext,
): CompiledKind {
  const { language = 'en', entities, scoreThreshold = 0, anonymizers, action = 'mask' } = config
  const serviceAt = (target: TargetConfig) =>
    compileService({ kind, servers: compileTarget(target, backends, context), limits }, context)
  const analyzer = serviceAt(config.analyzer)
  const anonymizer = config.anonymizer && serviceAt(config.anonymizer)
  const settings: JsonObject = {
    language,
    ...(entities && { entities }),
    score_threshold: scoreThreshold,
  }

  type Call = Pick<ServiceCall, 'exchange' | 'cancellation'>

  async function entitiesOf(text: string, call: Call): Promise<Entity[]> {
    const response = await analyzer.post({ ...call, path: '/analyze', body: { text, ...settings } })
    return readEntities(response, text).filter(({ score }) => score >= scoreThreshold)
  }

  async function masked(text: string, found: readonly Entity[], call: Call): Promise<string> {
    if (anonymizer === undefined) return maskEntities(text, found)
    const results = found.map(({ type, points, score }) => ({ entity_type: type, ...points, score }))
    const body = { text, analyzer_results: results, ...(anonymizers && { anonymizers }) }
    // JSON of the configuration.
    const response = await anonymizer.post({ ...call, path: '/anonymize', body: body as JsonObject })
    const replaced = isJsonObject(response) ? response['text'] : undefined
    if (typeof replaced !== 'string') throw invalidResponse(kind, 'no text')
    return replaced
  }

  async function check(
    { texts, exchange }: CheckInput,
    cancellation: Call['cancellation'],
  ): Promise<Verdict> {
    const call = { exchange, cancellation }
    const contents = texts.map(({ content }) => content)
    const types = new Set<string>()
    const filled = [...contents.entries()].filter(([, content]) => content !== '')
    const isRejected = await findFirst(filled, async ([index, content]) => {
      const found = await entitiesOf(content, call)
      for (const { type } of found) types.add(type)
      if (found.length === 0) return undefined
      if (action !== 'mask') return true
      contents[index] = await masked(content, found, call)
      return undefined
    })
    const reason = `found ${[...types].sort().slice(0, 16).join(', ')}`
    if (isRejected === true) return { kind: 'reject', rejection, reason }
    return types.size === 0 ? { kind: 'allow' } : { kind: 'modify', contents, reason }
  }

  return {
    audit: action === 'audit',
    failOpen: failsOpen(config),
    check(question) {
      const { texts, exchange } = question
      if (texts.every(({ content }) => content === '')) return { kind: 'allow' }
      if (texts.length > maxTexts || texts.some(({ content }) => content.length > maxTextLength))
        throw new CheckFailure(`text too long for ${kind}`)
      return analyzer.within(exchange, (cancellation) => check(question, cancellation))
    },
  }
}
