import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { type Infer, name, object, optional, string } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import type { BackendAuthConfig } from '../../../../upstream/credentials/config.ts'
import {
  CheckFailure,
  type CheckInput,
  type CompiledKind,
  type Phase,
  type Rejection,
  type Verdict,
} from '../../guard.ts'
import { ambientAuth } from '../ambient-auth.ts'
import { checkService, detectorFields, failsOpen } from '../service/config.ts'
import { type Ask, invalidResponse, nameForLog } from '../service/detector.ts'
import { findFirst, seamsOf, slicesOf } from '../service/pieces.ts'
import { compileVendor } from '../service/service.ts'
import type { WebhookLimits } from '../webhook/limits.ts'

/**
 * `bedrockGuardrails`:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ApplyGuardrail.html.
 */
export const bedrockGuardrailsSchema = object(
  {
    guardrailIdentifier: name({ doc: 'Id or ARN of the guardrail.', example: 'gr1abc2def3g' }),
    guardrailVersion: name({ doc: 'Version of the guardrail, or `DRAFT`.', example: '1' }),
    region: name({ doc: 'Region of the guardrail.', example: 'eu-central-1' }),
    endpoint: optional(
      string({
        doc: 'Host or URL of the service, such as a VPC endpoint.',
        default: '`bedrock-runtime.<region>.amazonaws.com`',
        advanced: true,
      }),
    ),
    ...detectorFields,
  },
  {
    doc: 'Rejects or masks content by a guardrail of Amazon Bedrock. The credential is `policies.backendAuth.aws`, by default the identity of the environment.',
    example: { guardrailIdentifier: 'gr1abc2def3g', guardrailVersion: '1', region: 'eu-central-1' },
  },
)

export type BedrockGuardrailsConfig = Infer<typeof bedrockGuardrailsSchema>

const kind = 'bedrockGuardrails'
/** Characters of a call: the default quota of 25 text units. */
const maxCallLength = 25_000
const maxBlocks = 2_000

/** Reports errors of the service, and names that it refuses. */
export function checkBedrockGuardrails(config: BedrockGuardrailsConfig, report: ReportIssue): void {
  checkService(config, report)
  const { guardrailIdentifier, guardrailVersion, region } = config
  if (
    !/^(?:[a-z0-9]+|arn:aws(?:-[a-z]+)*:bedrock:[a-z0-9-]+:\d{12}:guardrail\/[a-z0-9]+)$/.test(
      guardrailIdentifier,
    )
  )
    report(['guardrailIdentifier'], 'must be the id or the ARN of a guardrail')
  if (!/^(?:[1-9]\d{0,7}|DRAFT)$/.test(guardrailVersion))
    report(['guardrailVersion'], 'must be a number or DRAFT')
  if (!/^[a-z0-9-]+$/.test(region)) report(['region'], 'must be a region, such as eu-central-1')
}

/** A part of a text, in one content block; with `border`, one that two others contain. */
type Block = { readonly text: number; content: string; readonly border?: number }

export type BedrockOptions = {
  readonly phase: Phase
  readonly rejection: Rejection
  readonly limits: WebhookLimits
}

export function compileBedrockGuardrails(
  config: BedrockGuardrailsConfig,
  { phase, rejection, limits }: BedrockOptions,
  context: CompileContext,
): CompiledKind {
  const { guardrailIdentifier, guardrailVersion, region, policies } = config
  const endpoint = config.endpoint ?? `bedrock-runtime.${region}.amazonaws.com`
  const auth = withRegion(policies?.backendAuth ?? ambientAuth.bedrockGuardrails, region)
  const service = compileVendor({ kind, endpoint, node: config, policies, auth, limits }, context)
  const path = `/guardrail/${encodeURIComponent(guardrailIdentifier)}/version/${guardrailVersion}/apply`
  const source = phase === 'request' ? 'INPUT' : 'OUTPUT'

  /** Masks the blocks in place; returns the reason of a rejection. */
  async function apply(blocks: readonly Block[], masked: Set<string>, ask: Ask): Promise<string | undefined> {
    const content = blocks.map(({ content: text }) => ({ text: { text } }))
    const result = readResult(await ask(path, { source, content }))
    if (result.kind === 'pass') return undefined
    if (result.kind === 'blocked' || result.outputs.length !== blocks.length) return result.reason
    masked.add(result.reason)
    for (const [index, block] of blocks.entries()) {
      const output = result.outputs[index] ?? block.content
      if (block.border === undefined) block.content = output
      else if (output !== block.content && crosses(result.matches, block.content, block.border))
        return `${result.reason}, across parts of a long text`
    }
    return undefined
  }

  async function check(texts: CheckInput['texts'], ask: Ask): Promise<Verdict> {
    const blocks = texts.flatMap(({ content }, text) => blocksOf(content, text))
    if (blocks.length > maxBlocks) throw new CheckFailure(`text too long for ${kind}`)
    const masked = new Set<string>()
    const reason = await findFirst(batchesOf(blocks), (batch) => apply(batch, masked, ask))
    if (reason !== undefined) return { kind: 'reject', rejection, reason }
    if (masked.size === 0) return { kind: 'allow' }
    const contents = texts.map((_, index) =>
      blocks
        .map(({ text, content, border }) => (text === index && border === undefined ? content : ''))
        .join(''),
    )
    return { kind: 'modify', contents, reason: [...masked].join('; ') }
  }

  return {
    audit: config.action === 'audit',
    failOpen: failsOpen(config),
    check({ texts, exchange }) {
      if (texts.every(({ content }) => content === '')) return { kind: 'allow' }
      return service.within(exchange, (cancellation) =>
        check(texts, (to, body) => service.post({ path: to, body, exchange, cancellation })),
      )
    },
  }
}

