import { isJsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { type Infer, name, object, optional, string } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import { CheckFailure, type CompiledKind, type Phase, type Rejection } from '../../guard.ts'
import { ambientAuth } from '../ambient-auth.ts'
import { checkService, detectorFields } from '../service/config.ts'
import { compileDetector, invalidResponse, nameForLog } from '../service/detector.ts'
import { findFirst, joined, piecesOf } from '../service/pieces.ts'
import { compileVendor } from '../service/service.ts'
import type { WebhookLimits } from '../webhook/limits.ts'

/** `googleModelArmor`: https://cloud.google.com/security-command-center/docs/reference/model-armor/rest. */
export const googleModelArmorSchema = object(
  {
    projectId: name({ doc: 'Project of the template.', example: 'my-project' }),
    templateId: name({ doc: 'Template with the filters.', example: 'prompts' }),
    location: optional(name({ doc: 'Region of the template.', default: 'us-central1' })),
    endpoint: optional(
      string({
        doc: 'Host or URL of the service.',
        default: '`modelarmor.<location>.rep.googleapis.com`',
        advanced: true,
      }),
    ),
    ...detectorFields,
  },
  {
    doc: 'Rejects content that matches a filter of Google Cloud Model Armor. The credential is `policies.backendAuth.gcp`, by default the identity of the environment.',
    example: { projectId: 'my-project', templateId: 'prompts', location: 'europe-west4' },
  },
)

export type GoogleModelArmorConfig = Infer<typeof googleModelArmorSchema>

const kind = 'googleModelArmor'
/** Characters of a call: the filters read a limited number of tokens. */
const maxPieceLength = 10_000
const maxPieces = 200
const defaultLocation = 'us-central1'

/** Reports errors of the service, and names that are not a segment of a path or host. */
export function checkGoogleModelArmor(config: GoogleModelArmorConfig, report: ReportIssue): void {
  checkService(config, report)
  const { projectId, templateId, location = defaultLocation } = config
  for (const [key, value] of Object.entries({ projectId, templateId, location }))
    if (!/^[\w.:-]+$/.test(value)) report([key], 'must have letters, digits, and the characters - _ . : only')
}

export type ModelArmorOptions = {
  readonly phase: Phase
  readonly rejection: Rejection
  readonly limits: WebhookLimits
}

export function compileGoogleModelArmor(
  config: GoogleModelArmorConfig,
  { phase, rejection, limits }: ModelArmorOptions,
  context: CompileContext,
): CompiledKind {
  const { projectId, templateId, location = defaultLocation, policies } = config
  const endpoint = config.endpoint ?? `modelarmor.${location}.rep.googleapis.com`
  const auth = policies?.backendAuth ?? ambientAuth.googleModelArmor
  const service = compileVendor({ kind, endpoint, node: config, policies, auth, limits }, context)
  const operation = phase === 'request' ? 'sanitizeUserPrompt' : 'sanitizeModelResponse'
  const member = phase === 'request' ? 'userPromptData' : 'modelResponseData'
  const path = `/v1/projects/${projectId}/locations/${location}/templates/${templateId}:${operation}`
  return compileDetector({ config, service, rejection }, (texts, ask) => {
    const pieces = piecesOf(joined(texts), maxPieceLength)
    if (pieces.length > maxPieces) throw new CheckFailure(`text too long for ${kind}`)
    return findFirst(pieces, async (text) => matchIn(await ask(path, { [member]: { text } })))
  })
}

/** Names of the filters that match. Throws `CheckFailure` if a filter has not run. */
function matchIn(response: JsonValue): string | undefined {
  const result = isJsonObject(response) ? response['sanitizationResult'] : undefined
  if (!isJsonObject(result)) throw invalidResponse(kind, 'no sanitizationResult')
  const { filterMatchState: state, invocationResult, filterResults } = result
  const filters = isJsonObject(filterResults) ? Object.entries(filterResults) : []
  const matches = filters.filter(([, filter]) => hasMatch(filter)).map(([name]) => nameForLog(name))
  if (state === 'MATCH_FOUND' || matches.length > 0)
    return `match: ${matches.length === 0 ? 'no filter' : matches.slice(0, 8).join(', ')}`
  if (state !== 'NO_MATCH_FOUND') throw invalidResponse(kind, 'no filterMatchState')
  if (invocationResult !== 'SUCCESS') throw new CheckFailure(`${kind} did not run all filters`)
  return undefined
}

const maxDepth = 8

/** Whether a result, or one inside of it, is a match. */
function hasMatch(value: JsonValue | undefined, depth = 0): boolean {
  if (typeof value !== 'object' || value === null || depth > maxDepth) return false
  if (isJsonObject(value) && value['matchState'] === 'MATCH_FOUND') return true
  return Object.values(value).some((member: JsonValue) => hasMatch(member, depth + 1))
}
