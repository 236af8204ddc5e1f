import type { GuardTest, GuardTestResult } from '../../config/inspection/test-guards.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { checkGuardrails, type GuardrailsConfig, guardrailsSchema } from '../../policies/guardrails/config.ts'
import { body, type OpenApiPart, responses } from '../../resources/api/openapi-part.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import { type Allowances, findRestriction } from '../../resources/change/restrictions.ts'
import type { Expand } from '../../resources/hybrid/record.ts'
import { findKind } from '../../resources/kinds.ts'
import { findConfigRecord, shownValue, storedValue } from '../../resources/records/records.ts'
import { retainStored } from '../../resources/records/retain.ts'
import type { Resources } from '../../resources/resources.ts'
import { maskedPlace } from '../../resources/secrets/secret-paths.ts'
import { check } from '../../schema/check.ts'
import { formatPath } from '../../schema/path.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import type { AdminCall, AdminEndpoint, AdminResult } from '../api.ts'

const path = '/api/guards/test'

export type GuardTestOptions = {
  readonly test: (test: GuardTest) => Promise<GuardTestResult>
  readonly resources: Resources
  readonly allowances: Allowances
  readonly expand: Expand
  /** Named backends of the active configuration. */
  readonly backends: () => readonly NamedBackend[]
}

/** Concurrent tests: each may wait for webhooks. */
const maxTests = 8
const maxTextLength = 256 * 1024
const maxTexts = 1_000

/** Endpoint of a test of guards on texts: what each guard decides and changes. */
export function guardsTestEndpoint(options: GuardTestOptions): AdminEndpoint {
  let running = 0
  return {
    path,
    methods: {
      POST: {
        query: ['newTargets'],
        async respond(call) {
          if (running >= maxTests)
            return refusal(503, 'too many tests of guards are running; try again later')
          running += 1
          try {
            return await respond(call, options)
          } finally {
            running -= 1
          }
        },
      },
    },
  }
}

async function respond({ query, readJson }: AdminCall, options: GuardTestOptions): Promise<AdminResult> {
  const read = await readJson()
  if (read.kind === 'refused') return read
  const { guards, text, messages, direction = 'request', ...rest } = read.value
  const [stray] = Object.keys(rest)
  if (stray !== undefined) return refusal(422, `unknown member ${stray.slice(0, 100)}`)
  if (direction !== 'request' && direction !== 'response')
    return refusal(422, 'direction must be request or response')
  const texts = readTexts(text, messages, direction)
  if (texts.kind === 'refused') return texts
  const config = guards === undefined ? undefined : readGuards(guards, direction, options)
  if (config?.kind === 'refused') return config
  const refused =
    config && query.get('newTargets') !== 'true'
      ? refuseNewTargets(config.guards, options.resources)
      : undefined
  if (refused) return refused
  const tested = await options.test({ guards: config?.guards, texts: texts.texts, direction })
  const { texts: after, ...result } = tested
  const value = text === undefined ? { ...result, messages: after } : { ...result, text: after[0]?.content }
  return { kind: 'json', value }
}

type Texts = { readonly kind: 'texts'; readonly texts: GuardTest['texts'] }

function readTexts(
  text: JsonValue | undefined,
  messages: JsonValue | undefined,
  direction: GuardTest['direction'],
): Texts | Refusal {
  if ((text === undefined) === (messages === undefined)) return refusal(422, 'requires text or messages')
  if (text !== undefined) {
    if (typeof text !== 'string') return refusal(422, 'text must be a text')
    const role = direction === 'request' ? 'user' : 'assistant'
    return limited([{ role, content: text }])
  }
  if (!Array.isArray(messages) || messages.length > maxTexts)
    return refusal(422, `messages must be a list of at most ${maxTexts} messages`)
  const texts: { role: string; content: string }[] = []
  for (const message of messages) {
    const { role, content } = isJsonObject(message) ? message : {}
    if (typeof role !== 'string' || typeof content !== 'string')
      return refusal(422, 'messages must have the texts role and content')
    texts.push({ role, content })
  }
  return limited(texts)
}

function limited(texts: GuardTest['texts']): Texts | Refusal {
  const length = texts.reduce((sum, { content }) => sum + content.length, 0)
  if (length > maxTextLength) return refusal(413, `texts must have at most ${maxTextLength} characters`)
  return { kind: 'texts', texts }
}

type Guards = { readonly kind: 'guards'; readonly guards: GuardrailsConfig }