/** The region of the guardrail signs requests, unless the credential names another. */
function withRegion(auth: BackendAuthConfig, region: string): BackendAuthConfig {
  if (auth.aws === undefined) return auth
  return { ...auth, aws: { ...auth.aws, region: auth.aws.region ?? region } }
}

/** The slices of a text, and the seams between them. */
function blocksOf(content: string, text: number): Block[] {
  const slices = slicesOf(content, maxCallLength)
  const seams = seamsOf(slices).map((seam) => ({ text, ...seam }))
  return [...slices.map((slice) => ({ text, content: slice })), ...seams]
}

/** Whether a masked text contains the border of a seam. Without a known match it may be any. */
function crosses(matches: readonly string[], content: string, border: number): boolean {
  return (
    matches.length === 0 ||
    matches.some((match) => {
      const start = content.indexOf(match, Math.max(0, border - match.length + 1))
      return match !== '' && start !== -1 && start < border
    })
  )
}

function batchesOf(blocks: readonly Block[]): Block[][] {
  const batches: Block[][] = []
  let length = 0
  for (const block of blocks) {
    const last = batches.at(-1)
    length += block.content.length
    if (last !== undefined && length <= maxCallLength) last.push(block)
    else {
      batches.push([block])
      length = block.content.length
    }
  }
  return batches
}

type Result =
  | { readonly kind: 'pass' }
  | { readonly kind: 'blocked'; readonly reason: string }
  | {
      readonly kind: 'masked'
      readonly reason: string
      readonly outputs: readonly string[]
      /** Texts that are masked. */
      readonly matches: readonly string[]
    }

function readResult(response: JsonValue): Result {
  const { action, outputs = [], assessments = [] } = isJsonObject(response) ? response : {}
  if (action === 'NONE') return { kind: 'pass' }
  if (action !== 'GUARDRAIL_INTERVENED') throw invalidResponse(kind, 'no action')
  if (!Array.isArray(outputs) || !Array.isArray(assessments)) throw invalidResponse(kind, 'no assessments')
  const blocking = policiesWith('BLOCKED', assessments)
  const masking = policiesWith('ANONYMIZED', assessments)
  if (blocking.length > 0 || masking.length === 0)
    return { kind: 'blocked', reason: `blocked: ${blocking.join(', ') || 'no policy'}` }
  const texts = outputs.map((output) => (isJsonObject(output) ? output['text'] : undefined))
  return {
    kind: 'masked',
    reason: `masked: ${masking.join(', ')}`,
    outputs: texts.filter((text) => typeof text === 'string'),
    matches: assessments.flatMap((assessment) => matchesIn(assessment)),
  }
}

function matchesIn(value: JsonValue | undefined, depth = 0): string[] {
  if (typeof value !== 'object' || value === null || depth > maxDepth) return []
  const own = isJsonObject(value) && value['action'] === 'ANONYMIZED' ? value['match'] : undefined
  const below = Object.values(value).flatMap((member: JsonValue) => matchesIn(member, depth + 1))
  return typeof own === 'string' ? [own, ...below] : below
}

const maxDepth = 16

/** Names of the policies with an action. */
function policiesWith(action: string, assessments: readonly JsonValue[]): string[] {
  const policies = assessments
    .filter(isJsonObject)
    .flatMap((assessment: JsonObject) => Object.entries(assessment))
  return [
    ...new Set(policies.filter(([, policy]) => hasAction(policy, action)).map(([name]) => nameForLog(name))),
  ]
}

function hasAction(value: JsonValue | undefined, action: string, depth = 0): boolean {
  if (typeof value !== 'object' || value === null || depth > maxDepth) return false
  if (isJsonObject(value) && value['action'] === action) return true
  return Object.values(value).some((member: JsonValue) => hasAction(member, action, depth + 1))
}
