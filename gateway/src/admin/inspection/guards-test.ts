import { isDeepStrictEqual } from 'node:util'
import type { GuardTest, GuardTestResult } from '../../config/inspection/test-guards.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { checkGuardrails, type GuardrailsConfig, guardrailsSchema } from '../../policies/guardrails/config.ts'
import { kindSchemas } from '../../policies/guardrails/kinds/kinds.ts'
import { body, type OpenApiPart, responses } from '../../resources/api/openapi-part.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import { type Allowances, findRestriction } from '../../resources/change/restrictions.ts'
import type { Expand } from '../../resources/hybrid/record.ts'
import { findKind } from '../../resources/kinds.ts'
import { findConfigRecord, shownValue, storedValue } from '../../resources/records/records.ts'
import { type ReadValue, retainStored } from '../../resources/records/retain.ts'
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
  const permitsNew = query.get('newTargets') === 'true'
  const config = guards === undefined ? undefined : readGuards(guards, { direction, permitsNew }, options)
  if (config?.kind === 'refused') return config
  const refused = config && !permitsNew ? refuseNewTargets(config.guards, options.resources) : undefined
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
  { direction, permitsNew }: { direction: GuardTest['direction']; permitsNew: boolean },
  { resources, allowances, expand, backends }: GuardTestOptions,
): Guards | Refusal {
  if (!isJsonObject(sent)) return refusal(422, 'guards must be the value of guardrails, or one guard')
  const isOne = Object.keys(kindSchemas).some((kind) => sent[kind] !== undefined)
  const whole: JsonObject = isOne ? { [direction]: [sent] } : sent
  const kind = findKind('llm.policy')
  const record = kind && findConfigRecord(resources, kind, 'guardrails')
  const stored = record && { shown: shownValue(record, resources), stored: storedValue(record) }
  const value = stored === undefined ? whole : retainStored(whole, stored)
  if (!permitsNew && hasNewReferences(whole, stored, expand))
    return refusal(
      403,
      'guards must not have new references to the environment: a test with newTargets=true expands them, which needs the right to change',
    )
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

/** Whether a value has references to the environment that the stored one does not have at their place. */
function hasNewReferences(sent: JsonValue, read: ReadValue | undefined, expand: Expand): boolean {
  const own = read === undefined ? sent : retainStored(sent, { ...read, stored: withoutTexts(read.stored) })
  return !isDeepStrictEqual(expand(own).value, own)
}

function withoutTexts(value: JsonValue): JsonValue {
  if (typeof value === 'string') return ''
  if (Array.isArray(value)) return value.map(withoutTexts)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutTexts(member)]))
}

/** A test of a client without the right to change must not send other requests than those of traffic. */
function refuseNewTargets(guards: GuardrailsConfig, resources: Resources): Refusal | undefined {
  const known = knownCalls(resources.effective().config)
  for (const phase of ['request', 'response'] as const) {
    for (const [index, guard] of (guards[phase] ?? []).entries()) {
      for (const [kind, settings] of Object.entries(guard)) {
        if (!callingKinds.has(kind) || settings === undefined || known.has(callOf(kind, settings))) continue
        return refusal(
          403,
          `${phase}[${index}].${kind} has another target or other headers than the active configuration: a test with newTargets=true calls it, which needs the right to change`,
        )
      }
    }
  }
  return undefined
}

/** Kinds of guards that call servers. */
const callingKinds: ReadonlySet<string> = new Set(Object.keys(kindSchemas).filter((kind) => kind !== 'regex'))

/** Calls of the guards of a configuration. */
function knownCalls(config: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, member] of Object.entries(value)) {
      if (key === 'keys') continue
      if (callingKinds.has(key) && isJsonObject(member)) found.add(callOf(key, member))
      else visit(member)
    }
  }
  visit(config)
  return found
}

/** Settings without an effect on destination and content of calls. */
const verdictSettings: ReadonlySet<string> = new Set(['action', 'failureMode'])

/**
 * Destination and content of the calls of a guard: of a webhook its target and headers, which include method
 * and path, else all settings.
 */
function callOf(kind: string, settings: object): string {
  const isPart = (name: string) =>
    kind === 'webhook' ? name === 'target' || name === 'headers' : !verdictSettings.has(name)
  const parts = Object.entries(settings).filter(([name]) => isPart(name))
  return JSON.stringify([kind, membersOf(Object.fromEntries(parts))])
}

/** A value with sorted members. */
function membersOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(membersOf)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, membersOf(member)] as const)
  return members.filter(([, member]) => member !== undefined).sort(([one], [other]) => (one < other ? -1 : 1))
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
              'Permits webhooks that the active configuration does not have, and new references to the environment. Needs the right to change.',
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