/** Reads `guardrails`, or one guard. Masked parts are those of the stored guards. */
function readGuards(
  sent: JsonValue,
  direction: GuardTest['direction'],
  { resources, allowances, expand, backends }: GuardTestOptions,
): Guards | Refusal {
  if (!isJsonObject(sent)) return refusal(422, 'guards must be the value of guardrails, or one guard')
  const isOne = sent['webhook'] !== undefined || sent['regex'] !== undefined
  const whole: JsonObject = isOne ? { [direction]: [sent] } : sent
  const kind = findKind('llm.policy')
  const record = kind && findConfigRecord(resources, kind, 'guardrails')
  const value =
    record === undefined
      ? whole
      : retainStored(whole, { shown: shownValue(record, resources), stored: storedValue(record) })
  const masked = kind && maskedPlace(kind, 'guardrails', value)
  if (masked !== undefined) return refusal(422, `${masked.slice(0, 200)} is masked: send the secret itself`)
  const expanded = expand(value).value
  const restriction = kind && findRestriction(kind, 'guardrails', expanded, allowances)
  if (restriction !== undefined) return refusal(403, restriction)
  const checked = check(guardrailsSchema, expanded)
  const mistakes = checked.kind === 'valid' ? [] : checked.mistakes
  const found = mistakes.map(({ path: place, message }) => `${formatPath(place)}: ${message}`)
  if (checked.kind === 'valid')
    checkGuardrails(checked.value, backends(), (place, message) =>
      found.push(`${formatPath(place)}: ${message}`),
    )
  if (checked.kind !== 'valid' || found.length > 0) return refusal(422, found.slice(0, 20).join('\n'))
  return { kind: 'guards', guards: checked.value }
}

/** A test must not connect a client without the right to change to any address. */
function refuseNewTargets(guards: GuardrailsConfig, resources: Resources): Refusal | undefined {
  const known = knownHosts(resources.effective().config)
  for (const phase of ['request', 'response'] as const) {
    for (const [index, { webhook }] of (guards[phase] ?? []).entries()) {
      const host = webhook?.target.host
      if (host === undefined || known.has(host)) continue
      const place = `${phase}[${index}].webhook.target`
      return refusal(
        403,
        `${place} is not a destination of the active configuration: a test with newTargets=true calls it, which needs the right to change`,
      )
    }
  }
  return undefined
}

/** Hosts of the webhooks of a configuration. */
function knownHosts(config: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (value: unknown, name: string): void => {
    if (typeof value !== 'object' || value === null || name === 'keys') return
    for (const [key, member] of Object.entries(value)) {
      if (name === 'target' && key === 'host' && typeof member === 'string') found.add(member)
      else visit(member, Array.isArray(value) ? name : key)
    }
  }
  visit(config, '')
  return found
}

const text = { type: 'string' }
const message = { type: 'object', properties: { role: text, content: text } }

/** OpenAPI of the endpoint. */
export const guardsTestOpenApi: OpenApiPart = {
  paths: {
    [path]: {
      post: {
        summary: 'Runs guards on texts, webhooks included. No metric counts the checks.',
        parameters: [
          {
            name: 'newTargets',
            in: 'query',
            description:
              'Permits webhooks that the active configuration does not have. Needs the right to change.',
            schema: { type: 'boolean', default: false },
          },
        ],
        requestBody: body({
          type: 'object',
          properties: {
            guards: {
              type: 'object',
              description: 'Value of `guardrails`, or one guard; by default the active guards of `llm`.',
            },
            direction: { enum: ['request', 'response'], default: 'request' },
            text: { ...text, description: 'One text, instead of `messages`.' },
            messages: { type: 'array', items: message },
          },
        }),
        responses: responses({
          type: 'object',
          properties: {
            outcome: { enum: ['passed', 'masked', 'rejected', 'failed'] },
            text: { ...text, description: 'Text after all guards.' },
            messages: { type: 'array', items: message },
            rejection: { type: 'object', properties: { status: { type: 'integer' }, body: text } },
            guards: {
              type: 'array',
              description: 'Guards that ran, in order.',
              items: {
                type: 'object',
                properties: {
                  name: text,
                  outcome: text,
                  reason: text,
                  ms: { type: 'number' },
                  matches: {
                    type: 'array',
                    description: 'Replaced parts, with offsets in the texts before this guard.',
                    items: {
                      type: 'object',
                      properties: {
                        text: { type: 'integer', description: 'Index of the text.' },
                        start: { type: 'integer' },
                        end: { type: 'integer' },
                        before: text,
                        after: text,
                      },
                    },
                  },
                },
              },
            },
          },
        }),
      },
    },
  },
}
