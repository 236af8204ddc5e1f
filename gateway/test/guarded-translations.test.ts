import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { translationsFrom } from '../src/backends/llm/translate/translations.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../src/lib/json/json.ts'
import type { JsonPath } from '../src/lib/json/splice.ts'
import { contentReaders } from '../src/policies/guardrails/content/content.ts'
import { joinedText } from '../src/policies/guardrails/content/content-reader.ts'
import { createReading } from '../src/policies/guardrails/content/reading.ts'

/** A text that a translation forwards to a model, and that no guard reads, is a way around guards. */
const root = join(import.meta.dirname, 'golden/llm')
const apis = {
  chat: 'chat',
  messages: 'messages',
  responses: 'responses',
  gemini: 'generate_content',
  converse: 'converse',
  cohere: 'cohere_chat',
} as const
const scopes = [
  'systemPrompt',
  'messages',
  'toolInput',
  'toolOutput',
  'toolDefinitions',
  'reasoning',
] as const

/** Members without text for a model: identifiers, addresses, media, settings. */
const unread: ReadonlySet<string> = new Set([
  ...['model', 'name', 'id', 'tool_call_id', 'tool_use_id', 'call_id', 'toolUseId', 'signature'],
  ...[
    'type',
    '$ref',
    'required',
    'format',
    'media_type',
    'mimeType',
    'mode',
    'detail',
    'category',
    'threshold',
  ],
  ...['url', 'image_url', 'file_id', 'fileUri', 'file_data', 'data', 'bytes', 'cached_content'],
  ...['stop', 'stop_sequences', 'stopSequences', 'user', 'user_id', 'team', 'safety_identifier'],
  ...[
    'prompt_cache_key',
    'prompt_cache_retention',
    'service_tier',
    'reasoning_effort',
    'effort',
    'verbosity',
  ],
  ...['search_context_size', 'city', 'country'],
])

function* textPaths(value: JsonValue | undefined, path: JsonPath = []): Generator<JsonPath> {
  if (typeof value === 'string') yield path
  else if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* textPaths(item, [...path, index])
  else if (isJsonObject(value))
    for (const [name, member] of Object.entries(value)) yield* textPaths(member, [...path, name])
}

function withText(value: JsonValue | undefined, [step, ...rest]: JsonPath, text: string): JsonValue {
  if (step === undefined) return text
  if (Array.isArray(value)) return value.with(Number(step), withText(value[Number(step)], rest, text))
  const object = isJsonObject(value) ? value : {}
  return { ...object, [step]: withText(object[step], rest, text) }
}

const mark = 'zzMARKzz'

function isChecked(api: (typeof apis)[keyof typeof apis], body: JsonObject): boolean {
  try {
    const texts = contentReaders[api].request(body, createReading('request', new Set(scopes)))
    return texts.some((text) => joinedText(text).includes(mark))
  } catch {
    // The check fails.
    return true
  }
}

const requests = readdirSync(root).flatMap((direction) => {
  const api = Object.entries(apis).find(([name]) => direction.startsWith(`${name}-to-`))?.[1]
  if (api === undefined) throw new Error(`unknown direction ${direction}`)
  return readdirSync(join(root, direction)).flatMap((name) => {
    const file = join(root, direction, name, 'request.json')
    return existsSync(file) ? [[`${direction}/${name}`, api, file] as const] : []
  })
})

it.each(requests)('guards read all texts of %s that a translation forwards', (_, api, file) => {
  const body: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (!isJsonObject(body)) throw new Error('the request is not an object')
  const passing: string[] = []
  for (const path of textPaths(body)) {
    const member = path.findLast((step) => typeof step === 'string') ?? ''
    const changed = withText(body, path, `${mark} hidden`)
    if (unread.has(String(member)) || !isJsonObject(changed) || isChecked(api, changed)) continue
    for (const { request } of translationsFrom(api)) {
      const translated = request(changed)
      if (translated.kind === 'body' && JSON.stringify(translated.body).includes(mark))
        passing.push(path.join('.'))
    }
  }
  expect([...new Set(passing)]).toEqual([])
})
