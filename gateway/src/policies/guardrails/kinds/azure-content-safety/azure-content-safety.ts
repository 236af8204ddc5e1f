import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { type BackendAuthConfig, placesOf } from '../../../../upstream/credentials/config.ts'
import { CheckFailure, type CompiledKind, type GuardText, type Rejection } from '../../guard.ts'
import { ambientAuth } from '../ambient-auth.ts'
import { type Ask, compileDetector, invalidResponse, nameForLog } from '../service/detector.ts'
import { findFirst, joined, piecesOf } from '../service/pieces.ts'
import { compileVendor } from '../service/service.ts'
import type { WebhookLimits } from '../webhook/limits.ts'
import type { AzureContentSafetyConfig } from './config.ts'

const kind = 'azureContentSafety'
/** Limit of the service for a text of `analyzeText` and `promptShields`, in characters. */
const maxTextLength = 10_000
const maxJailbreakLength = 1_000
/** Calls of one check. */
const maxCalls = 200

/** Reason of a rejection, by one call. */
type Analysis = (texts: readonly GuardText[]) => (() => Promise<string | undefined>)[]

export function compileAzureContentSafety(
  config: AzureContentSafetyConfig,
  { rejection, limits }: { rejection: Rejection; limits: WebhookLimits },
  context: CompileContext,
): CompiledKind {
  const { endpoint, policies, analyzeText, detectJailbreak, promptShields } = config
  const auth = credentialOf(policies?.backendAuth)
  const service = compileVendor({ kind, endpoint, node: config, policies, auth, limits }, context)
  return compileDetector({ config, service, rejection }, (texts, ask) => {
    const calls = [
      ...(analyzeText ? analyses(analyzeText, ask)(texts) : []),
      ...(detectJailbreak ? jailbreaks(detectJailbreak, ask)(texts) : []),
      ...(promptShields ? shields(promptShields, ask)(texts) : []),
    ]
    if (calls.length > maxCalls) throw new CheckFailure(`text too long for ${kind}`)
    return findFirst(calls, (call) => call())
  })
}

/**
 * Keys of Azure have a header of their own; without a credential, the identity of the environment applies.
 */
function credentialOf(configured: BackendAuthConfig | undefined): BackendAuthConfig {
  if (configured === undefined) return ambientAuth.azureContentSafety
  if (configured.key === undefined || placesOf(configured).length > 0) return configured
  return { ...configured, location: { header: { name: 'ocp-apim-subscription-key' } } }
}

type AnalyzeText = NonNullable<AzureContentSafetyConfig['analyzeText']>
type Version = { readonly apiVersion?: string | undefined }

function analyses(
  { severityThreshold = 2, blocklistNames, haltOnBlocklistHit, apiVersion = '2024-09-01' }: AnalyzeText,
  ask: Ask,
): Analysis {
  const path = pathOf('analyze', apiVersion)
  const settings: JsonObject = {
    ...(blocklistNames && { blocklistNames }),
    ...(haltOnBlocklistHit !== undefined && { haltOnBlocklistHit }),
  }
  return (texts) =>
    piecesOf(joined(texts), maxTextLength).map((text) => async () => {
      const { blocklistsMatch, categoriesAnalysis } = objectOf(await ask(path, { text, ...settings }))
      const matches = blocklistsMatch ?? []
      if (!Array.isArray(matches) || !Array.isArray(categoriesAnalysis))
        throw invalidResponse(kind, 'no categoriesAnalysis')
      const [match] = matches
      if (match !== undefined)
        return `blocklist: ${nameForLog(isJsonObject(match) ? match['blocklistName'] : undefined)}`
      return severityOf(categoriesAnalysis, severityThreshold)
    })
}

function severityOf(categories: readonly JsonValue[], threshold: number): string | undefined {
  let reason: string | undefined
  for (const entry of categories) {
    const { category, severity } = isJsonObject(entry) ? entry : {}
    if (typeof severity !== 'number') throw invalidResponse(kind, 'a category without severity')
    if (severity >= threshold) reason ??= `${nameForLog(category)}: severity ${severity}`
  }
  return reason
}

function jailbreaks({ apiVersion = '2024-02-15-preview' }: Version, ask: Ask): Analysis {
  const path = pathOf('detectJailbreak', apiVersion)
  return (texts) =>
    piecesOf(joined(texts), maxJailbreakLength).map((text) => async () => {
      const { jailbreakAnalysis } = objectOf(await ask(path, { text }))
      return flagOf(jailbreakAnalysis, 'detected') ? 'jailbreak detected' : undefined
    })
}

function shields({ apiVersion = '2024-09-01' }: Version, ask: Ask): Analysis {
  const path = pathOf('shieldPrompt', apiVersion)
  const pieces = (texts: readonly GuardText[]) =>
    texts.length === 0 ? [] : piecesOf(joined(texts), maxTextLength)
  return (texts) => [
    ...pieces(texts.filter((text) => !isToolResult(text))).map((userPrompt) => async () => {
      const { userPromptAnalysis } = objectOf(await ask(path, { userPrompt }))
      return flagOf(userPromptAnalysis, 'attackDetected') ? 'attack in a prompt' : undefined
    }),
    ...pieces(texts.filter(isToolResult)).map((document) => async () => {
      const { documentsAnalysis } = objectOf(await ask(path, { documents: [document] }))
      const [analysis] = Array.isArray(documentsAnalysis) ? documentsAnalysis : []
      return flagOf(analysis, 'attackDetected') ? 'attack in a document' : undefined
    }),
  ]
}

function isToolResult({ role }: GuardText): boolean {
  return role === 'tool' || role === 'function'
}

function pathOf(operation: string, version: string): string {
  return `/contentsafety/text:${operation}?api-version=${encodeURIComponent(version)}`
}

function objectOf(response: JsonValue): JsonObject {
  if (!isJsonObject(response)) throw invalidResponse(kind, 'not an object')
  return response
}

function flagOf(analysis: JsonValue | undefined, name: string): boolean {
  const flag = isJsonObject(analysis) ? analysis[name] : undefined
  if (typeof flag !== 'boolean') throw invalidResponse(kind, `no ${name}`)
  return flag
}
